"""Reading what a user or a file hands to an agent, each with the error that says what to repair.

What a file holds is checked like what a user hands in: compiled loops trust their arrays, and a number out of place
would make them read and write wherever it points.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.arrays import Floats, Ints
from psconrl.errors import AgentError, ModelError
from psconrl.limits import MOST_ROUNDS
from psconrl.model.validation import as_floats, in_range, wanted


def is_index(value: object, size: int) -> bool:
    """Is this a whole number from 0 to size - 1? True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(0 <= value < size)


def as_count(value: Any, what: str) -> int:
    """A whole number from 1 on, or an error that names what was wrong."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise AgentError(f"{what} must be a whole number from 1 on; got {value!r}")
    if value > MOST_ROUNDS:
        raise AgentError(f"{what} must be at most {MOST_ROUNDS:,}; got {value}")
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


def saved_floats(value: Any, shape: tuple[int, ...], what: str) -> Floats:
    """An array from a file: finite numbers in the shape they must have."""
    array = np.array(as_numbers(value, what), order="C")
    if array.shape != shape or not np.isfinite(array).all():
        raise AgentError(f"{what} must be finite numbers of shape {shape}")
    return array


def saved_policies(values: Iterable[Any], n_states: int, n_actions: int) -> tuple[Ints, ...]:
    """Deterministic policies from a file: an action for every state."""
    policies = []
    for value in values:
        actions = saved_floats(value, (n_states,), "a policy")
        if not np.isin(actions, np.arange(n_actions)).all():
            raise AgentError(f"a policy must hold actions from 0 to {n_actions - 1}")
        policies.append(actions.astype(np.int64))
    return tuple(policies)
