r"""The question every constrained planner asks again and again: which policy is cheapest for these weights?

.. math:: \min_\pi\; g^\pi\Big(\sum_{i=0}^m w_i c_i\Big)

An oracle answers step by step, so that the master can change the weights on the way: it has a ``first`` answer, and it
can ``improve`` one for given weights, with a lower bound on what any policy can reach. Every answer is evaluated
for all costs at once, exactly or so far that it can be ``refined``.
"""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from psconrl.arrays import Floats


class HasCosts(Protocol):
    """What the master needs to know of an evaluated policy."""

    @property
    def costs(self) -> Floats: ...  # noqa: D102


Answer = TypeVar("Answer", bound=HasCosts)


class Oracle(ABC, Generic[Answer]):
    """Evaluates policies and improves them for weighted costs; the master knows nothing else."""

    @abstractmethod
    def first(self, weights: Floats) -> Answer:
        """Any evaluated policy to begin with."""

    @abstractmethod
    def improve(self, answer: Answer, weights: Floats) -> tuple[float, Answer | None]:
        """A lower bound on the weighted cost of every policy, and a better answer, or None if this one is best."""

    def refined(self, answer: Answer) -> Answer | None:
        """A rough answer evaluated exactly; None if it is exact already."""
        return None
