"""Agents of a system in live use: tables of values in place of numbers, and noise that the caller has seen."""

import warnings

import numpy as np
import pytest

import psconrl
from psconrl.errors import AdviceWarning, AgentError, StructureWarning
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Categorical, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def shelf(**changes):
    """A shelf of two that is filled up, at most by one; demand 0, 1 or 2 is censored by an empty shelf."""
    given = {
        "state": {"shelf": range(3), "day": ["even", "odd"]},
        "action": {"order": [0, 1]},
        "noise": {"demand": Categorical(range(3), prior=1)},
        "step": {"shelf": "max(shelf - demand, 0) + order", "day": "'odd' if day == 'even' else 'even'"},
        "available": "shelf + order <= 2",
        "costs": {"lost": "max(demand - shelf, 0)", "sold": "min(demand, shelf)"},
        "start": {"shelf": 2, "day": "odd"},
        "minimise": "lost",
        "limits": ["sold >= 0.1"],
    }
    return System(**given | changes)


class Shop:
    """The owner's own program."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = {"shelf": 2, "day": "odd"}
        self.demands = []

    def step(self, order):
        demand = int(self.rng.choice(3, p=[0.2, 0.5, 0.3]))
        before = self.state["shelf"]
        day = "odd" if self.state["day"] == "even" else "even"
        self.state = {"shelf": max(before - demand, 0) + order, "day": day}
        self.demands.append(demand)
        return demand, {"lost": max(demand - before, 0), "sold": min(demand, before)}


def play(agent, shop, rounds, see=True, costs=False):
    for _ in range(rounds):
        action = agent.act(shop.state)
        assert set(action) == {"order"}
        assert shop.state["shelf"] + action["order"] <= 2
        demand, paid = shop.step(action["order"])
        agent.observe(action, shop.state, paid if costs else None, {"demand": demand} if see else None)


def test_an_agent_speaks_the_words_of_the_owner():
    agent, shop = psconrl.PSConRL.of(shelf(), seed=1), Shop(2)
    play(agent, shop, 300, see=False, costs=True)
    agent.finish()
    assert agent.rounds == 300
    lost, sold = agent.counts.cost_sums.sum(axis=1)
    assert sold == -sum(shop.demands) + lost  # what is at least something is planned as a negative cost


def test_numbers_are_understood_too():
    system = shelf()
    agent = psconrl.PSConRL.of(system, seed=1)
    odd, even = (system.state_number({"shelf": 2, "day": day}) for day in ("odd", "even"))
    for _ in range(50):
        assert agent.act(odd) == 0  # the only action that is available
        agent.observe(0, even, [0.0, 0.0])
        agent.act({"shelf": 2, "day": "even"})
        agent.observe({"order": 0}, {"shelf": 2, "day": "odd"})


def test_costs_are_calculated_from_the_noise_that_was_seen():
    one, two = psconrl.PSConRL.of(shelf(), seed=1), psconrl.PSConRL.of(shelf(), seed=1)
    play(one, Shop(2), 200, costs=True)
    play(two, Shop(2), 200, costs=False)
    np.testing.assert_allclose(one.counts.cost_sums, two.counts.cost_sums, atol=1e-12)


def test_noise_that_was_seen_gives_the_exact_posterior(full):
    """Censored demand would leave it open; here the posterior is that of the counts of all demands."""
    agent, shop = psconrl.PSConRL.of(shelf(), seed=1), Shop(2)
    play(agent, shop, 60)
    agent.finish()
    alpha = np.bincount(shop.demands, minlength=3) + 1.0
    rng, draws = np.random.default_rng(5), 2000 if full else 500
    found = []
    for _ in range(draws):
        agent.belief.sample(agent.counts, rng)
        found.append(agent.belief.parameters["demand"])
    mean = alpha / alpha.sum()
    error = 6 * np.sqrt(mean * (1 - mean) / (alpha.sum() + 1) / draws)  # draws are independent: all noise was seen
    np.testing.assert_array_less(np.abs(np.mean(found, axis=0) - mean), error)
    variance = mean * (1 - mean) / (alpha.sum() + 1)
    np.testing.assert_allclose(np.var(found, axis=0), variance, rtol=0.2 if full else 0.4)


def test_noise_that_was_seen_in_part_leaves_the_rest_open(full):
    """Of x + y = 1 it is open which is 1; once x is seen, y is certain, and so with x and y exchanged."""
    system = System(
        state={"sum": 3}, action={"wait": 1}, noise={"x": Bernoulli(Beta()), "y": Bernoulli(Beta())},
        step={"sum": "x + y"}, costs={"cost": "sum"}, minimise="cost",
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=1)
    for k in range(40):
        agent.observe(agent.act({"sum": k and 1}), {"sum": 1}, noise={"x": 1} if k < 30 else {"y": 1})
    agent.finish()
    found, draws = [], 2000 if full else 500
    for _ in range(draws):
        agent.belief.sample(agent.counts, agent.rng)
        found.append([agent.belief.parameters[key][0] for key in "xy"])
    np.testing.assert_allclose(np.mean(found, axis=0), [31 / 42, 11 / 42], atol=6 * 0.067 / draws**0.5)


def test_noise_that_was_not_seen_and_of_which_nothing_is_revealed_is_not_drawn(full):
    """Whether a parcel arrives shows only after an order: 400 rounds without one, and y seen, leave x independent."""
    system = System(
        state={"shelf": 2, "on": 2}, action={"order": 2}, noise={"x": Bernoulli(Beta()), "y": Bernoulli(Beta())},
        step={"shelf": "order * x", "on": "shelf"}, costs={"cost": "y"}, minimise="cost",
    )  # fmt: skip
    with pytest.warns(AdviceWarning, match="no next state depends on 'y'"):
        agent = psconrl.PSConRL.of(system, seed=1)
    empty = {"shelf": 0, "on": 0}
    for k in range(400):
        agent.act(empty)
        agent.observe({"order": 0}, empty, noise={"y": int(k % 4 == 0)})
    agent.finish()
    found, draws = [], 1000 if full else 300
    for _ in range(draws):
        agent.belief.sample(agent.counts, agent.rng)
        found.append([agent.belief.parameters[key][0] for key in "xy"])
    x, y = np.array(found).T
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 6 / draws**0.5
    assert x.mean() == pytest.approx(1 / 2, abs=6 * 12**-0.5 / draws**0.5)
    assert y.mean() == pytest.approx(101 / 402, abs=6 * 0.022 / draws**0.5)


def test_an_event_that_was_seen_pays_its_cost():
    """A departure costs 3, and a tick lasts 1/4: the rate paid in its round is 12."""
    system = System(
        state={"n": range(3)}, action={"wait": 1}, clock=4.0, minimise="fees", costs={"fees": "n"},
        events={"up": Event(Gamma(2, 1), {"n": "min(n + 1, 2)"}),
                "down": Event(1.0, {"n": "max(n - 1, 0)"}, costs={"fees": 3})},
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=1)
    for n, event, after, paid in ((0, "up", 1, 0.0), (1, "none", 1, 1.0), (1, "down", 0, 13.0), (0, "down", 0, 12.0)):
        before = agent.counts.cost_sums.sum()
        agent.observe(agent.act({"n": n}), {"n": after}, noise={"event": event})
        agent.finish()
        assert agent.counts.cost_sums.sum() - before == pytest.approx(paid)


def test_counts_beyond_the_most_are_the_most():
    system = shelf(noise={"demand": Poisson(Gamma(2, 1), most=4)})
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.observe(agent.act({"shelf": 2, "day": "odd"}), {"shelf": 0, "day": "even"}, noise={"demand": 17})
    agent.finish()
    assert agent.counts.noise.times == {(next(iter(agent.counts.noise.times))[0], 1, 4): 1}


def test_events_may_be_seen():
    system = System(
        state={"n": range(4)}, action={"fast": [0, 1]}, clock=4.0, minimise="n", costs={},
        events={"up": Event(Gamma(2, 1), {"n": "min(n + 1, 3)"}), "down": Event(1.0, {"n": "max(n - 1, 0)"})},
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.observe(agent.act({"n": 0}), {"n": 0}, noise={"event": "down"})
    agent.observe(agent.act({"n": 0}), {"n": 0}, noise={"event": "none"})
    agent.finish()
    assert sorted(key[1:] for key in agent.counts.noise.times) == [(1, 1), (1, 2)]


@pytest.mark.parametrize("rounds", [7, 60])
def test_an_agent_is_saved_with_what_it_has_seen(tmp_path, rounds):
    agent, shop = psconrl.PSConRL.of(shelf(), seed=1), Shop(2)
    play(agent, shop, rounds)
    agent.save(tmp_path / "agent.npz")
    again, same = psconrl.load_agent(tmp_path / "agent.npz"), Shop(2)
    same.rng.bit_generator.state, same.state = shop.rng.bit_generator.state, shop.state
    play(agent, shop, 80)
    play(again, same, 80)
    assert shop.demands[rounds:] == same.demands
    assert shop.state == same.state
    np.testing.assert_array_equal(agent.counts.cost_sums, again.counts.cost_sums)
    assert agent.counts.noise.times == again.counts.noise.times


def test_planning_in_the_background_loses_no_noise():
    agent, shop = psconrl.PSConRL.of(shelf(), seed=1), Shop(2)
    agent.plan_in_background()
    play(agent, shop, 200)
    agent.finish()
    assert sum(agent.counts.noise.times.values()) == 200 == agent.rounds


def test_noise_that_contradicts_the_transition_is_a_doubt():
    agent = psconrl.PSConRL.of(shelf(), seed=1)
    agent.observe(agent.act({"shelf": 2, "day": "odd"}), {"shelf": 2, "day": "even"}, noise={"demand": 2})
    agent.finish()
    with pytest.warns(
        StructureWarning, match="a transition was observed that is impossible by the rules of the system"
    ):
        agent.act({"shelf": 2, "day": "even"})
    assert agent.belief.impossible == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: a.act({"shelf": 2}), "state must give a value to each of shelf, day; got {'shelf': 2}"),
        (lambda a: a.act({"shelf": 9, "day": "odd"}), "state: 'shelf' has the values 0, 1, 2; got 9"),
        (lambda a: a.act(17), "state must be an integer from 0 to 5; got 17"),
    ],
)
def test_mistakes_before_an_action(call, said):
    with pytest.raises(AgentError) as caught:
        call(psconrl.PSConRL.of(shelf(), seed=1))
    assert str(caught.value) == said


FULL, EVEN = {"shelf": 2, "day": "odd"}, {"shelf": 2, "day": "even"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (({"order": 1}, EVEN), "action: order=1 is not available at shelf=2, day=odd"),
        (({"order": 3}, EVEN), "action: 'order' has the values 0, 1; got 3"),
        (({"order": 0}, {"shelf": 2}), "next_state must give a value to each of shelf, day; got {'shelf': 2}"),
        (({"order": 0}, EVEN, {"lst": 1, "sold": 1}), "costs: unknown cost 'lst'; did you mean 'lost'?"),
        (({"order": 0}, EVEN, {"lost": "x", "sold": 1}), "costs must be finite numbers; got {'lost': 'x', 'sold': 1}"),
        (({"order": 0}, EVEN, {"lost": None}), "costs must be finite numbers; got {'lost': None}"),
        (({"order": 0}, EVEN, {"lost": [1]}), "costs must be finite numbers; got {'lost': [1]}"),
        (({"order": 0}, EVEN, {"lost": float("nan")}), "costs must be finite numbers; got {'lost': nan}"),
        (({"order": 0}, EVEN, None, {"demnd": 1}), "unknown noise 'demnd'; did you mean 'demand'?"),
        (({"order": 0}, EVEN, None, {"demand": 7}), "noise: 'demand' has the values 0, 1, 2; got 7"),
        (({"order": 0}, EVEN, None, {"demand": "x"}), "noise: 'demand' must be one of its values; got 'x'"),
        (({"order": 0}, EVEN, None, 3), "noise must be a table of values by name, such as {'demand': 3}; got 3"),
    ],
)
def test_mistakes_in_an_observation_leave_the_agent_waiting_for_it(given, said):
    agent = psconrl.PSConRL.of(shelf(), seed=1)
    agent.act(FULL)
    with pytest.raises(AgentError) as caught:
        agent.observe(*given)
    assert str(caught.value) == said
    agent.observe({"order": 0}, EVEN)
    agent.finish()
    assert agent.rounds == 1


def test_other_agents_take_no_noise():
    agent = psconrl.PSConRL(2, 2, [0.5], seed=1)
    agent.act(0)
    with pytest.raises(AgentError, match=r"only an agent made by of\(system\) takes noise"):
        agent.observe(0, 1, [0, 0], noise={"demand": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.observe(0, 1, [0, 0])


@pytest.mark.parametrize("given", ["shop", None, psconrl.load("box")])
def test_an_agent_of_something_else_is_refused(given):
    with pytest.raises(AgentError, match="of needs a System"):
        psconrl.PSConRL.of(given)


def test_thresholds_that_are_given_by_name_are_those_of_the_limits_of_that_name():
    system = shelf(limits=["sold >= 0.1", "P(shelf == 0) <= 0.5"])
    given = {"P(shelf == 0)": 0.4, "sold": 0.2}
    assert psconrl.PSConRL.of(system, thresholds=given, seed=1).thresholds.tolist() == [-0.2, 0.4]
    assert psconrl.PSConRL.of(system, thresholds={"sold": 0.3}, seed=1).thresholds.tolist() == [-0.3, 0.5]
    with pytest.raises(AgentError, match="unknown constrained cost 'bought'"):
        psconrl.PSConRL.of(system, thresholds={"bought": 0.3, "sold": 0.3}, seed=1)
