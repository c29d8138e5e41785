"""Prices at which violations are compared with the objective: range prices, and shadow prices without copies.

At its range price, the whole range of a constrained cost is worth that of the objective.
"""

import numpy as np

from psconrl.base.arrays import Floats

# Ranges below this share of the largest cost of a round are rounding residue: no policy changes the average. Excesses
# that differ by less, relative to the largest one, are the same.
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


def without_copies(shadow: Floats, ranges: Floats, excesses: Floats) -> tuple[Floats, Floats]:
    """Return the shadow prices and the range prices, (m,) each, with those of copies moved to their originals.

    ``excesses`` (m, k): by how much single rounds exceed each threshold. A constraint is a copy if its excess is a
    positive multiple of that of an earlier constraint. Any split of a shadow price between copies is one of shadow
    prices; without copies, it does not matter how often a constraint is stated.

    >>> steps, risk = [1.0, -2.0, 0.0], [0.5, 0.5, -1.0]
    >>> twice = np.array([steps, risk, [10 * x for x in steps]])
    >>> shadow, ranges = without_copies(np.array([1.0, 3.0, 0.2]), np.array([2.0, 4.0, 0.2]), twice)
    >>> shadow.tolist(), ranges.tolist()
    ([3.0, 3.0, 0.0], [2.0, 4.0, 0.0])
    """
    shadow, ranges = shadow.copy(), ranges.copy()
    sizes = np.abs(excesses).max(axis=1)
    for copy in range(1, sizes.size):
        for original in range(copy):
            if not (sizes[copy] > 0.0 and sizes[original] > 0.0):
                continue
            multiple = sizes[copy] / sizes[original]
            if np.abs(excesses[copy] - multiple * excesses[original]).max() <= NO_RANGE * sizes[copy]:
                shadow[original] += multiple * shadow[copy]
                shadow[copy] = ranges[copy] = 0.0
                break
    return shadow, ranges
