"""From a scaled problem to an occupancy and a policy: what a learning loop calls in each episode."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.planning.mixture import Mixture, mix
from psconrl.planning.oracle import Column, Howard
from psconrl.planning.problem import Problem

# Stationary masses of dense chains are exact in every component; those of sparse ones carry rounding of this size.
SPARSE_MASS_TOL = 1e-13


@dataclass(frozen=True, eq=False, slots=True)
class Solution:
    """The answer to a scaled problem. If infeasible, the policy is one of small excess over the thresholds."""

    mixture: Mixture[Column]
    occupancy: Floats  # (S, A)
    policy: Floats  # (S, A)

    @property
    def feasible(self) -> bool:
        """Do policies within the thresholds exist?"""
        return self.mixture.feasible

    @property
    def policies(self) -> tuple[Ints, ...]:
        """The deterministic policies in the mixture, to start the next solve from."""
        return tuple(column.policy for column in self.mixture.answers)


def solve(problem: Problem, start: Sequence[Ints] = (), *, least_excess: bool = False) -> Solution:
    """Solve a weakly communicating problem, starting from deterministic policies such as those of the last solution."""
    oracle = Howard(problem)
    weights = np.full(problem.costs.shape[0], 1.0 / problem.costs.shape[0])
    columns = [oracle.evaluate(policy, weights) for policy in start]
    mixture = mix(oracle, problem.thresholds, columns, least_excess=least_excess)
    return Solution(mixture, *blend(problem, mixture.answers, mixture.shares))


def blend(problem: Problem, columns: Sequence[Column], shares: Floats) -> tuple[Floats, Floats]:
    """The occupancy of a mixture and the stationary policy with that occupancy.

    Where the mixture has no mass, its heaviest policy is followed: it leads to states that have.
    """
    S, A = problem.available.shape
    states = np.arange(S)
    occupancy = np.zeros((S, A))
    for column, share in zip(columns, shares, strict=True):
        occupancy[states, column.policy] += share * column.stationary
    guide = columns[int(shares.argmax())]
    if len(columns) == 1:
        policy = np.zeros((S, A))
        policy[states, guide.policy] = 1.0
        return occupancy, policy
    mass = occupancy.sum(axis=1)
    empty = mass <= (0.0 if isinstance(problem.transition, np.ndarray) else SPARSE_MASS_TOL)
    with np.errstate(under="ignore"):
        policy = occupancy / np.where(empty, 1.0, mass)[:, None]
    policy[empty] = 0.0
    policy[empty, guide.policy[empty]] = 1.0
    return occupancy, policy
