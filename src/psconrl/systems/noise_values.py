"""Formulas of the distributions of noise, and checks of what they are made of."""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.kernels.arithmetic import special

MOST_OUTCOMES = 10_000
TAIL_DEVIATIONS = 60  # standard deviations beyond the mean at which the tail of a Poisson distribution is cut


def poisson_table(mean: Floats, most: int) -> Floats:
    """Return the probabilities (G, most + 1) of the counts 0 to most."""
    k = np.arange(most + 1)
    logs = np.array([special.lgamma(float(j) + 1.0) for j in k])
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(k == 0, 0.0, k * np.log(mean)[:, None])
    return np.asarray(np.exp(powers - mean[:, None] - logs))


def tail_sum(mean: float, most: int, times: int, rng: np.random.Generator) -> float:
    """Return the sum of that many Poisson counts, each at least ``most``."""
    width = int(TAIL_DEVIATIONS * (1.0 + mean**0.5))
    counts = np.arange(most, max(most, int(mean)) + width)
    logs = counts * np.log(mean) - np.array([special.lgamma(float(k) + 1.0) for k in counts])
    shares = np.exp(logs - logs.max())
    return float(rng.multinomial(times, shares / shares.sum()) @ counts)


def log_choose(n: int, k: int) -> float:
    """Return the logarithm of a binomial coefficient."""
    return special.lgamma(n + 1.0) - special.lgamma(k + 1.0) - special.lgamma(n - k + 1.0)


def checked_probability(values: Floats, what: str, kind: str = "a probability") -> Floats:
    """Return probabilities, or factors of probabilities, after a check."""
    if not ((values >= 0) & (values <= 1)).all():
        raise ModelError(f"{what} must be {kind} from 0 to 1; got {range_text(values)}")
    return values


def checked_at_least_zero(values: Floats, what: str) -> Floats:
    """Return rates or factors after a check."""
    if not ((values >= 0) & np.isfinite(values)).all():
        raise ModelError(f"{what} must be finite and not negative; got {range_text(values)}")
    return values


def range_text(values: Floats) -> str:
    """Return a number, or the least and the largest of several, as text."""
    return f"{values.min():g}" if values.min() == values.max() else f"{values.min():g} to {values.max():g}"


def checked_most(most: Any) -> int:
    """Return the largest count that is distinguished, after a check."""
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 1 <= most < MOST_OUTCOMES:
        raise ModelError(f"most must be a whole number from 1 to {MOST_OUTCOMES - 1}; got {quoted(most)}")
    return int(most)
