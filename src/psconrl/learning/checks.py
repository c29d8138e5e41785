"""Reading what a user hands to an agent: whole numbers and arrays, each with the error that says what to repair."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.errors import AgentError, ModelError
from psconrl.model.reading import as_floats, in_range, wanted


def is_index(value: object, size: int) -> bool:
    """Is this a whole number from 0 to size - 1? True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(0 <= value < size)


def as_count(value: Any, what: str) -> int:
    """A whole number from 1 on, or an error that names what was wrong."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise AgentError(f"{what} must be a whole number from 1 on; got {value!r}")
    return int(value)


def as_numbers(values: ArrayLike, what: str) -> Floats:
    """An array of floats, or an error that names what was wrong. Text is no number, even if it looks like one."""
    try:
        return as_floats(values, what)
    except ModelError:
        raise AgentError(f"{what} must be numbers, in a list or an array; got {values!r}") from None


def as_costs(values: ArrayLike, what: str) -> Floats:
    """Numbers that can be costs or limits: finite, and not so large that sums of them are not."""
    array = as_numbers(values, what)
    if not in_range(array).all():
        first = float(array[~in_range(array)].flat[0])
        raise AgentError(f"{what} must be {wanted(first)}; got {array.tolist() if array.size <= 8 else first}")
    return array


def as_share(value: Any, what: str) -> float:
    """A number from 0 to 1."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise AgentError(f"{what} must be a number from 0 to 1; got {value!r}")
    return float(value)
