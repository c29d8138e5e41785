r"""The posterior of the costs of a log that are not known.

Costs belong to outcomes (s, a, s'): with means :math:`\bar c(s,a,s')` of n observations,

.. math:: c(s,a) = \sum_{s'} p(s'|s,a)\, c(s,a,s'), \qquad c(s,a,s') \sim N(\bar c(s,a,s'), \sigma^2 / n),

with the pooled variance of all outcomes. So what a cost has to do with the next state is kept. The costs of a round are
correlated as their deviations from the means of outcomes are, so that a cost that is there twice is learned once.
Outcomes never seen cost the average of their pair. A pair never tried costs what a tried pair costs that is drawn at
random, of the same state or of the same action, or any pair if there are none.
"""

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.data.rounds.recorded import Recorded


class RoundCosts:
    """Costs of the outcomes (s, a, s') of a log: their means, and how much a cost varies within an outcome."""

    def __init__(self, log: Recorded) -> None:
        assert log.costs is not None
        S, A = log.n_states, log.n_actions
        numbers = (log.states.astype(np.int64) * A + log.actions) * S + log.next_states
        costs = log.costs * log.signs
        known = ~np.isnan(costs)
        self.numbers, place = np.unique(numbers, return_inverse=True)
        n, q = self.numbers.size, costs.shape[1]
        self.times: Floats = np.empty((n, q))  # rounds in which a cost was known
        self.means: Floats = np.empty((n, q))
        self.noise: Floats = np.empty(q)  # standard deviation within an outcome
        for i in range(q):
            own, values = place[known[:, i]], costs[known[:, i], i]
            times = np.bincount(own, minlength=n)
            means = np.bincount(own, values, minlength=n) / np.maximum(times, 1)
            spread = (values - means[own]) ** 2
            exact = 1e-24 * values**2  # rounding of sums
            total = float(np.where(spread > exact, spread, 0.0).sum())
            self.noise[i] = np.sqrt(total / max(int((times - (times > 0)).sum()), 1))
            self.times[:, i], self.means[:, i] = times, means
        self.pairs, self.successors = np.divmod(self.numbers, S)
        self.correlation = self._correlation(costs, place)
        self._n_states, self._n_pairs = S, S * A

    def _correlation(self, costs: Floats, place: Ints) -> Floats:
        """Return the correlations (m+1, m+1) of the costs of a round, given its outcome; 0 where they are not known."""
        q = costs.shape[1]
        found = np.eye(q)
        rest = (costs - self.means[place]) / np.where(self.noise > 0.0, self.noise, np.inf)
        for i in range(q):
            for j in range(i):
                both = rest[~np.isnan(rest[:, i] + rest[:, j])]
                size = float(np.sqrt((both[:, i] ** 2).sum() * (both[:, j] ** 2).sum()))
                if size > 0.0:
                    found[i, j] = found[j, i] = (both[:, i] * both[:, j]).sum() / size
        return found

    def costs(self, models: tuple[Places, Places, Floats], n: int, rng: np.random.Generator) -> Floats:
        """Draw the costs (n, m+1, S*A) of models with these transitions."""
        q, SA = self.means.shape[1], self._n_pairs
        result = np.empty((n, q, SA))
        probabilities = self._probabilities(models, n)
        tried = np.bincount(self.pairs, minlength=SA) > 0
        others = self._like_untried(tried, n, rng)
        varies = self.noise.any() or (self.times == 0).any()
        normal = rng.standard_normal((n, self.pairs.size, q)) @ _root(self.correlation) if varies else None
        for i in range(q):
            times = np.maximum(self.times[:, i], 1e-9)
            drawn = self.means[:, i] + np.zeros((n, 1))
            if normal is not None:
                sd = np.where(self.times[:, i] > 0, self.noise[i] / np.sqrt(times), self.means[:, i].std())
                drawn = drawn + sd * normal[:, :, i]
            average = _by_pair(self.pairs, drawn * times, SA) / np.maximum(np.bincount(self.pairs, times, SA), 1e-12)
            own = average + _by_pair(self.pairs, probabilities * (drawn - average[:, self.pairs]), SA)
            own[:, ~tried] = np.take_along_axis(own, others, axis=1)
            result[:, i] = own
        return result

    def _like_untried(self, tried: Bools, n: int, rng: np.random.Generator) -> Ints:
        """Draw for every pair not ``tried`` (S*A,), n times, a tried pair of its state or action, or any one."""
        grid = tried.reshape(self._n_states, -1)
        A = grid.shape[1]
        every = np.flatnonzero(tried)
        found = np.empty((n, int((~tried).sum())), dtype=np.int64)
        for k, pair in enumerate(np.flatnonzero(~tried)):
            s, a = divmod(int(pair), A)
            groups = [
                group for group in (s * A + np.flatnonzero(grid[s]), np.flatnonzero(grid[:, a]) * A + a) if group.size
            ]
            drawn = [rng.choice(group, size=n) for group in groups or [every]]
            found[:, k] = np.choose(rng.integers(len(drawn), size=n), drawn)
        return found

    def _probabilities(self, models: tuple[Places, Places, Floats], n: int) -> Floats:
        """Return the probabilities (n, outcomes) of the outcomes in models."""
        indptr, indices, data = models
        matrix = csr_array((data, indices, indptr), shape=(n * self._n_pairs, self._n_states))
        wanted = np.arange(n)[:, None] * self._n_pairs + self.pairs
        return np.asarray(matrix[wanted.ravel(), np.tile(self.successors, n)]).reshape(n, -1)


def _root(correlation: Floats) -> Floats:
    """Return a matrix R with R'R = C, of a matrix C that rounding or missing values may have made indefinite."""
    values, vectors = np.linalg.eigh(correlation)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return np.asarray(root / np.sqrt((root**2).sum(axis=0)))


def _by_pair(pairs: Ints, values: Floats, n_pairs: int) -> Floats:
    """Return the sums (n, n_pairs) of values (n, k) by pair; pairs increase."""
    starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
    sums = np.zeros((len(values), n_pairs))
    sums[:, pairs[starts]] = np.add.reduceat(values, starts, axis=1)
    return sums
