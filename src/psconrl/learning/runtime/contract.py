"""The interface that every agent implements.

Every algorithm in this field works in episodes: fix a policy, play it until a stopping rule fires, plan again. So an
agent has two methods, ``begin`` and ``end``. The loop that plays the episode in between (the compiled loop on a model,
a Gymnasium loop, or a user's own system through ``act`` and ``observe``) needs nothing else.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from psconrl.base.arrays import Floats, Ints, Places
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import SUM_TOL
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_numbers, is_whole
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.episode_plan import EpisodePlan

NO_CAP = np.iinfo(np.int64).max


def uniform_policy(n_states: int, n_actions: int) -> Floats:
    """Return the uniform policy, (S, A): every action with equal probability."""
    return np.full((n_states, n_actions), 1.0 / n_actions)


@dataclass(frozen=True, eq=False)
class Episode:
    """A policy to play, and the caps that end its episode.

    ``policy``: (S, A) probabilities, or (H, S, A) if they change with the step. The episode ends with the step after
    which it has lasted ``max_steps`` rounds, or a pair has been visited as often in it as ``visit_caps`` (S, A) says.
    ``kind``: a label for logs and reports. ``value``: the average objective that the agent expects, as a cost.
    ``plan``: what it was planned with, for watchers.

    >>> Episode(np.full((2, 2), 0.5), max_steps=10, kind="uniform").kind
    'uniform'
    """

    policy: Floats  # (S, A), or (H, S, A) for a policy that changes from step to step
    max_steps: int = NO_CAP
    visit_caps: Ints | None = None  # (S, A): how often a pair may be visited before the episode ends
    kind: str = "optimal"  # or "explore", "uniform", "baseline", ...
    value: float = math.nan  # average objective that the agent expects, as a cost
    plan: EpisodePlan | None = None  # what it was planned with; not saved

    @classmethod
    def uniform(
        cls,
        n_states: int,
        n_actions: int,
        max_steps: int = NO_CAP,
        visit_caps: Ints | None = None,
        kind: str = "uniform",
    ) -> "Episode":
        """Return an episode of the uniform policy, also played where no plan could be settled ("unsettled")."""
        return cls(uniform_policy(n_states, n_actions), max_steps, visit_caps, kind)

    def row(self, step: int, state: int) -> Floats:
        """Return the action distribution in a state, ``step`` steps into the episode."""
        if self.policy.ndim == 2:
            return np.asarray(self.policy[state])
        return np.asarray(self.policy[min(step, len(self.policy) - 1), state])


def without_plan(episode: Episode) -> Episode:
    """Return the episode without what it was planned with, which may be large."""
    return episode if episode.plan is None else replace(episode, plan=None)


class Learner(Protocol):
    """Any object that can be simulated: it plans an episode, and learns from its outcome.

    A run can be saved and continued bit for bit if the object also has ``state()``, which returns numbers, text, lists,
    dictionaries and arrays, and ``restore(state)``.
    """

    def begin(self, state: int) -> Episode:
        """Plan the next episode, to be played from a state."""

    def end(self, record: Record) -> None:
        """Learn from an episode that was played, wholly or in part."""


class LongerPlan(Protocol):
    """A plan that spans several episodes, such as a policy that remembers more than the state; one object per plan."""

    def averages(self, indptr: Places, successors: Places, probabilities: Floats, costs: Floats, state: int) -> Floats:
        """Return the expected average costs of the rest of the plan from a state after 1, 2, ... rounds, (n, m+1).

        The model is given by its rows ``s * A + a`` in CSR form and its costs (m+1, S, A).
        """


def is_learner(thing: object) -> bool:
    """Return True if the object seems to implement the interface of ``Learner``."""
    methods = (getattr(thing, name, None) for name in ("begin", "end"))
    return not isinstance(thing, type) and all(callable(method) for method in methods)


def checked_episode(given: Any, n_states: int, n_actions: int) -> Episode:
    """Return an episode of a user's agent in the form that compiled loops need; raise an error if it is invalid."""
    if not isinstance(given, Episode):
        raise AgentError(f"begin must return a psconrl.Episode; got {type(given).__name__}")
    shape = (n_states, n_actions)
    policy = np.array(as_numbers(given.policy, "policy of an episode"), order="C")  # a copy, as the agent may change it
    if policy.ndim not in (2, 3) or policy.shape[-2:] != shape or not policy.size:
        raise AgentError(f"policy of an episode must have shape (S, A) = {shape}, or (H, S, A); got {policy.shape}")
    sums = policy.sum(axis=-1)
    if not (policy >= 0).all() or not (np.abs(sums - 1.0) <= SUM_TOL).all():
        raise AgentError(f"policy of an episode must hold a distribution over {n_actions} actions for every state")
    if not is_whole(given.max_steps) or given.max_steps < 1:
        raise AgentError(f"max_steps of an episode must be a whole number from 1 on; got {quoted(given.max_steps)}")
    value = as_numbers(given.value, "value of an episode")
    if value.ndim:
        raise AgentError(f"value of an episode must be a number, or nan; got {quoted(given.value)}")
    if given.plan is not None and not isinstance(given.plan, EpisodePlan):
        raise AgentError(f"plan of an episode must be an EpisodePlan, or None; got {type(given.plan).__name__}")
    steps, caps = min(int(given.max_steps), NO_CAP), _checked_caps(given.visit_caps, shape)
    return Episode(policy, steps, caps, str(given.kind), float(value), given.plan)


def _checked_caps(given: Any, shape: tuple[int, int]) -> Ints | None:
    if given is None:
        return None
    try:
        caps = np.asarray(given)
    except ValueError:  # rows of different lengths
        caps = np.empty(0)
    if caps.shape != shape or not np.issubdtype(caps.dtype, np.integer) or (caps < 1).any():
        raise AgentError(f"visit_caps of an episode must be whole numbers from 1 on, of shape (S, A) = {shape}")
    return np.ascontiguousarray(np.minimum(caps, NO_CAP).astype(np.int64))
