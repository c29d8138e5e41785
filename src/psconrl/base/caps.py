"""Caps on what a file or an option may request. They are checked before memory is allocated, so that errors are quick.

A file of a hundred bytes can claim a billion states, and half a megabyte can unpack to gigabytes. The cap is
``MEMORY_GB`` for any single object: a model, an agent, the runs of a sweep. Working on it takes a few times as much.
On a larger machine set the environment variable ``PSCONRL_MEMORY_GB``.
"""

import math
import os

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, ModelError, PsconrlError

VARIABLE = "PSCONRL_MEMORY_GB"
MEMORY_GB = 1.0  # sparse: about 5,000,000 state-action pairs of ten successors; dense: 5,000 states of 5 actions
MOST_ROUNDS = 10**12  # more than a day at ten million rounds a second; counts and checkpoints are exact far beyond
# Sums of any number of such costs, and the squares of the sums, stay within the range of doubles.
LARGEST_COST = 1e100
MOST_TEXT = 1_000_000  # bytes of a spec; the longest one shipped has 4,000
MOST_NESTED = 20  # nesting levels of a spec; a prior is an array of three
MOST_PARTS = 100  # parts of a dotted key; Python's reader takes a minute for 30,000

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def need(size: float, what: str, error: type[PsconrlError]) -> None:
    """Raise an error if ``what`` would take more memory than is allowed; ``size`` is in bytes.

    >>> need(3e9, "a model of 2,000 states", ConfigError)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    psconrl.errors.ConfigError: a model of 2,000 states takes 3 GB, more than 1 GB; if ...PSCONRL_MEMORY_GB
    """
    allowed = 1e9 * memory_gb()
    if size > allowed:
        raise error(
            f"{what} takes {_shown(size)}, more than {_shown(allowed)}; if this machine has several times as much, "
            f"set {VARIABLE}"
        )


def need_dense(n_states: int, n_actions: int) -> None:
    """Raise an error if a dense model would take more memory than is allowed."""
    need(
        _product(8, n_states, n_states, n_actions),
        f"a model of {n_states:,} states and {n_actions:,} actions",
        ModelError,
    )


def need_sparse(n_states: int, n_actions: int, n_successors: int) -> None:
    """Raise an error if a sparse model would take more memory than is allowed."""
    size = _product(20, n_states, n_actions, n_successors)  # entries with their indices, and data per row
    need(size, f"a model of {n_states:,} states and {n_actions:,} actions", ModelError)


def _product(*factors: int) -> float:
    """Return the product as a float, infinite if it overflows."""
    try:
        return float(math.prod(int(factor) for factor in factors))
    except OverflowError:
        return math.inf


def memory_gb() -> float:
    """Return the memory that a single object may take, in GB."""
    given = os.environ.get(VARIABLE, "")
    try:
        value = float(given or MEMORY_GB)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise ConfigError(f"{VARIABLE} must be a positive number of gigabytes; got {quoted(given)}")
    return value


def _shown(size: float) -> str:
    if math.isinf(size):
        return "more than can be counted"
    power = min(int(math.log10(max(size, 1.0)) // 3), len(_UNITS) - 1)
    return f"{size / 1000**power:.3g} {_UNITS[power]}"
