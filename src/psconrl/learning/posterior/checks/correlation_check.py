r"""A test of every pair of noises: does one depend on the other? Only rounds count in which both were reported.

Take two noises A and B. Let :math:`n_{gba}` be the number of rounds in which A was a and B was b, in context g of A. If
A is independent of B given its context, whatever its distribution :math:`p_g` is, then

.. math:: E = \prod_g \frac{\prod_b q(n_{gb})}{\sup_p \prod_a p_a^{n_{ga}}}, \qquad
          q(n) = \frac{\Gamma(k_g / 2)}{\Gamma(\sum_a n_a + k_g / 2)} \prod_a \frac{\Gamma(n_a + 1/2)}{\Gamma(1/2)},

with the number :math:`k_g` of values that are possible, is at most a nonnegative martingale that begins with 1: in the
numerator is a probability of the values of A, each given those of B and what came before (Krichevsky and Trofimov), and
the denominator is at least the true one (universal inference, see ``dependence``). The values of B may have any
distribution. A is the noise with fewer contexts; of several, the one with more values, then the first. If A or B
depends on other noises, A is one on which B does not depend, and only rounds count in which those were reported, too:
they determine the context.

The test is the mean of two such E. One has all values of both noises. The other one has few classes, which are soon
learned: quartiles of A and halves of B, under the prior means, if a noise has more than four numbers as values. The
classes must not depend on what is observed. Contexts in which A or B has only one class that is possible are left out.

Nothing has to be remembered: E follows from the numbers of rounds. Events are not tested: only one happens at a time.
"""

import itertools
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.arithmetic import special
from psconrl.learning.posterior.checks.dependence import log_sum_exp
from psconrl.learning.posterior.checks.structure_advice import correlation_text
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_views import reported_variables
from psconrl.systems.noise_base import variables_of
from psconrl.systems.randomness import RoundNoise
from psconrl.systems.structure import Structure

QUARTILES, HALVES = 4, 2  # classes of the noise that is tested, and of the other one
FEW_VALUES = 4  # a noise with no more of them has a class for each


class _Classes(NamedTuple):
    """Classes of the values of a noise."""

    of_value: Ints
    possible: Ints  # in each of its contexts, how many are possible


class CorrelationCheck:
    """The tests of all pairs of noises that can have several values."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        randomness = structure.randomness
        self._randomness = randomness if isinstance(randomness, RoundNoise) else None
        #: Names of the noise that is tested, and of the other one.
        self.pairs: list[tuple[str, str]] = []
        self._views: dict[tuple[str, str], list[tuple[_Classes, _Classes]]] = {}
        self._seen: dict[tuple[str, str], tuple[Ints, Ints, Floats]] = {}  # values of both, and how often
        if self._randomness is not None:
            sizes = zip(self._randomness.noises, self._randomness.sizes, strict=True)
            varying = [name for name, size in sizes if size > 1]
            self.pairs = [self._ordered(*pair) for pair in itertools.combinations(varying, 2)]
            self._views = {pair: _views(self._randomness, *pair) for pair in self.pairs}

    @property
    def number(self) -> int:
        """Number of tests."""
        return len(self.pairs)

    def _ordered(self, *names: str) -> tuple[str, str]:
        assert self._randomness is not None
        order = list(self._randomness.noises)
        contexts, sizes = self._randomness.contexts, dict(zip(order, self._randomness.sizes, strict=True))
        first, second = sorted(names, key=lambda name: (int(contexts[name].max()), -sizes[name], order.index(name)))
        if any(name in self._randomness.parents for name in names):  # what depends on others comes after them
            second, first = sorted(names, key=self._randomness.parents_first.index)
        return first, second

    def evidence(self, counts: Counts) -> dict[str, dict[str, float]]:
        """Return log E by noise and by the other noise, of pairs that were reported."""
        seen = {key: times for key, times in counts.noise.times.items() if len(key) > 2}
        found: dict[str, dict[str, float]] = {}
        if self._randomness is None or not self.pairs or not seen:
            return found
        noises = list(self._randomness.noises)
        reported = np.array([self._whole(bits) for _, bits, *_ in seen], dtype=bool)
        outcomes = np.array([key[2] for key in seen], dtype=np.int64) % self._randomness.n_outcomes
        values = np.unravel_index(outcomes, self._randomness.sizes)
        pairs = np.array([key[0] for key in seen], dtype=np.int64) // self._structure.n_states
        joint, times = self._structure.contexts[pairs], np.array(list(seen.values()), dtype=np.float64)
        for name, other in self.pairs:
            a, b = noises.index(name), noises.index(other)
            both = reported[:, a] & reported[:, b]
            if both.any():
                self._seen[name, other] = values[a][both], values[b][both], times[both]
                contexts, others = (
                    self._randomness.own_contexts(each, joint[both], outcomes[both]) for each in (name, other)
                )
                found.setdefault(name, {})[other] = self._of_pair(name, other, contexts, others)
        return found

    def _whole(self, bits: int) -> list[bool]:
        """Return which noises were reported with all of their variables, and with all noises on which they depend."""
        assert self._randomness is not None
        seen = reported_variables(tuple(self._randomness.noises), bits)
        whole = {name: seen[name] == variables_of(name) for name in seen}
        return [whole[name] and all(whole[one] for one in self._randomness.parents.get(name, ())) for name in whole]

    def _of_pair(self, name: str, other: str, contexts: Ints, others: Ints) -> float:
        a, b, times = self._seen[name, other]
        logs = []
        for own, by in self._views[name, other]:
            sizes = own.possible[contexts]
            kept = (sizes > 1) & (by.possible[others] > 1)
            columns = contexts[kept], by.of_value[b[kept]], own.of_value[a[kept]]
            logs.append(log_evidence(*columns, times[kept], sizes[kept]))
        return log_sum_exp(np.array(logs)) - special.log(float(len(logs)))

    def text(self, name: str, other: str) -> str:
        """Describe what the last ``evidence`` found, and what to do about it."""
        assert self._randomness is not None
        noises, arguments = self._randomness.noises, self._randomness.arguments
        values, by = (noises[each].outcomes(arguments[each]) for each in (name, other))
        a, b, times = self._seen[name, other]
        table = np.bincount(b * values.size + a, weights=times, minlength=by.size * values.size).astype(np.float64)
        return correlation_text(name, values, other, by, table.reshape(by.size, values.size))


def _views(randomness: RoundNoise, name: str, other: str) -> list[tuple[_Classes, _Classes]]:
    """Return the classes of two noises, few of them and all values; once if these are the same."""
    few = _classes(randomness, name, QUARTILES), _classes(randomness, other, HALVES)
    each = _classes(randomness, name, None), _classes(randomness, other, None)
    same = all((one.of_value == two.of_value).all() for one, two in zip(few, each, strict=True))
    return [each] if same else [few, each]


def _classes(randomness: RoundNoise, name: str, number: int | None) -> _Classes:
    """Return classes of about the same probability under the prior means, or a class for every value."""
    noise, arguments = randomness.noises[name], randomness.arguments[name]
    values = noise.outcomes(arguments)
    table = randomness.own_table(name, randomness.initial())
    of_value = np.arange(values.size)
    if number is not None and values.size > FEW_VALUES and values.dtype.kind != "U":
        order = np.argsort(values, kind="stable")
        mean = np.cumsum(table, axis=0)[-1][order] / len(table)
        middle = np.cumsum(mean) - mean / 2.0
        classes = np.clip(np.floor(number * middle), 0.0, number - 1.0)
        of_value = np.empty(values.size, dtype=np.int64)
        of_value[order] = np.unique(classes, return_inverse=True)[1]
    possible = randomness.own_possible(name)
    by_class = [possible[:, of_value == k].any(axis=1) for k in range(int(of_value.max()) + 1)]
    return _Classes(of_value, np.sum(by_class, axis=0))


def log_evidence(contexts: Ints, others: Ints, values: Ints, times: Floats, sizes: Ints) -> float:
    """Return log E of rounds with these contexts of A, values of B and values of A, each seen some times.

    ``sizes``: the numbers of values of A that are possible there.

    >>> one = np.array([1])
    >>> log_evidence(one, one, one, np.array([1.0]), np.array([2])) == special.log(0.5)  # a first value is not known
    True
    """
    half, total = special.lgamma(0.5), 0.0
    for n in _sums(times, contexts, others, values)[0].tolist():
        total += special.lgamma(n + 0.5) - half
    sums, first = _sums(times, contexts, others)
    for n, k in zip(sums.tolist(), sizes[first].tolist(), strict=True):
        total += special.lgamma(k / 2.0) - special.lgamma(n + k / 2.0)
    for n in _sums(times, contexts, values)[0].tolist():
        total -= n * special.log(n)
    for n in _sums(times, contexts)[0].tolist():
        total += n * special.log(n)
    return total


def _sums(times: Floats, *columns: Ints) -> tuple[Floats, Ints]:
    """Return the sums of the times of equal columns, and where each was seen first."""
    codes = np.zeros(times.size, dtype=np.int64)
    for column in columns:
        codes = codes * (int(column.max(initial=0)) + 1) + column
    _, first, back = np.unique(codes, return_index=True, return_inverse=True)
    return np.bincount(back, weights=times).astype(np.float64), first
