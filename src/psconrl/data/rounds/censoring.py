r"""Sales recorded as demand: is a noise seen as it was, or only as far as the next state shows it?

In a pair of state and action, let the next state depend on :math:`\min(x, k)` of the noise x only: demand beyond the
stock k changes nothing. If x itself is recorded, it exceeds k in some of the rounds in which it is at least k. If what
was sold is recorded in its place, it never does. With the hazard :math:`h(v) = P(x = v \mid x \ge v)`, estimated from
rounds in which larger values could be recorded, and :math:`n_v` rounds with :math:`x \ge k = v`, the probability of
that is :math:`\prod_v h(v)^{n_v}` (the product-limit estimator of Kaplan and Meier 1958).
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.data.rounds.system_rounds import RIGHT, SystemRounds
from psconrl.systems.randomness import RoundNoise

LEAST_PROBABILITY = 1e-6  # of a record without any value above the stock; smaller ones are no accident
FEWEST = 5  # rounds in which the noise reached the stock


class Censored(NamedTuple):
    """A noise that seems to be recorded only as far as the stock goes."""

    name: str
    kinds: Bools  # of the kinds of rounds: whether the noise reached the stock
    rounds: int
    probability: float


def censored_noise(found: SystemRounds) -> list[Censored]:
    """Return the noises of which only the censored value seems to be recorded."""
    randomness = found.structure.randomness
    if not isinstance(randomness, RoundNoise):
        return []
    checked = (_of_noise(found, name) for name in found.seen if found.words.outcomes[name].dtype.kind in "iuf")
    return [one for one in checked if one is not None]


def _of_noise(found: SystemRounds, name: str) -> Censored | None:
    kinds = found.kinds
    values, of_outcome = found.outcome_values[name]
    last = values.size - 1
    own = kinds.noise[name]
    right = (found.wrong == RIGHT) & (own >= 0)
    pairs, of_kind = np.unique(kinds.pairs, return_inverse=True)
    stocks = _stocks(found, pairs, of_outcome, last)
    varies = np.bincount(of_kind, right & (own > 0), minlength=pairs.size) > 0
    stocks[(stocks == 0) & varies] = last  # where it is recorded although it changes nothing, there is no stock
    bound = stocks[of_kind]
    limited = right & (bound < last)
    reached = limited & (own >= bound)
    rounds = int(kinds.times[reached].sum())
    if rounds < FEWEST or (own[reached] > bound[reached]).any():
        return None
    times = np.bincount(bound[reached], weights=kinds.times[reached], minlength=values.size)
    log_probability, informed = 0.0, 0
    for v in np.flatnonzero(times).tolist():
        wider = right & (bound > v) & (own >= v)
        at_risk, here = kinds.times[wider].sum(), kinds.times[wider & (own == v)].sum()
        if at_risk:
            log_probability += float(times[v] * np.log((here + 0.5) / (at_risk + 1.0)))
            informed += int(times[v])
    probability = float(np.exp(log_probability))
    is_certain = informed >= FEWEST and probability < LEAST_PROBABILITY
    return Censored(name, reached, rounds, probability) if is_certain else None


def _stocks(found: SystemRounds, pairs: Ints, of_outcome: Ints, last: int) -> Ints:
    """Return the place of the least value from which on the next state does not depend on the noise, in some pairs."""
    structure = found.structure
    randomness = structure.randomness
    assert isinstance(randomness, RoundNoise)
    possible = randomness.possible()
    others = _others(found, of_outcome)
    bounds: Ints = np.empty(pairs.size, dtype=np.int64)
    for row, pair in enumerate(pairs.tolist()):
        successors = structure.successors[pair].astype(np.float64)
        successors[~possible[structure.contexts[pair]]] = np.nan
        table: Floats = np.full((int(others.max()) + 1, last + 1), np.nan)
        table[others, of_outcome] = successors
        changes = (np.diff(table, axis=1) != 0.0) & ~np.isnan(table[:, 1:]) & ~np.isnan(table[:, :-1])
        at = np.flatnonzero(changes.any(axis=0))
        bounds[row] = at[-1] + 1 if at.size else 0
    return bounds


def _others(found: SystemRounds, of_outcome: Ints) -> Ints:
    """Return the number (W,) of what all other noises are in each joint outcome."""
    codes = np.zeros(of_outcome.size, dtype=np.int64)
    for _, own in found.outcome_values.values():
        if own is not of_outcome:
            codes = codes * (int(own.max()) + 1) + own
    return np.unique(codes, return_inverse=True)[1].ravel()
