"""The code version of a result. It does not change with comments, layout or docstrings."""

import hashlib
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any

from psconrl._version import __version__

# The code that the outcome of a run depends on; storage and reports do not matter.
PARTS = (
    "arrays.py",
    "products.py",
    "sizes.py",
    "kernels",
    "model",
    "markov",
    "planning",
    "envs",
    "learning",
    "simulation",
    "experiment/job.py",
    "experiment/prior_knowledge.py",
    "experiment/true_constants.py",
)


@cache
def versions() -> dict[str, str]:
    """Return the versions that the outcome of a run depends on."""
    return {
        "psconrl": __version__,
        "code": code_digest(),
        **{name: version(name) for name in ("numpy", "scipy", "highspy")},
    }


_found: list[str] = []


def code_digest() -> str:
    """Return a hash of the compiled code that runs depend on."""
    if not _found:
        _found.append(_digest_of_files())
    return _found[0]


def inherit_code_digest(digest: str) -> None:
    """Take over the digest of the parent process, which runs the same code."""
    _found[:] = [digest]


def _digest_of_files() -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for part in PARTS:
        for path in sorted((root / part).rglob("*") if (root / part).is_dir() else [root / part]):
            if path.parent.name == "kernels" and path.suffix in (".py", ".pxd", ".c"):
                digest.update(path.read_bytes())  # Cython types do not show in Python's bytecode
            elif path.suffix == ".py":
                update(digest, compile(path.read_bytes(), path.name, "exec", dont_inherit=True, optimize=2))
            elif path.suffix == ".txt":
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def update(digest: Any, code: CodeType) -> None:
    """Update a hash with compiled code, without its line numbers."""
    constants = [x for x in code.co_consts if not isinstance(x, CodeType)]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    header = code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    digest.update(repr((header, names, [_sorted(x) for x in constants])).encode())
    digest.update(code.co_code + code.co_exceptiontable)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            update(digest, inner)


def _sorted(constant: Any) -> Any:
    """Replace sets by sorted lists, since the order of a set changes from process to process."""
    if isinstance(constant, tuple):
        return tuple(map(_sorted, constant))
    return ("set", sorted(map(repr, constant))) if isinstance(constant, frozenset) else constant


@cache
def git_commit() -> str:
    """Return the commit of a source checkout, with a + if files have changed since; empty elsewhere."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changes = _git("status", "--porcelain", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + ("+" if changes else "")


def _git(*arguments: str) -> str:
    root = Path(__file__).parents[1]
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=5, check=True)
    return done.stdout.strip()
