"""The answer to what was asked of a system: a certified plan, and what it means in the terms of the question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from psconrl.answers.denominators import Denominator
from psconrl.answers.heat_map import HeatMap, heat_map
from psconrl.answers.infeasible import best_value, why_infeasible
from psconrl.answers.least_ratio import is_undefined, without_denominator
from psconrl.answers.measures import Measures, PolicyAverages
from psconrl.answers.nonlinear import Found, solve_statement
from psconrl.answers.prices import Price, price_of
from psconrl.answers.reasons import Reasons, find_reasons
from psconrl.answers.short_rule import ShortRule, find_rule
from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, InfeasibleError, ModelError, unknown_name
from psconrl.model.cmdp import CMDP
from psconrl.model.validation import as_floats
from psconrl.planning.deployable import Deployable
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.systems.limits import Requirement
from psconrl.systems.numbered import Choices, choices
from psconrl.systems.quantities import Combination, Mean, Percentile, Quantity, Ratio
from psconrl.systems.quantity_units import quantity_unit
from psconrl.systems.stated import Stated

MOST_POINTS = 10_000  # of a trade-off


@dataclass(frozen=True, eq=False)
class Answer:
    """The best policy for a system, with a certificate.

    ``asked`` is the system in question. ``plan`` is a plan of ``model``, whose objective and limits are linear, and
    ``system`` the description of that model: levels of expected shortfalls are fixed, and a ratio as objective is
    replaced by numerator minus ratio times denominator. ``value`` and ``averages`` are those of the question.
    """

    asked: Stated
    system: Stated
    model: CMDP
    plan: Plan
    lower: float  # bound on the objective, as a cost
    plans: int  # number of linear models that were planned
    note: str  # why the limits cannot be kept, or what is unusual; empty if nothing is

    @property
    def feasible(self) -> bool:
        """Whether some policy keeps the limits."""
        return self.plan.feasible

    @property
    def status(self) -> Status:
        """What is proven of the policy."""
        return self.plan.status

    @property
    def value(self) -> float:
        """The objective as stated, for the policy found."""
        return self.averages[self.asked.statement.goal.text]

    @property
    def bound(self) -> float:
        """What no policy within the limits can beat: the objective is at least this, or at most if it is maximised."""
        return -self.lower if self.asked.maximises else self.lower

    @property
    def gap(self) -> float:
        """Proven distance of the objective from the optimum."""
        return abs(self.value - self.bound)

    @cached_property
    def measures(self) -> Measures:
        """All costs and all quantities of the question, at all points."""
        return Measures(self.asked)

    @cached_property
    def _quantities(self) -> dict[str, Quantity]:
        statement = self.asked.statement
        costs = {name: Mean(name, Combination.of(name)) for name in self.asked.cost_names}
        limits = {limit.name: limit.quantity for limit in statement.requirements}
        return {**costs, statement.goal.text: statement.goal, **limits}

    @cached_property
    def averages(self) -> Mapping[str, float]:
        """Long-run values by name: of every cost, the objective, and every limited quantity as stated."""
        return self.averages_of(self.plan.occupancy)

    def averages_of(self, occupancy: Floats) -> dict[str, float]:
        """Return the same for any occupancy (S, A)."""
        averages = PolicyAverages(self.measures, occupancy)
        return {name: quantity.value(averages) for name, quantity in self._quantities.items()}

    @cached_property
    def undefined(self) -> tuple[str, ...]:
        """Names of limits on ratios whose denominator is zero on average for the policy found."""
        averages = PolicyAverages(self.measures, self.plan.occupancy)
        return tuple(one.name for one in self.asked.requirements if is_undefined(one, averages, self.measures))

    @cached_property
    def prices(self) -> Mapping[str, Price]:
        """What a unit of every limit is worth, by the name of the limit.

        Empty if no policy keeps the limits, if nothing is proven, or if the objective is a percentile, which changes in
        steps.
        """
        if not self.feasible or self.status is Status.UNCERTIFIED or isinstance(self.asked.statement.goal, Percentile):
            return {}
        averages = PolicyAverages(self.measures, self.plan.occupancy)
        goal = self.asked.statement.goal
        per = goal.base(averages) if isinstance(goal, Ratio) else 1.0
        found, row = {}, 0
        for limit in self.asked.requirements:
            multipliers = [float(x) / per for x in self.plan.multipliers[row : row + len(limit.sides)]]
            row += len(limit.sides)
            found[limit.name] = price_of(limit, multipliers, limit.quantity.base(averages), goal, self.asked.units)
        return found

    def required(self) -> "Answer":
        """Return this answer; raise ``InfeasibleError`` if no policy keeps the limits."""
        if not self.feasible:
            raise InfeasibleError(self.note)
        return self

    def act(self, state: Mapping[str, Any], rng: np.random.Generator | None = None) -> dict[str, Any]:
        """Return the action in a state, both as tables of variables and values; see ``Plan.act``."""
        return self.required().action_of(self.plan, state, rng)

    def action_of(
        self, policy: Deployable, state: Mapping[str, Any], rng: np.random.Generator | None = None
    ) -> dict[str, Any]:
        """Return the action of a policy of the model, such as ``plan.draw(rng)`` or a rule, in a state."""
        return self.asked.actions.label(policy.act(self.asked.state_number(state), rng))

    def probabilities(self, state: Mapping[str, Any], policy: Deployable | None = None) -> Choices:
        """Return the actions in a state with their probabilities, the likeliest first.

        ``policy``: another policy of the model than the plan's, such as ``plan.draw(rng)`` or a rule. A plan that is a
        mixture has no such probabilities; draw the policy of a run from it.

        >>> from psconrl.systems import System
        >>> pump = System(state={"ready": 1}, action={"run": 2}, step={}, costs={"power": "run"},
        ...     maximise="run", limits=["power <= 0.25"])
        >>> pump.plan().probabilities({"ready": 0})
        [(0.75, {'run': 0}), (0.25, {'run': 1})]
        """
        played = self.required().plan if policy is None else policy
        return choices(self.asked.actions, played.probabilities(self.asked.state_number(state)))

    def explain(self, state: Mapping[str, Any]) -> Reasons:
        """Return what each action in a state would change, if played once, in costs, limits and the objective."""
        return find_reasons(self.required().asked, self.model, self.plan, self.measures, self.value, state)

    def rule(self, depth: int = 3) -> ShortRule:
        """Return a short rule for the policy: at most ``depth`` questions about the state, with what it costs."""
        return find_rule(self.required().asked, self.model, self.plan, self.bound, self.averages_of, depth)

    def heat_map(self, x: str, y: str) -> HeatMap:
        """Return how often two variables of the state have each pair of values, and the mean action there."""
        return heat_map(self.asked, self.plan.occupancy, x, y)

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON, in the terms of the question; what is not defined becomes None."""
        statement, units = self.asked.statement, self.asked.units
        limits = {
            limit.name: {
                "limit": limit.written("r"),
                "value": _or_none(self.averages[limit.name]),
                "kept": limit.is_kept(self.averages[limit.name]),
                "unit": quantity_unit(limit.quantity, units),
                "price": self.prices[limit.name].amount if limit.name in self.prices else None,
            }
            for limit in statement.requirements
        }
        return {
            "objective": statement.goal.text,
            "sense": "maximise" if statement.maximises else "minimise",
            "status": self.status.value,
            "value": _or_none(self.value) if self.feasible else None,
            "bound": _or_none(self.bound) if self.feasible else None,
            "unit": quantity_unit(statement.goal, units),
            "limits": limits,
            "averages": {name: _or_none(self.averages[name]) for name in self.asked.cost_names},
            "note": self.note,
        }

    def __str__(self) -> str:
        goal, units = self.asked.statement.goal, self.asked.units
        verb = "maximise" if self.asked.maximises else "minimise"
        if not self.feasible:
            return f"{verb} {goal.text}: infeasible. {self.note}"
        unit = quantity_unit(goal, units)
        proven = {Status.OPTIMAL: "optimal"}.get(self.status, f"{self.status.value}, bound {self.bound:.6g}")
        lines = [f"{verb} {goal.text}: {f'{self.value:.6g} {unit}'.rstrip()} ({proven})"]
        for limit in self.asked.requirements:
            if limit.name in self.undefined and limit.quantity.denominator is not None:
                lines.append(f"  {limit} says nothing, since {Denominator(limit.quantity.denominator).is_zero}")
                continue
            value = self.averages[limit.name]
            shown = f"{limit} {'holds' if limit.is_kept(value) else 'is missed'} with {value:.6g}"
            lines.append(f"  {shown}" + (f"; {self.prices[limit.name]}" if limit.name in self.prices else ""))
        return "\n".join([*lines, *([f"  note: {self.note}"] if self.note else [])])

    def __repr__(self) -> str:
        return f"Answer({self.status.value}, {self.asked.statement.goal.text}={self.value:.8g}, {self.plans} plans)"


def _or_none(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def answer(system: Stated, follow: Callable[[object], object] | None = None) -> Answer:
    """Return the answer for a system without unknown parameters; ``follow`` is given the progress of planning."""
    found = solve_statement(system, follow=follow)
    made = _answer(system, found, why_infeasible(system) if not found.plan.feasible else "")
    return _with_what_is_undefined(made)


def _answer(system: Stated, found: Found, note: str) -> Answer:
    plan = found.plan.of_model(found.model)
    return Answer(system, found.system, found.model, plan, found.lower, found.plans, note or plan.note)


def _with_what_is_undefined(made: Answer) -> Answer:
    """Return an answer whose note says what can be reached where the denominators of ratios are positive."""
    if not made.feasible or not made.undefined:
        return made
    goal = made.asked.statement.goal
    base = goal.base(PolicyAverages(made.measures, made.plan.occupancy))
    limits = [limit for limit in made.asked.requirements if limit.name in made.undefined]
    notes = [without_denominator(made.asked, limit, made.value, base) for limit in limits]
    return replace(made, note="; ".join(filter(None, [made.note, *notes])))


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The optimal value as a function of the number of one limit."""

    limit: str
    numbers: Floats  # (n,)
    answers: tuple[Answer, ...]

    @property
    def values(self) -> Floats:
        """The objective at every number; nan where the limits cannot be kept."""
        return np.array([one.value if one.feasible else np.nan for one in self.answers])

    @property
    def prices(self) -> Floats:
        """What one more unit of the limited quantity is worth at every number; nan where infeasible."""
        return np.array([one.prices[self.limit].amount if one.prices else np.nan for one in self.answers])

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; what is not known becomes None."""
        rows = zip(self.numbers, self.values, self.prices, self.answers, strict=True)
        return {
            "constraint": self.limit,
            "objective": self.answers[0].asked.statement.goal.text,
            "curve": [
                {
                    "threshold": float(number),
                    "value": _or_none(value),
                    "status": one.status.value,
                    "shadow_price": _or_none(price),
                }
                for number, value, price, one in rows
            ],
        }


def trade_off(
    system: Stated,
    limit: str,
    numbers: Sequence[float] | None,
    points: int,
) -> TradeOff:
    """Return the answers for several numbers of one limit; by default from the least feasible to where it is slack."""
    found = {one.name: one for one in system.requirements}
    if not isinstance(limit, str) or limit not in found:
        raise ConfigError(unknown_name("limit", limit, found))
    if numbers is None:
        if not isinstance(points, Integral) or not 1 <= points <= MOST_POINTS:
            raise ConfigError(f"points must be a whole number from 1 to {MOST_POINTS:,}; got {quoted(points)}")
        chosen = _span(system, found[limit], int(points))
    else:
        chosen = np.ravel(as_floats(numbers, "numbers", ConfigError))
        if not 1 <= chosen.size <= MOST_POINTS:
            raise ConfigError(f"numbers must be 1 to {MOST_POINTS:,} numbers; got {chosen.size}")
    answers: list[Answer] = []
    known = KnownPolicies()
    for number in chosen:
        system.expectations.report.stage(f"point {len(answers) + 1} of {len(chosen)}")
        stricter = system.with_limits({limit: float(number)})
        result = solve_statement(stricter, answers[-1].plan if answers else None, known=known)
        answers.append(_answer(stricter, result, "" if result.plan.feasible else "no policy keeps all limits"))
    return TradeOff(limit, chosen, tuple(answers))


def _span(system: Stated, limit: Requirement, points: int) -> Floats:
    """Return numbers from the best value under the other limits to the value without this one."""
    others = [one for one in system.requirements if one is not limit]
    system.expectations.report.stage(f"range of {limit.name}, 1 of 2")
    best = best_value(system, limit, limit.high is None, others)
    system.expectations.report.stage(f"range of {limit.name}, 2 of 2")
    free = answer(system.with_limits({limit.name: None}))
    if best is None or not free.feasible:
        raise ModelError(f"the range of {quoted(limit.name)} is not known; give the numbers")
    averages = PolicyAverages(Measures(system), free.plan.occupancy)
    return np.linspace(best, limit.quantity.value(averages), points)
