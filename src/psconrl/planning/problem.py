r"""The problem as the planner sees it: costs scaled, thresholds with them, transitions as they are.

With :math:`c_i' = (c_i - \min c_i) / (\max c_i - \min c_i)` costs lie in [0, 1], and tolerances are plain numbers
whether the user counts dollars, minutes or probabilities. Where some entries are larger than others by orders of
magnitude (1e9 for "never do this"), the smaller ones set the scale. Values and multipliers are translated back.
"""

from dataclasses import dataclass, replace

import numpy as np

from psconrl.arrays import Bools, Floats, Matrix
from psconrl.model.cmdp import CMDP

# Below this size a sparse model is planned as a dense one: the compiled kernels win.
DENSE_STATES = 256
# A cost whose range is more than this many times its smallest distance from the middle is scaled by that distance.
USUAL_COSTS = 1e4
LARGEST_SCALED = 1e100  # of any scaled cost: its square is still a double


def ordinary_size(costs: Floats, middle: float) -> float:
    """How far the nearest entry that differs is from a value; 1 if none does. Nearly all entries may be huge.

    >>> ordinary_size(np.array([0.0, 0.0, 1.0, 2.0, 1e11, 1e11]), 0.0)
    1.0
    """
    away = np.abs(costs - middle)
    return float(np.min(away, where=away > 0, initial=np.inf)) if (away > 0).any() else 1.0


@dataclass(frozen=True, eq=False)
class Problem:
    """A CMDP in scaled costs. ``costs`` is (m+1, S*A); pairs that are not available cost 0 and are never played."""

    transition: Matrix
    costs: Floats
    thresholds: Floats
    available: Bools
    shift: Floats  # (m+1,) in user units
    scale: Floats  # (m+1,) in user units

    @classmethod
    def scaled(cls, transition: Matrix, costs: Floats, thresholds: Floats, available: Bools) -> "Problem":
        """From costs (m+1, S, A) and thresholds (m,) in the user's units."""
        playable = costs.reshape(costs.shape[0], -1)[:, available.ravel()]
        shift = playable.min(axis=1)
        extent = playable.max(axis=1) - shift
        # A constant cost has no extent of its own; its size stands in, so that 'equal to the limit' means the same.
        scale = np.where(extent > 0, extent, np.maximum(np.abs(shift), 1e-300))
        scale = np.where(scale > 1e-290, scale, 1.0)
        for i in np.flatnonzero(extent > 0):
            smallest = playable[i, np.abs(playable[i]).argmin()]
            middle = float(smallest) if i == 0 else float(thresholds[i - 1])
            usual = max(USUAL_COSTS * ordinary_size(playable[i], middle), 1e-290, extent[i] / LARGEST_SCALED)
            if scale[i] > usual:
                shift[i], scale[i] = middle, usual
        return cls._of(transition, costs, thresholds, available, shift, scale)

    @classmethod
    def _of(
        cls, transition: Matrix, costs: Floats, thresholds: Floats, available: Bools, shift: Floats, scale: Floats
    ) -> "Problem":
        flat = costs.reshape(costs.shape[0], -1)
        unit = np.where(available.ravel(), (flat - shift[:, None]) / scale[:, None], 0.0)
        tau = (thresholds - shift[1:]) / scale[1:]
        return cls(transition, np.ascontiguousarray(unit), tau, available, shift, scale)

    @classmethod
    def of(cls, cmdp: CMDP) -> "Problem":
        """The scaled problem of a model."""
        P = cmdp.transition
        if not isinstance(P, np.ndarray) and cmdp.n_states <= DENSE_STATES:
            P = P.toarray()
        return cls.scaled(P, cmdp.costs, cmdp.thresholds, cmdp.available)

    def rescaled(self, cmdp: CMDP, middle: float, units: Floats) -> "Problem":
        """The problem of the same model, its objective counted from a value, its limits from zero, in other units."""
        shift = np.append(middle, cmdp.thresholds)
        return self._of(self.transition, cmdp.costs, cmdp.thresholds, self.available, shift, units)

    def with_transition(self, transition: Matrix) -> "Problem":
        """The same costs and limits under other transitions, as in a learning loop."""
        return Problem(transition, self.costs, self.thresholds, self.available, self.shift, self.scale)

    def with_thresholds(self, thresholds: Floats) -> "Problem":
        """The same problem under other limits, in the user's units."""
        return replace(self, thresholds=(thresholds - self.shift[1:]) / self.scale[1:])

    def user_costs(self, costs: Floats) -> Floats:
        """Averages in the user's units."""
        return np.asarray(self.shift + self.scale * costs)

    def user_multipliers(self, multipliers: Floats) -> Floats:
        """Prices in units of the objective for one unit of each constrained cost."""
        return np.asarray(multipliers * self.scale[0] / self.scale[1:])
