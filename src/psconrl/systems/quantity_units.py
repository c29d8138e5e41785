"""Units of quantities, and their values as people state them: a share in percent, anything else with its unit."""

from psconrl.model.units import Units
from psconrl.systems.quantities import Combination, Mean, Percentile, Quantity, Ratio, Shortfall


def quantity_unit(quantity: Quantity, units: Units) -> str:
    """Return the unit of a quantity as stated; empty if it has none.

    >>> from psconrl.systems.quantities import Expression
    >>> units = Units(round="day", counted={"cost": "euro", "orders": "order"})
    >>> quantity_unit(Ratio("cost / orders", Combination.of("cost"), Combination.of("orders")), units)
    'euro per order'
    """
    if units.average(quantity.text):
        return units.average(quantity.text)
    match quantity:
        case Mean(top=top):
            return units.average(_name(top))
        case Ratio(top=top, bottom=bottom):
            over, under = _counted(_name(top), units), _counted(_name(bottom), units)
            return f"{over} per {under}" if over and under and over != under else ""
        case Percentile(expression=expression) | Shortfall(expression=expression):
            return _counted(expression.text, units)
    return ""


def counted_unit(quantity: Quantity, units: Units) -> str:
    """Return the unit of what adds up to a quantity over the rounds: of the numerator of a ratio; empty if none.

    >>> units = Units(round="day", counted={"cost": "euro", "orders": "order"})
    >>> counted_unit(Ratio("cost / orders", Combination.of("cost"), Combination.of("orders")), units)
    'euro'
    """
    match quantity:
        case Mean(top=top) | Ratio(top=top):
            totals = {units.total(expression.text) for _, expression in top.terms}
            return units.total(quantity.text) or (totals.pop() if len(totals) == 1 else "")
        case Percentile(expression=expression) | Shortfall(expression=expression):
            return units.total(expression.text)
    return ""


def shown_number(quantity: Quantity, number: float, units: Units) -> str:
    """Return a value of a quantity as people state it: a share in percent, anything else as a number.

    >>> shown_number(Ratio("lost / demand", Combination.of("lost"), Combination.of("demand")), 0.09, Units())
    '9%'
    """
    return f"{100 * number:.6g}%" if is_percentage(quantity, [number], units) else f"{number:.6g}"


def is_percentage(quantity: Quantity, numbers: list[float], units: Units) -> bool:
    """Whether a quantity is a share of something, for values of which percentages are used."""
    return quantity.is_share and not quantity_unit(quantity, units) and all(0.0 <= x <= 1.0 for x in numbers)


def _name(combination: Combination) -> str:
    """Return the name of the cost or variable that a combination is a multiple of; empty if there are several."""
    texts = {expression.text for _, expression in combination.terms}
    return texts.pop() if len(texts) == 1 and all(weight == 1.0 for weight, _ in combination.terms) else ""


def _counted(name: str, units: Units) -> str:
    return units.counted.get(name) or units.levels.get(name, "")
