"""Finite Gymnasium spaces, their elements numbered from 0 on.

A ``Discrete`` space is shifted to begin at 0; ``MultiDiscrete``, ``MultiBinary``, and ``Tuple`` or ``Dict`` of such,
are numbered like the digits of a clock, the last one running fastest.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from psconrl.errors import ModelError

MAX_SIZE = 10**6  # tables of more states do not fit into memory


class Numbering:
    """The elements of a finite space as numbers, and back.

    >>> hands = Numbering(spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2))), "observations")
    >>> hands.size, hands.number((12, 10, 1)), hands.element(285)
    (704, 285, (12, 10, 1))
    """

    def __init__(self, space: Any, what: str) -> None:
        self.space, self.what = space, what
        self._sizes = _sizes(space)
        if self._sizes is None:
            raise ModelError(
                f"{what} must be Discrete, MultiDiscrete, or a Tuple or Dict of such; got {space}. "
                "Wrap the environment in one that turns them into a number (gymnasium.ObservationWrapper)"
            )
        self.size = math.prod(self._sizes)
        if self.size > MAX_SIZE:
            raise ModelError(f"{what} must have at most {MAX_SIZE:,} values; {space} has {self.size:,}")

    def number(self, element: Any) -> int:
        """The number of an element."""
        try:
            digits = list(_digits(self.space, element))
        except (TypeError, ValueError, KeyError):
            digits = []
        sizes = self._sizes or []
        if len(digits) != len(sizes) or not all(0 <= d < n for d, n in zip(digits, sizes, strict=True)):
            raise ModelError(f"{self.what}: {element!r} does not lie in {self.space}")
        number = 0
        for digit, size in zip(digits, sizes, strict=True):
            number = number * size + digit
        return number

    def element(self, number: int) -> Any:
        """The element with a number."""
        if not 0 <= number < self.size:
            raise ModelError(f"{self.what} are numbered from 0 to {self.size - 1}; got {number!r}")
        digits = []
        for size in reversed(self._sizes or []):
            number, digit = divmod(int(number), size)
            digits.append(digit)
        return _element(self.space, iter(reversed(digits)))


def _sizes(space: Any) -> list[int] | None:
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    if isinstance(space, spaces.Tuple | spaces.Dict):
        parts = [_sizes(part) for part in _parts(space)]
        return None if any(part is None for part in parts) else [n for part in parts for n in part or []]
    return None


def _parts(space: Any) -> list[Any]:
    return list(space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces)


def _digits(space: Any, element: Any) -> Iterator[int]:
    if isinstance(space, spaces.Discrete):
        value = np.asarray(element)
        if value.size != 1 or value.dtype.kind not in "iub":
            raise TypeError
        yield int(value.item()) - int(space.start)
    elif isinstance(space, spaces.Tuple | spaces.Dict):
        values = [element[key] for key in space.spaces] if isinstance(space, spaces.Dict) else element
        for part, value in zip(_parts(space), values, strict=True):
            yield from _digits(part, value)
    else:
        start = getattr(space, "start", 0)
        yield from (int(d) for d in (np.asarray(element) - start).ravel())


def _element(space: Any, digits: Iterator[int]) -> Any:
    if isinstance(space, spaces.Discrete):
        return next(digits) + int(space.start)
    if isinstance(space, spaces.Tuple):
        return tuple(_element(part, digits) for part in space.spaces)
    if isinstance(space, spaces.Dict):
        return {key: _element(part, digits) for key, part in space.spaces.items()}
    count = math.prod(space.shape)
    values = np.array([next(digits) for _ in range(count)], dtype=space.dtype).reshape(space.shape)
    return values + getattr(space, "start", np.zeros((), space.dtype))
