"""Run the kernels uncompiled, as Python: for debuggers, coverage, and comparison with the compiled ones."""

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

PREFIX = "cython.cimports."


class _CImports(MetaPathFinder, Loader):
    """Import hook that resolves names in ``cython.cimports.psconrl.kernels`` to those in ``psconrl.kernels``."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for kernels only."""
        return ModuleSpec(name, self, is_package=True) if name.startswith(PREFIX + "psconrl") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself."""
        return import_module(spec.name.removeprefix(PREFIX))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is already executed."""


def use(folders: Iterable[str]) -> None:
    """Find only sources in some folders."""
    import cython  # noqa: F401  its stand-ins for types and decorators

    sys.modules["cython.cimports"].__spec__ = ModuleSpec("cython.cimports", None, is_package=True)
    sys.meta_path.insert(0, _CImports())
    for folder in folders:
        sys.path_importer_cache[folder] = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
