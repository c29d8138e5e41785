"""Effect of an agent's hyperparameter: its mean loss over all environments at each value, in % of uniform play."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.experiment.board_protocol import REFERENCE
from psconrl.learning.registry import title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.number_format import format_number
from psconrl.report.priced_regret import penalised_regret
from psconrl.report.statistics import MeanInterval, interval, resample_weights


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
        prices = experiment.facts["prices"]
        unit = float(penalised_regret(experiment.curves[REFERENCE], prices)[:, -1].mean()) / 100
        for label, curves in experiment.curves.items():
            if (setting := _setting(label)) is not None:
                values = found.setdefault(setting[:2], {})
                values.setdefault(setting[2], []).append(_resampled(curves, prices) / unit)
    return [
        Hyperparameter(label, option, tuple(sorted(values)), tuple(_estimate(values[x]) for x in sorted(values)))
        for (label, option), values in found.items()
    ]


def hyperparameter_table(found: Sequence[Hyperparameter]) -> dict[str, Any]:
    """Return a table with a row for every agent: the loss at each value, with a mark at the smallest."""
    return {
        "title": "One hyperparameter each",
        "note": "Mean loss over the development environments, in % of uniform play, at each value; * the smallest.",
        "header": ["agent", "hyperparameter", *["value: loss"] * max((len(each.values) for each in found), default=0)],
        "rows": [
            [
                title_of(hyperparameter.label),
                hyperparameter.option,
                *(
                    f"{x:g}: {format_number(float(loss.mean), 2)}{'*' * (k == hyperparameter.best)}"
                    for k, (x, loss) in enumerate(zip(hyperparameter.values, hyperparameter.losses, strict=True))
                ),
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


def _resampled(curves: Curves, prices: Sequence[float]) -> Floats:
    """Return the mean score of the runs, then of every resample of them."""
    scores = penalised_regret(curves, prices)[:, -1]
    return np.append(scores.mean(), resample_weights(len(scores)) @ scores)


def _estimate(of_environments: list[Floats]) -> MeanInterval:
    means = np.mean(of_environments, axis=0)
    return MeanInterval(means[0], *interval(means[1:]))
