"""Any finite Gymnasium environment as a constrained continuing task.

An episodic environment never ends here. The state that ends an episode is shown like any other; the step after it,
under every action, leads to a new start at reward 0 and cost 0. ``psconrl.simulate`` plays environments in this way,
and ``CMDP.from_gymnasium`` reads tables in this way, so that all three describe the same process.

A ``TimeLimit``, which ``gymnasium.make`` puts around many environments, is removed: it truncates an episode by the
clock, which is not part of the state, so that the task would not be Markov. (``make`` prefers episodes that end, for
agents that cannot learn otherwise; the agents here can.) If the environment itself reports a truncation, that ends an
episode as a termination does.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.envs.spaces import Numbering, numbering_of
from psconrl.envs.vector_rewards import Component, RewardComponents
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP

Cost = Callable[[Any, Any, Any], Any]  # (state, action, next state) -> a number, or one for each constraint


def continuing(
    env: "gymnasium.Env[Any, Any]",
    cost: Cost | None = None,
    *,
    objective: Component = 0,
    costs: Sequence[Component] | Mapping[Component, float] | None = None,
    reward_names: Sequence[str] | None = None,
    most_states: int | None = None,
    limits: ArrayLike | Mapping[str, float] = (),
) -> "ContinuingEnv":
    """Turn a finite Gymnasium environment into a continuing task with constrained costs.

    ``cost(state, action, next_state)``: a number, or several, in the environment's own terms. Without it the costs are
    those that the environment reports: ``info["costs"]``, ``info["cost"]``, or the third of six returned values. States
    and actions are numbered from 0 on (``task.states``, ``task.actions``), also those of Tuple spaces. If there are too
    many states, or their space is not finite, they are numbered as they appear, at most ``most_states``.

    If the reward is a vector: ``objective`` is the component to maximise, and ``costs`` those to constrain, with the
    opposite sign, or with the sign that a mapping gives; by number, or by name if ``reward_names`` has them. By default
    all but the objective are costs. The values of ``cost`` come after these. ``limits``: the thresholds of the costs,
    in their order or by name, for agents and models made from the task (``task.thresholds``).

    >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    >>> task = continuing(lake, cost=lambda state, action, next_state: float(next_state == 5))
    >>> task.reset(seed=0)[0], [task.step(a)[0] for a in (2, 1, 0, 2)]  # right, down into the hole, new start, right
    (0, [1, 5, 0, 1])
    """
    return ContinuingEnv(
        env, cost, objective=objective, costs=costs, reward_names=reward_names, most_states=most_states, limits=limits
    )


class ContinuingEnv(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A continuing task. ``info["costs"]`` holds the constrained costs of a step, ``info["cost"]`` their sum."""

    def __init__(
        self,
        env: "gymnasium.Env[Any, Any]",
        cost: Cost | None = None,
        *,
        objective: Component = 0,
        costs: Sequence[Component] | Mapping[Component, float] | None = None,
        reward_names: Sequence[str] | None = None,
        most_states: int | None = None,
        limits: ArrayLike | Mapping[str, float] = (),
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            cost=cost,
            objective=objective,
            costs=costs,
            reward_names=reward_names,
            most_states=most_states,
            limits=limits,
        )
        if not isinstance(env, gymnasium.Env):
            raise ModelError(f"env must be a Gymnasium environment; got {type(env).__name__}")
        if cost is not None and not callable(cost):
            raise ModelError(f"cost must be a function of (state, action, next_state); got {type(cost).__name__}")
        super().__init__(without_time_limit(env))
        self.states = numbering_of(env.observation_space, "observations", most_states)
        self.actions = Numbering(env.action_space, "actions")
        self.observation_space = gymnasium.spaces.Discrete(self.states.size)
        self.action_space = gymnasium.spaces.Discrete(self.actions.size)
        self._cost = cost
        self._components = _components(env, objective, costs, reward_names)
        self._n_costs: int | None = None  # known after the first step
        self.cost_names, self.thresholds = self._named(limits)
        self._at: Any = None
        self._over = False

    def _named(self, limits: ArrayLike | Mapping[str, float]) -> tuple[tuple[str, ...], Floats]:
        """Return names for the objective and the constrained costs, and the thresholds."""
        components = () if self._components is None else self._components.cost_names
        if isinstance(limits, Mapping):
            names, values = tuple(map(str, limits)), list(limits.values())
            names = (*components, *(name for name in names if name not in components))
            values = [limits[name] for name in names if name in limits]
        else:
            values = np.atleast_1d(np.asarray(limits, dtype=np.float64)).tolist()
            more = len(values) - len(components)
            names = (*components, *(("cost",) if more == 1 else (f"cost {k}" for k in range(1, more + 1))))
        if len(names) != len(values) and values:
            raise ModelError(f"limits must have one number for each of {', '.join(names)}; got {quoted(limits)}")
        tau = _as_vector(values, "limits")
        if not np.isfinite(tau).all():
            raise ModelError(f"limits must be finite; got {quoted(limits)}")
        return ("reward", *names), tau

    def with_thresholds(self, thresholds: ArrayLike | Mapping[str, float]) -> "ContinuingEnv":
        """Return the task with other thresholds, all in order or by the names of its costs.

        If the costs have no names yet, they take those of the thresholds.
        """
        names = self.cost_names[1:]
        limits: Any = thresholds
        if isinstance(thresholds, Mapping):
            limits = dict(zip(names, self.thresholds.tolist(), strict=False)) | dict(thresholds)
        elif names:
            values = _as_vector(thresholds, "thresholds").tolist()
            if len(values) != len(names):
                raise ModelError(
                    f"thresholds must have one number for each of {', '.join(names)}; got {quoted(thresholds)}"
                )
            limits = dict(zip(names, values, strict=True))
        task = copy.copy(self)
        task.cost_names, task.thresholds = self._named(limits)
        return task

    @property
    def has_table(self) -> bool:
        """True if the environment exposes its transitions in a readable form (its rewards are not vectors)."""
        return bool(getattr(self.unwrapped, "P", None)) and self._components is None

    def model(self) -> CMDP:
        """Return the model of the task, if the environment exposes its transitions."""
        names = dict(zip(self.cost_names[1:], self.thresholds.tolist(), strict=True))
        if self._cost is None and names:
            raise ModelError("limits need costs: give cost=, a function of state, action and next state")
        return CMDP.from_gymnasium(self.env, self._cost, names)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start again, on the caller's request."""
        self._at, info = self.env.reset(seed=seed, options=options)
        self._over = False
        return self.states.number(self._at), dict(info)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Play one round; after the end of an episode it leads to a new start, at reward 0 and cost 0."""
        if self._over:
            state, info = self.reset()
            return state, 0.0, False, False, info | _costs_info(np.zeros(self._n_costs or 0))
        taken = self.actions.element(action)
        outcome: tuple[Any, ...] = self.env.step(taken)
        if len(outcome) not in (5, 6) or not isinstance(outcome[-1], dict):
            raise ModelError("step must return observation, reward, terminated, truncated, info, as in Gymnasium")
        shown, info = outcome[0], outcome[-1]
        state = self.states.number(shown)
        costs = _reported(outcome) if self._cost is None else _as_vector(self._cost(self._at, taken, shown), "cost")
        if self._components is None:
            reward = _as_number(outcome[1])
        else:
            reward, first = self._components.split(outcome[1])
            costs = np.append(first, costs)
        if self._n_costs not in (None, costs.size):
            raise ModelError(f"every step must report the same number of costs; got {costs.size} after {self._n_costs}")
        if not np.isfinite(costs).all() or not np.isfinite(reward):
            raise ModelError(f"reward and costs must be finite; got {reward:g} and {costs.tolist()}")
        self._n_costs = costs.size
        self._at, self._over = shown, bool(outcome[-3] or outcome[-2])
        return state, reward, False, False, dict(info) | _costs_info(costs)


def without_time_limit(env: "gymnasium.Env[Any, Any]") -> "gymnasium.Env[Any, Any]":
    """Return the environment without its ``TimeLimit``, anywhere in the wrapper stack; the original is unchanged."""
    if isinstance(env, gymnasium.wrappers.TimeLimit):
        return without_time_limit(env.env)
    if isinstance(env, gymnasium.Wrapper):
        inner = without_time_limit(env.env)
        if inner is not env.env:
            wrapper = copy.copy(env)
            wrapper.env = inner
            return wrapper
    return env


def _components(env: Any, objective: Component, costs: Any, names: Any) -> RewardComponents | None:
    """Return the components of a vector reward, as mo-gymnasium declares it."""
    space = getattr(env.unwrapped, "reward_space", None)
    if space is None:
        if objective != 0 or costs is not None or names is not None:
            raise ModelError(
                "objective, costs and reward_names are for rewards that are vectors, and this environment has no "
                "reward_space; give cost=, a function of state, action and next state"
            )
        return None
    return RewardComponents(math.prod(space.shape), objective, costs, names)


def _as_number(reward: Any) -> float:
    value = np.asarray(reward)
    if value.size != 1:
        raise ModelError(
            f"the reward has {value.size} components, and the environment does not declare them (reward_space)"
        )
    return float(value.item())


def _costs_info(costs: Floats) -> dict[str, Any]:
    return {"costs": costs, "cost": float(costs.sum())}


def _reported(outcome: tuple[Any, ...]) -> Floats:
    info = outcome[-1]
    for key in ("costs", "cost"):
        if key in info:
            return _as_vector(info[key], f"info[{quoted(key)}]")
    return _as_vector(outcome[2] if len(outcome) == 6 else (), "cost")


def _as_vector(costs: Any, what: str) -> Floats:
    try:
        vector = np.atleast_1d(np.array(costs, dtype=np.float64))
    except (TypeError, ValueError):
        vector = np.empty((0, 0))
    if vector.ndim != 1:
        raise ModelError(f"{what} must be a number or a list of numbers; got {quoted(costs)}")
    return vector
