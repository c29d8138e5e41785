"""What posterior samplers have in common: a belief to draw from, a schedule, and a planner that remembers."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from psconrl.learning.agent import Agent
from psconrl.learning.checks import as_optimistic_cost, checked_laws, saved_policies
from psconrl.learning.counts import Record
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.parts.beliefs import Belief
from psconrl.learning.parts.schedules import Schedule
from psconrl.model.transition import Transition

# For every transition that a sample has: parameters, what drawing it takes, and the model that is planned.
ENTRY_BYTES = 40


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
        self._need(ENTRY_BYTES * self.belief.entries(self.n_states, self.n_actions))
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self.planner = EpisodePlanner(self.n_states, self.n_actions)
        self.sampled: Transition | None = None  # the model behind the present episode, to look at

    def _draw(self) -> Transition:
        """A model from the belief; one of somebody else's is checked first."""
        drawn = self.belief.sample(self.counts, self.rng)
        self.sampled = drawn if self._trusted else checked_laws(drawn, self.n_states, self.n_actions)
        return self.sampled

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
