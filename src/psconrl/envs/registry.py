"""The built-in environments by name, and ``load`` for names and files alike."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psconrl.base.escaping import quoted
from psconrl.base.files import as_path
from psconrl.base.named_code import ENVIRONMENTS as USER_ENVIRONMENTS
from psconrl.base.named_code import installed
from psconrl.envs.box import box
from psconrl.envs.chain import chain
from psconrl.envs.corridor import corridor, islands
from psconrl.envs.counterexample import counterexample
from psconrl.envs.gate import gate
from psconrl.envs.gridworld import gridworld
from psconrl.envs.inventory import inventory, inventory_system
from psconrl.envs.leaky_islands import leaky_islands
from psconrl.envs.machine import machine
from psconrl.envs.network import network, network_system
from psconrl.envs.patrol import patrol
from psconrl.envs.queue import queue, queue_system
from psconrl.envs.random_models import dirichlet_cmdp, garnet, ring
from psconrl.envs.random_walk import random_walk
from psconrl.envs.riverswim import riverswim
from psconrl.envs.stock import stock, stock_system
from psconrl.envs.taxicab import taxicab
from psconrl.envs.user_environments import GYM, built, is_user_environment, open_user_environment
from psconrl.envs.user_systems import holds_system, read_system, with_values
from psconrl.envs.ward import ward, ward_system
from psconrl.errors import ConfigError, ModelError, unknown_name
from psconrl.model import io
from psconrl.model.cmdp import CMDP
from psconrl.model.exchange.files import is_exchange_file, read_cmdp
from psconrl.systems.system import System

if TYPE_CHECKING:
    from psconrl.envs.continuing import ContinuingEnv


@dataclass(frozen=True)
class Environment:
    """A named model: its builder, its description, and the usual number of rounds of a run."""

    build: Callable[..., CMDP]
    summary: str
    horizon: int = 20_000
    system: Callable[..., System] | None = None  # the same in terms of variables and noise, with the same options


def _map(name: str) -> str:
    return resources.files("psconrl.envs").joinpath("maps", f"{name}.txt").read_text(encoding="utf-8")


def _grid(name: str, threshold: float) -> Callable[..., CMDP]:
    def build(slip: float = 0.0, threshold: float = threshold) -> CMDP:
        return gridworld(_map(name), slip=slip, threshold=threshold)

    return build


def _box(slip: float = 0.0, threshold: float = 0.6, unreachable: bool = False) -> CMDP:
    return box(_map("box"), slip=slip, threshold=threshold, unreachable=bool(unreachable))


ENVIRONMENTS: dict[str, Environment] = {
    "marsrover-4x4": Environment(
        _grid("marsrover-4x4", 0.2), "reach the goal, enter risky cells rarely (paper)", 11_000
    ),
    "marsrover-8x8": Environment(_grid("marsrover-8x8", 0.1), "the same on a larger map (paper)"),
    "box": Environment(_box, "reach the goal without pushing the box into a corner (paper)", 500_000),
    "counterexample": Environment(counterexample, "Example 1: learning fails without exploration (paper)", 1_500),
    "queue": Environment(
        queue, "serve and admit customers within limits on delay and power (Altman)", system=queue_system
    ),
    "inventory": Environment(inventory, "restock within limits on lost sales and on orders", system=inventory_system),
    "riverswim": Environment(riverswim, "swim up a river with limited effort: hard to explore"),
    "chain": Environment(chain, "go along a chain and score in most rounds (Yu, Bae and Lee)", 32_000),
    "corridor": Environment(corridor, "use the far end of a corridor a quarter of the time: some plans never leave it"),
    "islands": Environment(islands, "alternate between two states: no stationary policy is optimal"),
    "leaky-islands": Environment(leaky_islands, "the islands with leaks: a stationary optimum that hardly moves"),
    "machine": Environment(machine, "run a machine that wears, within a limit on the damage of breakdowns"),
    "random-walk": Environment(random_walk, "steer a random walk to its end with limited effort: slow to mix"),
    "patrol": Environment(patrol, "watch one place of a ring and guard two others: deterministic except at one place"),
    "taxicab": Environment(taxicab, "earn fares in three towns, at stands only a fraction of the time (Howard)"),
    "gate": Environment(gate, "open a gate from afar, earn behind it and come back"),
    "ward": Environment(
        ward, "admit patients and call staff within limits on staff, refusals and beds", 200_000, ward_system
    ),
    "network": Environment(
        network, "route customers through two stations within a limit on those waiting", 200_000, network_system
    ),
    "stock": Environment(
        stock, "share a truck between items within limits on the lost sales of each", 200_000, stock_system
    ),
    "garnet": Environment(garnet, "random successors, random costs"),
    "dirichlet": Environment(dirichlet_cmdp, "transitions drawn from a Dirichlet prior"),
    "ring": Environment(ring, "stay at a place of a ring or leave it, in one of fifty models"),
}


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) or float(value).is_integer()


def _need_options(name: str, build: Callable[..., Any], options: dict[str, Any]) -> None:
    """Raise an error if an environment has no such option, or if its value is of the wrong kind."""
    known = inspect.signature(build).parameters
    for option, value in options.items():
        if option not in known:
            raise ConfigError(f"{name}: {unknown_name('option', option, known)}")
        default = known[option].default
        if isinstance(default, Real) and not isinstance(value, Real):
            raise ConfigError(f"{name}: option {quoted(option)} must be a number; got {quoted(value)}")
        if isinstance(default, int) and not (_is_whole(value) and value >= 0):
            raise ConfigError(f"{name}: option {quoted(option)} must be a whole number from 0 on; got {quoted(value)}")


def load(name_or_path: str | os.PathLike[str], **options: Any) -> CMDP:
    """Load a built-in environment by name, a model from a file, or one of your own.

    Options go to the environment: ``load("box", slip=0.1, threshold=0.5)``. Files: psconrl's own, ``.npz`` and
    ``.json``; those of Storm and PRISM, ``.umb`` and ``.drn``, which have no objective: ``load("model.umb",
    minimise="hungry", limits="eat >= 0.5")``; and their sources if stormpy is installed, with ``constants="N=3"``. Your
    own: ``"mine:my_model"``, a function in a module that returns a CMDP or a Gymnasium environment;
    ``"gym:FrozenLake-v1"``, which has a table of its transitions. A ``System``, in a ``.toml`` or ``.json`` file of
    expressions or in a Python file, takes the values of its unknown parameters: ``load("shop.toml", demand=2.3)``.

    >>> load("marsrover-8x8")
    CMDP(64 states, 4 actions, 1 constraint, dense)
    """
    name = str(as_path(name_or_path, ConfigError))
    found = open_environment(name, **options)
    if isinstance(found, CMDP):
        return found
    if isinstance(found, System):
        return found.model()
    raise ModelError(
        f"{name} has no table of its transitions: psconrl learn plays it as it is, and psconrl.estimate makes a model "
        "of it by playing"
    )


def load_system(name_or_path: str | os.PathLike[str], *, known: bool = False, **options: Any) -> System:
    """Return a system with its unknown parameters, for an agent that is to know the rest; from all that ``load`` reads.

    The queue, the inventory, the stock, the network and the ward are systems: all of their probabilities and rates are
    unknown, under flat priors. In a file, or in your own code, those are that the system states as unknown. ``known``:
    True to give them their values, for files and your own code by ``options``, which are those of ``load``.

    >>> load_system("inventory")
    System(stock; order; unknown: demand)
    """
    name = str(as_path(name_or_path, ConfigError))
    environment = ENVIRONMENTS.get(name)
    if environment is not None and environment.system is not None:
        _need_options(name, environment.build, options)
        system = environment.system(**options)
        return system if known else system.with_unknown()
    made: Any = None
    if holds_system(name):
        made = read_system(name)
    elif is_user_environment(name):
        if not name.startswith(GYM):  # Gymnasium has no systems
            made, options = built(name, options)
    elif environment is None and not is_model_file(name) and not is_exchange_file(name):
        having = [name for name, environment in ENVIRONMENTS.items() if environment.system is not None]
        hint = " (the file of a system ends in .toml, .json or .py; your own is module:function)"
        raise ModelError(unknown_name("system", name, having) + hint)
    if not isinstance(made, System):
        raise ConfigError(f"{name} is no System, so that there is no structure to know")
    return with_values(name, made, options) if known else made


def open_environment(name: str, **options: Any) -> "CMDP | System | ContinuingEnv":
    """Return the model or the system of a name, or a task that can only be played."""
    if name in ENVIRONMENTS:
        build = ENVIRONMENTS[name].build
        _need_options(name, build, options)
        with np.errstate(all="ignore"):  # values that overflow are refused by the model
            return build(**options)
    if is_exchange_file(name):
        return read_cmdp(name, **options)
    if holds_system(name):
        return with_values(name, read_system(name), options)
    if is_model_file(name):
        if options:
            raise ConfigError(f"{name}: a model file takes no options; got {', '.join(options)}")
        return io.read_native(name)
    if is_user_environment(name):
        return open_user_environment(name, options)
    names = [*ENVIRONMENTS, *installed(USER_ENVIRONMENTS)]
    endings = ", ".join((*io.WRITTEN, ".toml"))
    hint = f" (a model file ends in {endings}; your own is module:function, Gymnasium's gym:Id-v0)"
    raise ModelError(unknown_name("environment", name, names) + hint)


def is_model_file(name: str) -> bool:
    """True if a name is that of a file in this library's own formats, or of a file that does not exist."""
    return Path(name).suffix in io.NATIVE or (os.sep in name and not is_user_environment(name))
