"""Denominators of ratios: their averages must not be negative, nor zero where an objective is divided by them."""

import ast
from dataclasses import dataclass, replace

import numpy as np

from psconrl.answers.stated_model import Asked
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.model.units import Units
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.progress import Watch
from psconrl.systems.limits import CONDITIONS
from psconrl.systems.quantities import Combination, Mean, Ratio
from psconrl.systems.quantity_units import counted_unit
from psconrl.systems.system import System

POSITIVE = 1e-9  # of its largest entry: a smaller average of a denominator counts as zero
EXAMPLE = 0.1  # of the largest average: a denominator that might be asked for


@dataclass(frozen=True)
class Denominator:
    """What a ratio divides by, in words: a quantity, or a condition that selects rounds."""

    bottom: Combination

    @property
    def _is_condition(self) -> bool:
        parsed = ast.parse(str(self.bottom), mode="eval").body
        return isinstance(parsed, CONDITIONS) and len(self.bottom.terms) == 1

    @property
    def is_zero(self) -> str:
        """The sentence that it is zero."""
        return f"{self.bottom} never holds" if self._is_condition else f"{self.bottom} is zero on average"

    @property
    def where(self) -> str:
        """Under which policies it is not."""
        return f"where {self.bottom} {'occurs' if self._is_condition else 'is positive'}"

    def some_of(self, largest: float) -> str:
        """Return a limit that asks for a part of its largest average."""
        return f"{f'P({self.bottom})' if self._is_condition else self.bottom} >= {EXAMPLE * largest:.2g}"

    def one(self, units: Units) -> str:
        """Return a unit of it: "one piece of demand"."""
        if self._is_condition:
            return f"one round with {self.bottom}"
        return f"one {counted_unit(Mean('', self.bottom), units) or 'unit'} of {self.bottom}"


def need_denominators(system: System) -> None:
    """Raise an error if a denominator may be negative on average."""
    statement = system.statement
    divided = [
        one for one in (statement.goal, *(limit.quantity for limit in statement.requirements)) if one.denominator
    ]
    if not divided:
        return
    measures = system.expectations
    for quantity in divided:
        assert quantity.denominator is not None
        bottom = quantity.denominator
        if not isinstance(quantity, Ratio) and measures.values(bottom.terms[0][1])[0] < 0:
            raise ModelError(
                f"in {quoted(quantity.text)}: the weight {quoted(str(bottom))} must not be negative in any round"
            )
        least, unit = least_average(system, bottom)
        if least < -POSITIVE * unit:
            raise ModelError(
                f"{quoted(str(bottom))}, by which {quoted(quantity.text)} divides, must not be negative on average; "
                f"the least average is {least:.6g}"
            )


def watch_of(asked: Asked) -> Watch:
    """Return what reports the progress of a plan that is a part of longer work, which Ctrl-C ends."""
    return Watch(None if asked.report.is_silent else asked.report, asked.statement.maximises, stoppable=False)


def least_average(system: System, combination: Combination) -> tuple[float, float]:
    """Return a lower bound on the average of a combination over all policies, and its largest absolute entry.

    The bound is the least entry if that is positive, else the exact least average, which is computed once.
    """
    cost = system.expectations.cost(combination)
    least, unit = float(cost.min()), float(np.abs(cost).max())
    if least > POSITIVE * unit:
        return least, unit
    key = tuple((weight, term.text) for weight, term in combination.terms)
    known = system.expectations.least_averages
    if key not in known:
        free = replace(system.statement, goal=Mean(str(combination), combination), maximises=False, requirements=())
        free_system = system.with_statement(free)
        model = free_system.cmdp(system.expectations.transition, cost[None])
        found = plan_unexplained(model, watch=watch_of(free_system))
        known[key] = float(found.certificate.lower)
    return known[key], unit
