"""A model as plain sequences, its digest, and the scale of each cost."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

PRECISION_OF_COSTS = Fraction(1, 10**6)  # of a cost: times the tolerances, that is the precision of doubles
MET = 200  # a scale is at most this many times the distance of an average from the nearer end of the range


class Scale(NamedTuple):
    """The range of a cost over the reachable pairs, and its outermost distinct values."""

    low: Fraction
    second_low: Fraction
    second_high: Fraction
    high: Fraction

    @classmethod
    def of(cls, values: Iterable[float]) -> "Scale":
        """Return the scale of the values of a cost."""
        least, *others = sorted(set(values))
        first, last = Fraction(least), Fraction(others[-1] if others else least)
        second_low = Fraction(others[0]) if others else first
        second_high = Fraction(others[-2]) if len(others) > 1 else first
        return cls(first, second_low, second_high, last)

    def unit(self, average: Fraction) -> Fraction:
        r"""Return the unit in which deviations from an average are judged, a function of the model and the average.

        With a and b the least and the largest value of the cost, a' and b' those next to them, and x the average, it is

        .. math::

            U(x) = \max\{10^{-6} \max(|x|, a' - a),\; \min\{b - a,\; 200 \max(0, d)\}\}, \quad
            d = \min(x - a, \max(b - x, b - b'))

        or for a constant cost its size, or 1 if that is 0. So a single entry of 1e11 for "never do this" does not make
        all deviations look small. The function U changes by at most 200 times the change of x.
        """
        extent = self.high - self.low
        if not extent:
            return abs(self.low) or Fraction(1)
        above = max(self.high - average, self.high - self.second_high)
        met = MET * max(Fraction(0), min(average - self.low, above))
        return max(PRECISION_OF_COSTS * max(abs(average), self.second_low - self.low), min(extent, met))


@dataclass(frozen=True)
class PlainModel:
    """A model; row ``s * A + a`` of the transitions has entries ``start[row]:start[row + 1]``.

    The rows of actions that are not available are empty, and their costs are 0.
    """

    n_states: int
    n_actions: int
    start: Sequence[int]
    columns: Sequence[int]
    probabilities: Sequence[float]
    costs: Sequence[Sequence[float]]  # the objective first, each of length S * A
    thresholds: Sequence[float]
    initial: Sequence[float]
    available: Sequence[int]  # 0 or 1, of length S * A
    cost_names: Sequence[str]
    state_names: Sequence[str] | None = None
    action_names: Sequence[str] | None = None
    negated: frozenset[str] = field(default_factory=frozenset)  # costs that are shown with the opposite sign
    units: Sequence[str] | None = None  # of the averages

    def pair(self, row: int) -> str:
        """Return the names of a state and an action."""
        s, a = divmod(row, self.n_actions)
        return f"state {self.state(s)}, action {self.action_names[a] if self.action_names else a}"

    def state(self, s: int) -> str:
        """Return the name of a state."""
        return self.state_names[s] if self.state_names else str(s)

    def actions(self, s: int) -> Iterator[int]:
        """Yield the rows of the available actions of a state."""
        return (row for row in range(s * self.n_actions, (s + 1) * self.n_actions) if self.available[row])

    def shown(self, i: int, value: float | Fraction) -> str:
        """Return a number of cost i to ten digits, with the sign that users see."""
        return f"{as_float(-value if self.cost_names[i] in self.negated else value) + 0.0:.10g}"

    def shown_exactly(self, i: int, value: float) -> str:
        """Return a double of cost i with as many digits as identify it, with the sign that users see."""
        return repr((-value if self.cost_names[i] in self.negated else value) + 0.0).removesuffix(".0")

    def with_unit(self, i: int, text: str) -> str:
        """Return a number with the unit of the average of cost i."""
        return f"{text} {self.units[i]}".rstrip() if self.units else text

    def limit(self, i: int) -> str:
        """Return the limit on cost i as users see it."""
        side = "at least" if self.cost_names[i] in self.negated else "at most"
        return f"{side} {self.with_unit(i, self.shown_exactly(i, self.thresholds[i - 1]))}"

    def reached(self, rows_of: Callable[[int], Iterator[int]]) -> list[int]:
        """Return the states that are reached from the initial distribution by the given rows of each state."""
        todo = [s for s, x in enumerate(self.initial) if x > 0]
        seen = bytearray(self.n_states)
        for s in todo:
            seen[s] = 1
        for s in todo:
            for row in rows_of(s):
                for k in range(self.start[row], self.start[row + 1]):
                    if self.probabilities[k] > 0 and not seen[self.columns[k]]:
                        seen[self.columns[k]] = 1
                        todo.append(self.columns[k])
        return todo

    @cached_property
    def scales(self) -> list[Scale]:
        """The scale of every cost over the reachable pairs."""
        pairs = [row for s in self.reached(self.actions) for row in self.actions(s)]
        return [Scale.of(cost[row] for row in pairs) for cost in self.costs]

    def digest(self) -> str:
        """Return the digest of transitions, available actions and costs, as ``psconrl`` computes it."""
        S, entries = self.n_states, range(len(self.columns))
        rows = (row for row in range(len(self.start) - 1) for _ in range(self.start[row + 1] - self.start[row]))
        kept = [p != 0.0 for p in self.probabilities]
        places = array("q", (row * S + self.columns[k] for row, k in zip(rows, entries, strict=True) if kept[k]))
        values = array("d", (self.probabilities[k] for k in entries if kept[k]))
        whole = hashlib.sha256(array("q", (len(self.costs), S, self.n_actions)).tobytes())
        whole.update(hashlib.sha256(places.tobytes()).digest())
        whole.update(hashlib.sha256(values.tobytes()).digest())
        whole.update(bytes(self.available))
        for cost in self.costs:
            whole.update(array("d", (c + 0.0 for c in cost)).tobytes())
        return whole.hexdigest()


def rounded_up(x: Fraction, digits: int) -> str:
    """Return a number rounded up to some digits, so that a text with "at most" stays true."""
    return _rounded(x, Context(prec=digits, rounding=ROUND_CEILING))


def rounded_down(x: Fraction, digits: int) -> str:
    """Return a number rounded down to some digits."""
    return _rounded(x, Context(prec=digits, rounding=ROUND_FLOOR))


def _rounded(x: Fraction, context: Context) -> str:
    found = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    text = f"{float(found):.{context.prec}g}"
    return text if Decimal(text) == found else str(found)


def as_float(x: float | Fraction) -> float:
    """Return the nearest double, infinite if there is none."""
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
