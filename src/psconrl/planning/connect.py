r"""Where no stationary policy attains the bound: one that comes close, and a note that says so.

A communicating model may want several classes between which it would switch ever more rarely. Then
:math:`\mu_\epsilon = (1-\epsilon)\,\mu + \epsilon\,\mu_0`, with :math:`\mu_0` the occupancy of a policy that goes
everywhere, is the occupancy of a single stationary policy, :math:`\epsilon` away from the bound.
"""

import numpy as np

from psconrl.arrays import Floats
from psconrl.model.chain import Evaluation, evaluate
from psconrl.model.cmdp import CMDP
from psconrl.planning.claim import Claim
from psconrl.planning.problem import Problem
from psconrl.planning.solve import solve

CONNECTING_SHARE = 1e-4


def connected(part: CMDP, problem: Problem, claim: Claim) -> tuple[Floats, Floats, str]:
    """Occupancy, policy and note of the claim mixed with a policy that goes everywhere.

    The thresholds are first tightened by what that policy spends, so that the mixture keeps the original ones.
    """
    eps = CONNECTING_SHARE
    everywhere = part.available / part.available.sum(axis=1, keepdims=True)
    base = evaluate(part, everywhere)
    tightened = (part.thresholds - eps * base.costs[1:]) / (1 - eps)
    retry = solve(problem.with_thresholds(tightened), claim.columns)
    occupancy = retry.occupancy if retry.feasible else claim.occupancy
    occupancy = (1 - eps) * occupancy + eps * base.occupancy
    mass = occupancy.sum(axis=1, keepdims=True)
    policy = np.where(mass > 0, occupancy / np.where(mass > 0, mass, 1.0), everywhere)
    kept = "within" if retry.feasible else "beyond"
    note = (
        "the bound is approached by ever rarer switches between classes; this policy moves between them in a "
        f"share {eps:g} of the time and stays {kept} the thresholds"
    )
    return occupancy, policy, note


def multichain_note(part: CMDP, exact: Evaluation, bound: float) -> str:
    """What a stationary policy of a multichain model could not do."""
    over = exact.costs[1:] - part.thresholds
    beyond = [f"'{name}' by {x:.3g}" for name, x in zip(part.cost_names[1:], over, strict=True) if x > 0]
    excess = f" and exceeds {', '.join(beyond)}" if beyond else ""
    return (
        f"the bound {bound:.8g} needs memory or a choice by lot at the start; "
        f"this policy has neither, costs {exact.costs[0]:.8g}{excess}"
    )
