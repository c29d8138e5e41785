"""The unit of a cost: its range. Bonuses and step sizes in ranges do not depend on the user's units."""

import numpy as np

from psconrl.arrays import Floats


def cost_units(costs: Floats) -> Floats:
    """Return the range of every cost over all pairs, from a table (m+1, S, A).

    The unit of a constant cost is its absolute value, and that of a zero cost is 1.

    >>> cost_units(np.array([[[0.0, 100.0]], [[7.0, 7.0]], [[0.0, 0.0]]])).tolist()
    [100.0, 7.0, 1.0]
    """
    flat = costs.reshape(len(costs), -1)
    extent, size = np.ptp(flat, axis=1), np.abs(flat[:, 0])
    return np.where(extent > 0, extent, np.where(size > 0, size, 1.0))
