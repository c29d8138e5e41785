r"""The occupancy linear program on HiGHS: the referee of the other planners, and the planner of multichain models.

.. math:: \min_\mu \mu c_0 \quad\text{s.t.}\quad \mu c_i \le \tau_i,\quad
          \sum_a \mu(s,a) = \sum_{s',a} \mu(s',a) P(s|s',a),\quad \sum \mu = 1,\quad \mu \ge 0

is right if the model is weakly communicating. Otherwise it may place its mass in a class that the initial law does
not reach, and the program of Hordijk and Kallenberg (1979) takes over, with transient visits x:

.. math:: \sum_a \mu(s,a) + \sum_a x(s,a) - \sum_{s',a} x(s',a) P(s|s',a) = \beta(s), \quad x \ge 0.

There :math:`\mu` lives on the pairs of end components, where alone a path can stay, and x counts departures instead
of visits, so that a state which is left once in 1e30 steps is still left. An infeasible model is solved once
more for the least excess t over all thresholds; its dual is the Farkas proof.
"""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy.sparse import block_array, csc_array, csr_array, hstack, vstack

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.planning.highs import new_highs, status
from psconrl.planning.problem import Problem

MASS_TOL = 1e-10  # HiGHS' primal tolerance: less is not mass


@dataclass(frozen=True, eq=False)
class LPSolution:
    """Primal and dual solution in scaled costs."""

    feasible: bool
    occupancy: Floats  # (S, A)
    transient: Floats | None  # (S, A) the visits x of the multichain program, those outside rounding
    multipliers: Floats  # (m,) prices, or the Farkas weights
    potential: Floats  # (S,)
    gains: Floats | None  # (S,) of the multichain program


@dataclass(frozen=True, eq=False)
class Multichain:
    """What the multichain program needs to know beyond the problem."""

    initial: Floats  # (S,)
    recurrent: Ints  # the pairs of the end components


def solve_lp(problem: Problem, multichain: Multichain | None = None) -> LPSolution:
    """Solve the occupancy program, or the multichain one."""
    highs = run(occupancy_program(problem, multichain))
    feasible = status(highs) != "kInfeasible"
    if not feasible:
        highs = run(occupancy_program(problem, multichain, elastic=True))
    if status(highs) != "kOptimal":
        way_out = "method='mixture' may settle the model" if multichain is None else "probabilities may be too small"
        raise SolverError(f"HiGHS ended with {status(highs)}; {way_out}")
    S, A = problem.available.shape
    pairs = np.flatnonzero(problem.available.ravel())
    solution = highs.getSolution()
    x, dual = np.array(solution.col_value), np.array(solution.row_dual)
    m = problem.thresholds.size
    multipliers, dual = np.maximum(-dual[:m], 0.0), dual[m:]

    def spread(values: Floats, at: Ints) -> Floats:
        full = np.zeros(S * A)
        full[at] = np.maximum(values, 0.0)
        return full.reshape(S, A)

    if multichain is None:
        occupancy, transient, gains = spread(x[: pairs.size], pairs), None, None
    else:
        n = multichain.recurrent.size
        departures, (_, chance) = x[n : n + pairs.size], _departing(problem, pairs)
        visits = np.where(departures > MASS_TOL, departures, 0.0) / np.where(chance > 0, chance, 1.0)
        occupancy, transient, gains = spread(x[:n], multichain.recurrent), spread(visits, pairs), dual[S : 2 * S]
    return LPSolution(feasible, occupancy / occupancy.sum(), transient, multipliers, dual[:S], gains)


def occupancy_program(problem: Problem, multichain: Multichain | None = None, elastic: bool = False) -> highspy.HighsLp:
    """The program as HiGHS takes it. Rows: thresholds, balance of every state, then norm or reachability."""
    S, A = problem.available.shape
    pairs = np.flatnonzero(problem.available.ravel())
    m = problem.thresholds.size
    staying = pairs if multichain is None else multichain.recurrent
    leave = _states_of(staying, S, A)
    balance = csr_array(leave - csr_array(csr_array(problem.transition)[staying].T))
    limits = csr_array(problem.costs[1:, staying])
    cost = problem.costs[0, staying]
    if multichain is None:
        matrix = vstack([limits, balance, csr_array(np.ones((1, pairs.size)))])
        right = np.concatenate([problem.thresholds, np.zeros(S), [1.0]])
    else:
        onward, _ = _departing(problem, pairs)
        matrix = block_array([[limits, None], [balance, None], [leave, onward]])
        right = np.concatenate([problem.thresholds, np.zeros(S), multichain.initial])
        cost = np.append(cost, np.zeros(pairs.size))
    if elastic:
        excess = csr_array((-np.ones(m), (np.arange(m), np.zeros(m, int))), shape=(matrix.shape[0], 1))
        matrix, cost = hstack([matrix, excess]), np.append(np.zeros(cost.size), 1.0)
    return _highs_lp(csc_array(matrix), cost, right, m)


def _states_of(pairs: Ints, S: int, A: int) -> csr_array:
    return csr_array((np.ones(pairs.size), (pairs // A, np.arange(pairs.size))), shape=(S, pairs.size))


def _departing(problem: Problem, pairs: Ints) -> tuple[csr_array, Floats]:
    """Balance of one departure by each pair, (S, pairs), and the chance that a visit ends in one."""
    S, A = problem.available.shape
    moves = csr_array(problem.transition)[pairs].tocoo()
    row, column = moves.coords
    away = column != pairs[row] // A
    chance = np.bincount(row[away], moves.data[away], minlength=pairs.size).astype(np.float64)
    arrive = csr_array((moves.data[away] / chance[row[away]], (column[away], row[away])), shape=(S, pairs.size))
    leaves = csr_array(_states_of(pairs, S, A) * (chance > 0))
    return csr_array(leaves - arrive), chance


def _highs_lp(matrix: csc_array, cost: Floats, right: Floats, m: int) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    rows, columns = matrix.shape
    lp.num_row_, lp.num_col_ = rows, columns
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, highspy.kHighsInf)
    lower, upper = right.copy(), right.copy()
    lower[:m] = -highspy.kHighsInf
    # The balance rows add up to nothing: with all of them HiGHS takes rounding for a contradiction.
    lower[m], upper[m] = -highspy.kHighsInf, highspy.kHighsInf
    lp.row_lower_, lp.row_upper_ = lower, upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    return lp


def run(program: highspy.HighsLp) -> Any:
    """Run HiGHS; if it cannot settle the tight tolerances, with the next wider ones, down to its own."""
    for tolerance, options in (
        (1e-10, {}),
        (1e-9, {}),
        (1e-9, {"presolve": "off"}),
        (1e-7, {}),
        (1e-7, {"solver": "ipm"}),
    ):
        highs = new_highs(primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance, **options)
        highs.passModel(program)
        highs.run()
        if status(highs) in ("kOptimal", "kInfeasible"):
            break
    return highs
