r"""Confidence radii, by theory or as in the paper's experiments, and the boxes of transition laws they span."""

from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.learning.counts import Counts


def scaled_radius(visits: Ints, coef: float) -> Floats:
    r"""The experiments' :math:`b = coef / \sqrt{N}`, and 1 where N = 0."""
    return np.where(visits > 0, coef / np.sqrt(np.maximum(visits, 1)), 1.0)


def hoeffding_radius(visits: Ints, log_term: float) -> Floats:
    r""":math:`\sqrt{\log(\cdot) / (2 \max(1, N))}`, at most 1."""
    return np.minimum(1.0, np.sqrt(log_term / (2.0 * np.maximum(visits, 1))))


def bernstein_radius(p_bar: Floats, visits: Ints, log_term: float) -> Floats:
    r""":math:`4 \sqrt{\bar p\, \iota / N^+} + 28\, \iota / N^+` for every transition (Chen, Jain and Luo 2022)."""
    n = np.maximum(visits, 1)[:, None]
    return np.minimum(1.0, 4.0 * np.sqrt(p_bar * log_term / n) + 28.0 * log_term / n)


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds (S*A, S) on every transition probability."""

    low: Floats
    high: Floats

    @classmethod
    def around(cls, p_bar: Floats, radius: Floats) -> "Box":
        """All laws within a radius of the empirical one, entry by entry; a pair never tried may do anything."""
        r = radius if radius.ndim == 2 else radius[:, None]
        return cls(np.maximum(p_bar - r, 0.0), np.minimum(p_bar + r, 1.0))


def empirical(counts: Counts) -> Floats:
    """Observed frequencies (S*A, S); a pair never tried stays where it is, so that it has a law at all."""
    S, A = counts.n_states, counts.n_actions
    visits = counts.visits[:, None]
    stay = np.repeat(np.eye(S), A, axis=0)
    return np.where(visits > 0, counts.transitions / np.maximum(visits, 1), stay)
