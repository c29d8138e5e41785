"""Why a policy plays an action in a state: what the others would change, in the terms in which the system is stated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.answers.continuation import effects
from psconrl.answers.measures import Measures
from psconrl.answers.prices import NO_PRICE
from psconrl.model.cmdp import CMDP
from psconrl.model.units import Units
from psconrl.planning.plan import Plan
from psconrl.systems.functions import shown_values
from psconrl.systems.quantities import Combination, Percentile, Quantity
from psconrl.systems.quantity_units import counted_unit, shown_number
from psconrl.systems.stated import Stated

ROUNDS = "rounds"
NO_CHANGE = 1e-9  # of the range of a cost


@dataclass(frozen=True)
class Counted:
    """What adds up over the rounds to a cost, a limited quantity or the objective.

    Of a ratio it is the numerator less what its number allows, of a percentile the rounds beyond it.
    """

    name: str
    unit: str  # of a change; "rounds" of a share
    beyond: str = ""  # "over 2%" of a ratio, "with lost > 1" of a percentile
    price: float = 0.0  # of one more, in units of the objective; zero unless its limit binds

    def __call__(self, change: float) -> str:
        """Return a change in words."""
        return " ".join(filter(None, (f"{self.name} {change:+.4g}", self.unit, self.beyond)))

    @property
    def of_one(self) -> str:
        """What the price is for: "piece over 2%", "round with lost > 1"."""
        unit = "round" if self.unit == ROUNDS else self.unit or "unit"
        return f"{unit} {self.beyond}".rstrip()


@dataclass(frozen=True)
class Alternative:
    """An action in a state, and the effect of playing it once before following the plan again.

    ``changes``: of the totals over all future rounds, by the names of costs, limits and the objective. ``for_good``: of
    the long-run averages of costs, if the action leads to states from which there is no way back; else empty. ``loss``:
    at the shadow prices, in units of the objective. It is zero for what the plan plays if it is optimal, nowhere
    negative, and infinite if the averages become worse for good.
    """

    action: Mapping[str, Any]
    probability: float  # of the plan
    changes: Mapping[str, float]
    loss: float
    for_good: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Reasons:
    """The actions that are available in a state, the best first; ``str`` has one line for each.

    ``counted``: what the changes of the alternatives count, by name.
    """

    state: Mapping[str, Any]
    share: float  # of rounds in this state
    alternatives: tuple[Alternative, ...]
    counted: Mapping[str, Counted]
    objective: str  # name of what the losses are added up of
    units: Units

    def __str__(self) -> str:
        lines = [f"{shown_values(self.state)}, {100 * self.share:.3g}% of rounds", *map(self._line, self.alternatives)]
        return "\n".join([*lines, *([f"  prices: {', '.join(self.prices)}"] if self.prices else [])])

    @property
    def prices(self) -> tuple[str, ...]:
        """What one more costs of everything that is counted against a limit that binds."""
        unit = self.counted[self.objective].unit
        return tuple(
            f"{one.name} {f'{abs(one.price):.4g} {unit}'.rstrip()} per {one.of_one}"
            for one in self.counted.values()
            if abs(one.price) > NO_PRICE
        )

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; an infinite loss becomes the string "inf"."""
        return {
            "state": dict(self.state),
            "share": self.share,
            "objective": self.objective,
            "units": {name: " ".join(filter(None, (one.unit, one.beyond))) for name, one in self.counted.items()},
            "prices": {name: one.price for name, one in self.counted.items() if one.price},
            "actions": [
                {
                    "action": dict(one.action),
                    "probability": one.probability,
                    "changes": dict(one.changes),
                    "average_changes": dict(one.for_good),
                    "loss": one.loss if np.isfinite(one.loss) else "inf",
                }
                for one in self.alternatives
            ],
        }

    def _line(self, one: Alternative) -> str:
        played = [f"played with {100 * one.probability:.4g}%"] if one.probability > 0 else []
        if np.isfinite(one.loss):
            lost = one.loss if abs(one.loss) > NO_CHANGE * self.largest else 0.0
            loses = f"loses {f'{lost:.4g} {self.counted[self.objective].unit}'.rstrip()}"
        else:
            loses = "loses in every round for good"
        if not played or loses != f"loses {f'0 {self.counted[self.objective].unit}'.rstrip()}":
            played.append(loses)
        changes = ", ".join(self.counted[name](x) for name, x in one.changes.items() if x)
        return "; ".join(
            filter(None, [f"  {shown_values(one.action)}: {', '.join(played)}", changes, self.led_by(one)])
        )

    def led_by(self, one: Alternative) -> str:
        """Return the sentence that an action leads elsewhere for good; empty if it does not."""
        averages = ", ".join(f"{name} {x:+.4g} {self.units.average(name)}".rstrip() for name, x in one.for_good.items())
        return f"leads elsewhere for good, with {averages} on average" if averages else ""

    @property
    def largest(self) -> float:
        """The largest loss, or change, of an action."""
        finite = [abs(one.loss) for one in self.alternatives if np.isfinite(one.loss)]
        return max([*finite, *(abs(x) for one in self.alternatives for x in one.changes.values())], default=0.0)


def find_reasons(
    system: Stated, model: CMDP, plan: Plan, measures: Measures, value: float, state: Mapping[str, Any]
) -> Reasons:
    """Return what each action in a state would change.

    ``model``, ``plan``: the linear model of the answer, and its plan. ``value``: of the objective, as stated.
    """
    names = system.cost_names
    own = [measures.cost(Combination.of(name)) for name in names]
    costs = np.concatenate([model.costs, np.array(own).reshape(len(own), *model.available.shape)])
    both = CMDP(model.transition, costs, np.zeros(len(costs) - 1), initial=model.initial, available=model.available)
    found = effects(both, plan, system.state_number(state))
    m = model.n_constraints
    rows = {name: (m + 1 + k, 1.0, Counted(name, system.units.total(name))) for k, name in enumerate(names)}
    for row, sign, counted in _stated_rows(system, plan, value):
        if counted.name in rows:  # a cost itself
            row, sign, known = rows[counted.name]
            counted = replace(known, price=counted.price)
        rows[counted.name] = row, sign, counted
    changes = found.changes.copy()
    changes[np.abs(changes) <= NO_CHANGE * np.ptp(costs, axis=(1, 2))] = 0.0
    leads = found.average_changes
    worse = leads[:, : m + 1] @ np.concatenate([[1.0], plan.multipliers]) > NO_CHANGE * np.ptp(costs[0])
    alternatives = tuple(
        Alternative(
            system.actions.label(int(found.actions[k])),
            float(found.probabilities[k]),
            {name: float(sign * changes[k, row]) for name, (row, sign, _) in rows.items()},
            float("inf") if worse[k] else float(found.worth[k]),
            {name: float(leads[k, m + 1 + i]) for i, name in enumerate(names)} if leads[k].any() else {},
        )
        for k in found.order
    )
    words = {name: counted for name, (_, _, counted) in rows.items()}
    return Reasons(dict(state), found.share, alternatives, words, system.statement.goal.text, system.units)


def _stated_rows(system: Stated, plan: Plan, value: float) -> Iterator[tuple[int, float, Counted]]:
    """Yield the row of the model of the objective and of every limit, with its sign and what it counts.

    Of a limit with two sides, the one that binds.
    """
    goal = system.statement.goal
    sign = -1.0 if system.maximises and not isinstance(goal, Percentile) else 1.0
    yield 0, sign, _counted(goal.text, goal, value, system.maximises, system.units)
    row = 1
    for limit in system.requirements:
        prices = plan.multipliers[row - 1 : row - 1 + len(limit.sides)]
        k = int(prices.argmax())
        number, below = limit.sides[k]
        sign = -1.0 if below and not isinstance(limit.quantity, Percentile) else 1.0
        counted = _counted(limit.name, limit.quantity, number, below, system.units)
        yield row + k, sign, replace(counted, price=sign * float(prices[k]))
        row += len(limit.sides)


def _counted(name: str, quantity: Quantity, number: float, below: bool, units: Units) -> Counted:
    """Return what is counted of a quantity at or below a number, or at or above it."""
    unit = ROUNDS if quantity.text.startswith("P(") and quantity.is_share else counted_unit(quantity, units)
    over = "" if quantity.denominator is None else f"over {shown_number(quantity, number, units)}"
    if isinstance(quantity, Percentile):
        share = "" if quantity.denominator is None else f", over {100 * quantity.allowed(below):.4g}% of them"
        unit, over = ROUNDS, f"with {quantity.expression.text} {'<' if below else '>'} {number:g}{share}"
    return Counted(name, unit, over)
