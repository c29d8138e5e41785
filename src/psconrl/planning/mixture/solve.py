"""From a scaled problem to an occupancy and a policy: what a learning loop calls in each episode."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model.ordering import NO_ORDER, Order
from psconrl.model.transition import RestartingTransition, Transition
from psconrl.model.unichain import Unichain
from psconrl.planning.mixture._laws import Rows
from psconrl.planning.mixture._newton import GIVE_UP, OPTIMAL, Found, newton
from psconrl.planning.mixture.column_generation import Mixture, is_settled, mix
from psconrl.planning.mixture.howard import Column, Howard, greedy_policy
from psconrl.planning.policy_from_occupancy import mixed_occupancy, one_hot, policy_from_occupancy
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import SEARCH

_NO_WEIGHTS = np.empty(0)
# Up to this size what rounding left open is tried in twice the precision: dense, O(S^3) three times over per policy.
CAREFUL_STATES = 1000
# Multiplications of an elimination for every entry of a chain and every cost that are worth trying at once.
QUICK = 250.0


class Solution:
    """The answer to a scaled problem. If infeasible, the policy is one of small excess over the thresholds.

    A learning loop asks for the policy thousands of times and never for the mixture behind it: that is put together
    when somebody does.
    """

    __slots__ = ("_mixture", "feasible", "gap", "policies", "policy", "value", "weights")

    def __init__(
        self,
        feasible: bool,
        gap: float,
        value: float,
        policies: tuple[Ints, ...],
        policy: Floats,
        weights: Floats,
        mixture: Callable[[], Mixture[Column]],
    ) -> None:
        self.feasible = feasible  # do policies within the thresholds exist?
        self.gap = gap  # as in ``Mixture``
        self.value = value  # the average of the scaled objective
        self.policies = policies  # the deterministic ones in the mixture, to start the next solve from
        self.policy = policy  # (S, A)
        self.weights = weights  # (m+1,) the dual weights, as in ``Mixture``
        self._mixture = mixture

    @property
    def mixture(self) -> Mixture[Column]:
        """The policies with their shares, and the proof."""
        return self._mixture()

    @property
    def occupancy(self) -> Floats:
        """The long-run frequencies (S, A)."""
        mixture = self.mixture
        return mixed_occupancy(mixture.answers, mixture.shares, self.policy.shape[1])

    @property
    def settled(self) -> bool:
        """Is it proven, up to what the tolerance allows? If not, rounding has stopped the search."""
        return is_settled(self.feasible, self.gap)


def solve(
    problem: Problem,
    start: Sequence[Ints] = (),
    *,
    least_excess: bool = False,
    near: Floats | None = None,
    order: Order = NO_ORDER,
) -> Solution:
    """Solve a weakly communicating problem, starting from deterministic policies such as those of the last solution.

    ``least_excess``: if infeasible, go on until the largest excess over the thresholds is as small as it can be.
    ``near``: weights close to which those of the optimum are thought to lie. ``order``: in which the states of sparse
    transitions may be eliminated. What ordinary precision cannot settle is tried in twice that. Whoever uses the
    solution asks if it is ``settled``.
    """
    compiled = partial(solve_compiled, problem, start, least_excess=least_excess, near=near)
    first, trouble = compiled(order=order if _is_quick(problem, order) else NO_ORDER), None
    if first is None and problem.transition.is_sparse and order.position.size:
        first = compiled(order=order)
    if first is None and problem.transition.is_sparse:
        try:
            first = _solve_with(Howard(problem), start, least_excess, near)
        except SolverError as error:
            trouble = error
    if (first is None or not first.settled) and problem.available.shape[0] <= CAREFUL_STATES:
        try:
            second = solve_carefully(problem, start, least_excess=least_excess)
        except SolverError as error:
            trouble = error
        else:
            return second if first is None or second.settled else first
    if first is None:
        raise trouble or SolverError("the search did not end")
    return first


def _is_quick(problem: Problem, order: Order) -> bool:
    """Does an elimination take no longer than the products that a chain which mixes quickly needs, a few times over?"""
    entries = problem.transition.n_possible / problem.transition.n_actions
    return order.work <= QUICK * entries * len(problem.costs)


def solve_carefully(problem: Problem, start: Sequence[Ints] = (), *, least_excess: bool = False) -> Solution:
    """``solve`` in twice the working precision from the outset."""
    return _solve_with(Howard(problem, careful=True), start, least_excess)


def solve_compiled(
    problem: Problem,
    start: Sequence[Ints] = (),
    *,
    least_excess: bool = False,
    near: Floats | None = None,
    order: Order = NO_ORDER,
) -> Solution | None:
    """The search in one compiled call; None where that cannot do."""
    laws = _laws(problem.transition, order)
    if laws is None:
        return None
    found = newton(
        laws,
        problem.costs,
        problem.thresholds,
        problem.available,
        np.array(start or [greedy_policy(problem)], dtype=np.int64),
        _NO_WEIGHTS if near is None else near,
        least_excess,
        *SEARCH,
    )
    if found.outcome == GIVE_UP:
        return None
    policies, feasible = tuple(found.policies[:-1]), found.outcome == OPTIMAL
    mixture = partial(_mixture_of, found)
    return Solution(feasible, found.gap, found.value, policies, found.policy, found.weights, mixture)


def _laws(P: Transition, order: Order) -> Floats | Rows | None:
    """Transitions as the compiled search takes them: sparse ones if no policy's chain falls apart."""
    if P.array is not None:
        return P.array
    if not isinstance(P, RestartingTransition):
        return None
    base = P.base.matrix
    return Rows(base.indptr, base.indices, base.data, P.state, P.chance, order)


def _mixture_of(found: Found) -> Mixture[Column]:
    """What the compiled search found, in the terms of the general one."""
    *answers, proof = [
        Column(policy, Unichain(gains, chain[:-1], chain[-1], -1))
        for policy, gains, chain in zip(found.policies, found.gains, found.chains, strict=True)
    ]
    feasible = found.outcome == OPTIMAL
    return Mixture(feasible, tuple(answers), found.shares, found.weights, proof, found.gap, found.evaluated)


def _solve_with(oracle: Howard, start: Sequence[Ints], least_excess: bool, near: Floats | None = None) -> Solution:
    problem = oracle.problem
    weights = np.full(problem.costs.shape[0], 1.0 / problem.costs.shape[0])
    columns = [oracle.evaluate(policy, weights) for policy in start]
    mixture = mix(oracle, problem.thresholds, columns, least_excess=least_excess, near=near)
    answers, shares = mixture.answers, mixture.shares
    occupancy = mixed_occupancy(answers, shares, problem.available.shape[1])
    policy = stationary_policy(problem, answers, shares, occupancy)
    value = float(shares @ [column.costs[0] for column in answers])
    policies = tuple(column.policy for column in answers)
    return Solution(mixture.feasible, mixture.gap, value, policies, policy, mixture.weights, lambda: mixture)


def stationary_policy(problem: Problem, columns: Sequence[Column], shares: Floats, occupancy: Floats) -> Floats:
    """The stationary policy with the occupancy of a mixture.

    Where the mixture has no mass, its heaviest policy is followed: it leads to states that have.
    """
    A = problem.available.shape[1]
    if len(columns) == 1:
        return one_hot(columns[0].policy, A)
    guide = one_hot(columns[int(shares.argmax())].policy, A)
    return policy_from_occupancy(occupancy, guide, problem.transition.mass_error)
