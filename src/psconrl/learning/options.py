"""The options that several agents share, read and checked: each mistake gets one line that names the option."""

import math
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import AgentError
from psconrl.learning.checks import as_count, as_numbers
from psconrl.limits import LARGEST_COST


def as_number(value: Any, what: str, wanted: str = "a finite number") -> float:
    """One finite number; True, text and arrays are none."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise AgentError(f"{what} must be {wanted}; got {value!r}")
    return float(value)


def as_positive(value: Any, what: str) -> float:
    """A number above 0."""
    number = as_number(value, what, "a positive number")
    if number <= 0:
        raise AgentError(f"{what} must be a positive number; got {value!r}")
    return number


def as_amounts(values: Any, what: str, n: int) -> Floats:
    """A number from 0 on, or n of them: one per threshold."""
    amounts = as_numbers(values, what)
    flag = isinstance(values, bool) or np.asarray(values).dtype == np.bool_
    if flag or amounts.shape not in ((), (n,)) or not (np.isfinite(amounts) & (amounts >= 0)).all():
        raise AgentError(f"{what} must be a number from 0 on, or one per threshold ({n}); got {values!r}")
    return amounts


def as_laws(policy: Any, what: str, n_states: int, n_actions: int) -> Floats:
    """A policy (S, A): a distribution over the actions for every state."""
    laws = as_numbers(policy, what).copy()
    if laws.shape != (n_states, n_actions):
        raise AgentError(f"{what} must have shape (S, A) = {(n_states, n_actions)}; got {laws.shape}")
    if not (laws >= 0).all() or not np.allclose(laws.sum(axis=1), 1.0):
        raise AgentError(f"{what} must hold a distribution over {n_actions} actions for each of {n_states} states")
    return laws


def check_delta(delta: Any) -> float:
    """A probability of failure."""
    wanted = "a number strictly between 0 and 1"
    number = as_number(delta, "delta", wanted)
    if not 0.0 < number < 1.0:
        raise AgentError(f"delta must be {wanted}; got {delta!r}")
    return number


def check_coef(coef: Any) -> float | None:
    """A coefficient of the experiments' radius, or None for the theory's."""
    wanted = "a number from 0 on, or None for the radius of the theory"
    if coef is None:
        return None
    number = as_number(coef, "coef", wanted)
    if number < 0:
        raise AgentError(f"coef must be {wanted}; got {coef!r}")
    return number


def check_exponent(exponent: Any) -> float:
    """Of the horizon, for the length of an episode."""
    wanted = "a number above 0 and at most 1"
    number = as_number(exponent, "exponent", wanted)
    if not 0 < number <= 1:
        raise AgentError(f"exponent must be {wanted}; got {exponent!r}")
    return number


def check_horizon(horizon: Any) -> int:
    """The number of rounds that an algorithm must know beforehand."""
    return as_count(horizon, "horizon")


def check_optimistic_cost(cost: Any) -> float | None:
    """The least objective that a step can have, as a cost; it counts as one observation of every pair."""
    wanted = f"a finite number up to {LARGEST_COST:g} in size, or None"
    if cost is None:
        return None
    number = as_number(cost, "optimistic_cost", wanted)
    if abs(number) > LARGEST_COST:
        raise AgentError(f"optimistic_cost must be {wanted}; got {cost!r}")
    return number
