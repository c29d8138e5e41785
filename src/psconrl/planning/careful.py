"""Policy iteration in twice the working precision, for the few models on which rounding would have the last word.

Where parts of a model are left once in 1e8 to 1e18 steps, one double a state cannot hold the bias. Here it has two, and
what improves a policy is summed without rounding. Dense, and some ten times slower than ``oracle.Howard``: a
second try.
"""

from dataclasses import replace

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _doubled
from psconrl.model.unichain import FALLS_APART, Unichain
from psconrl.planning.oracle import Column, Howard, priced, switched_policy
from psconrl.planning.problem import Problem

MAX_STATES = 1000  # dense, O(S^3) three times over for every policy
REFINEMENTS = 3  # the first is right to some 1e-16 of the largest bias, each further one to that share of the last


class CarefulHoward(Howard):
    """Howard's policy iteration with biases of two doubles a state."""

    nearly_closed = 1e-18  # beyond, two doubles are not enough either

    def __init__(self, problem: Problem) -> None:
        P = problem.transition
        super().__init__(problem if isinstance(P, np.ndarray) else replace(problem, transition=P.toarray()))

    def _solve(self, policy: Ints) -> tuple[Column, Unichain] | None:
        problem = self.problem
        reference, gains, high, low, stationary, slowest = _doubled.refined_unichain(
            problem.transition, self._first_pair + policy, problem.costs, self._reference, REFINEMENTS
        )
        if reference < 0:
            return None
        if not (np.isfinite(gains).all() and np.isfinite(high).all()):
            raise SolverError(FALLS_APART)
        return Column(policy, gains, high, stationary, low), Unichain(gains, high, stationary, reference, slowest)

    def _greedy(self, answer: Column, weights: Floats, tolerance: float) -> tuple[float, Ints | None]:
        high, low = potential_of(answer, weights)
        Q = priced(self.problem, weights) + _doubled.drift_dense(self.problem.transition, high, low)
        current = Q[np.arange(answer.policy.size), answer.policy]
        return switched_policy(self.problem, Q, answer.policy, tolerance * np.maximum(1.0, np.abs(current)))


def potential_of(column: Column, weights: Floats) -> tuple[Floats, Floats]:
    """The weighted bias of a column as a high and a low part."""
    low = np.zeros_like(column.biases) if column.low_biases is None else column.low_biases
    high, low = _doubled.combine(weights, column.biases, low)
    return high, low
