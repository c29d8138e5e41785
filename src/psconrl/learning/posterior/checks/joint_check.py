r"""The tests of ``dependence`` for what rounds reveal of several noises together: next states, costs and reports.

A queue that stays as long as it was had an arrival and a departure, or neither. Such a result r (``round_results``) is
a set of joint outcomes, with probability :math:`p_\theta(r) = \sum_{w \in r} p_\theta(w)`. The numerator of E for noise
j has a mixture over the parameter of j, with one part for each value of a variable, or one before and one after a
change; everything else is as under the parameters estimated before, the mean of the last draws from the posterior. Such
a prediction is made before the rounds that it is for, so that the numerator is a probability again. The denominator is
the largest likelihood over all unknown parameters together. The rounds before the first test are left out: there is no
estimate for them. ``fluctuation_check`` has further numerators, for all noises and events.

Results that show a noise alone count, too: they tell apart noises that explain joint results equally well.

If noise j has known parameters, the mixture alone, against the denominator, tests their values. Values of free
probability are tilted, :math:`p_\eta(x) \propto \hat p(x) e^{\eta x}`.
"""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import Kind, fields, flag, integer, maybe, need_that, read_fields, reals, table_of
from psconrl.learning.posterior.checks.dependence import changes, log_sum_exp, of_parts
from psconrl.learning.posterior.checks.dependence_check import DependenceCheck, change_points
from psconrl.learning.posterior.checks.fluctuation_check import DISPERSION, FITS, FluctuationCheck
from psconrl.learning.posterior.checks.result_likelihood import ResultLikelihood
from psconrl.learning.posterior.checks.round_results import Cells, RoundResults, Rounds
from psconrl.learning.posterior.checks.structure_advice import (
    changed_text,
    dependence_text,
    dispersion_text,
    fits_text,
    hidden_correlation_text,
    value_text,
)
from psconrl.learning.posterior.checks.variables import TIME, VALUE, VaryingVariable
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_families import GridFamily, log_mean_exp, raised_logs, tilted_family
from psconrl.learning.posterior.noise_views import NoiseViews
from psconrl.model.matrix_product import product
from psconrl.systems.randomness import Parameters, RoundNoise
from psconrl.systems.structure import Structure

SAFETY = 0.1  # is subtracted from log E: what the searches for the largest likelihood may have missed
UNTIL_PLUGGED = 1.3  # by which factor there are more rounds when the plug-in is next changed


class JointCheck:
    """The tests of all noises that are hidden in some pairs, and of all that fluctuate.

    ``alone``: the tests of noises one by one.
    """

    def __init__(self, structure: Structure, variables: list[VaryingVariable], alone: DependenceCheck) -> None:
        self._structure, self._variables, self._alone = structure, variables, alone
        independent = isinstance(structure.randomness, RoundNoise)
        self.names = _seldom_alone(alone.views) if independent else ()
        self._results = RoundResults(structure)
        self._likelihood = ResultLikelihood(structure, self._results)
        self._fluctuation = FluctuationCheck(structure, alone.names)
        self._plugged: Parameters | None = None  # estimates, for the rounds until the next ones
        self._table: Floats = np.empty((0, 0))  # of these
        self._own: dict[str, Floats] = {}  # by noise, its table (G, W)
        self._grids: dict[str, Floats] = {}  # by noise, tables (M, G, W) of itself
        self._next = 0  # number of rounds at which the plug-in is changed
        self._drawn: tuple[int, Parameters] = 0, {}  # number and sum of the draws since the last change
        self._since: Floats = np.empty(0)  # numbers of results since the first look
        self._times: dict[str, Floats] = {v.name: np.zeros(len(v.values)) for v in variables}  # by value of a variable
        self._logs: dict[str, dict[str, Floats]] = {name: {} for name in self.names}  # (V, M) by noise and variable
        self._before: dict[str, Floats] = {}  # by noise, the same (J, M) at the change points
        self._change_points: list[int] = []  # in rounds
        self._is_certain = False  # whether a bound was reached by the largest likelihood of all searches
        self._latest: dict[str, int] = {}  # by noise, the place of the most probable one at the last test

    @property
    def number(self) -> int:
        """Number of tests."""
        return len(self.names) * (len(self._variables) + 2) + self._fluctuation.number

    def note(self, counts: Counts, near: Parameters) -> None:
        """Add the rounds since the last call to all numerators; ``near``: parameters drawn from their posterior."""
        rounds, total = self._results.new(counts), int(counts.visits.sum())
        n, sums = self._drawn
        self._drawn = n + 1, {key: sums.get(key, 0.0) + value for key, value in near.items()}
        if self._plugged is not None:
            times = np.bincount(rounds.results, weights=rounds.times, minlength=len(self._results.results)).astype(
                np.float64
            )
            self._since = times + np.pad(self._since, (0, times.size - self._since.size))
            self._add(rounds, times)
        if self._plugged is None or total >= self._next:
            n, sums = self._drawn
            self._plug_in({key: value / n for key, value in sums.items()})
            self._next, self._drawn = int(UNTIL_PLUGGED * total) + 1, (0, {})

    def _plug_in(self, parameters: Parameters) -> None:
        self._plugged = parameters
        self._table = self._structure.table(parameters)
        self._fluctuation.plug_in(self._table)
        randomness = self._structure.randomness
        if isinstance(randomness, RoundNoise):
            self._own = {name: randomness.own_table(name, parameters) for name in self.names}
        self._grids = {name: self._grid(name) for name in self.names}

    def _add(self, rounds: Rounds, times: Floats) -> None:
        """Add rounds to the numerators; ``times``: of all results."""
        seen = np.flatnonzero(times)
        cells = self._results.cells(seen)
        if not seen.size:
            return
        order = None if rounds.order is None else np.searchsorted(seen, rounds.order)
        self._fluctuation.add(cells, times[seen], order, self._table)
        by_variable = {"": times[None, seen]}
        of_round = np.searchsorted(seen, rounds.results)
        for v in self._variables:
            codes = v.of_pair[rounds.pairs] * seen.size + of_round
            sums = np.bincount(codes, weights=rounds.times, minlength=len(v.values) * seen.size)
            by_variable[v.name] = sums.astype(np.float64).reshape(-1, seen.size)
            self._times[v.name] = self._times[v.name] + by_variable[v.name].sum(axis=1)
        for name in self.names:
            logs = raised_logs(self._on_grid(name, cells))
            own = self._logs[name]
            for variable, counted in by_variable.items():
                added = np.asarray(product(counted, logs))
                own[variable] = own[variable] + added if variable in own else added

    def evidence(self, counts: Counts, near: Parameters, bound: float) -> dict[str, dict[str, float]]:
        """Return log E by noise and cause, and make the present round a change point; see ``DependenceCheck``."""
        self.note(counts, near)
        if not self._since.any():
            return {}
        least = max(self._likelihood.log(self._since, at) for at in (near, self._plugged or near))
        found = self._all(least)
        if _most(found) >= bound:
            most, at = self._likelihood.largest(self._since, self._plugged or near)
            found = self._all(max(most, least) + SAFETY)
            if _most(found) >= bound and not self._is_certain:
                most = self._likelihood.largest_of(self._since, (at, near))
                found = self._all(max(most, least) + SAFETY)
                self._is_certain = _most(found) >= bound
        for name in self.names:
            before = self._before.get(name)
            total = self._total(name)[None, :]
            self._before[name] = total if before is None else np.concatenate([before, total])
        self._change_points.append(int(counts.visits.sum()))
        return found

    def _all(self, least: float) -> dict[str, dict[str, float]]:
        found = self._fluctuation.evidence(least)
        for name in self.names:
            found[name] = found.get(name, {}) | self._of_noise(name, least)
        return found

    def _of_noise(self, name: str, least: float) -> dict[str, float]:
        logs = {
            v.name: of_parts(self._logs[name][v.name], log_mean_exp, least, ordered=v.ordered)
            for v in self._variables
            if v.name in self._logs[name]
        }
        before, total = self._before.get(name), self._total(name)
        terms = changes(before, total, log_mean_exp, least) if before is not None else np.empty(0)
        logs[TIME] = log_sum_exp(terms)
        self._latest[name] = int(terms.argmax()) if terms.size else 0
        randomness = self._structure.randomness
        assert isinstance(randomness, RoundNoise)
        if name not in randomness.keys:
            logs[VALUE] = float(log_mean_exp(total[None, :])[0]) - least
        return logs

    def _total(self, name: str) -> Floats:
        return np.asarray(self._logs[name][""][0])

    def text(self, name: str, cause: str) -> str:
        """Describe what the last ``evidence`` found, and what to do about it."""
        randomness = self._structure.randomness
        noise = randomness.noises[name] if isinstance(randomness, RoundNoise) else None
        if cause == DISPERSION:
            assert isinstance(randomness, RoundNoise)
            return dispersion_text(name, randomness.noises[name], randomness.sizes[list(randomness.noises).index(name)])
        if cause == FITS:
            return fits_text(name)
        if (name, cause) in self.correlated:
            parents = randomness.parents if isinstance(randomness, RoundNoise) else {}
            return hidden_correlation_text(name, cause, parents)
        family = self._alone.family(name)

        def estimates(logs: Floats) -> Floats | None:
            return family.best_points(logs) if isinstance(family, GridFamily) else None

        total = self._total(name)
        if cause == VALUE:
            return value_text(name, noise, estimates(total[None, :]))
        if cause == TIME:
            before = self._before[name][self._latest[name]]
            parts = estimates(np.array([before, total - before]))
            return changed_text(name, self._change_points[self._latest[name]], parts)
        variable = next(v for v in self._variables if v.name == cause)
        times, logs = self._times[cause], self._logs[name][cause]
        return dependence_text(name, noise, cause, variable.values, times, estimates(logs))

    @property
    def correlated(self) -> set[tuple[str, str]]:
        """The pairs of noises that are tested for correlation."""
        return {(one.name, two.name) for one, two in self._fluctuation.pairs}

    def _on_grid(self, name: str, cells: Cells) -> Floats:
        """Return the probabilities (R, M) of results, with a noise at every point of its grid."""
        randomness = self._structure.randomness
        assert isinstance(randomness, RoundNoise)
        grid = self._grids[name]
        V, j = grid.shape[2], list(randomness.noises).index(name)
        values = np.unravel_index(cells.outcomes, randomness.sizes)[j]
        own, contexts = self._own[name], randomness.own_contexts(name, cells.contexts, cells.outcomes)
        at = own[contexts, values]
        shares = self._table[cells.contexts, cells.outcomes]
        others = np.where(at > 0.0, shares / np.where(at > 0.0, at, 1.0), 0.0)
        found = np.zeros((cells.number, grid.shape[0]))
        for g in np.unique(contexts):
            here = contexts == g
            results, result = np.unique(cells.result[here], return_inverse=True)
            places = result.ravel() * V + values[here]
            weights = np.bincount(places, weights=others[here], minlength=results.size * V).reshape(-1, V)
            found[results] += product(weights.astype(np.float64), np.ascontiguousarray(grid[:, g, :].T))
        return found

    def _grid(self, name: str) -> Floats:
        """Return the tables (M, G, W) of a noise: of its parameters, or tilted where it has free probabilities."""
        family = self._alone.family(name)
        if isinstance(family, GridFamily):
            return family.grid
        return tilted_family(self._own[name]).grid

    @property
    def tested(self) -> set[str]:
        """The names of all noises that are tested."""
        return {*self.names, *(feature.name for feature in self._fluctuation.features)}

    def need_within(self, counts: Counts) -> None:
        """Raise an error unless the rounds that the tests have seen are part of those that were counted."""
        last = max(self._change_points, default=0)
        need_that(last <= counts.visits.sum(), f"change_points must be within {counts.visits.sum():,} rounds")
        self._results.need_within(counts)

    def state(self) -> dict[str, Any]:
        """Return what the tests remember."""
        return {
            "results": self._results.state(),
            "fluctuation": self._fluctuation.state(),
            "plugged": None if self._plugged is None else dict(self._plugged),
            "next": self._next,
            "drawn": [self._drawn[0], dict(self._drawn[1])],
            "since": self._since,
            "times": dict(self._times),
            "logs": {name: dict(logs) for name, logs in self._logs.items()},
            "before": dict(self._before),
            "change_points": list(self._change_points),
            "is_certain": self._is_certain,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        parameters = self._structure.randomness.read_parameters
        saved = read_fields(
            state,
            {
                "results": self._results.restore,
                "fluctuation": self._fluctuation.restore,
                "plugged": maybe(parameters),
                "next": integer(),
                "drawn": self._read_drawn,
                "times": fields({v.name: reals((len(v.values),), 0.0) for v in self._variables}),
                "change_points": change_points,
                "is_certain": flag,
            },
        )
        need_that(saved["next"] <= UNTIL_PLUGGED * self._results.total + 1.0, "next must follow the rounds seen")
        if saved["plugged"] is not None:
            self._plug_in(saved["plugged"])
        self._next, self._drawn, self._times = saved["next"], saved["drawn"], saved["times"]
        self._change_points, self._is_certain = saved["change_points"], saved["is_certain"]
        evidence = read_fields(
            state, {"since": reals((None,), 0.0), "logs": self._read_logs, "before": self._read_before}
        )
        self._since, self._logs, self._before = evidence.values()
        need_that(self._since.size <= len(self._results.results), "since must be numbers of the results")
        need_that(not self._since.any() or all(self._logs.values()), "logs must be known of the rounds since")

    def _read_drawn(self, saved: Any) -> tuple[int, Parameters]:
        """Return the number of draws, and their sum."""
        need_that(isinstance(saved, list | tuple) and len(saved) == 2, "must be a number of draws and their sum")
        n, sums = integer()(saved[0]), table_of(reals((None,)))(saved[1])
        if n:
            self._structure.randomness.read_parameters({key: value / n for key, value in sums.items()})
        return n, sums if n else {}

    def _read_logs(self, saved: Any) -> dict[str, dict[str, Floats]]:
        """Return the numerators of noises, by variable: of all rounds, or none if there was no plug-in."""
        sizes = {"": 1} | {v.name: len(v.values) for v in self._variables}
        points = {name: grid.shape[0] for name, grid in self._grids.items()}
        need_that(isinstance(saved, dict), "must be a table")
        kinds: dict[str, Kind] = {
            name: fields({v: reals((sizes[v], n)) for v in sizes}) if saved.get(name) else fields({})
            for name, n in points.items()
        }
        return {name: {} for name in self.names} | read_fields(saved, kinds)

    def _read_before(self, saved: Any) -> dict[str, Floats]:
        """Return the numerators of noises at the change points."""
        points = len(self._change_points)
        kinds = {name: reals((points, grid.shape[0])) for name, grid in self._grids.items()}
        return read_fields(saved, kinds, may_be_missing=() if points else kinds)


def _most(evidence: dict[str, dict[str, float]]) -> float:
    """Return the largest evidence of all noises and causes."""
    return max((max(logs.values()) for logs in evidence.values()), default=-np.inf)


def _seldom_alone(views: NoiseViews) -> tuple[str, ...]:
    """Return the noises of which transitions do not show the value in some pair; none if there is only one."""
    several = [k for k, name in enumerate(views.names) if np.unique(views.values[name]).size > 1]
    if len(several) < 2:
        return ()
    classes = range(int(views.classes.max()) + 1)
    return tuple(name for name in views.names if any(views.hides_one(k, name) for k in classes))
