"""Which code a result came from. A change of comments, docstrings or layout is not a change of code."""

import ast
import hashlib
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from psconrl._version import __version__

# What the outcome of a run depends on; how it is stored or drawn does not matter.
PARTS = (
    "kernels",
    "model",
    "planning",
    "envs",
    "learning",
    "simulation",
    "experiment/job.py",
    "experiment/knowledge.py",
)


@cache
def versions() -> dict[str, str]:
    """The versions that the outcome of a run depends on."""
    return {
        "psconrl": __version__,
        "code": code_digest(),
        **{name: version(name) for name in ("numpy", "scipy", "highspy")},
    }


@cache
def code_digest() -> str:
    """A hash of the code that runs depend on, as it is parsed."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for part in PARTS:
        for path in sorted((root / part).rglob("*") if (root / part).is_dir() else [root / part]):
            if path.suffix == ".py":
                digest.update(_without_docstrings(path.read_text(encoding="utf-8")).encode())
            elif path.suffix == ".txt":
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


@cache
def git_commit() -> str:
    """The commit of a source checkout, with a + if it has been changed since; empty elsewhere."""
    root = Path(__file__).parents[1]
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, timeout=5, check=True
        )
        changes = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "."],
            cwd=root, capture_output=True, text=True, timeout=5, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")
