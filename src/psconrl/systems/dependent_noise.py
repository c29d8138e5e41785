r"""Noise whose distribution depends on other noise of the same round, its *parents*.

Noises that depend on each other, directly or not, form a *cluster*. Clusters are independent of each other. In a
cluster noises are drawn one after the other, parents first:

.. math:: p(w_1, \dots, w_n \mid s, a) = \prod_k p_k(w_k \mid g_k(s, a, w_{\mathrm{parents}(k)})),

where :math:`g_k` are the arguments of noise k. Arguments are evaluated, and checked, only at values of the parents that
are possible in the pair. Pairs that agree in all arguments are a *case* of the cluster.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.functions import Rule, shown_values, takes_all
from psconrl.systems.noise_base import Arguments, Noise, variables_of
from psconrl.systems.outcome_rows import Columns, Distribution, Rows, distinct_points
from psconrl.systems.randomness import RoundNoise
from psconrl.systems.sources import distinct_rows, values_of_rule

PLACE = "place among the values of "  # before the name of a noise, in columns

Rules = Mapping[str, Mapping[str, Rule]]  # of the arguments of every noise


def read_arguments(noise: Mapping[str, Noise], pair_names: frozenset[str]) -> dict[str, dict[str, Rule]]:
    """Return the arguments of every noise as rules of the variables of a pair, and of other noises.

    A function that takes all variables takes those of the pair.
    """
    known = pair_names | {variable for name in noise for variable in variables_of(name)}
    return {
        name: {
            key: Rule(given, f"{key} of {quoted(name)}", pair_names if takes_all(given) else known)
            for key, given in one.arguments.items()
        }
        for name, one in noise.items()
    }


def parents_of(noise: Mapping[str, Noise], rules: Rules) -> dict[str, tuple[str, ...]]:
    """Return the parents of every noise that has any; raise an error if noises depend on each other in a cycle."""
    own = {name: frozenset(variables_of(name)) for name in noise}
    used = {name: frozenset().union(*(rule.names for rule in rules[name].values())) for name in noise}
    parents = {name: tuple(other for other in noise if own[other] & used[name]) for name in noise}
    parents = {name: those for name, those in parents.items() if those}
    _ordered(list(noise), parents)
    return parents


def _ordered(names: Sequence[str], parents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return noises with parents before those that depend on them; raise an error if there is a cycle."""
    found: dict[str, None] = {}
    left = list(names)
    while left:
        ready = [name for name in left if all(parent in found for parent in parents.get(name, ()))]
        if not ready:
            raise ModelError(_cycle_text(left, parents))
        found |= dict.fromkeys(ready)
        left = [name for name in left if name not in found]
    return tuple(found)


def _cycle_text(names: Sequence[str], parents: Mapping[str, tuple[str, ...]]) -> str:
    """Name the noises of a cycle; every one of the names depends on another one of them."""
    path = [names[0]]
    while path.count(path[-1]) == 1:
        path.append(next(parent for parent in parents[path[-1]] if parent in names))
    cycle = path[path.index(path[-1]) :]
    if len(cycle) == 2:
        return f"the noise {quoted(cycle[0])} depends on itself; its arguments may use other noises only"
    links = ", ".join(f"{quoted(one)} on {quoted(two)}" for one, two in itertools.pairwise(cycle))
    return f"noises depend on each other in a cycle: {links}; one of them must not"


def clusters_of(names: Sequence[str], parents: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the clusters of several noises, parents first; clusters are in the order of their first noises."""
    cluster = {name: {name} for name in names}
    for name, those in parents.items():
        for parent in those:
            both = cluster[name] | cluster[parent]
            for one in both:
                cluster[one] = both
    found: list[tuple[str, ...]] = []
    for name in names:
        if len(cluster[name]) > 1 and not any(name in one for one in found):
            found.append(_ordered([one for one in names if one in cluster[name]], parents))
    return found


@dataclass(frozen=True, eq=False)
class Cluster:
    """Noises that depend on each other, in all their cases."""

    noise: RoundNoise
    of_pair: Ints | None  # the case of every pair; None if there is one case
    distribution: Distribution  # of all variables of the noises, at the prior means

    def cases(self, pairs: Ints) -> Ints:
        """Return the cases of some pairs."""
        return np.zeros(pairs.size, dtype=np.int64) if self.of_pair is None else self.of_pair[pairs]

    def taken(self, cases: Ints) -> tuple[dict[str, Arguments], dict[str, Ints]]:
        """Return the arguments of every noise in some of the cases, and the contexts there."""
        arguments: dict[str, Arguments] = {}
        contexts: dict[str, Ints] = {}
        for name in self.noise.noises:
            own = self.noise.contexts[name][cases]
            used, back = np.unique(own, return_inverse=True)
            contexts[name] = back.reshape(own.shape).astype(np.int64)
            arguments[name] = {key: values[used] for key, values in self.noise.arguments[name].items()}
        return arguments, contexts


@dataclass(frozen=True, eq=False)
class Clusters:
    """What clusters are made of: all noises, their arguments and parents, and the variables of all pairs."""

    noise: Mapping[str, Noise]
    rules: Rules
    parents: Mapping[str, tuple[str, ...]]
    columns: Callable[[], Columns]
    n_pairs: int

    @cached_property
    def _columns(self) -> Columns:
        return self.columns()

    def cluster(self, names: Sequence[str], keys: Mapping[str, str]) -> Cluster:
        """Return a cluster, given the names of its noises, parents first, and the names of unknown parameters."""
        noises = {name: self.noise[name] for name in names}
        known = {variable for name in names for variable in variables_of(name)}
        used = frozenset().union(*(rule.names for name in names for rule in self.rules[name].values())) - known
        pair_columns = {name: self._columns[name] for name in sorted(used)}
        first, of_pair = distinct_points(pair_columns.values(), self.n_pairs if used else 1)
        given = {name: column[first] for name, column in pair_columns.items()}
        arguments: dict[str, Arguments] = {}
        contexts: dict[str, Ints] = {}
        rows = Rows(np.arange(first.size), np.ones(first.size), {})
        for name in names:
            rows, arguments[name], contexts[name] = self._drawn(name, rows, given, noises, arguments)
        all_contexts = np.column_stack([own.reshape(first.size, -1) for own in contexts.values()])
        _, one, case = np.unique(all_contexts, axis=0, return_index=True, return_inverse=True)
        own_parents = {name: those for name, those in self.parents.items() if name in noises}
        own_keys = {name: key for name, key in keys.items() if name in noises}
        joint = {name: own[one] for name, own in contexts.items()}
        return Cluster(
            RoundNoise(noises, arguments, joint, own_keys, own_parents),
            case.ravel()[of_pair] if used else None,
            _taken(rows, one, [variable for name in names for variable in variables_of(name)]),
        )

    def _drawn(
        self,
        name: str,
        rows: Rows,
        given: Columns,
        noises: Mapping[str, Noise],
        arguments: Mapping[str, Arguments],
    ) -> tuple[Rows, Arguments, Ints]:
        """Return the rows with all outcomes of one more noise, its arguments and the contexts (R,) or (R, C)."""
        noise, parents = self.noise[name], self.parents.get(name, ())
        visible = {key: column[rows.points] for key, column in given.items()}
        visible |= {key: column for key, column in rows.columns.items() if not key.startswith(PLACE)}
        size = rows.points.size
        own = {key: values_of_rule(rule, visible, size) for key, rule in self.rules[name].items()}
        found, of_row = own_contexts(checked_arguments(name, noise, own, visible), size)
        shape = tuple(len(noises[parent].outcomes(arguments[parent])) for parent in parents)
        places = [rows.columns[PLACE + parent] for parent in parents]
        codes = np.ravel_multi_index(places, shape) if parents else np.zeros(size, dtype=np.int64)
        contexts = np.zeros((len(next(iter(given.values()), (0,))), int(np.prod(shape))), dtype=np.int64)
        contexts[rows.points, codes] = of_row
        distribution = prior_distribution(name, noise, found, int(of_row.max()) + 1)
        values = {**distribution.values, PLACE + name: self._places(noise, found, distribution)}
        distribution = Distribution(distribution.starts, values, distribution.probabilities)
        number = int(distribution.lengths[of_row].sum())
        need(8.0 * number * (len(rows.columns) + 4), f"{number:.3g} joint outcomes of noise", ModelError)
        grown = rows.with_outcomes(distribution, of_row)
        return grown, found, contexts if parents else contexts[:, 0]

    def _places(self, noise: Noise, arguments: Arguments, distribution: Distribution) -> Ints:
        """Return the place of the value in every row of a distribution of one noise."""
        known = np.zeros(1) if noise.known is None else noise.known
        return np.nonzero(noise.possible(known, arguments, distribution.lengths.size))[1]


def prior_distribution(name: str, noise: Noise, arguments: Arguments, n_contexts: int) -> Distribution:
    """Return the distribution of a noise in all of its contexts, at the prior mean of an unknown parameter."""
    known = np.zeros(1) if noise.known is None else noise.known
    parameter = known if noise.prior is None else noise.prior.mean()
    table = noise.table(parameter, arguments, n_contexts)
    values = noise.columns(variables_of(name), arguments)
    return Distribution.of_table(values, table, noise.possible(known, arguments, n_contexts))


def own_contexts(arguments: Arguments, points: int) -> tuple[dict[str, Floats], Ints]:
    """Return the distinct values of the arguments of a noise, and which of them hold at every point."""
    varying = {key: values for key, values in arguments.items() if values.size > 1}
    rows, contexts = distinct_rows(list(varying.values()), points)
    places = {key: k for k, key in enumerate(varying)}
    found = {
        key: rows[:, places[key]] if key in places else np.full(len(rows), values.ravel()[0])
        for key, values in arguments.items()
    }
    return found, contexts


def checked_arguments(name: str, noise: Noise, own: dict[str, Floats], columns: Columns) -> Arguments:
    """Return the arguments of a noise after a check; an error names the first point that shows it."""
    try:
        return noise.checked_arguments(own)
    except ModelError as error:
        if all(values.size == 1 for values in own.values()):
            raise ModelError(f"the noise {quoted(name)}: {error}") from None
    at = first_wrong(own, noise.checked_arguments)
    try:
        return noise.checked_arguments({key: v[at : at + 1] if v.size > 1 else v for key, v in own.items()})
    except ModelError as error:
        where = shown_values({key: column[at] for key, column in columns.items()})
        raise ModelError(f"the noise {quoted(name)} at {where}: {error}") from None


def first_wrong(own: Mapping[str, Floats], check: Callable[[dict[str, Floats]], object]) -> int:
    """Return the first point at which a check of arguments fails, by bisection; it fails for all points together."""

    def fails(n: int) -> bool:
        try:
            check({key: values[:n] for key, values in own.items()})
        except ModelError:
            return True
        return False

    low, high = 0, max(values.size for values in own.values())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return low


def _taken(rows: Rows, points: Ints, names: Sequence[str]) -> Distribution:
    """Return the distribution of some columns at some of the points of rows."""
    starts = np.searchsorted(rows.points, np.arange(int(rows.points[-1]) + 2))
    lengths = np.diff(starts)[points]
    ends = np.cumsum(lengths)
    which = np.repeat(starts[points] - (ends - lengths), lengths) + np.arange(ends[-1])
    columns: dict[str, NDArray[Any]] = {name: rows.columns[name][which] for name in names}
    return Distribution(np.concatenate([[0], ends]), columns, rows.probabilities[which])
