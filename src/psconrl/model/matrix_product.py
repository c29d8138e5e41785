"""Products of arrays and sparse matrices that agree to the last bit on every processor."""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Matrix, in_32_bits
from psconrl.kernels.arithmetic import products


def product(left: Matrix, right: Matrix) -> Any:
    """Return ``left @ right`` for vectors and matrices, of which at most one is sparse (CSR).

    The order of summation is fixed, whereas BLAS chooses it by the processor.

    >>> product([1.0, 2.0], [3.0, 4.0])
    11.0
    >>> product(np.eye(2), [3.0, 4.0]).tolist()
    [3.0, 4.0]
    """
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return _dense_product(_array(left), _array(right))
    for factor in (left, right):
        if getattr(factor, "format", "csr") != "csr":
            raise TypeError(f"a sparse matrix must be in CSR form; got {factor.format.upper()}")
    if hasattr(left, "indptr"):
        columns = _array(right)
        if len(columns) != left.shape[1]:
            raise ValueError(f"a matrix of shape {left.shape} times an array of shape {columns.shape}")
        left = in_32_bits(left)
        parts = left.indptr, left.indices, left.data
        if columns.ndim == 1:
            return products.sparse_times(*parts, columns)
        return np.stack([products.sparse_times(*parts, np.ascontiguousarray(x)) for x in columns.T], axis=1)
    if hasattr(right, "indptr"):
        right = in_32_bits(right)
        return products.times_sparse(_array(left), right.indptr, right.indices, right.data, right.shape[1])
    return _dense_product(_array(left), _array(right))


def _dense_product(first: Floats, second: Floats) -> Any:
    if first.ndim == 1:
        return products.dot(first, second) if second.ndim == 1 else products.combine(first, second)
    return products.times(first, second) if second.ndim == 1 else products.multiply(first, second)


def _array(x: Any) -> Floats:
    """Return an array as the kernels expect it."""
    return np.ascontiguousarray(x, dtype=np.float64)
