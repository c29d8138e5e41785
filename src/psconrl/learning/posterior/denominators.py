"""The averages of the denominators of ratios over rounds that were played, where these reveal them."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.learning.posterior.counts import Record, Seen
from psconrl.learning.posterior.explanations import Explanations
from psconrl.learning.posterior.seen_noise import SeenNoise
from psconrl.systems.events import EventClock
from psconrl.systems.ratios import Ratios
from psconrl.systems.structure import Structure


class Denominators:
    """What the denominators of ratios were in rounds that were seen; every kind of round is looked up once."""

    def __init__(self, structure: Structure, ratios: Ratios) -> None:
        self._structure, self._ratios = structure, ratios
        self._found: dict[tuple[int, ...], Floats] = {}
        self._running: tuple[int, Floats] | None = None  # rounds up to the last episode, and the sums in these

    @cached_property
    def _explanations(self) -> Explanations:
        own = self._ratios
        divided = replace(
            self._structure, fixed_costs=own.fixed, outcome_costs=own.by_outcome, event_costs=own.by_event
        )
        return Explanations(divided, None)

    def averages(self, record: Record, seen: Seen, *, keep: bool = True) -> tuple[Floats, Floats]:
        """Return the averages (k,) of all denominators in an episode, and in all rounds so far, which end with it.

        They are nan where some round does not determine the denominator, or a sojourn that was measured, as where
        events that count may have happened meanwhile without a trace. ``keep``: the sums, for the next episode.
        """
        episode, rounds = self.sums(record), int(seen.visits.sum())
        continues = self._running is not None and self._running[0] == rounds - record.steps
        total = self._running[1] + episode if self._running is not None and continues else self.sums(seen)
        if keep:
            self._running = rounds, total
        return episode / max(record.steps, 1), total / max(rounds, 1)

    def sums(self, seen: Seen) -> Floats:
        """Return the sums (k,) of all denominators; nan of one that some round does not determine."""
        rounds = dict(zip(seen.tally.numbers.tolist(), seen.tally.times.tolist(), strict=True))
        for (number,), ticks in seen.noise.ticks.items():
            rounds[number] -= ticks
        total = self._of_sojourns(seen.noise)
        for (number, *cells), times in seen.noise.items():
            rounds[number] -= times
            total += times * self._of(number, tuple(cells))
        for number, times in rounds.items():
            if times:
                total += times * self._of(number)
        return total

    def _of_sojourns(self, noise: SeenNoise) -> Floats:
        """Return the sums (k,) over all sojourns: what their time adds, and what the events that ended them add."""
        structure, total = self._structure, np.zeros(len(self._ratios.limits))
        clock = structure.randomness
        if not isinstance(clock, EventClock):
            return total
        for (pair, sees_all), (time, _) in noise.sojourns.items():
            values, groups = self._explanations.costs(pair)
            unseen = (structure.successors[pair] == pair // structure.n_actions) & (groups[0] >= 0) & (not sees_all)
            known = ((groups == groups[:, [-1]]) | ~unseen).all(axis=1)
            total += np.where(known, clock.clock * time * values[:, -1], np.nan)
        for (pair, *cells), times in noise.ends.items():
            quiet = self._explanations.costs(pair)[0][:, -1]
            total += times * (self._of(pair * structure.n_states, tuple(cells)) - quiet)
        return total

    def _of(self, number: int, cells: tuple[int, ...] | None = None) -> Floats:
        """Return the denominators (k,) in a round with this transition, and these outcomes if more was seen."""
        key = (number,) if cells is None else (number, *cells)
        if key not in self._found:
            pair, following = divmod(number, self._structure.n_states)
            if cells is None:
                cells = self._explanations.of(pair, following).cells
            values, groups = self._explanations.costs(pair)
            outcomes = np.array(cells, dtype=np.int64) % values.shape[1]
            same = (groups[:, outcomes] == groups[:, outcomes[:1]]).all(axis=1) & bool(cells)
            self._found[key] = np.where(same, values[:, outcomes[0]], np.nan) if cells else np.full(len(values), np.nan)
        return self._found[key]
