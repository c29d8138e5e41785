"""Data augmentation: outcomes of the noise are drawn given its parameters, and parameters given outcomes, in turn."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.learning.posterior.collapsed_moves import CollapsedMoves
from psconrl.learning.posterior.outcome_sets import OutcomeSets
from psconrl.learning.posterior.seen_noise import SeenNoise
from psconrl.systems.events import EventClock
from psconrl.systems.randomness import Parameters, RoundNoise, Timed
from psconrl.systems.structure import Structure

SWEEPS = 5  # per episode

Sets = list[tuple[OutcomeSets, Ints]]  # what was revealed, and how often each set was


class Gibbs:
    """The chain of parameters for what was revealed."""

    def __init__(self, structure: Structure, sets: Sets, sojourns: "Sojourns | None" = None) -> None:
        randomness = structure.randomness
        self._structure, self._sets, self._sojourns = structure, sets, sojourns
        self._certain: Floats = np.zeros((len(randomness.sizes), randomness.n_contexts, randomness.n_outcomes))
        self._doubtful = []
        for group, observed in sets:
            settled, open_ = group.split(observed)
            self._certain += group.settled(settled, observed[settled])
            if open_.size:
                self._doubtful.append((group, open_, observed[open_]))

    @property
    def is_exact(self) -> bool:
        """True if every sweep is an independent draw from the posterior."""
        return self._structure.randomness.is_conjugate and not self._doubtful

    def outcomes(self, parameters: Parameters, rng: np.random.Generator) -> Floats:
        """Return the numbers (K, G, W) of outcomes that revealed something of each noise, drawn where they are open."""
        if not self._doubtful:
            return self._certain
        table = self._structure.table(parameters)
        drawn = [group.drawn(which, times, table, rng) for group, which, times in self._doubtful]
        return sum(drawn, start=self._certain)

    def sweep(self, parameters: Parameters, rng: np.random.Generator) -> Parameters:
        """Draw outcomes, then parameters."""
        outcomes = self.outcomes(parameters, rng)
        timed = None if self._sojourns is None else self._sojourns.timed(self._structure, parameters, rng)
        return self.moved(self._structure.randomness.draw(outcomes, parameters, rng, timed), rng)

    def moved(self, parameters: Parameters, rng: np.random.Generator) -> Parameters:
        """Return the parameters after moves that need no outcomes; the same if all outcomes are known."""
        return self._moves.moved(parameters, rng) if self._doubtful else parameters

    @cached_property
    def _moves(self) -> CollapsedMoves:
        return CollapsedMoves(self._structure.randomness, self._sets)

    @cached_property
    def observations(self) -> dict[str, int]:
        """The number of rounds that revealed something of every unknown parameter, by name."""
        randomness = self._structure.randomness
        if isinstance(randomness, EventClock):
            found = dict.fromkeys(randomness.priors, 0)
            for event, key in randomness.keys.items():
                found[key] += sum(_seen_of_event(randomness, event, group, times) for group, times in self._sets)
                found[key] += 0 if self._sojourns is None else int(self._sojourns.exposed[event])
            return found
        assert isinstance(randomness, RoundNoise)
        sums = self._certain.sum(axis=(1, 2))
        for group, which, times in self._doubtful:
            sums += times @ group.reveals[which]
        found = dict.fromkeys(randomness.priors, 0)
        for place, name in enumerate(randomness.noises):
            if name in randomness.keys:
                found[randomness.keys[name]] += int(sums[place])
        return found


class Sojourns(NamedTuple):
    """Sojourns that were measured: sets of events that may have ended them, exposures, and numbers of observations."""

    ends: OutcomeSets | None
    times: Ints  # how often each set ended a sojourn
    exposure: Floats  # (E,)
    exposed: Ints  # (E,) sojourns in which each event would have been seen

    @classmethod
    def of(cls, structure: Structure, noise: SeenNoise) -> "Sojourns | None":
        """Return the sojourns among what was seen; None if there are none."""
        clock = structure.randomness
        if not noise.sojourns or not isinstance(clock, EventClock):
            return None
        exposure, exposed = np.zeros(clock.factors.shape[1]), np.zeros(clock.factors.shape[1], dtype=np.int64)
        for (pair, sees_all), (time, number) in noise.sojourns.items():
            factors = clock.factors[structure.contexts[pair]]
            seen = (structure.successors[pair, :-1] != pair // structure.n_actions) | bool(sees_all)
            exposure += np.where(seen, time * factors, 0.0)
            exposed += np.where(seen & (factors > 0.0), number, 0)
        sets: dict[tuple[int, ...], int] = {}
        for (_, *cells), n in noise.ends.items():
            sets[tuple(cells)] = sets.get(tuple(cells), 0) + n
        ends = OutcomeSets.of(clock, sets) if sets else None
        return cls(ends, np.array(list(sets.values()), dtype=np.int64), exposure, exposed)

    def timed(self, structure: Structure, parameters: Parameters, rng: np.random.Generator) -> Timed:
        """Return the events that happened, drawn where that is open, and their exposure."""
        if self.ends is None:
            return Timed(np.zeros(self.exposure.size), self.exposure)
        drawn = self.ends.drawn(np.arange(self.times.size), self.times, structure.table(parameters), rng)
        return Timed(drawn[0, :, :-1].sum(axis=0), self.exposure)


def _seen_of_event(clock: EventClock, event: int, group: OutcomeSets, times: Ints) -> int:
    """Return in how many rounds it showed whether an event happened or nothing did, where it could happen."""
    W = clock.n_outcomes
    of_cell = np.repeat(np.arange(times.size), np.diff(group.starts))
    has = [np.bincount(of_cell[group.cells % W == w], minlength=times.size) > 0 for w in (event, W - 1)]
    could = clock.factors[group.cells[group.starts[:-1]] // W, event] > 0.0
    return int(times[could & ~(has[0] & has[1])].sum())
