"""Environments from outside this library: Gymnasium's by id, ``gym:FrozenLake-v1``, and code that a user names.

A function, ``mine:my_model``, is called with the options, and returns a CMDP, a Gymnasium environment or a ``System``.
Options that such a function does not have, and all options of a ``System``, are values of unknown parameters. With an
id, options that ``psconrl.continuing`` knows are passed to it (``cost`` is the name of a function, ``mine:my_cost``);
all others are passed to the environment.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from psconrl.base.named_code import ENVIRONMENTS, announce, find_code, find_object, from_package, installed, is_code
from psconrl.envs.user_systems import with_values
from psconrl.errors import ConfigError, ModelError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System

if TYPE_CHECKING:
    from psconrl.envs.continuing import ContinuingEnv

# Gymnasium is imported on demand: loading it takes longer than planning on a small model.
GYM = "gym:"


def is_user_environment(name: str) -> bool:
    """True if the name is an id of Gymnasium, an entry point of a package, or code."""
    return name.startswith(GYM) or name in installed(ENVIRONMENTS) or is_code(name)


def open_user_environment(name: str, options: dict[str, Any]) -> "CMDP | System | ContinuingEnv":
    """Return the environment: a model or a system if it is known, else a task that can only be played."""
    import gymnasium

    from psconrl.envs.continuing import ContinuingEnv, continuing

    if name.startswith(GYM):
        made: Any = _by_id(name, options)
    else:
        made, known = built(name, options)
        if isinstance(made, System):
            return with_values(name, made, known)
    if isinstance(made, CMDP):
        return made
    if not isinstance(made, gymnasium.Env):
        raise ModelError(f"{name}: must return a CMDP, a System or a Gymnasium environment; got {type(made).__name__}")
    task = made if isinstance(made, ContinuingEnv) else continuing(made)
    return task.model() if task.has_table else task


def built(name: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return what code makes or is, and those of the options that are values of a system's unknown parameters."""
    found: Any = from_package(ENVIRONMENTS, name) if name in installed(ENVIRONMENTS) else find_object(name)
    if isinstance(found, System):
        return found, options
    build: Callable[..., Any] = found if callable(found) else find_code(name)  # which raises an error
    known = inspect.signature(build).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in known.values())
    own = {key: value for key, value in options.items() if takes_all or key in known}
    try:
        inspect.signature(build).bind(**own)
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None
    made = build(**own)
    rest = {key: value for key, value in options.items() if key not in own}
    if rest and not isinstance(made, System):
        raise ConfigError(f"{name}: {unknown_name('option', next(iter(rest)), known)}")
    return made, rest


def _by_id(name: str, options: dict[str, Any]) -> "ContinuingEnv":
    """Make an environment of Gymnasium's registry; ``module:Id-v0`` imports the module first, which may register it."""
    import gymnasium

    from psconrl.envs.continuing import continuing

    id = name.removeprefix(GYM)
    continued = tuple(inspect.signature(continuing).parameters)[1:]
    ours = {key: value for key, value in options.items() if key in continued}
    if isinstance(ours.get("cost"), str):
        ours["cost"] = find_code(ours["cost"])
    package, colon, _ = id.rpartition(":")
    if colon:
        announce(f"the package {package}")
    try:
        made = gymnasium.make(id, **{key: value for key, value in options.items() if key not in continued})
    except gymnasium.error.UnregisteredEnv as error:
        hint = "an id of another package is gym:package:Id, which imports the package first"
        raise ConfigError(f"{name}: {_one_line(error)}; {hint}") from None
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        raise ConfigError(f"{name}: cannot be made: {_one_line(error)}") from None
    return continuing(made, **ours)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
