"""Fallbacks: what to play if the sampled model is infeasible, or if it could not be solved."""

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import integer, read_fields
from psconrl.errors import ConfigError, SolverError, unknown_name
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.runtime.contract import NO_CAP, uniform_policy
from psconrl.model.transition import Transition

EXPLORE_ACTIONS = ("shortest", "least_tried")
NO_LIMITS = np.empty(0)


class Sample(NamedTuple):
    """A model drawn from the belief, with the agent's other knowledge."""

    P: Transition
    costs: Floats  # (m+1, S, A)
    state: int
    counts: Counts
    planner: EpisodePlanner
    rng: np.random.Generator
    thresholds: Floats = NO_LIMITS  # (m,), infeasible


class Decision(NamedTuple):
    """The policy, kind and value of an ``Episode``."""

    policy: Floats  # (S, A)
    kind: str
    value: float = math.nan


class Fallback(Part):
    """The rule for what to play if the sample is infeasible."""

    kind: ClassVar[str] = "fallback"
    example: ClassVar[str] = "Explore()"

    @abstractmethod
    def infeasible(self, sample: Sample) -> Decision:
        """Return what to play if the sample is infeasible. If this raises ``SolverError``, it counts as unsettled."""

    def unsettled(self, sample: Sample) -> Decision:
        """Return what to play if the sample cannot be solved in floating point: the uniform policy."""
        return Decision(uniform_policy(*sample.counts.pairs.shape), "unsettled")


class Explore(Fallback):
    """PSConRL's fallback: go to the least visited state that is reachable in the sampled model.

    It takes the shortest path; in a model of more than 64 states it maximises the visits of that state instead.

    ``action``: what to play once there, ``"shortest"`` (as in the paper: the shortest return) or ``"least_tried"``.
    """

    name: ClassVar[str] = "explore"

    def __init__(self, action: str = "shortest") -> None:
        if not isinstance(action, str) or action not in EXPLORE_ACTIONS:
            raise ConfigError(unknown_name("action", action, EXPLORE_ACTIONS))
        self.action = action

    def infeasible(self, sample: Sample) -> Decision:
        """Return the path to the least visited state."""
        return Decision(self._path(sample), "explore")

    def unsettled(self, sample: Sample) -> Decision:
        """Return the path to the least visited state, as for infeasible samples."""
        return Decision(self._path(sample), "unsettled")

    def _path(self, sample: Sample) -> Floats:
        """Return the path's policy, or the uniform one if the path cannot be computed in floating point."""
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
    """The uniform policy as a fallback, as in the authors' published code."""

    name: ClassVar[str] = "uniform"

    def infeasible(self, sample: Sample) -> Decision:
        """Return the uniform policy."""
        return Decision(uniform_policy(*sample.counts.pairs.shape), "uniform")


class Unconstrained(Fallback):
    """The optimal policy without the constraints, as in CMDP-PSRL."""

    name: ClassVar[str] = "unconstrained"

    def infeasible(self, sample: Sample) -> Decision:
        """Return the policy that is optimal for the objective alone."""
        free = sample.planner.optimal(sample.P, sample.costs[:1], NO_LIMITS, sample.state)
        if free is None:
            return Decision(uniform_policy(*sample.counts.pairs.shape), "uniform")
        return Decision(free.policy, "unconstrained", free.value)


class LeastExcess(Fallback):
    """The policy whose largest excess over a threshold, in ranges of the cost, is least."""

    name: ClassVar[str] = "least-excess"

    def infeasible(self, sample: Sample) -> Decision:
        """Return the policy of least excess in the sample."""
        nearest = sample.planner.least_excess(sample.P, sample.costs, sample.thresholds, sample.state)
        return Decision(nearest.policy, "least excess", nearest.value)


class RarelyExplore(Fallback):
    r"""The policy of least excess, but exploration in the j-th infeasible episode with probability :math:`j^{-1/2}`.

    Exploration goes to the least visited state, and takes the action there that was tried least. A fallback that always
    explores never settles where the sample is infeasible for ever, for lack of slack. One that never explores relies on
    the sample to lead it to what is unknown.
    """

    name: ClassVar[str] = "rarely-explore"

    def __init__(self) -> None:
        self.number = 1  # of the next infeasible episode
        self._explore, self._least = Explore("least_tried"), LeastExcess()

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        self.number = 1

    def infeasible(self, sample: Sample) -> Decision:
        """Return the path to the least tried pair, or the policy of least excess in the sample."""
        explores = sample.rng.random() < self.number**-0.5
        self.number += 1
        return (self._explore if explores else self._least).infeasible(sample)

    def unsettled(self, sample: Sample) -> Decision:
        """Return the path to the least tried pair."""
        return self._explore.unsettled(sample)

    def state(self) -> dict[str, Any]:
        """Return the number of the next infeasible episode."""
        return {"number": self.number}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        self.number = read_fields(state, {"number": integer(1, NO_CAP)})["number"]
