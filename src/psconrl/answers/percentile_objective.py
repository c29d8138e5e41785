"""Percentiles as objectives: the first value beyond which few enough rounds can lie, by bisection."""

from collections.abc import Callable
from dataclasses import replace

from psconrl.answers.found import Found
from psconrl.planning.plan import Plan
from psconrl.systems.quantities import SAME_SHARE, Percentile
from psconrl.systems.system import System

Solve = Callable[[System, Plan | None], Found]


def best_percentile(system: System, goal: Percentile, start: Plan | None, solve: Solve) -> Found:
    """Return the policy with the best percentile: the first value beyond which few enough rounds can lie.

    ``solve``: returns the best policy for a statement, given a plan whose policies are tried.
    """
    below = system.statement.maximises
    values = system.expectations.values(goal.expression)
    if below:
        values = values[::-1]
    low, high = 0, values.size - 1  # no round lies beyond the last value
    best, plans = None, 0
    while low < high or best is None:
        middle = (low + high) // 2
        outside = replace(system.statement, goal=goal.outside(float(values[middle]), below), maximises=False)
        found = solve(system.with_statement(outside), start)
        plans, start = plans + found.plans, found.plan
        if not found.plan.feasible:
            return replace(found, plans=plans)
        if found.value <= goal.allowed(below) + SAME_SHARE:
            best, high = found, middle
        else:
            low = middle + 1
            best = best if low < high or best is not None else None
    value = float(-values[high] if below else values[high])
    return replace(best, value=value, lower=value, plans=plans)
