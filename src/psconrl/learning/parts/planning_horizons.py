r"""Outlooks: how far ahead a plan looks.

An average over all time counts what happens once in :math:`10^{30}` rounds as if it happened. Samples of a prior of
small mass are full of such moves: the best policy of one may stay where the limit is broken, and trust that a miracle
takes it to where it is not. So let the planned run begin anew, in every round with a small chance :math:`\eta`, in the
present state s:

.. math:: P'(\cdot|s',a) = (1-\eta)\, P(\cdot|s',a) + \eta\, 1_s .

Its averages are those of the next :math:`1/\eta` rounds or so, from here, and limits are met over these. A policy with
average J and bias h then has :math:`J + \eta\,(h(s) - \mu' h)/(1 - \eta)`, with :math:`\mu'` its stationary
law: no average moves by more than about :math:`\eta` times the span of its bias.
"""

from abc import abstractmethod
from typing import ClassVar

from psconrl.learning.checks import as_fraction
from psconrl.learning.part import Part

LARGEST_PROBABILITY = 0.5


class PlanningHorizon(Part):
    """With what chance a planned run begins anew, in the present state, in every round."""

    kind: ClassVar[str] = "planning_horizon"
    example: ClassVar[str] = "Endless()"

    @abstractmethod
    def restart(self, rounds: int) -> float:
        """The chance, after so many rounds."""


class Endless(PlanningHorizon):
    """Plans are for ever, as in the paper."""

    name: ClassVar[str] = "endless"

    def restart(self, rounds: int) -> float:
        """None."""
        return 0.0


class Proportional(PlanningHorizon):
    r"""Plans are for a ``factor`` f of the rounds so far, above 0 and at most 1: :math:`\eta = \min(1/2, 1/(f t))`."""

    name: ClassVar[str] = "proportional"

    def __init__(self, factor: float = 1 / 3) -> None:
        self.factor = as_fraction(factor, "factor")

    def restart(self, rounds: int) -> float:
        """One in so many rounds as the plan is for."""
        return min(LARGEST_PROBABILITY, 1.0 / (self.factor * max(1, rounds)))
