"""Column generation in rational numbers: the least cost within the thresholds, or the least excess over them."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from psconrl.errors import SolverError
from psconrl.planning.exact.fewer_randomised import fewer_randomised
from psconrl.planning.exact.master import RationalMaster
from psconrl.planning.exact.policy_iteration import RationalColumn, RationalOracle, priced_column, weighted_sum
from psconrl.planning.exact.rational_model import RationalModel

MOST_RATIONAL_COLUMNS = 2000


class RationalDual(NamedTuple):
    """A dual point in rational numbers; see ``candidate.Dual``."""

    weights: list[Fraction]  # (m+1,) of the costs: (1, multipliers), or (0, multipliers) if infeasible
    potential: list[Fraction]  # (S,)
    gains: list[Fraction]  # (S,)


class RationalSolution(NamedTuple):
    """The exact optimum: a mixture of policies, and the dual point that proves it."""

    excess: Fraction  # least that the largest excess over the thresholds can be, in units; 0 if feasible
    columns: list[RationalColumn]
    shares: list[Fraction]
    proof: RationalColumn  # the cheapest policy for the weights of the dual
    dual: RationalDual

    @property
    def feasible(self) -> bool:
        """Whether some mixture of policies meets the thresholds."""
        return self.excess == 0

    @property
    def averages(self) -> list[Fraction]:
        """Averages (m+1,) of the mixture."""
        return weighted_sum(self.shares, [column.averages for column in self.columns])


def solve_rationals(
    model: RationalModel, start: Sequence[Sequence[int]], units: Sequence[Fraction]
) -> RationalSolution:
    """Solve a model exactly, beginning with some policies; ``units`` (m,) of the excess over every threshold."""
    oracle = RationalOracle(model)
    first, *others = [oracle.column(actions) for actions in start or [[next(iter(moves)) for moves in model.moves]]]
    columns = [first]
    master = RationalMaster(model.thresholds, list(units), first.averages)
    for column in others:
        if all(column.averages != known.averages for known in columns):
            columns.append(column)
            master.add(column.averages)
    while len(columns) < MOST_RATIONAL_COLUMNS:
        point = master.solve()
        w = point.weights
        nearest = min(columns, key=lambda column: priced_column(w, column))
        cheapest = oracle.cheapest(nearest, w)
        if priced_column(w, cheapest) >= point.least:
            unit = Fraction(1) if point.excess == 0 else max(w)
            scaled = [x / unit for x in w]
            mixed = fewer_randomised(oracle, [columns[k] for k in point.shares], list(point.shares.values()), scaled)
            return RationalSolution(point.excess, *mixed, cheapest, dual_of(cheapest, scaled))
        columns.append(cheapest)
        master.add(cheapest.averages)
    raise SolverError(f"no proof of optimality after {MOST_RATIONAL_COLUMNS} policies")


def dual_of(cheapest: RationalColumn, weights: list[Fraction]) -> RationalDual:
    """Return the dual point of weights from the cheapest policy for them."""
    chain = cheapest.chain
    return RationalDual(weights, weighted_sum(weights, chain.biases), weighted_sum(weights, chain.gains))
