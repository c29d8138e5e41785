"""How much a file or an option may ask for. Checked before memory is taken, so that a refusal is one line, at once.

A file of a hundred bytes can claim a billion states, and half a megabyte can unpack to gigabytes. What is allowed is
``MEMORY_GB`` for any single thing: a model, an agent, the runs of a sweep. Working on it takes a few times as much.
On a larger machine set the environment variable ``PSCONRL_MEMORY_GB``.
"""

import math
import os

from psconrl.errors import ConfigError, ModelError, PsconrlError

VARIABLE = "PSCONRL_MEMORY_GB"
MEMORY_GB = 1.0  # sparse, that is some 5,000,000 state-action pairs of ten successors; dense, 5,000 states of 5 actions
MOST_ROUNDS = 10**12  # a day and more at ten million rounds a second; all counts and checkpoints are exact far beyond
# Sums of any number of such costs, and the squares of the sums, stay within the range of doubles.
LARGEST_COST = 1e100
MOST_TEXT = 1_000_000  # bytes of a spec; the longest of ours has 4,000
MOST_NESTED = 20  # levels of a spec; a prior is an array of three
MOST_PARTS = 100  # of a dotted key; Python's reader takes a minute over 30,000

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def need(size: float, what: str, error: type[PsconrlError]) -> None:
    """Refuse what would take more bytes than are allowed.

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
    """Refuse a dense model that would take more memory than is allowed."""
    need(
        _product(8, n_states, n_states, n_actions),
        f"a model of {n_states:,} states and {n_actions:,} actions",
        ModelError,
    )


def need_sparse(n_states: int, n_actions: int, n_successors: int) -> None:
    """Refuse a sparse model that would take more memory than is allowed."""
    size = _product(20, n_states, n_actions, n_successors)  # entries with their places, and what belongs to their rows
    need(size, f"a model of {n_states:,} states and {n_actions:,} actions", ModelError)


def _product(*factors: int) -> float:
    """What may be beyond all doubles."""
    try:
        return float(math.prod(int(factor) for factor in factors))
    except OverflowError:
        return math.inf


def memory_gb() -> float:
    """What a single thing may take, in GB."""
    given = os.environ.get(VARIABLE, "")
    try:
        value = float(given or MEMORY_GB)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise ConfigError(f"{VARIABLE} must be a positive number of gigabytes; got {given!r}")
    return value


def _shown(size: float) -> str:
    if math.isinf(size):
        return "more than can be counted"
    power = min(int(math.log10(max(size, 1.0)) // 3), len(_UNITS) - 1)
    return f"{size / 1000**power:.3g} {_UNITS[power]}"
