"""What rounds revealed of a system: which joint outcomes of its noise explain each, and which rounds none explains.

Rounds are of the same *kind* if state, action, next state, the noise that was seen and the costs are the same. What
explains a kind is found once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.data.rounds.spaces import MISSING, UNKNOWN, places
from psconrl.data.tables.columns import LabelColumn
from psconrl.data.tables.records import Records
from psconrl.errors import LogError
from psconrl.learning.posterior.counts import Seen
from psconrl.learning.posterior.explanations import COST_TOL, Explanations
from psconrl.learning.posterior.seen_noise import MOST_FOLLOWED
from psconrl.systems.events import EventClock
from psconrl.systems.sources import NEXT
from psconrl.systems.structure import Structure
from psconrl.systems.system import System
from psconrl.systems.vocabulary import Vocabulary

# What is wrong with a kind of rounds.
RIGHT, NOT_AVAILABLE, IMPOSSIBLE, OTHER_ACTION, OTHER_NOISE, OTHER_COST = range(6)
DECIMALS_SHOWN = 6  # to which costs in a table may be rounded
ALL = slice(None)
AT_ONCE = 4_000_000  # kinds times joint outcomes


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of rounds. ``noise``: places of values that were seen, or a mark; ``costs``: nan where not given."""

    pairs: Ints
    next_states: Ints
    noise: Mapping[str, Ints]
    costs: Mapping[str, Floats]
    of_round: Ints  # the kind of every round
    times: Ints  # how often each occurred


class SystemRounds:
    """The rounds of a log of a system."""

    def __init__(
        self, system: System, states: Any, actions: Any, next_states: Any, records: Records, costs: Mapping[str, Floats]
    ) -> None:
        self.system: System = system  # whose statement is linear
        self.structure: Structure = self.system.structure
        if isinstance(self.structure.randomness, EventClock):
            raise LogError("a system with events has no rounds in a table; describe it with noise and a step")
        self.words: Vocabulary = self.system.vocabulary()
        pairs = states.astype(np.int64) * self.structure.n_actions + actions
        self.numbers: Ints = pairs * self.structure.n_states + next_states
        self.seen = [name for name in self.words.outcomes if name in records]
        noise = {name: self._noise_places(name, records) for name in self.seen}
        self.kinds = _kinds(self.numbers, self.structure.n_states, noise, costs)
        self._explanations = Explanations(self.structure, self.words)
        self.wrong: Ints = np.zeros(self.kinds.pairs.size, dtype=np.int64)  # of every kind
        self.cells: list[tuple[int, ...]] = [()] * self.kinds.pairs.size
        self.costs: Floats = np.full((self.kinds.pairs.size, len(self.words.costs)), np.nan)
        self._explain()

    @cached_property
    def outcome_values(self) -> dict[str, tuple[NDArray[Any], Ints]]:
        """Of every noise its distinct values, increasing, and the place (W,) of its value in each joint outcome."""
        found = {}
        for name, values in self.words.outcomes.items():
            distinct, of_outcome = np.unique(values, return_inverse=True)
            found[name] = distinct, of_outcome.ravel()
        return found

    def _noise_places(self, name: str, records: Records) -> Ints:
        """Return the place of a noise's value in every round, or a mark."""
        distinct = self.outcome_values[name][0]
        most = self.words.most.get(name)
        column = records.labels(name)
        if column is None:
            column = LabelColumn(*_as_labels(records[name]))
        if most is not None:
            column = LabelColumn(
                column.codes, tuple(min(v, most) if not isinstance(v, str) else v for v in column.values)
            )
        return places(column, distinct.tolist())[column.codes]

    def _explain(self) -> None:
        """Find the outcomes of every kind, what is wrong, and the costs."""
        kinds, W = self.kinds, self.structure.randomness.n_outcomes
        possible, structure = self.structure.randomness.possible(), self.structure
        at_most = np.zeros(W, dtype=bool)
        for name, most in self.words.most.items():
            at_most |= self.words.outcomes[name] == most
        decimals = {name: _decimals(values) for name, values in kinds.costs.items()}
        order = np.argsort(kinds.pairs, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(kinds.pairs[order])) + 1):
            pair = int(kinds.pairs[own[0]])
            for k in range(0, own.size, max(1, AT_ONCE // W)):
                some = own[k : k + max(1, AT_ONCE // W)]
                self._explain_pair(pair, some, possible[structure.contexts[pair]], at_most, decimals)

    def _explain_pair(
        self, pair: int, some: Ints, possible: Bools, at_most: Bools, decimals: Mapping[str, int]
    ) -> None:
        kinds, structure, words = self.kinds, self.structure, self.words
        state, action = divmod(pair, structure.n_actions)
        context, W = int(structure.contexts[pair]), possible.size
        fits = possible & (structure.successors[pair] == kinds.next_states[some, None])
        moved = fits.any(axis=1)
        for name in self.seen:
            own = kinds.noise[name][some, None]
            fits &= (own == MISSING) | (self.outcome_values[name][1] == own)
        explained = fits.any(axis=1)
        paid = fits.copy()
        for name, values in kinds.costs.items():
            paid &= self._same_cost(name, pair, values[some], possible, decimals[name])
        right = paid.any(axis=1)
        paid = np.where(right[:, None], paid, fits & at_most)
        right |= paid.any(axis=1)
        wrong = np.where(right, RIGHT, OTHER_COST)
        wrong = np.where(explained, wrong, OTHER_NOISE)
        wrong = np.where(moved, wrong, IMPOSSIBLE)
        if not moved.all():
            others = state * structure.n_actions + np.flatnonzero(words.available[state])
            allowed = structure.randomness.possible()[structure.contexts[others]]
            reached = np.unique(structure.successors[others][allowed])
            wrong = np.where(~moved & np.isin(kinds.next_states[some], reached), OTHER_ACTION, wrong)
        if not words.available[state, action]:
            wrong[:] = NOT_AVAILABLE
        self.wrong[some] = wrong
        for row, kind in enumerate(some.tolist()):
            self.cells[kind] = tuple((context * W + np.flatnonzero(paid[row])).tolist())
        self.costs[some] = self._shown_costs(pair, some, paid)

    def _named_cost(self, name: str, pair: int) -> Floats:
        """Return a cost (W,) of all outcomes in a pair, as it is shown or as it is stated."""
        words = self.words
        if name in words.costs:
            i = words.costs.index(name)
            return np.asarray(words.signs[i] * self._explanations.costs(pair).values[i])
        state, action = divmod(pair, self.structure.n_actions)
        return words.stated_cost(name, state, action, self.structure.successors[pair])

    def _same_cost(self, name: str, pair: int, given: Floats, possible: Bools, decimals: int) -> Bools:
        """Return which outcomes (K, W) have the cost of each kind, as far as decimals in the table show."""
        values = self._named_cost(name, pair)
        size = float(np.abs(values[possible]).max(initial=0.0))
        rounded = np.round(values, decimals)
        near = np.abs(values - given[:, None]) <= COST_TOL * size
        near |= np.abs(rounded - given[:, None]) <= max(COST_TOL * 10.0**-decimals, 1e-12 * size)
        return near | np.isnan(given)[:, None]

    def _shown_costs(self, pair: int, some: Ints, paid: Bools) -> Floats:
        """Return the objective and the limits (K, m+1) of each kind; nan where they are not known."""
        kinds, system, words = self.kinds, self.system, self.words
        found = np.full((some.size, len(words.costs)), np.nan)
        columns = self._columns(pair, some)
        for i, limit in enumerate(system.statement.rows):
            if words.costs[i] in kinds.costs:
                found[:, i] = kinds.costs[words.costs[i]][some]
            elif limit.names <= columns.keys():
                found[:, i] = limit.cost(columns, some.size)
            else:
                values = words.signs[i] * self._explanations.costs(pair).values[i]
                high = np.where(paid, values, -np.inf).max(axis=1)
                low = np.where(paid, values, np.inf).min(axis=1)
                same = paid.any(axis=1) & (high - low <= COST_TOL * np.abs(values).max(initial=0.0))
                found[:, i] = np.where(same, high, np.nan)
        return found

    def _columns(self, pair: int, some: Ints) -> dict[str, NDArray[Any]]:
        """Return the values of variables, and of costs that are in the table, of some kinds in a pair."""
        words, kinds = self.words, self.kinds
        state, action = divmod(pair, self.structure.n_actions)
        columns = {k: np.repeat(v, some.size) for k, v in words.states.values(words.reachable[[state]]).items()}
        columns |= {k: np.repeat(v, some.size) for k, v in words.actions.values(np.array([action])).items()}
        columns |= {NEXT + k: v for k, v in words.states.values(words.reachable[kinds.next_states[some]]).items()}
        for name in self.seen:
            own = kinds.noise[name][some]
            if (own >= 0).all() and name not in words.most:
                columns[name] = self.outcome_values[name][0][own]
        stated = {name: values[some] for name, values in kinds.costs.items() if name in words.stated}
        return columns | {name: values for name, values in stated.items() if not np.isnan(values).any()}

    def add_to(self, counts: Seen, rounds: slice = ALL, whole: bool = False) -> None:
        """Add what some rounds revealed of the noise to the counts of their transitions.

        ``whole``: leave out a noise in pairs in which it was not always seen, since whether it was seen may depend on
        its value, as where demand is not known once the stock has run out.
        """
        kinds, noise = self.kinds, counts.noise
        occurred = np.bincount(kinds.of_round[rounds], minlength=kinds.pairs.size)
        all_given = set(self.words.costs) <= set(kinds.costs)
        named = sum(1 << k for k, name in enumerate(self.words.cost_names) if name in kinds.costs)
        S = self.structure.n_states
        noted = np.zeros(kinds.pairs.size, dtype=bool)  # whether more than the transition was noted
        reported = np.zeros(kinds.pairs.size, dtype=np.int64)
        for k, name in enumerate(self.words.outcomes):
            if name in self.seen:
                own = kinds.noise[name] >= 0
                if whole:
                    own &= ~np.isin(kinds.pairs, kinds.pairs[~own])
                reported |= np.where(own, 1 << k, 0)
        numbers = kinds.pairs * S + kinds.next_states
        for kind, (number, bits, times) in enumerate(
            zip(numbers.tolist(), reported.tolist(), occurred.tolist(), strict=True)
        ):
            cells = self.cells[kind]
            if not cells or not times:
                continue
            if bits:
                key = (number, bits, *cells)
                noise.times[key] = noise.times.get(key, 0) + times
            elif all_given and self._explanations.costs_reveal(number // S):
                noise.note_paid(number, cells, times)
            elif named and not all_given:
                key = (number, named, *cells)
                noise.named[key] = noise.named.get(key, 0) + times
            else:
                continue
            noted[kind] = True
        for kind in kinds.of_round[rounds][-MOST_FOLLOWED:].tolist():
            noise.follow(int(numbers[kind]), self.cells[kind] if noted[kind] else ())


def _as_labels(values: Floats) -> tuple[Any, tuple[float, ...]]:
    """Return numbers as codes and values."""
    distinct, codes = np.unique(values, return_inverse=True)
    codes = np.where(np.isnan(values), MISSING, codes.ravel())
    return codes.astype(np.int32), tuple(distinct[~np.isnan(distinct)].tolist())


def _decimals(values: Floats) -> int:
    """Return to how many decimals all values are rounded; ``DECIMALS_SHOWN`` if they have more."""
    known = values[~np.isnan(values)]
    for decimals in range(DECIMALS_SHOWN):
        if (np.round(known, decimals) == known).all():
            return decimals
    return DECIMALS_SHOWN


def _kinds(numbers: Ints, n_states: int, noise: Mapping[str, Ints], costs: Mapping[str, Floats]) -> Kinds:
    """Return the distinct rounds."""
    codes = numbers
    for part in noise.values():
        codes = _paired(codes, part - UNKNOWN)
    for values in costs.values():
        codes = _paired(codes, np.unique(values, return_inverse=True)[1].ravel())
    _, first, of_round, times = np.unique(codes, return_index=True, return_inverse=True, return_counts=True)
    pairs, following = np.divmod(numbers[first], n_states)
    return Kinds(
        pairs,
        following,
        {name: part[first] for name, part in noise.items()},
        {name: values[first] for name, values in costs.items()},
        of_round.ravel(),
        times,
    )


def _paired(codes: Ints, part: Ints) -> Ints:
    """Return a code for every combination of a code and a part."""
    size = int(part.max(initial=0)) + 1
    if codes.size and int(codes.max()) >= 2**62 // size:
        codes = np.unique(codes, return_inverse=True)[1].ravel()
    return np.asarray(codes * size + part)
