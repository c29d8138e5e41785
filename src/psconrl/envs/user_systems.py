"""Systems of a user: in a ``.toml`` or ``.json`` file, which holds data only, or in Python code that the user names.

``shop.toml``, ``shop.json``: files of ``System.save``, or written by hand. ``shop.py``: the only ``System`` in that
file. ``shop.py:shop`` or ``shop:shop``: an object, or a function that returns one. Options are the values of unknown
parameters, by name of the noise or event.
"""

from pathlib import Path
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.base.named_code import as_module, find_in_file, find_object, is_python_file
from psconrl.errors import ConfigError, unknown_name
from psconrl.systems.noise_base import as_argument, full_name
from psconrl.systems.priors import Weights
from psconrl.systems.system import System
from psconrl.systems.system_files import is_system_file


def holds_system(name: str) -> bool:
    """True if a name is that of a file with a system, or of a Python file as a whole."""
    return is_python_file(name) or is_system_file(name)


def read_system(name: str) -> System:
    """Return the system in a file."""
    if is_python_file(name):
        found: System = find_object(find_in_file(name, System))
        return found
    return System.load(name)


def place_of_system(name: str, folder: Path | None) -> str:
    """Return the name of a file with a system, relative to a folder, as other processes can find it."""
    if is_python_file(name):
        return as_module(find_in_file(name, System, folder), folder)
    return str(((folder or Path()) / name).resolve())


def with_values(name: str, system: System, known: dict[str, Any]) -> System:
    """Return a system with the values of its unknown parameters; raise an error if some are missing."""
    known = {full_name(option): value for option, value in known.items()}
    for option in known:
        if option not in system.source.parameters:
            raise ConfigError(f"{name}: {unknown_name('noise or event', option, system.source.parameters)}")
    made = system.with_noise(**known) if known else system
    missing = list(made.source.unknown())
    if missing:
        one = missing[0]
        shown = one if one.isidentifier() else f'"{one}"'
        prior = made.source.unknown()[one]
        if isinstance(prior, Weights):
            what = f"{prior.weights.size} unknown probabilities; give all of them"
            value, example = "0.1,0.2,...", "[0.1, 0.2, ...]"
        else:
            what, value, example = "an unknown parameter; give its value", "0.5", "0.5"
        given = as_argument(one).replace("...", example)
        raise ConfigError(
            f"{name}: {quoted(one)} has {what}, as in --set {shown}={value}, load(..., {given}), "
            f"or options = {{ {shown} = {example} }} in a spec"
        )
    return made
