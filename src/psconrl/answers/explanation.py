r"""Explanation of a plan's action in a state: what each action would change in every cost, and at the shadow prices.

Playing action a once in state s and then following the plan changes the total of cost i over all future rounds by the
advantage :math:`A_i(s, a)` of ``continuation``. At the shadow prices :math:`\lambda` the sum
:math:`A_0 + \sum_i \lambda_i A_i` is zero for the actions of an optimal plan and nowhere negative (Altman 1999,
chapter 4). Where the plan is not the best, since it never gets there, it is followed as its prices suggest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.answers.answer import Answer
from psconrl.answers.asking import answered
from psconrl.answers.continuation import effects
from psconrl.answers.prices import NO_PRICE
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.planning.plan import Plan
from psconrl.systems.functions import shown_values
from psconrl.systems.quantities import Percentile, Quantity
from psconrl.systems.quantity_units import counted_unit, shown_number
from psconrl.systems.system import System

SHARE_UNIT = "rounds"
NO_CHANGE = 1e-9  # of the range of a cost


@dataclass(frozen=True)
class Counted:
    """What adds up over the rounds to a cost, a limited quantity or the objective.

    Of a ratio it is the numerator less what its number allows, of a percentile the rounds beyond it.
    """

    name: str
    unit: str  # of a change; "rounds" of a share
    per_round: str  # unit of a change of the average
    beyond: str = ""  # "over 2%" of a ratio, "with lost > 1" of a percentile
    price: float = 0.0  # of one more, in units of the objective; zero unless its limit binds

    def change(self, x: float) -> str:
        """Return a change of the total in words."""
        return " ".join(filter(None, (f"{self.name} {x:+.4g}", self.unit, self.beyond)))

    def average_change(self, x: float) -> str:
        """Return a change of the average in words."""
        return " ".join(filter(None, (f"{self.name} {x:+.4g}", self.per_round, self.beyond)))

    @property
    def of_one(self) -> str:
        """What the price is for: "piece over 2%", "round with lost > 1"."""
        unit = "round" if self.unit == SHARE_UNIT else self.unit or "unit"
        return f"{unit} {self.beyond}".rstrip()


@dataclass(frozen=True)
class Alternative:
    """An action in a state, and the effect of playing it once before following the plan again.

    ``changes``: of the totals over all future rounds, by the names of costs, limits and the objective, in the user's
    sense: more of a reward is positive. ``average_changes``: of the long-run averages, if the action leads to states
    from which there is no way back; else empty. ``loss``: at the shadow prices, in units of the objective. It is zero
    for what the plan plays if it is optimal, nowhere negative, and infinite if the averages become worse for good.
    """

    number: int  # of the action in the model
    action: Any  # variables and values in a system, a name in a model
    probability: float  # of the plan
    changes: Mapping[str, float]
    loss: float
    average_changes: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Explanation:
    """The actions that are available in a state, the best first; ``str`` has one line for each.

    ``counted``: what the changes of the alternatives count, by name. ``proven``: what the certificate of the plan
    proves, with its tolerances. ``initially_randomised``: whether the plan is a mixture; this then explains its
    stationary policy.
    """

    state: Any  # variables and values in a system, a name in a model
    share: float  # of rounds in this state
    alternatives: tuple[Alternative, ...]
    counted: Mapping[str, Counted]
    objective: str  # name of what the losses are added up of
    sense: str
    proven: tuple[str, ...]
    initially_randomised: bool

    def __str__(self) -> str:
        lines = [f"{shown_label(self.state)}, {100 * self.share:.3g}% of rounds", *map(self._line, self.alternatives)]
        return "\n".join([*lines, *([f"  prices: {', '.join(self.prices)}"] if self.prices else [])])

    @property
    def unit(self) -> str:
        """The unit of losses; empty if there is none."""
        return self.counted[self.objective].unit

    @property
    def prices(self) -> tuple[str, ...]:
        """What one more costs of everything that is counted against a limit that binds."""
        return tuple(
            f"{one.name} {f'{abs(one.price):.4g} {self.unit}'.rstrip()} per {one.of_one}"
            for one in self.counted.values()
            if abs(one.price) > NO_PRICE
        )

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; an infinite loss becomes the string "inf"."""
        return {
            "state": self.state,
            "sense": self.sense,
            "initially_randomised": self.initially_randomised,
            "share": self.share,
            "objective": self.objective,
            "units": {name: " ".join(filter(None, (one.unit, one.beyond))) for name, one in self.counted.items()},
            "proven": list(self.proven),
            "prices": {name: one.price for name, one in self.counted.items() if one.price},
            "actions": [
                {
                    "action": one.action,
                    "probability": one.probability,
                    "changes": dict(one.changes),
                    "average_changes": dict(one.average_changes),
                    "loss": one.loss if np.isfinite(one.loss) else "inf",
                }
                for one in self.alternatives
            ],
        }

    def _line(self, one: Alternative) -> str:
        played = [f"played with {100 * one.probability:.4g}%"] if one.probability > 0 else []
        if np.isfinite(one.loss):
            lost = one.loss if abs(one.loss) > NO_CHANGE * self.largest else 0.0
            loses = f"loses {f'{lost:.4g} {self.unit}'.rstrip()}"
        else:
            loses = "loses in every round for good"
        if not played or loses != f"loses {f'0 {self.unit}'.rstrip()}":
            played.append(loses)
        changes = ", ".join(self.counted[name].change(x) for name, x in one.changes.items() if x)
        return "; ".join(filter(None, [f"  {shown_label(one.action)}: {', '.join(played)}", changes, self.led_by(one)]))

    def led_by(self, one: Alternative) -> str:
        """Return the sentence that an action leads elsewhere for good; empty if it does not."""
        averages = ", ".join(self.counted[name].average_change(x) for name, x in one.average_changes.items())
        return f"leads elsewhere for good, with {averages} on average" if averages else ""

    @property
    def largest(self) -> float:
        """The largest loss, or change, of an action."""
        finite = [abs(one.loss) for one in self.alternatives if np.isfinite(one.loss)]
        return max([*finite, *(abs(x) for one in self.alternatives for x in one.changes.values())], default=0.0)


def shown_label(label: Any) -> str:
    """Return a state or an action as text: "shelf=4, coming=0", or its name."""
    return label if isinstance(label, str) else shown_values(label)


def explain(asked: CMDP | System | Answer, state: Any, best: Plan | None = None) -> Explanation:
    """Return what each action in a state would change if it were played once and the plan followed from then on.

    ``asked``: a model, a system, or an answer. ``state``: of a model by name or number, of a system as a table of
    variables and values. ``best``: the plan of the model, if it is known.

    >>> import psconrl
    >>> why = psconrl.explain(psconrl.load("queue"), "0 waiting")
    >>> first = why.alternatives[0]
    >>> first.action, bool(abs(first.loss) < 1e-9), all(one.loss >= -1e-9 for one in why.alternatives)
    ('speed 0 open', True, True)
    """
    answer = answered(asked, "explain", best)
    question, model, plan = answer.asked, answer.model, answer.plan
    rows = {name: (row, sign, one) for name, row, sign, one in _stated_rows(answer)}
    others = [name for name in question.cost_names if name not in rows]
    costs = np.array([question.expectations.cost(question.cost_quantity(name).top) for name in others])
    both = _with_costs(model, costs.reshape(len(others), *model.available.shape))
    for row, name in enumerate(others, start=len(model.costs)):
        rows[name] = row, 1.0, Counted(name, question.units.total(name), question.units.average(name))
    s = question.state_number(state)
    found = effects(both, plan, s)
    changes, leads = found.changes.copy(), found.average_changes
    changes[np.abs(changes) <= NO_CHANGE * np.ptp(both.costs, axis=(1, 2))] = 0.0
    paid = leads[:, : len(model.costs)] @ np.concatenate([[1.0], plan.multipliers])
    worse = paid > NO_CHANGE * np.ptp(model.costs[0])
    in_order = sorted(rows, key=[*question.cost_names, *rows].index)
    alternatives = tuple(
        Alternative(
            int(found.actions[k]),
            question.action_values(int(found.actions[k])),
            float(found.probabilities[k]),
            {name: float(rows[name][1] * changes[k, rows[name][0]]) for name in in_order},
            float("inf") if worse[k] else float(found.worth[k]),
            {name: float(rows[name][1] * leads[k, rows[name][0]]) for name in in_order} if leads[k].any() else {},
        )
        for k in found.order
    )
    return Explanation(
        question.state_values(s),
        found.share,
        alternatives,
        {name: rows[name][2] for name in in_order},
        question.statement.goal.text,
        model.names.sense,
        plan.proven,
        plan.mixture is not None,
    )


def _with_costs(model: CMDP, others: Any) -> CMDP:
    """Return a model with more costs, without names and thresholds."""
    if not len(others):
        return model
    costs = np.concatenate([model.costs, others])
    return CMDP(model.transition, costs, np.zeros(len(costs) - 1), initial=model.initial, available=model.available)


def _stated_rows(answer: Answer) -> Iterator[tuple[str, int, float, Counted]]:
    """Yield the objective and every limit by name, with its row in the model, its sign there and what it counts.

    Of a limit with two sides, the one that binds.
    """
    asked, plan, units = answer.asked, answer.plan, answer.asked.units
    goal = asked.statement.goal
    sign = -1.0 if asked.statement.maximises and not isinstance(goal, Percentile) else 1.0
    yield goal.text, 0, sign, _counted(goal.text, goal, answer.value, asked.statement.maximises, units)
    row = 1
    for limit in asked.statement.requirements:
        prices = plan.multipliers[row - 1 : row - 1 + len(limit.sides)]
        k = int(prices.argmax())
        number, below = limit.sides[k]
        sign = -1.0 if below and not isinstance(limit.quantity, Percentile) else 1.0
        counted = _counted(limit.name, limit.quantity, number, below, units)
        yield limit.name, row + k, sign, replace(counted, price=sign * float(prices[k]))
        row += len(limit.sides)


def _counted(name: str, quantity: Quantity, number: float, below: bool, units: Units) -> Counted:
    """Return what is counted of a quantity at or below a number, or at or above it."""
    if isinstance(quantity, Percentile):
        share = "" if quantity.denominator is None else f", over {100 * quantity.allowed(below):.4g}% of them"
        beyond = f"with {quantity.expression.text} {'<' if below else '>'} {number:g}{share}"
        return Counted(name, SHARE_UNIT, "", beyond)
    beyond = "" if quantity.denominator is None else f"over {shown_number(quantity, number, units)}"
    if quantity.text.startswith("P(") and quantity.is_share:
        return Counted(name, SHARE_UNIT, "", beyond)
    unit = counted_unit(quantity, units)
    per_round = units.average(name) or (Units(units.round, {name: unit}).average(name) if unit else "")
    return Counted(name, unit, per_round, beyond)
