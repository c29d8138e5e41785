"""What is possible follows from the constructor, and not from a prior mean."""

import numpy as np
import pytest

import psconrl
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def shop(noise):
    return System(
        state={"seen": range(11)},
        action={"a": 2},
        noise={"demand": noise},
        step={"seen": "demand"},
        costs={"c": "seen + a"},
        minimise="c",
    )


@pytest.mark.parametrize("prior", [Gamma(1, 0.001), Gamma(1, 1), Gamma(1, 1e6), Gamma(1e-6, 1e6), Gamma(1e12, 1)])
def test_all_counts_are_possible_whatever_the_prior(prior):
    system = shop(Poisson(prior, most=10))
    assert system.structure.n_states == 11
    assert system.structure.randomness.possible().all()
    assert psconrl.plan(system, demand=2.0).feasible


def test_a_vague_prior_learns_from_real_data():
    system = shop(Poisson(Gamma(1, 0.001), most=10))
    agent = psconrl.PSConRL.of(system, seed=1)
    state, rng = {"seen": 0}, np.random.default_rng(2)
    for _ in range(300):
        action = agent.act(state)
        state = {"seen": int(min(rng.poisson(4.0), 10))}
        agent.observe(action, state)
    agent.finish()
    agent.act(state)
    assert agent.belief.parameters["demand"][0] == pytest.approx(4.0, abs=6 * 2.0 / 300**0.5)
    assert not agent.belief.doubts


@pytest.mark.parametrize(
    ("noise", "arguments", "expected"),
    [
        (Binomial("n", Beta(1e-6, 1e12)), {"n": [0, 2, 3]}, [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]),
        (Bernoulli(Beta(1e-6, 1e12), when="w"), {"when": [0, 1]}, [[1, 0], [1, 1]]),
        (Poisson(Gamma(1, 1e-6), most=2, times="t"), {"times": [0, 0.5]}, [[1, 0, 0], [1, 1, 1]]),
        (Geometric(Beta(1e12, 1e-6), most=2), {}, [[1, 1, 1]]),
        (Categorical([5, 6], prior=[1e-6, 1e12]), {}, [[1, 1]]),
        (Binomial("n", Beta(), times="t"), {"n": [2, 2, 0], "times": [0, 0.1, 1]}, [[1, 0, 0], [1, 1, 1], [1, 0, 0]]),
        (Bernoulli(Beta(), "w", "t"), {"when": [1, 1, 0], "times": [0, 0.1, 1]}, [[1, 0], [1, 1], [1, 0]]),
        (Geometric(Beta(), most=2, times="t"), {"times": [0, 0.1]}, [[0, 0, 1], [1, 1, 1]]),
        (Joint([(5, "a"), (5, "b")], prior=[1e-6, 1e12]), {}, [[1, 1]]),
        (Poisson(0.0, most=2), {"times": [1.0]}, [[1, 0, 0]]),
        (Bernoulli(1.0), {"when": [1.0, 0.0]}, [[0, 1], [1, 0]]),
        (Poisson(1000.0, most=2), {"times": [1.0]}, [[0, 0, 1]]),  # e^-1000 is no double: it counts as impossible
    ],
)
def test_support_of_every_noise(noise, arguments, expected):
    arguments = {key: np.array(values, dtype=float) for key, values in ({"times": [1]} | arguments).items()}
    known = np.zeros(1) if noise.known is None else noise.known
    found = noise.possible(known, noise.checked_arguments(arguments), len(expected))
    np.testing.assert_array_equal(found, np.array(expected, dtype=bool))


@pytest.mark.parametrize("p", [0.35, Beta(1, 1)])
def test_the_largest_n_need_not_be_reached(p):
    """Six patients may be treated at once, but from an empty ward there are never more than two."""
    system = System(
        state={"patients": range(7)},
        action={"staff": 2},
        noise={"leaving": Binomial("patients", p), "comes": Bernoulli(0.5)},
        step={"patients": "min(patients - leaving + comes, 2)"},
        costs={"cost": "patients + staff"},
        minimise="cost",
    )
    small = System(
        state={"patients": range(3)}, action={"staff": 2},
        noise={"leaving": Binomial("patients", p), "comes": Bernoulli(0.5)},
        step={"patients": "min(patients - leaving + comes, 2)"}, costs={"cost": "patients + staff"}, minimise="cost",
    )  # fmt: skip
    known = {} if p == 0.35 else {"leaving": 0.35}
    model = system.model(**known)
    assert model.n_states == 3
    np.testing.assert_array_equal(model.transition.toarray(), small.model(**known).transition.toarray())
    assert psconrl.plan(system, **known).value == psconrl.plan(small, **known).value
