"""Monte Carlo evaluation of a stationary policy on a vector of copies of a Gymnasium environment.

Episodes are continued as by ``psconrl.continuing``: the state that ends an episode is shown, and one more round, at no
cost, leads to a new start. Vector environments that reset in the next step do the same. If they reset in the same step,
or leave the reset to the caller, that round is counted here.
"""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike

from psconrl.base.arrays import Bools, Floats
from psconrl.errors import ConfigError, ModelError, PolicyError
from psconrl.learning.argument_checks import as_count
from psconrl.model.validation import as_floats
from psconrl.planning.tolerances import SUM_OF_SHARES


@dataclass(frozen=True, eq=False)
class EstimatedAverages:
    """Estimated averages of all costs, the objective first and as a cost, with standard errors."""

    costs: Floats  # (m+1,) means over the sub-environments
    errors: Floats  # (m+1,) their standard errors; nan for a single sub-environment
    each: Floats  # (n, m+1) averages in every sub-environment
    rounds: int  # rounds played in each

    def __repr__(self) -> str:
        shown = ", ".join(f"{c:.4g} ± {e:.1g}" for c, e in zip(self.costs, self.errors, strict=True))
        return f"EstimatedAverages({len(self.each)} x {self.rounds} rounds: {shown})"


def evaluate_on(
    envs: "VectorEnv[Any, Any, Any]", policy: ArrayLike, rounds: int, seed: int | None = None
) -> EstimatedAverages:
    """Play a policy, (S, A) probabilities or one action per state, for a number of rounds in every sub-environment.

    The averages include the first rounds. They differ from those of ``psconrl.evaluate`` by sampling noise, which the
    standard errors measure, and by the influence of the start, which falls like 1 / rounds.

    >>> import psconrl
    >>> envs = gymnasium.make_vec("psconrl/Counterexample-v0", num_envs=3, vectorization_mode="sync")
    >>> evaluate_on(envs, [0, 0], rounds=100, seed=0).costs.tolist()  # stay forever
    [-1.0, 1.0]
    """
    if not isinstance(envs, VectorEnv):
        raise ConfigError(f"envs must be a gymnasium.vector.VectorEnv; got {type(envs).__name__}")
    as_count(rounds, "rounds", ConfigError)
    states, actions = _discrete(envs, "observation"), _discrete(envs, "action")
    cdf = _policy_cdf(policy, int(states.n), int(actions.n))
    n = envs.num_envs
    mode = getattr(envs.metadata.get("autoreset_mode"), "value", "NextStep")
    rng = np.random.default_rng(None if seed is None else [int(seed), n])
    shown, _ = envs.reset(seed=None if seed is None else int(seed))
    sums: Floats | None = None
    played = np.zeros(n, dtype=np.int64)
    restarting = np.zeros(n, dtype=bool)
    while (played < rounds).any():
        chosen = (rng.random((n, 1)) >= cdf[np.asarray(shown) - int(states.start)]).sum(axis=1)
        shown, rewards, terminated, truncated, infos = envs.step(chosen.clip(max=int(actions.n) - 1) + actions.start)
        over = np.asarray(terminated) | np.asarray(truncated)
        costs = _costs(infos, -np.asarray(rewards, dtype=np.float64), over, restarting)
        sums = np.zeros_like(costs) if sums is None else sums
        if costs.shape[1] != sums.shape[1]:
            if not restarting.all():
                raise ModelError(f"the number of costs must not change; got {costs.shape[1]} after {sums.shape[1]}")
            costs = np.zeros_like(sums)  # all sub-environments restart: no costs were reported
        sums[played < rounds] += costs[played < rounds]
        played += 1
        if mode == "NextStep":
            restarting = over
        elif over.any():
            played[over] += 1  # the round that leads to the new start
            if mode == "Disabled":
                shown, _ = envs.reset(options={"reset_mask": over})
    assert sums is not None
    each = sums / rounds
    errors = each.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(each.shape[1], np.nan)
    return EstimatedAverages(each.mean(axis=0), errors, each, int(rounds))


def _discrete(envs: "VectorEnv[Any, Any, Any]", which: str) -> Any:
    space = getattr(envs, f"single_{which}_space")
    if not isinstance(space, gymnasium.spaces.Discrete):
        raise ModelError(f"{which}s must be Discrete; got {space}. Make the sub-environments with psconrl.continuing")
    return space


def _policy_cdf(policy: ArrayLike, S: int, A: int) -> Floats:
    given = as_floats(policy, "policy", PolicyError)
    if given.shape == (S,) and np.isin(given, np.arange(A)).all():
        given = np.eye(A)[given.astype(np.int64)]
    if given.shape != (S, A) or not (
        (given >= 0).all() and np.allclose(given.sum(axis=1), 1.0, rtol=0, atol=SUM_OF_SHARES)
    ):
        raise PolicyError(f"policy must hold {S} actions or {S} distributions over {A} actions; got {given.shape}")
    return np.asarray(given.cumsum(axis=1))


def _costs(infos: dict[str, Any], objective: Floats, over: Bools, restarting: Bools) -> Floats:
    """Return all costs (n, m+1) of a step. A new start is free, regardless of its info."""
    n = objective.size
    now = _reported(infos, n)
    if "final_info" in infos:  # reset in the same step: this holds the info of the step that ended an episode
        last = _reported(infos["final_info"], n)
        now = last if now.shape[1] < last.shape[1] else now
        now[over] = last[over] if last.shape == now.shape else 0.0
    now[restarting] = 0.0
    return np.column_stack([objective, now])


def _reported(infos: dict[str, Any], n: int) -> Floats:
    for key in ("costs", "cost"):
        if key in infos:
            rows = np.flatnonzero(infos[f"_{key}"])
            values = np.stack([np.atleast_1d(np.asarray(infos[key][i], dtype=np.float64)) for i in rows])
            table = np.zeros((n, values.shape[1]))
            table[rows] = values
            return table
    return np.zeros((n, 0))
