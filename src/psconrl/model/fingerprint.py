"""A digest of a model, used to check that a run and a plan belong to the same model.

It covers sizes, transitions, available actions and expected costs, which determine the averages of every policy.
Thresholds, names and the initial distribution do not enter, nor does the storage format: a dense and a sparse model
with equal entries have the same digest.
"""

import hashlib
from collections.abc import Iterator

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.linear.csr import entries_of_dense
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition

READ_ENTRIES = 2**20  # entries of a dense model that are read at once, to limit the memory


def fingerprint(cmdp: CMDP) -> str:
    """Return a digest of transitions and costs, in O(entries).

    >>> import psconrl
    >>> model = psconrl.load("queue")
    >>> fingerprint(model) == fingerprint(model.with_thresholds({"delay": 3.0}))
    True
    >>> fingerprint(model) == fingerprint(psconrl.load("queue", arrival=0.5))
    False
    """
    places, values = hashlib.sha256(), hashlib.sha256()
    for where, what in _entries(cmdp.transition):
        places.update(where.data)
        values.update(what.data)
    whole = hashlib.sha256(np.array(cmdp.costs.shape, dtype=np.int64).data)
    costs = cmdp.costs + 0.0  # turns -0.0 into 0.0
    for part in (places.digest(), values.digest(), cmdp.available.ravel().data, costs.ravel().data):
        whole.update(part)
    return whole.hexdigest()


def _entries(transition: Transition) -> Iterator[tuple[Ints, Floats]]:
    """Yield positions in the matrix (S*A, S), row by row, and the entries there, without zeros."""
    (pairs, S), dense = transition.shape, transition.array
    if dense is None:
        P = transition.csr().copy()
        P.sum_duplicates()  # also sorts
        P.eliminate_zeros()
        rows = np.repeat(np.arange(pairs, dtype=np.int64), np.diff(P.indptr))
        yield rows * S + P.indices, np.ascontiguousarray(P.data, dtype=np.float64)
        return
    size = max(1, READ_ENTRIES // S)
    for low in range(0, pairs, size):
        yield entries_of_dense(dense[low : low + size], low * S)
