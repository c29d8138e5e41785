"""Fallbacks: what to play if no policy of the sampled model keeps the limits, or if that could not be settled."""

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import ConfigError, SolverError, unknown_name
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.runtime.contract import uniform_policy
from psconrl.model.transition import Transition

EXPLORE_ACTIONS = ("shortest", "least_tried")
NO_LIMITS = np.empty(0)


class Sample(NamedTuple):
    """A model drawn from the belief, and what the agent knows besides."""

    P: Transition
    costs: Floats  # (m+1, S, A)
    state: int
    counts: Counts
    planner: EpisodePlanner
    rng: np.random.Generator
    thresholds: Floats = NO_LIMITS  # (m,) that no policy keeps


class Decision(NamedTuple):
    """What to play, for an ``Episode``."""

    policy: Floats  # (S, A)
    kind: str
    value: float = math.nan


class Fallback(Part):
    """What to play if the sample is infeasible."""

    kind: ClassVar[str] = "fallback"
    example: ClassVar[str] = "Explore()"

    @abstractmethod
    def infeasible(self, sample: Sample) -> Decision:
        """No policy of the sample keeps the limits. May raise ``SolverError``: then it counts as unsettled."""

    def unsettled(self, sample: Sample) -> Decision:
        """The sample is beyond floating point: whatever is played, something is learned."""
        return Decision(uniform_policy(*sample.counts.pairs.shape), "unsettled")


class Explore(Fallback):
    """PSConRL's own: go to the least visited of the states that the sampled model can reach.

    On the shortest path; in a model of more than 64 states, such that it is visited as often as can be.

    ``action``: what to play once there, ``"shortest"`` (the paper's: whatever returns soonest) or ``"least_tried"``.
    """

    name: ClassVar[str] = "explore"

    def __init__(self, action: str = "shortest") -> None:
        if not isinstance(action, str) or action not in EXPLORE_ACTIONS:
            raise ConfigError(unknown_name("action", action, EXPLORE_ACTIONS))
        self.action = action

    def infeasible(self, sample: Sample) -> Decision:
        """The shortest path."""
        return Decision(self._path(sample), "explore")

    def unsettled(self, sample: Sample) -> Decision:
        """The shortest path, too."""
        return Decision(self._path(sample), "unsettled")

    def _path(self, sample: Sample) -> Floats:
        """Every action alike if the way there takes longer than floating point can tell."""
        counts = sample.counts
        visits = counts.pairs.sum(axis=1).astype(np.float64)
        visits[~sample.P.reachable_from(np.arange(counts.n_states) == sample.state)] = np.inf
        target = int(sample.rng.choice(np.flatnonzero(visits == visits.min())))
        try:
            actions = sample.planner.way_to(sample.P, target, sample.state)
        except SolverError:
            return uniform_policy(*sample.counts.pairs.shape)
        if self.action == "least_tried":
            actions[target] = int(counts.pairs[target].argmin())
        return np.eye(counts.n_actions)[actions]


class Uniformly(Fallback):
    """Every action with equal probability, as in the authors' published code."""

    name: ClassVar[str] = "uniform"

    def infeasible(self, sample: Sample) -> Decision:
        """Every action alike."""
        return Decision(uniform_policy(*sample.counts.pairs.shape), "uniform")


class Unconstrained(Fallback):
    """The optimum without the limits, as in CMDP-PSRL."""

    name: ClassVar[str] = "unconstrained"

    def infeasible(self, sample: Sample) -> Decision:
        """The policy that is best for the objective alone."""
        free = sample.planner.optimal(sample.P, sample.costs[:1], NO_LIMITS, sample.state)
        if free is None:
            return Decision(uniform_policy(*sample.counts.pairs.shape), "uniform")
        return Decision(free.policy, "unconstrained", free.value)


class LeastExcess(Fallback):
    """The policy whose largest excess over a limit, in ranges of the cost, is least."""

    name: ClassVar[str] = "least-excess"

    def infeasible(self, sample: Sample) -> Decision:
        """What is nearest to the limits in the sample."""
        nearest = sample.planner.least_excess(sample.P, sample.costs, sample.thresholds, sample.state)
        return Decision(nearest.policy, "least excess", nearest.value)
