"""A model in rational numbers: its doubles as they are, and every row with a sum of exactly one.

The probability of staying in a state is one minus those of moving to others, whatever the rounded entry of the model
is. If rounding makes these exceed one, they are divided by their sum, as ``check_proof`` does. Certificates in doubles
use the former convention: they need P h - h, a sum over the moves.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.model.cmdp import CMDP

ZERO, UNITY = Fraction(0), Fraction(1)


class RationalMoves(NamedTuple):
    """Probabilities of moving from one state to others, as integers over a common denominator."""

    to: dict[int, int]
    denominator: int


class RationalModel(NamedTuple):
    """A model whose states are all reachable, in rational numbers."""

    moves: list[dict[int, RationalMoves]]  # (S,) by available action
    costs: list[list[list[int]]]  # (m+1, S, A) over ``cost_denominator``
    cost_denominator: int
    thresholds: list[Fraction]  # (m,)
    initial: list[Fraction]  # (S,) of sum one

    @classmethod
    def of(cls, cmdp: CMDP) -> "RationalModel":
        """Return a model in rational numbers."""
        A = cmdp.n_actions
        P = cmdp.transition.csr()
        moves: list[dict[int, RationalMoves]] = [{} for _ in range(cmdp.n_states)]
        for s, a in np.argwhere(cmdp.available).tolist():
            row = slice(P.indptr[s * A + a], P.indptr[s * A + a + 1])
            entries = zip(P.indices[row].tolist(), P.data[row].tolist(), strict=True)
            moves[s][a] = as_moves({j: Fraction(p) for j, p in entries if p > 0 and j != s})
        costs = np.where(cmdp.available, cmdp.costs, 0.0)
        rationals = [Fraction(c) for c in costs.ravel().tolist()]
        numerators, denominator = over_one_denominator(rationals)
        table = np.array(numerators, dtype=object).reshape(costs.shape).tolist()
        return cls(moves, table, denominator, fractions_of(cmdp.thresholds), normalised(cmdp.initial))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.moves)

    @property
    def n_costs(self) -> int:
        """Number of costs, including the objective."""
        return len(self.costs)


def as_moves(probabilities: dict[int, Fraction]) -> RationalMoves:
    """Return probabilities of moves as integers over a common denominator, divided by their sum if it exceeds one."""
    numerators, denominator = over_one_denominator(probabilities.values())
    return RationalMoves(dict(zip(probabilities, numerators, strict=True)), max(denominator, sum(numerators)))


def over_one_denominator(values: Iterable[Fraction]) -> tuple[list[int], int]:
    """Return the numerators of fractions over their least common denominator.

    >>> over_one_denominator([Fraction(1, 2), Fraction(2, 3)])
    ([3, 4], 6)
    """
    given = list(values)
    denominator = lcm(*(x.denominator for x in given))
    return [x.numerator * (denominator // x.denominator) for x in given], denominator


def fractions_of(values: Floats) -> list[Fraction]:
    """Return doubles as fractions."""
    return [Fraction(float(x)) for x in values]


def normalised(values: Floats) -> list[Fraction]:
    """Return doubles as fractions, divided by their exact sum."""
    exact = fractions_of(values)
    total = sum(exact, ZERO)
    return [x / total for x in exact]
