"""The best policy for a statement, whatever is asked: averages, ratios, percentiles or expected shortfalls."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from psconrl.answers.boundary import plan_within_rounding
from psconrl.answers.denominators import need_denominators, watch_of
from psconrl.answers.found import Found
from psconrl.answers.percentile_objective import best_percentile
from psconrl.answers.shortfalls_and_ratios import LevelSearch
from psconrl.answers.stated_model import Asked
from psconrl.model.cmdp import CMDP
from psconrl.planning.mixture.known import KnownPolicies
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan_unexplained
from psconrl.planning.progress import Watch
from psconrl.planning.reductions import solved
from psconrl.systems.quantities import Percentile
from psconrl.systems.system import System


def solve_statement(
    asked: Asked,
    start: Plan | None = None,
    follow: Callable[[object], object] | None = None,
    known: KnownPolicies | None = None,
) -> Found:
    """Return the best policy for a system without unknown parameters, or for a model.

    ``start``: a plan whose policies are tried. ``follow``: is given the progress of planning a linear statement, which
    Ctrl-C then ends with the best policy so far. ``known``: policies that were evaluated for other thresholds of a
    linear statement.
    """
    statement = asked.statement
    if isinstance(asked, System):
        need_denominators(asked)
        if isinstance(statement.goal, Percentile):
            return best_percentile(asked, statement.goal, start, solve_statement)
        if not statement.is_linear:
            return LevelSearch(asked).run(start)
    watch = watch_of(asked) if follow is None else Watch(follow, statement.maximises)

    def planned(model: CMDP) -> tuple[CMDP, Plan]:
        if isinstance(asked, System):
            return plan_within_rounding(model, start, watch, known)
        return model, plan_unexplained(model, start=start, watch=watch, known=known)

    return solved(LinearForm(asked), planned)


class LinearForm(NamedTuple):
    """A linear statement as a model of its objective and limits, in the form in which models are planned."""

    asked: Asked

    def apply(self) -> CMDP:
        """Return the model."""
        return self.asked.expected_model()

    def invert(self, planned: tuple[CMDP, Plan]) -> Found:
        """Return what a plan says of the objective as stated; the model may have relaxed thresholds."""
        model, found = planned
        value = float(found.costs[0]) if found.feasible else np.nan
        return Found(self.asked, model, found, value, found.certificate.lower, 1)
