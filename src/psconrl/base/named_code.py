"""Code that a user names: ``module:attribute``, ``file.py:attribute``, or an entry point of an installed package.

Only code named on a command line, in a spec or in a call is imported. A module is searched for in the folder of the
spec, then among installed packages, then in the current folder; a file in the folder of the spec, or in the current
one. Each import is announced to the logger of this module, which the command line shows.
"""

import ast
import hashlib
import importlib
import importlib.util
import logging
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LOG = logging.getLogger(__name__)
AGENTS, ENVIRONMENTS = "psconrl.agents", "psconrl.envs"  # the groups of entry points

_loaded: dict[str, str] = {}  # digests of the sources of modules when they were imported


def is_code(name: object) -> bool:
    """True if a name has the form of a location of code.

    >>> is_code("mymodule:MyAgent"), is_code("agents/mine.py:MyAgent"), is_code("psconrl"), is_code("C:\\\\model.npz")
    (True, True, False, False)
    """
    if not isinstance(name, str):
        return False
    module, colon, attribute = name.rpartition(":")
    path = module.removesuffix(".py") if module.endswith(".py") else module.replace(".", "_")
    words = [path.replace("\\", "/").rpartition("/")[2] if module.endswith(".py") else path, *attribute.split(".")]
    return bool(colon) and all(word.isidentifier() for word in words)


def as_module(name: str, folder: Path | None = None) -> str:
    """Return the name of code in a folder as ``module:attribute``; other processes inherit the search path."""
    find_object(name, folder)
    module, _, attribute = name.rpartition(":")
    return f"{Path(module).stem if module.endswith('.py') else module}:{attribute}"


def is_python_file(name: object) -> bool:
    """True if a name is that of a Python file as a whole, without an attribute."""
    return isinstance(name, str) and name.endswith(".py") and is_code(f"{name}:it")


def find_in_file(name: str, kind: type, folder: Path | None = None) -> str:
    """Return the name, ``file.py:attribute``, of the only object of a kind in a Python file."""
    module = _imported(name, name, folder)
    found = [key for key, value in vars(module).items() if isinstance(value, kind) and not key.startswith("_")]
    if len(found) != 1:
        several = f"several: {', '.join(found)}; say which, as in {name}:{found[0]}" if found else "none"
        raise ConfigError(f"{name}: must have one {kind.__name__}; it has {several}")
    return f"{name}:{found[0]}"


def classes_of_file(name: str) -> dict[str, type]:
    """Import a Python file, and return the classes that it defines, by name."""
    module = _imported(name, name, None)
    own = {key: value for key, value in vars(module).items() if isinstance(value, type)}
    return {key: value for key, value in own.items() if value.__module__ == module.__name__}


def find_code(name: str, folder: Path | None = None) -> Any:
    """Import the class or function that a name stands for; see ``find_object``."""
    found = find_object(name, folder)
    if not callable(found):
        raise ConfigError(f"{name}: must be a class or a function; got {type(found).__name__}")
    return found


def find_object(name: str, folder: Path | None = None) -> Any:
    """Import what a name stands for. Modules and files are searched for in ``folder`` first, if given."""
    module, _, attribute = name.rpartition(":")
    found: Any = _imported(name, module, folder)
    for word in attribute.split("."):
        if not hasattr(found, word):
            own = (
                ", ".join(key for key in vars(found) if not key.startswith("_"))[:200]
                if hasattr(found, "__dict__")
                else ""
            )
            raise ConfigError(f"{name}: {module} has no {quoted(attribute)}" + (f"; it has {own}" if own else ""))
        found = getattr(found, word)
    return found


def _imported(name: str, module: str, given: Path | None) -> Any:
    """Import the module, with its folder on the path, which other processes inherit."""
    folder, wanted, first = (given or Path()).resolve(), None, given is not None
    if module.endswith(".py"):
        wanted = (folder / module).resolve()
        if not wanted.is_file():
            raise ConfigError(f"{name}: no such file ({wanted})")
        folder, module, first = wanted.parent, wanted.stem, True
    if str(folder) not in sys.path:
        sys.path.insert(0 if first else len(sys.path), str(folder))
        importlib.invalidate_caches()
    announce(_shown_source(module))
    _forget_if_changed(module)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module + ".").startswith(error.name + "."):
            raise ConfigError(
                f"{name}: there is no module {quoted(error.name)}, neither in {folder} nor among what is installed"
            ) from None
        raise ConfigError(f"{name}: its import failed: {error}") from error
    except Exception as error:
        raise ConfigError(f"{name}: its import failed: {type(error).__name__}: {error}") from error
    origin = getattr(found, "__file__", None)
    if wanted is not None and (origin is None or Path(origin).resolve() != wanted):
        raise ConfigError(
            f"{name}: another module is called {quoted(module)} ({origin or 'built in'}); rename the file"
        )
    if module not in _loaded:
        _loaded[module] = _digest_of_module(module)
    return found


def _forget_if_changed(module: str) -> None:
    """Drop a module whose source has changed since its import: a long-lived process must not run the old one."""
    if module not in sys.modules:
        _loaded.pop(module, None)
    elif module in _loaded and _loaded[module] != _digest_of_module(module):
        path = _file_of(module)
        own = set() if path is None else _own_sources(path)
        for name in [name for name in sys.modules if name == module or _file_of(name) in own]:
            del sys.modules[name]
        for each in own:  # Python identifies cached bytecode by date and size alone
            Path(importlib.util.cache_from_source(str(each))).unlink(missing_ok=True)
        importlib.invalidate_caches()
        del _loaded[module]


def announce(source: str) -> None:
    """Log that user code is about to be run."""
    LOG.info("Running code from %s", source)


def _shown_source(module: str) -> str:
    """Return the file of a module, or the folder of its package, found without running it; else its name."""
    top, dot, _ = module.partition(".")
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # no such module, or one made by hand
        found = None
    if found is None or not found.has_location or found.origin is None:
        return module
    path = Path(found.origin).resolve()
    path = path.parent if dot or path.name == "__init__.py" else path
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


@cache
def installed(group: str) -> dict[str, "EntryPoint"]:
    """Return the entry points of installed packages, by name."""
    from importlib.metadata import entry_points  # slower to import than the rest of this file

    return {point.name: point for point in entry_points(group=group)}


def from_package(group: str, name: str) -> Any:
    """Load an entry point."""
    point = installed(group)[name]
    announce(f"the package {_package(point)}")
    try:
        found = point.load()
    except Exception as error:
        raise ConfigError(f"{name}: the package that has it, {_package(point)}, fails: {error}") from error
    if not callable(found):
        raise ConfigError(f"{name}: {point.value} must be a class or a function; got {type(found).__name__}")
    return found


def _package(point: "EntryPoint") -> str:
    return "unknown" if point.dist is None else str(point.dist.name)


def digest(name: str, group: str = "") -> str:
    """Return a digest of the code behind a name: its source, and what it imports from the same folder or package.

    It does not change with comments, layout or docstrings.
    """
    if group and name in installed(group):
        point = installed(group)[name]
        return f"{_package(point)} {point.dist.version if point.dist else ''}".strip()
    if not is_code(name):
        return ""
    find_object(name)
    return _digest_of_module(_module_of(name)) or f"{name} without source"


def source_files(name: str) -> list[tuple[Path, Path]]:
    """Return the files behind a digest, each with their top folder; empty for installed code."""
    if not is_code(name):
        return []
    find_object(name)
    path = _file_of(_module_of(name))
    places = (Path(sysconfig.get_path(key)).resolve() for key in ("purelib", "platlib", "stdlib", "platstdlib"))
    if path is None or any(path.is_relative_to(place) for place in places):
        return []
    return [(each, _top_folder(path)) for each in sorted(_own_sources(path))]


def sources(name: str) -> dict[str, bytes]:
    """Return the contents of the files behind a digest, by their paths relative to their top folder."""
    return {path.relative_to(top).as_posix(): path.read_bytes() for path, top in source_files(name)}


def _module_of(name: str) -> str:
    module = name.rpartition(":")[0]
    return Path(module).stem if module.endswith(".py") else module


def _file_of(module: str) -> Path | None:
    """Return the source file of an imported module, if it has one."""
    origin = getattr(sys.modules.get(module), "__file__", None)
    if not origin or not origin.endswith(".py") or not Path(origin).is_file():
        return None
    return Path(origin).resolve()


def _digest_of_module(module: str) -> str:
    path = _file_of(module)
    if path is None:
        return ""
    total = hashlib.sha256()
    for each in sorted(_own_sources(path)):
        total.update(each.name.encode() + b"\0" + _without_comments(each.read_bytes()) + b"\0")
    return total.hexdigest()


def _without_comments(source: bytes) -> bytes:
    """Return the syntax tree of a source, without docstrings, as bytes."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # importing it will report the error
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            del node.body[: _has_docstring(node.body)]
    return ast.dump(tree).encode("utf-8", "surrogatepass")


def _has_docstring(body: list[ast.stmt]) -> bool:
    first = body[0] if body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _top_folder(path: Path) -> Path:
    """Return the folder that contains a module, or its top-level package."""
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    return top


def _own_sources(path: Path) -> set[Path]:
    """Return a module's file and the files it imports, directly or not, from its own folder or package."""
    top = _top_folder(path)
    seen: set[Path] = set()
    left = [path]
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        for words in _imports(each, top):
            for parts in (words[:k] for k in range(1, len(words) + 1)):
                base = top.joinpath(*parts)
                left += [file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()]
    return seen


def _imports(path: Path, top: Path) -> list[list[str]]:
    """Return the dotted names that a file imports, as lists of words, with relative names made absolute."""
    names: list[list[str]] = []
    package = list(path.parent.relative_to(top).parts)
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # importing it will report the error
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names += [[*base, alias.name] for alias in node.names]
    return names
