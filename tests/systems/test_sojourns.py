"""Sojourn times that were measured, against gamma posteriors with exposure, a grid, and the time that went by."""

import numpy as np
import pytest

import psconrl
from psconrl.errors import AgentError
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

CLOCK = 8.0


def queue(**changes):
    """At most two customers; those who come then are lost, which costs 3."""
    given = {
        "state": {"n": 3}, "action": {"wait": 1}, "clock": CLOCK, "minimise": "waiting",
        "costs": {"waiting": "n", "lost": 0}, "limits": ["lost <= 1"],
        "events": {
            "comes": Event(Gamma(2, 1), {"n": "min(n + 1, 2)"}),
            "goes": Event(Gamma(3, 2), {"n": "n - 1"}, times="n", when="n > 0"),
            "rings": Event(0.5, {}, costs={"lost": 3}),
        },
    }  # fmt: skip
    return System(**given | changes)


def watched(rounds):
    agent = psconrl.PSConRL.of(queue(), seed=1)
    for n, following, noise, after in rounds:
        agent.act({"n": n})
        agent.observe({"wait": 0}, {"n": following}, noise=noise, after=after)
    return agent


def test_rates_have_the_gamma_posterior_with_their_exposure():
    """In a full queue arrivals do not show, unless all events were seen; two customers go at twice the rate."""
    rng = np.random.default_rng(1)
    times = rng.exponential(0.7, 60)
    rounds = [(0, 1, None, t) for t in times[:20]] + [(1, 2, None, t) for t in times[20:30]]
    rounds += [(1, 0, None, t) for t in times[30:40]] + [(2, 1, None, t) for t in times[40:50]]
    rounds += [(2, 2, {"event": "comes"}, t) for t in times[50:55]] + [(0, 0, None, t) for t in times[55:]]
    agent = watched(rounds)
    comes = 20 + 10 + 5, times[:40].sum() + times[50:].sum()  # number, and exposure
    goes = 10 + 10, times[20:40].sum() + 2 * times[40:55].sum()
    shapes, rates = np.array([2 + comes[0], 3 + goes[0]]), np.array([1 + comes[1], 2 + goes[1]])
    found = [agent.estimates()[name] for name in ("comes", "goes")]
    deviation = np.sqrt(shapes) / rates
    # Means of 400 draws by slice sampling, which are hardly correlated: six standard errors, of twice the variance.
    np.testing.assert_array_less(np.abs([f.mean for f in found] - shapes / rates), 6 * deviation * (2 / 400) ** 0.5)
    assert [f.observations for f in found] == [50, 35]
    width = [f.high - f.low for f in found]
    np.testing.assert_allclose(width, 2 * 1.645 * deviation, rtol=0.25)


def test_measured_times_and_rounds_inform_together():
    """A tick of the clock without an arrival has probability 1 - rate / 8."""
    agent = watched([(0, 1, None, 0.5)] * 30)
    for _ in range(80):
        agent.act({"n": 0})
        agent.observe({"wait": 0}, {"n": 0})
    rate = np.linspace(0, 7.5, 30_001)[1:]
    logs = 31 * np.log(rate) - 16 * rate + 80 * np.log(1 - rate / CLOCK)
    weights = np.exp(logs - logs.max())
    exact = rate @ weights / weights.sum()
    found = agent.estimates()["comes"]
    assert found.mean == pytest.approx(exact, abs=6 * exact / 32**0.5 * (2 / 400) ** 0.5)
    assert found.observations == 110


def test_of_two_events_with_the_same_effect_it_is_open_which_happened():
    system = System(
        state={"n": 2}, action={"wait": 1}, clock=CLOCK, minimise="n", costs={},
        events={"a": Event(Gamma(4, 2), {"n": "1 - n"}), "b": Event(1.0, {"n": "1 - n"})},
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=1)
    for k in range(12):
        agent.act({"n": k % 2})
        agent.observe({"wait": 0}, {"n": 1 - k % 2}, after=0.25)
    rate = np.linspace(0, 7, 30_001)[1:]
    weights = rate**3 * np.exp(-2 * rate - 3 * rate) * (rate + 1) ** 12
    weights /= weights.sum()
    exact = rate @ weights
    deviation = np.sqrt(rate**2 @ weights - exact**2)
    assert agent.estimates()["a"].mean == pytest.approx(exact, abs=6 * deviation * (3 / 400) ** 0.5)


def test_a_sojourn_counts_as_the_time_that_went_by():
    """Averages are per unit of time: of 2 customers for 3 units and 1 for 1; one of them rang, and this costs 3."""
    agent = watched([(2, 1, {"event": "goes"}, 3.0), (1, 1, {"event": "rings"}, 1.0)])
    agent.finish()
    assert agent.rounds == 4 * CLOCK
    np.testing.assert_allclose(agent.counts.averages(), [7 / 4, 3 / 4])
    assert agent.counts.visits.tolist() == [0, 8, 24]


def test_short_sojourns_take_a_round_each_and_are_made_up_for():
    agent = watched([(0, 0, None, 0.05)] * 10 + [(0, 0, None, 2.0)])
    agent.finish()
    assert agent.rounds == round(2.5 * CLOCK)


def test_the_ratio_of_sojourns_by_hand():
    """Of 4 who came in 4 units of time 1 was lost; what a full queue does is known only if it is reported."""
    system = queue(
        costs={"waiting": "n", "came": "0.5 * n", "lost": 0}, limits=["lost / came <= 25%"],
        events={
            "comes": Event(Gamma(2, 1), {"n": "min(n + 1, 2)"}, costs={"came": 1, "lost": "n == 2"}),
            "goes": Event(Gamma(3, 2), {"n": "n - 1"}, times="n", when="n > 0"),
        },
    )  # fmt: skip
    events = []
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.watch(events.append)
    rounds = [
        (0, 1, "comes", 0.5),
        (1, 2, "comes", 1.0),
        (2, 2, "comes", 1.5),
        (2, 1, "goes", 0.5),
        (1, 2, "comes", 0.5),
    ]
    for n, following, event, after in rounds:
        agent.act({"n": n})
        noise = {"event": event} if n == 2 else None
        agent.observe({"wait": 0}, {"n": following}, noise=noise, after=after)
    agent.finish()
    came = 4 + 0.5 * (1.0 + 2 * 1.5 + 2 * 0.5 + 0.5)
    (ratio,) = events[-1].ratios
    assert ratio.so_far == pytest.approx(1 / came)
    assert sum(e.length * e.ratios[0].per_round for e in events) == pytest.approx(CLOCK * came)
    agent.act({"n": 2})
    agent.observe({"wait": 0}, {"n": 1}, after=0.5)  # who came meanwhile?
    agent.finish()
    assert np.isnan(events[-1].ratios[0].so_far)


def test_costs_that_events_may_have_caused_meanwhile_are_unknown():
    agent = watched([(0, 1, None, 1.0)])  # did it ring?
    agent.finish()
    np.testing.assert_array_equal(agent.counts.averages(), [0.0, np.nan])
    other = psconrl.PSConRL.of(queue(), seed=1)
    other.act({"n": 1})
    other.observe({"wait": 0}, {"n": 2}, costs={"lost": 6}, after=2.0)
    other.finish()
    np.testing.assert_allclose(other.counts.averages(), [1.0, 3.0])


def test_sojourns_are_saved(tmp_path):
    agent = watched([(0, 1, None, 0.4), (1, 2, {"event": "comes"}, 0.33)])
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    assert again.estimates() == agent.estimates()
    for each in (agent, again):
        each.act({"n": 2})
        each.observe({"wait": 0}, {"n": 1}, after=0.21)
        each.finish()
    assert agent.rounds == again.rounds
    assert agent.counts.noise.state() == again.counts.noise.state()


def test_sojourns_of_equal_rates_are_no_evidence():
    """Arrivals and departures have rate 1; that no sojourn has another length is not tested."""
    agent = watched([(0, 1, None, 1.0), (1, 2, None, 0.5), (2, 1, None, 0.5), (1, 0, None, 0.5)] * 100)
    agent.finish()
    agent.belief.check(agent.counts)
    assert agent.doubts() == ()


def test_the_largest_rate_that_the_clock_allows_by_hand():
    """With two customers the rates are comes + 2 goes + 0.5, and the clock has 8; with fewer they are less."""
    clock = queue().structure.randomness
    near = {"comes": np.array([2.0]), "goes": np.array([1.5])}
    assert clock.largest("comes", near) == pytest.approx(8.0 - 3.0 - 0.5)
    assert clock.largest("goes", near) == pytest.approx((8.0 - 2.0 - 0.5) / 2.0)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (0.0, "after must be a time above 0; got 0.0"),
        ("x", "after must be a time above 0; got 'x'"),
        (float("inf"), "after must be a time above 0; got inf"),
        (1e300, "after: 1e+300 is too long; the clock has 8 ticks in a unit of time"),
    ],
)
def test_wrong_times(after, said):
    agent = psconrl.PSConRL.of(queue(), seed=1)
    agent.act({"n": 0})
    with pytest.raises(AgentError) as caught:
        agent.observe({"wait": 0}, {"n": 0}, after=after)
    assert str(caught.value) == said
    agent.observe({"wait": 0}, {"n": 0}, after=1.0)


def test_only_events_take_time():
    system = System(
        state={"n": 2}, action={"wait": 1}, noise={"x": Bernoulli(Beta(1, 1))}, step={"n": "x"}, costs={}, minimise="n"
    )
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.act({"n": 0})
    with pytest.raises(AgentError, match=r"after: only PSConRL\.of a system with events takes the time"):
        agent.observe({"wait": 0}, {"n": 0}, after=1.0)
