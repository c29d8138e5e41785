r"""Improvement of a policy on a narrow model from the farthest state to a reference.

The compiled part is ``kernels.search.outward_improvement``.

The total cost h until the reference r is hit, of the chosen actions and with costs lowered by a gain g, is a potential:

.. math:: h(s) = c(s) - g + \sum_{s'} P(s'|s)\, h(s'), \qquad h(r) = 0

If no other action is better, it proves that no policy has a gain below g, whatever regimes there are and however rarely
they are left. A gain slightly below that of the policy decides which of two equally good regimes all states move to.

If g is much too high, the actions are those of the longest excursion from the reference, not of the cheapest one.
So the gain is first bracketed by halving: it is too low if leaving and returning to the reference costs more than zero.

If every state can jump to a hub, as in a walk with reset, farther states choose between the hub and the next state by
the last policy's costs of the latter: a border at which all farther states jump then moves outward by one state a
policy. If the states choose in the opposite order, it moves outward as far as it should. So the order alternates until
no action changes.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.sizes import OUTWARD_STATES
from psconrl.kernels.chains.double_double import drift_sparse
from psconrl.kernels.search import outward_improvement
from psconrl.markov.elimination_order import NO_ORDER, Order, OutwardOrders
from psconrl.model.matrices import chosen_rows
from psconrl.model.matrix_product import product

OUTWARD_WORK = 400.0  # multiplications per state up to which a model is narrow
LOWER_GAIN = 5e-12  # half of the gap that a search closes, of costs up to about one
FAR_ABOVE = 1e-3  # larger gaps between a gain and its bound are halved,
SMALLER = 0.3  # until they are smaller than this share of what has been gained,
GAIN_HALVINGS = 15  # or so often
TURNS = 6  # at most, inward and outward in turns, after the first


class Outward(NamedTuple):
    """A policy (S,), a lower bound on the gain of every policy, and its potential (S,) as a high and a low part."""

    policy: Ints
    bound: float
    high: Floats
    low: Floats


class _Pass(NamedTuple):
    """The actions that are chosen for a gain, and their total cost until the reference is hit."""

    gain: float
    policy: Ints
    total: Floats
    round_trip: float  # total cost from the reference back to it
    order: Order  # in which the actions were chosen
    censored: tuple[Floats, Floats, Floats]


class OutwardSteps:
    """Improves policies of a model with transitions P (S*A, S)."""

    def __init__(self, P: csr_array) -> None:
        self._P = P
        S = P.shape[1]
        self._orders = OutwardOrders(P.indptr, P.indices, S, OUTWARD_WORK * S) if S >= OUTWARD_STATES else None

    def improve(
        self,
        policy: Ints,
        h: Floats,
        cost: Floats,
        available: Bools,
        gain: float,
        bound: float,
        tolerance: float,
        reference: int,
    ) -> Outward | None:
        """Return a policy improved for a weighted cost (S*A,); None if the model is small or not narrow.

        ``h`` (S,) and ``gain``: those of the policy. ``bound``: of the gain of every policy. ``reference``: a state
        that the policy visits often.
        """
        order = NO_ORDER if self._orders is None else self._orders.towards(reference)
        if order is NO_ORDER:
            return None

        def at(target: float) -> _Pass | None:
            return self._at(target, policy, h, cost, available, tolerance, reference, order)

        first = at(gain - LOWER_GAIN)
        if first is None:
            return None
        proven = self._proven(first, cost, available, reference)
        if first.round_trip >= 0.0 or gain - proven.bound <= FAR_ABOVE:
            first, proven = self._settled(first, proven, cost, available, tolerance, reference)
        if gain - proven.bound <= FAR_ABOVE:
            return proven
        below, best, least = None, first, min(gain, self._gain_of(first, available, reference))
        low, high = max(bound, proven.bound, float(cost[available.ravel()].min())), least
        for _ in range(GAIN_HALVINGS):
            tried = at(0.5 * (low + high)) if high - low > SMALLER * (gain - least) else None
            if tried is None:
                break
            if tried.round_trip >= 0.0:
                low, below = tried.gain, tried
            else:
                high = tried.gain
            found = self._gain_of(tried, available, reference)
            if found < least - LOWER_GAIN:
                best, least, high = tried, found, min(high, found)
        if below is not None:
            closer = self._proven(below, cost, available, reference)
            proven = closer if closer.bound > proven.bound else proven
        return proven._replace(policy=best.policy)

    def _settled(
        self, found: _Pass, proven: Outward, cost: Floats, available: Bools, tolerance: float, reference: int
    ) -> tuple[_Pass, Outward]:
        """Choose the actions for the same gain again, inward and outward in turns, until they are the best ones."""
        assert self._orders is not None
        for k in range(TURNS):
            if min(found.gain, found.gain + found.round_trip) - proven.bound <= LOWER_GAIN:
                break
            order = self._orders.towards(reference) if k % 2 else self._orders.away_from(reference)
            again = (
                None
                if order is NO_ORDER
                else self._at(found.gain, found.policy, found.total, cost, available, tolerance, reference, order)
            )
            if again is None or np.array_equal(again.policy, found.policy):
                break
            found, proven = again, self._proven(again, cost, available, reference)
        return found, proven

    def _at(
        self,
        gain: float,
        policy: Ints,
        h: Floats,
        cost: Floats,
        available: Bools,
        tolerance: float,
        reference: int,
        order: Order,
    ) -> _Pass | None:
        """Choose the actions for a gain; None if some states would never be left."""
        P, A = self._P, available.shape[1]
        found = outward_improvement.improve_outward(
            P.indptr, P.indices, P.data, cost, available, policy, h, gain, reference, tolerance, order
        )
        if found is None:
            return None
        new, censored = found
        chosen = np.arange(0, cost.size, A) + new
        total = outward_improvement.until_reference(censored, cost[chosen] - gain, reference, order)
        pairs = slice(reference * A, (reference + 1) * A)
        trips = np.where(available[reference], cost[pairs] - gain + product(P[pairs], total), np.inf)
        best, own = float(trips.min()), float(trips[new[reference]])
        if not np.isfinite(best):  # the gain is so high that no excursion is too long
            return _Pass(gain, new, total, -np.inf, order, censored)
        if own - best > tolerance * max(1.0, abs(best)):
            new[reference] = trips.argmin()
        return _Pass(gain, new, total, best, order, censored)

    def _gain_of(self, found: _Pass, available: Bools, reference: int) -> float:
        """Return the gain of the actions that were chosen, from the cost and the time of a round trip."""
        times = outward_improvement.until_reference(found.censored, np.ones(found.total.size), reference, found.order)
        pair = reference * available.shape[1] + int(found.policy[reference])
        gain = found.gain + found.round_trip / (1.0 + float(product(self._P[[pair]], times)[0]))
        if np.isfinite(gain):
            return gain
        return found.gain if found.round_trip < 0.0 else np.inf  # a trip that takes too long to be computed

    def _proven(self, found: _Pass, cost: Floats, available: Bools, reference: int) -> Outward:
        """Return the bound that the total costs prove."""
        P, chosen = self._P, np.arange(0, cost.size, available.shape[1]) + found.policy
        chain, nothing = chosen_rows(P, chosen), np.zeros(found.total.size)
        # One double per state is too coarse for the total cost of a long way, so what is left of the equation follows.
        left = cost[chosen] - found.gain
        left += drift_sparse(chain.indptr, chain.indices, chain.data, found.total, nothing).ravel()
        low = outward_improvement.until_reference(found.censored, left, reference, found.order)
        values = cost.reshape(available.shape) + drift_sparse(P.indptr, P.indices, P.data, found.total, low)
        return Outward(found.policy, float(values[available].min()), found.total, low)
