"""Reachable states of a system, found by calling its step in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from psconrl.arrays import Bools, Ints
from psconrl.caps import need
from psconrl.errors import ModelError
from psconrl.systems.functions import Rule, as_condition, shown_values
from psconrl.systems.randomness import Randomness
from psconrl.systems.variables import Space

CHUNK = 1_000_000  # points (s, a, w) that are evaluated at once
TRIED = 50  # states in which functions are tried with arrays
ALL_AT_ONCE = 50_000_000  # points up to which a step that takes arrays is called in all states, reachable or not


@dataclass(frozen=True, eq=False)
class JointOutcomes:
    """The joint outcomes of all noises: the value of every noise in each of them."""

    values: Mapping[str, NDArray[Any]]  # (W,) each
    size: int

    @classmethod
    def of(cls, values: Mapping[str, NDArray[Any]]) -> "JointOutcomes":
        """Return all combinations, the last noise running fastest."""
        shape = tuple(len(v) for v in values.values())
        size = prod(shape)
        need(8.0 * size * (len(shape) + 1), f"{size:.3g} joint outcomes of {', '.join(values)}", ModelError)
        places = np.unravel_index(np.arange(size), shape) if shape else ()
        return cls({name: v[place] for (name, v), place in zip(values.items(), places, strict=True)}, size)


def next_values(
    step: Mapping[str, Rule] | Rule, states: Space, columns: Mapping[str, NDArray[Any]], size: int, what: str
) -> dict[str, NDArray[Any]]:
    """Return the variables of the next state at some points; those that a table does not name keep their values."""
    if isinstance(step, Rule):
        returned = step(columns, size)
        if not isinstance(returned, Mapping):
            raise ModelError(f"{what} must return a table of the next state's variables; got {returned[0].item()!r}")
        for name in states.names:
            if name not in returned:
                raise ModelError(f"{what} must return all variables of the state; {name!r} is missing")
        for name in returned:
            if name not in states.names:
                raise ModelError(f"{what} returns {name!r}, which is no variable of the state")
        return dict(returned)
    return {name: step[name](columns, size) if name in step else columns[name] for name in states.names}


class Steps(Protocol):
    """What exploration needs to know of a system."""

    states: Space
    actions: Space

    @property
    def outcomes(self) -> JointOutcomes:
        """The joint outcomes."""

    def columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of all variables at the points (s, a, w) of some states."""

    def pair_columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of the variables of states and actions."""

    def next_values(self, columns: Mapping[str, NDArray[Any]], size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state at some points."""

    def next_numbers(self, states: Ints) -> tuple[Ints, Bools]:
        """Return the numbers of the next states at the points (s, a, w) of some states, and which are in the space."""

    def rules(self) -> list[Rule]:
        """Return the rules of the step."""

    def randomness_at(self, states: Ints) -> tuple[Randomness, Ints]:
        """Return the randomness in some states."""


@dataclass(frozen=True, eq=False)
class Explored:
    """The reachable states, by their numbers in the space, and what happens in them."""

    states: Ints  # (S,) increasing
    available: Bools  # (S, A)
    successors: Ints  # (S, A, W) places in the list of states; that of the state itself for an impossible outcome


def possible_at(source: Steps, states: Ints) -> Bools:
    """Return which joint outcomes are possible in some states, (len, A, W)."""
    randomness, contexts = source.randomness_at(states)
    return randomness.possible()[contexts].reshape(states.size, source.actions.size, -1)


def explore_states(source: Steps, available: Rule | None, start: int) -> Explored:
    """Return the states that can be reached from the start."""
    points = source.states.size * source.actions.size * source.outcomes.size
    everywhere = np.arange(source.states.size) if points <= ALL_AT_ONCE else np.array([start])
    if _takes_arrays(source, available, everywhere) and points <= ALL_AT_ONCE:
        need(16.0 * points, f"a system of {points:,} states, actions and outcomes", ModelError)
        mask, following = _evaluated(source, available, everywhere)
        states = _reached(following, start)
        mask, following = mask[states], following[states]
    else:
        states, mask, following = _by_levels(source, available, start)
    if (following == -1).any():
        raise ModelError(_outside(source, states, *np.argwhere(following == -1)[0]))
    none = np.flatnonzero(~mask.any(axis=1))
    if none.size:
        where = shown_values(source.states.label(int(states[none[0]])))
        raise ModelError(f"no action is available in the state {where}")
    everything = states.size == source.states.size  # then the numbers of states are their places
    places = following if everything else np.searchsorted(states, np.maximum(following, 0))
    own = np.arange(states.size)[:, None, None]
    return Explored(states, mask, np.where(following >= 0, places, own))


def _takes_arrays(source: Steps, available: Rule | None, states: Ints) -> bool:
    """Return whether all functions take arrays, after a trial in some states."""
    some = states[:: max(1, states.size // TRIED)][:TRIED]
    rules = source.rules()
    columns = source.columns(some)
    for rule in rules:
        rule.try_arrays(columns)
    if available is not None:
        available.try_arrays(source.pair_columns(some))
        rules = [*rules, available]
    return all(rule.takes_arrays for rule in rules)


def _evaluated(source: Steps, available: Rule | None, states: Ints) -> tuple[Bools, Ints]:
    """Evaluate states in chunks: next states are -1 if outside the space, -2 if they are impossible."""
    A, W = source.actions.size, source.outcomes.size
    n = max(1, CHUNK // (A * W))
    masks = np.ones((states.size, A), dtype=bool)
    all_following = np.empty((states.size, A, W), dtype=np.int64)
    for k in range(0, states.size, n):
        some = states[k : k + n]
        if available is not None:
            mask = available(source.pair_columns(some), some.size * A)
            masks[k : k + n] = as_condition(mask, available.what).reshape(-1, A)
        numbers, inside = source.next_numbers(some)
        following = np.where(inside, numbers, -1).reshape(-1, A, W)
        following[~(possible_at(source, some) & masks[k : k + n, :, None])] = -2
        all_following[k : k + n] = following
    return masks, all_following


def _reached(following: Ints, start: int) -> Ints:
    """Return the states that can be reached, in increasing order, where all states were evaluated."""
    n = len(following)
    flat = following.reshape(n, -1)
    kept = flat >= 0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    graph = csr_array((np.ones(indptr[-1], dtype=np.int8), flat[kept], indptr), shape=(n, n))
    found: Ints = breadth_first_order(graph, start, return_predecessors=False)
    return np.sort(found).astype(np.int64)


def _by_levels(source: Steps, available: Rule | None, start: int) -> tuple[Ints, Bools, Ints]:
    """Evaluate the states that can be reached, one step after the other."""
    frontier, found = np.array([start]), {start}  # a set, since a chain of states has as many levels as states
    parts = []
    while frontier.size:
        points = len(found) * source.actions.size * source.outcomes.size
        need(16.0 * points, f"a system of {len(found):,} reachable states or more", ModelError)
        mask, following = _evaluated(source, available, frontier)
        parts.append((frontier, mask, following))
        reached = np.unique(following[following >= 0]).tolist()
        frontier = np.array([state for state in reached if state not in found], dtype=np.int64)
        found.update(frontier.tolist())
    states, mask, following = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.argsort(states)
    return states[order], mask[order], following[order]


def _outside(source: Steps, states: Ints, s: int, a: int, w: int) -> str:
    """Describe a step that leaves the space."""
    here = source.states.label(int(states[s])) | source.actions.label(int(a))
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
