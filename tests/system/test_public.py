"""The public API: few names, all documented and typed."""

import inspect
from importlib import resources

import pytest

import psconrl

NAMES = [name for name in psconrl.__all__ if name != "__version__"]


def test_the_names_are_few():
    errors = {name for name in NAMES if name.endswith(("Error", "Warning"))}
    assert len(NAMES) - len(errors) <= 36
    assert set(NAMES) - errors == set(psconrl._HOME)
    defined = {name for name, thing in vars(psconrl.errors).items() if inspect.isclass(thing)}
    assert errors == {name for name in defined if issubclass(getattr(psconrl.errors, name), Exception)}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_explained_with_all_that_can_be_called_on_it(name):
    thing = getattr(psconrl, name)
    assert inspect.getdoc(thing), f"psconrl.{name} has no docstring"
    assert thing.__module__ == psconrl._HOME.get(name, "psconrl.errors")
    if not inspect.isclass(thing):
        return
    for part, value in vars(thing).items():
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if not part.startswith("_") and inspect.isfunction(value):
            assert value.__doc__, f"psconrl.{name}.{part} has no docstring"


def test_the_package_is_marked_as_typed():
    assert resources.files("psconrl").joinpath("py.typed").is_file()
