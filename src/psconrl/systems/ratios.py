"""Limits on ratios of averages, for an agent that shows the ratio itself beside its linear limit.

The limit E[a] / E[b] <= r is planned as E[a - r b] <= 0. From the averages of a - r b and of b over the same rounds,

.. math:: a / b = r + (a - r b) / b.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import flag, integer, listed, need_that, read_fields, real, text
from psconrl.model.units import Units
from psconrl.systems.cost_tables import CostTables
from psconrl.systems.limits import Statement
from psconrl.systems.quantities import LinearLimit
from psconrl.systems.quantity_units import is_percentage
from psconrl.systems.structure import Structure, read_cost_tables

CostRows = tuple[Floats | None, ...]


class RatioLimit(NamedTuple):
    """A limit on a ratio, as it was stated."""

    row: int  # of its linear limit among the costs, from 1 on
    name: str
    number: float
    percent: bool  # whether it is shown in percent


@dataclass(frozen=True, eq=False)
class Ratios:
    """Limits on ratios, and their denominators as costs, in the format of ``Structure``."""

    limits: tuple[RatioLimit, ...]
    fixed: Floats  # (k, S*A)
    by_outcome: CostRows
    by_event: CostRows

    @classmethod
    def of(cls, stated: Sequence[tuple[RatioLimit, LinearLimit]], denominators: CostTables) -> "Ratios":
        """Return limits with the tables of their denominators."""
        return cls(tuple(limit for limit, _ in stated), *denominators)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "limits": [list(limit) for limit in self.limits],
            "fixed": self.fixed,
            "by_outcome": list(self.by_outcome),
            "by_event": list(self.by_event),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], structure: Structure) -> "Ratios":
        """Return what ``to_dict`` described, for a system of this structure."""
        pairs, W = structure.successors.shape
        tables = read_cost_tables(data, ("fixed", "by_outcome", "by_event"), pairs, W, structure.randomness)
        number, rows = len(tables["fixed"]), len(structure.fixed_costs)
        limits = read_fields(data, {"limits": listed(lambda saved: _limit(saved, rows), number)})
        return cls(tuple(limits["limits"]), **tables)


def _limit(saved: Any, rows: int) -> RatioLimit:
    """Read a limit on one of several costs."""
    need_that(isinstance(saved, list | tuple) and len(saved) == len(RatioLimit._fields), "must be a limit on a ratio")
    kinds = {"row": integer(1, rows - 1), "name": text(), "number": real(), "percent": flag}
    return RatioLimit(**read_fields(dict(zip(RatioLimit._fields, saved, strict=True)), kinds))


def ratio_limits(statement: Statement, units: Units) -> Iterator[tuple[RatioLimit, LinearLimit]]:
    """Yield every side of a limit on a ratio, with its denominator as a cost.

    >>> from psconrl.systems.limits import read_statement
    >>> statement = read_statement("c", None, ["d <= 1", "a / b <= 2%"], frozenset("abcd"))
    >>> [limit for limit, _ in ratio_limits(statement, Units())]
    [RatioLimit(row=2, name='a / b', number=0.02, percent=True)]
    """
    row = 0
    for requirement in statement.requirements:
        for number, _ in requirement.sides:
            row += 1
            quantity = requirement.quantity
            if quantity.denominator is not None:
                percent = is_percentage(quantity, [number], units)
                own = RatioLimit(row, requirement.name, number, percent)
                yield own, LinearLimit(f"what {quoted(requirement.name)} is divided by", quantity.denominator.terms)
