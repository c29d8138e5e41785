r"""Check any plan against any model, from the arrays of the plan alone.

For every potential h and every :math:`\lambda \ge 0` (weak duality; Altman 1999, chapter 4; Puterman 1994, section 8.4)

.. math:: J^* \;\ge\; \min_{s,a}\Big[c_0 + \textstyle\sum_i \lambda_i (c_i - \tau_i) + P h - h(s)\Big]

over the pairs reachable from the initial law. For models with several end components h is joined by gains g with
:math:`g \le P g` everywhere and :math:`g + h \le c_\lambda + P h` inside the components, where alone a path can stay;
they bound the objective by :math:`\beta g` (Hordijk and Kallenberg 1979).
"""

import numpy as np

from psconrl.arrays import Floats
from psconrl.model.chain import Evaluation, evaluate
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import end_components, reachable
from psconrl.planning.passage import loss
from psconrl.planning.plan import Certificate, Plan, Status

# All in scaled costs, that is relative to the range of each cost.
GAP_TOL = 1e-9  # of the Lagrangian, whose size is that of the objective plus the priced constraints
EXCESS_TOL = 2e-9  # the planner takes 1e-9 beyond the threshold as feasible
MARGIN_TOL = 1e-10  # a smaller margin of infeasibility may be rounding
FLOW_TOL = 1e-9
POLICY_TOL = 1e-8  # occupancy against the exact evaluation of the policy: two ways to one number


def certify(plan: Plan, cmdp: CMDP) -> Certificate:
    """Recompute the proof of a plan: bounds, residuals, exact averages of its policy.

    >>> import psconrl
    >>> rover = psconrl.load("marsrover-4x4")
    >>> certify(psconrl.plan(rover), rover).holds
    True
    """
    exact = evaluate(cmdp, plan.policy)
    return check(cmdp, plan.status, plan.occupancy, plan.multipliers, plan.potential, plan.gains, exact)


def check(
    cmdp: CMDP,
    status: Status,
    occupancy: Floats,
    multipliers: Floats,
    potential: Floats,
    gains: Floats | None,
    exact: Evaluation,
) -> Certificate:
    """The certificate of a claim, given the exact evaluation of its policy."""
    scale = cost_scale(cmdp)
    mass = occupancy.sum(axis=1)
    flow = occupancy.ravel() @ cmdp.transition - mass
    flow_residual = float(np.abs(flow).sum() + abs(mass.sum() - 1.0) + np.abs(np.minimum(occupancy, 0.0)).sum())
    averages = np.einsum("isa,sa->i", cmdp.costs, occupancy)
    policy_error = float(np.max(np.abs(averages - exact.costs) / scale))
    excess = exact.costs[1:] - cmdp.thresholds

    infeasible = status is Status.INFEASIBLE
    weights = np.append(0.0 if infeasible else 1.0, multipliers)
    lower, dual_residual = lower_bound(cmdp, weights, potential, gains)
    size = float(weights @ scale)
    sound = bool((multipliers >= 0).all() and np.isfinite(lower)) and dual_residual <= GAP_TOL * size
    upper = float(exact.costs[0])
    if infeasible:
        holds = sound and lower > MARGIN_TOL * size
        nothing_is_cheaper = np.inf if holds else -np.inf
        return Certificate(nothing_is_cheaper, upper, excess, flow_residual, policy_error, dual_residual, lower, holds)
    # A policy within the thresholds and below the bound would refute the bound.
    holds = sound and bool((excess <= EXCESS_TOL * scale[1:]).all()) and upper - lower >= -GAP_TOL * size
    if status is not Status.NOT_ATTAINED:
        holds = holds and flow_residual <= FLOW_TOL and policy_error <= POLICY_TOL and upper - lower <= GAP_TOL * size
    return Certificate(lower, upper, excess, flow_residual, policy_error, dual_residual, 0.0, holds)


def cost_scale(cmdp: CMDP) -> Floats:
    """The range of every cost over the available pairs, the yardstick of the tolerances."""
    playable = cmdp.costs[:, cmdp.available]
    extent = np.ptp(playable, axis=1)
    return np.where(extent > 0, extent, np.maximum(np.abs(playable[:, 0]), 1.0))


def lower_bound(cmdp: CMDP, weights: Floats, potential: Floats, gains: Floats | None) -> tuple[float, float]:
    """Bound on ``w0 J(c0) + sum_i wi (J(ci) - tau_i)`` over all policies, and what a multichain proof lost."""
    S, A = cmdp.n_states, cmdp.n_actions
    states = reachable(cmdp)
    cost = np.tensordot(weights, cmdp.costs, axes=1)
    reduced = np.where(cmdp.available, cost + _drift(cmdp, potential), np.inf)[states]
    priced = float(weights[1:] @ cmdp.thresholds)
    if gains is None:
        return float(reduced.min()) - priced, 0.0
    # Inside an end component gains must be equal, or the bound would drift away with time.
    g = gains.copy()
    components = end_components(cmdp)
    inside = np.zeros(S * A, dtype=bool)
    for component in components:
        g[component.states] = g[component.states].min()
        inside[component.pairs] = True
    lost = loss(cmdp, states, components, g)
    margin = np.where(inside.reshape(S, A)[states], reduced - g[states, None], np.inf)
    return float(cmdp.initial @ g) + min(0.0, float(margin.min())) - lost - priced, lost


def _drift(cmdp: CMDP, h: Floats) -> Floats:
    r"""The expected change of h, :math:`\sum_{s'} P(s'|s,a) (h(s') - h(s))`, (S, A).

    Summed over differences: h may be huge where it is hard to leave, and P h - h(s) would lose what matters.
    """
    S, A = cmdp.n_states, cmdp.n_actions
    P = cmdp.transition
    if isinstance(P, np.ndarray):
        result = np.empty((S, A))
        for s in range(S):
            result[s] = P[s * A : (s + 1) * A] @ (h - h[s])
        return result
    rows = np.repeat(np.arange(S * A), np.diff(P.indptr))
    change = P.data * (h[P.indices] - h[rows // A])
    return np.bincount(rows, change, minlength=S * A).astype(np.float64).reshape(S, A)
