"""TSDE (Ouyang, Gagrani, Nayyar and Jain 2017): Thompson sampling with dynamic episodes, without constraints.

Each episode plays the policy that minimises the objective in a model drawn from the posterior. It ends once it is
longer than the last one, or once the visits of a pair have doubled. Bayesian regret O~(H S sqrt(A T)) in weakly
communicating models whose span is at most H. Constraints are ignored: a sanity check where none binds, and the price of
one where it does.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from psconrl.errors import SolverError
from psconrl.learning.part import Part
from psconrl.learning.parts.fallbacks import NO_LIMITS
from psconrl.learning.parts.schedules import Ouyang, Schedule
from psconrl.learning.posterior.cost_beliefs import CostBelief, EmpiricalMeans
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.sampler import Sampler


class TSDE(Sampler):
    """TSDE: posterior sampling of the transitions; constraints are ignored. Its parts are those of PSConRL."""

    name: ClassVar[str] = "tsde"
    parts: ClassVar[Mapping[str, Part | None]] = {
        "belief": Dirichlet(),
        "schedule": Ouyang(),
        "cost_belief": EmpiricalMeans(),
    }

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        belief: Belief | None = None,
        schedule: Schedule | None = None,
        cost_belief: CostBelief | None = None,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self._set_up(belief, schedule, cost_belief, optimistic_cost, guessed_costs, cost_weight)

    def begin(self, state: int) -> Episode:
        """Draw a model, and return its optimal policy for the objective alone."""
        P = self._draw()
        objective = self._episode_costs()[:1]
        max_steps, caps = self.schedule.caps(self.counts)
        try:
            choice = self.planner.optimal(P, objective, NO_LIMITS, state)
        except SolverError:  # the sample cannot be solved in floating point
            choice = None
        if choice is None:
            return Episode.uniform(self.n_states, self.n_actions, max_steps, caps, "unsettled")
        return Episode(choice.policy, max_steps, caps, "unconstrained", choice.value)
