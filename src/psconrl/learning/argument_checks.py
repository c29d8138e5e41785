"""Checks of the values that a user or a file gives to an agent. Each error says what to repair.

Values from a file are checked like those from a user: compiled loops do not check their arrays, so that a wrong index
would make them read or write outside of these.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Bools, Floats
from psconrl.base.caps import LARGEST_COST, MOST_ROUNDS
from psconrl.base.escaping import quoted
from psconrl.errors import AgentError, ModelError, PsconrlError, unknown_name
from psconrl.model.matrices import divided_rows, stored
from psconrl.model.transition import Transition
from psconrl.model.validation import as_floats, copied_matrix, in_range, wanted

CONSTANT_SETS = ("practical", "theory")


def is_whole(value: object) -> TypeGuard[int]:
    """True for an integer. Booleans do not count."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_index(value: Any, size: int) -> bool:
    """True for an integer from 0 to size - 1."""
    return is_whole(value) and bool(0 <= value < size)


def as_count(value: Any, what: str, error: type[PsconrlError] = AgentError) -> int:
    """Return a positive integer, or raise an error that names ``what``."""
    if not is_whole(value) or value < 1:
        raise error(f"{what} must be a whole number from 1 on; got {quoted(value)}")
    if value > MOST_ROUNDS:
        raise error(f"{what} must be at most {MOST_ROUNDS:,}; got {value}")
    return int(value)


def as_number(
    value: Any, what: str, wanted: str = "a finite number", fits: Callable[[float], bool] = lambda x: True
) -> float:
    """Return a finite number that ``fits``, or raise an error. Booleans, text and arrays are not numbers."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not abs(value) <= sys.float_info.max or not fits(value):
        raise AgentError(f"{what} must be {wanted}; got {quoted(value)}")
    return float(value)


def as_positive(value: Any, what: str) -> float:
    """Return a positive number."""
    return as_number(value, what, "a positive number", lambda x: x > 0)


def as_nonnegative(value: Any, what: str) -> float:
    """Return a number from 0 on."""
    return as_number(value, what, "a number from 0 on", lambda x: x >= 0)


def as_fraction(value: Any, what: str) -> float:
    """Return a number above 0 and at most 1."""
    return as_number(value, what, "a number above 0 and at most 1", lambda x: 0 < x <= 1)


def as_failure_probability(delta: Any) -> float:
    """Return a number strictly between 0 and 1."""
    return as_number(delta, "delta", "a number strictly between 0 and 1", lambda x: 0 < x < 1)


def as_flag(value: Any, what: str) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise AgentError(f"{what} must be True or False; got {quoted(value)}")
    return bool(value)


def as_constants(value: Any) -> str:
    """Return which constants of an algorithm to use, "practical" or "theory"."""
    if value not in CONSTANT_SETS:
        raise AgentError(unknown_name("constants", value, CONSTANT_SETS))
    return str(value)


def as_numbers(values: ArrayLike, what: str) -> Floats:
    """Return an array of floats, or raise an error that names ``what``. Text is refused, even if it looks numeric."""
    try:
        return as_floats(values, what)
    except ModelError:
        raise AgentError(f"{what} must be numbers, in a list or an array; got {quoted(values)}") from None


def as_costs(values: ArrayLike, what: str) -> Floats:
    """Return numbers that can be costs or thresholds: finite, and small enough for their sums to be finite."""
    array = as_numbers(values, what)
    if not in_range(array).all():
        first = float(array[~in_range(array)].flat[0])
        raise AgentError(f"{what} must be {wanted(first)}; got {array.tolist() if array.size <= 8 else first}")
    return array


def as_ranges(values: ArrayLike, n_costs: int) -> Floats:
    """Return the lowest and the highest value of every cost, (m+1, 2)."""
    ranges = as_costs(values, "ranges").copy()
    if ranges.shape != (n_costs, 2) or not (ranges[:, 0] < ranges[:, 1]).all():
        raise AgentError(
            f"ranges must hold the lowest and the highest of each of {n_costs} costs; got {quoted(values)}"
        )
    return ranges


def as_optimistic_cost(cost: Any) -> float | None:
    """Return the least objective of a step, as a cost; it counts as one observation of every pair."""
    if cost is None:
        return None
    size = f"a finite number up to {LARGEST_COST:g} in size, or None"
    return as_number(cost, "optimistic_cost", size, lambda x: abs(x) <= LARGEST_COST)


def as_amounts(values: Any, what: str, n: int) -> Floats:
    """Return a nonnegative number, or n of them: one per threshold."""
    amounts = as_numbers(values, what)
    flag = isinstance(values, bool) or np.asarray(values).dtype == np.bool_
    if flag or amounts.shape not in ((), (n,)) or not (np.isfinite(amounts) & (amounts >= 0)).all():
        raise AgentError(f"{what} must be a number from 0 on, or one per threshold ({n}); got {quoted(values)}")
    return amounts


def as_gap(values: Any, n: int) -> Floats:
    """Return a Slater gap: a positive number, or one per threshold."""
    gap = as_numbers(values, "gap")
    flag = isinstance(values, bool) or np.asarray(values).dtype == np.bool_
    if flag or gap.shape not in ((), (n,)) or not (np.isfinite(gap) & (gap > 0)).all():
        raise AgentError(f"gap must be a positive number, or one per threshold ({n}); got {quoted(values)}")
    return gap.copy()


def as_weight(values: Any, what: str, n_states: int, n_actions: int) -> float | Floats:
    """Return a weight in observations: a nonnegative number, or one for every pair, (S, A)."""
    weight = as_numbers(values, what)
    if (
        isinstance(values, bool)
        or weight.shape not in ((), (n_states, n_actions))
        or not (np.isfinite(weight) & (weight >= 0)).all()
    ):
        shape = (n_states, n_actions)
        raise AgentError(f"{what} must be a finite number, not negative, or one for every pair, (S, A) = {shape}")
    return weight.copy() if weight.ndim else float(weight)


def as_distributions(policy: Any, what: str, n_states: int, n_actions: int) -> Floats:
    """Return a checked copy of a policy (S, A): a distribution over the actions for every state."""
    distributions = as_numbers(policy, what).copy()
    if distributions.shape != (n_states, n_actions):
        raise AgentError(f"{what} must have shape (S, A) = {(n_states, n_actions)}; got {distributions.shape}")
    if not (distributions >= 0).all() or not np.allclose(distributions.sum(axis=1), 1.0):
        raise AgentError(f"{what} must hold a distribution over {n_actions} actions for each of {n_states} states")
    return distributions


def need_all_actions(available: Bools) -> None:
    """Raise an error unless ``available`` (S, A) is all true: agents need every action in every state."""
    if not available.all():
        raise AgentError("agents need models in which every action is available in every state")


def checked_distributions(given: Any, n_states: int, n_actions: int) -> Transition:
    """Return transitions drawn by a user's belief, dense or sparse, checked and normalised for the planner."""
    shape, what = (n_states * n_actions, n_states), "what a belief samples"
    matrix = given.matrix if isinstance(given, Transition) else given
    distributions = copied_matrix(matrix, what, AgentError)
    if distributions.shape != shape:
        raise AgentError(f"{what} must have shape (S*A, S) = {shape}; got {distributions.shape}")
    sums = np.asarray(distributions.sum(axis=1)).ravel()
    if not (stored(distributions) >= 0).all() or not np.allclose(sums, 1.0):
        raise AgentError(f"{what} must be a distribution over next states for every pair")
    return Transition.of(divided_rows(distributions, sums))
