"""Yardsticks: agents that do not learn. What an oracle would reach, and what luck does."""

from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from psconrl.learning.agent import Agent
from psconrl.learning.episode import Episode
from psconrl.learning.options import as_laws


class FixedPolicy(Agent):
    """Plays one policy (S, A) for ever, such as that of an optimal plan."""

    name: ClassVar[str] = "fixed"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        policy: ArrayLike,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.policy = as_laws(policy, "policy", self.n_states, self.n_actions)

    def _begin(self, state: int) -> Episode:
        return Episode(self.policy, kind="fixed")

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        return super().config() | {"policy": self.policy}


class Uniform(Agent):
    """Takes every action with equal probability."""

    name: ClassVar[str] = "uniform"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)

    def _begin(self, state: int) -> Episode:
        return Episode.uniform(self.n_states, self.n_actions)
