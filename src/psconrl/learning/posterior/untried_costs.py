r"""The objective of pairs that were never tried, while costs are learned: better than that of all that were.

Costs are taken to be nonnegative until a negative one, a reward, is met. Let the means of the pairs tried lie between
*low* and *high*. A pair that was never tried then has the objective

==============================  =======================================================================
``optimistic``                  if the caller said how good the objective can be
0                               if low is positive
low - (high - low)              if low is negative: rewards may be larger than the largest so far
2 low                           if low is negative, and all means are the same
-1                              if all means are 0: nothing is known of the scale, and nothing of its sign
-high / 100                     if low is 0, and some means are positive: still 0, but a tie goes to the untried
==============================  =======================================================================

So an untried pair is strictly better than those tried, by more than any tolerance of a planner. With 0, as good as a
pair that costs nothing, plans would be tied in an environment that pays in few places, and the agent would play its
first action for ever.
"""

import numpy as np

from psconrl.base.arrays import Floats

RESOLVED = 0.01  # a small spread, relative to the range of a cost


def best_objective(means: Floats, optimistic: float | None = None) -> float:
    """Return the objective of an untried pair, given the means of those tried, of which there is one at least.

    >>> [best_objective(np.array(means)) for means in ([2.0, 3.0], [-1.0, 0.5], [-2.0, -2.0], [0.0], [0.0, 4.0])]
    [0.0, -2.5, -4.0, -1.0, -0.04]
    """
    if optimistic is not None:
        return optimistic
    low, high = float(means.min()), float(means.max())
    if low > 0.0:
        return 0.0
    if low == high:
        return 2.0 * low if low else -1.0
    return -RESOLVED * high if low == 0.0 else low - (high - low)


def favouring_rarely_tried(objective: Floats, visits: Floats) -> Floats:
    r"""Return an objective that is the same for all pairs, lowered by a hundredth of :math:`\min N / N(s,a)`.

    All pairs were tried, and none was better than another. A pair that pays rarely may not have paid yet; since plans
    are tied otherwise, it costs nothing to try the pairs in turn. The hundredth is of the absolute value, or of 1.

    >>> favouring_rarely_tried(np.array([[2.0, 2.0]]), np.array([[4.0, 1.0]])).tolist()
    [[1.995, 1.98]]
    """
    unit = float(np.abs(objective).max()) or 1.0
    return np.asarray(objective - RESOLVED * unit * (visits.min() / visits))
