"""The kinds of arrays that travel between modules."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

Matrix: TypeAlias = Any
"""A dense array or a ``scipy.sparse.csr_array``: both know ``@``, ``shape`` and rows by index. SciPy has no types."""
