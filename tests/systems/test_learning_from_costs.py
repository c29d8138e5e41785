"""What realised costs reveal of the noise, against closed forms, a grid, and a simulator that is not the System."""

import warnings

import numpy as np
import pytest
from scipy.stats import gamma, poisson

import psconrl
from psconrl.errors import AdviceWarning, AgentError, StructureWarning
from psconrl.learning.posterior.noise_sightings import NoiseSightings
from psconrl.learning.safe.baseline import known_baseline
from psconrl.model.simulation_tables import Tables
from psconrl.simulation.realised_costs import realised
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

MORNING = {"day": 0}


def newsvendor(**changes):
    """Papers are ordered every morning; the next state reveals nothing of the demand."""
    given = {
        "state": {"day": 1},
        "action": {"order": range(13)},
        "noise": {"demand": Poisson(Gamma(2, 1), most=14)},
        "step": {"day": "day"},
        "costs": {"paid": "order", "lost": "max(demand - order, 0)"},
        "minimise": "paid",
        "limits": ["lost / demand <= 5%"],
    }
    return System(**given | changes)


def agent_of(system, seed=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        return psconrl.PSConRL.of(system, seed=seed)


def sell(agent, demands, costs):
    """A plain loop that is not the system: ``costs`` of an order and a demand, the objective first."""
    orders = []
    for demand in demands:
        action = agent.act(MORNING)
        agent.observe(action, MORNING, costs(action["order"], demand))
        orders.append(action["order"])
    return np.array(orders)


def test_costs_that_reveal_the_demand_give_the_gamma_posterior():
    agent = agent_of(newsvendor())
    demands = np.random.default_rng(3).poisson(3.0, 100)
    assert demands.max() < 14
    sell(agent, demands, lambda order, demand: [order, max(demand - order, 0) - 0.05 * demand])
    exact = gamma(2 + demands.sum(), scale=1 / 101)
    found = agent.estimates()["demand"]
    assert found.observations == 100
    np.testing.assert_allclose(found[:3], [exact.mean(), *exact.ppf([0.05, 0.95])], rtol=1e-9)


def test_censored_costs_have_the_posterior_of_a_grid():
    """Lost sales say the demand if there are any, and otherwise that it was at most the order."""
    system = newsvendor(limits=["lost <= 0.4"])
    agent = agent_of(system)
    demands = np.random.default_rng(4).poisson(4.0, 60)
    orders = sell(agent, demands, lambda order, demand: [order, max(demand - order, 0)])
    rate = np.linspace(0, 12, 24_001)[1:]
    logs = gamma.logpdf(rate, 2)
    for order, demand in zip(orders, demands, strict=True):
        logs += poisson.logpmf(demand, rate) if demand > order else poisson.logcdf(order, rate)
    assert (demands <= orders).sum() > 10
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    exact = [rate @ shares, *rate[np.searchsorted(np.cumsum(shares), [0.05, 0.95])]]
    deviation = np.sqrt(rate**2 @ shares - exact[0] ** 2)
    # A mean of 400 conditionals, a fraction of the posterior's spread apart, and correlated: its error is far less.
    np.testing.assert_allclose(agent.estimates()["demand"][:3], exact, atol=0.15 * deviation)


def test_a_newsvendor_loses_what_is_allowed():
    """In 1,000 days the standard error of the lost share is 0.3%."""
    agent = agent_of(newsvendor())
    demands = np.random.default_rng(5).poisson(5.0, 1000)
    orders = sell(agent, demands, lambda order, demand: [order, max(demand - order, 0) - 0.05 * demand])
    share = np.maximum(demands - orders, 0).sum() / demands.sum()
    assert share == pytest.approx(0.05, abs=0.015)  # five standard errors
    agent.finish()
    mean = (np.maximum(demands - orders, 0) - 0.05 * demands).mean()
    assert agent.counts.averages()[1] == pytest.approx(mean, abs=1e-12)  # of what happened


def test_a_simulation_of_the_system_gives_the_costs():
    system = newsvendor()
    agent = agent_of(system)
    psconrl.simulate(system.with_noise(demand=5.0), agent, 400, seed=2)
    found = agent.estimates()["demand"]
    assert found.observations == 400
    assert found.mean == pytest.approx(5.0, abs=6 * (5 / 400) ** 0.5)


def test_realised_costs_are_those_of_the_loop():
    """Their sums by pair are what the compiled loop added up."""
    system = newsvendor(noise={"demand": Poisson(5.0, most=14)})
    agent = agent_of(system)
    seen = []
    agent.saw_costs = lambda record, numbers, costs, times: seen.append((numbers, costs, times))
    psconrl.simulate(system, agent, 300, seed=2)
    agent.finish()
    sums = np.zeros((2, 13))
    for numbers, costs, times in seen:
        for number, cost, n in zip(numbers, costs.T, times, strict=True):
            sums[:, number] += n * cost
    np.testing.assert_allclose(sums, agent.counts.cost_sums, atol=1e-9)


def test_realised_costs_by_a_slow_loop():
    system = System(
        state={"n": 3}, action={"go": 2}, noise={"x": Bernoulli(0.3), "y": Poisson(1.0, most=3)},
        step={"n": "min(n + x, 2) if go else 0"}, costs={"c": "n + 10 * x + y"}, minimise="c",
    )  # fmt: skip
    tables = system.tables()
    assert isinstance(tables, Tables)
    rng = np.random.default_rng(6)
    pairs, uniforms = rng.integers(0, 6, 200), rng.random(200)
    expected, numbers = {}, []
    for pair, u in zip(pairs.tolist(), uniforms.tolist(), strict=True):
        entries = range(tables.indptr[pair], tables.indptr[pair + 1])
        entry = next((e for e in entries if u < tables.cdf[e]), entries[-1])
        numbers.append(pair * 3 + int(tables.successors[entry]))
        key = numbers[-1], float(tables.outcomes[0, entry])
        expected[key] = expected.get(key, 0) + 1
    found = {}
    for number, cost, n in zip(*(x.T for x in realised(tables, np.array(numbers), uniforms, 3)), strict=True):
        found[int(number), float(cost[0])] = found.get((int(number), float(cost[0])), 0) + int(n)
    assert found == expected


def test_hidden_noise_is_named_before_the_first_round():
    with pytest.warns(AdviceWarning, match=r"no next state depends on 'demand', whose parameter is unknown: it is lea"):
        agent = psconrl.PSConRL.of(newsvendor(), seed=1)
    agent.act(MORNING)
    for noise in (None, {}):
        with pytest.raises(AgentError) as caught:
            agent.observe({"order": 0}, MORNING, noise=noise)
        assert str(caught.value) == (
            "observe needs costs=... or noise={'demand': ...}: no next state depends on 'demand', whose parameter is "
            "unknown; noise={'demand': None} says that it was not seen"
        )
    agent.observe({"order": 0}, MORNING, noise={"demand": None})
    assert agent.estimates()["demand"].observations == 0


def test_noise_that_the_next_state_or_nothing_depends_on_is_not_hidden():
    visible = newsvendor(state={"day": 2}, step={"day": "1 if demand > 3 else 0"})
    known = newsvendor(noise={"demand": Poisson(5.0, most=14)})
    useless = newsvendor(limits=[], noise={"demand": Poisson(Gamma(2, 1), most=14)})  # nothing that matters depends
    for system in (visible, known, useless):
        agent = psconrl.PSConRL.of(system, seed=1)
        assert agent.belief.hidden == {}
        agent.observe(agent.act(MORNING), MORNING)


def test_an_event_that_only_costs_is_hidden():
    system = System(
        state={"n": 2}, action={"wait": 1}, clock=4.0, minimise="fees", costs={"fees": 0},
        events={"up": Event(Gamma(2, 1), {"n": "1 - n"}), "fault": Event(Gamma(1, 1), {}, costs={"fees": 3})},
    )  # fmt: skip
    with pytest.warns(AdviceWarning, match=r"no next state depends on 'fault'.*noise=\{'event': ...\}"):
        agent = psconrl.PSConRL.of(system, seed=1)
    assert agent.belief.hidden == {"fault": "event"}
    for paid in (12.0, 0.0, 12.0):
        agent.act({"n": 0})
        agent.observe({"wait": 0}, {"n": 0}, [paid])
    found = agent.estimates()
    assert (found["fault"].observations, found["up"].observations) == (3, 3)


def test_an_agent_that_learns_from_transitions_only_says_so():
    system = newsvendor()
    safest = known_baseline(system.with_noise(demand=2.0).model_for_learning(), by_state=True)
    given = {key: safest[key] for key in ("baseline", "slack", "span")}
    with pytest.warns(AdviceWarning, match="'safe' learns from transitions only and never learns it; give its value"):
        psconrl.agents.SafeStart.of(system, **given, seed=1)


def shop():
    return newsvendor(
        state={"shelf": 4}, action={"order": range(4)}, available="shelf + order <= 3",
        step={"shelf": "max(shelf - demand, 0) + order"}, costs={"lost": "max(demand - shelf, 0)", "stock": "shelf"},
        minimise="lost", limits=["stock <= 2"], start={"shelf": 3}, noise={"demand": Poisson(Gamma(2, 1), most=5)},
    )  # fmt: skip


def test_costs_that_nobody_saw_are_unknown_and_not_what_was_expected():
    agent, events = psconrl.PSConRL.of(shop(), seed=1), []
    agent.watch(events.append)
    agent.act({"shelf": 3})
    agent.observe({"order": 0}, {"shelf": 1})  # two were sold, and nothing lost
    agent.finish()
    assert events[-1].costs.tolist() == [0.0, 3.0]
    agent.act({"shelf": 1})
    agent.observe({"order": 0}, {"shelf": 0})  # one was sold at least
    agent.finish()
    np.testing.assert_array_equal(events[-1].costs, [np.nan, 1.0])
    np.testing.assert_array_equal(events[-1].averages, [np.nan, 2.0])
    agent.act({"shelf": 0})
    agent.observe({"order": 0}, {"shelf": 0}, {"lost": 4, "stock": 0})
    agent.finish()
    np.testing.assert_array_equal(events[-1].costs, [4.0, 0.0])


def test_unknown_costs_are_saved(tmp_path):
    agent = psconrl.PSConRL.of(shop(), seed=1)
    agent.act({"shelf": 1})
    agent.observe({"order": 0}, {"shelf": 0})
    agent.act({"shelf": 0})
    agent.observe({"order": 0}, {"shelf": 0}, {"lost": 4, "stock": 0})
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    for each in (agent, again):
        each.finish()
        np.testing.assert_array_equal(each.counts.averages(), [np.nan, 0.5])
        assert list(each.counts.noise.paid.values()) == [1]
    assert again.estimates() == agent.estimates()


def test_a_cost_beyond_the_most_is_explained_by_the_most():
    agent = psconrl.PSConRL.of(shop(), seed=1)
    agent.act({"shelf": 1})
    agent.observe({"order": 0}, {"shelf": 0}, {"lost": 17, "stock": 1})
    agent.finish()
    (key,) = agent.counts.noise.paid
    assert key[1:] == (5,)
    assert agent.counts.averages()[0] == 17.0


@pytest.mark.parametrize(("lost", "fits"), [(2.0 + 1e-7, True), (2.0 + 1e-4, False), (2.5, False), (-1.0, False)])
def test_costs_within_the_tolerance_fit(lost, fits):
    """The largest cost of the pair is 4; costs that differ by 1e-6 of it are the same."""
    system = shop()
    belief = psconrl.PSConRL.of(system, seed=1).belief
    pair, empty = system.state_number({"shelf": 1}) * 4, system.state_number({"shelf": 0})
    cells = belief.explanations.of(pair, empty, None, np.array([lost, 1.0])).cells
    assert cells == ((3,) if fits else (5,))  # else a demand of the most or more


def test_of_impossible_costs_the_agent_warns_and_learns_nothing_else():
    system = newsvendor(noise={"demand": Bernoulli(Beta(1, 1))}, limits=["lost <= 0.05"])
    agent = agent_of(system)
    agent.act(MORNING)
    with pytest.warns(AdviceWarning, match="no outcome of the noise has: at day=0, order=0 they were paid=0, lost=0.4"):
        agent.observe({"order": 0}, MORNING, [0.0, 0.4])
    agent.finish()
    assert agent.doubts() == ()
    assert agent.estimates()["demand"].observations == 0
    assert agent.counts.averages()[1] == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(4))
def test_the_structure_is_tested_by_what_costs_reveal(seed):
    """A right system is doubted in one run of a thousand; demand of 0 or 8 is no Poisson variable."""
    rng = np.random.default_rng(seed)
    system = newsvendor(limits=["lost <= 0.4"])
    right, wrong = agent_of(system, seed), agent_of(system, seed)
    sell(right, rng.poisson(4.0, 250), lambda order, demand: [order, max(demand - order, 0)])
    right.finish()
    right.belief.check(right.counts)
    assert right.doubts() == ()
    with pytest.warns(StructureWarning, match="demand does not follow"):
        sell(wrong, 8 * rng.integers(0, 2, 250), lambda order, demand: [order, max(demand - order, 0)])
    assert "demand does not follow" in wrong.doubts()[0]


# Costs by the names in which they were stated


def test_costs_by_the_names_in_which_they_were_stated():
    """Lost sales reveal the demand, which the limit on the ratio needs; without any, that limit's cost is unknown."""
    agent, events = agent_of(newsvendor()), []
    agent.watch(events.append)
    for order, lost, limited in ((2, 3, 3 - 0.05 * 5), (0, 4, 4 - 0.05 * 4), (3, 0, np.nan)):
        agent.act(MORNING)
        agent.observe({"order": order}, MORNING, {"lost": lost})
        agent.finish()
        np.testing.assert_allclose(events[-1].costs, [order, limited], atol=1e-12)
    assert sorted(len(key) - 2 for key in agent.counts.noise.named) == [1, 1, 4]  # demand 5, 4, and 0 to 3
    assert agent.estimates()["demand"].observations == 3


def test_a_limit_and_a_stated_cost_may_be_given_together():
    agent = agent_of(newsvendor())
    agent.act(MORNING)
    agent.observe({"order": 9}, MORNING, {"lost": 0, "lost / demand over 5%": -0.05 * 7})
    agent.finish()
    ((_, _, *cells),) = agent.counts.noise.named
    assert cells == [7]
    assert agent.counts.averages().tolist() == [9.0, -0.05 * 7]


def test_named_costs_and_all_costs_give_the_same_posterior():
    system = newsvendor(limits=["lost <= 0.4"])
    one, two = agent_of(system), agent_of(system)
    demands = np.random.default_rng(8).poisson(4.0, 40)
    sell(one, demands, lambda order, demand: {"paid": order, "lost": max(demand - order, 0)})
    sell(two, demands, lambda order, demand: [order, max(demand - order, 0)])
    assert one.estimates() == two.estimates()
    three = agent_of(system)
    sell(three, demands, lambda order, demand: {"lost": max(demand - order, 0)})
    assert three.estimates()["demand"].mean == pytest.approx(one.estimates()["demand"].mean, rel=0.05)
    assert not three.counts.unknown_costs.any()


def test_costs_of_the_next_state_and_of_functions_have_names_too(tmp_path):
    system = System(
        state={"n": 3}, action={"go": 2}, noise={"x": Bernoulli(Beta(1, 1))}, step={"n": "min(n + x, 2) if go else 0"},
        costs={"late": "next_n * x", "fee": lambda n, x: 5 * x + n}, minimise="n", limits=["late + fee <= 9"],
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=1)
    for costs in ({"fee": 7}, {"late": 2}):
        agent.act({"n": 2})
        agent.observe({"go": 1}, {"n": 2}, costs)
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    assert again.estimates()["x"].mean == pytest.approx(3 / 4)  # x was 1 twice
    again.act({"n": 2})
    with pytest.raises(AgentError) as caught:
        again.observe({"go": 1}, {"n": 2}, {"fee": 7})
    assert str(caught.value) == (
        "costs: 'fee' is a Python function, which was not saved with the agent; state it as an expression, or give n, "
        "late + fee"
    )
    again.observe({"go": 1}, {"n": 2}, {"late": 0})
    again.finish()
    assert again.estimates()["x"].mean == pytest.approx(3 / 5)
    for _ in range(200):  # the tests of the structure pass over rounds whose costs cannot be calculated any more
        again.act({"n": 2})
        again.observe({"go": 1}, {"n": 2}, {"late": 0})
    assert again.doubts() == ()


def test_of_named_costs_that_no_outcome_has_the_agent_warns():
    agent = agent_of(newsvendor(noise={"demand": Bernoulli(Beta(1, 1))}))
    agent.act(MORNING)
    with pytest.warns(AdviceWarning, match=r"at day=0, order=0 they were lost=0\.4"):
        agent.observe({"order": 0}, MORNING, {"lost": 0.4})
    agent.finish()
    assert agent.estimates()["demand"].observations == 0


def test_the_tests_of_a_structure_see_what_named_costs_reveal():
    """With an order of 2, lost sales of 3 are a demand of 5, and none a demand of 0 to 2."""
    agent = agent_of(newsvendor())
    for lost in (3, 0, 0):
        agent.act(MORNING)
        agent.observe({"order": 2}, MORNING, {"lost": lost})
    agent.finish()
    sightings = NoiseSightings(agent.belief.known_structure, words=agent.belief.vocabulary)
    seen = sightings.of(agent.counts)["demand"]
    rows = sightings.rows["demand"]
    assert {rows[r].values: n for r, n in zip(seen.rows, seen.times, strict=True)} == {(5,): 1.0, (0, 1, 2): 2.0}
