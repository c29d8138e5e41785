r"""Column generation: query the oracle for policies until the best mixture of them is proven optimal.

For weights :math:`w = (1, \lambda) / (1 + \sum \lambda)` from the master, any lower bound L of the oracle gives

.. math:: J^* \;\ge\; \frac{L - \sum_i w_i \tau_i}{w_0},

the Lagrangian bound, while the master's mixture is feasible and costs at least as much. The two meet in finitely
many steps: for m = 1 this is Newton's method on the concave, piecewise linear dual. The oracle need not find the best
policy for each weight: every evaluated policy is a column, so the master may move the weights after each single
improvement. If instead :math:`L > \sum_i w_i \tau_i` for some :math:`w = (0, y)`, no policy is feasible (Farkas).
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels.arithmetic.products import dot
from psconrl.planning.mixture.guidance import NearGuess, Secant
from psconrl.planning.mixture.master import LineMaster, MasterPoint, SimplexMaster, master_for
from psconrl.planning.mixture.oracle import Answer, HasCosts, Oracle
from psconrl.planning.tolerances import FEASIBLE, PLAYABLE_GAP, SAME_AVERAGE, SEARCH_GAP

MAX_COLUMNS = 2000


def is_settled(feasible: bool, gap: float, within: float = PLAYABLE_GAP) -> bool:
    """Whether the gap of a mixture, or the margin of a proof of infeasibility, is conclusive."""
    return bool(gap <= within if feasible else gap < -FEASIBLE)


Made = TypeVar("Made")


class Follow(Protocol):
    """Interface of an object that follows the progress of a search."""

    stopped: bool  # by the user

    def finish(self, work: Callable[[], Made]) -> Made:
        """Run ``work``, which turns the search result into a plan; if the user interrupts it, run it again."""

    def found(self, evaluated: int, value: float, bound: float) -> None:
        """Report the value of the best mixture and the lower bound after ``evaluated`` policies."""

    def interrupted(self) -> None:
        """Record that the user has stopped the search."""


class Mixture(NamedTuple, Generic[Answer]):
    """Result of column generation: policies with shares, and the dual point that proves optimality or infeasibility."""

    feasible: bool
    answers: tuple[Answer, ...]  # those with positive weight
    shares: Floats  # their weights, of sum one
    weights: Floats  # (m+1,) dual weights of sum one: (1, lambda) or, if infeasible, (0, y), up to scale
    proof: Answer  # the answer whose bias proves the bound
    gap: float  # scaled objective minus its lower bound; if infeasible, minus the margin of the Farkas proof
    evaluated: int  # number of policies

    @property
    def settled(self) -> bool:
        """Whether the result is proven, within tolerance."""
        return is_settled(self.feasible, self.gap)

    def required(self) -> "Mixture[Answer]":
        """Return this mixture; raise ``SolverError`` if rounding has left its gap open."""
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
    smooth: bool = False,
    follow: Follow | None = None,
) -> Mixture[Answer]:
    """Return the cheapest mixture that meets the thresholds.

    ``start``: answers to begin with, such as the last plan's, evaluated under the present model. ``least_excess``: if
    infeasible, continue until the largest excess over the thresholds is minimal. ``near``: a guess of the optimal
    weights; the first queries are near it. ``smooth``: averages change so little from policy to policy, as in large
    models, that secants find the weights. ``follow``: receives every feasible mixture; if the user interrupts the
    search, the best mixture so far is returned.
    """
    m = thresholds.size
    answers = list(start) or [oracle.first(np.full(m + 1, 1.0 / (m + 1)))]
    master = _master_of(thresholds, answers)
    best: tuple[float, Floats, Answer] | None = None  # highest lower bound on the objective so far
    guess_first, secant = NearGuess(near), Secant(thresholds)
    join = _Join(oracle)
    for evaluated in range(len(answers), MAX_COLUMNS):
        point = master.solve()
        gap = point.value / point.weights[0] - best[0] if smooth and point.feasible and best is not None else np.inf
        closed = gap <= SEARCH_GAP  # by a bound at weights other than the master's
        guess = None if closed else _guess(point.weights, gap, secant, guess_first)
        w = point.weights if guess is None else guess
        if join.added(answers, master, point, w):
            continue
        j = _newest_of_the_cheapest(answers, w)
        base = answers[j]
        try:
            bound, better = (-np.inf, None) if closed else oracle.improve(base, w)
            lower = bound - dot(w[1:], thresholds)
            done = better is None or point.value - lower <= SEARCH_GAP
            finer = {k: oracle.refined(answers[k]) for k in {j, *point.mix}} if done and guess is None else {}
        except KeyboardInterrupt:
            if follow is None or best is None or not point.feasible:
                raise
            follow.interrupted()
            return _best_so_far(answers, point, best, evaluated)
        except SolverError:  # rounding spoiled a policy: return the best mixture so far with its gap
            if best is None or not point.feasible:
                raise
            return _best_so_far(answers, point, best, evaluated)
        if any(answer is not None for answer in finer.values()):
            answers = [finer.get(k) or answer for k, answer in enumerate(answers)]
            master = _master_of(thresholds, answers)
            continue
        if (guess is not None or point.feasible) and (best is None or lower / w[0] > best[0]):
            best = (lower / w[0], w, base)
        _report(follow, evaluated, point, best)
        if guess is None and not point.feasible:
            proven = lower > FEASIBLE
            if proven and (done or not least_excess):
                return _outcome(False, answers, point.mix, w, base, -lower, evaluated)
            if done:
                _relax(master, point)
                continue
        elif guess is None and done:
            assert best is not None
            return _best_so_far(answers, point, best, evaluated)
        secant.saw(w, (better or base).costs)
        if better is None:
            continue
        if np.abs(better.costs - base.costs).max() <= SAME_AVERAGE:
            # Only rarely visited states have improved. The costs do not show it, but the policy there may matter in the
            # real system, so the better answer replaces the other. Prices do not matter much.
            answers[j] = better
            guess_first = NearGuess(None)
        else:
            answers.append(better)
            master.add(better.costs)
    raise SolverError(f"no proof of optimality after {MAX_COLUMNS} policies")


class _Join(Generic[Answer]):
    """Joins the policies of a mixture, once each, whenever its value has not improved.

    They may lie in regimes so far apart that single improvements close the gap slowly.
    """

    def __init__(self, oracle: Oracle[Answer]) -> None:
        self._oracle = oracle
        self._value = np.inf
        self._tried: set[frozenset[int]] = set()

    def added(
        self, answers: list[Answer], master: LineMaster | SimplexMaster, point: MasterPoint, weights: Floats
    ) -> bool:
        """Add an answer that joins those of the master's mixture; False if that is not worth trying.

        ``weights``: those of the next query, which may be a guess.
        """
        if not point.feasible or len(point.mix) < 2 or weights is not point.weights:
            return False
        before, self._value = self._value, float(point.value / point.weights[0])
        mixed = frozenset(point.mix)
        if mixed in self._tried or self._value <= before - SAME_AVERAGE:
            return False
        self._tried.add(mixed)
        shares = np.fromiter(point.mix.values(), dtype=np.float64, count=len(mixed))
        between = self._oracle.joined([answers[k] for k in point.mix], shares, point.weights)
        if between is None:
            return False
        answers.append(between)
        master.add(between.costs)
        return True


def _master_of(thresholds: Floats, answers: Sequence[HasCosts]) -> LineMaster | SimplexMaster:
    master = master_for(thresholds)
    for answer in answers:
        master.add(answer.costs)
    return master


def _guess(weights: Floats, gap: float, secant: Secant, guess_first: NearGuess) -> Floats | None:
    """Return weights to try in place of the master's; None if there is no guess."""
    guess = secant.weights(weights, gap) if gap < np.inf else None
    return guess_first.weights(weights) if guess is None else guess


def _report(
    follow: Follow | None, evaluated: int, point: MasterPoint, best: tuple[float, Floats, Answer] | None
) -> None:
    """Report a feasible mixture and the best bound, if there are both."""
    if follow is not None and point.feasible and best is not None:
        follow.found(evaluated, float(point.value / point.weights[0]), float(best[0]))


def _relax(master: LineMaster | SimplexMaster, point: MasterPoint) -> None:
    """Accept the least excess found, which must be a rounding error."""
    if point.value > 2 * FEASIBLE:
        raise SolverError("feasibility could not be settled")
    master.relax()


def _newest_of_the_cheapest(answers: Sequence[HasCosts], weights: Floats) -> int:
    """Return the last of the cheapest answers, up to rounding, so that policy iteration continues where it stopped."""
    prices = [dot(weights, answer.costs) for answer in answers]
    lowest = min(prices) + SAME_AVERAGE
    return max(j for j, price in enumerate(prices) if price <= lowest)


def _best_so_far(
    answers: list[Answer], point: MasterPoint, best: tuple[float, Floats, Answer], evaluated: int
) -> Mixture[Answer]:
    """Return the mixture of the master with the highest bound found."""
    floor, weights, proof = best
    gap = point.value / point.weights[0] - floor
    return _outcome(True, answers, point.mix, weights, proof, gap, evaluated)


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
