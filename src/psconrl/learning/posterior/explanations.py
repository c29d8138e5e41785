"""Which joint outcomes of a system's noise explain what was seen of a round, and what they cost.

An outcome explains a round if it leads to the state observed, agrees with the noise that was seen, and has the costs
that were incurred, within ``COST_TOL`` times the largest cost of the pair. A count at its ``most`` stands for all
larger counts, whose costs are not known: where no outcome has the costs incurred, those with a count at its most
explain them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.systems.randomness import Parameters
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary

COST_TOL = 1e-6  # relative to the largest cost of the pair: costs that differ by less are the same
MOST_KEPT = 2_000_000  # numbers of either kind that are kept for later rounds

Costs = Floats | Mapping[str, float] | None  # all of them (m+1,), or some by name


class Explained(NamedTuple):
    """The outcomes, as cells context * W + outcome, that explain a round."""

    cells: tuple[int, ...]
    costs_fit: bool = True  # False if no outcome has the costs incurred, which are then ignored


class PairCosts(NamedTuple):
    """The costs (m+1, W) of all outcomes in a pair, and numbers of those that are the same; -1 if impossible."""

    values: Floats
    groups: Ints


class Explanations:
    """The outcomes of a structure that explain rounds; ``words`` are needed where noise was seen."""

    def __init__(self, structure: Structure, words: Vocabulary | None) -> None:
        self._structure, self._words = structure, words
        self._possible = structure.randomness.possible()
        self._pairs: dict[int, PairCosts] = {}
        self._found: dict[tuple[int, int, bytes], Explained] = {}
        self._reveals: dict[int, bool] = {}

    def costs(self, pair: int) -> PairCosts:
        """Return the costs of all outcomes in a pair."""
        if pair not in self._pairs:
            structure = self._structure
            possible = self._possible[structure.contexts[pair]]
            values = np.repeat(structure.fixed_costs[:, pair, None], possible.size, axis=1)
            for i in range(len(values)):
                paid = structure.paid(i, slice(pair, pair + 1))
                if paid is not None:
                    values[i] += paid[0]
            groups = np.array([_groups(row, possible) for row in values])
            if (len(self._pairs) + 1) * values.size > MOST_KEPT:
                self._pairs.clear()
            self._pairs[pair] = PairCosts(values, groups)
        return self._pairs[pair]

    def blocks(self, pair: int, named: int | None = None) -> Ints:
        """Return the number (W,) of the block of each outcome that next state and costs reveal; -1 if impossible.

        ``named``: the costs that are seen, as bits; by default all.
        """
        possible = self._possible[self._structure.contexts[pair]]
        if named is None:
            groups = self.costs(pair).groups
        else:
            assert self._words is not None
            names = [name for k, name in enumerate(self._words.cost_names) if named >> k & 1]
            groups = np.array([_groups(self._named(pair, name), possible) for name in names])
        rows = np.vstack([self._structure.successors[pair], groups])
        return np.where(possible, np.unique(rows, axis=1, return_inverse=True)[1].ravel(), -1)

    def can_calculate(self, named: int | None) -> bool:
        """Return whether costs can be calculated: a Python function cannot, once it was not saved with the agent.

        ``named``: the costs, as bits; None for all of the objective and the limits.
        """
        words = self._words
        if named is None or words is None:
            return True
        names = (name for k, name in enumerate(words.cost_names) if named >> k & 1)
        return all(name in words.costs or words.stated[name] is not None for name in names)

    def costs_reveal(self, pair: int) -> bool:
        """Return whether costs ever reveal more of the noise in a pair than the next state does."""
        if pair not in self._reveals:
            blocks = self.blocks(pair)
            some = blocks >= 0
            states = np.unique(self._structure.successors[pair, some])
            self._reveals[pair] = np.unique(blocks[some]).size > states.size
        return self._reveals[pair]

    def of(self, pair: int, next_state: int, noise: Any = None, costs: Costs = None) -> Explained:
        """Return the outcomes that explain a transition, the noise that was seen, and the costs incurred.

        ``costs``: all of them (m+1,), or some by the names in which the system states them.
        """
        if noise is None and costs is not None and not isinstance(costs, Mapping):
            key = pair, next_state, costs.tobytes()
            if key not in self._found:
                if (len(self._found) + 1) * self._possible.shape[1] > MOST_KEPT:
                    self._found.clear()
                self._found[key] = self._explanation(pair, next_state, None, costs)
            return self._found[key]
        return self._explanation(pair, next_state, noise, costs)

    def _explanation(self, pair: int, next_state: int, noise: Any, costs: Costs) -> Explained:
        structure = self._structure
        context = int(structure.contexts[pair])
        fits = self._possible[context] & (structure.successors[pair] == next_state)
        if noise is not None:
            assert self._words is not None
            fits &= self._words.agreeing(noise)
        costs_fit = True
        if costs is not None:
            paid = fits & self._with_costs(pair, costs)
            if not paid.any():
                paid = fits & self._at_most
            costs_fit = bool(paid.any()) or not fits.any()
            fits = paid if paid.any() else fits
        return Explained(tuple((context * fits.size + np.flatnonzero(fits)).tolist()), costs_fit)

    def _named(self, pair: int, name: str) -> Floats:
        """Return a cost (W,) of all outcomes in a pair, by name."""
        words = self._words
        assert words is not None
        if name in words.costs:
            i = words.costs.index(name)
            return np.asarray(words.signs[i] * self.costs(pair).values[i])
        state, action = divmod(pair, self._structure.n_actions)
        return words.stated_cost(name, state, action, self._structure.successors[pair])

    def _with_costs(self, pair: int, costs: Floats | Mapping[str, float]) -> Bools:
        """Return which outcomes (W,) have these costs."""
        fits = possible = self._possible[self._structure.contexts[pair]]
        if isinstance(costs, Mapping):
            values = np.array([self._named(pair, name) for name in costs]).reshape(len(costs), possible.size)
            groups = np.array([_groups(row, possible) for row in values])
            costs = np.array(list(costs.values()))
        else:
            values, groups = self.costs(pair)
        for row, own, cost in zip(values, groups, costs, strict=True):
            apart = np.where(own >= 0, np.abs(row - cost), np.inf)
            nearest = int(apart.argmin())
            fits = fits & (own == own[nearest]) & bool(apart[nearest] <= _tolerance(row[own >= 0]))
        return fits

    @property
    def _at_most(self) -> Bools:
        """Which outcomes (W,) have a count that stands for all larger ones, too."""
        found = np.zeros(self._possible.shape[1], dtype=bool)
        if self._words is not None:
            for name, most in self._words.most.items():
                found |= self._words.outcomes[name] == most
        return found

    def expected_costs(self, pair: int, cells: tuple[int, ...], parameters: Parameters) -> tuple[Floats, Bools]:
        """Return the costs (m+1,) of some outcomes, and which are the same for all of them.

        The others are expected under the parameters. Without outcomes, all are, of all outcomes.
        """
        values, groups = self.costs(pair)
        table = self._structure.table(parameters)
        W = table.shape[1]
        outcomes = np.array(cells, dtype=np.int64) % W if cells else np.arange(W)
        shares = table[self._structure.contexts[pair], outcomes]
        shares = shares / shares.sum() if shares.sum() > 0.0 else np.full(outcomes.size, 1.0 / outcomes.size)
        same = (groups[:, outcomes] == groups[:, outcomes[:1]]).all(axis=1) & bool(cells)
        return np.where(same, values[:, outcomes[0]], np.cumsum(shares * values[:, outcomes], axis=1)[:, -1]), same


def _tolerance(costs: Floats) -> float:
    return COST_TOL * float(np.abs(costs).max(initial=0.0))


def _groups(costs: Floats, possible: Bools) -> Ints:
    """Return numbers of groups of equal costs; -1 for outcomes that are impossible."""
    found = np.full(costs.size, -1)
    kept = np.flatnonzero(possible)
    order = kept[np.argsort(costs[kept], kind="stable")]
    found[order] = np.cumsum(np.diff(costs[order], prepend=costs[order[:1]]) > _tolerance(costs[kept]))
    return found
