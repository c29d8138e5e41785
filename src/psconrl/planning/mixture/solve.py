"""Solve a scaled problem for an occupancy and a policy, as a learning loop does in each episode."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import DOUBLE_DOUBLE_STATES, HASTY_STATES
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic.products import dot
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.kernels.search.mixture_search import GIVE_UP, OPTIMAL, Searched, newton
from psconrl.kernels.search.transitions import Rows
from psconrl.markov.elimination_order import NO_ORDER, Order
from psconrl.markov.gain_bias import Unichain
from psconrl.planning.mixture.column_generation import Follow, Mixture, is_settled, mix
from psconrl.planning.mixture.howard import Column, Howard, greedy_policy
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.mixture_frequencies import mixed_occupancy
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import PLAYABLE_GAP, PRODUCT_OFF, SEARCH, SEARCH_GAP, search_with

_NO_WEIGHTS = np.empty(0)
# Multiplications per entry of a chain and per cost up to which an elimination is tried first.
QUICK = 1000.0
# Krylov steps for a chain: at first, and the factor by which they grow before a factorisation that would fill in.
KRYLOV_STEPS, PATIENT = 400, 10
LEAST_MASS = 1e-290  # smaller masses of a state have lost digits, or vanished
# The search aims at a gap smaller than the allowed one by this factor, which leaves room for rounding.
CLOSER = SEARCH_GAP / PLAYABLE_GAP


class Solution:
    """The solution of a scaled problem. If it is infeasible, the policy has a small excess over the thresholds.

    A learning loop needs the policy thousands of times but never the underlying mixture, so the mixture is built on
    demand.
    """

    __slots__ = ("_mixture", "feasible", "gap", "occupancy", "policies", "policy", "value", "weights")

    def __init__(
        self,
        feasible: bool,
        gap: float,
        value: float,
        policies: tuple[Ints, ...],
        occupancy: Floats,
        policy: Floats,
        weights: Floats,
        mixture: Callable[[], Mixture[Column]],
    ) -> None:
        self.feasible = feasible  # whether some policy meets the thresholds
        self.gap = gap  # as in ``Mixture``
        self.value = value  # average of the scaled objective
        self.policies = policies  # deterministic policies of the mixture, to start the next solve from
        self.occupancy = occupancy  # (S, A) long-run frequencies of the mixture
        self.policy = policy  # (S, A) that has them
        self.weights = weights  # (m+1,) dual weights, as in ``Mixture``
        self._mixture: Mixture[Column] | Callable[[], Mixture[Column]] = mixture

    @property
    def mixture(self) -> Mixture[Column]:
        """Policies with their shares, and the proof."""
        if callable(self._mixture):
            self._mixture = self._mixture()
        return self._mixture

    @property
    def settled(self) -> bool:
        """Whether the solution is proven, within tolerance; if not, rounding has stopped the search."""
        return self.settled_within(PLAYABLE_GAP)

    def settled_within(self, gap: float) -> bool:
        """Whether the objective is proven to be within ``gap`` of its bound."""
        return is_settled(self.feasible, self.gap, gap)


def solve(
    problem: Problem,
    start: Sequence[Ints] = (),
    *,
    least_excess: bool = False,
    near: Floats | None = None,
    order: Order | None = None,
    careful_states: int = DOUBLE_DOUBLE_STATES,
    within: float = PLAYABLE_GAP,
    follow: Follow | None = None,
    known: KnownPolicies | None = None,
) -> Solution:
    """Solve a weakly communicating problem, starting from deterministic policies such as those of the last solution.

    ``least_excess``: if infeasible, continue until the largest excess over the thresholds is minimal. ``near``: a guess
    of the optimal weights. ``order``: elimination order for the states of sparse transitions, or ``NO_ORDER`` for
    Krylov methods; if None, sparse transitions are not searched by the compiled loop. If double precision leaves a gap
    above ``within``, models of up to ``careful_states`` states are solved in double-double precision. The caller must
    check whether the solution is ``settled``. ``follow``: receives the progress of a long search. ``known``: policies
    that other searches have evaluated, and to which this one adds; it is not used by the compiled loop.
    """
    # The path that a learning loop takes thousands of times; None for sparse transitions, which need an order.
    best = solve_compiled(problem, start, least_excess=least_excess, near=near, closed=CLOSER * within)
    if best is not None and best.settled_within(within):
        return best
    trouble = SolverError("the search did not end")
    for attempt in _attempts(problem, start, least_excess, near, order, careful_states, within, follow, known):
        try:
            found = attempt()
        except SolverError as error:
            trouble = error
            continue
        if found is not None and (found.settled_within(within) or (follow is not None and follow.stopped)):
            return found
        best = best or found
    if best is None:
        raise trouble
    return best


def _attempts(
    problem: Problem,
    start: Sequence[Ints],
    least_excess: bool,
    near: Floats | None,
    order: Order | None,
    careful_states: int,
    within: float,
    follow: Follow | None,
    known: KnownPolicies | None,
) -> Iterator[Callable[[], Solution | None]]:
    """Yield the ways to solve a problem, the quickest first; the compiled search without an order has been tried."""
    if not problem.transition.eliminates:
        compiled = partial(solve_compiled, problem, start, least_excess=least_excess, near=near, closed=CLOSER * within)
        if order is not None:
            if order.position.size:
                if not _is_quick(problem, order):
                    yield partial(compiled, order=NO_ORDER)
                yield partial(compiled, order=order)
            else:
                yield partial(_by_products, compiled)
        hasty = problem.available.shape[0] >= HASTY_STATES
        make = partial(Howard, hasty=hasty) if known is None else partial(known.oracle, hasty=hasty)
        yield lambda: _solve_with(make(problem), start, least_excess, near, hasty, follow, known)
    if problem.available.shape[0] <= careful_states:
        yield partial(solve_carefully, problem, start, least_excess=least_excess)


def _by_products(compiled: Callable[..., Solution | None]) -> Solution | None:
    """Search by Krylov methods; if a chain has not converged, with more steps, which would not help otherwise."""
    return compiled(order=NO_ORDER) or compiled(order=NO_ORDER, products=PATIENT * KRYLOV_STEPS)


def _is_quick(problem: Problem, order: Order) -> bool:
    """Whether elimination takes at most a few times as long as the Krylov steps of a fast-mixing chain."""
    entries = problem.transition.n_possible / problem.transition.n_actions
    return order.work <= QUICK * entries * len(problem.costs)


def solve_carefully(problem: Problem, start: Sequence[Ints] = (), *, least_excess: bool = False) -> Solution:
    """Solve a problem in double-double precision from the outset."""
    return _solve_with(Howard(problem, careful=True), start, least_excess)


def solve_compiled(
    problem: Problem,
    start: Sequence[Ints] = (),
    *,
    least_excess: bool = False,
    near: Floats | None = None,
    order: Order | None = None,
    products: int = KRYLOV_STEPS,
    closed: float = SEARCH_GAP,
) -> Solution | None:
    """Search in one compiled call until the gap is at most ``closed``; None if that fails.

    Sparse transitions need an ``order``.
    """
    P = problem.transition.for_search(order, products, max(closed, PRODUCT_OFF))
    if P is None:
        return None
    found = newton(
        P,
        problem.costs,
        problem.thresholds,
        problem.available,
        np.array(start or [greedy_policy(problem)], dtype=np.int64),
        _NO_WEIGHTS if near is None else near,
        least_excess,
        closed,
        *(search_with(P.off) if isinstance(P, Rows) and not P.order.position.size else SEARCH),
    )
    if found.outcome == GIVE_UP:
        return None
    policies, mixture = tuple(found.policies[:-1]), partial(_mixture, found)
    return Solution(
        found.outcome == OPTIMAL,
        found.gap,
        found.value,
        policies,
        found.occupancy,
        found.policy,
        found.weights,
        mixture,
    )


def _mixture(found: Searched) -> Mixture[Column]:
    """Return the mixture that a compiled search has found; its last policy proves the bound."""
    *answers, proof = [
        Column.of(policy, Unichain(averages, chain[:-1], chain[-1], -1))
        for policy, averages, chain in zip(found.policies, found.gains, found.chains, strict=True)
    ]
    feasible = found.outcome == OPTIMAL
    return Mixture(feasible, tuple(answers), found.shares, found.weights, proof, found.gap, found.evaluated)


def _solve_with(
    oracle: Howard,
    start: Sequence[Ints],
    least_excess: bool,
    near: Floats | None = None,
    smooth: bool = False,
    follow: Follow | None = None,
    known: KnownPolicies | None = None,
) -> Solution:
    problem = oracle.problem
    weights = np.full(problem.costs.shape[0], 1.0 / problem.costs.shape[0])
    columns = [oracle.evaluate(policy, weights) for policy in start]
    if known is not None:
        columns = known.columns  # among which are these
    mixture = mix(
        oracle, problem.thresholds, columns, least_excess=least_excess, near=near, smooth=smooth, follow=follow
    )
    answers, shares = mixture.answers, mixture.shares

    def with_distributions() -> Floats:
        return mixed_occupancy(answers, shares, problem.available.shape[1])

    occupancy = with_distributions() if follow is None else follow.finish(with_distributions)
    policy = stationary_policy(problem, answers, shares, occupancy)
    value = dot(shares, np.array([column.costs[0] for column in answers]))
    policies = tuple(column.policy for column in answers)
    return Solution(mixture.feasible, mixture.gap, value, policies, occupancy, policy, mixture.weights, lambda: mixture)


def stationary_policy(problem: Problem, columns: Sequence[Column], shares: Floats, occupancy: Floats) -> Floats:
    """Return the stationary policy with the occupancy of a mixture.

    In states without mass it follows the policy with the largest share, which leads to states with mass.
    """
    A = problem.available.shape[1]
    if len(columns) == 1:
        return one_hot(columns[0].policy, A)
    guide = one_hot(columns[int(shares.argmax())].policy, A)
    if not all(column.chain.exact for column in columns):
        return policy_from_occupancy(occupancy, guide, problem.transition.mass_error)
    rare = occupancy.sum(axis=1) < LEAST_MASS
    if rare.any():
        occupancy = np.where(rare[:, None], _relative_occupancy(columns, shares, A), occupancy)
    return policy_from_occupancy(occupancy, guide, 0.0)


def _relative_occupancy(columns: Sequence[Column], shares: Floats, n_actions: int) -> Floats:
    """Return the frequencies (S, A) of a mixture relative to the largest of each state, however small they are."""
    logs = np.array([np.log(share) + column.log_masses for column, share in zip(columns, shares, strict=True)])
    most = logs.max(axis=0)
    relative, states = np.zeros((most.size, n_actions)), np.arange(most.size)
    for column, masses in zip(columns, logs, strict=True):
        relative[states, column.policy] += np.exp(masses - np.where(np.isfinite(most), most, 0.0))
    return relative
