"""The stationary policy with the averages of a mixture of policies of the whole model, if one is found.

In states where the mixture remains it plays by frequencies, in those that it passes through by visits: then all that
flows through them ends where it should, unless some policies remain where others pass through. With one limit, pairs of
optimal policies that differ in fewer states are tried, too: any policy between two of them may be optimal.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.kernels.occupancy import one_hot, policy_from_occupancy
from psconrl.markov.chain import chain_of
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import SAME_LINE
from psconrl.products import product

# Up to this size policies between two optimal ones are evaluated: twice the logarithm of the number of states.
HALVED_STATES = 1000


class Point(NamedTuple):
    """A deterministic policy, and what it comes to in scaled costs."""

    policy: Ints  # (S,)
    occupancy: Floats  # (S, A)
    costs: Floats  # (m+1,)


def stationary(
    part: CMDP, problem: Problem, policies: Sequence[Ints], shares: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """The occupancy (S, A) of a mixture that is optimal for the weights, and a policy that has it if any was found."""
    points = [_point(part, problem, actions) for actions in policies]
    if len(points) == 1:
        return points[0].occupancy, one_hot(points[0].policy, part.n_actions)
    averages = product(shares, [point.costs for point in points])
    best, fewest = None, np.inf
    for tried, parts in _mixtures(part, problem, points, shares, weights):
        occupancy = sum(share * point.occupancy for share, point in zip(parts, tried, strict=True))
        policy = _combined(part, tried, parts, occupancy)
        played = evaluate_policy(part, policy).occupancy
        attained = abs(product(problem.costs, played.ravel()) - averages).max() <= SAME_LINE
        randomised = int(((policy > 0).sum(axis=1) > 1).sum()) if attained else np.inf
        if best is None or randomised < fewest:
            # Ties: averages may agree where frequencies do not. What is told is what is played.
            best, fewest = (played if attained else occupancy, policy), randomised
        if randomised <= problem.thresholds.size:
            break
    assert best is not None
    return best


def _mixtures(
    part: CMDP, problem: Problem, points: list[Point], shares: Floats, weights: Floats
) -> Iterator[tuple[list[Point], Floats]]:
    """The mixture, and others of the same averages."""
    yield points, shares
    if weights.size == 2 and len(points) == 2 and part.n_states <= HALVED_STATES:
        for backwards in (False, True):
            yield _nearest_pair(part, problem, points, shares, weights, backwards)


def _nearest_pair(
    part: CMDP, problem: Problem, points: list[Point], shares: Floats, weights: Floats, backwards: bool
) -> tuple[list[Point], Floats]:
    """Two optimal policies on either side of the limit that differ in as few states as could be reached by halving."""
    level = product(shares, [point.costs[1] for point in points])
    low, high = sorted(points, key=lambda point: float(point.costs[1]))
    while True:
        differing = np.flatnonzero(low.policy != high.policy)
        if differing.size <= 1:
            break
        half = (differing[::-1] if backwards else differing)[: differing.size // 2]
        policy = low.policy.copy()
        policy[half] = high.policy[half]
        between = _point(part, problem, policy)
        if abs(product(weights, between.costs - low.costs)) > SAME_LINE * weights.sum():
            break
        low, high = (between, high) if between.costs[1] <= level else (low, between)
    width = float(high.costs[1] - low.costs[1])
    share = 0.0 if width <= 0.0 else min(max((level - float(low.costs[1])) / width, 0.0), 1.0)
    if share in (0.0, 1.0):
        return [high if share else low], np.ones(1)
    return [low, high], np.array([1.0 - share, share])


def _point(part: CMDP, problem: Problem, actions: Ints) -> Point:
    occupancy = evaluate_policy(part, one_hot(actions, part.n_actions)).occupancy
    return Point(actions, occupancy, product(problem.costs, occupancy.ravel()))


def _combined(part: CMDP, points: Sequence[Point], shares: Floats, occupancy: Floats) -> Floats:
    guide: Floats = one_hot(points[int(shares.argmax())].policy, part.n_actions)
    if len(points) == 1:
        return guide
    visits = np.zeros_like(occupancy)
    states = np.arange(part.n_states)
    for point, share in zip(points, shares, strict=True):
        visits[states, point.policy] += share * transient_visits(part, point.policy)
    onward = policy_from_occupancy(visits, guide, 0.0)
    policy: Floats = policy_from_occupancy(occupancy, onward, part.transition.mass_error)
    return policy


def transient_visits(part: CMDP, actions: Ints) -> Floats:
    """How often a deterministic policy visits each of the states (S,) that it leaves for ever, in mean."""
    chain = chain_of(part.transition, actions)
    passing = np.flatnonzero(chain.labelled_classes()[1] < 0)
    visits = np.zeros(part.n_states)
    if passing.size:
        visits[passing] = chain.visits(passing, part.initial)
    return visits
