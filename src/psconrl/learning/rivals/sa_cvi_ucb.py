r"""SA-CVI-UCB (Yu, Bae and Lee 2026, arXiv 2609.39093): the state is augmented by the cumulative violation.

The account z accumulates the excess of the constrained cost, on a grid of width :math:`\Delta`: z' is the nearest
multiple of :math:`\Delta` to z - g(s,a), with g in [-1,1] the slack of a round. A potential :math:`\Phi(z)`, a parabola
up to W and linear beyond, prices it: the reward is :math:`r + \Phi(z) - \Phi(z')`. The T rounds are split into blocks
of :math:`H = W = \lfloor\sqrt T\rfloor`; each is planned by optimistic value iteration in the empirical model,

.. math:: Q_h(s,a,z) = r + \Phi(z) - \Phi(z') + \hat p \cdot V_{h+1}(\cdot, z') + \beta / \sqrt{N^+},\qquad
          V_h(s,z) = \min\{\max_a Q_h(s,a,z),\ \min_{s'} \max_a Q_h(s',a,z) + 2C\}

and played greedily in (s, z). Regret and violation :math:`\tilde O(\sqrt T)` in weakly communicating models with one
constraint and known costs, if spans and the Slater gap are known.

The rewards telescope: :math:`U_h = V_h - \Phi(z)` satisfies the same iteration without the potential, with terminal
value :math:`U_{H+1} = -\Phi(z)` and the same clip. In each round z moves by one of a few amounts, so only the positions
reachable within the block are computed (``kernels.agents.sa_cvi``), H^2/2 of them if the cost is 0 or 1.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.kernels.arithmetic import special
from psconrl.learning.account_agent import AccountAgent
from psconrl.learning.account_blocks import (
    AccountMoves,
    Block,
    Potential,
    moves_and_unit,
    need_room,
)
from psconrl.learning.argument_checks import (
    as_constants,
    as_failure_probability,
    as_nonnegative,
    as_optimistic_cost,
    as_positive,
)
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode


class SACVIUCB(AccountAgent):
    """SA-CVI-UCB, clipped optimistic value iteration over state and account. One constraint; must know the horizon.

    ``H``: length of a block and width of the potential, by default the root of the horizon. ``gap``: the Slater gap,
    by how much a policy can stay below the threshold, in units of the constrained cost. ``span_objective``,
    ``span_limited``: the spans of the biases of the optimal policy, in units of the costs. ``constants``: "practical",
    those of the authors' runs, or "theory", with failure probability ``delta``. ``bonus``: a factor of the bonus, 1 as
    published. ``grid``: the width of the account's grid in ranges of the constrained cost, by default
    0.1 / ceil(0.1 sqrt(T)), for the theory 1 / sqrt(T). ``optimistic_cost``: as in PSConRL. If costs are learned, the
    agent plans with their means, and the account accumulates the observed costs.
    """

    name: ClassVar[str] = "sa-cvi-ucb"
    theory_constants: ClassVar[tuple[str, ...]] = ("gap", "span_objective", "span_limited")

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        H: int | None = None,
        gap: float = 0.1,
        span_objective: float = 1.0,
        span_limited: float = 1.0,
        constants: str = "practical",
        delta: float = 0.05,
        bonus: float = 1.0,
        grid: float | None = None,
        optimistic_cost: float | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        self.gap = as_positive(gap, "gap")
        self.span_objective = as_nonnegative(span_objective, "span_objective")
        self.span_limited = as_nonnegative(span_limited, "span_limited")
        self.constants = as_constants(constants)
        self.delta = as_failure_probability(delta)
        self.bonus = as_nonnegative(bonus, "bonus")
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self._open_account(horizon, H, grid, "'psconrl' or 'fha'")

    @property
    def cell(self) -> float:
        r"""The width :math:`\Delta` of the grid, in ranges of the constrained cost."""
        theory = self.grid is None and self.constants == "theory"
        return 1.0 / math.sqrt(self.horizon) if theory else super().cell

    def begin(self, state: int) -> Episode:
        """Continue the block, or plan a new one; an episode ends where the action begins to depend on the account."""
        block = self._block
        if block is None or block.step >= self.H:
            block = self._block = self._planned_block()
        policy = block.next_steps(self.n_actions)
        return Episode(policy, max_steps=len(policy))

    def end(self, record: Record) -> None:
        """Learn from an episode, and update the account: by the known costs, rounded, or else by the observed ones."""
        super().end(record)
        block = self._block
        excess = None if block is None else block.advance(record)
        if excess is None or self.costs is None:
            limit = self.thresholds[0] if block is None else block.limit
            excess = float(record.cost_sums[1].sum() - record.steps * limit)
        self.account += excess

    def _planned_block(self) -> Block:
        """Plan a block by value iteration in the empirical model, from the present account."""
        costs = self._known_or_bold_costs()
        moves, unit = self._moves()
        need_room(self.H, moves.reach, self.n_states, self.cell)
        at = round(self.account / (unit * self.cell))
        potential = self._potential(unit)
        C = self._range_of_values(potential, at * self.cell, unit)
        visits = self.counts.visits
        rewards = (costs[0].max() - costs[0]).ravel() / self._objective_unit()
        gains = rewards + self._bonus(C) / np.sqrt(np.maximum(visits, 1))
        seen = self.counts.moves
        frequencies = seen.data / np.repeat(visits, np.diff(seen.indptr))
        prices = potential(self.cell * (at + moves.positions(self.H).astype(np.float64)))
        rows, limit = (seen.indptr, seen.indices, frequencies), float(self.thresholds[0])
        return Block.planned(self.H, moves, unit * self.cell, limit, gains, rows, prices, 2.0 * C)

    def _moves(self) -> tuple[AccountMoves, float]:
        """Return the moves of the account, and the unit of the constrained cost, in which its excess is in [-1,1]."""
        return moves_and_unit(self._known_or_mean_costs()[1], float(self.thresholds[0]), self.cell)

    def _objective_unit(self) -> float:
        return float(np.ptp(self._known_or_bold_costs()[0])) or 1.0

    def _potential(self, unit: float) -> Potential:
        r"""Return the potential with slope :math:`\Lambda = 2 / \gamma` and width W = H."""
        return Potential(2.0 * unit / self.gap, self.H)

    def _range_of_values(self, potential: Potential, z: float, unit: float) -> float:
        r"""Return the constant C of the clip and of the bonus.

        Practical: :math:`sp_r + \Phi'(z)\, sp_g`. Theory: :math:`sp_r + \Lambda\, sp_g + (\Lambda/W)(sp_g^2 +
        2H (sp_g + 2)^2) + H \Lambda \Delta / 2`.
        """
        sp_r, sp_g = self.span_objective / self._objective_unit(), self.span_limited / unit
        if self.constants == "practical":
            return sp_r + potential.derivative(z) * sp_g
        slope, H = potential.slope, self.H
        curved = slope / potential.width * (sp_g * sp_g + 2.0 * H * (sp_g + 2.0) * (sp_g + 2.0))
        return sp_r + slope * sp_g + curved + H * slope * self.cell / 2.0

    def _bonus(self, C: float) -> float:
        r""":math:`\beta = C S`, or in theory :math:`2 C S \sqrt{\log(2 T S^2 A / \delta) / 2}`; times ``bonus``."""
        S, A = self.n_states, self.n_actions
        if self.constants == "practical":
            return self.bonus * C * S
        return self.bonus * 2.0 * C * S * math.sqrt(special.log(2.0 * self.horizon * S**2 * A / self.delta) / 2.0)
