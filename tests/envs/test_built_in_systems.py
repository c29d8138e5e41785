"""Built-in environments as systems: the same models, and agents that know all but the noise."""

import numpy as np
import pytest

import psconrl
from psconrl.agents import make
from psconrl.envs.registry import ENVIRONMENTS, load_system
from psconrl.errors import AgentError, ConfigError, ModelError
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.registry import CLASSES
from psconrl.learning.sampler import Sampler
from psconrl.model.fingerprint import fingerprint

SMALL = {
    "queue": {"capacity": 4},
    "inventory": {"capacity": 4, "customers": 3},
    "stock": {"items": 2, "room": 3, "load": 2, "lost": 0.25},
    "network": {"side": 4, "waiting": 2.0},
    "ward": {"beds": 3, "arrivals": [0.02, 0.03, 0.01], "staff": 4.0, "refused": 0.08, "occupied": 1.5},
}
UNKNOWN = {  # how many numbers the owner does not know
    "queue": 1 + 3,
    "inventory": 4,
    "stock": 3 + 1,
    "network": 1 + 3 + 3,
    "ward": 3 + 3,
}


def test_all_of_these_have_a_system():
    assert {name for name, environment in ENVIRONMENTS.items() if environment.system} == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_system_has_the_model_of_its_environment(name):
    # The queue is built by formulas of its own, whose last bits differ; all others are the model of their system.
    model, of_system = psconrl.load(name, **SMALL[name]), load_system(name, known=True, **SMALL[name]).model()
    np.testing.assert_allclose(of_system.transition.toarray(), model.transition.toarray(), atol=1e-15)
    np.testing.assert_allclose(of_system.costs, model.costs, atol=1e-15)
    for field in ("state_names", "action_names", "cost_names", "maximise", "units", "at_least"):
        assert getattr(of_system, field) == getattr(model, field)
    np.testing.assert_array_equal(of_system.thresholds, model.thresholds)
    np.testing.assert_array_equal(of_system.initial, model.initial)
    assert model.available.all()


@pytest.mark.parametrize("name", SMALL)
def test_all_probabilities_and_rates_are_unknown_to_the_owner(name):
    system = load_system(name, **SMALL[name])
    parameters = system.structure.randomness.initial()
    assert sum(value.size for value in parameters.values()) == UNKNOWN[name]
    with pytest.raises(ModelError, match="has an unknown parameter"):
        system.model()


@pytest.mark.parametrize("name", SMALL)
def test_samples_with_the_true_parameters_are_the_model(name):
    system, true = load_system(name, **SMALL[name]), load_system(name, known=True, **SMALL[name])
    randomness = true.structure.randomness
    if hasattr(randomness, "rates"):
        truth = dict(zip(true.source.events, randomness.rates[:, None], strict=True))
    else:
        truth = {noise: given.known for noise, given in true.source.noise.items()}
    model, structure = true.model(), system.structure
    P = structure.transition(structure.table(truth))
    np.testing.assert_allclose(P.toarray(), model.transition.toarray(), atol=1e-14)
    np.testing.assert_allclose(structure.costs(truth), model.costs, atol=1e-14)


@pytest.mark.parametrize("name", ["queue", pytest.param("ward", marks=pytest.mark.full)])
def test_an_agent_that_knows_the_structure_loses_less(name, full):
    options = {} if name == "queue" else SMALL[name]
    system, model = load_system(name, **options), psconrl.load(name, **options)
    best = psconrl.plan(model)

    def score(agent, seed):
        total = psconrl.simulate(model, agent, 3000, seed=seed).cumulative[-1]
        over = np.maximum(total[1:] - 3000 * model.thresholds, 0.0)
        return total[0] - 3000 * best.costs[0] + 2.0 * over @ best.multipliers

    sizes = model.n_states, model.n_actions, model.thresholds
    seeds = range(4 if full else 2)
    knowing = [score(psconrl.PSConRL.of(system, seed=k), k) for k in seeds]
    nothing = [score(psconrl.PSConRL(*sizes, model.costs, seed=k), k) for k in seeds]
    assert sum(knowing) < 0.5 * sum(nothing)


SAMPLERS = {name: cls for name, cls in CLASSES.items() if issubclass(cls, Sampler)}
NEEDED = {"psconrl-account": {"horizon": 300}}  # options without which an agent cannot be made
ONE_LIMIT = [("psconrl-account", "inventory")]  # agents for one limit, and a system with two


@pytest.mark.parametrize("environment", ["inventory", "network"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_class_of_samplers_can_know_a_system(name, environment):
    if (name, environment) in ONE_LIMIT:
        with pytest.raises(AgentError, match="serves models with one constraint; got 2"):
            SAMPLERS[name].of(load_system(environment, **SMALL[environment]), seed=1, **NEEDED[name])
        return
    agent = SAMPLERS[name].of(load_system(environment, **SMALL[environment]), seed=1, **NEEDED.get(name, {}))
    trace = psconrl.simulate(load_system(environment, known=True, **SMALL[environment]), agent, 300, seed=2)
    assert trace.rounds[-1] == 300
    np.testing.assert_allclose(agent._episode_costs(), agent.belief.costs())
    assert agent.belief.impossible == 0


@pytest.mark.parametrize("name", ["psconrl", "psconrl-paper", "cmdp-psrl", "ps-curl", "lagrangian"])
def test_recipes_take_the_belief(name):
    system = load_system("inventory", **SMALL["inventory"])
    structure = system.structure
    sizes = structure.n_states, structure.n_actions, system.thresholds
    agent = make(name, *sizes, seed=1, belief=Structured(structure))
    psconrl.simulate(load_system("inventory", known=True, **SMALL["inventory"]), agent, 300, seed=2)
    np.testing.assert_allclose(agent.belief.parameters["demand"], [1 / 8, 3 / 8, 3 / 8, 1 / 8], atol=0.15)


def test_errors():
    with pytest.raises(ModelError, match="unknown system 'marsrover'"):
        load_system("marsrover")
    with pytest.raises(ConfigError, match="did you mean 'capacity'"):
        load_system("queue", capacty=3)
    with pytest.raises(ModelError, match="did you mean 'demand'"):
        load_system("inventory", known=True).with_unknown("demnd")


def test_systems_are_read_from_the_files_that_models_are_read_from(tmp_path):
    described = load_system("inventory", **SMALL["inventory"])
    for file in (tmp_path / "shop.toml", tmp_path / "shop.json"):
        described.save(file)
        assert list(load_system(file).source.unknown()) == ["demand"]
        known = load_system(file, known=True, demand=[0.1, 0.4, 0.4, 0.1])
        assert not known.source.unknown()
        assert fingerprint(known.model()) == fingerprint(psconrl.load(file, demand=[0.1, 0.4, 0.4, 0.1]))
    psconrl.save(psconrl.load("queue"), tmp_path / "queue.npz")
    for name in (tmp_path / "queue.npz", tmp_path / "queue.drn", "riverswim", "gym:FrozenLake-v1"):
        with pytest.raises(ConfigError, match="is no System"):
            load_system(name)
