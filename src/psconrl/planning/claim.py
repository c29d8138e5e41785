"""A claim: a policy and the dual point that shall prove it. Made by the mixture or by the linear program."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model import _kernels
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import approach, end_components
from psconrl.planning.coins import fewest_coins
from psconrl.planning.lp import LPSolution, solve_lp
from psconrl.planning.oracle import Howard
from psconrl.planning.problem import Problem
from psconrl.planning.solve import Solution, mixed_occupancy, solve, stationary_policy

LP_MASS_TOL = 1e-10  # HiGHS' primal tolerance: less is not mass


@dataclass(frozen=True, eq=False)
class Claim:
    """What a planner found, in scaled costs, on a model of which every state is reachable."""

    feasible: bool
    occupancy: Floats  # (S, A)
    policy: Floats  # (S, A)
    multipliers: Floats  # (m,)
    potential: Floats  # (S,)
    gains: Floats | None  # (S,) if the model has several end components
    columns: tuple[Ints, ...]
    method: str
    note: str


def find_claim(part: CMDP, problem: Problem, method: str, start: Sequence[Ints]) -> Claim:
    """Plan by the method asked for, or by the one that the model needs."""
    if not _has_one_component(part):
        return _from_lp(problem, solve_lp(problem, part.initial), "several end components: multichain program")
    if method == "lp":
        return _from_lp(problem, solve_lp(problem), "")
    try:
        return _from_mixture(problem, solve(problem, start, least_excess=True))
    except SolverError as error:
        return _from_lp(problem, solve_lp(problem), f"planned by HiGHS, since {error}")


def _has_one_component(part: CMDP) -> bool:
    P = part.transition
    if isinstance(P, np.ndarray) and _kernels.strongly_connected(P, part.n_actions):
        return True
    return len(end_components(part)) == 1


def _from_mixture(problem: Problem, solution: Solution) -> Claim:
    mixture = solution.mixture
    w = mixture.weights
    unit = w[0] if mixture.feasible else 1.0
    occupancy, policy = solution.occupancy, solution.policy
    if mixture.feasible and len(mixture.answers) == 2:
        columns, shares = fewest_coins(Howard(problem), mixture)
        occupancy = mixed_occupancy(problem, columns, shares)
        policy = stationary_policy(problem, columns, shares, occupancy)
    potential = (w @ mixture.proof.biases) / unit
    return Claim(mixture.feasible, occupancy, policy, w[1:] / unit, potential, None, solution.policies, "mixture", "")


def _from_lp(problem: Problem, solution: LPSolution, note: str) -> Claim:
    """Play by the occupancy; off its support by the transient visits, or towards it."""
    visited = solution.occupancy.sum(axis=1) > LP_MASS_TOL
    onward = approach(problem.transition, problem.available, visited, problem.available.argmax(axis=1))
    policy = np.eye(problem.available.shape[1])[onward]
    if solution.transient is not None:
        policy = _follow(solution.transient, policy)
    policy = _follow(solution.occupancy, policy)
    return Claim(
        solution.feasible, solution.occupancy, policy, solution.multipliers, solution.potential, solution.gains,
        (policy.argmax(axis=1),), "lp", note,
    )  # fmt: skip


def _follow(visits: Floats, otherwise: Floats) -> Floats:
    mass = visits.sum(axis=1, keepdims=True)
    some = mass > LP_MASS_TOL
    return np.where(some, visits / np.where(some, mass, 1.0), otherwise)
