"""The watchdog: its rule by hand, no alarms on runs that learn, alarms on one with wrong constraints."""

import math
from dataclasses import replace

import numpy as np
import pytest

import psconrl
from psconrl import PSConRL, Watchdog, simulate
from psconrl.errors import AgentError, ConstraintWarning
from psconrl.learning.runtime.events import EpisodeEvent
from psconrl.learning.watchdog import BEYOND, ERRORS, FEWEST_EPISODES, FIRST, Alarm, ratio


def test_the_standard_error_is_that_of_a_ratio():
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=(7, 2)), rng.integers(1, 9, 7).astype(float)
    rate, error = ratio(x, n)
    for i in range(2):
        r = sum(x[:, i]) / sum(n)
        assert rate[i] == pytest.approx(r)
        variance = 7 / 6 * sum((a - r * b) ** 2 for a, b in zip(x[:, i], n, strict=True)) / sum(n) ** 2
        assert error[i] == pytest.approx(math.sqrt(variance))


def watched(costs, kind="optimal", debt=True, length=50):
    """The alarms after 1,000 rounds and as many again with these average costs, one an episode."""
    received = []
    dog = Watchdog(["delay"], received.append)
    threshold = np.array([1.0])
    event = EpisodeEvent(FIRST, 1, kind, FIRST, np.zeros(2), np.array([0.0, 1.01 if debt else 0.99]), threshold, 0.0, 0)
    dog(event)
    for k, cost in enumerate(costs):
        dog(replace(event, round=FIRST + (k + 1) * length, length=length, costs=np.array([0.0, cost])))
    assert received == dog.alarms
    return received


def test_it_barks_at_a_limit_that_plans_promise_to_keep():
    alternating = [1.4, 1.6] * 10
    assert watched(alternating) == [Alarm("delay", 1000, 2000, pytest.approx(1.5), 1.0)]
    assert "delay was 1.5 on average in rounds 1,001 to 2,000, while plans promised 1" in str(watched(alternating)[0])
    for kind in ("explore", "least excess", "unconstrained", "interim", "fixed"):
        assert not watched(alternating, kind=kind)
    assert watched(alternating, kind="balance")
    assert not watched(alternating, debt=False)
    assert not watched(alternating[:-1])  # it has not looked yet
    assert not watched([1.5] * (FEWEST_EPISODES - 1), length=112)  # nine episodes
    assert watched([1.5] * FEWEST_EPISODES, length=100)


def test_it_says_once_which_constraint_cannot_be_checked():
    """The first limit is known, the second is not."""
    received = []
    dog = Watchdog(["delay", "lost"], received.append)
    averages = np.array([0.0, 0.5, np.nan])
    event = EpisodeEvent(FIRST, 1, "optimal", FIRST, averages, averages, np.ones(2), 0.0, 0)
    for k in range(61):
        dog(replace(event, round=FIRST + 50 * k, length=50))
    assert [(alarm.name, alarm.last) for alarm in received] == [("lost", FIRST)]
    assert str(received[0]).startswith("lost cannot be checked: its costs were unknown in some of the first 1,000 rou")


def test_its_two_thresholds_by_hand():
    assert not watched([1.0 + BEYOND * 0.99] * 20)
    assert watched([1.0 + BEYOND * 1.01] * 20)
    # Costs of 1 + m ± d: the rate is m above the limit, with an error of d / sqrt(19).
    for factor, barks in ((0.99, False), (1.01, True)):
        m = 0.5
        d = m / ERRORS * math.sqrt(19) / factor
        assert bool(watched([1.0 + m - d, 1.0 + m + d] * 10)) == barks


@pytest.mark.part(2)
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["queue", "inventory", "marsrover-4x4", "garnet", "corridor"])
def test_it_is_silent_while_agents_learn(name, full):
    """A hundred runs, costs known and learned, without one alarm."""
    model = psconrl.load(name)
    for seed in range(10 if full else 1):
        for costs in (model.costs, None):
            hope = {"optimistic_cost": float(model.costs[0].min())} if model.maximise and costs is None else {}
            agent = PSConRL(model.n_states, model.n_actions, model.thresholds, costs, seed=seed, **hope)
            dog = Watchdog()
            agent.watch(dog)
            simulate(model, agent, 4100, seed=seed)
            assert not dog.alarms


def test_it_alerts_if_the_agent_was_given_wrong_costs():
    """Each of eight runs of this length raised two to four alarms."""
    model = psconrl.load("queue")
    wrong = model.costs.copy()
    wrong[1] *= 0.5
    rules = {"ledger": None, "commitment": None}  # which would pay back
    agent = PSConRL(model.n_states, model.n_actions, model.thresholds, wrong, **rules, seed=0)
    agent.watch(Watchdog(model.cost_names[1:]))
    with pytest.warns(ConstraintWarning, match="delay was .* while plans promised 2"):
        simulate(model, agent, 16_500, seed=0)


def test_names_are_those_of_the_limits():
    agent = PSConRL(2, 2, [0.5], seed=0)
    agent.watch(Watchdog(["delay", "power"]))
    with pytest.raises(AgentError, match="a watchdog for 2 limits watches an agent of 1"):
        agent.observe(agent.act(0), 0, [0.0, 0.0])
