"""The kinds of arrays that travel between modules."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.int32]  # row starts and columns of sparse matrices
Small: TypeAlias = NDArray[np.uint16]

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

Matrix: TypeAlias = Any
"""A dense array or a ``scipy.sparse.csr_array``: both know ``@``, ``shape`` and rows by index. SciPy has no types."""


def in_32_bits(matrix: Matrix) -> Matrix:
    """A CSR matrix whose row starts and columns have 32 bits, as the kernels take them; itself if they have."""
    if matrix.indices.dtype != np.int32 or matrix.indptr.dtype != np.int32:
        matrix = matrix.copy()
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def read_only(array: AnyArray) -> AnyArray:
    """A view that cannot be written to; the array itself if it already cannot."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
