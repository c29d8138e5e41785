"""Range prices: what a unit of a constrained cost is worth if its whole range is worth that of the objective."""

import numpy as np

from psconrl.arrays import Floats

# Ranges below this share of the largest cost of a round are rounding residue: no policy changes the average.
NO_RANGE = 1e-9


def range_prices(ranges: Floats, costs: Floats) -> Floats:
    r"""Return the range price of every constrained cost, (m,).

    ``ranges`` (m+1, 2): least and largest long-run average of every cost over all policies, as ``cost_ranges`` returns
    them. ``costs`` (m+1, k): the costs of single rounds, the objective first. With :math:`R_i` the length of range i,
    the range price is :math:`R_0 / R_i`. It is 0 if no policy changes the average of the cost, which then cannot be
    exceeded in the long run. If none changes the objective, the largest difference of the objective between single
    rounds takes the place of :math:`R_0`, and 1 if that is 0, too.

    >>> range_prices(np.array([[-1.0, 2.0], [0.0, 4.0]]), np.array([[-1.0, 2.0], [0.0, 5.0]])).tolist()
    [0.75]
    """
    lengths = ranges[:, 1] - ranges[:, 0]
    residue = NO_RANGE * np.abs(costs).max(axis=1)
    lengths = np.where(lengths > residue, lengths, 0.0)
    worth = float(lengths[0] or np.ptp(costs[0]) or 1.0)
    return np.divide(worth, lengths[1:], out=np.zeros(lengths.size - 1), where=lengths[1:] > 0.0)
