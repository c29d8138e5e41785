r"""The Slater gap of a model: by how much one policy can stay below all thresholds at once.

.. math:: \gamma = \max_\pi \min_i \bigl( \tau_i - J_i(\pi) \bigr)

For one constraint this is the threshold minus the least average of its cost. For several it is a linear program over
occupancies, that of the planner with the least excess t over thresholds lowered by a number L, :math:`\gamma = L - t`.
With :math:`L = \min_i (\tau_i - \min c_i)` the excess is never negative, so that its sign is no constraint.
"""

import math

import numpy as np

from psconrl.errors import SolverError
from psconrl.markov.structure import find_end_components
from psconrl.model.cmdp import CMDP, need_model
from psconrl.planning.highs_process import stoppable_answer
from psconrl.planning.lp import Program, occupancy_program
from psconrl.planning.multichain import departures, multichain_program
from psconrl.planning.planner import plan
from psconrl.planning.problem import Problem
from psconrl.planning.scaling import Scaling


def slater_gap(cmdp: CMDP) -> float:
    """Return the largest amount by which a policy stays below every threshold, in units of the costs.

    It is negative if no policy meets all constraints, and infinite if there are none.

    >>> import psconrl
    >>> slater_gap(psconrl.load("marsrover-4x4")), round(slater_gap(psconrl.load("inventory")), 4)
    (0.2, 0.104)
    """
    need_model(cmdp, "slater_gap")
    if cmdp.n_constraints == 0:
        return math.inf
    if cmdp.n_constraints == 1:
        cheapest = plan(CMDP(cmdp.transition, cmdp.costs[1:], initial=cmdp.initial, available=cmdp.available))
        return float(cmdp.thresholds[0] - cheapest.costs[0])
    limited = np.where(cmdp.available, cmdp.costs[1:], np.nan)
    lowest, highest = np.nanmin(limited, axis=(1, 2)), np.nanmax(limited, axis=(1, 2))
    unit = float((highest - lowest).max()) or 1.0
    lowered = float((cmdp.thresholds - lowest).min())
    same = Scaling(np.zeros(cmdp.n_constraints + 1), np.full(cmdp.n_constraints + 1, unit))
    problem = Problem.scaled(cmdp.transition, cmdp.costs, cmdp.thresholds - lowered, cmdp.available, same)
    found = stoppable_answer(_occupancies(cmdp, problem).elastic().columns())
    if found.status != "kOptimal":
        raise SolverError(f"the Slater gap was not found: HiGHS ended with {found.status}")
    return lowered - unit * float(found.values[-1])


def _occupancies(cmdp: CMDP, problem: Problem) -> Program:
    """Return the program over the occupancies that policies attain from the initial distribution."""
    components = find_end_components(cmdp.transition, cmdp.available)
    if components.number == 1:
        return occupancy_program(problem)
    onward = departures(problem, np.flatnonzero(cmdp.available.ravel())).balance
    return multichain_program(problem, cmdp.initial, np.flatnonzero(components.inside.ravel()), onward)
