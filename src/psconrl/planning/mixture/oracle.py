r"""The oracle interface of column generation: find the cheapest policy for weighted costs.

.. math:: \min_\pi\; g^\pi\Big(\sum_{i=0}^m w_i c_i\Big)

An oracle works in steps, so that the master can change the weights in between. It returns a ``first`` answer and can
``improve`` an answer for given weights, with a lower bound over all policies. Every answer is evaluated for all costs
at once, either exactly or roughly, so that it can be ``refined``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from psconrl.base.arrays import Floats


class HasCosts(Protocol):
    """An evaluated policy as the master sees it: its averages."""

    @property
    def costs(self) -> Floats: ...  # noqa: D102


Answer = TypeVar("Answer", bound=HasCosts)


class Oracle(ABC, Generic[Answer]):
    """Evaluates policies and improves them for weighted costs; the master uses no other interface."""

    @abstractmethod
    def first(self, weights: Floats) -> Answer:
        """Return any evaluated policy to begin with."""

    @abstractmethod
    def improve(self, answer: Answer, weights: Floats) -> tuple[float, Answer | None]:
        """Return a lower bound on the weighted cost of all policies, and a better answer, or None if there is none."""

    def refined(self, answer: Answer) -> Answer | None:
        """Return a rough answer evaluated exactly; None if it is exact already."""
        return None

    def joined(self, answers: Sequence[Answer], shares: Floats, weights: Floats) -> Answer | None:
        """Return an answer that follows each of several in the states that it visits most; None if they overlap."""
        return None
