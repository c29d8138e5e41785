"""Exact arithmetic: vectors and rows as whole numbers over a common denominator, and the bound that they prove."""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

from .arrays import need_memory
from .errors import BadInputError, RefusedError

MOST_BITS = 2**19  # of a common denominator
MOST_BITS_IN_ALL = 25 * 10**10  # products of bits and entries: more take longer than some ten seconds
LARGEST = 1.7976931348623157e308


class Vector(NamedTuple):
    """Numbers as whole numbers over a common denominator."""

    over: int
    numbers: list[int]

    @classmethod
    def of(cls, values: Sequence[float | Fraction]) -> "Vector":
        """Return doubles or fractions as a vector."""
        ratios = [x.as_integer_ratio() for x in values]
        over = common_multiple({d for _, d in ratios})
        return cls(over, [n * (over // d) for n, d in ratios])

    def times(self, whole: int) -> list[int]:
        """Return the numbers times a multiple of the denominator."""
        factor = whole // self.over
        return self.numbers if factor == 1 else [factor * x for x in self.numbers]

    def fractions(self) -> list[Fraction]:
        """Return the numbers as fractions."""
        return [Fraction(x, self.over) for x in self.numbers]


def common_multiple(denominators: Iterable[int]) -> int:
    """Return the least common multiple; refuse one that is too long to compute with."""
    result = 1
    for each in sorted(denominators):
        result = math.lcm(result, each) if each.bit_length() <= MOST_BITS else each
        if result.bit_length() > MOST_BITS:
            raise BadInputError(f"fractions with a common denominator of more than {MOST_BITS:,} bits are not read")
    return result


class Workload:
    """What the check of one proof may take: fractions in a file can be longer than its model has use for."""

    def __init__(self) -> None:
        self.spent = 0

    def spend(self, over: int, vectors: Sequence[Vector], entries: int, ratios: bool = False) -> None:
        """Count the bits of vectors over a common denominator, for a number of entries of the model; refuse too many.

        With ``ratios``, numbers of that length are multiplied by each other.
        """
        bits = over.bit_length() + max((x.bit_length() for v in vectors for x in v.numbers), default=0)
        numbers = sum(len(v.numbers) for v in vectors)
        need_memory(2 * numbers * (32 + bits / 8), "computing with its fractions")
        work = bits * (entries + numbers) * (1 + ratios * (bits >> 14))
        divided = 2 * bits * over.bit_length()  # a common divisor takes the product of the lengths
        self.spent += work + divided + sum(v.over.bit_length() for v in vectors) ** 2
        if self.spent > MOST_BITS_IN_ALL:
            raise BadInputError(f"fractions of {bits:,} bits are too long for a model of {entries:,} transitions")


def read_vector(record: dict[str, Any], name: str, n: int) -> Vector:
    """Return n numbers of a record: a list of doubles, or whole numbers, written as text, over a common denominator."""
    given = record.get(name)
    if not isinstance(given, dict):
        return Vector.of(read_doubles(record, name, n))
    texts, over = given.get("numbers"), _whole(given.get("over"), name)
    if not isinstance(texts, list) or len(texts) != n or over < 1:
        raise BadInputError(f"{name!r} must be {n} numbers over a positive denominator")
    if over.bit_length() > MOST_BITS:
        raise BadInputError(f"{name!r}: a denominator of more than {MOST_BITS:,} bits is not read")
    return Vector(over, [_whole(text, name) for text in texts])


def _whole(text: Any, name: str) -> int:
    if not isinstance(text, str) or not text.lstrip("-").startswith("0x"):
        raise BadInputError(f"{name!r}: a fraction needs hexadecimal whole numbers, such as '0x1f'")
    return int(text, 16)


def read_doubles(record: dict[str, Any], name: str, n: int) -> list[float]:
    """Return n finite numbers of a record."""
    given = record.get(name)
    if not isinstance(given, list) or len(given) != n or not all(type(x) in (int, float) for x in given):
        raise BadInputError(f"{name!r} must be a list of {n} numbers")
    if not all(-LARGEST <= x <= LARGEST for x in given):
        raise BadInputError(f"{name!r} must hold finite numbers")
    return [float(x) for x in given]


class ExactRow(NamedTuple):
    """What a state, or a pair, leads to; whole numbers, of which ``total`` stands for one."""

    state: int
    label: str
    cost: int  # times the total
    total: int
    columns: Sequence[int]
    weights: Sequence[int]

    def drift(self, h: Sequence[int]) -> int:
        """Return the expected change of h, times the total."""
        return sum(map(mul, self.weights, map(h.__getitem__, self.columns))) - self.total * h[self.state]


class Potentials(NamedTuple):
    """What proves a bound: h, gains g in the same unit, or None if they are constant, and the bound U on moves."""

    h: Sequence[int]
    g: Sequence[int] | None
    U: Sequence[int]


def bound(rows: Iterator[ExactRow], beta: Vector, by: Potentials, sign: int = 1) -> tuple[Fraction, str]:
    """Return the bound that is proven by h, g and U, in units of h, and the pair that decides it: see the package.

    With ``sign`` -1, costs, h and g are negated.
    """
    h, g, U = by
    least: tuple[int, int] | None = None
    where = ""
    fall, fallen = 0, 1  # the largest ratio of a decrease of g to one of U
    for row in rows:
        value = sign * (row.cost + row.drift(h))
        if g is not None:
            onward, gained = row.drift(U), sign * row.drift(g)
            if onward > 0:
                raise RefusedError(f"the bound on moves increases at {row.label}")
            if onward < 0:
                if -gained * fallen > fall * -onward:
                    fall, fallen = -gained, -onward
                continue
            if gained < 0:
                raise RefusedError(f"gains fall at {row.label}, which may be played forever")
            value -= sign * g[row.state] * row.total
        if least is None or value * least[1] < least[0] * row.total:
            least, where = (value, row.total), row.label
    if least is None:
        raise RefusedError("no action can be played forever")
    result = Fraction(*least)
    if g is not None:
        result += sign * mean(beta, g) - Fraction(fall, fallen) * mean(beta, U)
    return result, where


def mean(beta: Vector, values: Sequence[int]) -> Fraction:
    """Return the mean of values under a distribution."""
    return Fraction(sum(map(mul, beta.numbers, values)), sum(beta.numbers))
