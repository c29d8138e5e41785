"""The answer for a system or a model: a certified plan, and what it means in the terms of the question."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.answers.denominators import Denominator
from psconrl.answers.found import Found
from psconrl.answers.least_ratio import is_undefined
from psconrl.answers.policy_averages import PolicyAverages
from psconrl.answers.prices import Price, price_of
from psconrl.answers.stated_model import Asked, StatedModel
from psconrl.base.arrays import Floats
from psconrl.errors import InfeasibleError
from psconrl.model.cmdp import CMDP
from psconrl.planning.deployable import Deployable
from psconrl.planning.infeasibility import Infeasibility
from psconrl.planning.plan import Plan
from psconrl.planning.proof.certificate import Status
from psconrl.systems.numbered import Choices, choices
from psconrl.systems.quantities import Percentile, Quantity, Ratio
from psconrl.systems.quantity_units import quantity_unit


@dataclass(frozen=True, eq=False)
class Answer:
    """The best policy for a system or a model, with a certificate.

    ``asked`` is what was asked for. ``plan`` is a plan of ``model``, whose objective and limits are linear, and
    ``system`` the description of that model: levels of expected shortfalls are fixed, and a ratio as objective is
    replaced by numerator minus ratio times denominator. ``value`` and ``averages`` are those of the question.
    """

    asked: Asked
    system: Asked
    model: CMDP
    plan: Plan
    lower: float  # bound on the objective, as a cost
    plans: int  # number of linear models that were planned
    note: str = ""  # what is unusual; empty if nothing is
    infeasibility: Infeasibility | None = None  # why the limits cannot be kept

    @classmethod
    def of(cls, asked: Asked, found: Found, why: Infeasibility | None = None) -> "Answer":
        """Return the answer that was found."""
        plan = found.plan.of_model(found.model)
        return cls(asked, found.system, found.model, plan, found.lower, found.plans, plan.note, why)

    @classmethod
    def of_model(cls, asked: StatedModel, model: CMDP, plan: Plan) -> "Answer":
        """Return the answer for a model that was planned."""
        return cls(asked, asked, model, plan, plan.certificate.lower, 1, plan.note, plan.infeasibility)

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
        return -self.lower if self.asked.statement.maximises else self.lower

    @property
    def gap(self) -> float:
        """Proven distance of the objective from the optimum."""
        return abs(self.value - self.bound)

    @cached_property
    def _quantities(self) -> dict[str, Quantity]:
        statement = self.asked.statement
        stated = {statement.goal.text: statement.goal}
        stated |= {limit.name: limit.quantity for limit in statement.requirements}
        names = self.asked.cost_names
        costs = {name: stated.get(name) or self.asked.cost_quantity(name) for name in names}
        return costs | stated

    @cached_property
    def averages(self) -> Mapping[str, float]:
        """Long-run values by name: of every cost, the objective, and every limited quantity as stated."""
        return self.averages_of(self.plan.occupancy)

    def averages_of(self, occupancy: Floats) -> dict[str, float]:
        """Return the same for any occupancy (S, A)."""
        averages = self.of_policy(occupancy)
        return {name: quantity.value(averages) for name, quantity in self._quantities.items()}

    def of_policy(self, occupancy: Floats) -> PolicyAverages:
        """Return the averages of any expression under an occupancy (S, A)."""
        return PolicyAverages(self.asked.expectations, occupancy)

    @cached_property
    def undefined(self) -> tuple[str, ...]:
        """Names of limits on ratios whose denominator is zero on average for the policy found."""
        averages = self.of_policy(self.plan.occupancy)
        return tuple(
            one.name
            for one in self.asked.statement.requirements
            if is_undefined(one, averages, self.asked.expectations)
        )

    @cached_property
    def prices(self) -> Mapping[str, Price]:
        """What a unit of every limit is worth, by the name of the limit.

        Empty if no policy keeps the limits, if nothing is proven, or if the objective is a percentile, which changes in
        steps.
        """
        if not self.feasible or self.status is Status.UNCERTIFIED or isinstance(self.asked.statement.goal, Percentile):
            return {}
        averages = self.of_policy(self.plan.occupancy)
        goal = self.asked.statement.goal
        per = goal.base(averages) if isinstance(goal, Ratio) else 1.0
        found, row = {}, 0
        for limit in self.asked.statement.requirements:
            multipliers = [float(x) / per for x in self.plan.multipliers[row : row + len(limit.sides)]]
            row += len(limit.sides)
            found[limit.name] = price_of(limit, multipliers, limit.quantity.base(averages), goal, self.asked.units)
        return found

    def required(self) -> "Answer":
        """Return this answer; raise ``InfeasibleError`` if no policy keeps the limits."""
        if not self.feasible:
            raise InfeasibleError(str(self.infeasibility or "no policy keeps the limits"))
        return self

    def act(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action in a state, of a system both as tables of variables and values; see ``Plan.act``."""
        return self.required().action_of(self.plan, state, rng)

    def action_of(self, policy: Deployable, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action of a policy of the model, such as ``plan.draw(rng)`` or a rule, in a state."""
        return self.asked.action_values(policy.act(self.asked.state_number(state), rng))

    def probabilities(self, state: Any, policy: Deployable | None = None) -> Choices:
        """Return the actions in a state with their probabilities, the likeliest first.

        ``policy``: another policy of the model than the plan's, such as ``plan.draw(rng)`` or a rule. A plan that is a
        mixture has no such probabilities; draw the policy of a run from it.

        >>> from psconrl.systems import System
        >>> pump = System(state={"ready": 1}, action={"run": 2}, step={}, costs={"power": "run"},
        ...     maximise="run", limits=["power <= 0.25"])
        >>> import psconrl
        >>> psconrl.plan(pump).probabilities({"ready": 0})
        [(0.75, {'run': 0}), (0.25, {'run': 1})]
        """
        played = self.required().plan if policy is None else policy
        return choices(self.asked.action_values, played.probabilities(self.asked.state_number(state)))

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON, in the terms of the question; what is not defined becomes None."""
        statement, units = self.asked.statement, self.asked.units
        limits = {
            limit.name: {
                "limit": limit.written("r"),
                "value": or_none(self.averages[limit.name]),
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
            "value": or_none(self.value) if self.feasible else None,
            "bound": or_none(self.bound) if self.feasible else None,
            "unit": quantity_unit(statement.goal, units),
            "limits": limits,
            "averages": {name: or_none(self.averages[name]) for name in self.asked.cost_names},
            "note": self.note,
            "infeasibility": None if self.infeasibility is None else self.infeasibility.record(),
        }

    def __str__(self) -> str:
        goal, units = self.asked.statement.goal, self.asked.units
        verb = "maximise" if self.asked.statement.maximises else "minimise"
        if not self.feasible:
            why = str(self.infeasibility or "no policy keeps the limits")
            return f"{verb} {goal.text}: infeasible. {why[0].upper()}{why[1:]}"
        unit = quantity_unit(goal, units)
        proven = {Status.OPTIMAL: "optimal"}.get(self.status, f"{self.status.value}, bound {self.bound:.6g}")
        lines = [f"{verb} {goal.text}: {f'{self.value:.6g} {unit}'.rstrip()} ({proven})"]
        for limit in self.asked.statement.requirements:
            if limit.name in self.undefined and limit.quantity.denominator is not None:
                lines.append(f"  {limit} says nothing, since {Denominator(limit.quantity.denominator).is_zero}")
                continue
            value = self.averages[limit.name]
            shown = f"{limit} {'holds' if limit.is_kept(value) else 'is missed'} with {value:.6g}"
            lines.append(f"  {shown}" + (f"; {self.prices[limit.name]}" if limit.name in self.prices else ""))
        return "\n".join([*lines, *([f"  note: {self.note}"] if self.note else [])])

    def __repr__(self) -> str:
        return f"Answer({self.status.value}, {self.asked.statement.goal.text}={self.value:.8g}, {self.plans} plans)"


def or_none(x: float) -> float | None:
    """Return a number, and None instead of one that is not finite."""
    return float(x) if np.isfinite(x) else None
