"""A claim: a policy and the dual point that shall prove it. Made by the mixture or by the linear program."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.model import _kernels
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import approach, end_components
from psconrl.planning.careful import potential_of
from psconrl.planning.coins import drop_coins, fewest_coins
from psconrl.planning.lp import MASS_TOL, LPSolution, Multichain, solve_lp
from psconrl.planning.oracle import Howard, greedy_policy
from psconrl.planning.problem import Problem
from psconrl.planning.solve import Solution, mixed_occupancy, solve, stationary_policy


@dataclass(frozen=True, eq=False)
class Claim:
    """What a planner found, in scaled costs, on a model of which every state is reachable."""

    feasible: bool
    occupancy: Floats  # (S, A)
    policy: Floats  # (S, A)
    multipliers: Floats  # (m,)
    potential: Floats  # (S,)
    low_potential: Floats  # (S,) what one double a state cannot hold of it
    gains: Floats | None  # (S,) if the model has several end components
    columns: tuple[Ints, ...]
    method: str
    note: str


def find_claim(part: CMDP, problem: Problem, method: str, start: Sequence[Ints]) -> Claim:
    """Plan by the method asked for, or by the one that the model needs."""
    if not _is_communicating(part):
        components = end_components(part)
        if len(components) > 1:
            multichain = Multichain(part.initial, np.concatenate([component.pairs for component in components]))
            return _from_lp(problem, solve_lp(problem, multichain), "several end components: multichain program")
    if method == "lp":
        return _from_lp(problem, solve_lp(problem), "")
    return _from_mixture(problem, solve(problem, start, least_excess=True))


def unproven(problem: Problem, method: str, trouble: str) -> Claim:
    """The policy that is cheapest for one step, where a method has failed: something to evaluate, and no proof."""
    S, A = problem.available.shape
    actions = greedy_policy(problem)
    policy = np.eye(A)[actions]
    nothing = np.zeros(S)
    return Claim(
        True, policy / S, policy, np.zeros(problem.thresholds.size), nothing, nothing, None, (actions,), method, trouble
    )


def _is_communicating(part: CMDP) -> bool:
    """The quick test; a model that fails it may still have a single end component."""
    P = part.transition
    return isinstance(P, np.ndarray) and bool(_kernels.strongly_connected(P, part.n_actions))


def _from_mixture(problem: Problem, solution: Solution) -> Claim:
    mixture = solution.mixture
    w = mixture.weights
    unit = w[0] if mixture.feasible else 1.0
    occupancy, policy = solution.occupancy, solution.policy
    if mixture.feasible and len(mixture.answers) > 1:
        if w.size == 2:
            columns, shares = fewest_coins(Howard(problem), mixture)
            occupancy = mixed_occupancy(problem, columns, shares)
            policy = stationary_policy(problem, columns, shares, occupancy)
        occupancy, policy = drop_coins(problem, occupancy, policy)
    high, low = potential_of(mixture.proof, w / unit)
    return Claim(mixture.feasible, occupancy, policy, w[1:] / unit, high, low, None, solution.policies, "mixture", "")


def _from_lp(problem: Problem, solution: LPSolution, note: str) -> Claim:
    """Play by the occupancy; off its support by the transient visits, or towards it."""
    visited = solution.occupancy.sum(axis=1) > MASS_TOL
    onward = approach(problem.transition, problem.available, visited, problem.available.argmax(axis=1))
    policy = np.eye(problem.available.shape[1])[onward]
    if solution.transient is not None:
        policy = _follow(solution.transient, policy)
    policy = _follow(solution.occupancy, policy)
    return Claim(
        solution.feasible, solution.occupancy, policy, solution.multipliers, solution.potential,
        np.zeros_like(solution.potential), solution.gains, (policy.argmax(axis=1),), "lp", note,
    )  # fmt: skip


def _follow(visits: Floats, otherwise: Floats) -> Floats:
    mass = visits.sum(axis=1, keepdims=True)
    some = mass > MASS_TOL
    return np.where(some, visits / np.where(some, mass, 1.0), otherwise)
