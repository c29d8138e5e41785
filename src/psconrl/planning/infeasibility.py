"""Explaining an infeasible model: the least that each cost can be, alone, with the other limits, and together."""

from collections.abc import Callable

import numpy as np

from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Infeasibility, Plan, Status


def explain(cmdp: CMDP, infeasible: Plan, plan: Callable[[CMDP], Plan]) -> Infeasibility:
    """What could be met instead of the thresholds of an infeasible plan, by planning relaxations of its model."""
    m = cmdp.n_constraints
    alone, with_others = np.empty(m), np.full(m, np.nan)
    for i in range(m):
        alone[i] = plan(_only(cmdp, i, [])).costs[0]
        others = [j for j in range(m) if j != i]
        kept = plan(_only(cmdp, i, others)) if others else None
        if kept is None:
            with_others[i] = alone[i]
        elif kept.status is not Status.INFEASIBLE:
            with_others[i] = kept.costs[0]
    return Infeasibility(
        cmdp.cost_names[1:], cmdp.thresholds, alone, with_others, infeasible.costs[1:], infeasible.multipliers
    )


def _only(cmdp: CMDP, objective: int, limits: list[int]) -> CMDP:
    """Minimise one of the constrained costs under some of the limits."""
    rows = [objective + 1, *(j + 1 for j in limits)]
    return CMDP(
        cmdp.transition,
        cmdp.costs[rows],
        cmdp.thresholds[limits],
        initial=cmdp.initial,
        available=cmdp.available,
        cost_names=[cmdp.cost_names[r] for r in rows],
    )
