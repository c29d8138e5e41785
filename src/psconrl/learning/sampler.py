"""What posterior samplers have in common: a belief to draw from, a schedule, and a planner that remembers."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.learning.agent import Agent
from psconrl.learning.beliefs import Belief
from psconrl.learning.checks import as_optimistic_cost, saved_policies
from psconrl.learning.counts import Record
from psconrl.learning.sampled import SampledPlanner
from psconrl.learning.schedules import Schedule


class Sampler(Agent):
    """Draws a model from its belief for every episode, and plans in it."""

    belief: Belief
    schedule: Schedule

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None,
        belief: Belief | None,
        schedule: Schedule | None,
        optimistic_cost: float | None,
        seed: int | Sequence[int] | None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.belief = self._part("belief", belief)
        self.schedule = self._part("schedule", schedule)
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self.planner = SampledPlanner(self.n_states, self.n_actions)
        self.sampled: Floats | None = None  # the transitions (S*A, S) behind the present episode, to look at

    def end(self, record: Record) -> None:
        """Learn from an episode."""
        super().end(record)
        self.schedule.ended(record.steps)

    def state(self) -> dict[str, Any]:
        """All that has changed since it was made."""
        return super().state() | {"last_policies": list(self.planner.last)}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self.planner.last = saved_policies(state["last_policies"], self.n_states, self.n_actions)
