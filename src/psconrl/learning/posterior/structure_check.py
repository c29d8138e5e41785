r"""A test of a system's structure: does its noise have the distributions that its owner gave it?

A transition reveals for every noise a set of values in which its value was. In a pair the sets form a partition, and
given the pair their probabilities follow from the distribution of the noise, whose parameter :math:`\theta` is known or
not. A free distribution over the same sets, with Jeffreys' prior, predicts the sets observed in turn with a probability
q, a product of Dirichlet-multinomial terms. Universal inference (Wasserman, Ramdas and Balakrishnan 2020) compares the
two:

.. math:: E_n = \frac{q(x_1, \dots, x_n)}{\sup_\theta \prod_{i \le n} p_\theta(x_i)}.

Such an E is taken of all pairs together and of every group of pairs with the same sets, and their mean is the test: a
free distribution of each group is slow to learn, and the most visited group alone may show what is wrong. If the
structure is right, :math:`E_n` is at most a nonnegative martingale that begins with 1, so that it ever reaches
:math:`K / \alpha` with probability :math:`\alpha / K` at most (Ville), for each of K noises, however often one looks,
and whichever actions the agent chooses. A noise whose values have free probabilities, Categorical with a prior, is not
tested.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from psconrl.arrays import Floats, Ints
from psconrl.errors import ModelError
from psconrl.kernels import special
from psconrl.learning.posterior.counts import Counts
from psconrl.systems.priors import Beta, Weights
from psconrl.systems.randomness import IndependentNoise, Parameters
from psconrl.systems.structure import Structure

FALSE_ALARMS = 1e-3  # largest probability that a system that is right is ever doubted
CELLS_AT_ONCE = 10_000_000  # cells that are compared at once
SEARCH_REACH = 20.0  # distance of a search from where it begins, in logarithms of rates or of odds
ROUNDS_OF_SEARCH = 20  # over all parameters
IMPROVEMENT = 1e-6  # of the log-likelihood, below which the search ends


Observed = dict[tuple[int, tuple[int, ...]], Floats]  # numbers of observations of each set, by context and partition


@dataclass(frozen=True, eq=False)
class NoiseView:
    """What is seen of one noise in some pairs: a partition of its values."""

    context: int
    blocks: tuple[int, ...]  # of every value, the number of its set; -1 if it is impossible


class StructureCheck:
    """A test for every noise of a structure, or for its events together."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        randomness = structure.randomness
        self._sizes: tuple[int, ...] = (randomness.n_outcomes,)
        self.names: tuple[str, ...] = ("the events",)
        if isinstance(randomness, IndependentNoise):
            self._sizes, self.names = randomness.sizes, tuple(randomness.noises)
        self.tested = [name for name in self.names if self._is_tested(name)]

    def _is_tested(self, name: str) -> bool:
        randomness = self._structure.randomness
        return not isinstance(randomness, IndependentNoise) or not isinstance(randomness.noises[name].prior, Weights)

    def log_evidence(self, counts: Counts, near: Parameters) -> dict[str, float]:
        """Return the logarithm of E for every noise that is tested; the search for parameters begins at ``near``."""
        return {name: self._evidence(name, views, near) for name, views in self._observed(counts).items() if views}

    def doubts(self, counts: Counts, near: Parameters) -> dict[str, str]:
        """Return what is wrong with each noise whose test has reached its bound."""
        bound = np.log(max(len(self.tested), 1) / FALSE_ALARMS)
        found = {}
        for name, views in self._observed(counts).items():
            # Any parameters give an upper bound of E, which needs no search.
            if not views or self._evidence(name, views, near, search=False) < bound:
                continue
            evidence = self._evidence(name, views, near)
            if evidence >= bound:
                found[name] = (
                    f"{self._shown(name)}: the transitions observed are 10^{evidence / np.log(10):.1f} times as "
                    "probable if its distribution is free; right systems are doubted in one run of "
                    f"{1 / FALSE_ALARMS:,.0f} at most"
                )
        return found

    def _evidence(self, name: str, views: Observed, near: Parameters, search: bool = True) -> float:
        """Return the logarithm of the mean of E over all pairs together and over every view; E is 1 of one not seen."""
        free = {view: _log_jeffreys(times) for view, times in views.items()}
        logs = [sum(free.values()) - self._largest(name, views, near, search)]
        logs += [free[view] - self._largest(name, {view: times}, near, search) for view, times in views.items()]
        logs += [0.0] * (self._number_of_views[name] - len(views))
        top = max(logs)
        return top + float(np.log(np.mean(np.exp(np.array(logs) - top)))) if np.isfinite(top) else top

    def _shown(self, name: str) -> str:
        randomness = self._structure.randomness
        if not isinstance(randomness, IndependentNoise):
            return "the events do not happen at the rates given"
        return f"{name} does not follow {randomness.noises[name]!r}"

    @cached_property
    def _classes(self) -> tuple[Ints, Ints]:
        """The class of every pair, and one pair of each: equal contexts, and equal partitions of the outcomes."""
        structure = self._structure
        possible = structure.randomness.possible()[structure.contexts]
        rows = np.where(possible, structure.successors, -1)
        order = np.argsort(rows, axis=1, kind="stable")
        ordered = np.take_along_axis(rows, order, axis=1)
        begins = np.concatenate([np.ones((len(rows), 1), dtype=bool), ordered[:, 1:] != ordered[:, :-1]], axis=1)
        places = np.maximum.accumulate(np.where(begins, np.arange(rows.shape[1]), 0), axis=1)
        firsts = np.empty_like(order)
        np.put_along_axis(firsts, order, np.take_along_axis(order, places, axis=1), axis=1)
        firsts = np.where(possible, firsts, -1)
        table = np.column_stack([structure.contexts, firsts])
        _, one, classes = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return classes.ravel(), one

    @cached_property
    def _values(self) -> dict[str, Ints]:
        """Of every noise the place of its value in each joint outcome."""
        places = np.unravel_index(np.arange(self._structure.randomness.n_outcomes), self._sizes)
        return dict(zip(self.names, places, strict=True))

    @cached_property
    def _views(self) -> list[dict[str, NoiseView]]:
        """Of every class of pairs, what is seen of each noise."""
        structure, one = self._structure, self._classes[1]
        possible = structure.randomness.possible()
        found = []
        for pair in one:
            context = int(structure.contexts[pair])
            kept = np.flatnonzero(possible[context])
            own = {}
            for name in self.tested:
                blocks = _blocks(self._values[name][kept], structure.successors[pair, kept], self._size(name))
                own[name] = NoiseView(self._own_context(name, context), blocks)
            found.append(own)
        return found

    @cached_property
    def _number_of_views(self) -> dict[str, int]:
        """The number of views that are possible, by noise; where the noise itself is seen, there is one per context."""
        contexts = range(self._structure.randomness.n_contexts)
        found = {}
        for name in self.tested:
            revealed = {(own[name].context, own[name].blocks) for own in self._views}
            found[name] = len(revealed | {self._when_seen(name, context) for context in contexts})
        return found

    def _when_seen(self, name: str, context: int) -> tuple[int, tuple[int, ...]]:
        """Return the context and the partition of a noise that is seen itself: every possible value on its own."""
        possible = set(self._values[name][self._structure.randomness.possible()[context]].tolist())
        own = tuple(value if value in possible else -1 for value in range(self._size(name)))
        return self._own_context(name, context), own

    def _size(self, name: str) -> int:
        return self._sizes[self.names.index(name)]

    def _own_context(self, name: str, context: int) -> int:
        randomness = self._structure.randomness
        return int(randomness.contexts[name][context]) if isinstance(randomness, IndependentNoise) else context

    def _observed(self, counts: Counts) -> dict[str, Observed]:
        """Return how often each set of values was observed, by noise and view."""
        S, W = self._structure.n_states, self._structure.randomness.n_outcomes
        numbers, times = counts.tally.numbers, counts.tally.times.astype(np.float64)
        found: dict[str, Observed] = {name: {} for name in self.tested}
        seen = dict.fromkeys((key[0] for key in counts.noise.times), 0)
        for key, n in counts.noise.times.items():
            seen[key[0]] += n
            self._add_seen(found, key[1:], n)
        if seen:
            times = times - np.array([seen.get(number, 0) for number in numbers.tolist()])
        pairs, following = np.divmod(numbers, S)
        outcomes = np.concatenate([
            self._first_outcome(pairs[k : k + CELLS_AT_ONCE // W + 1], following[k : k + CELLS_AT_ONCE // W + 1])
            for k in range(0, max(numbers.size, 1), CELLS_AT_ONCE // W + 1)
        ])  # fmt: skip
        for name in self.tested:
            values, by_class = self._values[name], self._classes[0][pairs]
            cells = by_class * self._size(name) + values[np.maximum(outcomes, 0)]
            sums = np.bincount(cells[outcomes >= 0], weights=times[outcomes >= 0])
            for cell in np.flatnonzero(sums):
                view = self._views[cell // self._size(name)][name]
                _add(found[name], view, int(cell % self._size(name)), float(sums[cell]))
        return found

    def _first_outcome(self, pairs: Ints, following: Ints) -> Ints:
        """Return the first joint outcome that explains each transition, -1 if none does."""
        structure = self._structure
        fits = structure.randomness.possible()[structure.contexts[pairs]]
        fits = fits & (structure.successors[pairs] == following[:, None])
        return np.where(fits.any(axis=1), fits.argmax(axis=1), -1)

    def _add_seen(self, found: Any, cells: tuple[int, ...], times: int) -> None:
        """Add transitions whose noise was seen: to a noise if its value is certain."""
        if not cells:
            return
        context, outcomes = cells[0] // self._structure.randomness.n_outcomes, np.array(cells)
        outcomes = outcomes % self._structure.randomness.n_outcomes
        for name in self.tested:
            values = np.unique(self._values[name][outcomes])
            if values.size == 1:
                _add(found[name], NoiseView(*self._when_seen(name, context)), int(values[0]), float(times))

    def _largest(self, name: str, views: Observed, near: Parameters, search: bool) -> float:
        """Return the logarithm of the largest likelihood of what was observed, over the unknown parameters."""
        randomness = self._structure.randomness
        priors = dict(randomness.priors)
        if isinstance(randomness, IndependentNoise):
            priors = {randomness.keys[name]: priors[randomness.keys[name]]} if name in randomness.keys else {}

        def log_likelihood(parameters: Parameters) -> float:
            try:
                if isinstance(randomness, IndependentNoise):
                    table = randomness.own_table(name, parameters)
                else:
                    table = randomness.table(parameters)
            except ModelError:  # the rates exceed the clock
                return -np.inf
            return sum(_log_probability(table[context], blocks, times) for (context, blocks), times in views.items())

        best = {key: value.copy() for key, value in near.items()}
        largest = log_likelihood(best)
        if not priors or not search:
            return largest
        for _ in range(ROUNDS_OF_SEARCH if len(priors) > 1 else 1):
            before = largest
            for key, prior in priors.items():
                best[key], largest = _search(log_likelihood, best, key, isinstance(prior, Beta), largest)
            if largest - before < IMPROVEMENT:
                break
        return largest


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
    sums = views.setdefault((view.context, view.blocks), np.zeros(len(set(view.blocks) - {-1})))
    sums[sorted(set(view.blocks) - {-1}).index(view.blocks[value])] += times


def _log_jeffreys(times: Floats) -> float:
    """Return the logarithm of the probability of a sequence with these counts, under Jeffreys' prior."""
    k, n = times.size, float(times.sum())
    each = sum(special.lgamma(float(t) + 0.5) for t in times) - k * special.lgamma(0.5)
    return special.lgamma(0.5 * k) - special.lgamma(n + 0.5 * k) + each


def _log_probability(row: Floats, blocks: tuple[int, ...], times: Floats) -> float:
    marks = np.array(blocks)
    kept = marks >= 0
    names, places = np.unique(marks[kept], return_inverse=True)
    shares = np.bincount(places, weights=row[kept], minlength=names.size)
    some = times > 0.0
    if (shares[some] <= 0.0).any():
        return -np.inf
    return float(times[some] @ special.log_array(np.ascontiguousarray(shares[some])))


def _search(
    log_likelihood: Callable[[Parameters], float], at: Parameters, key: str, is_probability: bool, here: float
) -> tuple[Floats, float]:
    """Return the value of one parameter with the largest likelihood, given the others, and that likelihood."""

    def parameter(x: float) -> float:
        return 1.0 / (1.0 + special.exp(-x)) if is_probability else special.exp(x)

    def loss(x: float) -> float:
        found = log_likelihood({**at, key: np.array([parameter(x)])})
        return -found if np.isfinite(found) else 1e300

    value = float(np.clip(at[key][0], 1e-9, 1.0 - 1e-9 if is_probability else 1e9))
    middle = float(np.log(value / (1.0 - value)) if is_probability else np.log(value))
    losses = {step: loss(middle + step) for step in (-1.0, 0.0, 1.0)}
    while abs(step := min(losses, key=lambda each: losses[each])) == max(map(abs, losses)) and abs(step) < SEARCH_REACH:
        following = step + np.sign(step)
        losses[following] = loss(middle + following)
    low, high = middle + step - 1.0, middle + step + 1.0
    result = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    x, least = min((float(result.x), float(result.fun)), (middle + step, losses[step]), key=lambda each: each[1])
    return (at[key], here) if -least <= here else (np.array([parameter(x)]), -least)
