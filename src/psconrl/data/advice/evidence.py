r"""What more data would settle: the pairs, or the noise, that matter, how many rows would do, the cheapest experiment.

A policy :math:`\pi` is recommended once the worst of its margins is large enough,

.. math:: \frac{\Delta}{\sigma} \ge z_{1-\alpha}, \qquad
          \Delta = \tau_i - \mathrm{E} J_i(\pi) \quad\text{or}\quad \mathrm{E}[J_0(\pi_b) - J_0(\pi)] .

To first order the variance of the margin is a sum over rows, which share no information without a system,

.. math:: \sigma^2 \approx \sum_{s,a} v(s,a), \qquad
          v(s,a) = \mathrm{Var}\big(p(\cdot|s,a) \cdot
          (\mu_\pi(s,a)\, h_\pi - \mu_b(s,a)\, h_b)\big) \propto \frac1{N(s,a) + M + 1},

(the second term only in the gain). The margin itself is known as :math:`N(\Delta, \sigma^2)` only. With a standard
deviation of :math:`r \sigma` it will be found large enough with probability q if

.. math:: \Delta - z_q\, \sigma \sqrt{1 + r^2} \ge z_{1-\alpha}\, r \sigma .

Where no r is small enough, since the margin may well be negative, experiments are to settle a true margin of
:math:`\sigma / 2`. After n(s,a) more rows v(s,a) falls to :math:`v (N + M + 1) / (N + n + M + 1)`. The fewest rows with
which the variance falls to :math:`r^2 \sigma^2` are those of Neyman's allocation,
:math:`N + n + M + 1 \propto \sqrt{v (N + M + 1)}` where n is positive. A round reaches a pair as often as the
experiment takes it, so that an experiment of T rounds that follows :math:`\pi_e` brings :math:`T \mu_e(s,a)` rows; it
mixes today's policy with the proposal, in which pairs that matter occur. Its rounds are not today's: see ``today`` of
``improve``.

With a system, rows are not learned by themselves. Draws of a margin are compared with those of every unknown parameter:
the share of the variance of the margin that goes with a parameter, and :math:`\sigma^2 \propto 1/n` in the rounds that
inform about it.

**Value of information.** The expected value of a perfect knowledge of the margin, and of T rounds of an experiment, are

.. math:: \mathrm{E}[\max(G, 0)] - \max(\mathrm{E} G, 0), \qquad
          \mathrm{E}[\max(\hat G, 0)] - \max(\mathrm{E} G, 0), \quad \hat G \sim N(\mathrm{E} G, \sigma^2 - \sigma_T^2),

for a gain G per round of the proposal over today (Raiffa and Schlaifer 1961).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from psconrl.base.arrays import Floats
from psconrl.data.posterior.mean_model import PRIOR_MASS, MeanModel
from psconrl.data.posterior.noise_posterior import NoisePosterior

RELIABLE = 0.9  # probability with which the advice is to change the verdict
LEAST_MARGIN = 0.5  # standard deviations: the true margin that an experiment is to settle if the estimate is small
MATTERS_FROM = 0.01  # share of the variance from which on a pair or parameter matters
EXPERIMENT_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the proposal in experiments
LONGEST_EXPERIMENT = 1e10
NOISE_DRAWS = 400


@dataclass(frozen=True, eq=False)
class Margin:
    """What keeps a policy from being recommended: a limit, or the gain over today."""

    cost: int  # 0 for the gain, i for limit i
    mean: float
    deviation: float
    wanted: float  # of the ratio of the two

    @property
    def settled(self) -> bool:
        """True if the margin is large enough."""
        return self.mean >= self.wanted * self.deviation


@dataclass(frozen=True, eq=False)
class Need:
    """What more data would settle."""

    margin: Margin
    matters: tuple[tuple[int, int] | str, ...]  # pairs (s, a), or parameters of the noise, that matter most first
    shares: Floats  # of the variance of the margin that each of them accounts for
    rows: Floats  # how many more rows of each, or rounds that inform about it, would do
    share_of_proposal: float  # in the cheapest experiment: the share of the rounds that follow the proposal
    policy: Floats  # (S, A) of that experiment
    rounds: float  # how long it takes; infinite if it does not settle the question
    value: float  # expected value of the experiment, in units of the objective per round
    perfect: float  # the same of perfect knowledge
    least: float = np.nan  # of a limit: the least average that its cost can have, as in a model
    limit: float = np.nan  # the threshold of that cost


def margin_of(
    averages: Floats, today: Floats, thresholds: Floats, confidence: float, *, limits_only: bool = False
) -> Margin:
    """Return the margin of a policy that is smallest relative to what is wanted; draws are (n, m+1).

    ``limits_only``: the gain is not a question, because today's policy breaks a limit.
    """
    wanted = float(norm.ppf(1.0 - (1.0 - confidence) / (thresholds.size + (0 if limits_only else 1))))
    gains = today[:, 0] - averages[:, 0]
    means = np.append(gains.mean(), thresholds - averages[:, 1:].mean(axis=0))
    deviations = np.append(gains.std(), averages[:, 1:].std(axis=0))
    ratio = np.divide(means, deviations, out=np.where(means >= 0.0, np.inf, -np.inf), where=deviations > 0.0)
    i = 1 + int(ratio[1:].argmin()) if limits_only else int(ratio.argmin())
    return Margin(i, float(means[i]), float(deviations[i]), wanted)


def variances(mean: MeanModel, policy: Floats, cost: int) -> Floats:
    """Return the variance (S*A,) that the row of every pair contributes to a margin of a policy (S, A)."""
    assert mean.weights is not None
    own, today = mean.evaluate(policy), mean.evaluate(mean.today)
    if own is None or today is None:
        return np.zeros(mean.weights.size)
    h = np.multiply.outer(own.occupancy.ravel(), own.biases[cost])  # (S*A, S)
    if cost == 0:
        h -= np.multiply.outer(today.occupancy.ravel(), today.biases[0])
    mass = mean.weights + PRIOR_MASS
    share = mean.weights / mass
    P = mean.transition
    first = share * np.asarray(P.multiply(h).sum(axis=1)).ravel() + (1.0 - share) * h.mean(axis=1)
    second = share * np.asarray(P.multiply(h**2).sum(axis=1)).ravel() + (1.0 - share) * (h**2).mean(axis=1)
    weight = own.occupancy.ravel() - (today.occupancy.ravel() if cost == 0 else 0.0)
    variance: Floats = np.maximum(second - first**2, 0.0) / (mass + 1.0) + (weight * mean.cost_noise[cost]) ** 2
    return variance


def fewest_rows(variance: Floats, weights: Floats, goal: float) -> Floats:
    """Return the fewest more rows (n,) of all pairs with which the sum of their variances falls to a goal.

    ``variance``: of each now, in inverse proportion to its ``weights``.

    >>> fewest_rows(np.array([4.0, 1.0]), np.array([1.0, 1.0]), goal=2.5).round(3).tolist()
    [1.4, 0.2]
    """
    scale = np.sqrt(variance * weights)

    def rows(level: float) -> Floats:
        return np.maximum(level * scale - weights, 0.0)

    def left(level: float) -> float:
        return float((variance * weights / (weights + rows(level))).sum())

    if goal <= 0.0:
        return np.full(variance.size, np.inf)
    if left(0.0) <= goal:
        return np.zeros(variance.size)
    high = 1.0
    while left(high) > goal:
        high *= 2.0
    return rows(float(brentq(lambda level: left(level) - goal, 0.0, high, xtol=1e-12 * high)))


def value_of_information(mean: float, deviation: float) -> float:
    """Return the expected gain of knowing a normal quantity before choosing between it and zero.

    >>> round(value_of_information(0.0, 1.0), 6)
    0.398942
    """
    if deviation <= 0.0:
        return 0.0
    z = mean / deviation
    return float(deviation * norm.pdf(z) + mean * ndtr(z) - max(mean, 0.0))


def needed(mean: MeanModel, policy: Floats, margin: Margin, parts: int, most_pairs: int = 10) -> Need:
    """Return what would settle whether to recommend a policy (S, A), without a system.

    ``parts``: in how many parts the log is divided, of which the model is the mean of one; so are further rounds.
    """
    assert mean.weights is not None
    variance = variances(mean, policy, margin.cost)
    total = max(float(variance.sum()), 1e-300)
    weights = mean.weights + PRIOR_MASS + 1.0
    goal = total * (_aimed_at(margin) / margin.deviation) ** 2 if margin.deviation > 0.0 else total
    rows = parts * fewest_rows(variance, weights, goal)
    order = np.argsort(-variance, kind="stable")[:most_pairs]
    order = order[variance[order] > MATTERS_FROM * total]
    best = None
    for share in EXPERIMENT_SHARES:
        mixed = (1.0 - share) * mean.today + share * policy
        played = mean.evaluate(mixed)
        if played is not None:
            rounds = _rounds(variance, weights, played.occupancy.ravel(), goal)
            if best is None or rounds < best[0]:
                best = rounds, share, mixed, played.occupancy.ravel()
    if best is None:
        best = np.inf, 0.0, mean.today, np.zeros(variance.size)
    rounds, share, mixed, occupancy = best
    after = float((variance * weights / (weights + min(rounds, LONGEST_EXPERIMENT) * occupancy)).sum())
    learned = np.sqrt(max(1.0 - after / total, 0.0)) * margin.deviation
    return Need(
        margin,
        tuple((int(pair) // policy.shape[1], int(pair) % policy.shape[1]) for pair in order),
        variance[order] / total,
        rows[order],
        share,
        mixed,
        parts * rounds,
        value_of_information(margin.mean, float(learned)),
        value_of_information(margin.mean, margin.deviation),
    )


def needed_of_noise(
    posterior: NoisePosterior, policy: Floats, margin: Margin, thresholds: Floats, rng: np.random.Generator
) -> Need:
    """Return what would settle whether to recommend a policy (S, A) for a system."""
    parameters = posterior.parameters(NOISE_DRAWS, rng)
    models = posterior.models(parameters, rng)
    averages = models.averages(policy)
    i = margin.cost
    drawn = models.today()[:, 0] - averages[:, 0] if i == 0 else thresholds[i - 1] - averages[:, i]
    names = list(posterior.structure.randomness.priors)
    shares = np.array([_explained(np.array([np.ravel(one[name]) for one in parameters]), drawn) for name in names])
    deviation = max(margin.deviation, 1e-300)
    rounds = posterior.log.n_rounds * max((deviation / _aimed_at(margin)) ** 2 - 1.0, 0.0)
    order = [int(k) for k in np.argsort(-shares, kind="stable") if shares[k] > MATTERS_FROM]
    seen = posterior.gibbs.observations
    rows = np.array([seen[names[k]] for k in order]) * rounds / max(posterior.log.n_rounds, 1)
    today = posterior.behaviour.mean()
    learned = deviation * np.sqrt(rounds / (rounds + posterior.log.n_rounds))
    return Need(
        margin, tuple(names[k] for k in order), shares[order], rows, 0.0, today, rounds,
        value_of_information(margin.mean, float(learned)), value_of_information(margin.mean, margin.deviation),
    )  # fmt: skip


def _explained(values: Floats, drawn: Floats) -> float:
    """Return the share of the variance of draws (n,) that a parameter (n, k) explains linearly."""
    centred = values - values.mean(axis=0)
    target = drawn - drawn.mean()
    if not target.any():
        return 0.0
    fitted = centred @ np.linalg.lstsq(centred, target, rcond=1e-10)[0]
    return float((fitted**2).sum() / (target**2).sum())


def _aimed_at(margin: Margin) -> float:
    """Return the standard deviation at which a margin is large enough with probability ``RELIABLE``."""
    z = float(norm.ppf(RELIABLE))
    x = margin.mean / max(margin.deviation, 1e-300)
    least = LEAST_MARGIN / (margin.wanted + z)
    if x <= z:
        return max(least * margin.deviation, 1e-300)
    r = float(brentq(lambda r: x - z * np.hypot(1.0, r) - margin.wanted * r, 0.0, x / margin.wanted))
    return max(max(r, least) * margin.deviation, 1e-300)


def _rounds(variance: Floats, weights: Floats, occupancy: Floats, goal: float) -> float:
    """Return how many rounds with these frequencies of pairs make the sum of variances fall to a goal."""

    def left(rounds: float) -> float:
        return float((variance * weights / (weights + rounds * occupancy)).sum())

    if left(LONGEST_EXPERIMENT) > goal:
        return float("inf")
    return 0.0 if left(0.0) <= goal else float(brentq(lambda rounds: left(rounds) - goal, 0.0, LONGEST_EXPERIMENT))
