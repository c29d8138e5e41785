r"""C-UCRL (Zheng and Ratliff 2020): optimistic about the objective, pessimistic about the constraints.

Episode k plays a baseline policy for h rounds, then for (k-1) h rounds the policy that is optimal in the empirical
model for :math:`c_0 - b` under :math:`c_i + b \le \tau_i`. Regret :math:`\tilde O(T^{3/4})` without violation in
ergodic models, if the baseline is safe and the transitions are known.

As in the experiments of the PSConRL paper, the baseline is uniform unless one is given, and the transitions are
empirical. The paper writes :math:`\bar r + b` for the cost, a slip. The original algorithm knows the transitions of an
ergodic model. This implementation makes these choices where it leaves things open:

- b is a share of each cost's range, and confidence intervals are clipped to the range.
- A pair that was never tried has a self-loop. The best plan may then mix recurrent classes that do not communicate,
  which no stationary policy does. The plan is connected as in ``planning.repair``, by rare moves between the classes.
- A plan is played only if it is certified to satisfy the pessimistic constraints; otherwise the baseline is played.
- States without occupancy are driven to the plan. (The published code has 0/0 there and plays its first action.)
  States that are unreachable from the present one in the empirical model play the baseline.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import flag, integer, read_fields
from psconrl.errors import AgentError, SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_count, as_distributions, as_optimistic_cost
from psconrl.learning.part import Part
from psconrl.learning.parts.radii import Hoeffding, Radius, Scaled, empirical
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import NO_CAP, Episode, uniform_policy
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.markov.structure import reachable
from psconrl.model.cmdp import CMDP
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.proof.certificate import Status
from psconrl.planning.scaling import cost_units

KINDS = {Status.OPTIMAL: "optimal", Status.NOT_ATTAINED: "connected"}


class CUCRL(Agent):
    """C-UCRL, conservative exploration in blocks: h rounds of a baseline, then (k-1) h rounds of a cautious plan.

    ``h``: length of a baseline block. ``radius``: ``Scaled(coef)`` as in the experiments (0.1, 0.1, 0.5 on the paper's
    three grids), or ``Hoeffding(delta)`` as in the theory. ``baseline``: a safe policy (S, A). ``optimistic_cost``: as
    in PSConRL. Ranges are those of the known costs, or of the learned means and the costs assumed for untried pairs.
    """

    name: ClassVar[str] = "c-ucrl"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model
    parts: ClassVar[Mapping[str, Part | None]] = {"radius": Scaled(0.1)}
    theory: ClassVar[type[Part] | None] = Hoeffding

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        h: int = 50,
        radius: Radius | None = None,
        baseline: ArrayLike | None = None,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.h = as_count(h, "h")
        self.radius: Radius = self._part("radius", radius)
        if self.radius.each_transition:
            raise AgentError(f"radius of C-UCRL must be one for each pair, such as Hoeffding(); got {self.radius}")
        uniform = uniform_policy(self.n_states, self.n_actions)
        self.baseline = (
            uniform if baseline is None else as_distributions(baseline, "baseline", self.n_states, self.n_actions)
        )
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self._block = 0  # number of baseline blocks begun
        self._plan_next = False  # whether the baseline of this block has been played

    def begin(self, state: int) -> Episode:
        """Return the baseline, then the plan of the block."""
        if not self._plan_next:
            self._block += 1
            self._plan_next = self._block > 1
            return Episode(self.baseline, max_steps=self.h, kind="baseline")
        self._plan_next = False
        steps = (self._block - 1) * self.h
        p_bar = empirical(self.counts)
        model = CMDP(p_bar, self._cautious_costs(p_bar), self.thresholds, initial=state)
        try:
            found = plan_unexplained(model)
        except SolverError:
            return Episode(self.baseline, steps, kind="baseline")
        # A block plays one stationary policy: a mixture policy would be drawn again in every block.
        if found.status not in KINDS or not found.policy_certificate.holds:
            return Episode(self.baseline, steps, kind="baseline")
        known = np.isin(np.arange(self.n_states), reachable(model))
        policy = np.where(known[:, None], found.policy, self.baseline)
        kind = KINDS[found.status if found.mixture is None else Status.NOT_ATTAINED]
        basis = EpisodePlan(model.transition, model.costs, self.thresholds, found.multipliers, found.policy)
        return Episode(policy, steps, kind=kind, value=float(found.policy_certificate.upper), plan=basis)

    def _cautious_costs(self, p_bar: Floats) -> Floats:
        """Return the costs (m+1, S, A) to plan with: lower bounds of the objective, upper bounds of the others."""
        costs = self._known_or_hopeful_costs()
        low, high = costs.min(axis=(1, 2), keepdims=True), costs.max(axis=(1, 2), keepdims=True)
        radius = self.radius.checked_widths(self.counts.visits, p_bar, self._log_term).reshape(
            self.n_states, self.n_actions
        )
        bonus = cost_units(costs)[:, None, None] * radius
        bonus[0] *= -1.0
        return np.clip(costs + bonus, low, high)

    def _log_term(self, delta: float) -> float:
        r""":math:`\log(\pi^2 S A (m+1) t^3 / (3 \delta))`."""
        S, A, t = self.n_states, self.n_actions, self.rounds + 1
        return special.log(np.pi * np.pi * S * A * self.n_costs * t**3 / (3 * delta))

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | {"block": self._block, "plan_next": self._plan_next}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        self._block, self._plan_next = read_fields(state, {"block": integer(0, NO_CAP), "plan_next": flag}).values()
