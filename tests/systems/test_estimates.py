"""What an agent reports of unknown parameters: exact posteriors, coverage of intervals, and where they are shown."""

import csv
import importlib.util

import numpy as np
import pytest
from scipy.stats import beta

import psconrl
from psconrl.errors import AgentError
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.estimates import PRECISION, _are_precise
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.runtime.logs import CSVLog, TensorBoardLog
from psconrl.report.monitor.log_contents import log_contents
from psconrl.report.monitor.log_file import LogFile
from psconrl.report.monitor.page import render_monitor
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Categorical, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def counted(system, moves):
    """The counts of transitions (s, a, s')."""
    structure = system.structure
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record = Record.empty(counts)
    for s, a, t in moves:
        record.step(s, a, t, np.zeros(len(structure.fixed_costs)))
    counts.add(record)
    return counts


def lamp(prior=None):
    return System(
        state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(prior or Beta(2, 3))}, step={"on": "switch"},
        costs={"heat": "on"}, minimise="heat",
    )  # fmt: skip


def test_what_is_fully_seen_has_the_exact_posterior():
    counts = counted(lamp(), [(0, 0, 1)] * 7 + [(1, 0, 0)] * 4)
    found = Structured(lamp().structure).estimates(counts)["switch"]
    exact = beta(9, 7)
    np.testing.assert_allclose(found[:3], [exact.mean(), *exact.ppf([0.05, 0.95])], rtol=1e-12)
    assert found.observations == 11


def test_every_value_of_a_categorical_noise_has_its_estimate():
    system = System(
        state={"sky": ["clear", "rain"]}, action={"wait": 1}, minimise="wet", costs={"wet": "sky == 'rain'"},
        noise={"weather": Categorical(["clear", "rain"], prior=[1.0, 2.0])}, step={"sky": "weather"},
    )  # fmt: skip
    found = Structured(system.structure).estimates(counted(system, [(0, 0, 1)] * 3 + [(1, 0, 0)]))
    assert list(found) == ["weather=clear", "weather=rain"]
    for name, exact in (("weather=clear", beta(2, 5)), ("weather=rain", beta(5, 2))):
        np.testing.assert_allclose(found[name][:3], [exact.mean(), *exact.ppf([0.05, 0.95])], rtol=1e-12)


def test_looking_changes_no_run():
    system = lamp()
    true = system.with_noise(switch=0.3)
    one, two = (psconrl.PSConRL.of(system, seed=1) for _ in range(2))
    for agent in (one, two):
        psconrl.simulate(true, agent, 100, seed=2)
        if agent is one:
            assert agent.estimates() == agent.estimates()
            repr(agent)
        psconrl.simulate(true, agent, 100, seed=3)
    np.testing.assert_array_equal(one.belief.parameters["switch"], two.belief.parameters["switch"])
    np.testing.assert_array_equal(one.counts.visits, two.counts.visits)


def shelf(most=12):
    """Demand is censored by what is on the shelf, which is filled up again."""
    return System(
        state={"shelf": 5}, action={"wait": 1}, noise={"demand": Poisson(Gamma(3, 1), most=most)},
        step={"shelf": "4 if shelf == 0 else max(shelf - demand, 0)"}, costs={"stock": "shelf"}, minimise="stock",
    )  # fmt: skip


def coverage(case, repeats, seed):
    """The share of repeats in which the interval covers; parameters are drawn from the prior."""
    rng = np.random.default_rng(seed)
    covered = 0
    for _ in range(repeats):
        theta, found = case(rng)
        covered += found.low <= theta <= found.high
    return covered / repeats


def fully_seen(rng):
    theta = rng.beta(2, 3)
    moves = rng.random(15) < theta
    counts = counted(lamp(), [(0, 0, int(x)) for x in moves])
    return theta, Structured(lamp().structure).estimates(counts)["switch"]


SHELF = shelf()


def censored(rng):
    theta = rng.gamma(3, 1)
    moves = [(4, 0, max(4 - int(d), 0)) for d in rng.poisson(theta, 8)]
    return theta, Structured(SHELF.structure).estimates(counted(SHELF, moves))["demand"]


@pytest.mark.parametrize("case", [fully_seen, censored])
def test_intervals_cover_as_often_as_they_say(case, full, monkeypatch):
    """A Bayesian interval covers with probability 0.9 if the parameter is drawn from its prior.

    Four standard deviations of the share leave a right interval out in one run of 16,000. With all 600 repeats they
    are 0.05. Fewer draws than usual, 60, hardly matter: each is a whole conditional distribution.
    """
    monkeypatch.setattr("psconrl.learning.posterior.estimates.DRAWS", 60)
    repeats = 600 if full else 60
    share = coverage(case, repeats, seed=7)
    assert share == pytest.approx(0.9, abs=4 * (0.9 * 0.1 / repeats) ** 0.5)


def test_an_interval_of_censored_observations_is_that_of_quadrature():
    moves = [(4, 0, 0)] * 6 + [(4, 0, 1)] * 2 + [(4, 0, 3)]
    rate = np.linspace(0, 20, 40_001)[1:]
    below = sum(rate**k * np.exp(-rate) / float(np.prod(np.arange(1, k + 1))) for k in range(4))
    weights = rate**2 * np.exp(-rate) * (1 - below) ** 6 * (rate**3 * np.exp(-rate)) ** 2 * rate * np.exp(-rate)
    weights /= weights.sum()
    exact = [rate @ weights, *rate[np.searchsorted(np.cumsum(weights), [0.05, 0.95])]]
    deviation = np.sqrt(rate**2 @ weights - exact[0] ** 2)
    found = Structured(SHELF.structure).estimates(counted(SHELF, moves))["demand"]
    np.testing.assert_allclose(found[:3], exact, atol=0.15 * deviation)  # of a mean of 400 conditionals
    assert found.observations == 9


def test_rates_of_events_are_summarised_by_draws():
    """Of 400 ticks of a clock of 4, 100 brought the event: about a gamma distribution with 100 events in 100."""
    system = System(
        state={"n": 2}, action={"wait": 1}, clock=4.0, minimise="n", costs={},
        events={"flip": Event(Gamma(2, 1), {"n": "1 - n"})},
    )  # fmt: skip
    counts = counted(system, [(0, 0, 1)] * 50 + [(1, 0, 0)] * 50 + [(0, 0, 0)] * 150 + [(1, 0, 1)] * 150)
    rate = np.linspace(0, 4, 40_001)[1:-1]
    logs = 101 * np.log(rate) - rate + 300 * np.log1p(-rate / 4)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    exact = [rate @ weights, *rate[np.searchsorted(np.cumsum(weights), [0.05, 0.95])]]
    found = Structured(system.structure).estimates(counts)["flip"]
    np.testing.assert_allclose(found[:3], exact, atol=0.04)  # of a deviation of 0.087, six errors of a quantile
    assert found.observations == 400


def test_the_agent_counts_the_episode_in_progress():
    agent = psconrl.PSConRL.of(lamp(), seed=1)
    for k in range(3):
        agent.act({"on": 0})
        agent.observe({"wait": 0}, {"on": int(k < 2)})
        assert agent.estimates()["switch"].observations == k + 1
    assert agent.estimates()["switch"].mean == pytest.approx(4 / 8)
    assert str(agent.estimates()) == f"switch: {agent.estimates()['switch']}"


def test_a_belief_shows_what_it_has_learned():
    agent = psconrl.PSConRL.of(lamp(), seed=1)
    assert repr(agent.belief) == "Structured(switch ~ Beta(2, 3))"
    psconrl.simulate(lamp().with_noise(switch=0.3), agent, 200, seed=2)
    agent.finish()
    agent.begin(0)
    assert repr(agent.belief) == f"Structured(switch: {agent.estimates()['switch']})"
    assert repr(Structured(lamp().with_noise(switch=0.3).structure)) == "Structured(all known)"


def test_agents_without_a_system_have_no_estimates():
    with pytest.raises(AgentError, match=r"make the agent with of\(system\)"):
        psconrl.PSConRL(2, 2, [0.5], seed=1).estimates()


def test_a_log_has_the_means_over_time(tmp_path):
    agent, means = psconrl.PSConRL.of(lamp(), seed=1), []
    agent.watch(CSVLog(tmp_path / "run.csv", ["heat"]))
    agent.watch(lambda event: means.append(event.estimates))
    psconrl.simulate(lamp().with_noise(switch=0.3), agent, 200, seed=2)
    agent.finish()
    with (tmp_path / "run.csv").open() as f:
        rows = list(csv.DictReader(f))
    assert [float(row["estimate of switch"]) for row in rows] == [float(f"{m['switch']:.6g}") for m in means]
    yes = 200 * agent.counts.averages()[0]  # rounds that began with the lamp on
    assert means[-1]["switch"] == pytest.approx((2 + yes) / 205, abs=1.1 / 205)
    log = LogFile(tmp_path / "run.csv")
    log.refresh()
    assert log.unread == 0
    assert log.cost_names == ["heat"]
    assert log.estimates["switch"].tolist() == [float(row["estimate of switch"]) for row in rows]


def test_a_log_of_a_run_that_is_repeated_is_continued(tmp_path):
    for rounds in (100, 200):
        agent = psconrl.PSConRL.of(lamp(), seed=1)
        agent.watch(CSVLog(tmp_path / "run.csv", ["heat"]))
        psconrl.simulate(lamp().with_noise(switch=0.3), agent, rounds, seed=2)
    log = LogFile(tmp_path / "run.csv")
    log.refresh()
    assert len(log.kinds) == agent.episodes - (0 if agent.between_episodes else 1)


def test_the_monitor_shows_estimates_and_what_is_unknown(tmp_path):
    system = System(
        state={"shelf": 3}, action={"wait": 1}, noise={"demand": Poisson(Gamma(3, 1), most=6)}, minimise="shelf",
        step={"shelf": "2 if shelf == 0 else max(shelf - demand, 0)"}, costs={"lost": "max(demand - shelf, 0)"},
        limits=["lost <= 9"], start={"shelf": 2},
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.watch(CSVLog(tmp_path / "run.csv", ["shelf", "lost"]))
    for before, after in ((2, 1), (1, 0)):  # from an empty shelf, some may be lost
        agent.act({"shelf": before})
        agent.observe({"wait": 0}, {"shelf": after})
        agent.finish()
    log = LogFile(tmp_path / "run.csv")
    log.refresh()
    contents = log_contents(log)
    facts = dict(contents["facts"])
    assert facts["lost"] == "unknown (limit 9)"
    panel = next(panel for panel in contents["sections"][0]["panels"] if panel["title"] == "Estimate of demand")
    assert panel["series"][0]["mean"][-1] == pytest.approx(log.estimates["demand"][-1], rel=1e-3)
    waiting = {"state": "waiting", "message": ""}
    assert render_monitor(contents, live=False).count("NaN") == render_monitor(waiting, live=False).count("NaN")


@pytest.mark.skipif(importlib.util.find_spec("tensorboardX") is None, reason="needs tensorboardX")
def test_tensorboard_has_a_curve_of_every_mean(tmp_path, monkeypatch):
    log, tags = TensorBoardLog(tmp_path), []
    monkeypatch.setattr(log._writer, "add_scalar", lambda tag, value, step: tags.append(tag))
    agent = psconrl.PSConRL.of(lamp(), seed=1)
    agent.watch(log)
    psconrl.simulate(lamp().with_noise(switch=0.3), agent, 20, seed=2)
    assert "estimate/switch" in tags


@pytest.mark.parametrize("odd", [53, 57])
def test_estimates_of_a_parameter_that_is_only_known_up_to_its_mirror_image(odd):
    """Whether two trials of probability p differ shows p and 1 - p alike: draws depend on each other for long."""
    flips = System(
        state={"side": 2},
        action={"wait": 1},
        noise={"heads": Binomial(2, Beta(1.5, 2.5))},
        step={"side": "(side + heads) % 2"},
        costs={"up": "side"},
        minimise="up",
    )
    counts = counted(flips, [(0, 0, 1)] * odd + [(0, 0, 0)] * (120 - odd))
    p = (np.arange(2000) + 0.5) / 2000
    odds = 2 * p * (1 - p)
    logs = odd * np.log(odds) + (120 - odd) * np.log(1 - odds) + 0.5 * np.log(p) + 1.5 * np.log(1 - p)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    mean = shares @ p
    spread = np.sqrt(shares @ (p - mean) ** 2)
    known = Structured(flips.structure).estimates(counts)["heads"]
    assert abs(known.mean - mean) < 4 * PRECISION * spread  # four standard errors
    assert abs(shares[p < known.low].sum() - 0.05) < 0.04
    assert abs(shares[p < known.high].sum() - 0.95) < 0.04


def test_means_of_draws_that_depend_on_each_other_are_not_precise():
    alternating = [{"p": np.array([k % 2])} for k in range(400)]
    slow = [{"p": np.array([k // 100 % 2])} for k in range(400)]
    assert _are_precise(alternating)
    assert not _are_precise(slow)
    assert not _are_precise([each | slow[k] for k, each in enumerate([{"q": np.zeros(1)}] * 400)])
