"""Arrays that grow block by block, in place where the system can do so, without a second copy of what was read."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.caps import need
from psconrl.errors import LogError

SPARE_ROOM = 1.125  # by which there is more room than is needed


class GrowingArray:
    """An array to which blocks are added.

    >>> read = GrowingArray(np.int16)
    >>> read.add(np.array([1, 2]))
    >>> read.add(np.array([3]))
    >>> read.whole().tolist()
    [1, 2, 3]
    """

    def __init__(self, dtype: Any) -> None:
        self._data: NDArray[Any] = np.empty(0, dtype=dtype)
        self._size = 0

    def add(self, block: NDArray[Any]) -> None:
        """Add a block."""
        end = self._size + block.size
        if end > self._data.size:
            room = int(SPARE_ROOM * end)
            need(float(room) * self._data.itemsize, f"a column of {end:,} rows and more", LogError)
            self._data.resize(room, refcheck=False)
        self._data[self._size : end] = block
        self._size = end

    def copy(self) -> "GrowingArray":
        """Return a copy."""
        found = GrowingArray(self._data.dtype)
        found.add(self._data[: self._size])
        return found

    def widen(self, dtype: Any) -> None:
        """Give values more bytes."""
        self._data = self._data.astype(dtype, copy=False)

    def whole(self) -> NDArray[Any]:
        """Return the whole array, which is given up here."""
        self._data.resize(self._size, refcheck=False)
        whole, self._data = self._data, self._data[:0].copy()
        self._size = 0
        return whole
