"""The posterior of a system's noise, and bounds of it, by slow exact computations."""

from itertools import product

import numpy as np
from scipy.stats import gamma, poisson

from log_samples import shop, shop_rows
from psconrl import Log, System
from psconrl.data.advice.evidence import Margin, needed_of_noise, value_of_information
from psconrl.data.advice.robust import robust_plan, set_of_noise
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.systems import Bernoulli, Beta

MOST = 9


def test_a_censored_rate_by_quadrature() -> None:
    """Demand is not seen when the shelf is empty; a grid of rates, with the tail of what the next shelf allows.

    Draws depend on each other a little: a tenth of them count, at six standard errors (false alarm below 1e-6).
    """
    rows = shop_rows(150)
    demand = np.where(rows["demand"] >= rows["shelf"], np.nan, rows["demand"])
    log = Log({"shelf": rows["shelf"], "order": rows["order"], "demand": demand}, system=shop())
    rates = np.linspace(0.5, 4.0, 4001)
    pmf = poisson.pmf(np.arange(MOST + 1)[:, None], rates)
    pmf[MOST] = poisson.sf(MOST - 1, rates)
    weights = gamma.logpdf(rates, 2.0, scale=1.0)
    after = rows["shelf"][1:]
    for s, order, seen, following in zip(rows["shelf"][:-1], rows["order"][:-1], demand[:-1], after, strict=True):
        fits = [
            d for d in range(MOST + 1)
            if min(max(s - d, 0) + order, 5) == following and (np.isnan(seen) or d == min(seen, MOST))
        ]  # fmt: skip
        weights += np.log(pmf[fits].sum(axis=0))
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    mean = float(weights @ rates)
    deviation = float(np.sqrt(weights @ (rates - mean) ** 2))
    drawn = [float(np.ravel(one["demand"])[0]) for one in NoisePosterior(log, shop()).parameters(1500, _rng())]
    assert abs(np.mean(drawn) - mean) < 6.0 * deviation / np.sqrt(150)
    assert 0.85 < np.std(drawn) / deviation < 1.15


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def machine() -> System:
    """Two parts, of which one fails at most in a round; repairs cost, and so does a machine that is down."""
    return System(
        state={"up": range(3)},
        action={"repair": range(2)},
        noise={"fails": Bernoulli(Beta(1, 1))},
        step={"up": "max(min(up + repair, 2) - fails, 0)"},
        costs={"work": "repair", "down": "2 - up + fails"},
        minimise="work",
        limits=["down <= 1.9"],
    )


def machine_log(rounds: int = 3000) -> Log:
    """Return a log of the machine, with failures in three rounds of ten."""
    rng, up, rows = np.random.default_rng(1), 2, []
    for _ in range(rounds):
        repair, fails = int(rng.integers(2)), int(rng.random() < 0.3)
        rows.append((up, repair, fails))
        up = max(min(up + repair, 2) - fails, 0)
    return Log(dict(zip(("up", "repair", "fails"), np.array(rows).T, strict=True)), system=machine())


def test_bounds_of_noise_are_those_of_the_worst_vertices() -> None:
    """Every pair may have the lowest or the highest probability of a failure: all 64 models are tried."""
    posterior = NoisePosterior(machine_log(), machine())
    sets = set_of_noise(posterior)
    found = robust_plan(sets, np.asarray(machine().thresholds), np.full((3, 2), 0.5))
    assert found.policy is not None
    box = sets.distributions
    place = box.contexts.reshape(3, 2)
    assert (box.low[place, 1] < 0.3).all()  # of a failure; false alarm 5%
    assert (box.high[place, 1] > 0.3).all()
    worst = np.full(2, -np.inf)
    for chosen in product((0, 1), repeat=6):
        p = np.where(np.reshape(chosen, (3, 2)), box.high[place, 1], box.low[place, 1])
        P, costs = np.zeros((3, 3)), np.zeros((2, 3))
        for up, repair in product(range(3), range(2)):
            share = found.policy[up, repair]
            for fails in range(2):
                weight = share * (p[up, repair] if fails else 1.0 - p[up, repair])
                P[up, max(min(up + repair, 2) - fails, 0)] += weight
                costs[:, up] += weight * np.array([repair, 2 - up + fails])
        mu = np.linalg.lstsq(np.vstack([P.T - np.eye(3), np.ones(3)]), np.array([0.0, 0.0, 0.0, 1.0]), rcond=None)[0]
        worst = np.maximum(worst, costs @ mu)
    assert (found.bounds >= worst - 1e-9).all()
    assert (found.bounds <= worst + 5e-3).all()


def test_a_set_that_fails_more_often_is_smaller() -> None:
    """Intervals at 5% include those at 50%."""
    posterior = NoisePosterior(machine_log(), machine())
    wide, narrow = (set_of_noise(posterior, delta).distributions for delta in (0.05, 0.5))
    assert (wide.high[:, 1] > narrow.high[:, 1]).all()
    assert (wide.low[:, 1] < narrow.low[:, 1]).all()


def test_rounds_that_noise_needs() -> None:
    """Half the deviation needs three times as many rounds more; the only parameter explains nearly all."""
    log = machine_log(400)
    posterior = NoisePosterior(log, machine())
    policy = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    thresholds = np.asarray(machine().thresholds)
    wanted = 1.645
    # The deviation aimed at is half of what it is now.
    margin = Margin(1, 0.5 * wanted + 1.2815515655446004 * np.sqrt(1.25), 1.0, wanted)
    found = needed_of_noise(posterior, policy, margin, thresholds, _rng())
    np.testing.assert_allclose(found.rounds, 3.0 * log.n_rounds)
    assert found.matters == ("fails",)
    assert found.shares[0] > 0.95
    np.testing.assert_allclose(found.rows[0], posterior.gibbs.observations["fails"] * 3.0)
    # Of four parts of the information three are new.
    np.testing.assert_allclose(found.value, value_of_information(margin.mean, np.sqrt(0.75)))
