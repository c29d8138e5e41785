"""Gymnasium's toy-text tables as continuing CMDPs.

``env.unwrapped.P[s][a]`` lists outcomes ``(probability, next state, reward, done)``. A state that ends an episode
leads, whatever the action, to a new start at reward 0 and cost 0, just as ``psconrl.continuing`` and
``psconrl.simulate`` play it. What the table says of such a state (a loop in FrozenLake, ordinary moves in CliffWalking)
is never played, and not read. Whether the episode is over must show in the state: one that ends it on some paths only
is refused. Wrappers around the environment are not seen.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from psconrl.arrays import Bools, Floats, Ints, Matrix
from psconrl.errors import ModelError
from psconrl.model.validation import as_floats, read_initial

DENSE_UP_TO = 4_000_000  # entries, that is 32 MB a matrix; the planner is faster on dense ones
RESETS = 50  # to find out where an environment starts that does not say


class Outcomes(NamedTuple):
    """The outcomes of a table, those of one pair with one next state added up."""

    pair: Ints
    successor: Ints
    probability: Floats
    reward: Floats  # mean, where several were added up
    ends: Bools  # may the episode end with it?
    goes_on: Bools  # may it go on?


class Table(NamedTuple):
    """What a CMDP is made of."""

    transition: Matrix
    reward: Any  # (S, A), or (S*A, S) if it depends on the next state
    costs: list[Any]
    initial: Floats


def read_table(env: Any, cost: Callable[[int, int, int], Any] | None, initial: Any) -> Table:
    """The continuing task of an environment with a table."""
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
    mass = np.maximum(np.bincount(rows, p, minlength=S * A), 1e-300)  # an empty row is the CMDP's to refuse

    def layer(values: Floats) -> Any:
        whole = np.concatenate([values, np.zeros(rows.size - values.size)])
        mean = np.bincount(rows, whole * p, minlength=S * A) / mass
        if np.allclose(whole, mean[rows], rtol=1e-12, atol=0.0):
            return mean.reshape(S, A)
        return _matrix(whole, rows, columns, (S * A, S))

    transition = _matrix(p, rows, columns, (S * A, S))
    return Table(transition, layer(found.reward[lives]), [layer(c) for c in costs], start)


def cost_names(thresholds: Mapping[str, float], m: int) -> tuple[str, ...]:
    """Names for the objective and m costs that have none but those of their thresholds."""
    if len(thresholds) != m:
        raise ModelError(f"thresholds must have one entry per cost, {m} here; got {', '.join(map(repr, thresholds))}")
    return ("reward", *map(str, thresholds))


def _matrix(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Matrix:
    matrix = csr_array(coo_array((values, (rows, columns)), shape=shape))
    return matrix.toarray() if shape[0] * shape[1] <= DENSE_UP_TO else matrix


def _outcomes(table: Any) -> tuple[Outcomes, int]:
    """Every outcome of a positive probability, and the number of actions."""
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
    """The states that end an episode.

    Where the start can lead, what is played decides; elsewhere, what the table says of any way to get there.
    """
    source = found.pair // A
    over = np.zeros(S, dtype=bool)
    going, before = start > 0, over  # states that can be met while an episode goes on
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
    """The costs (m, outcomes) by the user's function."""
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
    """The law of the start: as the environment says, or where it begins whenever it is asked."""
    distribution = getattr(base, "initial_state_distrib", None)
    if distribution is not None:
        return distribution
    seen = {int(base.reset(seed=seed)[0]) for seed in range(RESETS)}
    if len(seen) > 1:
        raise ModelError(
            f"{type(base).__name__} starts at random and does not say how (initial_state_distrib); give initial=..."
        )
    return seen.pop()
