r"""Primal-dual LSVI-UCB (Ghosh, Zhou and Shroff 2023, Algorithm 2): optimistic value iteration with a softmax policy.

The T rounds are split into K blocks of :math:`H = \lceil T^{1/4} \rceil`. Costs are scaled to gains in [0, 1]: r of the
objective, g of the constrained cost, whose average must be at least b. A block is planned by least-squares value
iteration, here on tables (``posterior.ridge``), for both at once:

.. math:: Q^j_h = \min\{j + \hat p \cdot V^j_{h+1} + \beta / \sqrt{N + \rho},\ H\},\quad j = r, g,\qquad
          \pi_h(a|s) \propto \exp(\alpha\,(Q^r_h + Y Q^g_h)), \qquad V^j_h = \pi_h \cdot Q^j_h

The multiplier follows the shortfall of the optimistic value, :math:`Y \leftarrow [Y + \eta\,(H b - V^g_1(s_1))]` within
:math:`[0, \xi]`. Regret and violation :math:`\tilde O((d T)^{3/4})` in linear models.

The paper itself could not be read. H and :math:`\beta = S A H` are those of the runs of Yu, Bae and Lee (2026, arXiv
2609.39093, Appendix E). The rest, :math:`\xi = 2/\gamma`, :math:`\eta = \xi / \sqrt{K H^2}`, :math:`\alpha = K \log A /
(2 (1 + \xi + H))` and :math:`\rho = 1`, is recalled from the authors' episodic algorithm (NeurIPS 2022), and an option.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import need
from psconrl.base.saved_fields import read_fields, reals
from psconrl.errors import AgentError
from psconrl.kernels.agents.least_squares_values import softmax_block
from psconrl.kernels.arithmetic import special
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_count, as_gap, as_nonnegative, as_positive
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.ridge import RidgeRegression
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode


class PDLSVIUCB(Agent):
    """Primal-dual LSVI-UCB with softmax policies. It must know the horizon.

    ``H``: rounds of a block, by default T^(1/4). ``gap``: the Slater gap, by how much one policy can stay below every
    threshold, in units of the costs, a number or one per threshold: for the theory, the same share of the range of
    every cost. ``bonus``: a factor of the bonus, 1 as published. ``alpha``: sharpness of the
    softmax. ``eta``: step of the multipliers. ``ridge``: of the regression. ``ranges`` (m+1, 2): the lowest and highest
    value of every cost; by default those of the known costs, or 0 and 1.
    """

    name: ClassVar[str] = "pd-lsvi-ucb"
    theory_constants: ClassVar[tuple[str, ...]] = ("gap",)
    ranges_include_noise: ClassVar[bool] = False
    keeps_multipliers: ClassVar[bool] = True

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        H: int | None = None,
        gap: ArrayLike = 0.1,
        bonus: float = 1.0,
        alpha: float | None = None,
        eta: float | None = None,
        ridge: float = 1.0,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.H = math.ceil(math.sqrt(math.sqrt(self.horizon))) if H is None else as_count(H, "H")
        need(8.0 * self.H * self.n_states * self.n_actions, f"a plan for blocks of {self.H:,} rounds", AgentError)
        self.gap, self.ridge = as_gap(gap, self.thresholds.size), as_positive(ridge, "ridge")
        self.bonus = as_nonnegative(bonus, "bonus")
        self.alpha = None if alpha is None else as_positive(alpha, "alpha")
        self.eta = None if eta is None else as_positive(eta, "eta")
        self._scale_costs(ranges)
        self._shortfall: Floats = np.zeros(self.thresholds.size)  # of the values of the present block

    @property
    def ceilings(self) -> Floats:
        r"""The largest multipliers :math:`\xi` (m,)."""
        return 2.0 * self._scale.units[1:] / self.gap

    @property
    def sharpness(self) -> float:
        r"""The factor :math:`\alpha` of values in the softmax."""
        blocks, largest = self.horizon / self.H, float(self.ceilings.max(initial=0.0))
        usual = blocks * special.log(float(self.n_actions)) / (2.0 * (1.0 + largest + self.H))
        return usual if self.alpha is None else self.alpha

    @property
    def steps(self) -> Floats:
        r"""The steps :math:`\eta` (m,) of the multipliers."""
        usual = self.ceilings / (self.H * math.sqrt(self.horizon / self.H))
        return usual if self.eta is None else np.full(usual.shape, self.eta)

    def _gains(self) -> Floats:
        """Return the gains (m+1, S*A), by the known costs or the means; an untried pair has the largest ones."""
        costs = self._known_or_lowest_costs()
        return np.ascontiguousarray((1.0 - self._scale.losses(costs.reshape(self.n_costs, -1).T)).T)

    def begin(self, state: int) -> Episode:
        """Return the softmax policy for a block, (H, S, A)."""
        S, A, H = self.n_states, self.n_actions, self.H
        model = RidgeRegression.of(self.counts, self.ridge)
        optimistic = self._gains() + self.bonus * S * A * H * model.widths.ravel()
        weights = np.concatenate([[1.0], self.multipliers])
        rows = model.indptr, model.successors, model.shares
        policy, V = softmax_block(optimistic, *rows, S, H, weights, self.sharpness)
        wanted = H * (1.0 - self._scale.thresholds(self.thresholds))
        self._shortfall = wanted - V[1:, state]
        return Episode(policy, max_steps=H, kind="optimistic")

    def end(self, record: Record) -> None:
        """Learn from a block, and update the multipliers by the shortfall of its values."""
        super().end(record)
        self.multipliers = np.clip(self.multipliers + self.steps * self._shortfall, 0.0, self.ceilings)
        self._shortfall = np.zeros(self.thresholds.size)

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | {"shortfall": self._shortfall}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        self._shortfall = read_fields(state, {"shortfall": reals(self.thresholds.shape)})["shortfall"]
