"""Reductions: a problem is made simpler, the simpler one is solved, and its solution is turned into that of the first.

Those of this library, outermost first: a statement in linear form (``answers.solve_statement``), a model on its
reachable states (``planning.restriction``), and scaled costs (``planning.planner``). Each is solved within the one
before it.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

Simpler = TypeVar("Simpler", covariant=True)
Found = TypeVar("Found", contravariant=True)
Wanted = TypeVar("Wanted", covariant=True)
Problem = TypeVar("Problem")
Solution = TypeVar("Solution")
Answer = TypeVar("Answer")


class Reduction(Protocol[Simpler, Found, Wanted]):
    """A problem as a simpler one."""

    def apply(self) -> Simpler:
        """Return the simpler problem."""

    def invert(self, solution: Found, /) -> Wanted:
        """Return the solution of the problem, given one of the simpler problem."""


def solved(reduction: Reduction[Problem, Solution, Answer], solve: Callable[[Problem], Solution]) -> Answer:
    """Return the solution of a problem by that of the simpler one. Reductions are composed by nesting."""
    return reduction.invert(solve(reduction.apply()))
