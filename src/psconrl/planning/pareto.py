"""The price of a limit: the best value as a function of one threshold, and the range each cost can take."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import ConfigError, ModelError, unknown_name
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.validation import as_floats
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan


@dataclass(frozen=True, eq=False)
class Pareto:
    """The trade-off curve of one constraint. Infeasible points have value nan."""

    constraint: str
    index: int  # of the constraint, from 1
    objective: str
    thresholds: Floats  # (n,)
    plans: tuple[Plan, ...]

    @property
    def values(self) -> Floats:
        """The optimal value at every threshold, in the user's units; nan where infeasible."""
        return np.array([np.nan if p.infeasibility else p.value for p in self.plans])


def pareto(
    cmdp: CMDP,
    constraint: str | int = 1,
    thresholds: ArrayLike | None = None,
    *,
    points: int = 21,
    low: float | None = None,
    high: float | None = None,
) -> Pareto:
    """Optimal value and shadow price against the threshold of one cost, the other limits kept.

    ``constraint``: the name of a constrained cost or its index from 1. Without thresholds, ``points`` of them run from
    ``low`` to ``high``, by default from the least feasible one to where the limit no longer binds.

    >>> import psconrl
    >>> curve = psconrl.pareto(psconrl.load("box"), "corner", [0.0, 0.6, 1.0])
    >>> curve.values.round(4).tolist()
    [0.875, 0.845, 0.8333]
    """
    need_model(cmdp, "pareto")
    i = constraint_index(cmdp, constraint)
    if thresholds is None:
        if not isinstance(points, Integral) or points < 1:
            raise ConfigError(f"points must be a whole number from 1; got {points!r}")
        levels = np.linspace(*_span_of_interest(cmdp, i, low, high), int(points))
    else:
        levels = np.atleast_1d(as_floats(thresholds, "thresholds", ConfigError))
    if levels.ndim != 1 or not levels.size or not np.isfinite(levels).all():
        raise ConfigError("thresholds must be a non-empty list of finite numbers")
    plans: list[Plan] = []
    previous: Plan | None = None
    for level in levels:
        limits = cmdp.thresholds.copy()
        limits[i - 1] = level
        previous = plan(cmdp.with_thresholds(limits), start=previous)
        plans.append(previous)
    return Pareto(cmdp.cost_names[i], i, cmdp.cost_names[0], levels, tuple(plans))


def constraint_index(cmdp: CMDP, constraint: str | int) -> int:
    """The index from 1 of a constrained cost given by name or index."""
    if cmdp.n_constraints == 0:
        raise ModelError("the model has no constrained cost")
    if isinstance(constraint, str):
        if constraint not in cmdp.cost_names[1:]:
            raise ConfigError(unknown_name("constrained cost", constraint, cmdp.cost_names[1:]))
        return cmdp.cost_names.index(constraint, 1)
    if not isinstance(constraint, Integral) or not 1 <= constraint <= cmdp.n_constraints:
        raise ConfigError(f"constraint must be a name or an index from 1 to {cmdp.n_constraints}; got {constraint!r}")
    return int(constraint)


def cost_ranges(cmdp: CMDP) -> Floats:
    """The least and the largest average of every cost over all policies, (m+1, 2), thresholds left aside.

    >>> import psconrl
    >>> cost_ranges(psconrl.load("counterexample")).round(4).tolist()
    [[-1.0, -0.5263], [0.5263, 1.0]]
    """
    ranges = np.empty((cmdp.n_constraints + 1, 2))
    for i in range(cmdp.n_constraints + 1):
        ranges[i, 0] = _extreme(cmdp, i, 1.0)
        ranges[i, 1] = -_extreme(cmdp, i, -1.0)
    return ranges


def _extreme(cmdp: CMDP, i: int, sign: float) -> float:
    free = CMDP(cmdp.transition, sign * cmdp.costs[[i]], initial=cmdp.initial, available=cmdp.available)
    return float(plan(free).costs[0])


def _span_of_interest(cmdp: CMDP, i: int, low: float | None, high: float | None) -> tuple[float, float]:
    """From the least feasible threshold to the average that the objective would choose, the other limits kept."""
    for name, end in (("low", low), ("high", high)):
        if end is not None and not (isinstance(end, Real) and np.isfinite(float(end))):
            raise ConfigError(f"{name} must be a finite number; got {end!r}")
    others = [j for j in range(1, cmdp.n_constraints + 1) if j != i]

    def best(objective: int) -> Plan:
        rows = [objective, *others]
        limits = cmdp.thresholds[[j - 1 for j in others]]
        names = [cmdp.cost_names[r] for r in rows]
        model = CMDP(
            cmdp.transition, cmdp.costs[rows], limits, initial=cmdp.initial, available=cmdp.available, cost_names=names
        )
        return plan(model).required()

    if low is None:
        low = float(best(i).costs[0])
    if high is None:
        high = max(low, float(np.einsum("sa,sa->", best(0).occupancy, cmdp.costs[i])))
    return low, high
