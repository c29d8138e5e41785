"""What transitions reveal of every noise of a system.

In a pair the next state determines in which of several sets the value of a noise was. The sets form a partition of its
values: a *view* of the noise. Which view a round has is known before the noise is drawn, since it depends on state and
action only. Given the view, the sets have the probabilities that the distribution of the noise gives them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.explanations import Explanations
from psconrl.systems.randomness import IndependentNoise, Randomness
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

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
    """The views of some noises of a structure, given by name; ``words`` are needed where costs are seen by name."""

    def __init__(self, structure: Structure, names: Iterable[str], words: Vocabulary | None = None) -> None:
        self._structure = structure
        self.names = list(names)
        self._places = noise_names(structure.randomness)
        self._explanations = Explanations(structure, words)
        self._with_costs: dict[tuple[int, int | None], dict[str, NoiseView]] = {}
        self._seen_in_full: dict[tuple[str, int], tuple[int, tuple[int, ...]]] = {}

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
    def values(self) -> dict[str, Ints]:
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
                blocks = _blocks(self.values[name][kept], structure.successors[pair, kept], self._size(name))
                own[name] = NoiseView(self.own_context(name, context), blocks)
            found.append(own)
        return found

    def of_class(self, number: int) -> dict[str, NoiseView]:
        """Return what is seen of each noise in a class of pairs."""
        return self._views[number]

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of views that are possible, by noise; where the noise itself is seen, there is one per context.

        Where costs are seen, too, each pair may have one of its own.
        """
        contexts = range(self._structure.randomness.n_contexts)
        paid = any(self._structure.paid(i, slice(0, 1)) is not None for i in range(len(self._structure.fixed_costs)))
        with_costs = len(self._structure.contexts) if paid else 0  # at most one for every pair
        found = {}
        for name in self.names:
            revealed = {(own[name].context, own[name].blocks) for own in self._views}
            found[name] = len(revealed | {self._when_seen(name, context) for context in contexts}) + with_costs
        return found

    def _when_seen(self, name: str, context: int) -> tuple[int, tuple[int, ...]]:
        """Return the context and the partition of a noise that is seen itself: every possible value on its own."""
        if (name, context) not in self._seen_in_full:
            possible = set(self.values[name][self._possible[context]].tolist())
            own = tuple(value if value in possible else -1 for value in range(self._size(name)))
            self._seen_in_full[name, context] = self.own_context(name, context), own
        return self._seen_in_full[name, context]

    @cached_property
    def _possible(self) -> Bools:
        return self._structure.randomness.possible()

    def _size(self, name: str) -> int:
        return self._structure.randomness.sizes[self._places.index(name)]

    def own_context(self, name: str, context: int) -> int:
        """Return the context of a noise itself in a joint context."""
        randomness = self._structure.randomness
        return int(randomness.contexts[name][context]) if isinstance(randomness, IndependentNoise) else context

    def hides(self, k: int) -> bool:
        """True if class k has blocks that are no products of those of its noises, and hides one of the noises given."""
        firsts = self.partitions[0]
        possible = firsts[k] >= 0
        numbers = []  # of blocks of every noise
        for name in self._places:
            values, size = self.values[name][possible], self._size(name)
            numbers.append(len(set(_blocks(values, firsts[k][possible], size)) - {-1}))
        hidden = any(
            len(set(view.blocks) - {-1}) < sum(block >= 0 for block in view.blocks) for view in self._views[k].values()
        )
        return hidden and len(np.unique(firsts[k][possible])) != int(np.prod(numbers))

    @cached_property
    def hiding(self) -> Ints:
        """The classes for which ``hides`` is true."""
        return np.array([k for k in range(len(self.partitions[0])) if self.hides(k)], dtype=np.int64)

    def hidden(self) -> list[str]:
        """Return the noises of which some class shows only joint results with others."""
        found: set[str] = set()
        for k in self.hiding.tolist():
            own = ((name, view.blocks) for name, view in self._views[k].items())
            found |= {name for name, blocks in own if len(set(blocks) - {-1}) < sum(block >= 0 for block in blocks)}
        return [name for name in self.names if name in found]

    def outcomes(self, counts: Counts) -> Floats:
        """Return how often each block of joint outcomes was observed, (C, W): by class, at its first outcome."""
        W = self._structure.randomness.n_outcomes
        pairs, following = np.divmod(counts.tally.numbers, self._structure.n_states)
        found = self.explained(pairs, following)
        cells = self._classes[0][pairs] * W + found
        times = counts.tally.times.astype(np.float64)
        sums = np.bincount(cells[found >= 0], weights=times[found >= 0], minlength=len(self._classes[1]) * W)
        return np.asarray(sums, dtype=np.float64).reshape(-1, W)

    def observed(self, counts: Counts) -> dict[str, Observed]:
        """Return how often each set of values was observed, by noise and view."""
        S = self._structure.n_states
        numbers, times = counts.tally.numbers, counts.tally.times.astype(np.float64)
        found: dict[str, Observed] = {name: {} for name in self.names}
        seen: dict[int, int] = {}
        for key, n in (*counts.noise.items(), *counts.noise.ticks.items()):
            seen[key[0]] = seen.get(key[0], 0) + n
        for (number, bits, *outcomes), n in counts.noise.times.items():
            for name, view, value in self.reported(number // S, bits, outcomes):
                _add(found[name], view, value, float(n))
        for (number, *outcomes), n in counts.noise.paid.items():
            for name, view, value in self.paid(number // S, None, outcomes):
                _add(found[name], view, value, float(n))
        for (number, bits, *outcomes), n in counts.noise.named.items():
            for name, view, value in self.paid(number // S, bits, outcomes):
                _add(found[name], view, value, float(n))
        if seen:
            times = times - np.array([seen.get(number, 0) for number in numbers.tolist()])
        pairs, following = np.divmod(numbers, S)
        firsts = self.explained(pairs, following)
        for name in self.names:
            values, by_class = self.values[name], self._classes[0][pairs]
            cells = by_class * self._size(name) + values[np.maximum(firsts, 0)]
            sums = np.bincount(cells[firsts >= 0], weights=times[firsts >= 0])
            for cell in np.flatnonzero(sums):
                view = self._views[cell // self._size(name)][name]
                _add(found[name], view, int(cell % self._size(name)), float(sums[cell]))
        return found

    def explained(self, pairs: Ints, following: Ints) -> Ints:
        """Return the first joint outcome that explains each transition, -1 if none does."""
        step = CELLS_AT_ONCE // self._structure.randomness.n_outcomes + 1
        parts = [
            self._first_outcome(pairs[k : k + step], following[k : k + step])
            for k in range(0, max(pairs.size, 1), step)
        ]
        return np.concatenate(parts)

    def _first_outcome(self, pairs: Ints, following: Ints) -> Ints:
        """Return ``explained`` of some transitions at once."""
        structure = self._structure
        fits = self._possible[structure.contexts[pairs]]
        fits = fits & (structure.successors[pairs] == following[:, None])
        return np.where(fits.any(axis=1), fits.argmax(axis=1), -1)

    def paid(self, pair: int, named: int | None, cells: Sequence[int]) -> Iterator[tuple[str, NoiseView, int]]:
        """Return what next state and costs revealed in a round: noises, their views, and the set that was seen.

        ``named``: the costs that are seen, as bits; None for all.
        """
        if cells:
            outcome = cells[0] % self._structure.randomness.n_outcomes
            for name, view in self._views_with_costs(pair, named).items():
                yield name, view, view.blocks[self.values[name][outcome]]

    def _views_with_costs(self, pair: int, named: int | None) -> dict[str, NoiseView]:
        """Return what next state and costs reveal of each noise in a pair."""
        if (pair, named) not in self._with_costs:
            context = int(self._structure.contexts[pair])
            blocks = self._explanations.blocks(pair, named)
            kept = np.flatnonzero(blocks >= 0)
            self._with_costs[pair, named] = {
                name: NoiseView(
                    self.own_context(name, context), _blocks(self.values[name][kept], blocks[kept], self._size(name))
                )
                for name in self.names
            }
        return self._with_costs[pair, named]

    def reported(self, pair: int, bits: int, cells: Sequence[int]) -> Iterator[tuple[str, NoiseView, int]]:
        """Return the noises that were reported in a round, in full, as views with the value that each had.

        What the round reveals of the others depends on the values reported, and is left out.
        """
        if cells:
            context = int(self._structure.contexts[pair])
            outcome = cells[0] % self._structure.randomness.n_outcomes
            for k, name in enumerate(self._places):
                if bits >> k & 1 and name in self.names:
                    yield name, NoiseView(*self._when_seen(name, context)), int(self.values[name][outcome])


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
    places = _places(view.blocks)
    sums = views.get((view.context, view.blocks))
    if sums is None:
        sums = views[view.context, view.blocks] = np.zeros(len(places))
    sums[places[view.blocks[value]]] += times


@lru_cache(maxsize=4096)
def _places(blocks: tuple[int, ...]) -> dict[int, int]:
    """Return the places of the sets of a view, in the order of their numbers."""
    return {block: place for place, block in enumerate(sorted(set(blocks) - {-1}))}
