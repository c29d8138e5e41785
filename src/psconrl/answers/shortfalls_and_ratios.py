r"""Ratios as objectives, and levels of expected shortfalls: the search for the best policy.

A ratio :math:`E[a]/E[b]` is minimised by Dinkelbach's iteration: :math:`\min E[a] - r E[b]` for the ratio r of the last
policy found, until the minimum is zero. A certified bound :math:`L \le \min E[a] - r E[b]` proves that no policy has a
ratio below :math:`r + L / \min E[b]`, for :math:`L \le 0`.

The levels of expected shortfalls run over finitely many values. For ranges of levels, the least cost over the range
gives a linear model whose optimum bounds that of every level in the range (``quantities``). Most ranges are excluded by
the dual point of a plan nearby (``level_bounds``). The others are planned and split, least bound first, until no bound
is below the best value found (branch and bound). The bound of the whole is the least of all bounds.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from psconrl.answers.boundary import plan_within_rounding
from psconrl.answers.denominators import POSITIVE, Denominator, least_average, watch_of
from psconrl.answers.found import Found
from psconrl.answers.level_bounds import swept_bounds
from psconrl.answers.policy_averages import PolicyAverages
from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.planning.tolerances import PROVEN_GAP
from psconrl.systems.limits import Statement
from psconrl.systems.quantities import ONE, Combination, Mean, Percentile, Quantity, Ratio, Shortfall
from psconrl.systems.system import System

MOST_RATIOS = 50  # of Dinkelbach's iteration, which mostly needs 3 to 6
MOST_RANGES = 16  # ranges of levels that are bounded at once
MOST_ALTERNATIONS = 2  # between a level and the policy that is best for it
SAME_RATIO = 1e-13  # relative change of a ratio at which the iteration ends

Ranges = tuple[tuple[int, int], ...]  # of every shortfall, the places of the lowest and the highest level


class _Node(NamedTuple):
    """The plan for ranges of levels."""

    system: System
    model: CMDP
    plan: Plan
    value: float  # as a cost; infinite if infeasible
    lower: float


class LevelSearch:
    """Search for the levels of expected shortfalls and the ratio of the objective."""

    def __init__(self, system: System) -> None:
        self.system, self.statement = system, system.statement
        self.sign = -1.0 if system.statement.maximises else 1.0
        goal = self.statement.goal
        self.linear = [] if self._is_open(goal) else list(goal.parts)
        for requirement in self.statement.requirements:
            if not self._is_open(requirement.quantity):
                rows = (requirement.quantity.limit(number, below) for number, below in requirement.sides)
                self.linear += [Combination(row.terms) for row in rows]
        self.shortfalls = self.statement.open_levels
        self.highest = {id(one.quantity): one.high for one in self.statement.requirements if one.high is not None}
        self.expectations = system.expectations
        self.transition = self.expectations.transition
        self.weighted = [self.expectations.weighted(one.expression, one.given) for one in self.shortfalls]
        self.values = [self._levels(one) for one in self.shortfalls]
        self.plans = 0
        self.ratio = 0.0

    @staticmethod
    def _is_open(quantity: Quantity) -> bool:
        return isinstance(quantity, Shortfall) and quantity.level is None

    def _levels(self, shortfall: Shortfall) -> Floats:
        """Return the levels of an expected shortfall that may be best: values up to its limit."""
        values = self.expectations.values(shortfall.expression)
        if id(shortfall) not in self.highest:
            return values
        high = self.highest[id(shortfall)]
        few = values[values <= high + PROVEN_GAP * max(1.0, abs(high))]
        return few if few.size else values[:1]

    @cached_property
    def least_bottom(self) -> float:
        """A positive lower bound on the denominator of the objective, for all policies or those within the limits.

        An error if there is none. The bound holds for all ranges of levels.
        """
        goal = self.statement.goal
        if not isinstance(goal, Ratio):
            return 1.0
        least, unit = least_average(self.system, goal.bottom)
        if least > POSITIVE * unit:
            return least
        within = " within the limits" if self.statement.requirements else ""
        if within:
            node = self._extreme(goal.bottom, False)
            if not node.plan.feasible:
                return POSITIVE * unit  # it does not matter
            if node.lower > POSITIVE * unit:
                return node.lower
        words, largest = Denominator(goal.bottom), -self._extreme(goal.bottom, True).lower
        if largest <= POSITIVE * unit:
            raise ModelError(
                f"{words.is_zero}, whatever the policy{within}, but the objective {quoted(goal.text)} divides by it"
            )
        raise ModelError(
            f"{words.is_zero} under some policy{within}, but the objective {quoted(goal.text)} divides by it; "
            f"add a limit that excludes such policies, such as '{words.some_of(largest)}'"
        )

    def _extreme(self, bottom: Combination, largest: bool) -> _Node:
        """Return the plan for the least or the largest average of a denominator within the widest limits."""
        asked = replace(self.statement, goal=Mean(str(bottom), bottom), maximises=largest)
        return LevelSearch(self.system.with_statement(asked)).solved_widely(None)

    @property
    def whole(self) -> Ranges:
        """All levels."""
        return tuple((0, values.size - 1) for values in self.values)

    def solved_widely(self, start: Plan | None) -> _Node:
        """Return the plan for the least cost over all levels."""
        return self.solved(self.whole, start)

    def run(self, start: Plan | None) -> Found:
        """Return the best policy and the bound that is proven."""
        assert self.least_bottom > 0.0
        root, whole = self.solved_widely(start), self.whole
        if not self.shortfalls or not root.plan.feasible:
            return self._result(root, root.lower)
        exact: dict[tuple[int, ...], _Node] = {}
        best = self._improved(root._replace(value=np.inf), root, whole, exact)
        size = max(float(np.ptp(root.model.costs[0])), float(np.abs(root.model.costs[0]).max()) * PROVEN_GAP)
        tolerance = PROVEN_GAP * size / self.least_bottom
        open_ranges = self._parts(root, whole, root.lower)
        closed, near = np.inf, root if best.plan is root.plan else best
        while open_ranges:
            if isinstance(self.statement.goal, Ratio) and np.isfinite(best.value):
                self.ratio = self.sign * best.value
            self._tighten(open_ranges, near, best.value - tolerance)
            done = [ranges for ranges, bound in open_ranges.items() if bound >= best.value - tolerance]
            closed = min([closed, *(open_ranges.pop(ranges) for ranges in done)])
            if not open_ranges:
                break
            ranges = min(open_ranges, key=lambda one: open_ranges[one])
            bound, places = open_ranges.pop(ranges), tuple(low for low, _ in ranges)
            single = all(low == high for low, high in ranges)
            near = exact[places] if single and places in exact else self.solved(ranges, near.plan, rough=not single)
            bound = max(bound, near.lower)
            if single:
                exact[places] = near
                best = min(best, near, key=lambda one: one.value)
                closed = min(closed, bound)
            elif near.plan.feasible:
                best = self._improved(best, near, ranges, exact)
                open_ranges |= self._parts(near, ranges, bound)
        if not np.isfinite(best.value):
            return self._result(next(iter(exact.values()), root), np.inf)
        return self._result(best, min(closed, best.value))

    def _result(self, node: _Node, lower: float) -> Found:
        value = node.value if node.plan.feasible else np.nan
        return Found(node.system, node.model, node.plan, value, lower, self.plans)

    def _parts(self, node: _Node, ranges: Ranges, bound: float) -> dict[Ranges, float]:
        """Split one of the ranges, where the policy of the node misses most, and return the parts with their bounds."""
        averages = PolicyAverages(self.expectations, node.plan.occupancy)
        missing = []
        for one, (low, high) in zip(self.shortfalls, ranges, strict=True):
            aim = self.highest.get(id(one), node.value)
            excess = (one.value(averages) - aim) / max(1.0, abs(aim))
            missing.append((high > low, np.nan_to_num(excess, nan=0.0), high - low))
        k = missing.index(max(missing))
        low, high = ranges[k]
        ends = np.linspace(low, high + 1, min(MOST_RANGES, high + 1 - low) + 1).astype(int).tolist()
        parts = [(*ranges[:k], (a, b - 1), *ranges[k + 1 :]) for a, b in pairwise(ends)]
        if not self._is_open(self.statement.goal):
            return dict.fromkeys(parts, bound)
        return {
            part: max(bound, float(self.values[0][part[0][0]])) for part in parts
        }  # no shortfall is below its level

    def _tighten(self, bounds: dict[Ranges, float], near: _Node, aim: float) -> None:
        """Raise bounds with the dual point of a plan nearby."""
        found = near.plan
        if not found.feasible or found.gains is not None:
            return
        places = list(bounds)
        prices = np.concatenate([[1.0], found.multipliers])
        goal = self.sign * self.ratio if isinstance(self.statement.goal, Ratio) else 0.0
        costs = np.array([self._lagrangian(ranges, prices, near.model.thresholds) for ranges in places])
        target = (aim - goal) * self.least_bottom if np.isfinite(aim) else np.inf
        swept = swept_bounds(self.transition, costs, near.model.available, found.potential, target)
        for ranges, bound in zip(places, swept, strict=True):
            lower = goal + min(bound, 0.0) / self.least_bottom if isinstance(self.statement.goal, Ratio) else bound
            bounds[ranges] = max(bounds[ranges], float(lower))

    def _lagrangian(self, ranges: Ranges, prices: Floats, thresholds: Floats) -> Floats:
        rows = self._costs(ranges, self.ratio)
        total = sum((price * row for price, row in zip(prices, rows, strict=True)), np.zeros(rows[0].shape))
        return np.asarray(total - float(prices[1:] @ thresholds)).ravel()

    def _improved(self, best: _Node, node: _Node, ranges: Ranges, exact: dict[tuple[int, ...], _Node]) -> _Node:
        """Return the best of some plans for fixed levels: those of the policy of a node, then of the policy found."""
        found = node
        for _ in range(MOST_ALTERNATIONS):
            levels = tuple(
                int(np.clip(place, low, high))
                for place, (low, high) in zip(self._places(found.plan), ranges, strict=True)
            )
            if levels in exact:
                break
            found = exact[levels] = self.solved(tuple((k, k) for k in levels), found.plan)
            if not found.plan.feasible:
                break
            best = min(best, found, key=lambda one: one.value)
        return best

    def _places(self, found: Plan) -> list[int]:
        """Return the place of the best level of every expected shortfall for the policy of a plan.

        Where the policy exceeds a limit, the level is lowered by the excess: a policy that keeps it has a lower one.
        """
        averages = PolicyAverages(self.expectations, found.occupancy)
        places = []
        for one, values in zip(self.shortfalls, self.values, strict=True):
            occurring, weights = averages.distribution(one.expression, one.given)
            level = one.best_level(occurring, weights / weights.sum()) if weights.sum() > 0 else float(values[0])
            if id(one) in self.highest:
                level -= np.nan_to_num(max(one.value(averages) - self.highest[id(one)], 0.0))
            places.append(min(int(np.searchsorted(values, level)), values.size - 1))
        return places

    def solved(self, ranges: Ranges, start: Plan | None, rough: bool = False) -> _Node:
        """Return the plan for the least cost over ranges of levels, with a bound on the objective.

        ``rough``: a ratio is compared with the best one so far, not minimised.
        """
        goal = self.statement.goal
        if not isinstance(goal, Ratio):
            node = self._planned(ranges, start, 0.0)
            value = float(node.plan.costs[0]) if node.plan.feasible else np.inf
            return node._replace(value=value, lower=node.plan.certificate.lower)
        node = self._planned(ranges, start, self.ratio)
        for _ in range(MOST_RATIOS):
            if not node.plan.feasible:
                return node
            ratio = goal.value(PolicyAverages(self.expectations, node.plan.occupancy))
            tried, self.ratio = self.ratio, ratio
            if rough or abs(ratio - tried) <= SAME_RATIO * max(abs(ratio), abs(tried)):
                break
            node = self._planned(ranges, node.plan, ratio)
        lost = min(node.plan.certificate.lower, 0.0) / self.least_bottom
        return node._replace(value=self.sign * ratio, lower=self.sign * tried + lost)

    def _planned(self, ranges: Ranges, start: Plan | None, ratio: float) -> _Node:
        self.plans += 1
        self.system.report(f"{self.plans} plans for levels and ratios")
        highest = [float(values[high]) for values, (_, high) in zip(self.values, ranges, strict=True)]
        system = self.system.with_statement(linear_statement(self.statement, highest, ratio))
        model = system.cmdp(self.transition, np.array(list(self._costs(ranges, ratio))))
        return _Node(system, *plan_within_rounding(model, start, watch_of(system)), np.inf, np.inf)

    def _costs(self, ranges: Ranges, ratio: float) -> Sequence[Floats]:
        """Return the costs (S, A) of the objective and of all limits, for ranges of levels."""
        shortfalls = zip(self.shortfalls, self.values, self.weighted, ranges, strict=True)
        linear = iter(self.linear)
        goal = self.statement.goal

        def tail(threshold: float) -> Floats:
            one, values, found, (low, high) = next(shortfalls)
            cost = one.cost(found.values, float(values[low]), float(values[high]))
            return found.sums(cost - (0.0 if one.given is ONE else threshold)).reshape(self.expectations.shape)

        if self._is_open(goal):
            rows = [tail(0.0)]
        else:
            top = self.expectations.cost(next(linear))
            rows = [
                self.sign * (top - ratio * self.expectations.cost(next(linear)) if isinstance(goal, Ratio) else top)
            ]
        for requirement in self.statement.requirements:
            for number, below in requirement.sides:
                is_open = self._is_open(requirement.quantity)
                row = tail(number) if is_open else self.expectations.cost(next(linear))
                rows.append(-row if below and not isinstance(requirement.quantity, Percentile) else row)
        return rows


def linear_statement(statement: Statement, levels: Sequence[float], ratio: float) -> Statement:
    """Return the linear statement for fixed levels of the expected shortfalls and a fixed ratio of the objective."""
    remaining = iter(levels)

    def fixed(quantity: Quantity) -> Quantity:
        if isinstance(quantity, Shortfall) and quantity.level is None:
            return quantity.at(next(remaining))
        return quantity

    goal = fixed(statement.goal)
    if isinstance(goal, Ratio):
        cleared = goal.cleared(ratio)
        goal = Mean(str(cleared), cleared)
    limits = tuple(replace(limit, quantity=fixed(limit.quantity)) for limit in statement.requirements)
    return Statement(goal, statement.maximises, limits)
