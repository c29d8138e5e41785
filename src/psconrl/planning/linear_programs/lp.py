r"""The occupancy linear program on HiGHS: the reference for the mixture, valid for weakly communicating models.

.. math:: \min_\mu \mu c_0 \quad\text{s.t.}\quad \mu c_i \le \tau_i,\quad
          \sum_a \mu(s,a) = \sum_{s',a} \mu(s',a) P(s|s',a),\quad \sum \mu = 1,\quad \mu \ge 0

An infeasible model is solved again for the least excess t over all thresholds; its dual is the Farkas proof.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack, vstack

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import one_hot, policy_from_occupancy
from psconrl.markov.structure import attractor_policy
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.linear_programs.highs import HighsProgram
from psconrl.planning.linear_programs.highs_process import stoppable_answer
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import LP_MASS


class Program(NamedTuple):
    """Minimise ``cost x`` over x >= 0, where ``matrix x <= right`` in the first rows and ``= right`` in the others."""

    matrix: csr_array
    cost: Floats
    right: Floats
    n_constraints: int

    def elastic(self) -> "Program":
        """Return the program that minimises the excess t over all thresholds; t is one more column."""
        m, rows = self.n_constraints, self.matrix.shape[0]
        excess = csr_array((-np.ones(m), (np.arange(m), np.zeros(m, int))), shape=(rows, 1))
        cost = np.append(np.zeros(self.cost.size), 1.0)
        return self._replace(matrix=csr_array(hstack([self.matrix, excess])), cost=cost)

    def columns(self) -> HighsProgram:
        """Return the program in HiGHS' terms."""
        matrix, m = csc_array(self.matrix), self.n_constraints
        lower, upper = self.right.copy(), self.right.copy()
        lower[:m] = -np.inf
        # The balance rows sum to zero. With all of them HiGHS mistakes rounding for infeasibility, so one row is freed.
        lower[m], upper[m] = -np.inf, np.inf
        return HighsProgram(self.cost, lower, upper, matrix.indptr, matrix.indices, matrix.data)


class Optimum(NamedTuple):
    """HiGHS' solution of a program: primal variables, prices of the constraints, duals of the other rows."""

    feasible: bool
    x: Floats
    prices: Floats  # (m,), or the Farkas weights
    duals: Floats


def solve_lp(problem: Problem) -> Candidate:
    """Solve the occupancy program of a problem."""
    S, A = problem.available.shape
    pairs = np.flatnonzero(problem.available.ravel())
    found = optimum(occupancy_program(problem), "method='mixture' may settle the model")
    occupancy = spread(found.x[: pairs.size], pairs, S, A)
    occupancy /= occupancy.sum()
    policy = policy_from_occupancy(occupancy, towards(problem, occupancy), LP_MASS)
    dual = Dual(found.prices, found.duals[:S], np.zeros(S), None)
    return Candidate(found.feasible, occupancy, policy, dual, (policy.argmax(axis=1),), "lp")


def occupancy_program(problem: Problem) -> Program:
    """Return the occupancy program; its rows are thresholds, balance of every state, and normalisation."""
    S = problem.available.shape[0]
    pairs = np.flatnonzero(problem.available.ravel())
    matrix = vstack([problem.costs[1:, pairs], balance(problem, pairs), np.ones((1, pairs.size))])
    right = np.concatenate([problem.thresholds, np.zeros(S), [1.0]])
    return Program(csr_array(matrix), problem.costs[0, pairs], right, problem.thresholds.size)


def balance(problem: Problem, pairs: Ints) -> csr_array:
    """Return the net outflow (S, pairs) of every state per visit of each pair."""
    return csr_array(states_of(pairs, *problem.available.shape) - csr_array(problem.transition.csr()[pairs].T))


def states_of(pairs: Ints, S: int, A: int) -> csr_array:
    """Return the incidence matrix (S, pairs): one where a pair belongs to a state."""
    return csr_array((np.ones(pairs.size), (pairs // A, np.arange(pairs.size))), shape=(S, pairs.size))


def optimum(program: Program, way_out: str) -> Optimum:
    """Solve a program; if it is infeasible, minimise its excess instead."""
    found = stoppable_answer(program.columns())
    feasible = found.status != "kInfeasible"
    if not feasible:
        found = stoppable_answer(program.elastic().columns())
    if found.status != "kOptimal":
        raise SolverError(f"HiGHS ended with {found.status}; {way_out}")
    duals, m = found.duals, program.n_constraints
    return Optimum(feasible, found.values, np.maximum(-duals[:m], 0.0), duals[m:])


def spread(values: Floats, pairs: Ints, S: int, A: int) -> Floats:
    """Return values of some pairs, clipped at zero, as a table (S, A)."""
    full = np.zeros(S * A)
    full[pairs] = np.maximum(values, 0.0)
    return full.reshape(S, A)


def towards(problem: Problem, occupancy: Floats) -> Floats:
    """Return a policy (S, A) that drives to the states with mass."""
    visited = occupancy.sum(axis=1) > LP_MASS
    onward = attractor_policy(problem.transition, problem.available, visited, problem.available.argmax(axis=1))
    return one_hot(onward, occupancy.shape[1])
