"""Gymnasium spaces, with their elements numbered from 0 on.

A ``Discrete`` space is shifted to begin at 0; ``MultiDiscrete``, ``MultiBinary``, a ``Box`` of whole numbers, and
``Tuple`` or ``Dict`` of such, are numbered in row-major order, the last component varying fastest. Spaces that are too
large for that, or of another kind, are numbered as their elements appear.

Some environments return observations outside the space that they declare. If the space has several components, so that
its numbers mean nothing to a user, such an observation takes the number of one that has not occurred, with a warning.
"""

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError

MAX_SIZE = 10**6  # tables of more states do not fit into memory
MOST_MET = 1_000  # observations that are numbered as they appear, unless more are requested


class Numbering:
    """Numbering of the elements of a finite space.

    >>> hands = Numbering(spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2))), "observations")
    >>> hands.size, hands.number((12, 10, 1)), hands.element(285)
    (704, 285, (12, 10, 1))
    """

    def __init__(self, space: Any, what: str) -> None:
        self.space, self.what = space, what
        self._sizes = _sizes(space)
        if self._sizes is None:
            raise ModelError(
                f"{what} must be Discrete, MultiDiscrete, MultiBinary, a Box of whole numbers, or a Tuple or Dict of "
                f"such; got {space}. Wrap the environment in one that turns them into a number"
            )
        self.size = math.prod(self._sizes)
        if self.size > MAX_SIZE:
            raise ModelError(f"{what} must have at most {MAX_SIZE:,} values; {space} has {self.size:,}")

    def number(self, element: Any) -> int:
        """Return the number of an element."""
        return self._number(self._digits_of(element), element)

    def _digits_of(self, element: Any) -> list[int]:
        try:
            return list(_digits(self.space, element))
        except (TypeError, ValueError, KeyError):
            raise self._outside(element) from None

    def _number(self, digits: list[int], element: Any) -> int:
        number = 0
        for digit, size in zip(digits, self._sizes or [], strict=True):
            if not 0 <= digit < size:
                raise self._outside(element)
            number = number * size + digit
        return number

    def _outside(self, element: Any) -> ModelError:
        return ModelError(f"{self.what}: {quoted(element)} does not lie in {self.space}")

    def element(self, number: int) -> Any:
        """Return the element with a number."""
        if not 0 <= number < self.size:
            raise ModelError(f"{self.what} are numbered from 0 to {self.size - 1}; got {quoted(number)}")
        digits = []
        for size in reversed(self._sizes or []):
            number, digit = divmod(int(number), size)
            digits.append(digit)
        return _element(self.space, iter(reversed(digits)))


class Forgiving(Numbering):
    """Numbering of a space of several components, some of which may exceed their declared range.

    >>> flags = Forgiving(spaces.MultiBinary(2), "observations")
    >>> with warnings.catch_warnings(action="ignore"):
    ...     flags.number([0, 2]), flags.number([0, 1]), flags.number([1, 1]), flags.element(3)
    (3, 1, 2, [0, 2])
    """

    def __init__(self, space: Any, what: str) -> None:
        super().__init__(space, what)
        self._met: set[int] = set()  # numbers in use
        self._moved: dict[tuple[int, ...], int] = {}  # observations whose number is not their own, and that number
        self._strangers: dict[int, Any] = {}  # observations outside the space, by number

    def number(self, element: Any) -> int:
        """Return the number of an observation; one that is outside, or whose own number is taken, gets a free one."""
        digits = self._digits_of(element)
        try:
            number = self._number(digits, element)
        except ModelError as error:
            if not self._moved:
                warnings.warn(f"{error}; it takes the number of one that was not met", UserWarning, stacklevel=2)
            number = -1
        if number < 0 or number in self._strangers:
            number = self._moved.setdefault(tuple(digits), -1)
            if number < 0:
                number = self._free()
                self._moved[tuple(digits)] = number
                self._strangers[number] = element
        self._met.add(number)
        return number

    def _free(self) -> int:
        for number in range(self.size - 1, -1, -1):
            if number not in self._met:
                return number
        raise ModelError(
            f"more than {self.size:,} different {self.what} were met, more than {self.space} has; say how many there "
            "may be (most_states)"
        )

    def element(self, number: int) -> Any:
        """Return the element with a number."""
        return self._strangers[number] if number in self._strangers else super().element(number)


class Appearing:
    """Observations numbered in the order in which they appear, up to a maximum.

    >>> met = Appearing(2)
    >>> met.number({"image": np.zeros((2, 2)), "mission": "go"}), met.number("home"), met.number("home")
    (0, 1, 1)
    >>> met.element(1)
    'home'
    """

    def __init__(self, size: int = MOST_MET) -> None:
        self.size = size
        self._numbers: dict[Any, int] = {}
        self._elements: list[Any] = []

    def number(self, element: Any) -> int:
        """Return the number of an observation, a new one if it has none."""
        key = _key(element)
        number = self._numbers.get(key)
        if number is None:
            number = len(self._elements)
            if number == self.size:
                raise ModelError(
                    f"more than {self.size:,} different observations were met; say how many there may be "
                    "(most_states), or wrap the environment in one that turns them into fewer"
                )
            self._numbers[key] = number
            self._elements.append(element)
        return number

    def element(self, number: int) -> Any:
        """Return the observation with a number."""
        if not 0 <= number < len(self._elements):
            raise ModelError(f"{len(self._elements)} observations were met, numbered from 0 on; got {quoted(number)}")
        return self._elements[number]


def numbering_of(space: Any, what: str, most: int | None = None) -> Numbering | Appearing:
    """Return a numbering of a space: in advance if it is not too large, else as observations appear.

    ``most``: the largest number of observations; if given, they are numbered as they appear, for every space.
    """
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_SIZE):
        raise ModelError(f"most_states must be a whole number from 1 to {MAX_SIZE:,}; got {quoted(most)}")
    sizes = _sizes(space) if most is None else None
    if sizes is not None and math.prod(sizes) <= MAX_SIZE:
        return Numbering(space, what) if len(sizes) == 1 else Forgiving(space, what)
    if isinstance(space, spaces.Box) and not np.issubdtype(space.dtype, np.integer) and most is None:
        raise ModelError(
            f"{what} must be finitely many, and {space} has infinitely many; wrap the environment in one that rounds "
            "them, or say how many different ones there may be (most_states)"
        )
    return Appearing(MOST_MET if most is None else most)


def _key(element: Any) -> Any:
    """Return a hashable key that is the same for equal observations."""
    if isinstance(element, np.ndarray):
        return (element.shape, element.dtype.str, element.tobytes())
    if isinstance(element, dict):
        return tuple((key, _key(element[key])) for key in sorted(element, key=str))
    if isinstance(element, list | tuple):
        return tuple(_key(part) for part in element)
    try:
        hash(element)
    except TypeError:
        raise ModelError(
            f"observations must be numbers, arrays, text, or tables and lists of such; got {type(element).__name__}"
        ) from None
    return element


def _sizes(space: Any) -> list[int] | None:
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer):
        return [int(high) - int(low) + 1 for low, high in zip(space.low.ravel(), space.high.ravel(), strict=True)]
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
        values = np.asarray(element)
        if values.shape != space.shape or values.dtype.kind not in "iub":
            raise TypeError
        yield from (int(d) - int(first) for d, first in zip(values.ravel(), _first(space).ravel(), strict=True))


def _element(space: Any, digits: Iterator[int]) -> Any:
    if isinstance(space, spaces.Discrete):
        return next(digits) + int(space.start)
    if isinstance(space, spaces.Tuple):
        return tuple(_element(part, digits) for part in space.spaces)
    if isinstance(space, spaces.Dict):
        return {key: _element(part, digits) for key, part in space.spaces.items()}
    values = [next(digits) + int(first) for first in _first(space).ravel()]
    return np.array(values, dtype=space.dtype).reshape(space.shape)


def _first(space: Any) -> Any:
    """Return the smallest value of every component."""
    if isinstance(space, spaces.Box):
        return space.low
    return np.asarray(getattr(space, "start", np.zeros(space.shape, dtype=np.int64)))
