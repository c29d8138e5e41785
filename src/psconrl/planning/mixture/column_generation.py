r"""Column generation: ask the oracle for policies until the best mixture of them is proven optimal.

For weights :math:`w = (1, \lambda) / (1 + \sum \lambda)` from the master, any lower bound L of the oracle gives

.. math:: J^* \;\ge\; \frac{L - \sum_i w_i \tau_i}{w_0},

the Lagrangian bound, while the master's mixture is feasible and costs at least as much. The two meet in finitely
many steps: for m = 1 this is Newton's method on the concave, piecewise linear dual. The oracle is not asked for the
best policy of each weight: every evaluated policy is a column, so the master may move the weights after each single
improvement. If instead :math:`L > \sum_i w_i \tau_i` for some :math:`w = (0, y)`, nothing is feasible (Farkas).
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple

import numpy as np

from psconrl.arrays import Bools, Floats
from psconrl.errors import SolverError
from psconrl.planning.mixture.master import MasterPoint, master_for
from psconrl.planning.mixture.oracle import Answer, Oracle
from psconrl.planning.tolerances import FEASIBLE, LEAST_GUESS, PLAYABLE_GAP, SAME_AVERAGE, SEARCH_GAP

MAX_COLUMNS = 2000


def is_settled(feasible: bool, gap: float, within: float = PLAYABLE_GAP) -> bool:
    """Does the gap of a mixture, or the margin of a proof of infeasibility, decide the matter?"""
    return bool(gap <= within if feasible else gap < -FEASIBLE)


class Mixture(NamedTuple, Generic[Answer]):
    """The outcome: policies with weights, and the dual point that proves them best, or proves there is nothing."""

    feasible: bool
    answers: tuple[Answer, ...]  # those with positive weight
    shares: Floats  # their weights, of sum one
    weights: Floats  # (m+1,) dual weights of sum one: (1, lambda) or, if infeasible, (0, y), up to scale
    proof: Answer  # the answer whose bias carries the bound
    gap: float  # scaled objective minus its lower bound; if infeasible, minus the margin of the Farkas proof
    evaluated: int  # policies

    @property
    def settled(self) -> bool:
        """Is it proven, up to what the tolerance allows?"""
        return is_settled(self.feasible, self.gap)

    def required(self) -> "Mixture[Answer]":
        """This mixture, or an error if rounding has left its gap open: nobody should play that."""
        if not self.settled:
            raise SolverError(f"rounding left a gap of {self.gap:.1e}")
        return self


def mix(
    oracle: Oracle[Answer],
    thresholds: Floats,
    start: Sequence[Answer] = (),
    *,
    least_excess: bool = False,
    near: Floats | None = None,
) -> Mixture[Answer]:
    """The cheapest mixture that meets the thresholds.

    ``start``: answers to begin with, such as the last plan's, evaluated under the present model. ``least_excess``:
    if infeasible, go on until the largest excess over the thresholds is as small as it can be. ``near``: weights close
    to which those of the optimum are thought to lie: the first questions are asked there, on either side.
    """
    m = thresholds.size
    master = master_for(thresholds)
    answers = list(start) or [oracle.first(np.full(m + 1, 1.0 / (m + 1)))]
    for answer in answers:
        master.add(answer.costs)
    best: tuple[float, Floats, Answer] | None = None  # the highest lower bound on the objective so far
    guesses = _Guesses(near)
    for evaluated in range(len(answers), MAX_COLUMNS):
        point = master.solve()
        guess = guesses.weights(point)
        w = point.weights if guess is None else guess
        # The newest of the cheapest answers, up to rounding: Howard continues where it stopped.
        prices = [float(w @ answer.costs) for answer in answers]
        lowest = min(prices) + SAME_AVERAGE
        j = max(j for j, price in enumerate(prices) if price <= lowest)
        base = answers[j]
        bound, better = oracle.improve(base, w)
        lower = bound - float(w[1:] @ thresholds)
        done = better is None or point.value - lower <= SEARCH_GAP
        if guess is not None:
            if lower / w[0] > (-np.inf if best is None else best[0]):
                best = (lower / w[0], w, base)
            guesses.move((base if better is None else better).costs[1:] > thresholds)
        elif not point.feasible:
            proven = lower > FEASIBLE
            if proven and (done or not least_excess):
                return _outcome(False, answers, point.mix, w, base, -lower, evaluated)
            if done:
                if point.value > 2 * FEASIBLE:
                    raise SolverError("feasibility could not be settled")
                master.relax()
                continue
        else:
            if best is None or lower / w[0] > best[0]:
                best = (lower / w[0], w, base)
            if done:
                floor, w_best, proof = best
                gap = point.value / w[0] - floor
                return _outcome(True, answers, point.mix, w_best, proof, gap, evaluated)
        if better is None:
            continue
        if np.abs(better.costs - base.costs).max() <= SAME_AVERAGE:
            # Only states that are hardly visited have improved. It does not show in the costs, but it is the policy
            # there that reality may need: the better answer takes the place of the other.
            answers[j] = better
        else:
            answers.append(better)
            master.add(better.costs)
    raise SolverError(f"no proof of optimality after {MAX_COLUMNS} policies")


class _Guesses:
    """Weights to ask for before the master's own: while it has seen one side of the optimum only, those are extreme."""

    FACTOR = 1.5  # between the prices of one guess and the next
    MOST = 4

    def __init__(self, near: Floats | None) -> None:
        self._prices: Floats | None = None
        if near is not None and near.size > 1 and near.min() >= 0.0 and near[0] > LEAST_GUESS * near.sum():
            self._prices = near[1:] / near[0] if near[1:].any() else None
        self._left = self.MOST

    def weights(self, point: MasterPoint) -> Floats | None:
        """The next guess, or None once the master has its prices from both sides."""
        if self._prices is None or not self._left or (point.feasible and (point.weights[1:] > 0.0).any()):
            self._prices = None
            return None
        return np.asarray(np.append(1.0, self._prices) / (1.0 + self._prices.sum()))

    def move(self, exceeded: Bools) -> None:
        """Raise the prices of what was exceeded, lower the others."""
        assert self._prices is not None
        self._prices = self._prices * np.where(exceeded, self.FACTOR, 1.0 / self.FACTOR)
        self._left -= 1


def _outcome(
    feasible: bool,
    answers: list[Answer],
    mix: dict[int, float],
    weights: Floats,
    proof: Answer,
    gap: float,
    evaluated: int,
) -> Mixture[Answer]:
    shares = np.fromiter(mix.values(), dtype=np.float64, count=len(mix))
    return Mixture(feasible, tuple(answers[j] for j in mix), shares, weights, proof, gap, evaluated)
