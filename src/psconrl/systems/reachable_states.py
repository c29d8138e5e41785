"""Reachable states of a system, found by following its step, and the transitions between them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.base.caps import need
from psconrl.errors import ModelError
from psconrl.systems.functions import Rule, as_condition, shown_values
from psconrl.systems.next_states import NextStates, next_states
from psconrl.systems.noise_graph import Graph
from psconrl.systems.reports import Report
from psconrl.systems.sources import RandomSource

TRIED = 50  # states in which functions are tried with arrays
MARKED = 8  # times the number of transitions: in a larger space, distinct states are found by sorting
MOST_TRIED = 1_000_000  # points, unless one state has more
ALL_AT_ONCE = 50_000_000  # points (s, a, w) up to which all states are evaluated at once, reachable or not
PAIRS_AT_ONCE = 20_000  # the same, whatever the number of outcomes


@dataclass(frozen=True, eq=False)
class Reachable:
    """The reachable states, by their numbers in the space, and the transitions at the prior means of the noise."""

    states: Ints  # (S,) increasing
    available: Bools  # (S, A)
    starts: Ints  # (S*A + 1,) of the following; a pair that is not available has no rows
    successors: Places  # (rows,) places in the list of states, increasing in every pair
    probabilities: Floats  # (rows,)

    def transition(self) -> csr_array:
        """Return the transitions (S*A, S); an action that is not available acts as the first that is."""
        S, A = self.available.shape
        matrix = csr_array((self.probabilities.copy(), self.successors, self.starts), shape=(S * A, S))
        matrix.eliminate_zeros()
        return matrix if self.available.all() else matrix[self.taken]

    @property
    def taken(self) -> Ints:
        """The pair (S*A,) that is played for each: itself, or the first available action of the state."""
        S, A = self.available.shape
        actions = np.where(self.available, np.arange(A), self.available.argmax(axis=1)[:, None])
        return np.asarray((np.arange(S)[:, None] * A + actions).ravel())

    @property
    def pairs(self) -> Ints:
        """The available pairs, numbered s * A + a in the whole space."""
        A = self.available.shape[1]
        return np.asarray((self.states[:, None] * A + np.arange(A))[self.available])


class _Evaluated(NamedTuple):
    """What follows some states: numbers in the space, -1 for what is outside."""

    states: Ints
    available: Bools  # (len, A)
    following: NextStates  # of all pairs; none of those that are not available


def reach_states(source: RandomSource, available: Rule | None, start: int, report: Report) -> Reachable:
    """Return the states that can be reached from the start. ``report`` is given a line from time to time."""
    pairs = source.states.size * source.actions.size
    at_once = pairs <= PAIRS_AT_ONCE or pairs * source.n_outcomes <= ALL_AT_ONCE
    everywhere = np.arange(source.states.size) if at_once else np.array([start])
    graph = source.graph()
    if _takes_arrays(source, available, everywhere) and at_once:
        found = _evaluated(source, graph, available, everywhere, report)
        found = _part(found, _reached(found, start))
    else:
        found = _by_levels(source, graph, available, start, report)
    states, mask, following = found
    if (following.numbers < 0).any():
        pair = int(np.searchsorted(following.starts, np.argmax(following.numbers < 0), side="right")) - 1
        raise ModelError(_outside(source, int(states[pair // mask.shape[1]]), pair % mask.shape[1]))
    none = np.flatnonzero(~mask.any(axis=1))
    if none.size:
        raise ModelError(_stuck(source, int(states[none[0]])))
    places = _places(states, following.numbers, source.states.size)
    return Reachable(states, mask, following.starts, places, following.probabilities)


def _stuck(source: RandomSource, state: int) -> str:
    return f"no action is available in the state {shown_values(source.states.label(state))}"


def _places(states: Ints, numbers: Ints, size: int) -> Places:
    """Return the places of some numbers in an increasing list of states."""
    if size > ALL_AT_ONCE:
        return np.searchsorted(states, numbers).astype(np.int32)
    places = np.zeros(size, dtype=np.int32)
    places[states] = np.arange(states.size)
    return places[numbers]


def _distinct(numbers: Ints, size: int) -> Ints:
    """Return the distinct numbers of states, increasing, without those of what is outside the space."""
    inside = numbers[numbers >= 0]
    if size > MARKED * inside.size:
        return np.unique(inside)
    found = np.zeros(size, dtype=bool)
    found[inside] = True
    return np.flatnonzero(found)


def _takes_arrays(source: RandomSource, available: Rule | None, states: Ints) -> bool:
    """Return whether all functions take arrays, after a trial in some states."""
    rules = [rule for rule in (*source.rules(), available) if rule is not None]
    if not any(rule.is_code for rule in rules):
        return True
    most = min(TRIED, 1 + MOST_TRIED // (source.actions.size * source.n_outcomes))
    some = states[:: max(1, states.size // most)][:most]
    columns = source.columns(some)
    for rule in source.rules():
        rule.try_arrays(columns)
    if available is not None:
        available.try_arrays(source.pair_columns(some))
    return all(rule.takes_arrays for rule in rules)


def _evaluated(source: RandomSource, graph: Graph, available: Rule | None, states: Ints, report: Report) -> _Evaluated:
    """Return what follows some states."""
    A = source.actions.size
    source.need_memory(states.size * A)
    mask = np.ones((states.size, A), dtype=bool)
    if available is not None:
        columns = source.pair_columns(states)
        mask = as_condition(available(columns, states.size * A), available.what, columns).reshape(-1, A)
    if not mask.any():
        raise ModelError(_stuck(source, int(states[0])))
    pairs = (states[:, None] * A + np.arange(A))[mask]
    following = next_states(graph, source.points(pairs), source.states, report)
    lengths = np.zeros(mask.size, dtype=np.int64)
    lengths[mask.ravel()] = np.diff(following.starts)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return _Evaluated(states, mask, following._replace(starts=starts))


def _part(found: _Evaluated, which: Ints) -> _Evaluated:
    """Return what follows some of the states, in another order."""
    A = found.available.shape[1]
    pairs = (which[:, None] * A + np.arange(A)).ravel()
    return _Evaluated(found.states[which], found.available[which], found.following.of(pairs))


def _reached(found: _Evaluated, start: int) -> Ints:
    """Return the states that can be reached, in increasing order, where all states were evaluated."""
    n, A = found.available.shape
    starts, numbers, _ = found.following
    kept = np.concatenate([[0], np.cumsum(numbers >= 0)])[starts[::A]]
    inside = numbers[numbers >= 0]
    graph = csr_array((np.ones(inside.size, dtype=np.int8), inside, kept), shape=(n, n))
    reached: Ints = breadth_first_order(graph, start, return_predecessors=False)
    return np.sort(reached).astype(np.int64)


def _by_levels(source: RandomSource, graph: Graph, available: Rule | None, start: int, report: Report) -> _Evaluated:
    """Evaluate the states that can be reached, one step after the other."""
    frontier, known = np.array([start]), {start}  # a set, since a chain of states has as many levels as states
    parts: list[_Evaluated] = []
    rows = 0
    while frontier.size:
        parts.append(_evaluated(source, graph, available, frontier, report))
        rows += parts[-1].following.numbers.size
        need(16.0 * rows, f"a system of {len(known):,} reachable states or more", ModelError)
        reached = _distinct(parts[-1].following.numbers, source.states.size)
        frontier = np.array([state for state in reached.tolist() if state not in known], dtype=np.int64)
        known.update(frontier.tolist())
        report(f"{len(known):,} reachable states, {rows:,} transitions")
    states = np.concatenate([part.states for part in parts])
    whole = _Evaluated(states, np.concatenate([part.available for part in parts]), _joined(parts))
    return _part(whole, np.argsort(states))


def _joined(parts: list[_Evaluated]) -> NextStates:
    lengths = np.concatenate([np.diff(part.following.starts) for part in parts])
    return NextStates(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.following.numbers for part in parts]),
        np.concatenate([part.following.probabilities for part in parts]),
    )


def _outside(source: RandomSource, state: int, a: int) -> str:
    """Describe a step that leaves the space, in a state with an action."""
    states = np.array([state])
    inside = source.next_numbers(states)[1].reshape(source.actions.size, -1)[a]
    randomness, contexts = source.randomness_at(states)
    w = int(np.argmax(~inside & randomness.possible()[contexts[a]]))
    here = source.states.label(state) | source.actions.label(a)
    noise = {name: v[w].item() for name, v in source.outcomes.values.items()}
    point = {name: np.array([value]) for name, value in (here | noise).items()}
    to = {name: value[0] for name, value in source.next_values(point, 1).items()}
    for variable in source.states.variables:
        if variable.index(to[variable.name]) < 0:
            low, high = variable.values[0], variable.values[-1]
            return (
                f"the step leaves the space: at {shown_values(here | noise)} it sets {variable.name} to "
                f"{to[variable.name]}, which is not among its values {low} to {high}"
            )
    return f"the step leaves the space at {shown_values(here | noise)}"
