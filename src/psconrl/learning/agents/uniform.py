"""The uniformly random policy, for comparison."""

from typing import ClassVar

from psconrl.learning.agent import Agent
from psconrl.learning.runtime.contract import Episode


class Uniform(Agent):
    """An agent that takes every action with equal probability."""

    name: ClassVar[str] = "uniform"

    def begin(self, state: int) -> Episode:
        """Return the uniform policy, as an episode without end."""
        return Episode.uniform(self.n_states, self.n_actions)
