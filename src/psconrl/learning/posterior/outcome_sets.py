"""Sets of joint outcomes of a system's noise, one of which is known to hold the outcome of a transition."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.systems.randomness import Randomness, RoundNoise


@dataclass(frozen=True, eq=False)
class OutcomeSets:
    """Sets of cells, context * W + outcome; all cells of a set have the same context."""

    randomness: Randomness
    starts: Ints  # (sets + 1,) of the following
    cells: Ints  # of all members of all sets

    @classmethod
    def of(cls, randomness: Randomness, sets: Iterable[tuple[int, ...]]) -> "OutcomeSets":
        """Return sets that are given one by one."""
        given = list(sets)
        starts = np.cumsum([0, *(len(one) for one in given)])
        return cls(randomness, starts, np.array([cell for one in given for cell in one], dtype=np.int64))

    def probabilities(self, table: Floats) -> Floats:
        """Return the probabilities of all sets, given those of the joint outcomes (G, W)."""
        return np.asarray(np.add.reduceat(table.ravel()[self.cells], self.starts[:-1]))

    @cached_property
    def members(self) -> Ints:
        """The cells of every set, one row each, filled up with -1."""
        lengths = np.diff(self.starts)
        table = np.full((lengths.size, lengths.max()), -1)
        table[np.arange(lengths.max()) < lengths[:, None]] = self.cells
        return table

    @cached_property
    def _revealed(self) -> tuple[Bools, Bools]:
        """Whether a set reveals anything of each noise, (sets, K), and whether it leaves it in doubt what.

        A set reveals nothing of a noise if it holds every outcome of that noise together with each joint outcome of the
        others that it holds. If noises depend on each other, a noise on which one depends that is revealed counts as
        revealed: the posterior of the other needs its value.
        """
        if isinstance(self.randomness, RoundNoise) and self.randomness.parents:
            return self._revealed_of(self.randomness)
        randomness, lengths = self.randomness, np.diff(self.starts)
        W, sizes = randomness.n_outcomes, randomness.sizes
        of_cell = np.repeat(np.arange(lengths.size), lengths)
        contexts = self.cells[self.starts[:-1]] // W
        possible = randomness.possible().reshape(-1, *sizes)
        places = np.array(np.unravel_index(self.cells % W, sizes))
        reveals = np.empty((lengths.size, len(sizes)), dtype=bool)
        together = np.ones(lengths.size, dtype=np.int64)  # joint outcomes of the noises of which nothing is revealed
        for k in range(len(sizes)):
            others = tuple(1 + j for j in range(len(sizes)) if j != k)
            number = possible.any(axis=others).sum(axis=1)[contexts]
            rest = places.copy()
            rest[k] = 0
            distinct = np.unique(of_cell * W + np.ravel_multi_index(tuple(rest), sizes)) // W
            reveals[:, k] = np.bincount(distinct, minlength=lengths.size) * number != lengths
            together *= np.where(reveals[:, k], 1, number)
        return reveals, lengths > together

    def _revealed_of(self, noise: RoundNoise) -> tuple[Bools, Bools]:
        """Return the same of noises that depend on each other, by leaving out one after the other, parents last.

        A noise can be left out if nothing depends on it that is still there, and the set holds every value of the noise
        that is possible together with each joint outcome of the others: their probabilities add up to 1.
        """
        n_sets, W = self.starts.size - 1, noise.n_outcomes
        of_cell = np.repeat(np.arange(n_sets), np.diff(self.starts))
        contexts = self.cells // W
        places = np.array(np.unravel_index(self.cells % W, noise.sizes))
        names = list(noise.noises)
        reveals = np.ones((n_sets, len(names)), dtype=bool)
        for name in reversed(noise.parents_first):
            k = names.index(name)
            children = [names.index(other) for other, those in noise.parents.items() if name in those]
            here = noise.own_contexts(name, contexts, np.ravel_multi_index(tuple(places), noise.sizes))
            possible = noise.own_possible(name).sum(axis=1)[here]
            rest = places.copy()
            rest[k] = 0
            cells, others = (of_cell * W + np.ravel_multi_index(tuple(each), noise.sizes) for each in (places, rest))
            number = np.bincount(np.unique(cells) // W, minlength=n_sets)
            distinct, first = np.unique(others, return_index=True)
            needed = np.bincount(distinct // W, weights=possible[first], minlength=n_sets)
            left_out = (number == needed) & ~reveals[:, children].any(axis=1)
            reveals[:, k] = ~left_out
            places[k] = np.where(left_out[of_cell], 0, places[k])
        cells = np.unique(of_cell * W + np.ravel_multi_index(tuple(places), noise.sizes))
        return reveals, np.bincount(cells // W, minlength=n_sets) > 1

    @property
    def reveals(self) -> Bools:
        """Whether a set reveals anything of each noise, (sets, K)."""
        return self._revealed[0]

    def split(self, observed: Ints) -> tuple[Ints, Ints]:
        """Return the sets observed that reveal something: those that leave no doubt, and the others."""
        reveals, doubtful = self._revealed
        seen = (observed > 0) & reveals.any(axis=1)
        return np.flatnonzero(seen & ~doubtful), np.flatnonzero(seen & doubtful)

    def settled(self, sets: Ints, times: Ints) -> Floats:
        """Return the numbers (K, G, W) of outcomes of sets without doubt; ``times``: how often each was observed.

        All outcomes of such a set have the same revealed noise, so that any of them will do.
        """
        return self._added(sets, times[:, None], self.members[sets, :1])

    def drawn(self, sets: Ints, times: Ints, table: Floats, rng: np.random.Generator) -> Floats:
        """Draw the outcomes of sets with doubt, given their probabilities (G, W); return their numbers (K, G, W)."""
        members = self.members[sets]
        shares = np.append(table, 0.0)[members]
        totals = shares.sum(axis=1, keepdims=True)
        shares = np.where(totals > 0.0, shares, members >= 0)  # too small for a double: any of them
        totals = shares.sum(axis=1, keepdims=True)
        return self._added(sets, rng.multinomial(times, shares / totals), members)

    def _added(self, sets: Ints, times: Ints, cells: Ints) -> Floats:
        """Return the numbers (K, G, W) of outcomes for every noise of which the sets reveal something.

        ``times``: (n, L), of the ``cells`` of each set, of which those that are -1 are left out.
        """
        randomness = self.randomness
        shape = len(randomness.sizes), randomness.n_contexts, randomness.n_outcomes
        size = shape[1] * shape[2]
        some, noise = np.nonzero(self._revealed[0][sets])
        places = np.where(cells[some] >= 0, noise[:, None] * size + cells[some], shape[0] * size)
        found = np.bincount(places.ravel(), weights=times[some].ravel(), minlength=shape[0] * size + 1)
        return found[:-1].reshape(shape).astype(np.float64)
