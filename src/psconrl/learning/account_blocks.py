"""Blocks of rounds that are planned over the state and an account of the constrained cost, for agents that do so.

The account is what the constrained cost has exceeded its threshold by so far. A potential prices it at the end of a
block. In each round it moves by one of a few multiples of the width of a grid, so only the positions that can be
reached within the block are computed (``kernels.agents.sa_cvi``), H^2/2 of them if the cost is 0 or 1.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints, Places, Small
from psconrl.base.caps import LARGEST_COST, MOST_ROUNDS, need
from psconrl.base.saved_fields import integer, integers, read_fields, real
from psconrl.errors import AgentError
from psconrl.kernels.agents.sa_cvi import plan_block
from psconrl.kernels.agents.sa_cvi_blocks import block_averages, first_entry, shared_steps
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.learning.posterior.counts import Record

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


def moves_and_unit(cost: Floats, threshold: float, cell: float) -> tuple[AccountMoves, float]:
    """Return the moves of the account by each pair, and the unit of the cost (S, A), in which its excess is in [-1,1].

    ``cell``: the width of the grid, in these units.
    """
    excess = cost - threshold
    unit = float(max(np.ptp(cost), np.abs(excess).max())) or 1.0
    return AccountMoves.of(excess / unit, cell), unit


def practical_cell(horizon: int) -> float:
    r"""Return a width of the grid in units of the cost, :math:`0.1 / \lceil 0.1 \sqrt T \rceil`."""
    return 0.1 / math.ceil(0.1 * math.sqrt(horizon))


def need_room(length: int, reach: int, n_states: int, cell: float) -> None:
    """Raise an error if the plan of a block would take too much memory."""
    size = 2.0 * first_entry(length, reach, n_states) + 16.0 * n_states * length * reach
    need(size, f"a plan for blocks of {length:,} rounds with a grid of {cell:.2g}", AgentError)


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

    @classmethod
    def planned(
        cls,
        length: int,
        moves: AccountMoves,
        cell: float,
        limit: float,
        rewards: Floats,
        rows: tuple[Places, Places, Floats],
        prices: Floats,
        clip: float,
    ) -> "Block":
        """Plan a block by value iteration over state and account.

        ``cell``, ``limit``: in units of the constrained cost. ``rewards`` (S*A,), with bonuses. ``rows``: the model in
        CSR form; an empty row, of a pair never tried, is uniform. ``prices``: of the account at every position at the
        end. ``clip``: how far a value may exceed the least of its position.
        """
        n_states = moves.increments.shape[0]
        actions = np.empty(first_entry(length, moves.reach, n_states), dtype=np.uint16)
        plan_block(length, moves.reach, rewards, *rows, moves.increments.ravel(), -prices, clip, actions)
        return cls(length, moves, cell, limit, actions)

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

    def next_steps(self, n_actions: int) -> Floats:
        """Return a policy (n, S, A) for the next steps, in which the action does not depend on the account."""
        n_states = self.moves.increments.shape[0]
        chosen = np.empty((MOST_STEPS, n_states), dtype=np.int64)
        reach = self.moves.reach
        steps = shared_steps(self.actions, self.length, reach, self.step, self.position, MOST_STEPS, chosen)
        return one_hot(chosen[:steps].ravel(), n_actions).reshape(steps, n_states, n_actions)

    def saved(self) -> dict[str, Any]:
        """Return the block as plain data."""
        return {
            "lowest": self.moves.lowest,
            "stride": self.moves.stride,
            "increments": self.moves.increments,
            "cell": self.cell,
            "limit": self.limit,
            "actions": self.actions,
            "step": self.step,
            "position": self.position,
        }

    @classmethod
    def restored(cls, saved: dict[str, Any], length: int, n_states: int, n_actions: int, cell: float) -> "Block":
        """Return a block from a file, checked so that compiled code can rely on it."""
        moves = read_fields(
            saved,
            {
                "lowest": integer(-MOST_ROUNDS),
                "stride": integer(1),
                "increments": integers((n_states, n_actions)),
            },
        )
        reach = int(moves["increments"].max())
        need_room(length, reach, n_states, cell)
        size = first_entry(length, reach, n_states)
        planned = read_fields(
            saved,
            {
                "cell": real(0.0),
                "limit": real(-LARGEST_COST, LARGEST_COST),
                "actions": integers((size,), 0, n_actions - 1),
                "step": integer(),
            },
        )
        position = read_fields(saved, {"position": integer(0, planned["step"] * reach)})
        planned["actions"] = planned["actions"].astype(np.uint16)
        return cls(length, AccountMoves(**moves), **planned, **position)
