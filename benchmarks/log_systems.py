"""The systems, behaviours and logs of the benchmarks on logs."""

from collections.abc import Callable

import numpy as np

import psconrl
from psconrl.agents import FixedPolicy
from psconrl.base.arrays import Floats
from psconrl.data.log import Log
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System

SYSTEMS: dict[str, Callable[[], CMDP]] = {
    "queue": lambda: psconrl.load("queue"),
    "machine": lambda: psconrl.load("machine"),
    "inventory": lambda: psconrl.load("inventory"),  # sales are censored by the stock
    "rover": lambda: psconrl.load("marsrover-4x4", slip=0.2),
    "garnet": lambda: psconrl.load("garnet", states=12, actions=3, branching=3, seed=5),
    "random-walk": lambda: psconrl.load("random-walk"),  # slow to mix
}
# Chosen before any result was seen, and not looked at while methods were changed.
HELD_OUT: dict[str, Callable[[], CMDP]] = {
    "riverswim": lambda: psconrl.load("riverswim"),
    "chain": lambda: psconrl.load("chain"),
    "taxicab": lambda: psconrl.load("taxicab"),
    "patrol": lambda: psconrl.load("patrol"),  # deterministic except at one place
    "gate": lambda: psconrl.load("gate"),
    "garnet-17": lambda: psconrl.load("garnet", states=15, actions=4, branching=2, seed=17),
}
ALL_SYSTEMS = SYSTEMS | HELD_OUT


def behaviours(model: CMDP) -> dict[str, Floats]:
    """Return the policies that write logs: uniform, timid, and planned for a wrong model; two explore a little."""
    uniform = model.available / model.available.sum(axis=1, keepdims=True)
    careful = psconrl.CMDP(model.transition.matrix, model.costs[1:].sum(axis=0)[None], [], available=model.available)
    timid = 0.8 * psconrl.plan(careful).policy + 0.2 * uniform
    P = model.transition.toarray()
    possible = (P > 0.0) / (P > 0.0).sum(axis=1, keepdims=True)
    wrong = psconrl.CMDP(0.5 * P + 0.5 * possible, model.costs, model.thresholds, available=model.available)
    return {"uniform": uniform, "timid": timid, "wrong": 0.9 * psconrl.plan(wrong).policy + 0.1 * uniform}


def limits(model: CMDP) -> dict[str, float]:
    """Return the limits of a model by name."""
    return dict(zip(model.cost_names[1:], model.thresholds.tolist(), strict=True))


def written_log(model: CMDP | System, policy: Floats, rounds: int, seed: int, system: System | None = None) -> Log:
    """Return the log of a policy that is played for a number of rounds."""
    known = model if isinstance(model, CMDP) else model.model_for_learning()
    agent = FixedPolicy(known.n_states, known.n_actions, known.thresholds, policy=policy, seed=[seed, 1])
    trace = psconrl.simulate(known, agent, rounds, seed=seed, trajectory=True)
    played = trace.trajectory
    assert played is not None
    return Log.of_arrays(
        n_states=known.n_states,
        n_actions=known.n_actions,
        states=np.asarray(played.states[:-1]),
        actions=np.asarray(played.actions),
        next_states=np.asarray(played.next_states),
        costs=np.asarray(played.costs),
        cost_names=tuple(known.cost_names),
        system=system,
    )
