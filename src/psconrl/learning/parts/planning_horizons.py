r"""Planning horizons: how far ahead a plan looks.

A long-run average counts events that happen once in :math:`10^{30}` rounds. Samples of a prior of small mass contain
many such transitions: the optimal policy of a sample may stay where the constraint is violated, and rely on an event of
negligible probability to leave. So the planned run restarts in the present state s, with a small probability
:math:`\eta` in every round:

.. math:: P'(\cdot|s',a) = (1-\eta)\, P(\cdot|s',a) + \eta\, 1_s .

Its averages are those of about the next :math:`1/\eta` rounds from the present state, and the constraints are met over
these. A policy with average J and bias h then has average :math:`J + \eta\,(h(s) - \mu' h)/(1 - \eta)`, with
:math:`\mu'` its stationary distribution: no average moves by more than about :math:`\eta` times the span of its bias.
"""

from abc import abstractmethod
from typing import ClassVar

from psconrl.learning.argument_checks import as_fraction
from psconrl.learning.part import Part

LARGEST_PROBABILITY = 0.5


class PlanningHorizon(Part):
    """The probability with which a planned run restarts in the present state, in every round."""

    kind: ClassVar[str] = "planning_horizon"
    example: ClassVar[str] = "Endless()"

    @abstractmethod
    def restart(self, rounds: int) -> float:
        """Return the restart probability after ``rounds`` rounds."""


class Endless(PlanningHorizon):
    """An infinite planning horizon, as in the paper."""

    name: ClassVar[str] = "endless"

    def restart(self, rounds: int) -> float:
        """Return 0: the planned run never restarts."""
        return 0.0


class Proportional(PlanningHorizon):
    r"""A horizon of ``factor`` f, above 0 and at most 1, times the rounds so far: :math:`\eta = \min(1/2, 1/(f t))`."""

    name: ClassVar[str] = "proportional"

    def __init__(self, factor: float = 1 / 3) -> None:
        self.factor = as_fraction(factor, "factor")

    def restart(self, rounds: int) -> float:
        """Return the inverse of the planning horizon, at most 1/2."""
        return min(LARGEST_PROBABILITY, 1.0 / (self.factor * max(1, rounds)))
