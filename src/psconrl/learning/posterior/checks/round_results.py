"""What rounds revealed of all noise together: each a set of joint outcomes, one of which happened.

A *result* is the set of joint outcomes, in a context, that lead to the next state observed and agree with the noise and
the costs that were reported. Which results a round may have is known before the noise is drawn: it follows from state,
action, and from what is reported. So the probability of a result is the sum of those of its outcomes, for any
distribution of the joint outcomes.
"""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import integer, integers, listed, need_that, read_fields, reals
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.seen_noise import Key
from psconrl.systems.structure import Structure

Result = tuple[int, ...]  # (0, number of the pattern of a transition), or (1, *cells)
TRANSITION, CELLS = 0, 1


class Rounds(NamedTuple):
    """How often results were seen in pairs."""

    pairs: Ints
    results: Ints  # places in the list of results
    times: Floats
    order: Ints | None  # the results of all rounds as they followed each other, if that is known


class Cells(NamedTuple):
    """The joint outcomes of some results, one after the other."""

    result: Ints  # the place of the result that each belongs to, among those asked for
    contexts: Ints
    outcomes: Ints
    number: int  # of results


class RoundResults:
    """The results seen so far, whose list grows, and how often each was seen in every pair."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self.results: list[Result] = []
        self._places: dict[Result, int] = {}
        self._codes: Ints = np.empty(0, dtype=np.int64)  # pair and result, as numbers, of all rounds counted so far
        self._times: Floats = np.empty(0)
        self._reported: list[list[tuple[int, int]]] = [[], [], []]  # transition and result of reports, by kind
        self.total = 0  # number of rounds at the last call

    def new(self, counts: Counts) -> Rounds:
        """Return the rounds since the last call."""
        codes, times = self._all(counts)
        before = np.zeros(codes.size)
        at = np.searchsorted(codes, self._codes)
        before[at] = self._times
        self._codes, self._times = codes, times
        changed = np.flatnonzero(times > before)
        pairs, results = np.divmod(codes[changed], 1 << 32)
        new = (times - before)[changed]
        total = int(counts.visits.sum())
        followed = counts.noise.followed[-(total - self.total) :] if total > self.total else []
        self.total = total
        return Rounds(pairs, results, new, self._order(followed, results, new))

    def _order(self, followed: list[Key], results: Ints, times: Floats) -> Ints | None:
        """Return the results of rounds that were noted in their order; None if these are not all rounds."""
        places = [self._followed_place(number, cells) for number, *cells in followed]
        order = np.array([place for place in places if place >= 0], dtype=np.int64)
        seen = np.bincount(order, minlength=len(self.results))
        expected = np.bincount(results, weights=times, minlength=len(self.results))
        return order if np.array_equal(seen, expected) else None

    def _followed_place(self, number: int, cells: list[int]) -> int:
        """Return the place of the result of a round; -1 if nothing explains it."""
        if cells:
            return self._places.get((CELLS, *cells), -1)
        at = min(int(np.searchsorted(self._entries, number)), self._entries.size - 1)
        pattern = int(self._structure.patterns.of_entry[at])
        return self._places.get((TRANSITION, pattern), -1) if self._entries[at] == number else -1

    def _all(self, counts: Counts) -> tuple[Ints, Floats]:
        """Return numbers of pair and result, increasing, and how often each was seen."""
        structure, S = self._structure, self._structure.n_states
        reports = self._read_reports(counts)
        numbers, times = counts.tally.numbers, counts.tally.times.astype(np.float64)
        ticks = np.array([number for (number,) in counts.noise.ticks], dtype=np.int64)
        left_out = np.concatenate([reports[0], ticks])
        weights = np.concatenate([reports[2], np.array(list(counts.noise.ticks.values()), dtype=np.float64)])
        if left_out.size:
            times -= np.bincount(np.searchsorted(numbers, left_out), weights=weights, minlength=times.size)
        kept = np.flatnonzero(times > 0.0)
        pairs = numbers[kept] // S
        patterns = structure.patterns
        at = np.minimum(np.searchsorted(self._entries, numbers[kept]), self._entries.size - 1)
        places = np.where(self._entries[at] == numbers[kept], at, -1)
        known = np.flatnonzero(places >= 0)
        found, back = np.unique(patterns.of_entry[places[known]], return_inverse=True)
        own = np.array([self._place((TRANSITION, int(one))) for one in found], dtype=np.int64)[back.ravel()]
        explained = np.flatnonzero(reports[1] >= 0)
        codes = np.concatenate([pairs[known] << 32 | own, (reports[0] // S << 32 | reports[1])[explained]])
        all_times = np.concatenate([times[kept][known], reports[2][explained]])
        codes, back = np.unique(codes, return_inverse=True)
        return codes, np.bincount(back.ravel(), weights=all_times, minlength=codes.size).astype(np.float64)

    @cached_property
    def _entries(self) -> Ints:
        """The numbers (s * A + a) * S + s' of the transitions that are possible, increasing."""
        patterns = self._structure.patterns
        pairs = np.repeat(np.arange(patterns.indptr.size - 1), np.diff(patterns.indptr))
        return np.asarray(pairs * self._structure.n_states + patterns.successors)

    def _place(self, result: Result) -> int:
        if result not in self._places:
            self._places[result] = len(self.results)
            self.results.append(result)
        return self._places[result]

    def _read_reports(self, counts: Counts) -> tuple[Ints, Ints, Floats]:
        """Return transition, result (-1: nothing explains it) and times of all rounds with reports."""
        noise = counts.noise
        for known, kind, skipped in zip(self._reported, (noise.times, noise.paid, noise.named), (2, 1, 2), strict=True):
            for key in list(kind)[len(known) :]:
                cells = key[skipped:]
                known.append((key[0], self._place((CELLS, *cells)) if cells else -1))
        both = np.array([one for known in self._reported for one in known], dtype=np.int64).reshape(-1, 2)
        times = [n for kind in (noise.times, noise.paid, noise.named) for n in kind.values()]
        return both[:, 0], both[:, 1], np.array(times, dtype=np.float64)

    def cells(self, results: Sequence[int] | Ints) -> Cells:
        """Return the joint outcomes of some results."""
        patterns, W = self._structure.patterns, self._structure.randomness.n_outcomes
        members: list[Any] = []
        for place in results:
            kind, *rest = self.results[place]
            members.append(
                patterns.cells[patterns.starts[rest[0]] : patterns.starts[rest[0] + 1]] if kind == TRANSITION else rest
            )
        lengths = np.array([len(one) for one in members], dtype=np.int64)
        cells = np.concatenate([np.asarray(one, dtype=np.int64) for one in members]) if members else np.empty(0, int)
        contexts, outcomes = np.divmod(cells, W)
        return Cells(np.repeat(np.arange(lengths.size), lengths), contexts, outcomes, lengths.size)

    def state(self) -> dict[str, Any]:
        """Return the results, and how often each was seen."""
        return {"results": [list(one) for one in self.results], "codes": self._codes, "times": self._times} | {
            "total": self.total,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.results, self._places = [], {}
        cells = self._structure.randomness.n_contexts * self._structure.randomness.n_outcomes
        bounds = {TRANSITION: self._structure.patterns.starts.size - 1, CELLS: cells}

        def result(value: Any) -> Result:
            kind, *rest = integers((None,))(value).tolist() or [-1]
            right = kind in bounds and rest and max(rest) < bounds[kind]
            need_that(right, "must be a kind of result, and numbers of this kind")
            return (kind, *rest)

        codes = integers((None,), 0, np.iinfo(np.int64).max)
        described = {"results": listed(result), "codes": codes, "times": reals((None,), 0.0), "total": integer()}
        saved = read_fields(state, described)
        for one in saved["results"]:
            self._place(one)
        need_that(len(self.results) == len(saved["results"]), "results must be all different")
        self._codes, self._times, self.total = saved["codes"], saved["times"], saved["total"]
        need_that(self._codes.shape == self._times.shape, "codes and times must have the same length")
        most = self._structure.contexts.size * len(self.results)
        need_that(self._codes.size <= most, f"codes must be at most {most}, of pairs and results")
        pairs, results = np.divmod(self._codes, 1 << 32)
        need_that((np.diff(self._codes) > 0).all(), "codes must increase")
        known = (pairs < self._structure.contexts.size) & (results < len(self.results))
        need_that(known.all(), "codes must be made of pairs and results")
        self._reported = [[], [], []]

    def need_within(self, counts: Counts) -> None:
        """Raise an error unless what was noted so far is part of the rounds that were counted."""
        twin = copy.copy(self)  # since reading counts notes new results
        twin.results, twin._places, twin._reported = list(self.results), dict(self._places), [[], [], []]
        codes, times = twin._all(counts)
        at = np.minimum(np.searchsorted(codes, self._codes), codes.size - 1)
        part = (codes[at] == self._codes) & (self._times <= times[at]) if codes.size else self._codes < 0
        need_that(part.all() and self.total <= counts.visits.sum(), "results must be part of the rounds counted")
