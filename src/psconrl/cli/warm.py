"""The command ``warm``."""

import time
from collections.abc import Callable, Iterator

import click
import numpy as np

from psconrl import compiling
from psconrl.envs.registry import load
from psconrl.learning.agents.psconrl import PSConRL
from psconrl.model.cmdp import CMDP
from psconrl.planning.planner import plan
from psconrl.simulation.simulate import simulate


def kernels() -> Iterator[tuple[str, Callable[[], object]]]:
    """What to do once so that everything is compiled that plans and the default agent need, in small models."""
    rover, queue = load("marsrover-4x4"), load("queue")
    network = load("network", side=12)
    garnet = load("garnet", states=300, sparse=True)
    yield "plans", lambda: plan(rover)
    yield "plans of large models", lambda: plan(garnet)
    yield "plans of slow models with thousands of states", lambda: plan(load("network", side=72))
    yield "plans by components", lambda: plan(_two_rooms())
    yield "learning", lambda: _learn(PSConRL(16, 4, rover.thresholds, rover.costs, seed=0), rover)
    yield "learning with costs", lambda: _learn(PSConRL(10, 6, queue.thresholds, seed=0), queue)
    yield "learning in large models", lambda: _learn(PSConRL.trusting(network, 10, seed=0), network, 20)


def _two_rooms() -> CMDP:
    """A start from which a coin leads to one of two rooms, in which there is something to choose."""
    room = [[0.5, 0.5], [0.9, 0.1]]
    P = np.zeros((5, 2, 5))
    P[0, :, 1:] = 0.25
    P[1:3, :, 1:3] = P[3:5, :, 3:5] = room
    costs = np.arange(20.0).reshape(2, 5, 2) % 7
    return CMDP(P, costs, [10.0])


def _learn(agent: PSConRL, cmdp: CMDP, rounds: int = 200) -> object:
    return simulate(cmdp, agent, rounds, seed=0)


@click.command()
def warm() -> None:
    """Compile what plans and the default agent need, so that first answers come at once.

    Without it the first call does that, for a while. What is compiled stays beside the package, or in the folder that
    NUMBA_CACHE_DIR names; after that this takes seconds.
    """
    compiling.keep_quiet()
    begin = time.monotonic()
    for name, call in kernels():
        click.echo(f"{name} ...", nl=False)
        since = time.monotonic()
        call()
        click.echo(f" {time.monotonic() - since:.1f} s")
    click.echo(f"ready in {time.monotonic() - begin:.0f} s")
