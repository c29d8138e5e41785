"""Gymnasium's toy-text tables as continuing CMDPs.

``env.unwrapped.P[s][a]`` lists outcomes ``(probability, next state, reward, done)``. A state that ends an episode
leads, under every action, to a new start at reward 0 and cost 0, exactly as ``psconrl.continuing`` and
``psconrl.simulate`` play it. The table's own rows for such a state (a loop in FrozenLake, ordinary moves in
CliffWalking) are never played, and are not read. The state must determine whether the episode is over: a state that
ends it on some paths only is refused. Wrappers around the environment are ignored.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from psconrl.base.arrays import Bools, Floats, Ints, Matrix
from psconrl.base.sizes import TABLE_DENSE_ENTRIES
from psconrl.errors import ModelError
from psconrl.model.validation import as_floats, read_initial

RESETS = 50  # number of resets to find the start of an environment that does not declare it


class Outcomes(NamedTuple):
    """Outcomes of a table; those of one pair with the same next state are added up."""

    pair: Ints
    successor: Ints
    probability: Floats
    reward: Floats  # mean over the added outcomes
    ends: Bools  # True if the episode may end with it
    goes_on: Bools  # True if the episode may continue


class Table(NamedTuple):
    """The ingredients of a CMDP."""

    transition: Matrix
    reward: Any  # (S, A), or (S*A, S) if it depends on the next state
    costs: list[Any]
    initial: Floats


def read_table(env: Any, cost: Callable[[int, int, int], Any] | None, initial: Any) -> Table:
    """Return the continuing task of an environment with a table."""
    base = getattr(env, "unwrapped", env)
    table = getattr(base, "P", None)
    if not isinstance(table, Mapping | list | tuple) or not len(table):
        raise ModelError(
            f"{type(base).__name__} has no table P[state][action] of outcomes; to learn it by playing, "
            "hand psconrl.continuing(env, cost=...) to psconrl.simulate"
        )
    S = len(table)
    start = read_initial(_start(base, S) if initial is None else initial, S, None)
    found, A = _outcomes(table)
    over = _ends(found, S, A, start)
    lives = ~over[found.pair // A]
    pair, successor = found.pair[lives], found.successor[lives]
    costs = _costs(cost, pair, successor, A)
    restarts, starts = np.flatnonzero(np.repeat(over, A)), np.flatnonzero(start)
    rows = np.concatenate([pair, np.repeat(restarts, starts.size)])
    columns = np.concatenate([successor, np.tile(starts, restarts.size)])
    p = np.concatenate([found.probability[lives], np.tile(start[starts], restarts.size)])
    mass = np.maximum(np.bincount(rows, p, minlength=S * A), 1e-300)  # an empty row is refused by CMDP

    def layer(values: Floats) -> Any:
        whole = np.concatenate([values, np.zeros(rows.size - values.size)])
        mean = np.bincount(rows, whole * p, minlength=S * A) / mass
        if np.allclose(whole, mean[rows], rtol=1e-12, atol=0.0):
            return mean.reshape(S, A)
        return _matrix(whole, rows, columns, (S * A, S))

    transition = _matrix(p, rows, columns, (S * A, S))
    return Table(transition, layer(found.reward[lives]), [layer(c) for c in costs], start)


def cost_names(thresholds: Mapping[str, float], m: int) -> tuple[str, ...]:
    """Return names for the objective and m costs, taken from the names of the thresholds."""
    if len(thresholds) != m:
        raise ModelError(f"thresholds must have one entry per cost, {m} here; got {', '.join(map(repr, thresholds))}")
    return ("reward", *map(str, thresholds))


def _matrix(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Matrix:
    matrix = csr_array(coo_array((values, (rows, columns)), shape=shape))
    return matrix.toarray() if shape[0] * shape[1] <= TABLE_DENSE_ENTRIES else matrix


def _outcomes(table: Any) -> tuple[Outcomes, int]:
    """Return every outcome of positive probability, and the number of actions."""
    merged: dict[tuple[int, int], Floats] = {}
    s = 0
    try:
        A = len(table[0])
        for s in range(len(table)):
            if len(table[s]) != A:
                raise ModelError(f"P[{s}] must have {A} actions like P[0]; got {len(table[s])}")
            for a in range(A):
                for p, successor, reward, done in table[s][a]:
                    sums = merged.setdefault((s * A + a, int(successor)), np.zeros(3))
                    sums += float(p) * np.array([1.0, reward, bool(done)])
    except ModelError:
        raise
    except (KeyError, IndexError, TypeError, ValueError):
        raise ModelError(f"P[{s}] must list (probability, next state, reward, done) for every action") from None
    pair, successor = np.array(list(merged), dtype=np.int64).T
    mass, paid, ending = np.array(list(merged.values())).T
    if (successor < 0).any() or (successor >= len(table)).any():
        raise ModelError(f"P must lead to states from 0 to {len(table) - 1}; got {successor.min()}..{successor.max()}")
    kept = mass > 0
    pair, successor, mass, paid, ending = (x[kept] for x in (pair, successor, mass, paid, ending))
    return Outcomes(pair, successor, mass, paid / mass, ending > 0, ending < mass), A


def _ends(found: Outcomes, S: int, A: int, start: Floats) -> Bools:
    """Return a mask of the states that end an episode.

    For states reachable from the start, only reachable transitions count; for all others, any transition into them.
    """
    source = found.pair // A
    over = np.zeros(S, dtype=bool)
    going, before = start > 0, over  # states that can occur while an episode continues
    while (going != before).any():
        before = going.copy()
        going[found.successor[before[source] & found.goes_on]] = True
    over[found.successor[going[source] & found.ends]] = True
    both = np.flatnonzero(over & going)
    if both.size:
        k = int(np.flatnonzero(going[source] & found.ends & (found.successor == both[0]))[0])
        raise ModelError(
            f"state {both[0]} must end the episode always or never; entered from state {source[k]} by action "
            f"{found.pair[k] % A} it ends it, else not ({both.size} such states). Give the end a state of its own"
        )
    elsewhere = np.zeros(S, dtype=bool)
    elsewhere[found.successor[found.ends]] = True
    return over | (elsewhere & ~going)


def _costs(cost: Callable[[int, int, int], Any] | None, pair: Ints, successor: Ints, A: int) -> Floats:
    """Return the costs (m, outcomes) of the user's function."""
    if cost is None:
        return np.empty((0, pair.size))
    if not callable(cost):
        raise ModelError(f"cost must be a function of (state, action, next_state); got {type(cost).__name__}")
    values = [cost(int(k) // A, int(k) % A, int(s)) for k, s in zip(pair, successor, strict=True)]
    try:
        rows = np.stack([np.atleast_1d(as_floats(value, "cost")) for value in values])
    except ValueError:
        raise ModelError("cost must return a number, or always the same number of numbers") from None
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ModelError("cost must return a finite number, or a list of such")
    return rows.T


def _start(base: Any, S: int) -> Any:
    """Return the initial distribution: the one the environment declares, or the state in which every reset starts."""
    distribution = getattr(base, "initial_state_distrib", None)
    if distribution is not None:
        return distribution
    seen = {int(base.reset(seed=seed)[0]) for seed in range(RESETS)}
    if len(seen) > 1:
        raise ModelError(
            f"{type(base).__name__} starts at random and does not say how (initial_state_distrib); give initial=..."
        )
    return seen.pop()
