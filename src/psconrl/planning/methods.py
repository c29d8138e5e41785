"""Choice of the planning method: the mixture, the mixture by components, or a linear program."""

from collections.abc import Sequence

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import MULTICHAIN_LP_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.structure import EndComponents, find_end_components
from psconrl.model.cmdp import CMDP
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.components.solve import solve_components
from psconrl.planning.linear_programs.lp import solve_lp
from psconrl.planning.linear_programs.multichain import solve_multichain
from psconrl.planning.mixture.howard import greedy_policy
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.mixture.solve import Solution, solve
from psconrl.planning.problem import Problem
from psconrl.planning.progress import Watch
from psconrl.planning.randomisation import fewest_randomised

LEAST_ROOM = 1e-4  # of the range of a cost: less slack would give extreme weights

METHODS = MIXTURE, LP = ("mixture", "lp")


def find_candidate(
    part: CMDP,
    problem: Problem,
    method: str,
    start: Sequence[Ints],
    watch: Watch,
    known: KnownPolicies | None = None,
) -> Candidate:
    """Plan by the requested method, or by the one that the structure of the model requires."""
    watch.scaling = problem.scaling
    if not part.transition.communicates:
        parts = find_end_components(part.transition, part.available)
        if parts.number > 1:
            return _multichain(part, problem, method, parts, watch)
    if method == LP:
        return solve_lp(problem)
    near = None if start else guessed_weights(problem)
    solution = solve(problem, start, least_excess=True, near=near, follow=watch.follow, known=known)
    return from_mixture(problem, solution, watch)


def guessed_weights(problem: Problem) -> Floats | None:
    """Return initial weights that balance the objective and the constraints; a constraint with less slack weighs more.

    Poor initial weights yield near-absorbing policies (escape probability about 1e-7), which are slow to evaluate
    unless chains are eliminated.
    """
    if problem.transition.eliminates or not problem.thresholds.size:
        return None
    room = problem.thresholds - np.where(problem.available.ravel(), problem.costs[1:], np.inf).min(axis=1)
    weights = np.append(1.0, 1.0 / np.maximum(room, LEAST_ROOM))
    return np.asarray(weights / weights.sum())


def _multichain(part: CMDP, problem: Problem, method: str, parts: EndComponents, watch: Watch) -> Candidate:
    """Plan component by component, or by one linear program if that is requested or if rounding spoils the former."""
    if method != LP:
        try:
            return solve_components(part, problem, parts, watch.follow)
        except SolverError:
            if part.n_states > MULTICHAIN_LP_STATES:
                raise
    return solve_multichain(problem, part.initial, np.flatnonzero(parts.inside.ravel()))


def from_mixture(problem: Problem, solution: Solution, watch: Watch) -> Candidate:
    """Return a policy with the mixture's averages and as few randomised states as found before the user interrupts."""
    mixture = solution.mixture
    occupancy, policy, w = solution.occupancy, solution.policy, mixture.weights
    if mixture.feasible and len(mixture.answers) > 1 and not watch.stopped:
        try:
            occupancy, policy = fewest_randomised(problem, solution)
        except KeyboardInterrupt:  # a few more randomised states do no harm
            if watch.follow is None:
                raise
            watch.interrupted()
    prices = w / w[0] if mixture.feasible and w[0] > 0.0 else w  # units of the objective per unit of each cost
    dual = Dual(prices[1:], *mixture.proof.potential(prices), None)
    return Candidate(mixture.feasible, occupancy, policy, dual, solution.policies, "mixture", "", mixture.shares)


def unproven(problem: Problem, method: str, trouble: str) -> Candidate:
    """Return the one-step greedy policy without proof, as a fallback after a method has failed."""
    S, A = problem.available.shape
    actions = greedy_policy(problem)
    policy = one_hot(actions, A)
    dual = Dual.nothing(S, problem.thresholds.size)
    return Candidate(True, policy / S, policy, dual, (actions,), method, trouble)
