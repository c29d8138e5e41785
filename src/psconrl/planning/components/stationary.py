"""Search for a stationary policy with the averages of a mixture of policies of the whole model.

In recurrent states it plays in proportion to frequencies, in transient states in proportion to visits. Then all flow
ends in the right classes, unless a state is recurrent under some policies and transient under others. With one
constraint, pairs of optimal policies that differ in fewer states are tried too, since any policy between two of them
may be optimal.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.sizes import BISECTED_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.markov.chain import chain_of
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import SAME_LINE


class Point(NamedTuple):
    """A deterministic policy with its occupancy and its averages in scaled costs."""

    policy: Ints  # (S,)
    occupancy: Floats  # (S, A)
    costs: Floats  # (m+1,)


def stationary(
    part: CMDP, problem: Problem, policies: Sequence[Ints], shares: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the occupancy (S, A) of an optimal mixture, and a policy that has it if one was found."""
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
            # With ties, averages may agree although frequencies differ. Return the frequencies that are played.
            best, fewest = (played if attained else occupancy, policy), randomised
        if randomised <= problem.thresholds.size:
            break
    assert best is not None
    return best


def _mixtures(
    part: CMDP, problem: Problem, points: list[Point], shares: Floats, weights: Floats
) -> Iterator[tuple[list[Point], Floats]]:
    """Yield the mixture, and others with the same averages."""
    yield points, shares
    if weights.size == 2 and len(points) == 2 and part.n_states <= BISECTED_STATES:
        for backwards in (False, True):
            yield _nearest_pair(part, problem, points, shares, weights, backwards)


def _nearest_pair(
    part: CMDP, problem: Problem, points: list[Point], shares: Floats, weights: Floats, backwards: bool
) -> tuple[list[Point], Floats]:
    """Return two optimal policies on either side of the threshold that differ in as few states as halving attains."""
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
    """Return the mean number of visits (S,) of a deterministic policy to its transient states; zero elsewhere.

    Raises ``SolverError`` if one of these states is left so rarely that doubles cannot hold the number.
    """
    chain = chain_of(part.transition, actions)
    transient = np.flatnonzero(chain.labelled_classes()[1] < 0)
    visits = np.zeros(part.n_states)
    if transient.size:
        visits[transient] = chain.visits(transient, part.initial)
    if not np.isfinite(visits).all():
        raise SolverError("a transient state is visited more often than doubles can count")
    return visits
