"""Units in which a certificate is judged: tolerances are these units times the numbers of ``tolerances``."""

from collections.abc import Sequence
from fractions import Fraction

from psconrl.base.arrays import Floats
from psconrl.check_proof.checker import GAP_TOL, LIMIT_TOL
from psconrl.check_proof.plain_model import Scale
from psconrl.kernels.search.certificates import excess_units_of, units_of
from psconrl.model.cmdp import CMDP
from psconrl.planning.scaling import LARGEST_SCALED
from psconrl.planning.tolerances import MET_COSTS, ONE_DOUBLE, ROUNDED

# Caps of the units, as the kernels take them.
CAPS = MET_COSTS, ROUNDED, LARGEST_SCALED, ONE_DOUBLE


def units(cmdp: CMDP, occupancy: Floats) -> Floats:
    r"""Return the unit (m+1,) of deviations of each cost: its range, capped by what the policy meets.

    A single entry of 1e11 for "never do this" would make any violation look small. So a unit is at most 100 times the
    mean distance :math:`\sum \mu |c_i - \tau_i|` under the policy (for the objective, the distance from its average),
    or 100 times the distance of the nearest entry of the table, if that is larger. It is at least 1e-6 of the threshold
    (for the objective, of its average), or rounding would count as a deviation where a cost is nearly constant.
    """
    unit: Floats = units_of(cmdp.costs, cmdp.thresholds, cmdp.available, occupancy, MET_COSTS, ROUNDED, LARGEST_SCALED)
    return unit


def excess_units(cmdp: CMDP, occupancy: Floats, unit: Floats) -> Floats:
    """Return the unit (m,) of an excess over each threshold, further capped by the threshold and by the costs met.

    If every visited pair costs exactly the threshold, one ulp of the nearest other entry counts as rounding.
    """
    allowed: Floats = excess_units_of(
        cmdp.costs, cmdp.thresholds, cmdp.available, occupancy, unit, MET_COSTS, ONE_DOUBLE
    )
    return allowed


def accepted(cmdp: CMDP, averages: Sequence[Fraction], bound: Fraction) -> bool:
    """Whether ``check_proof`` accepts averages (m+1,) and a bound on the objective as those of an optimal policy.

    The units of its tolerances depend on the model alone, not on the costs that a policy meets. No average is below the
    least cost, so that is a bound, too. All states must be reachable.
    """
    scales = [Scale.of(cost[cmdp.available].tolist()) for cost in cmdp.costs]
    limits = [Fraction(tau) for tau in cmdp.thresholds.tolist()]
    kept = all(
        x - tau <= LIMIT_TOL * scale.unit(tau) for x, tau, scale in zip(averages[1:], limits, scales[1:], strict=True)
    )
    return kept and averages[0] - max(bound, scales[0].low) <= GAP_TOL * scales[0].unit(averages[0])
