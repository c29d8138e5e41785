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
reachable within the block are computed (``kernels.sa_cvi``), H^2/2 of them if the cost is 0 or 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats, Ints, Places, Small
from psconrl.caps import LARGEST_COST, MOST_ROUNDS, need
from psconrl.errors import AgentError
from psconrl.kernels import special
from psconrl.kernels.occupancy import one_hot
from psconrl.kernels.sa_cvi import plan_block
from psconrl.kernels.sa_cvi_blocks import block_averages, first_entry, shared_steps
from psconrl.learning.agent import Agent
from psconrl.learning.checks import (
    as_constants,
    as_count,
    as_failure_probability,
    as_fraction,
    as_nonnegative,
    as_optimistic_cost,
    as_positive,
)
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.saved_fields import integer, integers, maybe, read_fields, real

MOST_STEPS = 64  # longest episode; it is shorter where the action depends on the account


@dataclass(frozen=True)
class Potential:
    r"""The price of an account: 0 up to 0, :math:`\Lambda x^2 / 2W` up to W, :math:`\Lambda (x - W/2)` beyond.

    >>> price = Potential(slope=4.0, width=10)
    >>> price(np.array([-1.0, 5.0, 20.0])).tolist(), price.derivative(5.0)
    ([0.0, 5.0, 60.0], 2.0)
    """

    slope: float
    width: float

    def __call__(self, x: Floats) -> Floats:
        """Return the price of every account."""
        inside = np.clip(x, 0.0, self.width)
        return np.asarray(self.slope * (inside**2 / (2.0 * self.width) + np.maximum(x - self.width, 0.0)))

    def derivative(self, x: float) -> float:
        """Return the marginal price of an account."""
        return self.slope * min(max(x, 0.0), self.width) / self.width


class AccountMoves(NamedTuple):
    """The moves of the account by each pair, in widths of the grid: ``lowest + stride * increments``."""

    lowest: int
    stride: int
    increments: Ints  # (S, A), from 0 to reach

    @classmethod
    def of(cls, excess: Floats, grid: float) -> "AccountMoves":
        """Build the moves from the excess (S, A) of the pairs, rounded to the grid.

        >>> AccountMoves.of(np.array([[-0.3, 0.7]]), 0.1)
        AccountMoves(lowest=-3, stride=10, increments=array([[0, 1]]))
        """
        cells = np.rint(excess / grid).astype(np.int64)
        lowest = int(cells.min())
        stride = max(1, int(np.gcd.reduce(cells - lowest, axis=None)))
        return cls(lowest, stride, (cells - lowest) // stride)

    @property
    def reach(self) -> int:
        """The largest increment."""
        return int(self.increments.max())

    def positions(self, rounds: int) -> Ints:
        """Return the possible moves of the account after ``rounds`` rounds, in widths of the grid."""
        return rounds * self.lowest + self.stride * np.arange(rounds * self.reach + 1)


@dataclass(eq=False)
class Block:
    """A plan for H rounds, and the progress made in it."""

    length: int  # H
    moves: AccountMoves
    cell: float  # the width of the grid, in units of the constrained cost
    limit: float
    actions: Small
    step: int = 0
    position: int = 0  # of the account, in strides

    def advance(self, record: Record) -> float:
        """Advance by an episode; return by how much it moves the account, in units of the constrained cost."""
        strides = int((self.moves.increments * record.pairs).sum())
        self.step += record.steps
        self.position += strides
        return self.cell * (record.steps * self.moves.lowest + self.moves.stride * strides)

    def averages(self, indptr: Places, successors: Places, probabilities: Floats, costs: Floats, state: int) -> Floats:
        """Return the expected average costs of the rest of the block from a state, after 1, 2, ... rounds: (n, m+1)."""
        moves = self.moves
        rest = (self.actions, self.length, moves.reach, self.step, self.position, moves.increments.ravel())
        expected: Floats = block_averages(*rest, indptr, successors, probabilities, costs, state)
        return expected


class SACVIUCB(Agent):
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
        if self.thresholds.size != 1:
            raise AgentError(
                f"SA-CVI-UCB serves models with one limit; got {self.thresholds.size}. Use 'psconrl' or 'fha'."
            )
        self.horizon = as_count(horizon, "horizon")
        self.H = math.isqrt(self.horizon) if H is None else as_count(H, "H")
        self.gap = as_positive(gap, "gap")
        self.span_objective = as_nonnegative(span_objective, "span_objective")
        self.span_limited = as_nonnegative(span_limited, "span_limited")
        self.constants = as_constants(constants)
        self.delta = as_failure_probability(delta)
        self.bonus = as_nonnegative(bonus, "bonus")
        self.grid = None if grid is None else as_fraction(grid, "grid")
        self.optimistic_cost = as_optimistic_cost(optimistic_cost)
        self.account = 0.0  # cumulative excess over the threshold, in units of the constrained cost
        self._block: Block | None = None
        self._need_memory(self._moves()[0].reach if self.costs is not None else math.ceil(1.0 / self.cell) + 1)

    @property
    def cell(self) -> float:
        r"""The width :math:`\Delta` of the grid, in ranges of the constrained cost."""
        root = math.sqrt(self.horizon)
        usual = 0.1 / math.ceil(0.1 * root) if self.constants == "practical" else 1.0 / root
        return usual if self.grid is None else self.grid

    @property
    def longer_plan(self) -> Block | None:
        """The present block; an episode is a few steps of it."""
        return self._block

    def begin(self, state: int) -> Episode:
        """Continue the block, or plan a new one; an episode ends where the action begins to depend on the account."""
        block = self._block
        if block is None or block.step >= self.H:
            block = self._block = self._planned_block()
        chosen = np.empty((MOST_STEPS, self.n_states), dtype=np.int64)
        steps = shared_steps(block.actions, self.H, block.moves.reach, block.step, block.position, MOST_STEPS, chosen)
        policy = one_hot(chosen[:steps].ravel(), self.n_actions).reshape(steps, self.n_states, self.n_actions)
        return Episode(policy, max_steps=steps)

    def end(self, record: Record) -> None:
        """Learn from an episode, and update the account: by the known costs, rounded, or else by the observed ones."""
        super().end(record)
        block = self._block
        excess = None if block is None else block.advance(record)
        if excess is None or self.costs is None:
            limit = self.thresholds[0] if block is None else block.limit
            excess = float(record.cost_sums[1].sum() - record.steps * limit)
        self.account += excess

    def _limits_changed(self, playing: Record | None) -> None:
        if self._block is not None:
            self._block.step = self.H  # the present episode is the last of the block

    def _planned_block(self) -> Block:
        """Plan a block by value iteration in the empirical model, from the present account."""
        costs = self._known_or_bold_costs()
        moves, unit = self._moves()
        self._need_memory(moves.reach)
        at = round(self.account / (unit * self.cell))
        potential = self._potential(unit)
        C = self._range_of_values(potential, at * self.cell, unit)
        visits = self.counts.visits
        rewards = (costs[0].max() - costs[0]).ravel() / self._objective_unit()
        gains = rewards + self._bonus(C) / np.sqrt(np.maximum(visits, 1))
        seen = self.counts.moves
        block = Block(
            self.H,
            moves,
            unit * self.cell,
            float(self.thresholds[0]),
            np.empty(first_entry(self.H, moves.reach, self.n_states), dtype=np.uint16),
        )
        plan_block(
            self.H,
            moves.reach,
            gains,
            seen.indptr,
            seen.indices,
            seen.data / np.repeat(visits, np.diff(seen.indptr)),
            moves.increments.ravel(),
            -potential(self.cell * (at + moves.positions(self.H).astype(np.float64))),
            2.0 * C,
            block.actions,
        )
        return block

    def _moves(self) -> tuple[AccountMoves, float]:
        """Return the moves of the account, and the unit of the constrained cost, in which its excess is in [-1,1]."""
        cost = self._known_or_mean_costs()[1]
        excess = cost - self.thresholds[0]
        unit = float(max(np.ptp(cost), np.abs(excess).max())) or 1.0
        return AccountMoves.of(excess / unit, self.cell), unit

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

    def _need_memory(self, reach: int) -> None:
        """Raise an error if a plan would take too much memory, before the run has begun."""
        size = 2.0 * first_entry(self.H, reach, self.n_states) + 16.0 * self.n_states * self.H * reach
        need(size, f"a plan for blocks of {self.H:,} rounds with a grid of {self.cell:.2g}", AgentError)

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        block, saved = self._block, None
        if block is not None:
            saved = {
                "lowest": block.moves.lowest,
                "stride": block.moves.stride,
                "increments": block.moves.increments,
                "cell": block.cell,
                "limit": block.limit,
                "actions": block.actions,
                "step": block.step,
                "position": block.position,
            }
        return super().state() | {"account": self.account, "block": saved}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        saved = read_fields(state, {"account": real(), "block": maybe(self._saved_block)})
        self.account, self._block = saved["account"], saved["block"]

    def _saved_block(self, saved: dict[str, Any]) -> Block:
        """Return a block from a file, checked so that compiled code can rely on it."""
        moves = read_fields(
            saved,
            {
                "lowest": integer(-MOST_ROUNDS),
                "stride": integer(1),
                "increments": integers((self.n_states, self.n_actions)),
            },
        )
        reach = int(moves["increments"].max())
        self._need_memory(reach)
        size = first_entry(self.H, reach, self.n_states)
        planned = read_fields(
            saved,
            {
                "cell": real(0.0),
                "limit": real(-LARGEST_COST, LARGEST_COST),
                "actions": integers((size,), 0, self.n_actions - 1),
                "step": integer(),
            },
        )
        position = read_fields(saved, {"position": integer(0, planned["step"] * reach)})
        planned["actions"] = planned["actions"].astype(np.uint16)
        return Block(self.H, AccountMoves(**moves), **planned, **position)
