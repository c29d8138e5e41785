"""Any finite Gymnasium environment as a constrained continuing task.

An episodic environment never ends here. The state that ends an episode is shown like any other; the step after it,
whatever the action, leads to a new start at reward 0 and cost 0. ``psconrl.simulate`` plays environments in this way,
and ``CMDP.from_gymnasium`` reads tables in this way, so that all three speak of the same process.

A ``TimeLimit``, such as ``gymnasium.make`` puts around many environments, is taken off: it cuts an episode by the
clock, which no state shows, so that the task would not be Markov. (``make`` prefers episodes that end, for agents
that cannot learn otherwise; ours can.) If the environment itself reports a truncation, that ends an episode as a
termination does.
"""

import copy
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from psconrl.arrays import Floats
from psconrl.envs.spaces import Numbering
from psconrl.errors import ModelError

Cost = Callable[[Any, Any, Any], Any]  # (state, action, next state) -> a number, or one for each constraint


def continuing(env: "gymnasium.Env[Any, Any]", cost: Cost | None = None) -> "ContinuingEnv":
    """A finite Gymnasium environment as a continuing task with constrained costs.

    ``cost(state, action, next_state)``: a number, or several, in the environment's own terms. Without it the costs are
    those that the environment reports: ``info["costs"]``, ``info["cost"]``, or the third of six returned values.
    States and actions are numbered from 0 on (``task.states``, ``task.actions``), also those of Tuple spaces.

    >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    >>> task = continuing(lake, cost=lambda state, action, next_state: float(next_state == 5))
    >>> task.reset(seed=0)[0], [task.step(a)[0] for a in (2, 1, 0, 2)]  # right, down into the hole, anew, right
    (0, [1, 5, 0, 1])
    """
    return ContinuingEnv(env, cost)


class ContinuingEnv(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """What ``continuing`` returns. ``info["costs"]``: the constrained costs of a step; ``info["cost"]``: their sum."""

    def __init__(self, env: "gymnasium.Env[Any, Any]", cost: Cost | None = None) -> None:
        RecordConstructorArgs.__init__(self, cost=cost)
        if not isinstance(env, gymnasium.Env):
            raise ModelError(f"env must be a Gymnasium environment; got {type(env).__name__}")
        if cost is not None and not callable(cost):
            raise ModelError(f"cost must be a function of (state, action, next_state); got {type(cost).__name__}")
        super().__init__(without_time_limit(env))
        self.states = Numbering(env.observation_space, "observations")
        self.actions = Numbering(env.action_space, "actions")
        self.observation_space = gymnasium.spaces.Discrete(self.states.size)
        self.action_space = gymnasium.spaces.Discrete(self.actions.size)
        self._cost = cost
        self._n_costs: int | None = None  # known from the first step on
        self._at: Any = None
        self._over = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """A new start, asked for from outside."""
        self._at, info = self.env.reset(seed=seed, options=options)
        self._over = False
        return self.states.number(self._at), dict(info)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One round; after the end of an episode it leads to a new start, at reward 0 and cost 0."""
        if self._over:
            state, info = self.reset()
            return state, 0.0, False, False, info | _costs_info(np.zeros(self._n_costs or 0))
        taken = self.actions.element(action)
        outcome: tuple[Any, ...] = self.env.step(taken)
        if len(outcome) not in (5, 6) or not isinstance(outcome[-1], dict):
            raise ModelError("step must return observation, reward, terminated, truncated, info, as Gymnasium has it")
        shown, reward, info = outcome[0], float(outcome[1]), outcome[-1]
        state = self.states.number(shown)
        costs = _reported(outcome) if self._cost is None else _as_vector(self._cost(self._at, taken, shown), "cost")
        if self._n_costs not in (None, costs.size):
            raise ModelError(f"every step must report the same number of costs; got {costs.size} after {self._n_costs}")
        if not np.isfinite(costs).all() or not np.isfinite(reward):
            raise ModelError(f"reward and costs must be finite; got {reward:g} and {costs.tolist()}")
        self._n_costs = costs.size
        self._at, self._over = shown, bool(outcome[-3] or outcome[-2])
        return state, reward, False, False, dict(info) | _costs_info(costs)


def without_time_limit(env: "gymnasium.Env[Any, Any]") -> "gymnasium.Env[Any, Any]":
    """The environment without its ``TimeLimit``, wherever in the stack that sits; the one given stays as it is."""
    if isinstance(env, gymnasium.wrappers.TimeLimit):
        return without_time_limit(env.env)
    if isinstance(env, gymnasium.Wrapper):
        inner = without_time_limit(env.env)
        if inner is not env.env:
            wrapper = copy.copy(env)
            wrapper.env = inner
            return wrapper
    return env


def _costs_info(costs: Floats) -> dict[str, Any]:
    return {"costs": costs, "cost": float(costs.sum())}


def _reported(outcome: tuple[Any, ...]) -> Floats:
    info = outcome[-1]
    for key in ("costs", "cost"):
        if key in info:
            return _as_vector(info[key], f"info[{key!r}]")
    return _as_vector(outcome[2] if len(outcome) == 6 else (), "cost")


def _as_vector(costs: Any, what: str) -> Floats:
    try:
        vector = np.atleast_1d(np.array(costs, dtype=np.float64))
    except (TypeError, ValueError):
        vector = np.empty((0, 0))
    if vector.ndim != 1:
        raise ModelError(f"{what} must be a number or a list of numbers; got {costs!r}")
    return vector
