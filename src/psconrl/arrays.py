"""The kinds of arrays that travel between modules."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.signedinteger[Any]]  # of states, in 32 bits where that will do
Small: TypeAlias = NDArray[np.uint16]

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])

Matrix: TypeAlias = Any
"""A dense array or a ``scipy.sparse.csr_array``: both know ``@``, ``shape`` and rows by index. SciPy has no types."""


def read_only(array: AnyArray) -> AnyArray:
    """A view that cannot be written to; the array itself if it already cannot."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view
