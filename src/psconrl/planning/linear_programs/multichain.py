r"""Models with several end components: the program of Hordijk and Kallenberg (1979) and the loss of its proof.

The occupancy program may place its mass in a class that is unreachable from the initial distribution. With transient
visits x

.. math:: \sum_a \mu(s,a) + \sum_a x(s,a) - \sum_{s',a} x(s',a) P(s|s',a) = \beta(s), \quad x \ge 0

it cannot. Here :math:`\mu` is supported on the pairs of end components, since a path can stay only there. x counts
departures instead of visits, so that a state which is left once in 1e30 steps still counts as left.

The dual has gains g that must not decrease along any move, but solvers return gains that are only almost subharmonic.
Under any policy a path makes finitely many moves before it stays in one end component. Let U bound the expected number
of moves, each from one component or transient state to another:

.. math:: U(k) \ge 1 + \sum_{l \ne k} P(l|s,a)\, U(l) \Big/ \sum_{l \ne k} P(l|s,a)
          \quad\text{for every pair that may leave } k,\qquad U \ge 0.

If no such pair lowers the gains by more than r per move, the gains fall by at most :math:`r \max U` from the initial
distribution. The bound counts moves instead of steps, so waiting times do not enter.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import block_array, csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.chains.occupancy import policy_from_occupancy
from psconrl.markov.structure import EndComponents
from psconrl.model.cmdp import CMDP
from psconrl.planning.candidate import Candidate, Dual
from psconrl.planning.components.quotient import Quotient
from psconrl.planning.linear_programs.lp import Program, balance, optimum, spread, states_of, towards
from psconrl.planning.problem import Problem
from psconrl.planning.tolerances import LP_MASS


class Departures(NamedTuple):
    """The effect of one departure by each pair."""

    balance: csr_array  # (S, pairs) net outflow of every state per departure
    probability: Floats  # (pairs,) that a visit ends in a departure


def solve_multichain(problem: Problem, initial: Floats, recurrent: Ints) -> Candidate:
    """Solve the multichain program from an initial distribution; ``recurrent`` are the pairs of the end components."""
    S, A = problem.available.shape
    pairs = np.flatnonzero(problem.available.ravel())
    leaving = departures(problem, pairs)
    program = multichain_program(problem, initial, recurrent, leaving.balance)
    found = optimum(program, "probabilities may be too small")
    n = recurrent.size
    occupancy = spread(found.x[:n], recurrent, S, A)
    occupancy /= occupancy.sum()
    departed = found.x[n : n + pairs.size]
    departed, probability = np.where(departed > LP_MASS, departed, 0.0), leaving.probability
    with np.errstate(over="ignore"):
        visits = departed / np.where(probability > 0, probability, 1.0)
    if not np.isfinite(visits).all():
        raise SolverError("a departure is so rare that doubles cannot count the visits before it")
    # Play by the occupancy; off its support, by the transient visits or towards the support.
    onward = policy_from_occupancy(spread(visits, pairs, S, A), towards(problem, occupancy), LP_MASS)
    policy = policy_from_occupancy(occupancy, onward, LP_MASS)
    dual = Dual(found.prices, found.duals[:S], np.zeros(S), found.duals[S : 2 * S])
    note = "several end components: multichain program"
    return Candidate(found.feasible, occupancy, policy, dual, (policy.argmax(axis=1),), "lp", note)


def multichain_program(problem: Problem, initial: Floats, recurrent: Ints, onward: csr_array) -> Program:
    """Return the multichain program; its rows are thresholds, balance of every state, and reachability."""
    S, A = problem.available.shape
    limits = csr_array(problem.costs[1:, recurrent])
    stay = states_of(recurrent, S, A)
    matrix = block_array([[limits, None], [balance(problem, recurrent), None], [stay, onward]])
    right = np.concatenate([problem.thresholds, np.zeros(S), initial])
    cost = np.append(problem.costs[0, recurrent], np.zeros(onward.shape[1]))
    return Program(csr_array(matrix), cost, right, problem.thresholds.size)


def departures(problem: Problem, pairs: Ints) -> Departures:
    """Return the departures by the given pairs."""
    S, A = problem.available.shape
    moves = problem.transition.csr()[pairs].tocoo()
    row, column = moves.coords
    away = column != pairs[row] // A
    probability = np.bincount(row[away], moves.data[away], minlength=pairs.size).astype(np.float64)
    arrive = csr_array((moves.data[away] / probability[row[away]], (column[away], row[away])), shape=(S, pairs.size))
    leaves = csr_array(states_of(pairs, S, A) * (probability > 0))
    return Departures(csr_array(leaves - arrive), probability)


def transit_loss(cmdp: CMDP, states: Bools, components: EndComponents, gains: Floats) -> float:
    """Bound from above the mean loss of gains, constant on each component, from the given states (S,)."""
    if np.ptp(gains) == 0.0:
        return 0.0
    quotient = Quotient(cmdp.transition, cmdp.available, components, states)
    of_nodes = np.empty(quotient.moves.n_nodes)
    of_nodes[quotient.node] = gains
    return quotient.loss(of_nodes)
