"""The examples in the docstrings of the package. Modules without an example are not imported."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import psconrl

SOURCE = Path(psconrl.__file__).parent
KERNELS = SOURCE / "kernels"  # their compiled docstrings: tests/kernels/test_kernels.py


def has_examples(path):
    return KERNELS not in path.parents and ">>> " in path.read_text(encoding="utf-8")


def module_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = sorted(module_of(path) for path in SOURCE.rglob("*.py") if has_examples(path))


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(import_module(name)).failed == 0


def test_modules_with_examples_are_found():
    assert {"psconrl", "psconrl.model.cmdp"} <= set(MODULES)
    assert len(MODULES) > 80
