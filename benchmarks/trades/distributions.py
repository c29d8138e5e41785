"""Distributions as tables ``{value: probability}``; the last count of an unbounded one stands for all above it."""

import math
from collections.abc import Mapping
from typing import Any

Table = dict[Any, float]


def bernoulli(p: float) -> Table:
    """Return the table of 0 and 1."""
    return {0: 1.0 - p, 1: p}


def binomial(n: int, p: float) -> Table:
    """Return the table of the number of successes."""
    return {k: math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)}


def poisson(mean: float, most: int) -> Table:
    """Return the table of a count."""
    return _lumped({k: math.exp(-mean) * mean**k / math.factorial(k) for k in range(most)}, most)


def geometric(p: float, most: int) -> Table:
    """Return the table of the number of failures before the first success."""
    return _lumped({k: p * (1.0 - p) ** k for k in range(most)}, most)


def next_event(rates: Mapping[str, float], clock: float) -> Table:
    """Return the table of what happens next: an event, each with its rate, or none, up to the rate of the clock."""
    table = {name: rate / clock for name, rate in rates.items()}
    return table | {"none": 1.0 - math.fsum(table.values())}


def _lumped(table: Table, most: int) -> Table:
    return table | {most: 1.0 - math.fsum(table.values())}
