r"""Check of a proof in rational numbers.

Gains g with :math:`g \le P g` for every pair, and :math:`g + h \le c_\lambda + P h` for the pairs with
:math:`g = P g`, bound the weighted cost of every policy by :math:`\beta g`: for large M, h + M g satisfies the second
inequality for all pairs (Puterman 1994, section 9.1).
"""

from fractions import Fraction

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.search.certificates import deviations
from psconrl.model.cmdp import CMDP
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.policy_iteration import Reduced, weighted_sum
from psconrl.planning.exact.rational_model import ZERO, RationalModel, fractions_of, normalised
from psconrl.planning.exact.solve import RationalDual
from psconrl.planning.mixture_policy import PolicyMixture
from psconrl.planning.proof.certificate import Certificate, Status
from psconrl.planning.proof.certificate_units import CAPS
from psconrl.planning.tolerances import LARGEST_PRICES, PROVEN_EXCESS, PROVEN_FLOW, PROVEN_GAP, PROVEN_POLICY

LARGEST_DOUBLE = float(np.finfo(np.float64).max)


def rational_bound(model: RationalModel, dual: RationalDual) -> Fraction | None:
    """Return the bound on the weighted averages minus thresholds of every policy; None if the dual proves nothing."""
    reduced = Reduced(model, dual.weights, dual.gains, dual.potential)
    for s, moves in enumerate(model.moves):
        for a in moves:
            rise = reduced.rise(s, a)
            if rise < 0 or (rise == 0 and reduced.reduced_cost(s, a) < 0):
                return None
    if min(dual.weights) < 0:
        return None
    start = sum((b * g for b, g in zip(model.initial, dual.gains, strict=True)), ZERO)
    return start - sum((w * tau for w, tau in zip(dual.weights[1:], model.thresholds, strict=True)), ZERO)


def played_averages(model: RationalModel, policy: Floats, mixture: PolicyMixture | None) -> list[Fraction]:
    """Return the exact averages (m+1,) of a policy in doubles, or of a mixture with shares in doubles."""
    if mixture is None:
        return RationalChain.of_doubles(model, policy).averages
    found = [RationalChain.of_actions(model, actions).averages for actions in mixture.policies.tolist()]
    return weighted_sum(normalised(mixture.shares), found)


def certificate_in_rationals(
    part: CMDP,
    model: RationalModel,
    dual: RationalDual,
    status: Status,
    occupancy: Floats,
    averages: list[Fraction],
) -> Certificate:
    """Return the certificate of exact averages of a policy in doubles, by a dual point in rational numbers.

    The policy in doubles misses the optimum by its rounding. So the tolerances of certificates apply to its averages.
    """
    bound = rational_bound(model, dual)
    arrivals = occupancy.ravel() @ part.transition
    flow_residual, policy_error, unit, allowed = deviations(
        part.costs, part.thresholds, part.available, occupancy, arrivals, doubles(averages), *CAPS
    )
    over = [x - tau for x, tau in zip(averages[1:], model.thresholds, strict=True)]
    upper, excess = nearest_double(averages[0]), doubles(over)
    if bound is None:
        return Certificate(
            -np.inf, upper, excess, flow_residual, policy_error, np.inf, 0.0, np.nan, PROVEN_EXCESS * allowed, False
        )
    if status is Status.INFEASIBLE:
        lower, margin = (np.inf if bound > 0 else -np.inf), nearest_double(bound)
        return Certificate(
            lower, upper, excess, flow_residual, policy_error, 0.0, margin, 0.0, PROVEN_EXCESS * allowed, bound > 0
        )
    size = sum((w * u for w, u in zip(dual.weights, fractions_of(unit), strict=True)), ZERO)
    tolerated = [Fraction(PROVEN_EXCESS) * u for u in fractions_of(allowed)]
    holds = all(x <= most for x, most in zip(over, tolerated, strict=True))
    tolerance = Fraction(PROVEN_GAP) * min(size, Fraction(LARGEST_PRICES) * Fraction(float(unit[0])))
    if status is not Status.NOT_ATTAINED:
        closed = averages[0] - bound <= tolerance
        holds = holds and closed and flow_residual <= PROVEN_FLOW and policy_error <= PROVEN_POLICY
    return Certificate(
        nearest_double(bound), upper, excess, flow_residual, policy_error, 0.0, 0.0, nearest_double(tolerance),
        doubles(tolerated), holds,
    )  # fmt: skip


def doubles(values: list[Fraction]) -> Floats:
    """Return the nearest doubles of fractions."""
    return np.array([nearest_double(x) for x in values], dtype=np.float64)


def nearest_double(x: Fraction) -> float:
    """Return the nearest double of a fraction; the largest one if it is beyond."""
    try:
        return float(x)
    except OverflowError:
        return LARGEST_DOUBLE if x > 0 else -LARGEST_DOUBLE
