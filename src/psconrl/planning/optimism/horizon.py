r"""Optimistic planning over a finite horizon, as an oracle for column generation.

.. math:: Q_h(s,a) = c_w(s,a) + \min_{p \in \mathcal C(s,a)} p \cdot V_{h+1}, \qquad V_{H+1} = 0

The transition distribution may differ at each step h (with the same one at all steps the problem would not be convex).
One backward recursion answers a query exactly, whereas the occupancy program has H S^2 A variables (FHA; Chen, Jain and
Luo 2022, Algorithm 3).
"""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.arithmetic.products import dot
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.kernels.sets.best_rows import BestRows
from psconrl.kernels.sets.optimism import optimistic_horizon
from psconrl.planning.mixture.column_generation import Mixture, mix
from psconrl.planning.mixture.oracle import Oracle
from psconrl.planning.tolerances import SAME_VALUE


@dataclass(frozen=True, eq=False, slots=True)
class HorizonColumn:
    """A nonstationary policy with its visits in the optimistic model."""

    actions: Ints  # (H, S)
    visits: Floats  # (H, S)
    costs: Floats  # (m+1,) averages per step


class HorizonOracle(Oracle[HorizonColumn]):
    """Oracle that answers every query exactly by one backward recursion, without improvement steps."""

    def __init__(self, low: Floats, high: Floats, costs: Floats, horizon: int, start: int) -> None:
        self._box = BestRows(np.ascontiguousarray(low), np.ascontiguousarray(high))
        self._costs = np.ascontiguousarray(costs)
        self._horizon, self._start = horizon, start

    def first(self, weights: Floats) -> HorizonColumn:
        """Return the best policy for the weights."""
        return self._solve(weights)[1]

    def improve(self, answer: HorizonColumn, weights: Floats) -> tuple[float, HorizonColumn | None]:
        """Return the best value per step, and the policy that attains it unless ``answer`` is as good."""
        value, better = self._solve(weights)
        return value, better if dot(weights, answer.costs) > value + SAME_VALUE else None

    def _solve(self, weights: Floats) -> tuple[float, HorizonColumn]:
        value, totals, actions, visits = optimistic_horizon(self._box, self._costs, weights, self._horizon, self._start)
        return value / self._horizon, HorizonColumn(actions, visits, totals / self._horizon)


def solve_horizon(
    low: Floats, high: Floats, costs: Floats, thresholds: Floats, horizon: int, start: int
) -> tuple[Mixture[HorizonColumn], Floats]:
    """Return the best mixture over a horizon from a state, and its randomised policy (H, S, A).

    ``thresholds`` are averages per step. If they cannot be met, the mixture has the least excess.
    """
    oracle = HorizonOracle(low, high, costs, horizon, start)
    mixture = mix(oracle, thresholds, least_excess=True).required()
    return mixture, horizon_policy(mixture, low.shape[0] // low.shape[1])


def horizon_policy(mixture: Mixture[HorizonColumn], n_actions: int) -> Floats:
    """Return the policy with the mean occupancy; in states without mass, that of the column with the largest share."""
    guide = mixture.answers[int(mixture.shares.argmax())].actions
    H, S = guide.shape
    occupancy = np.zeros((H, S, n_actions))
    steps, states = np.ogrid[:H, :S]
    for column, share in zip(mixture.answers, mixture.shares, strict=True):
        occupancy[steps, states, column.actions] += share * column.visits
    flat = policy_from_occupancy(occupancy.reshape(H * S, n_actions), one_hot(guide.ravel(), n_actions), 0.0)
    return np.asarray(flat.reshape(occupancy.shape))
