r"""The Slater gap of a model: how far one policy can stay below all thresholds at once, as a share of their ranges.

.. math:: \gamma = \max_\pi \min_i \frac{\tau_i - J_i(\pi)}{u_i}

with :math:`u_i` the range of a cost (``planning.scaling.cost_units``). Constraints that no pair can violate are left
out: their multipliers are 0, so that no theory needs a distance from them.

For one constraint the gap is the threshold minus the least average of its cost. For several it is a linear program over
occupancies, that of the planner with the least excess t over thresholds lowered by a number L, :math:`\gamma = L - t`.
With :math:`L = \min_i (\tau_i - \min c_i) / u_i` the excess is never negative, so that its sign is no constraint.
"""

import math

import numpy as np

from psconrl.errors import SolverError
from psconrl.markov.structure import find_end_components
from psconrl.model.cmdp import CMDP, need_model
from psconrl.planning.linear_programs.highs_process import stoppable_answer
from psconrl.planning.linear_programs.lp import Program, occupancy_program
from psconrl.planning.linear_programs.multichain import departures, multichain_program
from psconrl.planning.planner import plan_model
from psconrl.planning.problem import Problem
from psconrl.planning.scaling import Scaling, cost_units


def slater_gap(cmdp: CMDP) -> float:
    """Return the largest share of the ranges of the costs by which a policy stays below every threshold.

    It is at most 1, negative if no policy meets all constraints, and infinite if no pair violates any of them. The
    policy ``learning.safe.baseline.safest_policy`` attains it up to 1/4096.

    >>> import psconrl
    >>> round(slater_gap(psconrl.load("marsrover-4x4")), 4), round(slater_gap(psconrl.load("inventory")), 4)
    (0.2, 0.0785)
    """
    need_model(cmdp, "slater_gap")
    limited = np.where(cmdp.available, cmdp.costs[1:], np.nan)
    able = np.flatnonzero(np.nanmax(limited, axis=(1, 2)) > cmdp.thresholds)
    if able.size == 0:
        return math.inf
    lowest = np.nanmin(limited[able], axis=(1, 2))
    costs = np.where(cmdp.available, cmdp.costs[1 + able], lowest[:, None, None])
    units, thresholds = cost_units(costs), cmdp.thresholds[able]
    if able.size == 1:
        cheapest = plan_model(CMDP(cmdp.transition, costs, initial=cmdp.initial, available=cmdp.available))
        return float((thresholds[0] - cheapest.costs[0]) / units[0])
    lowered = float(((thresholds - lowest) / units).min())
    shares = Scaling(np.concatenate([[0.0], lowest]), np.concatenate([[1.0], units]))
    free = np.concatenate([np.zeros_like(costs[:1]), costs])
    problem = Problem.scaled(cmdp.transition, free, thresholds - lowered * units, cmdp.available, shares)
    found = stoppable_answer(_occupancies(cmdp, problem).elastic().columns())
    if found.status != "kOptimal":
        raise SolverError(f"the Slater gap was not found: HiGHS ended with {found.status}")
    return lowered - float(found.values[-1])


def _occupancies(cmdp: CMDP, problem: Problem) -> Program:
    """Return the program over the occupancies that policies attain from the initial distribution."""
    components = find_end_components(cmdp.transition, cmdp.available)
    if components.number == 1:
        return occupancy_program(problem)
    onward = departures(problem, np.flatnonzero(cmdp.available.ravel())).balance
    return multichain_program(problem, cmdp.initial, np.flatnonzero(components.inside.ravel()), onward)
