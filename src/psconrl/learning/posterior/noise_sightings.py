"""What was seen of every noise, by pair of state and action: sets of values that held the value of the noise.

A round reveals a *row* of a noise: the context of the noise, and a set of its values. Which sets may be revealed is
known before the noise is drawn, as for the views of ``noise_views``; the sets of a pair do not overlap. Events are
binary noises, one each: a round reveals whether an event happened if no other event of its context leads to the same
state. A sojourn that was measured reveals the time in which an event did not happen, in ticks of the clock, and the
event that ended it, wherever this event would have shown (``sojourn_rows``).

Where costs were given, the sets are those that next state and costs reveal. Where some noises were reported, these are
seen in full, or as far as the variables of a joint table were reported; what the round reveals of the others depends on
the values reported, and is left out. A noise that depends on others is seen where these are.
"""

import copy
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import Kind, integers, listed, need_that, read_fields
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_views import EVENTS, NoiseView, NoiseViews, noise_names
from psconrl.learning.posterior.seen_noise import SeenNoise
from psconrl.systems.events import EventClock
from psconrl.systems.randomness import RoundNoise
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary


class SightedRow(NamedTuple):
    """A set of values of a noise that may be seen in a context of this noise; without values, a tick of a sojourn."""

    context: int
    view: tuple[int, ...]  # the partition that the set belongs to, as in ``NoiseView``; empty if a report revealed it
    values: tuple[int, ...]


class Sightings(NamedTuple):
    """How often every row of a noise was seen in every pair, where it was seen at all."""

    pairs: Ints
    rows: Ints  # places in the list of rows
    times: Floats


class NoiseSightings:
    """The rows of all noises that have been seen so far. The lists of rows grow, and old rows keep their places.

    ``events``: names of the events, if the system has events. ``words``: as of ``NoiseViews``.
    """

    def __init__(self, structure: Structure, events: tuple[str, ...] = (), words: Vocabulary | None = None) -> None:
        self._structure = structure
        self._of_events = not isinstance(structure.randomness, RoundNoise)
        self.views = NoiseViews(structure, noise_names(structure.randomness), words)
        self.names = events if self._of_events else tuple(self.views.names)
        self.rows: dict[str, list[SightedRow]] = {name: [] for name in self.names}
        self._places: dict[str, dict[SightedRow, int]] = {name: {} for name in self.names}
        self._forget()

    def _forget(self) -> None:
        empty = np.empty(0, dtype=np.int64)
        self._numbers = empty
        self._row_of: dict[str, Ints] = dict.fromkeys(self.names, empty)  # of every transition; -1: reveals nothing
        self._reported: list[list[int]] = [[], [], []]  # numbers of the transitions of rounds with reports, by kind
        self._report_rows: dict[str, list[list[int]]] = {name: [[], [], []] for name in self.names}

    def of(self, counts: Counts) -> dict[str, Sightings]:
        """Return what was seen, by noise."""
        self._read_transitions(counts.tally.numbers)
        kinds = counts.noise.times, counts.noise.paid, counts.noise.named
        self._read_reports(*kinds)
        reported = np.array([number for numbers in self._reported for number in numbers], dtype=np.int64)
        report_times = np.array([n for kind in kinds for n in kind.values()], dtype=np.float64)
        ticks = np.array([number for (number,) in counts.noise.ticks], dtype=np.int64)
        tick_times = np.array(list(counts.noise.ticks.values()), dtype=np.float64)
        times = counts.tally.times.astype(np.float64)
        for left_out, weights in ((reported, report_times), (ticks, tick_times)):
            if left_out.size:
                times -= np.bincount(np.searchsorted(self._numbers, left_out), weights=weights, minlength=times.size)
        S = self._structure.n_states
        numbers = np.concatenate([self._numbers, reported])
        all_times = np.concatenate([times, report_times])
        found = {}
        for name in self.names:
            of_reports = np.array([row for rows in self._report_rows[name] for row in rows], dtype=np.int64)
            rows = np.concatenate([self._row_of[name], of_reports])
            kept = (rows >= 0) & (all_times > 0.0)
            found[name] = Sightings(numbers[kept] // S, rows[kept], all_times[kept])
        return self._with_sojourns(found, counts.noise) if self._of_events else found

    def in_all(self, counts: Counts) -> dict[str, Floats]:
        """Return by noise how often each row was seen that has been noted so far, and note no others."""
        twin = copy.copy(self)
        twin.rows = {name: list(rows) for name, rows in self.rows.items()}
        twin._places = {name: dict(places) for name, places in self._places.items()}
        twin._forget()
        found = {}
        for name, seen in twin.of(counts).items():
            times = np.bincount(seen.rows, weights=seen.times, minlength=len(twin.rows[name]))
            found[name] = times[: len(self.rows[name])].astype(np.float64)
        return found

    def _with_sojourns(self, found: dict[str, Sightings], noise: SeenNoise) -> dict[str, Sightings]:
        """Add what sojourns that were measured show of the events."""
        merged = dict(found)
        for event, pair, row, times in sojourn_rows(self._structure, noise):
            name = self.names[event]
            own = merged[name]
            place = self._place(name, row)
            merged[name] = Sightings(
                np.append(own.pairs, pair), np.append(own.rows, place), np.append(own.times, times)
            )
        return merged

    def _place(self, name: str, row: SightedRow) -> int:
        places = self._places[name]
        if row not in places:
            places[row] = len(self.rows[name])
            self.rows[name].append(row)
        return places[row]

    # Transitions.

    def _read_transitions(self, numbers: Ints) -> None:
        """Find the rows of the transitions that are new."""
        if numbers.size == self._numbers.size:
            return
        at = np.searchsorted(numbers, self._numbers)
        new = np.ones(numbers.size, dtype=bool)
        new[at] = False
        pairs, following = np.divmod(numbers[new], self._structure.n_states)
        outcomes = self.views.explained(pairs, following)
        classes = self.views.classes[pairs]
        for k, name in enumerate(self.names):
            merged = np.empty(numbers.size, dtype=np.int64)
            merged[at] = self._row_of[name]
            values = self._event_values(k, classes, outcomes) if self._of_events else self._values(name, outcomes)
            merged[new] = self._rows_of(name, k, classes, values)
            self._row_of[name] = merged
        self._numbers = numbers.copy()

    def _values(self, name: str, outcomes: Ints) -> Ints:
        """Return the cells of a noise, see ``NoiseViews``, in some joint outcomes; -1 for none."""
        return np.where(outcomes >= 0, self.views.cells[name][outcomes], -1)

    def _event_values(self, event: int, classes: Ints, outcomes: Ints) -> Ints:
        """Return whether an event is the first that explains each transition; -1 for none."""
        return np.where(outcomes >= 0, outcomes == event, -1)

    def _rows_of(self, name: str, place: int, classes: Ints, values: Ints) -> Ints:
        """Return the rows of some transitions, given their classes and the values in the first outcome explaining."""
        size = 2 if self._of_events else self.views.n_cells[name]
        codes, back = np.unique(np.where(values >= 0, classes * size + values, -1), return_inverse=True)
        rows = []
        for code in codes.tolist():
            row = None if code < 0 else self._row(name, place, code // size, code % size)
            rows.append(-1 if row is None else self._place(name, row))
        return np.array(rows, dtype=np.int64)[back.ravel()]

    def _row(self, name: str, place: int, number: int, value: int) -> SightedRow | None:
        """Return the row that a cell of a noise is in, in a class of pairs; None if nothing is seen of the noise."""
        if self._of_events:
            seen = self.views.of_cell(number, EVENTS, 0)
            return None if seen is None else self._row_in(seen[0], 0, place, place if value else -1, in_full=False)
        seen = self.views.of_cell(number, name, value)
        return None if seen is None else self._row_in(seen[0], seen[0].blocks[seen[1]], place, -1, in_full=False)

    # Rounds in which noise or costs were seen.

    def _read_reports(self, *kinds: dict[tuple[int, ...], int]) -> None:
        """Find the rows of the reports that are new, which are the last of each kind."""
        times, paid, named = (list(kind)[len(known) :] for kind, known in zip(kinds, self._reported, strict=True))
        S = self._structure.n_states
        for number, bits, *cells in times:
            self._note(0, number, cells, self.views.reported(number // S, bits, cells), in_full=True)
        for number, *cells in paid:
            self._note(1, number, cells, self.views.paid(number // S, None, cells), in_full=False)
        for number, bits, *cells in named:
            self._note(2, number, cells, self.views.paid(number // S, bits, cells), in_full=False)

    def _note(
        self, kind: int, number: int, cells: list[int], seen: Iterable[tuple[str, NoiseView, int]], in_full: bool
    ) -> None:
        """Note the rows that a round revealed."""
        self._reported[kind].append(number)
        views = {name: (view, block) for name, view, block in seen}
        for place, name in enumerate(self.names):
            found = views.get(EVENTS if self._of_events else name)
            outcome = cells[0] % self._structure.randomness.n_outcomes if cells else -1
            row = None if found is None else self._row_in(found[0], found[1], place, outcome, in_full)
            self._report_rows[name][kind].append(-1 if row is None else self._place(name, row))

    def _row_in(self, view: NoiseView, block: int, place: int, outcome: int, in_full: bool) -> SightedRow | None:
        """Return the row of a set of a view; None if it reveals nothing."""
        if self._of_events:
            alone = view.blocks[place] >= 0 and view.blocks.count(view.blocks[place]) == 1
            return SightedRow(view.context, (), (int(outcome == place),)) if alone else None
        values = _members(view.blocks, block)
        in_full = in_full and len(set(view.blocks) - {-1}) == sum(own >= 0 for own in view.blocks)
        return None if values is None else SightedRow(view.context, () if in_full else view.blocks, values)

    def state(self) -> dict[str, Any]:
        """Return the rows of all noises, as lists of whole numbers."""
        return {
            name: [[row.context, len(row.view), *row.view, *row.values] for row in rows]
            for name, rows in self.rows.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self._forget()
        saved = read_fields(state, {name: listed(self._row_kind(name)) for name in self.names})
        for name, rows in saved.items():
            self.rows[name], self._places[name] = [], {}
            for row in rows:
                self._place(name, row)
            need_that(len(self.rows[name]) == len(rows), f"{name}: must have rows that are all different")

    def _row_kind(self, name: str) -> Kind:
        """Return the kind of a row of a noise: its context, the length of its view, the view, and the values."""
        randomness = self._structure.randomness
        if isinstance(randomness, RoundNoise):
            contexts, size = randomness.own_number(name), randomness.sizes[list(randomness.noises).index(name)]
        else:
            contexts, size = randomness.n_contexts, 2

        def read(value: Any) -> SightedRow:
            numbers = integers((None,), -1)(value).tolist()
            need_that(len(numbers) >= 2, "must begin with a context and a length")
            context, n, *rest = numbers
            view, values = tuple(rest[:n]), tuple(rest[n:])
            need_that(0 <= context < contexts and n in (0, size), "must begin with a context and a length")
            need_that(max(view, default=-1) < size, "must have a view of the values")
            need_that(all(0 <= one < size for one in values), "must have values of the noise")
            need_that(values or self._of_events, "must have values")
            return SightedRow(context, view, values)

        return read


def sojourn_rows(structure: Structure, noise: SeenNoise) -> Iterator[tuple[int, int, SightedRow, float]]:
    """Return event, pair, row and times of what sojourns show: the ticks that went by, and the events that ended them.

    Where changes of state were seen, an event shows if it changes the state as no other event does; where all events
    were seen, it always does.
    """
    clock = structure.randomness
    assert isinstance(clock, EventClock)
    for (pair, sees_all), (time, _) in noise.sojourns.items():
        context = int(structure.contexts[pair])
        for event in _shown(structure, clock, pair, bool(sees_all)):
            yield event, pair, SightedRow(context, (), ()), clock.clock * time
    for (pair, *cells), times in noise.ends.items():
        if len(cells) == 1:
            context, event = divmod(cells[0], clock.n_outcomes)
            yield event, pair, SightedRow(context, (), (1,)), float(times)


def _shown(structure: Structure, clock: EventClock, pair: int, sees_all: bool) -> list[int]:
    """Return the events of a pair that would have shown."""
    possible = np.flatnonzero(clock.factors[structure.contexts[pair]] > 0.0).tolist()
    if sees_all:
        return possible
    following = structure.successors[pair, possible].tolist()
    state = pair // structure.n_actions
    return [event for event, s in zip(possible, following, strict=True) if s != state and following.count(s) == 1]


@lru_cache(maxsize=4096)
def _members(blocks: tuple[int, ...], block: int) -> tuple[int, ...] | None:
    """Return the values in a set of a view; None if the view has only one set."""
    if len(set(blocks) - {-1}) < 2:
        return None
    return tuple(value for value, own in enumerate(blocks) if own == block)
