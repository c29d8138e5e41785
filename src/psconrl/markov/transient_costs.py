r"""Expected total cost collected in transient states until they are left.

.. math:: x = C + W x

for transitions W among n such states, in CSR form. States that communicate are solved together. These groups are solved
one after the other, each after all groups that it leads to; without cycles that is one pass. A small group is solved by
GTH elimination (``kernels.linear.elimination``). A large one is swept until convergence if it is left quickly, and
factorised otherwise.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats
from psconrl.base.sizes import DENSE_GROUP_STATES
from psconrl.errors import SolverError
from psconrl.kernels.chains import transient
from psconrl.kernels.graphs import graph, successors
from psconrl.markov.factorisation import collect_sparse
from psconrl.markov.gain_bias import FALLS_APART
from psconrl.model.matrix_product import product


def collect_onward(W: csr_array, C: Floats, exits: Floats) -> Floats:
    """Return the solution (n, q) of x = C + W x; ``exits`` (n,) are the probabilities of leaving all n states."""
    count, label = graph.strong_components(W.indptr, W.indices, W.shape[0])
    start, members = successors.grouped(label, count)
    C, x = np.ascontiguousarray(C), np.zeros(C.shape)
    done = 0
    while True:
        try:
            done = transient.collect(W.indptr, W.indices, W.data, C, exits, start, members, done, DENSE_GROUP_STATES, x)
        except ZeroDivisionError:
            raise SolverError(FALLS_APART) from None
        if done == count:
            return x
        group = members[start[done] : start[done + 1]]
        rows = csr_array(W[group])
        inside = csr_array(rows[:, group])
        away = product(rows, (label != done).astype(float))
        # x is still zero in the group, so the product only includes states outside of it.
        x[group] = collect_sparse(inside, C[group] + product(rows, x), exits[group] + away)
        done += 1
