r"""Losses of an agent over several environments in one number, as in rliable (Agarwal et al. 2021).

The loss of a run is its score in percent of the mean score of uniform play, which makes environments comparable. Less
is better. If some environment has no runs of uniform play, it is the score itself, or else the regret.

- The interquartile mean is the mean of the middle half of all losses, over runs and environments: the n/4 smallest and
  the n/4 largest, rounded down, are left out.
- The probability of improvement of X over Y is the mean over environments of
  :math:`P(x < y) + P(x = y) / 2` for a run of X and a run of Y, which is 1 - U / (n m) with the statistic U of Mann and
  Whitney.
- The performance profile of an agent is the share of runs that lose more than :math:`\tau`, averaged over
  environments, as a function of :math:`\tau`.

Intervals come from the stratified bootstrap, which resamples the runs within each environment; the runs of two agents
independently. One thing differs from rliable: of n runs a resample draws n - 1, so that means over resamples have the
variance of means over runs (Rao and Wu 1988), where n draws have (n - 1) / n of it. Fewer than five runs in an
environment have no interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import REFERENCE
from psconrl.report.curves import Experiment
from psconrl.report.page_tables import criterion
from psconrl.report.priced_regret import has_score
from psconrl.report.statistics import MeanInterval, interval, without_interval

BOOTSTRAP_RUNS = 5  # in every environment; fewer have no interval
BOOTSTRAP_DRAWS = 2000
RELATIVE_LOSS = "loss in % of uniform play"

LossesOfRuns = Sequence[Floats]  # of an agent: those of its runs, for every environment


@dataclass(frozen=True, eq=False)
class LossTable:
    """Losses of the agents that play all environments."""

    what: str  # what a loss is
    environments: tuple[str, ...]
    losses: Mapping[str, LossesOfRuns]  # by the agent's label
    titles: Mapping[str, str]  # by the agent's label
    left_out: tuple[str, ...]  # titles of the agents that do not play all environments
    experiments: Sequence[Experiment] = ()  # that are shown


def loss_table(experiments: Sequence[Experiment], shown: Sequence[Experiment]) -> LossTable:
    """Return the losses of the agents of ``shown``; ``experiments`` has those of uniform play, shown or not."""
    known = {e.name: e for e in experiments}
    if not shown:
        raise ConfigError("there is nothing to aggregate: no finished runs")
    criteria = {criterion(e)[0] for e in shown}
    if len(criteria) > 1:
        unscored = next(e for e in shown if not has_score(e.facts))
        raise ConfigError(
            f"experiment {quoted(unscored.name)} has no score as the others have; leave it out with --experiments"
        )
    units = [_unit(known[e.name]) for e in shown]
    relative = all(unit > 0 for unit in units)
    labels = list(dict.fromkeys(label for e in shown for label in e.curves))
    complete = [label for label in labels if all(label in e.curves for e in shown)]
    if not complete:
        raise ConfigError("no agent has runs in every experiment; choose experiments with --experiments")
    losses = {
        label: [
            criterion(e)[1](e.curves[label]) / (unit / 100 if relative else 1.0)
            for e, unit in zip(shown, units, strict=True)
        ]
        for label in complete
    }
    titles = {label: c.title for e in shown for label, c in e.curves.items()}
    return LossTable(
        RELATIVE_LOSS if relative else criteria.pop(),
        tuple(e.title for e in shown),
        losses,
        titles,
        tuple(titles[label] for label in labels if label not in complete),
        shown,
    )


def _unit(experiment: Experiment) -> float:
    """Return the mean score of uniform play; 0 if there is none."""
    if REFERENCE not in experiment.curves:
        return 0.0
    return float(criterion(experiment)[1](experiment.curves[REFERENCE]).mean())


def middle_mean(values: Floats) -> Floats:
    """Return the interquartile mean over the last axis.

    >>> float(middle_mean(np.array([9.0, 1.0, 2.0, 3.0, -70.0])))  # without the least and the largest
    2.0
    """
    cut = values.shape[-1] // 4
    kept = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(kept.mean(axis=-1))


def interquartile_mean(losses: LossesOfRuns) -> MeanInterval:
    """Return the interquartile mean over all runs in all environments, with its interval."""
    mean = float(middle_mean(np.concatenate(losses)))
    if not _enough(losses):
        return without_interval(mean)
    rng = np.random.default_rng(0)
    drawn = [of_runs[_picked(rng, of_runs.size)] for of_runs in losses]
    return MeanInterval(np.asarray(mean), *interval(middle_mean(np.concatenate(drawn, axis=1))))


def probability_of_improvement(first: LossesOfRuns, second: LossesOfRuns) -> MeanInterval:
    """Return the probability that the first agent loses less than the second, with its interval."""
    wins = [(x[:, None] < y[None, :]) + 0.5 * (x[:, None] == y[None, :]) for x, y in zip(first, second, strict=True)]
    mean = float(np.mean([each.mean() for each in wins]))
    if not _enough([*first, *second]):
        return without_interval(mean)
    rng = np.random.default_rng(0)
    drawn = np.zeros(BOOTSTRAP_DRAWS)
    for each in wins:
        rows, columns = (_shares(_picked(rng, n), n) for n in each.shape)
        drawn += np.einsum("dn,nm,dm->d", rows, each, columns, optimize=True) / len(wins)
    return MeanInterval(np.asarray(mean), *interval(drawn))


def performance_profile(losses: LossesOfRuns, taus: Floats) -> MeanInterval:
    """Return the share of runs that lose more than each tau, averaged over environments, with intervals.

    >>> performance_profile([np.array([1.0, 3.0]), np.array([5.0])], np.array([0.0, 1.0, 4.0, 5.0])).mean.tolist()
    [1.0, 0.75, 0.5, 0.0]
    """
    more = [(each[:, None] > taus).astype(np.float64) for each in losses]
    mean = np.mean([each.mean(axis=0) for each in more], axis=0)
    if not _enough(losses):
        return MeanInterval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    rng = np.random.default_rng(0)
    drawn = np.zeros((BOOTSTRAP_DRAWS, taus.size))
    for each in more:
        drawn += _shares(_picked(rng, len(each)), len(each)) @ each / len(more)
    return MeanInterval(mean, *interval(drawn))


def _enough(losses: LossesOfRuns) -> bool:
    return min(each.size for each in losses) >= BOOTSTRAP_RUNS


def _picked(rng: np.random.Generator, runs: int) -> Ints:
    """Return the numbers of the runs in every resample, (draws, runs - 1)."""
    return rng.integers(runs, size=(BOOTSTRAP_DRAWS, runs - 1))


def _shares(picked: Ints, runs: int) -> Floats:
    """Return the share of every run in each resample, (draws, runs)."""
    counts = np.zeros((len(picked), runs))
    np.add.at(counts, (np.arange(len(picked))[:, None], picked), 1.0)
    return counts / picked.shape[1]
