"""Differences of all agents of a table from one of them, over runs with the same environment seed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.errors import ConfigError, unknown_name
from psconrl.report.curves import Curves, Experiment
from psconrl.report.metrics import Measure
from psconrl.report.page_tables import adjusted_p, p_text
from psconrl.report.statistics import FEW_RUNS, Comparison, compare

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class BaseDifference:
    """An agent's measure minus that of the base, with the p-value of a paired t-test."""

    found: Comparison
    corrected_p: float  # for all differences of the table; nan if there are too few runs

    def __str__(self) -> str:
        """Format the difference as in a table; a star marks a significant one."""
        if np.isnan(self.corrected_p):
            return str(self.found.difference)
        shown = p_text(self.corrected_p)
        sign = "" if shown.startswith("<") else "= "
        return f"{self.found.difference}, p {sign}{shown}{' *' if self.corrected_p <= SIGNIFICANT else ''}"


@dataclass(frozen=True)
class BaseDifferences:
    """All differences of a table, by experiment, label and the number of the measure."""

    label: str
    title: str
    found: dict[tuple[str, str, int], BaseDifference]

    @property
    def note(self) -> str:
        """What the differences and p-values of the table are."""
        return (
            f"Differences are means over runs with the same environment seed, with their 95% intervals (Student's t). "
            f"p: paired t-tests, corrected for the {len(self.found)} differences of the table (Bonferroni), none below "
            f"{FEW_RUNS} runs. A star marks those of at most {SIGNIFICANT}."
        )


def differences_from(base: str, experiments: Sequence[Experiment], measured: Sequence[Measure]) -> BaseDifferences:
    """Return the differences of all other agents from the one with this label, in every experiment that it plays."""
    titles = {label: c.title for e in experiments for label, c in e.curves.items()}
    if base not in titles:
        raise ConfigError("--compare: " + unknown_name("agent in this table", base, titles))
    compared = {
        (e.name, label, k): compare(c, e.curves[base], lambda x, e=e, m=m: m.values(e, x)[:, -1])  # type: ignore[misc]
        for e in experiments
        if base in e.curves
        for k, m in enumerate(measured)
        for label, c in e.curves.items()
        if label != base and _is_common(m, e, c, e.curves[base])
    }
    return BaseDifferences(
        base,
        titles[base],
        {key: BaseDifference(each, adjusted_p(each, len(compared))) for key, each in compared.items()},
    )


def _is_common(measure: Measure, experiment: Experiment, one: Curves, two: Curves) -> bool:
    """Whether two agents have a measure, and runs with the same seed."""
    known = measure.known_of(experiment, one) and measure.known_of(experiment, two)
    return known and np.intersect1d(one.replicates, two.replicates).size > 0
