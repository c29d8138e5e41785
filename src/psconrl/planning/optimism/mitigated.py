r"""Projected mitigated extended value iteration, PMEVI (Boone and Zhang 2024, arXiv 2406.01234).

Rewards are maximised over the models whose rows lie in L1 balls, with two changes to extended value iteration:

.. math:: L v(s) = \max_a \big\{ r(s,a) + \min\big( \max_{p \in \mathcal C(s,a)} p\,v,\;
          \bar p(s,a)\,v + \beta(s,a) \big) \big\}, \qquad v \leftarrow \Gamma L v

The mitigation :math:`\beta` limits how much optimism may add to the estimated mean. The projection :math:`\Gamma` maps
v to the greatest vector below it whose differences are within bounds, :math:`v(s) - v(s') \le d(s,s')`.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.model.matrix_product import product
from psconrl.planning.optimism.ball import least_in_ball

MOST_MITIGATED_SWEEPS = 20_000  # value iteration takes some hundreds


class MitigatedPlan(NamedTuple):
    """A greedy policy and the vector for which it is greedy."""

    policy: Floats  # (S, A)
    gain: float  # average reward, at least that of the best policy in every model that the bounds allow
    values: Floats  # (S,), the bias; its least value is 0


def closed_bounds(bounds: Floats) -> Floats | None:
    """Return the tightest bounds (S, S) on v(s) - v(s') that given ones imply; None if no v satisfies them.

    They are the lengths of shortest paths (Floyd and Warshall).

    >>> closed_bounds(np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 2.0], [9.0, 9.0, 0.0]])).tolist()
    [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [9.0, 9.0, 0.0]]
    >>> closed_bounds(np.array([[0.0, 1.0], [-2.0, 0.0]]))
    """
    closed = bounds.copy()
    for k in range(len(closed)):
        np.minimum(closed, closed[:, k, None] + closed[None, k], out=closed)
    return None if (closed.diagonal() < 0.0).any() else closed


def projected(values: Floats, bounds: Floats) -> Floats:
    """Return the greatest vector below ``values`` (S,) within closed bounds (S, S) on its differences.

    >>> projected(np.array([5.0, 1.0]), np.array([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [3.0, 1.0]
    """
    return np.asarray((values[None, :] + bounds).min(axis=1))


def mitigated_values(p_bar: Floats, radius: Floats, rewards: Floats, mitigation: Floats, values: Floats) -> Floats:
    """Return the value (S, A) of every pair: its reward, and the mitigated optimistic mean of ``values`` (S,).

    ``p_bar`` (S*A, S) and ``radius`` (S*A,) define the balls; ``rewards`` and ``mitigation`` are (S, A).
    """
    optimistic = product(least_in_ball(p_bar, radius, -values), values)
    estimated = product(p_bar, values)
    return rewards + np.minimum(optimistic.reshape(rewards.shape), estimated.reshape(rewards.shape) + mitigation)


def plan_mitigated(
    p_bar: Floats,
    radius: Floats,
    rewards: Floats,
    mitigation: Floats,
    bounds: Floats,
    accuracy: float,
    initial: Floats,
) -> MitigatedPlan:
    r"""Iterate from ``initial`` (S,) until the changes of all states differ by less than ``accuracy``.

    The operator is nonexpansive, but may be periodic, so an iterate is the mean of the last one and its image. Both
    have the same fixed points.
    """
    values = projected(initial, bounds)
    for _ in range(MOST_MITIGATED_SWEEPS):
        pairs = mitigated_values(p_bar, radius, rewards, mitigation, values)
        image = projected(pairs.max(axis=1), bounds)
        change = image - values
        gain = float(change.max())
        if gain - change.min() < accuracy:
            return MitigatedPlan(one_hot(pairs.argmax(axis=1), rewards.shape[1]), gain, values - values.min())
        values = 0.5 * (values + image)
        values -= values.min()
    raise SolverError(f"mitigated value iteration has not settled within {MOST_MITIGATED_SWEEPS:,} sweeps")
