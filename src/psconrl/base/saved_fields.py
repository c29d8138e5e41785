"""What a saved agent or run may hold. Every field has a kind: its type, shape and range, checked when the file is read.

A *kind* is a function that takes a value from a file and returns it in the form that the code works with, or raises a
``FieldError``. A description maps the names of fields to kinds. An array is as long as the file, so that it is checked
against the sizes already known; what follows from a number in a file is only allocated once the number is checked.

>>> read_fields({"rounds": -3}, {"rounds": integer()})
Traceback (most recent call last):
psconrl.base.saved_fields.FieldError: rounds: must be a whole number from 0 to 1,000,000,000,000; is -3
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import MOST_ROUNDS
from psconrl.base.escaping import shortened
from psconrl.errors import AgentError, PsconrlError

Kind: TypeAlias = Callable[[Any], Any]
Shape: TypeAlias = tuple[int | None, ...]  # None: as long as it is

SUM_TOL = 1e-6  # largest deviation of the sum of probabilities from 1; playing divides by the sum
LONGEST_VALUE, LONGEST_MESSAGE = 60, 240  # characters of a value in a message, and of the message
EXACT_WHOLE = 2.0**53  # whole numbers up to this are exact as floats
# Errors that constructors, and a user's own code, raise on a damaged file.
DAMAGE = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class FieldError(AgentError):
    """A field of a file does not hold what it should."""

    def __init__(self, problem: str, path: tuple[str, ...] = ()) -> None:
        self.problem, self.path = shortened(problem.partition("\n")[0], LONGEST_MESSAGE), path
        super().__init__(f"{'/'.join(path)}: {self.problem}" if path else self.problem)


@contextmanager
def in_field(name: str) -> Iterator[None]:
    """Turn errors in reading a field into ones that name it."""
    try:
        yield
    except FieldError as error:
        raise FieldError(error.problem, (name, *error.path)) from None
    except PsconrlError as error:
        raise FieldError(str(error), (name,)) from None
    except DAMAGE as error:
        raise FieldError(f"damaged ({type(error).__name__})", (name,)) from None


def read_fields(saved: Any, kinds: Mapping[str, Kind], may_be_missing: Collection[str] = ()) -> dict[str, Any]:
    """Return the described fields of a table. Those that may be missing, and are, are left out."""
    if not isinstance(saved, Mapping):
        raise FieldError(f"must be a table; is {brief(saved)}")
    found = {}
    for name, kind in kinds.items():
        if name in saved:
            with in_field(name):
                found[name] = kind(saved[name])
        elif name not in may_be_missing:
            raise FieldError("is missing", (name,))
    return found


def need_that(holds: Any, problem: str) -> None:
    """Raise an error unless a condition on several fields holds."""
    if not holds:
        raise FieldError(problem)


def integer(low: int = 0, high: int = MOST_ROUNDS) -> Kind:
    """Return the kind of an integer within bounds."""

    def read(value: Any) -> int:
        fits = isinstance(value, int | np.integer) and not isinstance(value, bool) and low <= value <= high
        need_that(fits, f"must be a whole number from {low:,} to {high:,}; is {brief(value)}")
        return int(value)

    return read


def real(low: float = -math.inf, high: float = math.inf, infinite: bool = False, unknown: bool = False) -> Kind:
    """Return the kind of a number within bounds; ``unknown``: whether it may be nan."""

    def read(value: Any) -> float:
        real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        need_that(real and _fits(np.array(value), low, high, infinite, unknown), f"must be {wanted}; is {brief(value)}")
        return float(value)

    wanted = _wanted("a", "number", low, high, infinite)
    return read


def flag(value: Any) -> bool:
    """Read True or False."""
    need_that(isinstance(value, bool | np.bool_), f"must be true or false; is {brief(value)}")
    return bool(value)


def text(*choices: str) -> Kind:
    """Return the kind of a text, one of the choices if there are any."""

    def read(value: Any) -> str:
        wanted = f"one of {', '.join(choices)}" if choices else "a text"
        need_that(isinstance(value, str) and (not choices or value in choices), f"must be {wanted}; is {brief(value)}")
        return str(value)

    return read


def maybe(kind: Kind) -> Kind:
    """Return the kind of a value that may be missing: None."""
    return lambda value: None if value is None else kind(value)


def listed(kind: Kind, length: int | None = None) -> Kind:
    """Return the kind of a list whose elements are of one kind."""

    def read(value: Any) -> list[Any]:
        fits = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
        need_that(fits and length in (None, len(value)), f"must be a list{of_length}; is {brief(value)}")
        found = []
        for place, element in enumerate(value):
            with in_field(str(place)):
                found.append(kind(element))
        return found

    of_length = "" if length is None else f" of {length}"
    return read


def table_of(kind: Kind) -> Kind:
    """Return the kind of a table with any names, whose values are of one kind."""
    return lambda value: read_fields(value, dict.fromkeys(value, kind) if isinstance(value, Mapping) else {})


def fields(kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of a table with the described fields."""
    return lambda value: read_fields(value, kinds)


def reals(
    shape: Shape, low: float = -math.inf, high: float = math.inf, infinite: bool = False, unknown: bool = False
) -> Kind:
    """Return the kind of an array of numbers within bounds; ``unknown``: whether some may be nan."""

    def read(value: Any) -> Floats:
        array = _numbers(value, shape)
        found: Floats = np.array(array, dtype=np.float64, order="C")
        fits = _fits(found, low, high, infinite, unknown)
        need_that(fits.all(), f"must hold {wanted}; has {_first(found, ~fits)}")
        return found

    wanted = _wanted("", "numbers", low, high, infinite)
    return read


def integers(shape: Shape, low: int = 0, high: int = MOST_ROUNDS) -> Kind:
    """Return the kind of an array of integers within bounds."""

    def read(value: Any) -> Ints:
        array = _numbers(value, shape)
        fits = (array >= low) & (array <= high)
        if array.dtype.kind == "f":
            fits = fits & (np.abs(array) <= EXACT_WHOLE) & (np.floor(array) == array)
        need_that(fits.all(), f"must hold whole numbers from {low:,} to {high:,}; has {_first(array, ~fits)}")
        found: Ints = np.array(array, dtype=np.int64, order="C")
        return found

    return read


def flags(shape: Shape) -> Kind:
    """Return the kind of an array of True and False, or of 1 and 0."""
    return lambda value: integers(shape, 0, 1)(value).astype(bool)


def listing(length: int | None = None, most: int | None = None) -> Kind:
    """Return the kind of an array of values, numbers or texts, of a length or of at most some."""

    def read(value: Any) -> NDArray[Any]:
        fits = isinstance(value, np.ndarray) and value.dtype.kind in "biufU" and value.ndim == 1
        need_that(fits and length in (None, len(value)), f"must be an array of{wanted} values; is {brief(value)}")
        need_that(most is None or len(value) <= most, f"must have at most {most} values; has {len(value)}")
        return np.asarray(value)

    wanted = "" if length is None else f" {length}"
    return read


def distributions(shape: Shape) -> Kind:
    """Return the kind of an array whose last axis has distributions."""

    def read(value: Any) -> Floats:
        found: Floats = reals(shape, 0.0, 1.0 + SUM_TOL)(value)
        sums = found.sum(axis=-1)
        wrong = ~(np.abs(sums - 1.0) <= SUM_TOL)
        need_that(not wrong.any(), f"must hold probabilities that sum to 1; some sum to {_first(sums, wrong)}")
        return found

    return read


def brief(value: Any) -> str:
    """Return a value for a message: shortened, an array by its type and shape.

    >>> brief(np.zeros((2, 3))), brief(10**30), brief({"a": 1, "b": 2})
    ('an array of float64, shape (2, 3)', '2^99 or more', 'a table of 2')
    """
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}, shape {value.shape}"
    if isinstance(value, Mapping):
        return f"a table of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > EXACT_WHOLE:
        return f"{'-' if value < 0 else ''}2^{abs(value).bit_length() - 1} or more"
    return shortened(repr(value), LONGEST_VALUE)


def _numbers(value: Any, shape: Shape) -> NDArray[Any]:
    """Return a value as an array of numbers of a shape."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths
        array = np.empty(0, dtype=object)
    fits = array.ndim == len(shape) and all(side in (None, own) for side, own in zip(shape, array.shape, strict=True))
    sides = ", ".join("any" if side is None else str(side) for side in shape)
    problem = f"must be an array of numbers, shape ({sides}{',' * (len(shape) == 1)}); is {brief(value)}"
    need_that(fits and array.dtype.kind in "biuf", problem)
    return array


def _fits(values: NDArray[Any], low: float, high: float, infinite: bool, unknown: bool) -> Bools:
    """Return which values are within bounds."""
    if values.dtype.kind == "O":  # integers beyond 64 bits
        return np.zeros(values.shape, dtype=bool)
    missing = np.isnan(values)
    fits = (values >= low) & (values <= high) & (infinite | np.isfinite(values))
    return np.asarray(np.where(missing, unknown, fits))


def _wanted(article: str, noun: str, low: float, high: float, infinite: bool) -> str:
    """Describe numbers within bounds."""
    kind = noun if infinite else f"finite {noun}"
    bounds = [f"from {low:g}" if low > -math.inf else "", f"up to {high:g}" if high < math.inf else ""]
    return " ".join(part for part in (article, kind, *bounds) if part)


def _first(values: NDArray[Any], wrong: Bools) -> str:
    """Return the first wrong value as text, of those there are."""
    return brief(values[wrong].flat[0].item()) if wrong.any() else ""
