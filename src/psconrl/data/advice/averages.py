r"""Long-run averages of the policy that wrote a log: credible intervals from the posterior, beside batch means.

*Batch means* take the log as it is: its rounds, in order, are cut into k batches of b rounds, whose means
:math:`Y_1, \dots, Y_k` give

.. math:: \bar Y \pm t_{k-1} \frac{s}{\sqrt k}, \qquad s^2 = \frac1{k-1} \sum_j (Y_j - \bar Y)^2

(Schmeiser 1982). They need no model, and no state.

The two may differ because of where the rounds began and ended: a log that begins with an empty queue has fewer waiting
than the long run. With the long-run average J and the bias h of the estimated policy, the rounds of a Markov chain have
uncorrelated

.. math:: D_t = c_t + h(s_{t+1}) - h(s_t) - J, \qquad
          \bar Y - J = \bar D + \frac1n \sum_t \big(h(s_t) - h(s_{t+1})\big),

of which the last sum is this effect. What the model does not explain shows in :math:`\bar D`, in two ways. Both say
that something is wrong with the description of the state, or of the system:

- *in the mean*: :math:`|\bar D|` is larger than the batches of :math:`D_t` and the posterior explain. Without a system
  the frequencies of the estimated chain are those of the log, so that this hardly occurs; with one, it shows a wrong
  formula or distribution.
- *in the spread*: batches vary more than the model says that they can. If :math:`\tilde s` is the standard deviation
  of the k batch means of :math:`D_t`, and

  .. math:: v = \frac1{n^2} \sum_t (D_t - \bar D)^2,

  then :math:`(k-1) \tilde s^2 / (k v)` has nearly the chi-square distribution of :math:`k-1` degrees of freedom,
  however slowly the chain mixes. A hidden variable that changes slowly, or drift, makes it large.

A cost that was the same in all n rounds has an interval of no length, because nothing in the log says what else it may
be. What would change it happens in at most :math:`1 - (1 - \gamma)^{1/n}` of the rounds, at confidence :math:`\gamma`.
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
UNEXPLAINED_ROUNDING = 1e-10  # of what a deterministic model leaves unexplained, relative to costs and biases


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
    ends: float = 0.0  # by how much the log's mean differs because of where its runs began and ended
    never_varied: int = 0  # number of rounds, if the cost was the same in all of them and nothing else is known of it

    def __str__(self) -> str:
        line = f"{self.name}: {self.mean:.4g} ({self.level:.0%}: {self.low:.4g} to {self.high:.4g})"
        if self.batch is not None and self.batch.batches > 1:
            low, high = self.batch.interval(self.level)
            line += f"; in the log {self.batch.mean:.4g} ({low:.4g} to {high:.4g})"
            if abs(self.ends) > 0.5 * (high - low):
                line += f", of which {self.ends:+.4g} comes from where the rounds began and ended"
        if self.never_varied:
            often = 1.0 - (1.0 - self.level) ** (1.0 / self.never_varied)
            line += f"; never other, so that what would change it may happen in up to {often:.2%} of rounds"
        return f"{line}. {self.disagreement}" if self.disagreement else line


@dataclass(frozen=True)
class Unexplained:
    """What a model leaves unexplained of a cost in the rounds of a log: the batches of :math:`D_t`."""

    batch: BatchMeans
    error: float  # of their mean, if the model is right
    ends: float  # mean of h(s_t) - h(s_{t+1})

    @classmethod
    def of(cls, log: Recorded, i: int, average: float, h: Floats) -> "Unexplained":
        """Return what is unexplained, given the average of a cost in a model and the bias h (S,), as in a model."""
        assert log.costs is not None
        values = log.signs[i] * log.costs[:, i]
        known = ~np.isnan(values)
        ends = (h[log.states] - h[log.next_states])[known]
        steps = values[known] - ends - average
        steps[np.abs(steps) <= UNEXPLAINED_ROUNDING * (np.abs(values[known]).max(initial=0.0) + np.ptp(h))] = 0.0
        error = float(np.sqrt(((steps - steps.mean()) ** 2).sum()) / steps.size)
        return cls(BatchMeans.of(steps), error, float(ends.mean()) * float(log.signs[i]))


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
        odd, ends = "", 0.0
        if batch is not None and batch.batches == BATCHES and own_mean is not None:
            left = Unexplained.of(log, i, float(own_mean.costs[i]), own_mean.biases[i])
            odd, ends = _disagreement(own, batch, left, FALSE_ALARM / tests), left.ends
        rounds = 0
        if batch is not None and batch.error == 0.0 and high - low <= UNEXPLAINED_ROUNDING * abs(high):
            rounds = int((~np.isnan(log.costs[:, i])).sum()) if log.costs is not None else 0
        found.append(Average(name, float(own.mean()), float(low), float(high), level, batch, odd, ends, rounds))
    return tuple(found)


def _batches(log: Recorded, i: int) -> BatchMeans | None:
    """Return the batch means of a cost; None if it is unknown in some rounds, which may be those where it is high."""
    if log.costs is None or np.isnan(log.costs[:, i]).any():
        return None
    return BatchMeans.of(log.costs[:, i])


def _disagreement(drawn: Floats, batch: BatchMeans, left: Unexplained, level: float) -> str:
    """Say how the draws of an average contradict the rounds of the log at a level; empty if they do not."""
    if not left.error > 0.0:
        return ""
    freedom = left.batch.batches - 1
    apart = abs(left.batch.mean) / np.hypot(max(left.batch.error, left.error), float(drawn.std()))
    if 2.0 * float(t.sf(apart, freedom)) < level:
        return (
            f"The model and the log disagree: {float(drawn.mean()):.4g} and {batch.mean:.4g} are {apart:.1f} standard "
            "errors apart, so that the description of the system is wrong"
        )
    ratio = left.batch.error / left.error
    if float(chi2.sf(freedom * ratio**2, freedom)) < level:
        return (
            f"The model and the log disagree: over long times the log varies {ratio:.1f} times as much as the model "
            "explains; something that changes slowly is not in the state"
        )
    return ""
