r"""What is collected on the way through states that are surely left.

.. math:: x = C + W x

for moves W among n such states, in CSR form. States that lead back to each other are solved together, and such groups
one after the other, each after all that it leads to. Where nothing leads back, that is one pass. A small group is
eliminated without subtractions (``kernels.elimination``); a large one is swept until nothing changes if it is left
quickly, and else factorised.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Floats
from psconrl.errors import SolverError
from psconrl.kernels import graph, successors, transient
from psconrl.markov.factorisation import collect_sparse
from psconrl.markov.unichain import FALLS_APART
from psconrl.products import product

TOGETHER = 64  # states that lead back to each other and are solved as a dense system


def collect_onward(W: csr_array, C: Floats, exits: Floats) -> Floats:
    """The solution (n, q) of x = C + W x; ``exits`` (n,) is the probability that each leads out of all."""
    count, label = graph.strong_components(W.indptr, W.indices, W.shape[0])
    start, members = successors.grouped(label, count)
    C, x = np.ascontiguousarray(C), np.zeros(C.shape)
    done = 0
    while True:
        try:
            done = transient.collect(W.indptr, W.indices, W.data, C, exits, start, members, done, TOGETHER, x)
        except ZeroDivisionError:
            raise SolverError(FALLS_APART) from None
        if done == count:
            return x
        group = members[start[done] : start[done + 1]]
        rows = csr_array(W[group])
        inside = csr_array(rows[:, group])
        away = product(rows, (label != done).astype(float))
        # x is still zero in the group: the product sees what is outside of it.
        x[group] = collect_sparse(inside, C[group] + product(rows, x), exits[group] + away)
        done += 1
