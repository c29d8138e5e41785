r"""Confidence radii, from theory or as in the paper's experiments, and the boxes of transition distributions they span.

A radius is a function of the visits N and the frequencies. Those from theory also take a log term
:math:`\iota(\delta)`, for which every algorithm has its own formula.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_failure_probability, as_nonnegative, as_numbers
from psconrl.learning.part import Part
from psconrl.learning.posterior.counts import Counts

LogTerm = Callable[[float], float]


class Radius(Part):
    """The distance that the truth may have from the frequencies: a number for every pair, or for every transition."""

    kind: ClassVar[str] = "radius"
    example: ClassVar[str] = "Scaled(0.1)"
    each_transition: ClassVar[bool] = False  # whether radii are (S*A, S) instead of (S*A,)

    @abstractmethod
    def __call__(self, visits: Ints, p_bar: Floats, log_term: LogTerm) -> Floats:
        """Return the radii, from visits (S*A,) and frequencies (S*A, S)."""

    def checked_widths(self, visits: Ints, p_bar: Floats, log_term: LogTerm) -> Floats:
        """Return the radii, checked to be nonnegative and of the right shape."""
        widths = as_numbers(self(visits, p_bar, log_term), f"radius {quoted(self.name)}")
        shape = p_bar.shape if self.each_transition else visits.shape
        if widths.shape != shape or not (widths >= 0).all():
            raise AgentError(
                f"radius {quoted(self.name)} must be numbers from 0 on, of shape {shape}; got {widths.shape}"
            )
        return widths


class Scaled(Radius):
    r"""The radius of the experiments, :math:`b = coef / \sqrt{N}`, and 1 where N = 0."""

    name: ClassVar[str] = "scaled"

    def __init__(self, coef: float = 0.1) -> None:
        self.coef = as_nonnegative(coef, "coef")

    def __call__(self, visits: Ints, p_bar: Floats, log_term: LogTerm) -> Floats:
        """Return a radius for every pair."""
        return np.where(visits > 0, self.coef / np.sqrt(np.maximum(visits, 1)), 1.0)


class Hoeffding(Radius):
    r"""Hoeffding's :math:`\sqrt{\iota(\delta) / (2 \max(1, N))}`, at most 1, with failure probability ``delta``."""

    name: ClassVar[str] = "hoeffding"

    def __init__(self, delta: float = 0.05) -> None:
        self.delta = as_failure_probability(delta)

    def __call__(self, visits: Ints, p_bar: Floats, log_term: LogTerm) -> Floats:
        """Return a radius for every pair."""
        return np.minimum(1.0, np.sqrt(log_term(self.delta) / (2.0 * np.maximum(visits, 1))))


class Bernstein(Radius):
    r"""Bernstein's :math:`4 \sqrt{\bar p\, \iota / N^+} + 28\, \iota / N^+`, at most 1 (Chen, Jain and Luo 2022)."""

    name: ClassVar[str] = "bernstein"
    each_transition: ClassVar[bool] = True

    def __init__(self, delta: float = 0.05) -> None:
        self.delta = as_failure_probability(delta)

    def __call__(self, visits: Ints, p_bar: Floats, log_term: LogTerm) -> Floats:
        """Return a radius for every transition."""
        n, iota = np.maximum(visits, 1)[:, None], log_term(self.delta)
        return np.minimum(1.0, 4.0 * np.sqrt(p_bar * iota / n) + 28.0 * iota / n)


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds (S*A, S) on every transition probability."""

    low: Floats
    high: Floats

    @classmethod
    def around(cls, p_bar: Floats, radius: Floats) -> "Box":
        """Build the box of all distributions within a radius of ``p_bar``, entry by entry.

        An untried pair, whose radius is 1, may have any distribution.
        """
        r = radius if radius.ndim == 2 else radius[:, None]
        return cls(np.maximum(p_bar - r, 0.0), np.minimum(p_bar + r, 1.0))

    @classmethod
    def of(cls, counts: Counts, radius: Radius, log_term: LogTerm) -> "Box":
        """Build the box of all distributions within a radius of the frequencies."""
        p_bar = empirical(counts)
        return cls.around(p_bar, radius.checked_widths(counts.visits, p_bar, log_term))


def empirical(counts: Counts) -> Floats:
    """Return the observed frequencies (S*A, S); an untried pair has a self-loop, so that its row is a distribution."""
    S, A = counts.n_states, counts.n_actions
    visits = counts.visits[:, None]
    stay = np.repeat(np.eye(S), A, axis=0)
    return np.where(visits > 0, counts.transitions / np.maximum(visits, 1), stay)
