"""What transitions reveal of every noise of a system.

In a pair the next state determines in which of several sets the value of a noise was. The sets form a partition of its
values: a *view* of the noise. Which view a round has is known before the noise is drawn, since it depends on state and
action only. Given the view, the sets have the probabilities that the distribution of the noise gives them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.learning.posterior.counts import Counts
from psconrl.systems.randomness import IndependentNoise, Randomness
from psconrl.systems.structure import Structure

CELLS_AT_ONCE = 10_000_000  # cells that are compared at once
EVENTS = "the events"  # the name of the only noise of a system with events


Observed = dict[tuple[int, tuple[int, ...]], Floats]  # numbers of observations of each set, by context and partition


@dataclass(frozen=True, eq=False)
class NoiseView:
    """What is seen of one noise in some pairs: a partition of its values."""

    context: int
    blocks: tuple[int, ...]  # of every value, the number of its set; -1 if it is impossible


def noise_names(randomness: Randomness) -> tuple[str, ...]:
    """Return the names of all noises, in the order of ``sizes``; events are one noise."""
    return tuple(randomness.noises) if isinstance(randomness, IndependentNoise) else (EVENTS,)


class NoiseViews:
    """The views of some noises of a structure, given by name."""

    def __init__(self, structure: Structure, names: Iterable[str]) -> None:
        self._structure = structure
        self.names = list(names)
        self._places = noise_names(structure.randomness)

    @property
    def classes(self) -> Ints:
        """The class of every pair, (S*A,): equal contexts, and equal partitions of the joint outcomes."""
        return self._classes[0]

    @cached_property
    def partitions(self) -> tuple[Ints, Ints]:
        """Of every class: the first outcome of each outcome's block (C, W), -1 if impossible; the context (C,)."""
        one = self._classes[1]
        return self._firsts[one], self._structure.contexts[one]

    @cached_property
    def _classes(self) -> tuple[Ints, Ints]:
        """The class of every pair, and one pair of each."""
        table = np.column_stack([self._structure.contexts, self._firsts])
        _, one, classes = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return classes.ravel(), one

    @cached_property
    def _firsts(self) -> Ints:
        """Of every pair the first outcome that leads to the same state as each joint outcome, (S*A, W)."""
        structure = self._structure
        possible = structure.randomness.possible()[structure.contexts]
        rows = np.where(possible, structure.successors, -1)
        order = np.argsort(rows, axis=1, kind="stable")
        ordered = np.take_along_axis(rows, order, axis=1)
        begins = np.concatenate([np.ones((len(rows), 1), dtype=bool), ordered[:, 1:] != ordered[:, :-1]], axis=1)
        places = np.maximum.accumulate(np.where(begins, np.arange(rows.shape[1]), 0), axis=1)
        firsts = np.empty_like(order)
        np.put_along_axis(firsts, order, np.take_along_axis(order, places, axis=1), axis=1)
        return np.where(possible, firsts, -1)

    @cached_property
    def _values(self) -> dict[str, Ints]:
        """Of every noise the place of its value in each joint outcome."""
        places = np.unravel_index(np.arange(self._structure.randomness.n_outcomes), self._structure.randomness.sizes)
        return dict(zip(self._places, places, strict=True))

    @cached_property
    def _views(self) -> list[dict[str, NoiseView]]:
        """Of every class of pairs, what is seen of each noise."""
        structure, one = self._structure, self._classes[1]
        possible = structure.randomness.possible()
        found = []
        for pair in one:
            context = int(structure.contexts[pair])
            kept = np.flatnonzero(possible[context])
            own = {}
            for name in self.names:
                blocks = _blocks(self._values[name][kept], structure.successors[pair, kept], self._size(name))
                own[name] = NoiseView(self._own_context(name, context), blocks)
            found.append(own)
        return found

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of views that are possible, by noise; where the noise itself is seen, there is one per context."""
        contexts = range(self._structure.randomness.n_contexts)
        found = {}
        for name in self.names:
            revealed = {(own[name].context, own[name].blocks) for own in self._views}
            found[name] = len(revealed | {self._when_seen(name, context) for context in contexts})
        return found

    def _when_seen(self, name: str, context: int) -> tuple[int, tuple[int, ...]]:
        """Return the context and the partition of a noise that is seen itself: every possible value on its own."""
        possible = set(self._values[name][self._structure.randomness.possible()[context]].tolist())
        own = tuple(value if value in possible else -1 for value in range(self._size(name)))
        return self._own_context(name, context), own

    def _size(self, name: str) -> int:
        return self._structure.randomness.sizes[self._places.index(name)]

    def _own_context(self, name: str, context: int) -> int:
        randomness = self._structure.randomness
        return int(randomness.contexts[name][context]) if isinstance(randomness, IndependentNoise) else context

    def hides(self, k: int) -> bool:
        """True if class k has blocks that are no products of those of its noises, and hides one of the noises given."""
        firsts = self.partitions[0]
        possible = firsts[k] >= 0
        numbers = []  # of blocks of every noise
        for name in self._places:
            values, size = self._values[name][possible], self._size(name)
            numbers.append(len(set(_blocks(values, firsts[k][possible], size)) - {-1}))
        hidden = any(
            len(set(view.blocks) - {-1}) < sum(block >= 0 for block in view.blocks) for view in self._views[k].values()
        )
        return hidden and len(np.unique(firsts[k][possible])) != int(np.prod(numbers))

    def outcomes(self, counts: Counts) -> Floats:
        """Return how often each block of joint outcomes was observed, (C, W): by class, at its first outcome."""
        W = self._structure.randomness.n_outcomes
        pairs, following = np.divmod(counts.tally.numbers, self._structure.n_states)
        found = self._explained(pairs, following)
        cells = self._classes[0][pairs] * W + found
        times = counts.tally.times.astype(np.float64)
        sums = np.bincount(cells[found >= 0], weights=times[found >= 0], minlength=len(self._classes[1]) * W)
        return np.asarray(sums, dtype=np.float64).reshape(-1, W)

    def observed(self, counts: Counts) -> dict[str, Observed]:
        """Return how often each set of values was observed, by noise and view."""
        S = self._structure.n_states
        numbers, times = counts.tally.numbers, counts.tally.times.astype(np.float64)
        found: dict[str, Observed] = {name: {} for name in self.names}
        seen = dict.fromkeys((key[0] for key in counts.noise.times), 0)
        for key, n in counts.noise.times.items():
            seen[key[0]] += n
            self._add_seen(found, key[1:], n)
        if seen:
            times = times - np.array([seen.get(number, 0) for number in numbers.tolist()])
        pairs, following = np.divmod(numbers, S)
        outcomes = self._explained(pairs, following)
        for name in self.names:
            values, by_class = self._values[name], self._classes[0][pairs]
            cells = by_class * self._size(name) + values[np.maximum(outcomes, 0)]
            sums = np.bincount(cells[outcomes >= 0], weights=times[outcomes >= 0])
            for cell in np.flatnonzero(sums):
                view = self._views[cell // self._size(name)][name]
                _add(found[name], view, int(cell % self._size(name)), float(sums[cell]))
        return found

    def _explained(self, pairs: Ints, following: Ints) -> Ints:
        """Return the first joint outcome that explains each transition, -1 if none does."""
        step = CELLS_AT_ONCE // self._structure.randomness.n_outcomes + 1
        parts = [
            self._first_outcome(pairs[k : k + step], following[k : k + step])
            for k in range(0, max(pairs.size, 1), step)
        ]
        return np.concatenate(parts)

    def _first_outcome(self, pairs: Ints, following: Ints) -> Ints:
        """Return ``_explained`` of some transitions at once."""
        structure = self._structure
        fits = structure.randomness.possible()[structure.contexts[pairs]]
        fits = fits & (structure.successors[pairs] == following[:, None])
        return np.where(fits.any(axis=1), fits.argmax(axis=1), -1)

    def _add_seen(self, found: Any, cells: tuple[int, ...], times: int) -> None:
        """Add transitions whose noise was seen: to a noise if its value is certain."""
        if not cells:
            return
        context, outcomes = cells[0] // self._structure.randomness.n_outcomes, np.array(cells)
        outcomes = outcomes % self._structure.randomness.n_outcomes
        for name in self.names:
            values = np.unique(self._values[name][outcomes])
            if values.size == 1:
                _add(found[name], NoiseView(*self._when_seen(name, context)), int(values[0]), float(times))


def _blocks(values: Ints, following: Ints, size: int) -> tuple[int, ...]:
    """Return the finest partition of the values of a noise that the next state determines; -1: impossible values."""
    parent = np.arange(size)
    firsts: dict[int, int] = {}
    for value, state in zip(values.tolist(), following.tolist(), strict=True):
        a, b = _root(parent, firsts.setdefault(state, value)), _root(parent, value)
        parent[max(a, b)] = min(a, b)
    kept = set(values.tolist())
    return tuple(_root(parent, value) if value in kept else -1 for value in range(size))


def _root(parent: Ints, value: int) -> int:
    while parent[value] != value:
        value = int(parent[value])
    return value


def _add(views: Observed, view: NoiseView, value: int, times: float) -> None:
    sums = views.setdefault((view.context, view.blocks), np.zeros(len(set(view.blocks) - {-1})))
    sums[sorted(set(view.blocks) - {-1}).index(view.blocks[value])] += times
