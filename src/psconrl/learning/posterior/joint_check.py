r"""The tests of ``dependence`` where a transition shows only joint results of several noises.

A queue that stays as long as it was had an arrival and a departure, or neither. Such a result r is a set of joint
outcomes, with probability :math:`p_\theta(r) = \sum_{w \in r} \prod_i p_{\theta_i}(w_i)`. The numerator of E for noise
j has a mixture over the parameter of j, with one part for each value of a variable, or one before and one after a
change; the parameters of the other noises are those drawn from the posterior at the test before. Such a prediction is
made before the rounds that it is for, so that the numerator is a probability again. The denominator is the largest
likelihood over all unknown parameters together. The rounds before the first test are left out: there is no estimate
for them.

Results that show a noise alone count, too: they tell apart noises that explain joint results equally well.

If noise j has known parameters, the mixture alone, against the denominator, tests their values. Values of free
probability are tilted, :math:`p_\eta(x) \propto \hat p(x) e^{\eta x}`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.learning.checks import saved_floats
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.dependence import changes, log_sum_exp, of_parts
from psconrl.learning.posterior.distribution_check import search_parameter
from psconrl.learning.posterior.noise_families import Family, GridFamily, log_mean_exp, raised_logs, tilted_family
from psconrl.learning.posterior.noise_views import NoiseViews, noise_names
from psconrl.learning.posterior.structure_advice import changed_text, dependence_text, value_text
from psconrl.learning.posterior.variables import TIME, VALUE, VaryingVariable
from psconrl.products import product
from psconrl.systems.priors import Beta, Weights
from psconrl.systems.randomness import IndependentNoise, Parameters
from psconrl.systems.structure import Structure

SWEEPS_OF_SEARCH = 30  # over all parameters
SEARCH_ENDS_BELOW = 1e-3  # of the log-likelihood, below which the search ends
SAFETY = 0.1  # is subtracted from log E for the rest


class _Cells(NamedTuple):
    """The joint outcomes of all results seen, one after the other."""

    row: Ints  # the result that each belongs to
    values: Ints  # (K, n) of every noise
    contexts: Ints  # (K, n) of every noise itself


class JointCheck:
    """The tests of all noises that are hidden behind others in some pairs."""

    def __init__(self, structure: Structure, variables: list[VaryingVariable], family: Callable[[str], Family]) -> None:
        self._structure, self._variables, self._family = structure, variables, family
        self._views = NoiseViews(structure, noise_names(structure.randomness))
        independent = isinstance(structure.randomness, IndependentNoise)
        self.names = tuple(self._views.hidden()) if independent else ()
        self._rows: list[tuple[int, int]] = []  # class of pairs, and the first joint outcome of the result
        self._plugged: Parameters | None = None  # of the other noises, for the rounds until the next test
        self._first: Floats = np.empty(0)  # numbers of results before the first test
        self._counted: dict[str, Floats] = {}  # numbers of results at the last test, by variable
        self._logs: dict[str, dict[str, Floats]] = {}  # by noise and variable, log-likelihoods (V, M) on the grid
        self._before: dict[str, Floats] = {}  # by noise, the same (J, M) at the change points
        self._change_points: list[int] = []  # in rounds
        self._latest: dict[str, int] = {}  # by noise, the place of the most probable one at the last test

    @property
    def number(self) -> int:
        """Number of tests."""
        return len(self.names) * (len(self._variables) + 2)

    def evidence(self, counts: Counts, near: Parameters, bound: float) -> dict[str, dict[str, float]]:
        """Return log E by noise and cause, and make the present round a change point; see ``DependenceCheck``."""
        if not self.names:
            return {}
        counted = self._count(counts)
        total = next(iter(counted.values())).sum(axis=0)
        if self._plugged is None:
            self._first = total
        else:
            self._first = np.pad(self._first, (0, total.size - self._first.size))
            self._add(counted)
        self._counted, self._plugged = counted, {key: value.copy() for key, value in near.items()}
        since = total - self._first
        if not since.any():
            return {}
        cells = self._cells()
        least = self._log_likelihood(cells, since, near)
        found = {name: self._of_noise(name, least) for name in self.names}
        if max(max(logs.values()) for logs in found.values()) >= bound:
            excess = self._largest(cells, since, near) - least + SAFETY
            found = {name: {cause: log - excess for cause, log in logs.items()} for name, logs in found.items()}
        for name in self.names:
            self._before[name] = np.concatenate([self._before[name], self._total(name)[None, :]])
        self._change_points.append(int(counts.visits.sum()))
        return found

    def _of_noise(self, name: str, least: float) -> dict[str, float]:
        logs = {
            v.name: of_parts(self._logs[name][v.name], log_mean_exp, least, ordered=v.ordered)
            for v in self._variables
            if v.name in self._logs[name]
        }
        before, total = self._before[name], self._total(name)
        terms = changes(before, total, log_mean_exp, least) if len(before) else np.empty(0)
        logs[TIME] = log_sum_exp(terms)
        self._latest[name] = int(terms.argmax()) if terms.size else 0
        randomness = self._structure.randomness
        assert isinstance(randomness, IndependentNoise)
        if name not in randomness.keys:
            logs[VALUE] = float(log_mean_exp(total[None, :])[0]) - least
        return logs

    def _total(self, name: str) -> Floats:
        return np.asarray(self._logs[name][""][0])

    def text(self, name: str, cause: str) -> str:
        """Describe what the last ``evidence`` found, and what to do about it."""
        randomness, family = self._structure.randomness, self._family(name)
        assert isinstance(randomness, IndependentNoise)

        def estimates(logs: Floats) -> Floats | None:
            return family.best_points(logs) if isinstance(family, GridFamily) else None

        total = self._total(name)
        if cause == VALUE:
            return value_text(name, randomness.noises[name], estimates(total[None, :]))
        if cause == TIME:
            before = self._before[name][self._latest[name]]
            parts = estimates(np.array([before, total - before]))
            return changed_text(name, self._change_points[self._latest[name]], parts)
        variable = next(v for v in self._variables if v.name == cause)
        times, logs = self._counted[cause].sum(axis=1), self._logs[name][cause]
        return dependence_text(name, randomness.noises[name], cause, variable.values, times, estimates(logs))

    # Results, and how often they were seen.

    def _count(self, counts: Counts) -> dict[str, Floats]:
        """Return the numbers of results (V, R) by variable, and (1, R) of all under the name ""."""
        S, W = self._structure.n_states, self._structure.randomness.n_outcomes
        pairs, following = np.divmod(counts.tally.numbers, S)
        classes = self._views.classes[pairs]
        outcomes = self._views.explained(pairs, following)
        kept = np.flatnonzero(outcomes >= 0)
        outcomes = outcomes[kept]
        codes, back = np.unique(classes[kept] * W + outcomes, return_inverse=True)
        places = {row: k for k, row in enumerate(self._rows)}
        for code in codes.tolist():
            if places.setdefault(divmod(code, W), len(places)) == len(self._rows):
                self._rows.append(divmod(code, W))
        of_code = np.array([places[divmod(code, W)] for code in codes.tolist()], dtype=np.int64)
        rows, R = of_code[back.ravel()], len(self._rows)
        times = counts.tally.times[kept].astype(np.float64)
        found = {"": np.bincount(rows, weights=times, minlength=R).astype(np.float64)[None, :]}
        for v in self._variables:
            cells = v.of_pair[pairs[kept]] * R + rows
            sums = np.bincount(cells, weights=times, minlength=len(v.values) * R).astype(np.float64)
            found[v.name] = sums.reshape(-1, R)
        return found

    def _cells(self) -> _Cells:
        firsts, contexts = self._views.partitions
        randomness = self._structure.randomness
        assert isinstance(randomness, IndependentNoise)
        members = [np.flatnonzero(firsts[k] == first) for k, first in self._rows]
        row = np.repeat(np.arange(len(members)), [len(one) for one in members])
        outcomes = np.concatenate(members)
        joint = contexts[np.array([k for k, _ in self._rows])][row]
        names = list(randomness.noises)
        values = np.array([self._views.values[name][outcomes] for name in names])
        return _Cells(row, values, np.array([randomness.own_contexts(name, joint, outcomes) for name in names]))

    # Likelihoods.

    def _shares(self, cells: _Cells, parameters: Parameters) -> Floats:
        """Return the probabilities (K, n) of the value of every noise in every cell."""
        randomness = self._structure.randomness
        assert isinstance(randomness, IndependentNoise)
        tables = [randomness.own_table(name, parameters) for name in randomness.noises]
        return np.array([table[c, v] for table, c, v in zip(tables, cells.contexts, cells.values, strict=True)])

    def _log_likelihood(self, cells: _Cells, counts: Floats, parameters: Parameters) -> float:
        shares = np.multiply.reduce(self._shares(cells, parameters), axis=0)
        results = np.bincount(cells.row, weights=shares, minlength=counts.size).astype(np.float64)
        return float(product(counts, raised_logs(results)))

    def _add(self, counted: dict[str, Floats]) -> None:
        """Add the rounds since the last test to the log-likelihoods on the grids."""
        assert self._plugged is not None
        cells = self._cells()
        shares = self._shares(cells, self._plugged)
        randomness = self._structure.randomness
        assert isinstance(randomness, IndependentNoise)
        for name in self.names:
            j = list(randomness.noises).index(name)
            others = np.multiply.reduce(np.delete(shares, j, axis=0), axis=0)
            grid = self._grid(name)
            logs = raised_logs(_mixed(cells, j, others, grid, len(self._rows)))
            own = self._logs.setdefault(name, {})
            for variable, now in counted.items():
                before = self._counted[variable]
                new = now - np.pad(before, ((0, 0), (0, now.shape[1] - before.shape[1])))
                added = np.asarray(product(new, logs))
                own[variable] = own[variable] + added if variable in own else added
            self._before.setdefault(name, np.empty((0, grid.shape[0])))

    def _grid(self, name: str) -> Floats:
        """Return the tables (M, G, W) of a noise: of its parameters, or tilted where it has free probabilities."""
        family = self._family(name)
        return (family if isinstance(family, GridFamily) else tilted_family(self._own_table(name))).grid

    def _own_table(self, name: str) -> Floats:
        randomness = self._structure.randomness
        assert isinstance(randomness, IndependentNoise)
        assert self._plugged is not None
        return randomness.own_table(name, self._plugged)

    def _largest(self, cells: _Cells, counts: Floats, near: Parameters) -> float:
        """Return the largest log-likelihood over the unknown parameters, one after the other until nothing changes."""
        best = {key: value.copy() for key, value in near.items()}
        largest = self._log_likelihood(cells, counts, best)
        for _ in range(SWEEPS_OF_SEARCH):
            before = largest
            for key, prior in self._structure.randomness.priors.items():
                if isinstance(prior, Weights):
                    best[key] = self._expected_shares(cells, counts, best, key)
                    largest = self._log_likelihood(cells, counts, best)
                else:
                    best[key], largest = search_parameter(
                        lambda given: self._log_likelihood(cells, counts, given),
                        best, key, isinstance(prior, Beta), largest,
                    )  # fmt: skip
            if largest - before < SEARCH_ENDS_BELOW:
                break
        return largest

    def _expected_shares(self, cells: _Cells, counts: Floats, at: Parameters, key: str) -> Floats:
        """Return free probabilities after a step of expectation maximisation, which increases the likelihood."""
        randomness = self._structure.randomness
        assert isinstance(randomness, IndependentNoise)
        shares = np.multiply.reduce(self._shares(cells, at), axis=0)
        totals = np.bincount(cells.row, weights=shares, minlength=counts.size)
        weights = shares * (counts / np.where(totals > 0.0, totals, 1.0))[cells.row]
        expected = np.zeros(at[key].size)
        for k, name in enumerate(randomness.noises):
            if randomness.keys.get(name) == key:
                expected += np.bincount(cells.values[k], weights=weights, minlength=expected.size)
        return np.asarray(expected / expected.sum()) if expected.sum() > 0.0 else at[key]

    def state(self) -> dict[str, Any]:
        """Return what the tests remember."""
        return {
            "rows": [list(row) for row in self._rows],
            "plugged": None if self._plugged is None else dict(self._plugged),
            "first": self._first,
            "counted": dict(self._counted),
            "logs": {name: dict(logs) for name, logs in self._logs.items()},
            "before": dict(self._before),
            "change_points": list(self._change_points),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self._rows = [(int(k), int(first)) for k, first in state["rows"]]
        R, priors = len(self._rows), self._structure.randomness.initial()
        plugged = state["plugged"]
        self._plugged = None
        if plugged is not None:
            self._plugged = {key: saved_floats(plugged[key], value.shape, key) for key, value in priors.items()}
        self._first = saved_floats(state["first"], np.shape(state["first"]), "first")
        sizes = {"": 1} | {v.name: len(v.values) for v in self._variables}
        self._counted = {v: saved_floats(x, (sizes[v], R), "counted") for v, x in state["counted"].items()}
        self._logs, self._before = {}, {}
        self._change_points = [int(point) for point in state["change_points"]]
        for name, logs in state["logs"].items():
            points = np.shape(logs[""])[1]
            self._logs[name] = {v: saved_floats(x, (sizes[v], points), "logs") for v, x in logs.items()}
            before = state["before"][name]
            self._before[name] = saved_floats(before, (len(self._change_points), points), "before")


def _mixed(cells: _Cells, j: int, others: Floats, grid: Floats, n_rows: int) -> Floats:
    """Return the probabilities (R, M) of all results, with noise j at every point of its grid."""
    V = grid.shape[2]
    found = np.zeros((n_rows, grid.shape[0]))
    for g in np.unique(cells.contexts[j]):
        here = cells.contexts[j] == g
        rows, row = np.unique(cells.row[here], return_inverse=True)
        places = row.ravel() * V + cells.values[j][here]
        weights = np.bincount(places, weights=others[here], minlength=rows.size * V).reshape(-1, V)
        found[rows] += product(weights.astype(np.float64), np.ascontiguousarray(grid[:, g, :].T))
    return found
