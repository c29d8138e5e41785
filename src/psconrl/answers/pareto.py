"""Trade-off curves: the optimal value as a function of one threshold or of two, and the range of each cost."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.answers.answer import Answer, or_none
from psconrl.answers.asking import answer_of, need_asked
from psconrl.answers.solve_statement import solve_statement
from psconrl.answers.stated_infeasibility import best_value
from psconrl.answers.stated_model import Asked, StatedModel
from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, InfeasibleError, ModelError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.model.validation import as_floats
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_model
from psconrl.systems.limits import Requirement
from psconrl.systems.reports import Report
from psconrl.systems.system import System

MOST_POINTS = 10_000  # of a curve or a surface

Known = dict[str, float]  # numbers of limits by name


@dataclass(frozen=True, eq=False)
class Pareto:
    """The trade-off curve of one constraint, in the user's sense. Infeasible points have value and price nan."""

    limit: Requirement  # whose threshold varies, as it is in force
    thresholds: Floats  # (n,)
    answers: tuple[Answer, ...]

    @property
    def constraint(self) -> str:
        """The name of the constraint."""
        return self.limit.name

    @property
    def objective(self) -> str:
        """What is optimised."""
        return self.answers[0].asked.statement.goal.text

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of every point."""
        return tuple(one.plan for one in self.answers)

    @property
    def values(self) -> Floats:
        """Optimal value at every threshold."""
        return np.array([one.value if one.feasible else np.nan for one in self.answers])

    @property
    def prices(self) -> Floats:
        """What one more unit of the limited quantity is worth at every threshold."""
        return np.array([_price(one, self.constraint) for one in self.answers])

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; what is not known becomes None."""
        rows = zip(self.thresholds, self.values, self.prices, self.answers, strict=True)
        return {
            "constraint": self.constraint,
            "objective": self.objective,
            "curve": [
                {
                    "threshold": float(threshold),
                    "value": or_none(value),
                    "status": one.status.value,
                    "shadow_price": or_none(price),
                }
                for threshold, value, price, one in rows
            ],
        }


@dataclass(frozen=True, eq=False)
class ParetoSurface:
    """The trade-off surface of two constraints, in the user's sense. Infeasible points have value and prices nan."""

    limits: tuple[Requirement, Requirement]  # as they are in force
    thresholds: tuple[Floats, Floats]  # (n,) and (k,)
    answers: tuple[tuple[Answer, ...], ...]  # n rows of k

    @property
    def constraints(self) -> tuple[str, str]:
        """The names of the constraints."""
        return self.limits[0].name, self.limits[1].name

    @property
    def objective(self) -> str:
        """What is optimised."""
        return self.answers[0][0].asked.statement.goal.text

    @property
    def values(self) -> Floats:
        """Optimal values (n, k)."""
        return np.array([[one.value if one.feasible else np.nan for one in row] for row in self.answers])

    @property
    def prices(self) -> Floats:
        """What one more unit of both limited quantities is worth, (n, k, 2)."""
        return np.array([[[_price(one, name) for name in self.constraints] for one in row] for row in self.answers])

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; what is not known becomes None."""
        values, prices = self.values, self.prices
        return {
            "constraints": list(self.constraints),
            "objective": self.objective,
            "surface": [
                {
                    "thresholds": dict(zip(self.constraints, (float(x), float(y)), strict=True)),
                    "value": or_none(values[i, j]),
                    "status": self.answers[i][j].status.value,
                    "shadow_prices": dict(zip(self.constraints, map(or_none, prices[i, j]), strict=True)),
                }
                for i, x in enumerate(self.thresholds[0])
                for j, y in enumerate(self.thresholds[1])
            ],
        }


def _price(answer: Answer, name: str) -> float:
    return answer.prices[name].amount if answer.prices else np.nan


def pareto(
    asked: CMDP | System,
    constraint: str | int = 1,
    thresholds: ArrayLike | None = None,
    *,
    points: int = 21,
    low: float | None = None,
    high: float | None = None,
    progress: Report | None = None,
    **known: Any,
) -> Pareto:
    """Return optimal value and shadow price as functions of one threshold, with the other constraints in force.

    ``asked``: a model or a system. ``constraint``: the name of a constrained cost or limit, or its index from 1.
    Without ``thresholds``, ``points`` of them run from ``low`` to ``high``, by default from the least feasible
    threshold to where the constraint no longer binds; the strictest comes first. ``progress``: called with a line of
    text from time to time if it takes long, for example ``print``. ``known``: of a system, unknown parameters of noise.

    >>> import psconrl
    >>> curve = psconrl.pareto(psconrl.load("box"), "corner", [0.0, 0.6, 1.0])
    >>> curve.values.round(4).tolist()
    [0.875, 0.845, 0.8333]
    """
    question = _question(asked, "pareto", known)
    name = constraint_name(question, constraint)
    with question.report.to(progress):
        levels = _levels(question, name, thresholds, points, low, high)
        answers: list[Answer] = []
        policies = KnownPolicies()
        for k, level in enumerate(levels.tolist(), start=1):
            question.report.stage(f"point {k} of {levels.size}")
            answers.append(_answer_with(question, {name: level}, answers[-1:], policies))
    return Pareto(_limit(question, name), levels, tuple(answers))


def pareto_surface(
    asked: CMDP | System,
    constraints: Sequence[str | int] = (1, 2),
    thresholds: Sequence[ArrayLike] | None = None,
    *,
    points: int = 9,
    progress: Report | None = None,
    **known: Any,
) -> ParetoSurface:
    """Return optimal value and shadow prices as functions of two thresholds, with the other constraints in force.

    ``constraints``: two of them, each by name or by its index from 1. ``thresholds``: one list for each of the two; by
    default ``points`` of each, from the least feasible one to where it no longer binds, whatever the other threshold
    is. ``asked``, ``progress`` and ``known``: as of ``pareto``.

    >>> import psconrl
    >>> surface = psconrl.pareto_surface(psconrl.load("queue"), ["delay", "power"], [[1, 2], [0.2, 0.3, 0.4]])
    >>> surface.values.round(3).tolist()
    [[0.253, 0.338, 0.39], [0.289, 0.378, 0.4]]
    """
    question = _question(asked, "pareto_surface", known)
    if isinstance(constraints, str) or len(constraints) != 2:
        raise ConfigError(f"constraints must be two constrained costs; got {quoted(constraints)}")
    if len(question.statement.requirements) < 2:
        raise ModelError(f"a surface needs two constraints; the model has {len(question.statement.requirements)}")
    first, second = (constraint_name(question, constraint) for constraint in constraints)
    if first == second:
        raise ConfigError(f"constraints must be two different costs; got {quoted(first)} twice")
    if thresholds is not None and len(thresholds) != 2:
        raise ConfigError(f"thresholds must be two lists, one for each constraint; got {len(thresholds)}")
    given = (None, None) if thresholds is None else thresholds
    with question.report.to(progress):
        rows = _levels(question, first, given[0], points, beside=second)
        columns = _levels(question, second, given[1], points, beside=first)
        answers: list[list[Answer]] = []
        policies = KnownPolicies()
        for x, row in enumerate(rows.tolist()):
            answers.append([])
            for y, column in enumerate(columns.tolist()):
                question.report.stage(f"point {x * columns.size + y + 1} of {rows.size * columns.size}")
                neighbours = [*answers[x][y - 1 : y], *([answers[x - 1][y]] if x else [])]
                answers[x].append(_answer_with(question, {first: row, second: column}, neighbours, policies))
    limits = _limit(question, first), _limit(question, second)
    return ParetoSurface(limits, (rows, columns), tuple(map(tuple, answers)))


def _question(asked: CMDP | System, what: str, known: dict[str, Any]) -> Asked:
    need_asked(asked, what, known)
    return asked.with_known(**known) if isinstance(asked, System) else StatedModel(asked)


def _levels(
    question: Asked,
    name: str,
    thresholds: ArrayLike | None,
    points: int,
    low: float | None = None,
    high: float | None = None,
    beside: str | None = None,
) -> Floats:
    """Return the thresholds of a constraint to plan for; ``beside`` is another constraint that varies too."""
    if thresholds is None:
        if not isinstance(points, Integral) or not 1 <= points <= MOST_POINTS:
            raise ConfigError(f"points must be a whole number from 1 to {MOST_POINTS:,}; got {quoted(points)}")
        for end_name, end in (("low", low), ("high", high)):
            if end is not None and not (isinstance(end, Real) and np.isfinite(float(end))):
                raise ConfigError(f"{end_name} must be a finite number; got {quoted(end)}")
        is_lower = _limit(question, name).high is None
        ends = (high, low) if is_lower else (low, high)
        span = _span(question, name, *ends) if beside is None else _span_beside(question, name, beside)
        return np.linspace(*span, int(points))
    levels = np.atleast_1d(as_floats(thresholds, "thresholds", ConfigError))
    if levels.ndim != 1 or not 1 <= levels.size <= MOST_POINTS or not np.isfinite(levels).all():
        raise ConfigError(f"thresholds must be a list of 1 to {MOST_POINTS:,} finite numbers")
    return levels


def _answer_with(question: Asked, levels: Known, neighbours: Sequence[Answer], policies: KnownPolicies) -> Answer:
    """Plan under other thresholds, starting from the policies of neighbouring plans; do not explain infeasibility."""
    start = None
    if neighbours:
        columns = {column.tobytes(): column for near in neighbours for column in near.plan.columns}
        start = replace(neighbours[0].plan, columns=tuple(columns.values()))
    stricter = question.with_limits(levels)
    return Answer.of(stricter, solve_statement(stricter, start, known=policies))


def constraint_name(question: Asked, constraint: str | int) -> str:
    """Return the name of a constraint given by name or by its index from 1."""
    names = [limit.name for limit in question.statement.requirements]
    if not names:
        raise ModelError("the model has no constrained cost")
    if isinstance(constraint, str):
        if constraint not in names:
            raise ConfigError(unknown_name("constraint", constraint, names))
        return constraint
    if not isinstance(constraint, Integral) or not 1 <= constraint <= len(names):
        raise ConfigError(f"constraint must be a name or an index from 1 to {len(names)}; got {quoted(constraint)}")
    return names[int(constraint) - 1]


def _limit(question: Asked, name: str) -> Requirement:
    return next(limit for limit in question.statement.requirements if limit.name == name)


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
    return float(plan_model(free).costs[0])


def _span(question: Asked, name: str, strict: float | None, slack: float | None) -> tuple[float, float]:
    """Return the strictest threshold that can be kept, and the value at the optimum without this constraint."""
    limit = _limit(question, name)
    if strict is None:
        question.report.stage(f"range of {name}, 1 of 2")
        others = [one for one in question.statement.requirements if one is not limit]
        strict = best_value(question, limit, limit.high is None, others)
    if slack is None:
        question.report.stage(f"range of {name}, 2 of 2")
        found = answer_of(question.with_limits({name: None})).required()
        slack = limit.quantity.value(found.of_policy(found.plan.occupancy))
        slack = slack if strict is None else _slacker(limit, strict, slack)
    if strict is None:
        raise ModelError(f"the range of {quoted(name)} is not known; give the thresholds")
    return strict, slack


def _slacker(limit: Requirement, one: float, other: float) -> float:
    return min(one, other) if limit.high is None else max(one, other)


def _span_beside(question: Asked, name: str, other: str) -> tuple[float, float]:
    """Return the span of a constraint beside another that varies, without that one and with it in force."""
    limit = _limit(question, name)
    strict, slack = _span(question.with_limits({other: None}), name, None, None)
    with suppress(InfeasibleError):
        slack = _slacker(limit, slack, _span(question, name, strict, None)[1])
    return strict, _slacker(limit, slack, limit.sides[0][0])
