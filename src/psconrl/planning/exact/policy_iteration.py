r"""Multichain policy iteration in rational numbers (Puterman 1994, section 9.2), for a weighted sum of the costs.

An action is better if it leads to lower gains; among those that keep the gain, if :math:`c + P h - h` is below it. The
bias is zero in the first state of every closed class, and an action is kept unless another is strictly better. So no
policy occurs twice, and ties cannot make the iteration cycle.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from psconrl.errors import SolverError
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.rational_model import ZERO, RationalModel, over_one_denominator

MOST_ITERATIONS = 1000  # policy iteration takes about ten


class RationalColumn(NamedTuple):
    """A deterministic policy and its chain."""

    actions: tuple[int, ...]
    chain: RationalChain
    averages: list[Fraction]  # (m+1,)


class RationalOracle:
    """Evaluates deterministic policies, each once, and finds the cheapest for given weights."""

    def __init__(self, model: RationalModel) -> None:
        self.model = model
        self.columns: dict[tuple[int, ...], RationalColumn] = {}

    def column(self, actions: Sequence[int]) -> RationalColumn:
        """Return a policy with its averages."""
        key = tuple(int(a) for a in actions)
        if key not in self.columns:
            chain = RationalChain.of_actions(self.model, key)
            self.columns[key] = RationalColumn(key, chain, chain.averages)
        return self.columns[key]

    def cheapest(self, start: RationalColumn, weights: list[Fraction]) -> RationalColumn:
        """Return the policy of least weighted average from every state."""
        found = start
        for _ in range(MOST_ITERATIONS):
            better = improved(self.model, found, weights)
            if better is None:
                return found
            found = self.column(better)
        raise SolverError(f"no optimal policy after {MOST_ITERATIONS} policies")


def improved(model: RationalModel, column: RationalColumn, weights: list[Fraction]) -> tuple[int, ...] | None:
    """Return a better policy for these weights, or None if there is none."""
    gains, biases = weighted_sum(weights, column.chain.gains), weighted_sum(weights, column.chain.biases)
    reduced = Reduced(model, weights, gains, biases)
    for value_of in (reduced.rise, reduced.reduced_cost):
        actions = list(column.actions)
        for s, moves in enumerate(model.moves):
            best = ZERO
            for a in moves:
                if value_of == reduced.rise or reduced.rise(s, a) == 0:
                    value = value_of(s, a)
                    if value < best:
                        best, actions[s] = value, a
        if tuple(actions) != column.actions:
            return tuple(actions)
    return None


def weighted_sum(weights: list[Fraction], vectors: list[list[Fraction]]) -> list[Fraction]:
    """Return the weighted sum of vectors."""
    return [
        sum((w * x for w, x in zip(weights, entries, strict=True) if w), ZERO) for entries in zip(*vectors, strict=True)
    ]


def priced_column(weights: list[Fraction], column: RationalColumn) -> Fraction:
    """Return the weighted average of a policy."""
    return sum((w * x for w, x in zip(weights, column.averages, strict=True) if w), ZERO)


class Reduced:
    """What pairs of a model change with respect to gains and biases, for weighted costs."""

    def __init__(
        self, model: RationalModel, weights: list[Fraction], gains: list[Fraction], biases: list[Fraction]
    ) -> None:
        S = model.n_states
        self.model = model
        # Over one denominator, sums over all moves of all pairs are sums of integers.
        per_unit = [w / model.cost_denominator for w in weights]
        numerators, self.denominator = over_one_denominator([*gains, *biases, *per_unit])
        self._gains, self._biases, self._weights = numerators[:S], numerators[S : 2 * S], numerators[2 * S :]
        self.level = min(self._gains) == max(self._gains)  # whether all gains are equal

    def rise(self, s: int, a: int) -> Fraction:
        """Return the mean increase of the gain by a pair."""
        return ZERO if self.level else Fraction(self._moved(s, a, self._gains), self._unit(s, a))

    def reduced_cost(self, s: int, a: int) -> Fraction:
        """Return the weighted cost of a pair plus the mean change of the bias, minus the gain."""
        cost = sum(w * row[s][a] for w, row in zip(self._weights, self.model.costs, strict=True))
        ahead = (cost - self._gains[s]) * self.model.moves[s][a].denominator
        return Fraction(ahead + self._moved(s, a, self._biases), self._unit(s, a))

    def _moved(self, s: int, a: int, values: list[int]) -> int:
        here = values[s]
        return sum(p * (values[j] - here) for j, p in self.model.moves[s][a].to.items())

    def _unit(self, s: int, a: int) -> int:
        return self.model.moves[s][a].denominator * self.denominator
