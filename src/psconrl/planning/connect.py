r"""Where no stationary policy attains the bound: one that comes close, and a note that says so.

A communicating model may want several classes between which it would switch ever more rarely. Then
:math:`\mu_\epsilon = (1-\epsilon)\,\mu + \epsilon\,\mu_0`, with :math:`\mu_0` the occupancy of a policy that goes
everywhere, is the occupancy of a single stationary policy, :math:`\epsilon` away from the bound.
"""

from collections.abc import Iterator

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.model.chain import Evaluation, evaluate
from psconrl.model.cmdp import CMDP
from psconrl.model.structure import approach
from psconrl.planning.certify import EXCESS_TOL, GAP_TOL, cost_scale
from psconrl.planning.claim import Claim
from psconrl.planning.problem import Problem
from psconrl.planning.solve import solve

CONNECTING_SHARE = 1e-4


def reaches(part: CMDP, occupancy: Floats, multipliers: Floats, bound: float) -> bool:
    """Do these frequencies meet the bound and the thresholds, and stay where they are, whatever policy has them?"""
    scale = cost_scale(part)
    averages = np.einsum("isa,sa->i", part.costs, occupancy)
    size = scale[0] + float(multipliers @ scale[1:])
    within = bool((averages[1:] - part.thresholds <= EXCESS_TOL * scale[1:]).all())
    # However little leaks out of their support, it all leaves in the end.
    lasting = not (occupancy.ravel() @ part.transition)[occupancy.sum(axis=1) == 0].any()
    # Without constraints a single deterministic policy attains the bound.
    return part.n_constraints > 0 and lasting and within and abs(float(averages[0]) - bound) <= GAP_TOL * size


def repairs(
    part: CMDP, problem: Problem, claim: Claim, exact: Evaluation, bound: float
) -> Iterator[tuple[Floats, Floats, str]]:
    """Policies to try where the claim's own does not do what it should, each with its occupancy and a note."""
    if claim.gains is not None:
        yield claim.policy, exact.occupancy, multichain_note(part, exact, bound)
        return
    for states in exact.classes:
        if (exact.gains[1:, states[0]] <= part.thresholds).all():  # by ties, one class alone may do
            policy = led_into(part, claim.policy, states)
            yield policy, evaluate(part, policy).occupancy, claim.note
    yield connected(part, problem, claim)


def led_into(part: CMDP, policy: Floats, states: Ints) -> Floats:
    """The policy changed so that everything ends in one of its classes."""
    inside = np.zeros(part.n_states, dtype=bool)
    inside[states] = True
    onward = approach(part.transition, part.available, inside, policy.argmax(axis=1))
    return np.where(inside[:, None], policy, np.eye(part.n_actions)[onward])


def connected(part: CMDP, problem: Problem, claim: Claim) -> tuple[Floats, Floats, str]:
    """Policy, occupancy and note of the claim mixed with a policy that goes everywhere.

    The thresholds are first tightened by what that policy spends, so that the mixture keeps the original ones.
    """
    eps = CONNECTING_SHARE
    everywhere = part.available / part.available.sum(axis=1, keepdims=True)
    base = evaluate(part, everywhere)
    tightened = (part.thresholds - eps * base.costs[1:]) / (1 - eps)
    try:
        retry = solve(problem.with_thresholds(tightened), claim.columns)
        kept, occupancy = retry.feasible, retry.occupancy if retry.feasible else claim.occupancy
    except SolverError:
        kept, occupancy = False, claim.occupancy
    occupancy = (1 - eps) * occupancy + eps * base.occupancy
    mass = occupancy.sum(axis=1, keepdims=True)
    policy = np.where(mass > 0, occupancy / np.where(mass > 0, mass, 1.0), everywhere)
    note = (
        "the bound is approached by ever rarer switches between classes; this policy moves between them in a "
        f"share {eps:g} of the time and stays {'within' if kept else 'beyond'} the thresholds"
    )
    return policy, occupancy, note


def multichain_note(part: CMDP, exact: Evaluation, bound: float) -> str:
    """What a stationary policy of a multichain model could not do."""
    over = exact.costs[1:] - part.thresholds
    beyond = [f"'{name}' by {x:.3g}" for name, x in zip(part.cost_names[1:], over, strict=True) if x > 0]
    excess = f" and exceeds {', '.join(beyond)}" if beyond else ""
    return (
        f"the bound {bound:.8g} needs memory or a choice by lot at the start; "
        f"this policy has neither, costs {exact.costs[0]:.8g}{excess}"
    )
