"""What transitions reveal of every noise of a system.

In a pair the next state determines in which of several sets the value of a noise was. The sets form a partition of its
values: a *view* of the noise. Which view a round has is known before the noise is drawn, since it depends on state and
action only. Given the view, the sets have the probabilities that the distribution of the noise gives them.

A noise that depends on others, its parents, has a view only where these have values that the next state reveals,
whatever the noise itself is. The view depends on them, which are drawn before.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.explanations import Explanations
from psconrl.systems.noise_base import variables_of
from psconrl.systems.randomness import Randomness, RoundNoise
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


Views = dict[int, NoiseView]  # of a noise, by the number of its parents' values; 0 if it has none


def noise_names(randomness: Randomness) -> tuple[str, ...]:
    """Return the names of all noises, in the order of ``sizes``; events are one noise."""
    return tuple(randomness.noises) if isinstance(randomness, RoundNoise) else (EVENTS,)


class NoiseViews:
    """The views of some noises of a structure, given by name; ``words`` are needed where costs are seen by name."""

    def __init__(self, structure: Structure, names: Iterable[str], words: Vocabulary | None = None) -> None:
        self._structure = structure
        self.names = list(names)
        self._places = noise_names(structure.randomness)
        self._explanations = Explanations(structure, words)
        self._with_costs: dict[tuple[int, int | None], dict[str, Views]] = {}
        self._when_seen: dict[tuple[str, int, tuple[str, ...]], NoiseView] = {}

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
    def cells(self) -> dict[str, Ints]:
        """Of every noise the number of its parents' values, times its size, plus ``values``, in each joint outcome."""
        return {name: self._parent_codes(name) * self.size(name) + self.values[name] for name in self.names}

    @cached_property
    def n_cells(self) -> dict[str, int]:
        """Of every noise its size times the number of values that its parents have together."""
        sizes = dict(zip(self._places, self._structure.randomness.sizes, strict=True))
        return {name: sizes[name] * prod(sizes[one] for one in self._parents(name)) for name in self.names}

    def _parents(self, name: str) -> tuple[str, ...]:
        randomness = self._structure.randomness
        return randomness.parents.get(name, ()) if isinstance(randomness, RoundNoise) else ()

    def _parent_codes(self, name: str) -> Ints:
        """Return the number (W,) of the values of a noise's parents in each joint outcome."""
        randomness = self._structure.randomness
        if isinstance(randomness, RoundNoise) and name in randomness.parents:
            return randomness.parent_codes[name]
        return np.zeros(randomness.n_outcomes, dtype=np.int64)

    @cached_property
    def _views(self) -> list[dict[str, Views]]:
        """Of every class of pairs, what is seen of each noise."""
        structure, one = self._structure, self._classes[1]
        possible = structure.randomness.possible()
        found = []
        for pair in one:
            context = int(structure.contexts[pair])
            kept = np.flatnonzero(possible[context])
            marks = structure.successors[pair, kept]
            found.append({name: self._seen(name, context, kept, marks) for name in self.names})
        return found

    def _seen(self, name: str, context: int, outcomes: Ints, marks: Ints) -> Views:
        """Return what is seen of a noise where the possible joint outcomes have these marks, all that is seen."""
        values = self.values[name][outcomes]
        if not self._parents(name):
            return {0: NoiseView(self.own_context(name, context), _blocks(values, marks, self.size(name)))}
        codes, places = np.unique(self._parent_codes(name)[outcomes], return_inverse=True)
        together = _blocks(places.ravel(), marks, codes.size)
        found = {}
        for place in np.flatnonzero(np.bincount(together)[list(together)] == 1):
            here = places == place
            blocks = _blocks(values[here], marks[here], self.size(name))
            found[int(codes[place])] = NoiseView(self.own_context(name, context, int(outcomes[here][0])), blocks)
        return found

    def of_cell(self, number: int, name: str, cell: int) -> tuple[NoiseView, int] | None:
        """Return what is seen of a noise in a class of pairs, and its value, given its ``cells``; None if nothing."""
        code, value = divmod(cell, self.size(name))
        view = self._views[number][name].get(code)
        return None if view is None else (view, value)

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
            revealed = {(view.context, view.blocks) for own in self._views for view in own[name].values()}
            for context in contexts:
                kept = np.flatnonzero(self._structure.randomness.possible()[context])
                for outcome in kept[np.unique(self._parent_codes(name)[kept], return_index=True)[1]]:
                    for some in self._reports(name):
                        view = self._when_reported(name, context, int(outcome), some)
                        revealed.add((view.context, view.blocks))
            codes = self.n_cells[name] // self.size(name)
            found[name] = len(revealed) + with_costs * codes
        return found

    def _reports(self, name: str) -> Iterator[tuple[str, ...]]:
        """Return all sets of variables of a noise that a round may report, the whole one first."""
        variables = variables_of(name)
        for k in range(len(variables), 0, -1):
            yield from itertools.combinations(variables, k)

    @cached_property
    def _possible(self) -> Bools:
        return self._structure.randomness.possible()

    def _when_reported(self, name: str, context: int, outcome: int, variables: tuple[str, ...]) -> NoiseView:
        """Return what is seen of a noise of which variables are reported, with its parents as in a joint outcome.

        If all are, every possible value is on its own.
        """
        own = self.own_context(name, context, outcome)
        if (name, own, variables) not in self._when_seen:
            self._when_seen[name, own, variables] = self._as_reported(name, own, variables)
        return self._when_seen[name, own, variables]

    def _as_reported(self, name: str, own: int, variables: tuple[str, ...]) -> NoiseView:
        randomness = self._structure.randomness
        if isinstance(randomness, RoundNoise):
            possible = randomness.own_possible(name)[own]
            columns = randomness.noises[name].columns(variables_of(name), randomness.arguments[name])
            seen = [columns[variable] for variable in variables]
        else:
            possible, seen = self._possible[own], [np.arange(randomness.n_outcomes)]
        kept = np.flatnonzero(possible)
        marks = np.zeros(kept.size, dtype=np.int64)
        for column in seen:
            codes = np.unique(column[kept], return_inverse=True)[1].ravel()
            marks = marks * (int(codes.max(initial=0)) + 1) + codes
        return NoiseView(own, _blocks(kept, marks, self.size(name)))

    def size(self, name: str) -> int:
        """Return the number of values of a noise."""
        return self._structure.randomness.sizes[self._places.index(name)]

    def own_context(self, name: str, context: int, outcome: int = 0) -> int:
        """Return the context of a noise itself in a joint context, with its parents as in a joint outcome."""
        randomness = self._structure.randomness
        if not isinstance(randomness, RoundNoise):
            return context
        return int(randomness.own_contexts(name, np.array(context), np.array(outcome)))

    def hides(self, k: int) -> bool:
        """True if class k has blocks that are no products of those of its noises, and hides one of the noises given."""
        firsts = self.partitions[0]
        possible = firsts[k] >= 0
        numbers = []  # of blocks of every noise
        for name in self._places:
            values, size = self.values[name][possible], self.size(name)
            numbers.append(len(set(_blocks(values, firsts[k][possible], size)) - {-1}))
        depends = any(self._parents(name) for name in self._places)
        together = depends or len(np.unique(firsts[k][possible])) != int(np.prod(numbers))
        return together and any(self.hides_one(k, name) for name in self.names)

    def hides_one(self, k: int, name: str) -> bool:
        """Return whether class k does not always reveal the value of a noise."""
        views = self._views[k][name]
        kept = self.partitions[0][k] >= 0
        return len(views) < np.unique(self._parent_codes(name)[kept]).size or any(
            len(set(view.blocks) - {-1}) < sum(block >= 0 for block in view.blocks) for view in views.values()
        )

    @cached_property
    def hiding(self) -> Ints:
        """The classes for which ``hides`` is true."""
        return np.array([k for k in range(len(self.partitions[0])) if self.hides(k)], dtype=np.int64)

    def hidden(self) -> list[str]:
        """Return the noises of which some class shows only joint results with others."""
        found: set[str] = set()
        for k in self.hiding.tolist():
            found |= {name for name in self.names if self.hides_one(k, name)}
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
            n_cells = self.n_cells[name]
            cells = self._classes[0][pairs] * n_cells + self.cells[name][np.maximum(firsts, 0)]
            sums = np.bincount(cells[firsts >= 0], weights=times[firsts >= 0])
            for cell in np.flatnonzero(sums):
                seen_there = self.of_cell(int(cell) // n_cells, name, int(cell) % n_cells)
                if seen_there is not None:
                    _add(found[name], *seen_there, float(sums[cell]))
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
        if cells and self._explanations.can_calculate(named):
            outcome = cells[0] % self._structure.randomness.n_outcomes
            for name, views in self._views_with_costs(pair, named).items():
                view = views.get(int(self._parent_codes(name)[outcome]))
                if view is not None:
                    yield name, view, view.blocks[self.values[name][outcome]]

    def _views_with_costs(self, pair: int, named: int | None) -> dict[str, Views]:
        """Return what next state and costs reveal of each noise in a pair."""
        if (pair, named) not in self._with_costs:
            context = int(self._structure.contexts[pair])
            blocks = self._explanations.blocks(pair, named)
            kept = np.flatnonzero(blocks >= 0)
            seen = {name: self._seen(name, context, kept, blocks[kept]) for name in self.names}
            self._with_costs[pair, named] = seen
        return self._with_costs[pair, named]

    def reported(self, pair: int, bits: int, cells: Sequence[int]) -> Iterator[tuple[str, NoiseView, int]]:
        """Return the noises that were reported in a round, as views with the set that was seen.

        A noise with parents counts if these were reported, too. Of a joint table, some variables may be reported. What
        the round reveals of other noises depends on the values reported, and is left out.
        """
        if cells:
            context = int(self._structure.contexts[pair])
            outcome = cells[0] % self._structure.randomness.n_outcomes
            seen = reported_variables(self._places, bits)
            for name in self.names:
                whole = all(seen[one] == variables_of(one) for one in self._parents(name))
                if seen[name] and whole:
                    view = self._when_reported(name, context, outcome, seen[name])
                    yield name, view, view.blocks[self.values[name][outcome]]


def reported_variables(names: Sequence[str], bits: int) -> dict[str, tuple[str, ...]]:
    """Return which variables of each noise were reported: bit k stands for the k-th variable of all noises.

    >>> reported_variables(["storm", "arriving, sky"], 0b101)
    {'storm': ('storm',), 'arriving, sky': ('sky',)}
    """
    every = [(name, variable) for name in names for variable in variables_of(name)]
    return {
        name: tuple(variable for k, (own, variable) in enumerate(every) if own == name and bits >> k & 1)
        for name in names
    }


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
