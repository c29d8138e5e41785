"""Which code a result came from. Changed comments, layout or words of a docstring are not changed code."""

import hashlib
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any

from psconrl._version import __version__

# What the outcome of a run depends on; how it is stored or drawn does not matter.
PARTS = (
    "arrays.py",
    "products.py",
    "kernels",
    "model",
    "planning",
    "envs",
    "learning",
    "simulation",
    "experiment/job.py",
    "experiment/prior_knowledge.py",
)


@cache
def versions() -> dict[str, str]:
    """The versions that the outcome of a run depends on."""
    return {
        "psconrl": __version__,
        "code": code_digest(),
        **{name: version(name) for name in ("numpy", "scipy", "highspy")},
    }


_found: list[str] = []


def code_digest() -> str:
    """A hash of the code that runs depend on, as it is compiled."""
    if not _found:
        _found.append(_digest_of_files())
    return _found[0]


def inherit_code_digest(digest: str) -> None:
    """In a process that was started to run the same code: take the digest of the one that started it."""
    _found[:] = [digest]


def _digest_of_files() -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for part in PARTS:
        for path in sorted((root / part).rglob("*") if (root / part).is_dir() else [root / part]):
            if path.parent.name == "kernels" and path.suffix in (".py", ".pxd", ".c"):
                digest.update(path.read_bytes())  # its types leave no trace in Python's bytecode
            elif path.suffix == ".py":
                update(digest, compile(path.read_bytes(), path.name, "exec", dont_inherit=True, optimize=2))
            elif path.suffix == ".txt":
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def update(digest: Any, code: CodeType) -> None:
    """Add what a program does to a hash, but not on which lines it says so."""
    constants = [x for x in code.co_consts if not isinstance(x, CodeType)]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    header = code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    digest.update(repr((header, names, [_sorted(x) for x in constants])).encode())
    digest.update(code.co_code + code.co_exceptiontable)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            update(digest, inner)


def _sorted(constant: Any) -> Any:
    """Sets have no order of their own: it changes from process to process."""
    if isinstance(constant, tuple):
        return tuple(map(_sorted, constant))
    return ("set", sorted(map(repr, constant))) if isinstance(constant, frozenset) else constant


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
