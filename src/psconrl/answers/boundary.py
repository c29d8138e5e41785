"""Plans of models whose thresholds may be exactly what can be reached.

Probabilities and costs of a system are decimals, and its model holds them as doubles, whose sums are off by rounding: a
share that can be brought to 0.1, but not below, may come out as 0.1 + 3e-17. The planner decides in exact arithmetic,
and would call a limit of 0.1 infeasible. A model whose proof of infeasibility is no larger than such errors is
therefore planned again, with thresholds that are relaxed by them.
"""

import numpy as np

from psconrl.model.cmdp import CMDP
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.progress import Watch

ROUNDED_SUM = 1e-12  # of the largest cost: error of an average that is calculated in doubles


def plan_within_rounding(
    model: CMDP,
    start: Plan | None = None,
    watch: Watch | None = None,
    known: KnownPolicies | None = None,
) -> tuple[CMDP, Plan]:
    """Return a plan, and the model of which it is one: the given one, or that with relaxed thresholds.

    ``watch`` and ``known``: as of ``plan_unexplained``.
    """
    watch = watch or Watch(None, model.maximise)
    found = plan_unexplained(model, start=start, watch=watch, known=known)
    slack = ROUNDED_SUM * np.abs(model.costs[1:]).max(axis=(1, 2), initial=0.0)
    if found.feasible or found.certificate.margin > float(found.multipliers @ slack):
        return model, found
    relaxed = model.with_thresholds(model.thresholds + slack)
    again = plan_unexplained(relaxed, start=start, watch=watch, known=known)
    return (relaxed, again) if again.feasible else (model, found)
