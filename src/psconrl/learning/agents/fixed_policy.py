"""A fixed policy, for comparison: for example, what an oracle would attain."""

from collections.abc import Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_distributions
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode


class FixedPolicy(Agent):
    """An agent that always plays one given policy (S, A), such as that of an optimal plan."""

    name: ClassVar[str] = "fixed"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        policy: ArrayLike,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.policy = as_distributions(policy, "policy", self.n_states, self.n_actions)

    def begin(self, state: int) -> Episode:
        """Return the policy, as an episode without end."""
        return Episode(self.policy, kind="fixed")
