"""From a scaled problem to an occupancy and a policy: what a learning loop calls in each episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.planning._kernels import policy_of
from psconrl.planning._newton import GIVE_UP, OPTIMAL, newton
from psconrl.planning.careful import MAX_STATES, CarefulHoward
from psconrl.planning.master import FEASIBILITY_TOL
from psconrl.planning.mixture import GAP_TOL, TIE_TOL, Mixture, is_settled, mix
from psconrl.planning.oracle import SWITCH_TOL, Column, Howard, greedy_policy
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
    def settled(self) -> bool:
        """Is it proven, up to what the tolerance allows? If not, rounding has stopped the search."""
        return self.mixture.settled

    @property
    def policies(self) -> tuple[Ints, ...]:
        """The deterministic policies in the mixture, to start the next solve from."""
        return tuple(column.policy for column in self.mixture.answers)


def solve(problem: Problem, start: Sequence[Ints] = (), *, least_excess: bool = False) -> Solution:
    """Solve a weakly communicating problem, starting from deterministic policies such as those of the last solution.

    ``least_excess``: if infeasible, go on until the largest excess over the thresholds is as small as it can be.
    What ordinary precision cannot settle is tried in twice that. Whoever uses the solution asks if it is ``settled``.
    """
    first = trouble = None
    if problem.thresholds.size <= 1 and isinstance(problem.transition, np.ndarray):
        first = _solve_compiled(problem, start, least_excess)
    if first is None:
        try:
            first = _solve_with(Howard(problem), start, least_excess)
        except SolverError as error:
            trouble = error
    if (first is None or not first.settled) and problem.available.shape[0] <= MAX_STATES:
        try:
            second = solve_carefully(problem, start, least_excess=least_excess)
        except SolverError as error:
            trouble = error
        else:
            return second if first is None or second.settled else first
    if first is None:
        raise trouble or SolverError("the search did not end")
    return first


def solve_carefully(problem: Problem, start: Sequence[Ints] = (), *, least_excess: bool = False) -> Solution:
    """``solve`` in twice the working precision from the outset."""
    return _solve_with(CarefulHoward(problem), start, least_excess)


def _solve_with(oracle: Howard, start: Sequence[Ints], least_excess: bool) -> Solution:
    problem = oracle.problem
    weights = np.full(problem.costs.shape[0], 1.0 / problem.costs.shape[0])
    columns = [oracle.evaluate(policy, weights) for policy in start]
    mixture = mix(oracle, problem.thresholds, columns, least_excess=least_excess)
    occupancy = mixed_occupancy(problem, mixture.answers, mixture.shares)
    return Solution(mixture, occupancy, stationary_policy(problem, mixture.answers, mixture.shares, occupancy))


class Brief(NamedTuple):
    """What a learning loop needs of a solution: no proof, no frequencies."""

    feasible: bool
    value: float  # of the scaled objective
    policies: tuple[Ints, ...]  # deterministic, to start from the next time
    policy: Floats  # (S, A)


def solve_briefly(problem: Problem, transition: Floats, start: Sequence[Ints]) -> Brief | None:
    """``solve`` under dense transitions of their own, some microseconds faster; None where only ``solve`` can do it."""
    if problem.thresholds.size > 1 or not start:
        return None
    outcome, below, above, share, _, _, gap, _, gains, _, policies, _, occupancy = _newton(
        problem, transition, start, False
    )
    if outcome == GIVE_UP or not is_settled(outcome == OPTIMAL, gap):
        return None
    if above < 0 or share == 0.0:
        policy = policy_of(occupancy, policies[below], False, 0.0)
        return Brief(outcome == OPTIMAL, gains[below, 0], (policies[below],), policy)
    guide = policies[above if share > 0.5 else below]
    value = (1.0 - share) * gains[below, 0] + share * gains[above, 0]
    policy = policy_of(occupancy, guide, True, 0.0)
    return Brief(outcome == OPTIMAL, value, (policies[below], policies[above]), policy)


def _newton(problem: Problem, transition: Floats, start: Sequence[Ints], least_excess: bool) -> Any:
    tau = float(problem.thresholds[0]) if problem.thresholds.size else np.inf
    return newton(
        transition, problem.costs, tau, problem.available, np.array(start, dtype=np.int64),
        SWITCH_TOL, GAP_TOL, FEASIBILITY_TOL, TIE_TOL, least_excess,
    )  # fmt: skip


def _solve_compiled(problem: Problem, start: Sequence[Ints], least_excess: bool) -> Solution | None:
    """Newton's method in one compiled call; None if it met a policy with several classes."""
    outcome, below, above, share, weights, proof, gap, evaluated, gains, biases, policies, laws, occupancy = _newton(
        problem, problem.transition, start or [greedy_policy(problem)], least_excess
    )
    if outcome == GIVE_UP:
        return None
    q = weights.size
    used = {below, above, proof} - {-1}
    columns = {j: Column(policies[j], gains[j, :q], biases[j], laws[j]) for j in used}
    mixed = above >= 0 and share > 0.0
    answers = (columns[below], columns[above]) if mixed else (columns[below],)
    shares = np.array([1.0 - share, share] if mixed else [1.0])
    mixture = Mixture(outcome == OPTIMAL, answers, shares, weights, columns[proof], gap, evaluated)
    return Solution(mixture, occupancy, stationary_policy(problem, answers, shares, occupancy))


def mixed_occupancy(problem: Problem, columns: Sequence[Column], shares: Floats) -> Floats:
    """The long-run frequencies (S, A) of a mixture."""
    occupancy = np.zeros(problem.available.shape)
    states = np.arange(len(occupancy))
    for column, share in zip(columns, shares, strict=True):
        occupancy[states, column.policy] += share * column.stationary
    return occupancy


def stationary_policy(problem: Problem, columns: Sequence[Column], shares: Floats, occupancy: Floats) -> Floats:
    """The stationary policy with the occupancy of a mixture.

    Where the mixture has no mass, its heaviest policy is followed: it leads to states that have.
    """
    guide = columns[int(shares.argmax())].policy
    exact = isinstance(problem.transition, np.ndarray)
    return policy_of(occupancy, guide, len(columns) > 1, 0.0 if exact else SPARSE_MASS_TOL)
