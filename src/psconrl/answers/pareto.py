"""Trade-off curves: the optimal value as a function of one threshold or of two, and the range of each cost."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, InfeasibleError, ModelError, unknown_name
from psconrl.model.cmdp import CMDP, need_model
from psconrl.model.matrix_product import product
from psconrl.model.validation import as_floats
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan, plan_unexplained

Progress = Callable[[int, int], object]


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
        """Optimal value at every threshold, in the user's units; nan where infeasible."""
        return np.array([p.value if p.feasible else np.nan for p in self.plans])


@dataclass(frozen=True, eq=False)
class ParetoSurface:
    """The trade-off surface of two constraints. Infeasible points have value and prices nan."""

    constraints: tuple[str, str]
    indices: tuple[int, int]  # of the constraints, from 1
    objective: str
    thresholds: tuple[Floats, Floats]  # (n,) and (k,)
    plans: tuple[tuple[Plan, ...], ...]  # n rows of k

    @property
    def values(self) -> Floats:
        """Optimal values (n, k), in the user's units; nan where infeasible."""
        return np.array([[p.value if p.feasible else np.nan for p in row] for row in self.plans])

    @property
    def prices(self) -> Floats:
        """Shadow prices (n, k, 2) of both constraints; nan where infeasible."""
        both = [i - 1 for i in self.indices]
        nothing = np.full(2, np.nan)
        return np.array([[p.multipliers[both] if p.feasible else nothing for p in row] for row in self.plans])


def pareto(
    cmdp: CMDP,
    constraint: str | int = 1,
    thresholds: ArrayLike | None = None,
    *,
    points: int = 21,
    low: float | None = None,
    high: float | None = None,
    progress: Progress | None = None,
) -> Pareto:
    """Return optimal value and shadow price as functions of one threshold, with the other constraints in force.

    ``constraint``: the name of a constrained cost or its index from 1. Without ``thresholds``, ``points`` of them run
    from ``low`` to ``high``, by default from the least feasible threshold to where the constraint no longer binds.
    ``progress`` is called after every plan with the number of plans done and their total.

    >>> import psconrl
    >>> curve = psconrl.pareto(psconrl.load("box"), "corner", [0.0, 0.6, 1.0])
    >>> curve.values.round(4).tolist()
    [0.875, 0.845, 0.8333]
    """
    need_model(cmdp, "pareto")
    i = constraint_index(cmdp, constraint)
    levels = _levels(cmdp, i, thresholds, points, low, high)
    plans: list[Plan] = []
    known = KnownPolicies()
    for level in levels:
        plans.append(_plan_with(cmdp, {i: level}, plans[-1:], known))
        if progress is not None:
            progress(len(plans), levels.size)
    return Pareto(cmdp.cost_names[i], i, cmdp.cost_names[0], levels, tuple(plans))


def pareto_surface(
    cmdp: CMDP,
    constraints: Sequence[str | int] = (1, 2),
    thresholds: Sequence[ArrayLike] | None = None,
    *,
    points: int = 9,
    progress: Progress | None = None,
) -> ParetoSurface:
    """Return optimal value and shadow prices as functions of two thresholds, with the other constraints in force.

    ``constraints``: two constrained costs, each by name or by its index from 1. ``thresholds``: one list for each of
    the two; by default ``points`` of each, from the least feasible one to where it no longer binds, whatever the other
    threshold is. ``progress`` is called after every plan with the number of plans done and their total.

    >>> import psconrl
    >>> surface = psconrl.pareto_surface(psconrl.load("queue"), ["delay", "power"], [[1, 2], [0.2, 0.3, 0.4]])
    >>> surface.values.round(3).tolist()
    [[0.253, 0.338, 0.39], [0.289, 0.378, 0.4]]
    """
    need_model(cmdp, "pareto_surface")
    if isinstance(constraints, str) or len(constraints) != 2:
        raise ConfigError(f"constraints must be two constrained costs; got {quoted(constraints)}")
    if cmdp.n_constraints < 2:
        raise ModelError(f"a surface needs two constraints; the model has {cmdp.n_constraints}")
    i, k = (constraint_index(cmdp, constraint) for constraint in constraints)
    if i == k:
        raise ConfigError(f"constraints must be two different costs; got {quoted(cmdp.cost_names[i])} twice")
    if thresholds is not None and len(thresholds) != 2:
        raise ConfigError(f"thresholds must be two lists, one for each constraint; got {len(thresholds)}")
    given = (None, None) if thresholds is None else thresholds
    rows, columns = _levels(cmdp, i, given[0], points, beside=k), _levels(cmdp, k, given[1], points, beside=i)
    plans: list[list[Plan]] = []
    known = KnownPolicies()
    for x, row in enumerate(rows):
        plans.append([])
        for y, column in enumerate(columns):
            neighbours = [*plans[x][y - 1 : y], *([plans[x - 1][y]] if x else [])]
            plans[x].append(_plan_with(cmdp, {i: row, k: column}, neighbours, known))
            if progress is not None:
                progress(x * columns.size + y + 1, rows.size * columns.size)
    names = cmdp.cost_names
    return ParetoSurface((names[i], names[k]), (i, k), names[0], (rows, columns), tuple(map(tuple, plans)))


def _levels(
    cmdp: CMDP,
    i: int,
    thresholds: ArrayLike | None,
    points: int,
    low: float | None = None,
    high: float | None = None,
    beside: int | None = None,
) -> Floats:
    """Return the thresholds of a constraint to plan for; ``beside`` is another constraint that varies too."""
    if thresholds is None:
        if not isinstance(points, Integral) or points < 1:
            raise ConfigError(f"points must be a whole number from 1; got {quoted(points)}")
        if beside is None:
            low, high = _span_of_interest(cmdp, i, low, high)
        else:
            low, high = _span_beside(cmdp, i, beside)
        return np.linspace(low, high, int(points))
    levels = np.atleast_1d(as_floats(thresholds, "thresholds", ConfigError))
    if levels.ndim != 1 or not levels.size or not np.isfinite(levels).all():
        raise ConfigError("thresholds must be a non-empty list of finite numbers")
    return levels


def _plan_with(cmdp: CMDP, levels: dict[int, float], neighbours: Sequence[Plan], known: KnownPolicies) -> Plan:
    """Plan under other thresholds, starting from the policies of neighbouring plans; do not explain infeasibility."""
    limits = cmdp.thresholds.copy()
    for i, level in levels.items():
        limits[i - 1] = level
    start = None
    if neighbours:
        columns = {column.tobytes(): column for near in neighbours for column in near.columns}
        start = replace(neighbours[0], columns=tuple(columns.values()))
    return plan_unexplained(cmdp.with_thresholds(limits), start=start, known=known)


def constraint_index(cmdp: CMDP, constraint: str | int) -> int:
    """Return the index from 1 of a constrained cost given by name or index."""
    if cmdp.n_constraints == 0:
        raise ModelError("the model has no constrained cost")
    if isinstance(constraint, str):
        if constraint not in cmdp.cost_names[1:]:
            raise ConfigError(unknown_name("constrained cost", constraint, cmdp.cost_names[1:]))
        return cmdp.cost_names.index(constraint, 1)
    if not isinstance(constraint, Integral) or not 1 <= constraint <= cmdp.n_constraints:
        raise ConfigError(
            f"constraint must be a name or an index from 1 to {cmdp.n_constraints}; got {quoted(constraint)}"
        )
    return int(constraint)


def cost_ranges(cmdp: CMDP, progress: Callable[[str], object] | None = None) -> Floats:
    """Return the least and the largest average of every cost over all policies, (m+1, 2), ignoring thresholds.

    ``progress``: called with a line of text before every cost.

    >>> import psconrl
    >>> cost_ranges(psconrl.load("counterexample")).round(4).tolist()
    [[-1.0, -0.5263], [0.5263, 1.0]]
    """
    ranges = np.empty((cmdp.n_constraints + 1, 2))
    for i, name in enumerate(cmdp.cost_names):
        if progress is not None:
            progress(f"Range of {name!r}, {i + 1} of {len(ranges)}")
        ranges[i, 0] = _extreme(cmdp, i, 1.0)
        ranges[i, 1] = -_extreme(cmdp, i, -1.0)
    return ranges


def _extreme(cmdp: CMDP, i: int, sign: float) -> float:
    free = CMDP(cmdp.transition, sign * cmdp.costs[[i]], initial=cmdp.initial, available=cmdp.available)
    return float(plan(free).costs[0])


def _span_of_interest(cmdp: CMDP, i: int, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the least feasible threshold and the average at the optimum without this constraint, the others kept."""
    for name, end in (("low", low), ("high", high)):
        if end is not None and not (isinstance(end, Real) and np.isfinite(float(end))):
            raise ConfigError(f"{name} must be a finite number; got {quoted(end)}")
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
        high = max(low, product(best(0).occupancy.ravel(), cmdp.costs[i].ravel()))
    return low, high


def _span_beside(cmdp: CMDP, i: int, k: int) -> tuple[float, float]:
    """Return the span of interest of a constraint beside another that varies, without that one and with it in force."""
    kept = [j for j in range(1, cmdp.n_constraints + 1) if j != k]
    free = CMDP(
        cmdp.transition,
        cmdp.costs[[0, *kept]],
        cmdp.thresholds[[j - 1 for j in kept]],
        initial=cmdp.initial,
        available=cmdp.available,
        cost_names=[cmdp.cost_names[j] for j in (0, *kept)],
    )
    low, high = _span_of_interest(free, kept.index(i) + 1, None, None)
    with suppress(InfeasibleError):
        high = max(high, _span_of_interest(cmdp, i, low, None)[1])
    in_force = float(cmdp.thresholds[i - 1])
    return low, in_force if in_force > high else high
