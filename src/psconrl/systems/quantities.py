r"""Long-run quantities that people limit: averages, ratios of averages, percentiles and expected shortfalls.

A limit on any of them is a linear limit on the long-run averages of some cost. Let :math:`E` be the average over all
rounds, or over those that a condition selects, with weight :math:`w`.

- A ratio: :math:`E[a]/E[b] \le \tau` is :math:`E[a - \tau b] \le 0`, if :math:`E[b] > 0`.
- A percentile: :math:`p_\alpha(x) \le v` is :math:`P(x > v) \le 1 - \alpha`.
- An expected shortfall, the mean of the worst share :math:`1 - \alpha`: :math:`\mathrm{cvar}_\alpha(x) \le \tau`
  if and only if :math:`y + E[(x - y)^+]/(1 - \alpha) \le \tau` for some level y, and one of the values of x is such a
  level (Rockafellar and Uryasev 2000). For all levels from a to b at once,

.. math:: \min_{a \le y \le b} \Big( y + \frac{(x - y)^+}{1 - \alpha} \Big)
          = \min(\max(x, a), b) + \frac{(x - b)^+}{1 - \alpha}.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.expressions import Expression

SAME_SHARE = 1e-9  # shares of rounds that differ by less are the same: that is how closely plans keep a threshold
ONE = Expression("1")


@dataclass(frozen=True, eq=False)
class Combination:
    """A sum of weighted expressions."""

    terms: tuple[tuple[float, Expression], ...]

    @classmethod
    def of(cls, text: str, weight: float = 1.0) -> "Combination":
        """Return one weighted expression."""
        return cls(((weight, Expression(text)),))

    @property
    def names(self) -> frozenset[str]:
        """Names of costs and variables that it uses."""
        return frozenset().union(*(expression.names for _, expression in self.terms))

    @property
    def name(self) -> str:
        """The sum as text."""
        return str(self)

    def __mul__(self, factor: float) -> "Combination":
        return Combination(tuple((factor * weight, expression) for weight, expression in self.terms))

    def __add__(self, other: "Combination") -> "Combination":
        return Combination((*self.terms, *other.terms))

    def __str__(self) -> str:
        shown = ""
        for weight, expression in self.terms:
            size = "" if abs(weight) == 1.0 else f"{abs(weight):.6g} * "
            sign = ("-" if weight < 0 else "") if not shown else (" - " if weight < 0 else " + ")
            shown += f"{sign}{size}{_enclosed(expression.text, len(self.terms) > 1 or bool(size or sign))}"
        return shown


@dataclass(frozen=True, eq=False)
class LinearLimit:
    """A cost, the sum of weighted expressions, that is kept at or below a threshold, or at or above one."""

    name: str
    terms: tuple[tuple[float, Expression], ...]
    threshold: float = 0.0
    at_least: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Names of costs and variables that it uses."""
        return Combination(self.terms).names

    def cost(self, columns: Mapping[str, NDArray[Any]], size: int) -> Any:
        """Return the cost at all points."""
        return sum(weight * numbers_of(term, columns) for weight, term in self.terms) + np.zeros(size)


def numbers_of(term: Expression, columns: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the values of an expression; raise an error if they are texts."""
    values = np.asarray(term(columns))
    if values.dtype.kind not in "biuf":
        raise ModelError(f"{quoted(term.text)} is text and has no average; state a share, as in P(mood == 'good')")
    return values.astype(np.float64)


class Averages(Protocol):
    """Long-run averages of one policy."""

    def mean(self, combination: Combination) -> float:
        """Return the average of a combination of expressions."""

    def distribution(self, expression: Expression, given: Expression) -> tuple[Floats, Floats]:
        """Return the values of an expression, increasing, and the average weight of each."""


@dataclass(frozen=True, eq=False)
class Quantity(ABC):
    """A long-run quantity, by the text in which it was stated."""

    text: str

    @property
    def is_share(self) -> bool:
        """Whether it is a share of something, for which people use percentage points."""
        return False

    @property
    @abstractmethod
    def parts(self) -> tuple[Combination, ...]:
        """What must be known at every point to evaluate it."""

    @property
    def denominator(self) -> Combination | None:
        """What it is divided by, if anything: its average must be positive."""
        return None

    @abstractmethod
    def limit(self, threshold: float, at_least: bool) -> LinearLimit:
        """Return the linear limit that keeps the quantity at or below a threshold, or at or above it."""

    @abstractmethod
    def value(self, averages: Averages) -> float:
        """Return the quantity; nan if it is not defined, as a ratio to zero."""

    def base(self, averages: Averages) -> float:
        """Return by how much the excess of the linear limit falls with the threshold: one, or the denominator."""
        return 1.0 if self.denominator is None else averages.mean(self.denominator)

    @property
    def names(self) -> frozenset[str]:
        """Names of costs and variables that it uses."""
        return frozenset().union(*(part.names for part in self.parts))


@dataclass(frozen=True, eq=False)
class Mean(Quantity):
    """The average of a combination of expressions."""

    top: Combination

    @property
    def is_share(self) -> bool:
        """Whether it is the share of rounds in which a condition holds."""
        return self.text.startswith("P(") and len(self.top.terms) == 1 and self.top.terms[0][0] == 1.0

    @property
    def parts(self) -> tuple[Combination, ...]:
        """The combination."""
        return (self.top,)

    def limit(self, threshold: float, at_least: bool) -> LinearLimit:
        """Return the limit itself."""
        return LinearLimit(self.text, self.top.terms, threshold, at_least)

    def value(self, averages: Averages) -> float:
        """Return the average."""
        return averages.mean(self.top)


@dataclass(frozen=True, eq=False)
class Ratio(Quantity):
    """The average of one combination of expressions divided by that of another."""

    top: Combination
    bottom: Combination

    @property
    def is_share(self) -> bool:
        """True: one part of another."""
        return True

    @property
    def parts(self) -> tuple[Combination, ...]:
        """Numerator and denominator."""
        return self.top, self.bottom

    def cleared(self, threshold: float) -> Combination:
        """Return the numerator minus the threshold times the denominator."""
        return self.top + self.bottom * -threshold if threshold else self.top

    def limit(self, threshold: float, at_least: bool) -> LinearLimit:
        """Return the limit on the numerator minus the threshold times the denominator."""
        cleared = self.cleared(threshold)
        return LinearLimit(str(cleared), cleared.terms, 0.0, at_least)

    def value(self, averages: Averages) -> float:
        """Return the ratio."""
        bottom = averages.mean(self.bottom)
        return averages.mean(self.top) / bottom if bottom else float("nan")

    @property
    def denominator(self) -> Combination:
        """The denominator."""
        return self.bottom


@dataclass(frozen=True, eq=False)
class Percentile(Quantity):
    """The least value that is exceeded in at most a share of the rounds.

    With ``upper``, the largest value that is not reached in at most a share of the rounds: what is limited from below.
    Every number between both is a percentile, too; with ``nearest``, it is the one nearest to this range.
    """

    share: Fraction  # of rounds at or below it
    expression: Expression
    given: Expression = ONE
    upper: bool = False
    nearest: tuple[float, float] | None = None

    @property
    def parts(self) -> tuple[Combination, ...]:
        """The expression and the weight of a round."""
        return Combination(((1.0, self.expression),)), Combination(((1.0, self.given),))

    def within(self, low: float | None, high: float | None) -> "Percentile":
        """Return the percentile that is to be at least one number, at most another, or both."""
        both = None if low is None or high is None else (low, high)
        return replace(self, upper=high is None, nearest=both)

    def outside(self, value: float, below: bool) -> Quantity:
        """Return the share of rounds above a value, or below it."""
        number = int(value) if float(value).is_integer() else value
        condition = f"{_enclosed(self.expression.text)} {'<' if below else '>'} {quoted(number)}"
        if self.given is ONE:
            return Mean(f"P({condition})", Combination.of(condition))
        both = f"({condition}) * ({self.given.text})"
        return Ratio(f"P({condition}, given={self.given.text})", Combination.of(both), Combination.of(self.given.text))

    def allowed(self, below: bool) -> float:
        """Return the share of rounds that may lie above the percentile, or below it."""
        return float(self.share if below else 1 - self.share)

    def limit(self, threshold: float, at_least: bool) -> LinearLimit:
        """Return the limit on the share of rounds on the other side of the threshold."""
        return self.outside(threshold, at_least).limit(self.allowed(at_least), False)

    def value(self, averages: Averages) -> float:
        """Return the percentile."""
        values, weights = averages.distribution(self.expression, self.given)
        total = weights.sum()
        if not total > 0:
            return float("nan")
        upto = np.cumsum(weights) / total
        below = np.concatenate([[0.0], upto[:-1]])
        least = float(values[np.flatnonzero(upto >= float(self.share) - SAME_SHARE)[0]])
        largest = float(values[np.flatnonzero(below <= float(self.share) + SAME_SHARE)[-1]])
        if self.nearest is not None:
            return min(max(least, self.nearest[0]), largest)
        return largest if self.upper else least

    @property
    def denominator(self) -> Combination | None:
        """The weight of a round, to which the share refers."""
        return None if self.given is ONE else self.parts[1]


@dataclass(frozen=True, eq=False)
class Shortfall(Quantity):
    """The mean of an expression over the rounds in which it is largest.

    ``share``: of rounds that are left out. ``level``: a fixed one gives a linear limit, which is sufficient for this
    one; without it, the search finds the best.
    """

    share: Fraction
    expression: Expression
    given: Expression = ONE
    level: float | None = None

    @property
    def parts(self) -> tuple[Combination, ...]:
        """The expression and the weight of a round."""
        return Combination(((1.0, self.expression),)), Combination(((1.0, self.given),))

    def at(self, level: float) -> "Shortfall":
        """Return the quantity with a fixed level, in its text, too."""
        given = "" if self.given is ONE else f", given={self.given.text}"
        text = f"{self.text.partition('(')[0]}({self.expression.text}{given}, at={level:g})"
        return replace(self, text=text, level=float(level))

    def cost(self, x: Floats, low: float, high: float) -> Floats:
        """Return the least cost of values of the expression over all levels from ``low`` to ``high``."""
        return np.asarray(np.clip(x, low, high) + np.maximum(x - high, 0.0) / float(1 - self.share))

    def limit(self, threshold: float, at_least: bool) -> LinearLimit:
        """Return the limit for the fixed level."""
        if self.level is None:
            raise ModelError(
                f"{quoted(self.text)} is no linear limit before its level is chosen: use psconrl.plan(system), or, "
                "to learn, psconrl.linear(system), or state the level, as in cvar90(cost, at=7)"
            )
        given, tail = self.given.text, float(1 / (1 - self.share))
        above = Combination.of(f"max({_enclosed(self.expression.text)} - {self.level!r}, 0) * ({given})", tail)
        if self.given is ONE:
            return LinearLimit(self.text, (Combination.of("1", self.level) + above).terms, threshold)
        row = above + Combination.of(given, self.level - threshold)
        return LinearLimit(str(row), row.terms)

    def value(self, averages: Averages) -> float:
        """Return the least cost over all levels, which is the expected shortfall; for a fixed level, its cost."""
        values, weights = averages.distribution(self.expression, self.given)
        total = weights.sum()
        if not total > 0:
            return float("nan")
        level = self.best_level(values, weights / total) if self.level is None else self.level
        return float(self.cost(values, level, level) @ weights / total)

    def best_level(self, values: Floats, weights: Floats) -> float:
        """Return the level of the least cost, which is the percentile."""
        return float(
            values[min(int(np.searchsorted(np.cumsum(weights), float(self.share) - SAME_SHARE)), values.size - 1)]
        )

    @property
    def denominator(self) -> Combination | None:
        """The weight of a round."""
        return None if self.given is ONE else self.parts[1]


def _enclosed(text: str, needed: bool = True) -> str:
    """Return an expression in parentheses, unless it is a name, a number or a call."""
    plain = text.replace("_", "").replace(".", "").isalnum()
    return text if plain or not needed else f"({text})"
