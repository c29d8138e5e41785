r"""Expected number of visits to each transient state.

.. math:: y = b + y W

for transitions W among n such states, in CSR form: as in ``transient_costs``, but each group is solved after all groups
that lead to it.
"""

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from psconrl.base.arrays import Floats
from psconrl.base.sizes import DENSE_GROUP_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains import visits
from psconrl.kernels.graphs import graph, successors
from psconrl.markov.gain_bias import FALLS_APART
from psconrl.markov.select_solver import solve_sparse
from psconrl.model.matrix_product import product


def visit_onward(W: csr_array, begin: Floats, exits: Floats) -> Floats:
    """Return the expected number of visits (n,) to each state, given the expected number of starts (n,) in each."""
    n = W.shape[0]
    count, label = graph.strong_components(W.indptr, W.indices, n)
    start, members = successors.grouped(label, count)
    y = np.array(begin, dtype=float)
    done = count
    while True:
        try:
            done = visits.visit(W.indptr, W.indices, W.data, exits, start, members, done, DENSE_GROUP_STATES, y)
        except ZeroDivisionError:
            raise SolverError(FALLS_APART) from None
        if done == 0:
            return y
        group = members[start[done - 1] : start[done]]
        rows = csr_array(W[group])
        inside = csr_array(rows[:, group])
        away = product(rows, (label != done - 1).astype(float))
        y[group] = _visits_by_distribution(inside, y[group], exits[group] + away)
        gained = product(y[group], rows)
        gained[group] = 0.0
        y += gained
        done -= 1


def _visits_by_distribution(W: csr_array, begin: Floats, exits: Floats) -> Floats:
    """Return the visits of a large group from the stationary distribution of the chain that restarts when it leaves."""
    n, total = W.shape[0], float(begin.sum())
    if total <= 0.0:
        return np.zeros(n)
    # One more state: every path starts there, and goes there when it leaves.
    top = csr_array(np.append(begin / total, 0.0)[None, :])
    chain = csr_array(vstack([hstack([W, csr_array(exits[:, None])]), top]))
    solved = solve_sparse(chain, np.zeros((1, n + 1)))
    if solved is None:
        raise SolverError(FALLS_APART)
    mass = solved.stationary
    return np.asarray(total * mass[:n] / mass[n])
