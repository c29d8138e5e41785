"""The uniformly random policy, for comparison."""

from collections.abc import Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from psconrl.learning.agent import Agent
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode


class Uniform(Agent):
    """An agent that takes every action with equal probability."""

    name: ClassVar[str] = "uniform"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)

    def begin(self, state: int) -> Episode:
        """Return the uniform policy, as an episode without end."""
        return Episode.uniform(self.n_states, self.n_actions)
