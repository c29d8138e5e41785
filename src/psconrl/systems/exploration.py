"""Reachable states of a system, found by calling its step in all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from psconrl.arrays import Bools, Ints
from psconrl.caps import need
from psconrl.errors import ModelError
from psconrl.systems.functions import Rule, shown_values
from psconrl.systems.variables import Space

CHUNK = 1_000_000  # points (s, a, w) that are evaluated at once
ALL_AT_ONCE = 50_000_000  # points up to which a step that takes arrays is called in all states, reachable or not


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The joint outcomes of all noises: the value of every noise in each of them."""

    values: Mapping[str, NDArray[Any]]  # (W,) each
    size: int

    @classmethod
    def of(cls, values: Mapping[str, NDArray[Any]]) -> "Outcomes":
        """Return all combinations, the last noise running fastest."""
        shape = tuple(len(v) for v in values.values())
        size = int(np.prod(shape)) if shape else 1
        places = np.unravel_index(np.arange(size), shape) if shape else ()
        return cls({name: v[place] for (name, v), place in zip(values.items(), places, strict=True)}, size)


@dataclass(frozen=True, eq=False)
class Step:
    """The step of a system: a function that returns all variables of the next state, or a rule for each."""

    states: Space
    actions: Space
    outcomes: Outcomes
    rules: Mapping[str, Rule] | Rule
    available: Rule | None

    def columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of all variables at the points (s, a, w) of some states, each (len * A * W,)."""
        A, W = self.actions.size, self.outcomes.size
        n = states.size
        columns = {name: np.repeat(v, A * W) for name, v in self.states.values(states).items()}
        for name, v in self.actions.values(np.arange(A)).items():
            columns[name] = np.tile(np.repeat(v, W), n)
        for name, v in self.outcomes.values.items():
            columns[name] = np.tile(v, n * A)
        return columns

    def pair_columns(self, states: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of the variables of states and actions, each (len * A,)."""
        A = self.actions.size
        columns = {name: np.repeat(v, A) for name, v in self.states.values(states).items()}
        for name, v in self.actions.values(np.arange(A)).items():
            columns[name] = np.tile(v, states.size)
        return columns

    def mask(self, states: Ints) -> Bools:
        """Return which actions are available in some states, (len, A)."""
        shape = (states.size, self.actions.size)
        if self.available is None:
            return np.ones(shape, dtype=bool)
        mask = self.available(self.pair_columns(states), shape[0] * shape[1])
        return np.asarray(mask).astype(bool).reshape(shape)

    def following(self, states: Ints) -> Ints:
        """Return the numbers of the next states of some states, (len, A, W); -1 for one outside the space."""
        columns = self.columns(states)
        size = states.size * self.actions.size * self.outcomes.size
        numbers, inside = self.states.numbers(self.next_values(columns, size))
        return np.where(inside, numbers, -1).reshape(states.size, self.actions.size, self.outcomes.size)

    def next_values(self, columns: Mapping[str, NDArray[Any]], size: int) -> dict[str, NDArray[Any]]:
        """Return the variables of the next state at some points."""
        if isinstance(self.rules, Rule):
            returned = self.rules(columns, size)
            if not isinstance(returned, Mapping):
                raise ModelError(f"step must return a table of the next state's variables; got {returned[0]!r}")
            for name in self.states.names:
                if name not in returned:
                    raise ModelError(f"step must return all variables of the state; {name!r} is missing")
            for name in returned:
                if name not in self.states.names:
                    raise ModelError(f"step returns {name!r}, which is no variable of the state")
            return dict(returned)
        return {
            name: self.rules[name](columns, size) if name in self.rules else columns[name]
            for name in self.states.names
        }

    def takes_arrays(self, states: Ints) -> bool:
        """Return whether all functions take arrays, after a trial in some states."""
        some = states[:: max(1, states.size // 50)][:50]
        columns = self.columns(some)
        rules = [self.rules] if isinstance(self.rules, Rule) else list(self.rules.values())
        for rule in rules:
            rule.try_arrays(columns)
        if self.available is not None:
            self.available.try_arrays(self.pair_columns(some))
            rules.append(self.available)
        return all(rule.takes_arrays for rule in rules)


@dataclass(frozen=True, eq=False)
class Explored:
    """The reachable states, by their numbers in the space, and what happens in them."""

    states: Ints  # (S,) increasing
    available: Bools  # (S, A)
    successors: Ints  # (S, A, W) places in the list of states; that of the state itself for an impossible outcome


def explore(step: Step, start: Ints, possible: Any) -> Explored:
    """Return the states that can be reached from the given ones.

    ``possible(states)``: which joint outcomes (len, A, W) have a positive probability.
    """
    points = step.states.size * step.actions.size * step.outcomes.size
    everywhere = np.arange(step.states.size) if points <= ALL_AT_ONCE else start
    if step.takes_arrays(everywhere) and points <= ALL_AT_ONCE:
        need(16.0 * points, f"a system of {points:,} states, actions and outcomes", ModelError)
        found, mask, following = _evaluated(step, everywhere, possible)
        reached = _reached(following, start)
        states, mask, following = found[reached], mask[reached], following[reached]
    else:
        states, mask, following = _by_levels(step, start, possible)
    wrong = np.argwhere(following == -1)
    if len(wrong):
        raise ModelError(_outside(step, states, *wrong[0]))
    none = np.flatnonzero(~mask.any(axis=1))
    if none.size:
        where = shown_values(step.states.label(int(states[none[0]])))
        raise ModelError(f"no action is available in the state {where}")
    own = np.broadcast_to(np.arange(states.size)[:, None, None], following.shape)
    places = np.searchsorted(states, np.maximum(following, 0))
    return Explored(states, mask, np.where(following >= 0, places, own))


def _evaluated(step: Step, states: Ints, possible: Any) -> tuple[Ints, Bools, Ints]:
    """Evaluate states in chunks: next states are -1 if outside the space, -2 if they are impossible."""
    n = max(1, CHUNK // (step.actions.size * step.outcomes.size))
    masks, all_following = [], []
    for k in range(0, states.size, n):
        some = states[k : k + n]
        mask = step.mask(some)
        following = step.following(some)
        following[~(possible(some) & mask[:, :, None])] = -2
        masks.append(mask)
        all_following.append(following)
    return states, np.concatenate(masks), np.concatenate(all_following)


def _reached(following: Ints, start: Ints) -> Ints:
    """Return the states that can be reached, in increasing order, where all states were evaluated."""
    n = len(following)
    flat = following.reshape(n, -1)
    row, column = np.nonzero(flat >= 0)
    graph = csr_array((np.ones(row.size, dtype=np.int8), (row, flat[row, column])), shape=(n, n))
    seen = np.zeros(n, dtype=bool)
    for s in start:
        if not seen[s]:
            seen[breadth_first_order(graph, int(s), return_predecessors=False)] = True
    return np.flatnonzero(seen)


def _by_levels(step: Step, start: Ints, possible: Any) -> tuple[Ints, Bools, Ints]:
    """Evaluate the states that can be reached, one step after the other."""
    found = frontier = np.unique(start)
    parts = []
    while frontier.size:
        need(16.0 * found.size * step.actions.size * step.outcomes.size, f"{found.size:,} reachable states", ModelError)
        parts.append(_evaluated(step, frontier, possible))
        following = parts[-1][2]
        frontier = np.setdiff1d(following[following >= 0], found)
        found = np.union1d(found, frontier)
    states, mask, following = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.argsort(states)
    return states[order], mask[order], following[order]


def _outside(step: Step, states: Ints, s: int, a: int, w: int) -> str:
    """Describe a step that leaves the space."""
    here = step.states.label(int(states[s])) | step.actions.label(int(a))
    noise = {name: v[w].item() for name, v in step.outcomes.values.items()}
    point = {name: np.array([value]) for name, value in (here | noise).items()}
    to = {name: value[0] for name, value in step.next_values(point, 1).items()}
    for variable in step.states.variables:
        if variable.index(to[variable.name]) < 0:
            low, high = variable.values[0], variable.values[-1]
            return (
                f"the step leaves the space: at {shown_values(here | noise)} it sets {variable.name} to "
                f"{to[variable.name]}, which is not among its values {low} to {high}"
            )
    return f"the step leaves the space at {shown_values(here | noise)}"
