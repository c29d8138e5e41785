"""A test of every noise of a system against every variable and against time. The formulas are in ``dependence``."""

from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import integers, need_that, read_fields, reals
from psconrl.learning.posterior.checks.dependence import changes, log_sum_exp, of_parts
from psconrl.learning.posterior.checks.structure_advice import changed_text, dependence_text, value_text
from psconrl.learning.posterior.checks.variables import TIME, VALUE, VaryingVariable
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.noise_families import Family, family_of
from psconrl.learning.posterior.noise_sightings import NoiseSightings, Sightings
from psconrl.learning.posterior.noise_views import NoiseViews
from psconrl.systems.event_source import EVENT
from psconrl.systems.events import EventClock
from psconrl.systems.randomness import Randomness, RoundNoise
from psconrl.systems.structure import Structure
from psconrl.systems.vocabulary import Vocabulary


class _Subject:
    """A noise, and what had been seen of it at the change points."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.n_rows = 0
        self.before: Floats = np.empty((0, 0))
        self.log_before: Floats = np.empty(0)
        self.total: Floats = np.empty(0)  # and by now
        self.log_total = 0.0
        self.by_value: dict[str, Floats] = {}
        self.terms: Floats = np.empty(0)  # of E of time

    def settle(self) -> None:
        """Compute what follows from numbers of rows that were read from a file, once they have been checked."""
        if self.log_before.size < len(self.before):
            self.log_before = self.family.log_mixture(self.before) if self.n_rows else np.zeros(len(self.before))

    def grow(self, n_rows: int) -> None:
        """Make room for rows that were not seen before."""
        self.before = np.pad(self.before, ((0, 0), (0, n_rows - self.n_rows)))
        self.n_rows = n_rows

    def remember(self) -> None:
        """Make the present round a change point."""
        self.before = np.concatenate([self.before, self.total[None, :]])
        self.log_before = np.append(self.log_before, self.log_total)


class DependenceCheck:
    """The tests of all noises; ``words`` has the names of events."""

    def __init__(self, structure: Structure, variables: list[VaryingVariable], words: Vocabulary | None) -> None:
        self._structure = structure
        self._variables = variables
        events = not isinstance(structure.randomness, RoundNoise)
        names = _event_names(structure.randomness, words) if events else ()
        self._sightings = NoiseSightings(structure, names, words)
        self._subjects: dict[str, _Subject] = {}
        self.change_points: list[int] = []  # in rounds

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the noises, or of the events."""
        return self._sightings.names

    @property
    def views(self) -> NoiseViews:
        """What rounds reveal of single noises."""
        return self._sightings.views

    @property
    def number(self) -> int:
        """Number of tests."""
        return len(self.names) * (len(self._variables) + 2)

    def evidence(self, counts: Counts, bound: float) -> dict[str, dict[str, float]]:
        """Return log E by noise and cause, and make the present round a change point.

        Of a noise none of whose tests reaches the ``bound``, these are upper bounds, which take no search.
        """
        seen = self._sightings.of(counts)
        found = {}
        for name in self.names:
            subject, rows = self._subject(name), self._sightings.rows[name]
            subject.settle()
            subject.family.add(rows[subject.n_rows :])
            subject.grow(len(rows))
            found[name] = self._of_noise(subject, seen[name], bound) if rows else {}
            if rows:
                subject.remember()
            else:
                subject.before = np.empty((len(self.change_points) + 1, 0))
                subject.log_before = np.zeros(len(subject.before))
        self.change_points.append(int(counts.visits.sum()))
        return found

    def _of_noise(self, subject: _Subject, seen: Sightings, bound: float) -> dict[str, float]:
        R, family = subject.n_rows, subject.family
        subject.total = np.bincount(seen.rows, weights=seen.times, minlength=R).astype(np.float64)
        subject.log_total = float(family.log_mixture(subject.total[None, :])[0])
        least = family.largest(subject.total, search=False)
        logs: dict[str, float] = {}
        for variable in self._variables:
            cells = variable.of_pair[seen.pairs] * R + seen.rows
            V = len(variable.values)
            by_value = np.bincount(cells, weights=seen.times, minlength=V * R).astype(np.float64).reshape(V, R)
            subject.by_value[variable.name] = by_value
            logs[variable.name] = of_parts(by_value, family.log_mixture, least, ordered=variable.ordered)
        subject.terms = np.empty(0)
        if len(subject.before):
            subject.terms = changes(subject.before, subject.total, family.log_mixture, least, subject.log_before)
        logs[TIME] = log_sum_exp(subject.terms)
        if max(logs.values()) >= bound:
            excess = family.largest(subject.total) - least
            logs = {cause: log - excess for cause, log in logs.items()}
        given = family.as_given(subject.total)
        return logs if given is None else logs | {VALUE: subject.log_total - given}

    def _subject(self, name: str) -> _Subject:
        if name not in self._subjects:
            place = self.names.index(name)
            self._subjects[name] = _Subject(family_of(self._structure.randomness, place, name))
        return self._subjects[name]

    def family(self, name: str) -> Family:
        """Return the distributions that a noise may have."""
        return self._subject(name).family

    def ends(self, log_inverse: float) -> dict[str, list[Floats]]:
        """Return parameters that span confidence sets, by unknown parameter; see ``Family.ends``."""
        randomness = self._structure.randomness
        by_name: dict[str, str] = {}  # the first noise of each parameter
        for k, name in enumerate(self.names):
            key = _key(randomness, name, k)
            if key is not None:
                by_name.setdefault(key, name)
        subjects = {key: self._subjects[name] for key, name in by_name.items()}
        return {key: subject.family.ends(subject.total, log_inverse) for key, subject in subjects.items()}

    def text(self, name: str, cause: str) -> str:
        """Describe what the last ``evidence`` found, and what to do about it."""
        subject, randomness = self._subjects[name], self._structure.randomness
        noise = randomness.noises[name] if isinstance(randomness, RoundNoise) else None
        if cause == VALUE:
            return value_text(name, noise, subject.family.estimates(subject.total[None, :]))
        if cause == TIME:
            j = int(subject.terms.argmax())
            before = subject.before[j]
            parts = np.array([before, subject.total - before])
            return changed_text(name, self.change_points[j], subject.family.estimates(parts))
        variable = next(v for v in self._variables if v.name == cause)
        by_value = subject.by_value[cause]
        return dependence_text(
            name, noise, cause, variable.values, by_value.sum(axis=1), subject.family.estimates(by_value)
        )

    def state(self) -> dict[str, Any]:
        """Return the change points, and what had been seen at each."""
        return {
            "change_points": list(self.change_points),
            "rows": self._sightings.state(),
            "before": {name: subject.before for name, subject in self._subjects.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        saved = read_fields(state, {"change_points": change_points, "rows": self._sightings.restore})
        self.change_points = saved["change_points"]
        points = len(self.change_points)
        kinds = {name: reals((points, len(self._sightings.rows[name])), 0.0) for name in self.names}
        before = {"before": lambda given: read_fields(given, kinds, may_be_missing=() if points else kinds)}
        self._subjects = {}
        for name, seen in read_fields(state, before)["before"].items():
            rows, subject = self._sightings.rows[name], self._subject(name)
            subject.family.add(rows)
            subject.n_rows, subject.before = len(rows), seen

    def need_within(self, counts: Counts) -> None:
        """Raise an error unless what was seen at the change points is part of what was counted."""
        last = max(self.change_points, default=0)
        need_that(last <= counts.visits.sum(), f"change_points must be within {counts.visits.sum():,} rounds")
        for name, total in self._sightings.in_all(counts).items():
            before = self._subjects[name].before if name in self._subjects else np.empty((0, total.size))
            rising = (np.diff(before, axis=0) >= 0.0).all() and (before[-1:] <= total).all()
            need_that(rising, f"before/{name} must be numbers of rows that were seen")


def change_points(saved: Any) -> list[int]:
    """Read numbers of rounds that increase."""
    points: list[int] = integers((None,), 1)(saved).tolist()
    need_that(points == sorted(set(points)), "must increase")
    return points


def _key(randomness: Randomness, name: str, place: int) -> str | None:
    """Return the name of the unknown parameter of a noise, or of an event; None if it is known."""
    if isinstance(randomness, RoundNoise):
        return randomness.keys.get(name)
    assert isinstance(randomness, EventClock)
    return randomness.keys.get(place)


def _event_names(clock: Randomness, words: Vocabulary | None) -> tuple[str, ...]:
    """Return the names of the events, which the words give."""
    assert isinstance(clock, EventClock)
    number = len(clock.rates)
    if words is None:
        return tuple(clock.keys.get(e, f"event {e + 1}") for e in range(number))
    return tuple(str(name) for name in words.outcomes[EVENT][:number])
