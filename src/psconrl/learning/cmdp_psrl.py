"""CMDP-PSRL (Agarwal, Bai and Aggarwal 2022): posterior sampling for ergodic CMDPs.

The same sampling and planning as PSConRL, but epochs end on doubling only, and when the sample is infeasible the
constraints are ignored: the unconstrained optimum is played. In an ergodic model every policy explores, so that this is
harmless. In a communicating one it need not be: on Example 1 of the PSConRL paper it breaks the limit for ever.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from psconrl.learning.psconrl import PSConRL


class CMDPPSRL(PSConRL):
    """Posterior sampling that ignores the constraints while the sample is infeasible. For ergodic models."""

    name: ClassVar[str] = "cmdp-psrl"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        prior: ArrayLike | None = None,
        schedule: str = "doubling",
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, thresholds, costs, prior=prior, schedule=schedule, if_infeasible="unconstrained",
            optimistic_cost=optimistic_cost, seed=seed,
        )  # fmt: skip

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        own = ("n_states", "n_actions", "thresholds", "costs", "prior", "schedule", "optimistic_cost")
        return {key: value for key, value in super().config().items() if key in own}
