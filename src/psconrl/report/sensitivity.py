"""Effect of an agent's hyperparameter: its mean loss over all environments at each value, in % of uniform play."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.experiment.board_protocol import REFERENCE
from psconrl.learning.registry import title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.number_format import format_number
from psconrl.report.priced_regret import final_score, need_score
from psconrl.report.statistics import INTERVAL_RUNS, MeanInterval, interval, mean_weights, without_interval


@dataclass(frozen=True, eq=False)
class Hyperparameter:
    """An option of an agent, its values, and the mean loss over environments at each value."""

    label: str
    option: str
    values: tuple[float, ...]
    losses: tuple[MeanInterval, ...]

    @property
    def best(self) -> int:
        """Index of the value with the least mean loss."""
        return int(np.argmin([loss.mean for loss in self.losses]))


def hyperparameters(experiments: Sequence[Experiment]) -> list[Hyperparameter]:
    """Return the hyperparameters of all agents with labels ``option=value``, in the order of the file."""
    found: dict[tuple[str, str], dict[float, list[Floats]]] = {}
    for experiment in experiments:
        need_score(experiment)
        unit = float(final_score(experiment.curves[REFERENCE], experiment.facts).mean()) / 100
        for label, curves in experiment.curves.items():
            if (setting := _setting(label)) is not None:
                values = found.setdefault(setting[:2], {})
                values.setdefault(setting[2], []).append(_drawn(curves, experiment.facts) / unit)
    return [
        Hyperparameter(label, option, tuple(sorted(values)), tuple(_estimate(values[x]) for x in sorted(values)))
        for (label, option), values in found.items()
    ]


def hyperparameter_table(found: Sequence[Hyperparameter]) -> dict[str, Any]:
    """Return a table with a row for every agent: the loss at each value, with a mark at the smallest."""
    most = max((len(each.values) for each in found), default=0)
    return {
        "title": "One hyperparameter each",
        "note": "Mean loss over the development environments, in % of uniform play, at each value; * the smallest.",
        "header": ["agent", "hyperparameter", *["value: loss"] * most],
        "rows": [
            [
                title_of(hyperparameter.label),
                hyperparameter.option,
                *(
                    f"{x:g}: {format_number(float(loss.mean), 2)}{'*' * (k == hyperparameter.best)}"
                    for k, (x, loss) in enumerate(zip(hyperparameter.values, hyperparameter.losses, strict=True))
                ),
                *[""] * (most - len(hyperparameter.values)),
            ]
            for hyperparameter in found
        ],
    }


def _setting(label: str) -> tuple[str, str, float] | None:
    """Return the agent, the option and its value from a label.

    >>> _setting("c-ucrl coef=0.1"), _setting("uniform")
    (('c-ucrl', 'coef', 0.1), None)
    """
    agent, _, setting = label.rpartition(" ")
    option, equals, value = setting.partition("=")
    try:
        return (agent, option, float(value)) if equals else None
    except ValueError:
        return None


def _drawn(curves: Curves, facts: Mapping[str, Any]) -> Floats:
    """Return the mean score of the runs, then its draws; the mean alone if there are too few runs."""
    scores = final_score(curves, facts)
    return np.append(scores.mean(), mean_weights(len(scores)) @ scores if len(scores) >= INTERVAL_RUNS else [])


def _estimate(of_environments: list[Floats]) -> MeanInterval:
    if min(len(drawn) for drawn in of_environments) == 1:
        return without_interval(float(np.mean([drawn[0] for drawn in of_environments])))
    means = np.mean(of_environments, axis=0)
    return MeanInterval(means[0], *interval(means[1:]))
