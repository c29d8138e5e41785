r"""C-UCRL (Zheng and Ratliff 2020): optimistic about the objective, pessimistic about the constraints.

Episode k plays a baseline policy for h rounds, then for (k-1) h rounds the policy that is optimal in the empirical
model for :math:`c_0 - b` under :math:`c_i + b \le \tau_i`. Regret :math:`\tilde O(T^{3/4})` without violation in
ergodic models, if the baseline is safe and the transitions are known.

As in the PSConRL paper's experiments the baseline is uniform unless one is given, and the transitions are empirical.
The paper writes :math:`\bar r + b` for the cost, a slip. Published code lets a state without occupancy always play the
first action; here it is led back to where the plan lives.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, SolverError
from psconrl.learning.agent import Agent
from psconrl.learning.checks import as_count, as_numbers
from psconrl.learning.confidence import check_coef, check_delta, empirical, scaled_radius
from psconrl.learning.episode import Episode
from psconrl.model.chain import as_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Status
from psconrl.planning.planner import plan


class CUCRL(Agent):
    """Conservative exploration in blocks: h rounds of a baseline, then (k-1) h rounds of a cautious plan.

    ``h``: length of a baseline block. ``coef``: radius coef/sqrt(N) as in the experiments (0.1, 0.1, 0.5 on the paper's
    three grids), or None for the theory's with failure probability ``delta``. ``baseline``: a safe policy (S, A).
    """

    name: ClassVar[str] = "c-ucrl"

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        h: int = 50,
        coef: float | None = 0.1,
        delta: float = 0.05,
        baseline: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.h = as_count(h, "h")
        self.coef, self.delta = check_coef(coef), check_delta(delta)
        uniform = np.full((n_states, n_actions), 1.0 / n_actions)
        self.baseline = uniform if baseline is None else as_numbers(baseline, "baseline")
        if self.baseline.shape != uniform.shape or not np.allclose(self.baseline.sum(axis=1), 1.0):
            raise AgentError(
                f"baseline must have shape (S, A) = {uniform.shape} and hold distributions; got {self.baseline.shape}"
            )
        self._block = 0  # how many baseline blocks have begun
        self._explored = False  # is the plan of this block next?

    def _begin(self, state: int) -> Episode:
        if not self._explored:
            self._block += 1
            self._explored = self._block > 1
            return Episode(self.baseline, max_steps=self.h, kind="baseline")
        self._explored = False
        policy, value = self._plan(state)
        kind = "baseline" if policy is None else "optimal"
        return Episode(self.baseline if policy is None else policy, (self._block - 1) * self.h, kind=kind, value=value)

    def _plan(self, state: int) -> tuple[Floats | None, float]:
        costs = self._known_or_mean_costs().copy()
        bonus = self._radius().reshape(self.n_states, self.n_actions)
        costs[0] -= bonus
        costs[1:] += bonus
        model = CMDP(empirical(self.counts), costs, self.thresholds, initial=state)
        try:
            result = plan(model)
        except SolverError:
            return None, float("nan")
        if result.status is Status.INFEASIBLE:
            return None, float("nan")
        return as_policy(model, result.policy), float(result.costs[0])

    def _radius(self) -> Floats:
        if self.coef is not None:
            return scaled_radius(self.counts.visits, self.coef)
        S, A, t = self.n_states, self.n_actions, max(self.rounds, 1)
        log_term = np.log(np.pi**2 * S * A * self.n_costs * float(t) ** 3 / (3 * self.delta))
        return np.asarray(np.sqrt(log_term / (2 * np.maximum(self.counts.visits, 1))))

    def config(self) -> dict[str, Any]:
        """The arguments that build an agent like this one, seed aside."""
        own = {"h": self.h, "coef": self.coef, "delta": self.delta, "baseline": self.baseline}
        return super().config() | own

    def state(self) -> dict[str, Any]:
        """All that has changed since."""
        return super().state() | {"block": self._block, "explored": self._explored}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self._block, self._explored = int(state["block"]), bool(state["explored"])
