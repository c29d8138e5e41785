"""Rows of sparse transition matrices: chosen, mixed by a policy, and with restarts."""

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Floats, Ints
from psconrl.kernels import csr


def chosen_rows(matrix: csr_array, rows: Ints) -> csr_array:
    """Return the given rows of a matrix; SciPy's own indexing takes ten times as long for small matrices."""
    indptr, indices, data = csr.gathered(matrix.indptr, matrix.indices, matrix.data, rows, 0, 0.0)
    return csr_array((data, indices, indptr), shape=(rows.size, matrix.shape[1]))


def mixed_sparse_rows(matrix: csr_array, policy: Floats) -> csr_array:
    """Return the chain (S, S) of a randomised policy (S, A), from transitions (S*A, S)."""
    indptr, indices, data = csr.mixed(matrix.indptr, matrix.indices, matrix.data, np.ascontiguousarray(policy))
    return csr_array((data, indices, indptr), shape=(matrix.shape[1], matrix.shape[1]))


def restarting(matrix: csr_array, state: int, probability: float) -> csr_array:
    """Return a matrix whose every row moves to ``state`` with a probability, and otherwise as before."""
    rows = np.arange(matrix.shape[0])
    indptr, indices, data = csr.gathered(matrix.indptr, matrix.indices, matrix.data, rows, state, probability)
    return csr_array((data, indices, indptr), shape=matrix.shape)
