"""Prices of limits in the terms in which they were stated."""

from dataclasses import dataclass

from psconrl.model.units import Units
from psconrl.systems.limits import Requirement
from psconrl.systems.quantities import Percentile, Quantity
from psconrl.systems.quantity_units import is_percentage, quantity_unit

NO_PRICE = 1e-12  # relative to the base: a smaller multiplier is rounding


@dataclass(frozen=True)
class Price:
    """What one more unit of a limit is worth; ``str`` is a sentence.

    ``amount``: by how much the objective improves for each unit of the limited quantity; of a percentile, for each
    unit of the share of rounds beyond it. ``unit``: of the objective. For a quantity with two sides it is the change
    when both are raised: negative if lowering them would improve the objective.
    """

    limit: str
    amount: float
    unit: str
    step: float  # of the quantity, in the sentence: 0.01 for percentage points
    said: str  # the step in words

    def __str__(self) -> str:
        if not abs(self.amount) > NO_PRICE:
            return f"{self.limit} is not binding"
        worth = f"{abs(self.amount) * self.step:.4g} {self.unit}".rstrip()
        return f"{self.said} is worth {worth}"


def price_of(limit: Requirement, multipliers: list[float], base: float, goal: Quantity, units: Units) -> Price:
    """Return the price of a limit, from the multipliers of its sides and the average of its denominator."""
    amount = 0.0
    for (_, below), multiplier in zip(limit.sides, multipliers, strict=True):
        two_sided = len(limit.sides) > 1
        amount += -multiplier * base if below and two_sided else multiplier * base
    quantity = limit.quantity
    less = amount < 0 or limit.high is None
    unit = quantity_unit(quantity, units)
    if isinstance(quantity, Percentile):
        number, below = limit.sides[0]
        beyond = f"{quantity.expression.text} {'<' if below else '>'} {number:g}"
        return Price(limit.name, amount, quantity_unit(goal, units), 0.01,
                     f"one percentage point more of rounds with {beyond}")  # fmt: skip
    if is_percentage(quantity, [number for number, _ in limit.sides], units):
        step, name = 0.01, "one percentage point"
    else:
        step, name = 1.0, f"one {unit}" if unit else "one unit"
    direction = "less" if less else "more"
    return Price(limit.name, amount, quantity_unit(goal, units), step, f"{name} {direction} of {limit.name}")
