"""Units of the numbers in a model, such as "euro an hour" or "patients"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, unknown_name

FIELDS = ("round", "counted", "levels")


@dataclass(frozen=True)
class Units:
    """Duration of a round, and units of the costs. Units change no number: averages stay averages per round.

    ``round``: "hour", "15 minutes". ``counted``: the unit of costs that add up, by their names: 3 euro in every hour
    are "euro an hour" on average. ``levels``: the unit of costs that are numbers of something present, whose average
    has the same unit: "patients".

    >>> units = Units(round="hour", counted={"cost": "euro"}, levels={"delay": "patients"})
    >>> units.average("cost"), units.total("cost"), units.average("delay"), units.average("risk")
    ('euro an hour', 'euro', 'patients', '')
    >>> Units(round="15 minutes", counted={"cost": "euro"}).average("cost")
    'euro per 15 minutes'
    """

    round: str = ""
    counted: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)

    def average(self, cost: str) -> str:
        """Return the unit of a cost's long-run average; empty if the model has none."""
        if cost in self.levels:
            return self.levels[cost]
        return f"{self.counted[cost]} {_each(self.round or 'round')}" if cost in self.counted else ""

    def total(self, cost: str) -> str:
        """Return the unit of a sum over rounds, such as regret or violation."""
        if cost in self.levels:
            return f"{self.levels[cost]} x {self.round or 'rounds'}"
        return self.counted.get(cost, "")

    def named(self, cost: str) -> str:
        """Return the name of a cost with the unit of its average, for a table header or an axis.

        >>> Units(counted={"cost": "euro"}).named("cost")
        'cost (euro a round)'
        """
        unit = self.average(cost)
        return f"{cost} ({unit})" if unit and unit != cost else cost

    def with_unit(self, value: str, cost: str) -> str:
        """Return a number with the unit of a cost's average, for a sentence."""
        return f"{value} {self.average(cost)}".rstrip()

    def price(self, cost: str, objective: str) -> str:
        """Return the unit of a price: units of the objective's average per unit of a cost's average."""
        return f"{top} per {bottom}" if (top := self.average(objective)) and (bottom := self.average(cost)) else ""

    def record(self) -> dict[str, Any]:
        """Return plain data for a file; empty if there are no units."""
        said = {"round": self.round, "counted": dict(self.counted), "levels": dict(self.levels)}
        return {key: value for key, value in said.items() if value}

    def of(self, costs: Iterable[str]) -> "Units":
        """Return the units of the given costs only."""
        kept = set(costs)
        return Units(
            self.round,
            {cost: unit for cost, unit in self.counted.items() if cost in kept},
            {cost: unit for cost, unit in self.levels.items() if cost in kept},
        )


def read_units(units: Any, cost_names: tuple[str, ...]) -> Units:
    """Return units, given as such or as a mapping with the same fields, checked against the names of the costs."""
    if units is None:
        return Units()
    if isinstance(units, Mapping):
        for key in units:
            if key not in FIELDS:
                raise ModelError(unknown_name("field of units", key, FIELDS))
        units = Units(**units)
    if not isinstance(units, Units):
        raise ModelError(f"units must be psconrl.Units or a mapping with {', '.join(FIELDS)}; got {quoted(units)}")
    if not _is_line(units.round) or units.round != units.round.strip():
        raise ModelError(f"units: round must be text such as 'hour'; got {quoted(units.round)}")
    for kind in ("counted", "levels"):
        said = getattr(units, kind)
        if not isinstance(said, Mapping):
            raise ModelError(f"units: {kind} must map names of costs to units; got {quoted(said)}")
        for cost, unit in said.items():
            if cost not in cost_names:
                raise ModelError("units: " + unknown_name("cost", cost, cost_names))
            if not _is_line(unit) or not unit.strip():
                raise ModelError(f"units: that of {quoted(cost)} must be text such as 'euro'; got {quoted(unit)}")
    for cost in units.counted:
        if cost in units.levels:
            raise ModelError(f"units: {quoted(cost)} is either counted or a level, not both")
    return Units(units.round, dict(units.counted), dict(units.levels))


def _is_line(text: object) -> bool:
    return isinstance(text, str) and len(text.splitlines()) <= 1


def _each(duration: str) -> str:
    """Return a duration as it follows "euro": an hour, a day, per 15 minutes."""
    if not duration[0].isalpha():
        return f"per {duration}"
    return f"{'an' if duration[0].lower() in 'aeio' or duration.startswith('hour') else 'a'} {duration}"
