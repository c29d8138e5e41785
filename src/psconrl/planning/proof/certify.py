r"""Certification of any plan against any model, from the arrays of the plan alone.

For every potential h and every :math:`\lambda \ge 0` (weak duality; Altman 1999, chapter 4; Puterman 1994, section 8.4)

.. math:: J^* \;\ge\; \min_{s,a}\Big[c_0 + \textstyle\sum_i \lambda_i (c_i - \tau_i) + P h - h(s)\Big]

over the pairs reachable from the initial distribution. For models with several end components the proof also has gains
g with :math:`g \le P g` everywhere and :math:`g + h \le c_\lambda + P h` inside the components, since a path can stay
only there. They bound the objective by :math:`\beta g` (Hordijk and Kallenberg 1979).
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, SolverError
from psconrl.kernels.arithmetic.products import dot
from psconrl.kernels.chains.double_double import precise_reduced_costs
from psconrl.kernels.search.certificates import deviations, drift_rounding, least_of, reduced_costs
from psconrl.markov.evaluation import Evaluation, evaluate
from psconrl.markov.structure import find_end_components
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Dual
from psconrl.planning.exact.checking import certificate_in_rationals, played_averages
from psconrl.planning.exact.rational_model import RationalModel
from psconrl.planning.exact.solve import RationalDual
from psconrl.planning.linear_programs.multichain import transit_loss
from psconrl.planning.mixture_policy import PolicyMixture, evaluate_mixture
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Certificate, Status
from psconrl.planning.proof.certificate_units import CAPS
from psconrl.planning.restriction import Restriction
from psconrl.planning.tolerances import (
    LARGEST_PRICES,
    PROVEN_EXCESS,
    PROVEN_FLOW,
    PROVEN_GAP,
    PROVEN_MARGIN,
    PROVEN_POLICY,
    ROUNDED_ENTRY,
    SUM_OF_SHARES,
)

EPS = float(np.finfo(np.float64).eps)
ONE, NOTHING = np.ones(1), np.zeros(1)  # weight of the objective in a proof of optimality and of infeasibility


def certify(cmdp: CMDP, plan: Plan) -> Certificate:
    """Recompute the proof of a plan: bounds, residuals and exact averages of its policy.

    ``cmdp``: the model. ``plan``: a plan of this model, from any source: only its arrays are used. Returns a
    certificate, whose ``holds`` says whether the plan is proven.

    >>> import psconrl
    >>> rover = psconrl.load("marsrover-4x4")
    >>> certify(rover, psconrl.plan(rover)).holds
    True
    """
    need_model(cmdp, "certify")
    _need_plan_of(cmdp, plan)
    # Check the reachable part only, as in planning: costs elsewhere must not set the scale.
    reached = Restriction(cmdp)
    part, states = reached.apply(), reached.states
    occupancy = np.ascontiguousarray(plan.occupancy[states], dtype=np.float64)
    try:
        proof = _certified_in_doubles(part, plan, states, occupancy)
    except SolverError:
        if plan.exact is None:
            raise
        return _certified_in_rationals(part, plan, states, occupancy)
    return proof if proof.holds or plan.exact is None else _certified_in_rationals(part, plan, states, occupancy)


def _certified_in_doubles(part: CMDP, plan: Plan, states: Ints, occupancy: Floats) -> Certificate:
    """Return the certificate by the dual point of the plan; ``part`` is the model on the given states."""
    if plan.mixture is None:
        exact = evaluate(part, plan.policy[states])
    else:
        exact, _ = evaluate_mixture(part, plan.mixture.policies[:, states], plan.mixture.shares)
    gains = None if plan.gains is None else plan.gains[states]
    dual = Dual(plan.multipliers, plan.potential[states], plan.low_potential[states], gains)
    with np.errstate(over="ignore", invalid="ignore"):  # of a potential at the end of the range of doubles
        return certificate_of(part, plan.status, occupancy, dual, exact)


def _certified_in_rationals(part: CMDP, plan: Plan, states: Ints, occupancy: Floats) -> Certificate:
    """Return the certificate by the dual point of ``plan.exact``; ``part`` is the model on the given states."""
    assert plan.exact is not None
    model = RationalModel.of(part)
    weights = [Fraction(int(plan.exact.feasible)), *plan.exact.multipliers]
    dual = RationalDual(weights, *([row[s] for s in states] for row in (plan.exact.potential, plan.exact.gains)))
    mixture = None if plan.mixture is None else replace(plan.mixture, policies=plan.mixture.policies[:, states])
    averages = played_averages(model, plan.policy[states], mixture)
    return certificate_in_rationals(part, model, dual, plan.status, occupancy, averages)


def _need_plan_of(cmdp: CMDP, plan: Plan) -> None:
    """Raise unless the arrays of a plan have the sizes of the model; compiled loops do not check them."""
    if not isinstance(plan, Plan):
        raise ModelError(f"certify needs a model and a plan of it; got {type(plan).__name__} for the plan")
    S, A, m = cmdp.n_states, cmdp.n_actions, cmdp.n_constraints
    wanted = {"policy": (S, A), "occupancy": (S, A), "multipliers": (m,), "potential": (S,), "low_potential": (S,)}
    if plan.gains is not None:
        wanted["gains"] = (S,)
    for name, shape in wanted.items():
        got = np.shape(getattr(plan, name))
        if got != shape:
            raise ModelError(f"{name} of the plan must have shape {shape} for this model; got {got}")
    if plan.mixture is not None:
        _need_mixture_of(cmdp, plan.mixture)


def _need_mixture_of(cmdp: CMDP, mixture: PolicyMixture) -> None:
    """Raise unless a mixture holds policies of the model and its shares sum to one."""
    policies, shares = np.asarray(mixture.policies), np.asarray(mixture.shares)
    if policies.ndim != 2 or policies.shape != (shares.size, cmdp.n_states) or policies.dtype.kind != "i":
        raise ModelError(
            f"policies of the mixture must have shape {(shares.size, cmdp.n_states)}; got {policies.shape}"
        )
    if ((policies < 0) | (policies >= cmdp.n_actions)).any():
        raise ModelError(f"policies of the mixture must hold actions from 0 to {cmdp.n_actions - 1}")
    if not cmdp.available[np.arange(cmdp.n_states), policies].all():
        raise ModelError("policies of the mixture play actions that are not available")
    if not (shares >= 0).all() or not abs(shares.sum() - 1.0) <= SUM_OF_SHARES:
        raise ModelError(f"shares of the mixture must add up to 1; got {quoted(shares.tolist())}")


def certificate_of(cmdp: CMDP, status: Status, occupancy: Floats, dual: Dual, exact: Evaluation) -> Certificate:
    """Return the certificate of a claimed status, given the exact evaluation of the policy."""
    arrivals = occupancy.ravel() @ cmdp.transition
    flow_residual, policy_error, unit, excess_unit = deviations(
        cmdp.costs, cmdp.thresholds, cmdp.available, occupancy, arrivals, exact.costs, *CAPS
    )
    excess: Floats = exact.costs[1:] - cmdp.thresholds

    infeasible = status is Status.INFEASIBLE
    weights = np.concatenate([NOTHING if infeasible else ONE, dual.multipliers])
    upper = float(exact.costs[0])
    size = dot(weights, unit)
    tolerance = PROVEN_GAP * min(size, LARGEST_PRICES * float(unit[0]))
    needed = 0.0 if infeasible else EPS * abs(upper) - tolerance
    margin, sure, dual_residual = lower_bound(cmdp, weights, dual, upper, needed)
    # There are few constraints: lists are faster than arrays.
    priced = all(price >= 0.0 for price in dual.multipliers.tolist())
    sound = priced and math.isfinite(margin) and dual_residual <= PROVEN_GAP * size
    allowed = PROVEN_EXCESS * excess_unit
    if infeasible:
        # Without a potential, a single cost is compared with its threshold, and only the entries may be rounded.
        plain = dual.gains is None and not dual.potential.any() and np.count_nonzero(dual.multipliers) == 1
        rounding = ROUNDED_ENTRY * dot(dual.multipliers, np.abs(cmdp.thresholds))
        tolerance = rounding if plain else PROVEN_MARGIN * size
        holds = sound and margin > tolerance and sure > needed
        nothing_is_cheaper = np.inf if holds else -np.inf
        return Certificate(
            nothing_is_cheaper, upper, excess, flow_residual, policy_error, dual_residual, margin, tolerance, allowed,
            holds,
        )  # fmt: skip
    # A policy within the thresholds and below the bound would refute the bound.
    within = all(x <= most for x, most in zip(excess.tolist(), allowed.tolist(), strict=True))
    holds = sound and within and margin <= PROVEN_EXCESS * size
    if status is not Status.NOT_ATTAINED:
        closed = status is Status.STOPPED or sure >= needed
        holds = holds and closed and flow_residual <= PROVEN_FLOW and policy_error <= PROVEN_POLICY
    return Certificate(
        upper + margin, upper, excess, flow_residual, policy_error, dual_residual, 0.0, tolerance, allowed, holds
    )


class LowerBound(NamedTuple):
    """A bound on a weighted cost of all policies as computed, and without any rounding."""

    computed: float
    sure: float  # not more than the bound in exact arithmetic
    loss: float  # of a multichain proof, which is subtracted from the bound

    def is_doubtful(self, needed: float) -> bool:
        """Whether rounding decides if the bound reaches a number."""
        return self.sure < needed <= 2.0 * self.computed - self.sure


def lower_bound(cmdp: CMDP, weights: Floats, dual: Dual, start: float, needed: float) -> LowerBound:
    """Bound ``w0 (J(c0) - start) + sum_i wi (J(ci) - tau_i)`` over all policies.

    If rounding decides whether the bound reaches ``needed``, it is computed in double-double precision.
    """
    moved = cmdp.transition.drift(dual.potential, dual.low_potential)
    reduced, rounding = reduced_costs(cmdp.costs, weights, start, cmdp.thresholds, moved, cmdp.available)
    within = drift_rounding(dual.potential, dual.low_potential)
    bound = _least(cmdp, weights, dual, start, reduced, rounding, within)
    if bound.is_doubtful(needed):
        P, bases = cmdp.transition.csr(), np.append(start, cmdp.thresholds)
        reduced, rounding = precise_reduced_costs(
            P.indptr, P.indices, P.data, dual.potential, dual.low_potential, cmdp.costs, weights, bases, cmdp.available
        )
        bound = _least(cmdp, weights, dual, start, reduced, rounding, 0.0)
    return bound


def _least(
    cmdp: CMDP, weights: Floats, dual: Dual, start: float, reduced: Floats, rounding: Floats, within: float
) -> LowerBound:
    """Return the bound by reduced costs (S, A), whose errors are at most ``rounding`` (S, A) plus ``within``."""
    if dual.gains is None and cmdp.transition.communicates:
        least, sure = least_of(reduced, rounding)
        return LowerBound(least, sure - within, 0.0)
    met = cmdp.transition.reachable_from(cmdp.initial > 0)
    reduced[~met] = np.inf
    if dual.gains is None:
        least, sure = least_of(reduced, rounding)
        return LowerBound(least, sure - within, 0.0)
    # Gains must be constant on an end component, or the bound would drift with time.
    g = dual.gains - weights[0] * start - product(weights[1:], cmdp.thresholds)
    components = find_end_components(cmdp.transition, cmdp.available)
    inside = components.of_state >= 0
    lowest = np.full(components.number, np.inf)
    np.minimum.at(lowest, components.of_state[inside], g[inside])
    g[inside] = lowest[components.of_state[inside]]
    lost = transit_loss(cmdp, met, components, g)
    margin = np.where(components.inside, reduced - g[:, None], np.inf)
    doubt = np.where(np.isfinite(margin), rounding + EPS * np.abs(margin), 0.0)
    least, sure = least_of(margin, doubt)
    least, sure = np.minimum(0.0, [least, sure - within]).tolist()  # nan if an entry is: then nothing is proven
    expected = product(cmdp.initial, g)
    summed = (g.size + 4) * EPS * product(cmdp.initial, np.abs(g))
    return LowerBound(expected + least - lost, expected + sure - lost - summed, lost)
