"""The posterior of a system's parameters against exact posteriors by enumeration and by quadrature."""

import itertools

import numpy as np
import pytest

import psconrl
from psconrl.envs.registry import load_system
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Categorical
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def shelf(prior=1.0):
    """A shelf of two that is filled up or not; demand 0, 1 or 2 is censored by an empty shelf."""
    return System(
        state={"shelf": range(3)},
        action={"fill": [0, 1]},
        noise={"demand": Categorical(range(3), prior=prior)},
        step={"shelf": "2 if fill == 1 else max(shelf - demand, 0)"},
        costs={"lost": "max(demand - shelf, 0)", "fills": "fill"},
        start={"shelf": 2},
        minimise="lost",
        limits=["fills <= 0.4"],
    )


def counted(system, moves):
    """Counts of transitions (state, action, next state), by number."""
    structure = system.structure
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record = Record.empty(counts)
    for s, a, t in moves:
        record.step(s, a, t, np.zeros(len(structure.fixed_costs)))
    counts.add(record)
    return counts


@pytest.fixture
def number(full):
    """How many samples are drawn."""
    return 3000 if full else 800


def draws(belief, counts, number, seed=0):
    rng = np.random.default_rng(seed)
    found = []
    for k in range(number + 20):
        belief.sample(counts, rng)
        if k >= 20:
            found.append({key: value.copy() for key, value in belief.parameters.items()})
    return found


def test_censored_demand_has_the_posterior_of_all_that_may_have_happened(number):
    # From a shelf of 1 that becomes empty the demand was 1 or 2. Enumerate which, for each of three observations.
    system = shelf()
    moves = [(2, 0, 2)] * 2 + [(2, 0, 1)] + [(1, 0, 0)] * 3 + [(2, 0, 0)]
    weights, means = [], []
    for hidden in itertools.product((1, 2), repeat=3):
        counts = np.array([2, 1, 1]) + np.bincount(hidden, minlength=3)
        alpha = counts + 1.0
        # The probability of these counts under a uniform Dirichlet prior is proportional to the product of factorials.
        weights.append(np.prod([float(np.prod(np.arange(1, n + 1))) for n in counts]))
        means.append(alpha / alpha.sum())
    exact = np.average(means, axis=0, weights=weights)
    belief = Structured(system.structure)
    found = np.array([d["demand"] for d in draws(belief, counted(system, moves), number)])
    # Draws of consecutive episodes are correlated, by 1/3 at most here: six standard errors of half as many.
    error = 6 * found.std(axis=0) / np.sqrt(number / 2)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - exact), error)


def test_what_is_seen_without_doubt_gives_the_conjugate_posterior(number):
    system = shelf()
    moves = [(2, 0, 2)] * 5 + [(2, 0, 1)] * 3 + [(2, 0, 0)] * 2
    found = np.array([d["demand"] for d in draws(Structured(system.structure), counted(system, moves), number)])
    np.testing.assert_allclose(found.mean(axis=0), np.array([6, 4, 3]) / 13, atol=6 * 0.14 / number**0.5)


def test_transitions_that_reveal_nothing_leave_the_prior(number):
    system = shelf(prior=[2.0, 1.0, 1.0])
    found = np.array(
        [d["demand"] for d in draws(Structured(system.structure), counted(system, [(0, 1, 2)] * 50), number)]
    )
    np.testing.assert_allclose(found.mean(axis=0), [0.5, 0.25, 0.25], atol=6 * 0.23 / (number / 2) ** 0.5)


def birth_and_death():
    arrival, service = Gamma(2, 1), Gamma(1, 1)
    return System(
        state={"n": range(4)},
        action={"fast": [0, 1]},
        events={
            "arrival": Event(arrival, {"n": "n + 1"}, when="n < 3"),
            "service": Event(service, {"n": "n - 1"}, times="2 if fast == 1 else 1", when="n > 0"),
        },
        clock=4.0,
        costs={"waiting": "n", "speed": "fast"},
        minimise="waiting",
        limits=["speed <= 0.5"],
    )


def test_rates_of_events_have_the_posterior_of_quadrature(number):
    system = birth_and_death()
    moves = [(0, 0, 1)] * 3 + [(0, 0, 0)] * 5 + [(1, 1, 0)] * 4 + [(1, 1, 1)] * 3 + [(1, 1, 2)] * 2 + [(3, 0, 2)] * 2
    x = np.linspace(0, 4, 801)[1:]
    a, b = np.meshgrid(x, x / 2, indexing="ij")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(a) - a - b + 5 * np.log(a) + 6 * np.log(b) + 5 * np.log1p(-a / 4)
        logs += np.where(a + 2 * b < 4, 3 * np.log(np.maximum(1 - (a + 2 * b) / 4, 1e-300)), -np.inf)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    exact = np.array([(shares * a).sum(), (shares * b).sum()])
    found = np.array(
        [
            [d["arrival"][0], d["service"][0]]
            for d in draws(Structured(system.structure), counted(system, moves), number)
        ]
    )
    error = 6 * found.std(axis=0) / np.sqrt(number / 3)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - exact), error)


def test_the_samples_are_models_of_the_system():
    system = shelf()
    belief = Structured(system.structure)
    counts = counted(system, [(2, 0, 1)] * 4)
    P = belief.sample(counts, np.random.default_rng(1)).toarray()
    model = system.model(demand=belief.parameters["demand"])
    np.testing.assert_allclose(P, model.transition.toarray(), atol=1e-15)
    np.testing.assert_allclose(belief.costs(), model.costs, atol=1e-15)


def test_noises_whose_priors_name_a_parameter_share_it(number):
    p = Beta(1, 1, shared="p")
    system = System(
        state={"a": 2, "b": 2},
        action={"wait": 1},
        noise={"x": Bernoulli(p), "y": Bernoulli(p), "z": Bernoulli(Beta(1, 1))},
        step={"a": "x", "b": "y"},
        costs={"cost": "z"},
        minimise="cost",
    )
    belief = Structured(system.structure)
    assert set(belief.parameters) == {"x", "z"}
    counts = counted(system, [(0, 0, 3)] * 10)  # x and y were 1 in ten rounds
    found = np.array([d["x"][0] for d in draws(belief, counts, number)])
    assert found.mean() == pytest.approx(21 / 22, abs=6 * 0.044 / number**0.5)


def test_an_agent_learns_only_what_is_unknown():
    system = shelf()
    true = system.with_noise(demand=[0.2, 0.5, 0.3])
    agent = psconrl.PSConRL.of(system, seed=3)
    psconrl.simulate(true, agent, 3000, seed=4)
    agent.begin(0)
    np.testing.assert_allclose(agent.belief.parameters["demand"], [0.2, 0.5, 0.3], atol=0.08)


def test_agents_continue_bit_for_bit(tmp_path):
    system = shelf()
    true = system.with_noise(demand=[0.2, 0.5, 0.3])
    agent = psconrl.PSConRL.of(system, seed=3)
    psconrl.simulate(true, agent, 500, seed=4)
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    one = psconrl.simulate(true, agent, 500, seed=5)
    two = psconrl.simulate(true, again, 500, seed=5)
    np.testing.assert_array_equal(one.cumulative, two.cumulative)


def parcels():
    """A parcel arrives only if one was ordered; whether a customer comes is always seen."""
    return System(
        state={"shelf": 2, "customer": 2},
        action={"order": 2},
        noise={"arrives": Bernoulli(Beta(1, 1)), "comes": Bernoulli(Beta(1, 1))},
        step={"shelf": "order if arrives == 1 else 0", "customer": "comes"},
        costs={"cost": "shelf"},
        minimise="cost",
    )


def test_noise_of_which_nothing_is_revealed_keeps_its_posterior_however_long(number):
    # Ten orders, of which two arrived; then 5,000 rounds without an order, in each of which a customer came.
    system = parcels()
    a, b = system.state_number({"shelf": 1, "customer": 1}), system.state_number({"shelf": 0, "customer": 1})
    belief = Structured(system.structure)
    counts = counted(system, [(0, 1, a)] * 2 + [(0, 1, b)] * 8)
    record = Record.empty(counts)
    for _ in range(5000):
        record.step(0, 0, b, np.zeros(1))
    counts.add(record)
    found = np.array([[d["arrives"][0], d["comes"][0]] for d in draws(belief, counts, number)])
    assert found[:, 0].mean() == pytest.approx(3 / 12, abs=6 * 0.12 / number**0.5)
    assert found[:, 0].std() == pytest.approx((3 * 9 / (12**2 * 13)) ** 0.5, rel=0.2)
    assert found[:, 1].mean() == pytest.approx(5011 / 5012, abs=1e-4)
    assert abs(np.corrcoef(found[1:, 0], found[:-1, 0])[0, 1]) < 6 / number**0.5  # draws are independent


def test_bernoulli_noise_with_a_condition_is_zero_elsewhere_and_learned_only_there(number):
    system = System(
        state={"n": 3},
        action={"fast": 2},
        noise={"slow": Bernoulli(0.2, when="fast == 0"), "quick": Bernoulli(0.7, when="fast == 1 and n > 0")},
        step={"n": "min(n + slow + quick, 2)"},
        costs={"cost": "n"},
        minimise="cost",
    )
    P = system.model().transition.toarray().reshape(3, 2, 3)
    np.testing.assert_allclose(P[0], [[0.8, 0.2, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(P[1], [[0.0, 0.8, 0.2], [0.0, 0.3, 0.7]], atol=1e-15)
    counts = counted(system, [(0, 0, 1)] * 4 + [(0, 1, 0)] * 50 + [(1, 1, 2)] * 9)
    belief = Structured(system.with_unknown().structure)
    found = np.array([[d["slow"][0], d["quick"][0]] for d in draws(belief, counts, number)])
    np.testing.assert_allclose(found.mean(axis=0), [5 / 6, 10 / 11], atol=6 * 0.14 / number**0.5)


def test_samples_of_a_large_system_share_one_elimination_order():
    system = load_system("network", side=12)  # 144 states: samples are sparse, and are planned as such
    agent = psconrl.PSConRL.of(system, seed=0)
    orders = []
    for _ in range(2):
        agent.begin(0)
        orders.append(agent.planner._order)
    assert orders[0].position.size == 144
    assert orders[1] is orders[0]
