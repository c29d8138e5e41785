"""The public API: few names, all documented and typed."""

import ast
import inspect
from importlib import resources
from pathlib import Path

import pytest

import psconrl
import psconrl.errors

NAMES = [name for name in psconrl.__all__ if name != "__version__"]


def test_the_names_are_few():
    errors = {name for name in NAMES if name.endswith(("Error", "Warning"))}
    assert len(NAMES) - len(errors) <= 40
    defined = {name for name, thing in vars(psconrl.errors).items() if inspect.isclass(thing)}
    assert errors == {name for name in defined if issubclass(getattr(psconrl.errors, name), Exception)}


def test_what_is_loaded_is_what_type_checkers_see():
    tree = ast.parse(Path(psconrl.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {(alias.asname, line.module) for line in block.body for alias in line.names}
    assert seen == {*psconrl._HOME.items(), ("agents", "psconrl")}
    assert all(alias.asname == alias.name for line in block.body for alias in line.names)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_explained_with_all_that_can_be_called_on_it(name):
    thing = getattr(psconrl, name)
    assert inspect.getdoc(thing), f"psconrl.{name} has no docstring"
    assert thing.__module__ == psconrl._HOME[name]
    if not inspect.isclass(thing):
        return
    for part, value in vars(thing).items():
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if not part.startswith("_") and inspect.isfunction(value):
            assert value.__doc__, f"psconrl.{name}.{part} has no docstring"


def test_the_package_is_marked_as_typed():
    assert resources.files("psconrl").joinpath("py.typed").is_file()
