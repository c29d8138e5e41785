r"""Long-run averages and biases of a stationary policy in rational numbers; its chain may have several closed classes.

In every closed class :math:`g + \sum_j P_{sj} (h_s - h_j) = c_s`, with :math:`h = 0` in its first state. Transient
states are absorbed with probabilities B, have gains :math:`B g`, and biases that follow from the same equation.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from psconrl.base.arrays import Floats
from psconrl.planning.exact.linear import solve_integers
from psconrl.planning.exact.rational_model import (
    UNITY,
    ZERO,
    RationalModel,
    RationalMoves,
    as_moves,
    normalised,
    over_one_denominator,
)


class LongRun(NamedTuple):
    """Gains and biases (m+1, S) of a chain, and the probabilities (S, classes) of being absorbed."""

    gains: list[list[Fraction]]
    biases: list[list[Fraction]]
    absorbed: list[list[Fraction]]


class RationalChain:
    """The chain of a policy with its costs, and what follows from them."""

    def __init__(self, model: RationalModel, policy: list[dict[int, Fraction]]) -> None:
        self.model, self.policy = model, policy
        self.moves = [_mixed_moves(model.moves[s], shares) for s, shares in enumerate(policy)]
        self._costs = [
            [
                sum((share * row[s][a] for a, share in shares.items()), ZERO) / model.cost_denominator
                for s, shares in enumerate(policy)
            ]
            for row in model.costs
        ]
        self.classes = closed_classes([list(move.to) for move in self.moves])

    @property
    def gains(self) -> list[list[Fraction]]:
        """Averages (m+1, S) from every state."""
        return self._solution.gains

    @property
    def biases(self) -> list[list[Fraction]]:
        """Relative costs (m+1, S), zero in the first state of every closed class."""
        return self._solution.biases

    @classmethod
    def of_actions(cls, model: RationalModel, actions: Sequence[int]) -> "RationalChain":
        """Return the chain of a deterministic policy."""
        return cls(model, [{int(a): UNITY} for a in actions])

    @classmethod
    def of_doubles(cls, model: RationalModel, policy: Floats) -> "RationalChain":
        """Return the chain of a policy (S, A) given in doubles, divided by their exact sum in every state."""
        rows = [normalised(row) for row in policy]
        return cls(model, [{a: x for a, x in enumerate(row) if x > 0} for row in rows])

    @cached_property
    def averages(self) -> list[Fraction]:
        """Averages (m+1,) from the initial distribution."""
        initial = self.model.initial
        if len(self.classes) == 1:
            return [row[0] for row in self.gains]
        return [sum((b * g for b, g in zip(initial, row, strict=True) if b), ZERO) for row in self.gains]

    @cached_property
    def distribution(self) -> list[Fraction]:
        """Long-run frequencies of the states (S,) from the initial distribution."""
        result = [ZERO] * self.model.n_states
        for k, states in enumerate(self.classes):
            share = sum(
                (b * into[k] for b, into in zip(self.model.initial, self._solution.absorbed, strict=True) if b), ZERO
            )
            if share:
                for s, mass in zip(states, self._stationary(states), strict=True):
                    result[s] = share * mass
        return result

    @property
    def absorbed(self) -> list[list[Fraction]]:
        """Probabilities (S, classes) of being absorbed in every closed class."""
        return self._solution.absorbed

    @cached_property
    def _solution(self) -> "LongRun":
        S, q = self.model.n_states, self.model.n_costs
        gains, biases = [[ZERO] * S for _ in range(q)], [[ZERO] * S for _ in range(q)]
        absorbed = [[ZERO] * len(self.classes) for _ in range(S)]
        for k, states in enumerate(self.classes):
            for i, (gain, relative) in enumerate(self._of_class(states)):
                for s, h in zip(states, relative, strict=True):
                    gains[i][s], biases[i][s] = gain, h
            for s in states:
                absorbed[s][k] = UNITY
        recurrent = {s for states in self.classes for s in states}
        transient = [s for s in range(S) if s not in recurrent]
        if not transient:
            return LongRun(gains, biases, absorbed)
        into = [[_towards(self.moves[s], states) for s in transient] for states in map(set, self.classes)]
        for k, column in enumerate(self._collect(transient, into)):
            for s, probability in zip(transient, column, strict=True):
                absorbed[s][k] = probability
        for row in gains:
            of_class = [row[states[0]] for states in self.classes]
            for s in transient:
                row[s] = sum((b * g for b, g in zip(absorbed[s], of_class, strict=True) if b), ZERO)
        onward = [
            [cost[s] - gain[s] + _mean(self.moves[s], bias, recurrent) for s in transient]
            for cost, gain, bias in zip(self._costs, gains, biases, strict=True)
        ]
        for row, column in zip(biases, self._collect(transient, onward), strict=True):
            for s, h in zip(transient, column, strict=True):
                row[s] = h
        return LongRun(gains, biases, absorbed)

    def _of_class(self, states: list[int]) -> list[tuple[Fraction, list[Fraction]]]:
        """Return the gain and the biases of a closed class, for every cost."""
        A = self._generator(states)
        scales = [self.moves[s].denominator for s in states]
        for row, scale in zip(A, scales, strict=True):
            row[0] = scale  # the bias of the first state is zero; the unknown in its place is the gain
        found = _solved(A, [[cost[s] for s in states] for cost in self._costs], scales)
        return [(x[0], [ZERO, *x[1:]]) for x in found]

    def _stationary(self, states: list[int]) -> list[Fraction]:
        """Return the stationary distribution of a closed class."""
        scales = [self.moves[s].denominator for s in states]
        A = [list(row) for row in zip(*self._generator(states), strict=True)]
        A[0] = scales
        numerators, denominator = solve_integers(A, [[1] + [0] * (len(states) - 1)])
        return [Fraction(x * scale, denominator) for x, scale in zip(numerators[0], scales, strict=True)]

    def _collect(self, transient: list[int], right: list[list[Fraction]]) -> list[list[Fraction]]:
        """Return the mean sum of each quantity over the rounds until absorption, from every transient state."""
        return _solved(self._generator(transient), right, [self.moves[s].denominator for s in transient])

    def _generator(self, states: list[int]) -> list[list[int]]:
        """Return I - P on some states, with every row times its denominator."""
        place = {s: k for k, s in enumerate(states)}
        rows = []
        for k, s in enumerate(states):
            row = [0] * len(states)
            for j, p in self.moves[s].to.items():
                row[k] += p
                if j in place:
                    row[place[j]] -= p
            rows.append(row)
        return rows


def _solved(A: list[list[int]], right: list[list[Fraction]], scales: list[int]) -> list[list[Fraction]]:
    """Solve A x = scales * b for several b."""
    given = [over_one_denominator(b) for b in right]
    B = [[x * scale for x, scale in zip(b, scales, strict=True)] for b, _ in given]
    numerators, common = solve_integers(A, B)
    return [
        [Fraction(x, common * denominator) for x in column]
        for column, (_, denominator) in zip(numerators, given, strict=True)
    ]


def _mixed_moves(moves: dict[int, RationalMoves], shares: dict[int, Fraction]) -> RationalMoves:
    if len(shares) == 1:
        return moves[next(iter(shares))]
    total: dict[int, Fraction] = {}
    for a, share in shares.items():
        for j, p in moves[a].to.items():
            total[j] = total.get(j, ZERO) + share * p / moves[a].denominator
    return as_moves(total)


def _towards(moves: RationalMoves, states: set[int]) -> Fraction:
    return Fraction(sum(p for j, p in moves.to.items() if j in states), moves.denominator)


def _mean(moves: RationalMoves, values: list[Fraction], states: set[int]) -> Fraction:
    return sum((p * values[j] for j, p in moves.to.items() if j in states), ZERO) / moves.denominator


def closed_classes(successors: list[list[int]]) -> list[list[int]]:
    """Return the closed classes of a graph, each sorted, ordered by their first states.

    >>> closed_classes([[1], [0], [0, 3], []])
    [[0, 1], [3]]
    """
    reach: dict[int, set[int]] = {}
    found = []
    for s in range(len(successors)):
        reach[s] = _reached(successors, s)
    for s in range(len(successors)):
        if s == min(reach[s]) and all(s in reach[j] for j in reach[s]):
            found.append(sorted(reach[s]))
    return found


def _reached(successors: list[list[int]], start: int) -> set[int]:
    reached, stack = {start}, [start]
    while stack:
        new = [j for j in successors[stack.pop()] if j not in reached]
        reached.update(new)
        stack += new
    return reached
