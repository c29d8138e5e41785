r"""PD-LSCVI-UCB (Yu, Baek and Lee 2026, arXiv 2605.11586): clipped optimistic value iteration with a multiplier.

The T rounds are split into K blocks of :math:`H = T^{1/3}`. Let r in [0,1] be the reward and g in [-1,1] the slack of a
round, costs divided by their ranges. A block is planned by least-squares value iteration, here on tables
(``posterior.ridge``), for the composite reward :math:`r + \lambda g`:

.. math:: Q_h(s,a) = r + \lambda g + \hat p \cdot (V_{h+1} - \min V_{h+1}) + \min V_{h+1} + \beta / \sqrt{N + \rho},
          \qquad V_h(s) = \min\{\max_a Q_h(s,a),\ \min_{s'} \max_a Q_h(s',a) + 2\zeta\}

with :math:`\zeta = sp_r + \lambda\, sp_g` and :math:`\beta = (\zeta + 1) S A`, and played greedily. Then
:math:`\lambda \leftarrow [\lambda - \eta \sum_h g(s_h,a_h)]` within :math:`[0, 2/\gamma]`, with :math:`\gamma` the
Slater gap, the largest average slack that one policy has in all constraints at once. Regret and violation
:math:`\tilde O(T^{2/3})` in weakly communicating linear models.

The paper itself could not be read. H, :math:`\zeta`, :math:`\beta` and the sum in the update of the multiplier are as
the authors' next paper describes them (arXiv 2609.39093, Appendices E and F). The step :math:`\eta = 2 / (\gamma H
\sqrt K)`, which minimises the bound quoted there, the largest multiplier and the factor 2 of the clip, both as in that
paper, and the ridge :math:`\rho = 1` are assumed, and options. That the regression is of the values above the least
one, without which :math:`\beta` would not cover the shrinkage, is recalled from the algorithm that this one extends
(Hong et al. 2025, arXiv 2405.15050).
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import need
from psconrl.errors import AgentError
from psconrl.kernels.agents.least_squares_values import clipped_block
from psconrl.kernels.arithmetic import special
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import (
    as_amounts,
    as_count,
    as_gap,
    as_nonnegative,
    as_optimistic_cost,
    as_positive,
)
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.ridge import RidgeRegression
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.model.matrix_product import product


class PDLSCVIUCB(Agent):
    """PD-LSCVI-UCB, clipped least-squares value iteration with multipliers. It must know the horizon.

    ``H``: rounds of a block, by default the cube root of the horizon. ``gap``: the Slater gap, by how much one policy
    can stay below every threshold, a number or one per threshold: for the theory, the same share of the range of every
    cost. ``span_objective``, ``span_limited``: the spans of the biases of the optimal policy, the latter a number or
    one per threshold. All are in units of the costs. ``bonus``: a factor of the bonus, 1 as published.
    ``eta``: step of the multipliers, by default 2 / (gap H sqrt(K)). ``ridge``: of the regression. ``clip``: the span
    of values in units of zeta. ``optimistic_cost``: as in PSConRL. If costs are learned, it plans with their means.
    """

    name: ClassVar[str] = "pd-lscvi-ucb"
    theory_constants: ClassVar[tuple[str, ...]] = ("gap", "span_objective", "span_limited")
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
        span_objective: float = 1.0,
        span_limited: ArrayLike = 1.0,
        bonus: float = 1.0,
        eta: float | None = None,
        ridge: float = 1.0,
        clip: float = 2.0,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.horizon = as_count(horizon, "horizon")
        self.H = max(1, math.floor(special.cbrt(float(self.horizon)))) if H is None else as_count(H, "H")
        need(8.0 * self.H * self.n_states * self.n_actions, f"a plan for blocks of {self.H:,} rounds", AgentError)
        self.gap = as_gap(gap, self.thresholds.size)
        self.span_objective = as_nonnegative(span_objective, "span_objective")
        self.span_limited = as_amounts(span_limited, "span_limited", self.thresholds.size)
        self.bonus = as_nonnegative(bonus, "bonus")
        self.eta = None if eta is None else as_positive(eta, "eta")
        self.ridge, self.clip = as_positive(ridge, "ridge"), as_nonnegative(clip, "clip")
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)

    def _units(self) -> Floats:
        """Return the units (m+1,) in which rewards are in [0, 1] and slacks in [-1, 1]."""
        costs = self._known_or_bold_costs().reshape(self.n_costs, -1)
        units = np.ptp(costs, axis=1)
        excess = np.abs(costs[1:] - self.thresholds[:, None]).max(axis=1)
        units[1:] = np.maximum(units[1:], excess)
        return np.where(units > 0, units, 1.0)

    def _ceilings(self, units: Floats) -> Floats:
        """Return the largest multipliers (m,), for slacks in their units."""
        return 2.0 * units[1:] / self.gap

    def _clipped_span(self, units: Floats) -> float:
        r"""Return :math:`\zeta = sp_r + \lambda \cdot sp_g`, for rewards and slacks in their units."""
        spans = np.broadcast_to(self.span_limited, self.thresholds.shape) / units[1:]
        return float(self.span_objective / units[0] + product(self.multipliers, spans))

    def begin(self, state: int) -> Episode:
        """Return the greedy policy for a block, (H, S, A)."""
        costs, units = self._known_or_bold_costs(), self._units()
        slacks = ((self.thresholds[:, None, None] - costs[1:]) / units[1:, None, None]).reshape(
            units.size - 1, costs[0].size
        )
        rewards = (costs[0].max() - costs[0]) / units[0] + product(self.multipliers, slacks).reshape(costs[0].shape)
        zeta = self._clipped_span(units)
        model = RidgeRegression.of(self.counts, self.ridge)
        gains = rewards + self.bonus * (zeta + 1.0) * costs[0].size * model.widths
        rows = model.indptr, model.successors, model.shares
        actions = clipped_block(gains.reshape(1, -1), *rows, self.n_states, self.H, self.clip * zeta)
        policy = one_hot(actions.ravel(), self.n_actions).reshape(self.H, self.n_states, self.n_actions)
        return Episode(policy, max_steps=self.H, kind="optimistic")

    def end(self, record: Record) -> None:
        """Learn from a block, and update the multipliers by its slack."""
        super().end(record)
        units = self._units()
        ceilings = self._ceilings(units)
        blocks = self.horizon / self.H
        eta = ceilings / (self.H * math.sqrt(blocks)) if self.eta is None else self.eta
        slack = (record.steps * self.thresholds - record.cost_sums[1:].sum(axis=1)) / units[1:]
        self.multipliers = np.clip(self.multipliers - eta * slack, 0.0, ceilings)
