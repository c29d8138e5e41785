r"""Long-run averages of the policy that wrote a log: credible intervals from the posterior, beside batch means.

*Batch means* take the log as it is: its rounds, in order, are cut into k batches of b rounds, whose means
:math:`Y_1, \dots, Y_k` give

.. math:: \bar Y \pm t_{k-1} \frac{s}{\sqrt k}, \qquad s^2 = \frac1{k-1} \sum_j (Y_j - \bar Y)^2

(Law and Carson 1979). They need no model, and no state.

The two may disagree in two ways, and both say that something is wrong with the description of the state, or of the
system:

- *in the mean*: :math:`|\bar Y - J|` is larger than the batches explain. Without a system this shows rounds that were
  not stationary, such as a beginning from an empty queue; with one, a wrong formula or distribution.
- *in the spread*: batches vary more than the model says that they can. With the bias h of the estimated policy, the
  rounds of a Markov chain have uncorrelated

  .. math:: D_t = c_t + h(s_{t+1}) - h(s_t) - J, \qquad \mathrm{Var}(\bar Y) \approx v = \frac1{n^2} \sum_t D_t^2,

  so that :math:`(k-1) s^2 / (k v)` has nearly the chi-square distribution of :math:`k-1` degrees of freedom. A hidden
  variable that changes slowly, or drift, makes it large. (The mean may not show these: without a system, the
  frequencies of the estimated chain are those of the log.)
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, t

from psconrl.base.arrays import Floats
from psconrl.data.posterior.mean_model import mean_model
from psconrl.data.posterior.row_posterior import Posterior
from psconrl.data.rounds.recorded import Recorded

BATCHES = 20
AVERAGES_DRAWS = 2000
FALSE_ALARM = 0.01  # probability that any of the averages of a log is said to disagree, if all is well


@dataclass(frozen=True)
class BatchMeans:
    """The mean of a cost over the rounds of a log, and its standard error."""

    mean: float
    error: float
    batches: int

    @classmethod
    def of(cls, values: Floats, batches: int = BATCHES) -> "BatchMeans":
        """Return the batch means of values in order; those that fill no batch are in the mean alone.

        >>> BatchMeans.of(np.array([0.0, 2.0, 4.0, 6.0]), batches=2)
        BatchMeans(mean=3.0, error=2.0, batches=2)
        """
        k = min(batches, values.size)
        size = values.size // max(k, 1)
        if k < 2:
            return cls(float(values.mean()) if values.size else np.nan, np.nan, k)
        means = values[: k * size].reshape(k, size).mean(axis=1)
        return cls(float(values.mean()), float(means.std(ddof=1) / np.sqrt(k)), k)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval of Student's t."""
        half = float(t.ppf(0.5 + level / 2.0, self.batches - 1)) * self.error
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class Average:
    """A long-run average of the policy that wrote a log, in the units of the log."""

    name: str
    mean: float  # of the posterior
    low: float
    high: float
    level: float
    batch: BatchMeans | None  # None if the log has no such cost
    disagreement: str  # empty if the posterior and the batches agree

    def __str__(self) -> str:
        line = f"{self.name}: {self.mean:.4g} ({self.level:.0%}: {self.low:.4g} to {self.high:.4g})"
        if self.batch is not None and self.batch.batches > 1:
            low, high = self.batch.interval(self.level)
            line += f"; in the log {self.batch.mean:.4g} ({low:.4g} to {high:.4g})"
        return f"{line}. {self.disagreement}" if self.disagreement else line


def todays_averages(
    log: Recorded, posterior: Posterior, level: float = 0.95, draws: int = AVERAGES_DRAWS, seed: int = 0
) -> tuple[Average, ...]:
    """Return the long-run averages of the policy that wrote a log, each with a credible interval and batch means."""
    rng = np.random.default_rng(seed)
    blocks = posterior.blocks(draws, rng)
    first = next(blocks)
    mean = mean_model(posterior, first)
    drawn = np.concatenate([models.today() for models in (first, *blocks)])
    own_mean = mean.evaluate(mean.today)
    found = []
    tests = 2 * drawn.shape[1]
    for i, name in enumerate(log.cost_names):
        own = drawn[:, i] * log.signs[i]
        low, high = np.quantile(own, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        batch = _batches(log, i)
        odd = ""
        if batch is not None and batch.batches == BATCHES:
            spread = None if own_mean is None else _spread(log, i, own_mean.biases[i])
            odd = _disagreement(own, batch, spread, FALSE_ALARM / tests)
        found.append(Average(name, float(own.mean()), float(low), float(high), level, batch, odd))
    return tuple(found)


def _batches(log: Recorded, i: int) -> BatchMeans | None:
    """Return the batch means of a cost, without the rounds in which it is unknown."""
    if log.costs is None:
        return None
    values = log.costs[:, i]
    known = values[~np.isnan(values)]
    return BatchMeans.of(known) if known.size else None


def _spread(log: Recorded, i: int, h: Floats) -> float:
    """Return the standard deviation of the mean of a cost over the rounds of the log that the model implies."""
    assert log.costs is not None
    values = log.signs[i] * log.costs[:, i]
    steps = values + h[log.next_states] - h[log.states]
    steps = steps[~np.isnan(steps)]
    return float(np.sqrt(((steps - steps.mean()) ** 2).sum()) / steps.size)


def _disagreement(drawn: Floats, batch: BatchMeans, spread: float | None, level: float) -> str:
    """Say how the draws of an average contradict its batch means at a level; empty if they do not.

    ``spread``: the standard deviation of the mean of the log under the model; None if it is not known.
    """
    if not batch.error > 0.0:
        return ""
    freedom = batch.batches - 1
    apart = abs(batch.mean - float(drawn.mean())) / np.hypot(batch.error, float(drawn.std()))
    if 2.0 * float(t.sf(apart, freedom)) < level:
        return (
            f"The model and the log disagree: {float(drawn.mean()):.4g} and {batch.mean:.4g} are {apart:.1f} standard "
            "errors apart, so that the rounds were not stationary or the description of the system is wrong"
        )
    if spread is not None and float(chi2.sf(freedom * (batch.error / max(spread, 1e-300)) ** 2, freedom)) < level:
        return (
            f"The model and the log disagree: over long times the log varies {batch.error / max(spread, 1e-300):.1f} "
            "times as much as the model explains; something that changes slowly is not in the state"
        )
    return ""
