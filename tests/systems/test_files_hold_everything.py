"""Whatever a constructor takes, the file has: random systems over all constructors and arguments come back."""

import inspect

import numpy as np
import pytest

import psconrl
from psconrl.errors import ModelError
from psconrl.systems import reading
from psconrl.systems.events import Event
from psconrl.systems.noise import KINDS, Bernoulli, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.signatures import arguments_of
from psconrl.systems.system import System
from random_systems import drawn, random_system


@pytest.mark.parametrize("seed", range(30))
def test_a_random_system_comes_back(seed, tmp_path):
    system, known = random_system(seed)
    model, answer = system.model(**known), psconrl.plan(system, **known)
    for ending in (".toml", ".json"):
        system.save(tmp_path / f"it{ending}")
        again = System.load(tmp_path / f"it{ending}")
        assert again.to_dict() == system.to_dict()
        assert repr(again.source.unknown()) == repr(system.source.unknown())
        other = again.model(**known)
        np.testing.assert_array_equal(other.transition.toarray(), model.transition.toarray())
        np.testing.assert_array_equal(other.costs, model.costs)
        np.testing.assert_array_equal(other.thresholds, model.thresholds)
        np.testing.assert_array_equal(other.available, model.available)
        np.testing.assert_array_equal(other.initial, model.initial)
        assert (other.state_names, other.action_names) == (model.state_names, model.action_names)
        assert (other.cost_names, other.units) == (model.cost_names, model.units)
        assert str(psconrl.plan(again, **known)) == str(answer)


def test_random_systems_have_every_argument():
    data = [random_system(seed)[0].to_dict() for seed in range(40)]
    keys = {key for one in data for key in one}
    assert keys == set(arguments_of(System)) | {"format", "version"}
    noises = [noise for one in data for noise in one.get("noise", {}).values()]
    for name, kind in KINDS.items():
        own = [noise for noise in noises if noise["distribution"] == name]
        assert {key for noise in own for key in noise} == {*arguments_of(kind), "distribution"}, name
    events = [event for one in data for event in one.get("events", {}).values()]
    assert {key for event in events for key in event} == set(arguments_of(Event))
    priors = [x for one in (*noises, *events) for x in one.values() if isinstance(x, dict) and "prior" in x]
    for kind in (Gamma, Beta):
        own = {key for prior in priors if prior["prior"] == kind.name for key in prior} - {"prior", "shared"}
        assert own == set(arguments_of(kind)) - {"shared"}
    assert any("shared" in prior for prior in priors)


class Delayed(Bernoulli):
    """A noise with a new argument that no file holds."""

    def __init__(self, p, when=1, delay=0):
        super().__init__(p, when)


def test_a_new_argument_that_is_not_written_fails():
    with pytest.raises(KeyError, match="delay"):
        Delayed(0.5).description()
    with pytest.raises(KeyError, match="delay"):
        reading.forms_of(Delayed, reading.NOISE_FORMS)


@pytest.mark.parametrize("kind", [*KINDS.values(), Event, Gamma, Beta])
def test_descriptions_are_arguments(kind):
    """What ``description`` returns makes the same object, and the defaults of the signature are left out."""
    for seed in range(20):
        one = drawn(np.random.default_rng(seed), kind)
        if kind is Event:
            continue
        given = one.description()
        assert repr(kind(**given)) == repr(one)
        defaults = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
        assert not any(value is defaults[name] for name, value in given.items())


def test_the_reader_knows_exactly_the_keys_of_the_constructors():
    for name, kind in KINDS.items():
        assert set(reading.NOISE_KEYS[name]) == set(inspect.signature(kind).parameters)
    assert set(reading.EVENT_KEYS) == set(inspect.signature(Event).parameters)
    assert set(reading.SYSTEM_FORMS) == set(inspect.signature(System).parameters)


def test_a_condition_of_a_bernoulli_is_kept(tmp_path):
    queue = System(
        state={"waiting": range(5), "clerks": [1, 2]},
        action={"hire": [0, 1]},
        noise={"second": Bernoulli(0.4, when="clerks == 2 and waiting > 0"), "arrival": Bernoulli(0.5)},
        step={"waiting": "min(waiting - second + arrival, 4)", "clerks": "1 + hire"},
        costs={"cost": "waiting + hire"},
        minimise="cost",
    )
    queue.save(tmp_path / "queue.toml")
    assert psconrl.plan(System.load(tmp_path / "queue.toml")).value == psconrl.plan(queue).value
    assert psconrl.plan(queue).value == pytest.approx(
        psconrl.plan(queue.with_noise(second=Bernoulli("0.4 * (clerks == 2) * (waiting > 0)"))).value
    )


def pair(first, second):
    return System(
        state={"a": 2, "b": 2},
        action={"wait": 1},
        noise={"u": Bernoulli(first), "v": Bernoulli(second)},
        step={"a": "u", "b": "v"},
        costs={"cost": "a + 2 * b"},
        minimise="cost",
    )


def test_one_prior_object_is_two_parameters():
    p = Beta(1, 1)
    system = pair(p, p)
    assert list(system.structure.randomness.priors) == ["u", "v"]
    assert psconrl.plan(system, u=0.3, v=0.4).value == pytest.approx(0.3 + 2 * 0.4)
    again = System.from_dict(system.to_dict())
    assert list(again.structure.randomness.priors) == ["u", "v"]


def test_a_shared_parameter_is_one():
    system = pair(Beta(1, 1, shared="p"), Beta(1, 1, shared="p"))
    assert list(system.structure.randomness.priors) == ["u"]
    assert (
        psconrl.plan(system, u=0.3).value
        == psconrl.plan(system, v=0.3).value
        == psconrl.plan(system, u=0.3, v=0.3).value
    )
    assert psconrl.plan(system, u=0.3).value == pytest.approx(0.9)
    with pytest.raises(ModelError, match=r"'v' shares the parameter 'p', and cannot have two values; got 0.3 and 0.4"):
        psconrl.plan(system, u=0.3, v=0.4)
    assert list(system.with_unknown("v").structure.randomness.priors) == ["u"]
    replaced = system.with_noise(v=Bernoulli(0.4))
    assert psconrl.plan(replaced, u=0.3).value == pytest.approx(0.3 + 2 * 0.4)


def test_rates_of_events_share_a_parameter():
    system = System(
        state={"n": range(4)},
        action={"fast": 2},
        events={
            "left": Event(Gamma(2, 1, shared="rate"), {"n": "n + 1"}, when="n < 3"),
            "right": Event(Gamma(2, 1, shared="rate"), {"n": "n - 1"}, when="n > 0", times=2),
        },
        clock=4.0,
        costs={"c": "n + fast"},
        minimise="c",
    )
    assert list(system.structure.randomness.priors) == ["left"]
    weights = np.array([8.0, 4.0, 2.0, 1.0])  # births at half the rate of deaths
    assert psconrl.plan(system, left=np.array([0.7])).value == pytest.approx(weights @ np.arange(4) / weights.sum())
    with pytest.raises(ModelError, match=r"'right' shares the parameter 'rate'"):
        psconrl.plan(system, left=0.7, right=0.8)
    assert list(system.with_unknown("right").structure.randomness.priors) == ["left"]


def test_a_shared_parameter_has_one_prior():
    with pytest.raises(
        ModelError, match=r"'u' and 'v' share 'p', and need the same prior; got Beta\(1, 1, shared='p'\)"
    ):
        pair(Beta(1, 1, shared="p"), Beta(1, 2, shared="p"))
    with pytest.raises(ModelError, match=r"shared must be the name of a parameter, such as 'repair'; got 3"):
        Beta(shared=3)
    counts = {"w": Poisson(Gamma(1, 2, shared="p"), most=2), "x": Poisson(Gamma(1, 2, shared="p"), most=3)}
    shop = System(
        state={"a": 3, "b": 4},
        action={"wait": 1},
        noise=counts,
        step={"a": "w", "b": "x"},
        costs={"cost": "a"},
        minimise="cost",
    )
    assert (
        repr(shop.with_unknown().source.unknown()) == "{'w': Gamma(1, 0.5, shared='p'), 'x': Gamma(1, 0.5, shared='p')}"
    )
