r"""Scaling of costs, applied to a problem before it is solved and inverted on the solution.

With :math:`c_i' = (c_i - \min c_i) / (\max c_i - \min c_i)` costs lie in [0, 1], and tolerances are plain numbers
whether the user counts dollars, minutes or probabilities. If some entries are larger than others by orders of magnitude
(1e9 for "never do this"), the smaller ones set the scale.
"""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.kernels.chains.costs import scale_of, scaled_costs
from psconrl.kernels.chains.double_double import combine
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Dual

# A cost whose range exceeds this many times its smallest distance from the middle is scaled by that distance,
USUAL_COSTS = 1e4
FEW_PAIRS = 1e-3  # ignoring this share of the pairs: among a million costs one is always next to the middle
LARGEST_SCALED = 1e100  # largest scaled cost: its square is still a double


class Scaling(NamedTuple):
    """Affine scaling of every cost: user's units = shift + scale * scaled units."""

    shift: Floats  # (m+1,)
    scale: Floats  # (m+1,)

    @classmethod
    def of(cls, costs: Floats, thresholds: Floats, available: Bools) -> "Scaling":
        """Return the scaling of costs (m+1, S, A) and thresholds (m,)."""
        return cls(*scale_of(costs, thresholds, available, USUAL_COSTS, FEW_PAIRS, LARGEST_SCALED))

    def apply(self, costs: Floats, thresholds: Floats, available: Bools) -> tuple[Floats, Floats]:
        """Return scaled costs (m+1, S*A) and thresholds (m,); pairs that are not available cost 0."""
        scaled, limits = scaled_costs(costs, thresholds, available, self.shift, self.scale)
        return scaled, limits

    def apply_to_thresholds(self, thresholds: Floats) -> Floats:
        """Return scaled thresholds (m,)."""
        return np.asarray((thresholds - self.shift[1:]) / self.scale[1:])

    def invert(self, averages: Floats) -> Floats:
        """Return averages (m+1,) in the user's units."""
        return np.asarray(self.shift + self.scale * averages)

    def invert_dual(self, dual: Dual, feasible: bool) -> Dual:
        """Return a dual point in the user's units: prices are units of the objective per unit of each cost.

        A proof of infeasibility has no natural scale; its largest weight is set to 1.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # of a price that no double can hold, which proves nothing
            if feasible:
                unit = float(self.scale[0])
                multipliers = dual.multipliers * unit / self.scale[1:]
            else:
                raw = dual.multipliers / self.scale[1:]
                unit = float(1.0 / raw.max()) if raw.any() else 1.0
                multipliers = raw * unit
        high, low = combine(np.array([unit]), dual.potential[None, :], dual.low_potential[None, :])
        if dual.gains is None:
            return Dual(multipliers, high, low, None)
        shift = (self.shift[0] if feasible else 0.0) + product(multipliers, self.shift[1:])
        return Dual(multipliers, high, low, dual.gains * unit + shift)


def cost_units(costs: Floats) -> Floats:
    """Return the range of every cost over all pairs, from a table (m+1, S, A): the unit of bonuses and step sizes.

    The unit of a constant cost is its absolute value, and that of a zero cost is 1.

    >>> cost_units(np.array([[[0.0, 100.0]], [[7.0, 7.0]], [[0.0, 0.0]]])).tolist()
    [100.0, 7.0, 1.0]
    """
    flat = costs.reshape(len(costs), -1)
    extent, size = np.ptp(flat, axis=1), np.abs(flat[:, 0])
    return np.where(extent > 0, extent, np.where(size > 0, size, 1.0))
