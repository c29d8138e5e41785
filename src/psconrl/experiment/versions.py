"""The code version of a result: that of all modules which a run imports.

It does not change with comments, layout or docstrings.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any

from psconrl._version import __version__

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^[ \t]*(?:from (\.*)([\w.]*) import (\([^)]*\)|[^\n#]*)|import ([\w.]+))", re.MULTILINE)
KERNEL_SUFFIXES = (".py", ".pxd", ".c", ".h")  # Cython types do not show in Python's bytecode
# What a run executes; storage and reports are not part of it. Environments are registered by importing ``psconrl``.
EXECUTED = ("psconrl.experiment.job", "psconrl.envs.registration")


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
        _found.append(digest_of_job(ROOT))
    return _found[0]


def inherit_code_digest(digest: str) -> None:
    """Take over the digest of the parent process, which runs the same code."""
    _found[:] = [digest]


def digest_of_job(root: Path) -> str:
    """Return the hash of the code of a job, in a copy of this package.

    It covers the modules that a job imports, directly or not; all kernels, with what Python does not see of them; and
    the texts in the packages of these modules, such as maps.
    """
    modules = job_modules(root)
    packages = {path.relative_to(root).parts[0] for path in modules} - {"experiment"}
    others = [path for package in packages for path in (root / package).rglob("*.txt")]
    others += [path for path in (root / "kernels").rglob("*") if path.suffix in KERNEL_SUFFIXES]
    digest = hashlib.sha256()
    for path in sorted([*modules, *others]):
        source = path.read_bytes()
        if path in modules:
            update(digest, compile(source, path.name, "exec", dont_inherit=True, optimize=2))
        else:
            digest.update(source)
    return digest.hexdigest()[:16]


def job_modules(root: Path) -> set[Path]:
    """Return the files of the modules that a job imports, at any time, other than kernels.

    The public module ``psconrl`` does not count: it imports what the user asks for.
    """
    found: set[Path] = set()
    seen, waiting = {"psconrl", "psconrl.kernels"}, [*EXECUTED]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        package = name.rpartition(".")[0]
        waiting.append(package)  # or the module of a name
        place = root.joinpath(*name.split(".")[1:])
        path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if path.is_file() and not name.startswith("psconrl.kernels."):
            found.add(path)
            waiting += _imports(path.read_text(encoding="utf-8"), name if place.is_dir() else package)
    return found


def _imports(source: str, package: str) -> Iterator[str]:
    """Yield the names that a module in a package imports from this library: modules, and names in them."""
    for dots, module, names, whole in IMPORT.findall(source):
        parents = package.split(".")[: 1 - len(dots) or None] if dots else []
        start = ".".join([*parents, module]).strip(".") if dots else module or whole
        if f"{start}.".startswith("psconrl."):
            yield start
            yield from (f"{start}.{name}" for name in re.findall(r"\w+", names))


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
