r"""The occupancy linear program on HiGHS: the referee of the mixture, right for weakly communicating models.

.. math:: \min_\mu \mu c_0 \quad\text{s.t.}\quad \mu c_i \le \tau_i,\quad
          \sum_a \mu(s,a) = \sum_{s',a} \mu(s',a) P(s|s',a),\quad \sum \mu = 1,\quad \mu \ge 0

An infeasible model is solved once more for the least excess t over all thresholds; its dual is the Farkas proof.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, vstack

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.occupancy import one_hot, policy_from_occupancy
from psconrl.markov.structure import attractor_policy
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.highs import run, status
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import LP_MASS

if TYPE_CHECKING:
    import highspy


class Program(NamedTuple):
    """Minimise ``cost x`` over x >= 0 with ``matrix x``: at most the limits in the first rows, equal to the rest."""

    matrix: csr_array
    cost: Floats
    right: Floats
    n_constraints: int

    def elastic(self) -> "Program":
        """The least excess t over all limits instead: one more column, and nothing else costs."""
        m, rows = self.n_constraints, self.matrix.shape[0]
        excess = csr_array((-np.ones(m), (np.arange(m), np.zeros(m, int))), shape=(rows, 1))
        cost = np.append(np.zeros(self.cost.size), 1.0)
        return self._replace(matrix=csr_array(hstack([self.matrix, excess])), cost=cost)

    def highs(self) -> "highspy.HighsLp":
        """The program as HiGHS takes it."""
        import highspy

        lp, matrix = highspy.HighsLp(), csc_array(self.matrix)
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.col_cost_ = self.cost
        lp.col_lower_, lp.col_upper_ = np.zeros(self.cost.size), np.full(self.cost.size, highspy.kHighsInf)
        lower, upper, m = self.right.copy(), self.right.copy(), self.n_constraints
        lower[:m] = -highspy.kHighsInf
        # The balance rows add up to nothing: with all of them HiGHS takes rounding for a contradiction.
        lower[m], upper[m] = -highspy.kHighsInf, highspy.kHighsInf
        lp.row_lower_, lp.row_upper_ = lower, upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        return lp


class Optimum(NamedTuple):
    """What HiGHS makes of a program: its primal solution, prices of the limits, duals of the other rows."""

    feasible: bool
    x: Floats
    prices: Floats  # (m,), or the Farkas weights
    duals: Floats


def solve_lp(problem: Problem) -> Candidate:
    """Solve the occupancy program."""
    S, A = problem.available.shape
    pairs = np.flatnonzero(problem.available.ravel())
    found = optimum(occupancy_program(problem), "method='mixture' may settle the model")
    occupancy = spread(found.x[: pairs.size], pairs, S, A)
    occupancy /= occupancy.sum()
    policy = policy_from_occupancy(occupancy, towards(problem, occupancy), LP_MASS)
    dual = Dual(found.prices, found.duals[:S], np.zeros(S), None)
    return Candidate(found.feasible, occupancy, policy, dual, (policy.argmax(axis=1),), "lp")


def occupancy_program(problem: Problem) -> Program:
    """Rows: thresholds, balance of every state, norm."""
    S = problem.available.shape[0]
    pairs = np.flatnonzero(problem.available.ravel())
    matrix = vstack([problem.costs[1:, pairs], balance(problem, pairs), np.ones((1, pairs.size))])
    right = np.concatenate([problem.thresholds, np.zeros(S), [1.0]])
    return Program(csr_array(matrix), problem.costs[0, pairs], right, problem.thresholds.size)


def balance(problem: Problem, pairs: Ints) -> csr_array:
    """How much each of some pairs takes out of every state, (S, pairs)."""
    return csr_array(states_of(pairs, *problem.available.shape) - csr_array(problem.transition.csr()[pairs].T))


def states_of(pairs: Ints, S: int, A: int) -> csr_array:
    """Ones where a pair belongs to a state, (S, pairs)."""
    return csr_array((np.ones(pairs.size), (pairs // A, np.arange(pairs.size))), shape=(S, pairs.size))


def optimum(program: Program, way_out: str) -> Optimum:
    """Solve a program, or, if it is infeasible, for its least excess."""
    highs = run(program.highs())
    feasible = status(highs) != "kInfeasible"
    if not feasible:
        highs = run(program.elastic().highs())
    if status(highs) != "kOptimal":
        raise SolverError(f"HiGHS ended with {status(highs)}; {way_out}")
    solution = highs.getSolution()
    dual, m = np.array(solution.row_dual), program.n_constraints
    return Optimum(feasible, np.array(solution.col_value), np.maximum(-dual[:m], 0.0), dual[m:])


def spread(values: Floats, pairs: Ints, S: int, A: int) -> Floats:
    """What belongs to some pairs, never negative, as a table (S, A)."""
    full = np.zeros(S * A)
    full[pairs] = np.maximum(values, 0.0)
    return full.reshape(S, A)


def towards(problem: Problem, occupancy: Floats) -> Floats:
    """A policy (S, A) that leads to the states with mass."""
    visited = occupancy.sum(axis=1) > LP_MASS
    onward = attractor_policy(problem.transition, problem.available, visited, problem.available.argmax(axis=1))
    return one_hot(onward, occupancy.shape[1])
