"""Systems in files: TOML and JSON hold data only, and come back as the same system."""

import json

import numpy as np
import pytest

import psconrl
from psconrl.errors import ConfigError, ModelError
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Categorical, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

SHOP = """
version = 1
minimise = "holding + 5 * lost"
limits = ["lost <= 0.3"]
available = "shelf + order <= 4"
start = { shelf = 4 }

[state]
shelf = { from = 0, to = 4 }

[action]
order = 3

[noise.demand]
distribution = "poisson"
rate = { prior = "gamma", about = 1.5, worth = 4 }
most = 6

[step]
shelf = "max(shelf - demand, 0) + order"

[costs]
holding = "shelf"
lost = "max(demand - shelf, 0)"
"""


def shop(**changes):
    given = {
        "state": {"shelf": range(5)},
        "action": {"order": range(3)},
        "noise": {"demand": Poisson(Gamma.about(1.5, worth=4), most=6)},
        "step": {"shelf": "max(shelf - demand, 0) + order"},
        "costs": {"holding": "shelf", "lost": "max(demand - shelf, 0)"},
        "available": "shelf + order <= 4",
        "start": {"shelf": 4},
        "minimise": "holding + 5 * lost",
        "limits": ["lost <= 0.3"],
    }
    return System(**given | changes)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shop.toml"
    path.write_text(SHOP)
    return path


def same(one, two):
    np.testing.assert_array_equal(one.transition.toarray(), two.transition.toarray())
    np.testing.assert_array_equal(one.costs, two.costs)
    np.testing.assert_array_equal(one.thresholds, two.thresholds)
    np.testing.assert_array_equal(one.available, two.available)
    np.testing.assert_array_equal(one.initial, two.initial)
    assert one.cost_names == two.cost_names
    assert one.state_names == two.state_names
    assert one.units == two.units


def test_a_file_written_by_hand_is_the_system_of_the_same_arguments(file):
    same(System.load(file).model(demand=1.3), shop().model(demand=1.3))
    same(psconrl.load(file, demand=1.3), shop().model(demand=1.3))


p = Beta(2, 3, shared="p")
SYSTEMS = {
    "shop": (shop(), {"demand": 1.3}),
    "maximise": (
        shop(minimise=None, maximise="-lost", limits=["holding >= 1"],
            units={"round": "day", "levels": {"-lost": "x"}}),
        {"demand": 0.5},
    ),
    "noise": (
        System(
            state={"n": [0, 1, 2, 3], "mood": ["good", "bad"], "x": [0.5, -1.0, 2.5], "y": range(3, 9)},
            action={"staff": [1, 2]},
            noise={
                "a": Binomial("n", p), "b": Bernoulli(p), "c": Bernoulli("0.1 * staff"), "d": Geometric(0.5, most=2),
                "e": Categorical(["good", "bad"], prior=[1, 2]), "f": Categorical([0.5, 2.5], [0.25, 0.75]),
                "g": Poisson(0.5, most=2, times="staff"),
            },
            step={"n": "min(n - a + b + g, 3)", "mood": "e", "x": "f", "y": "3 + min(d + c, 5)"},
            costs={"cost": "n + (1 if mood == 'bad' else 0)", "fixed": 2.5},
            start={"n": 0, "mood": "bad", "x": -1.0, "y": 3},
            minimise="cost",
            limits=["p95(n) <= 2", "n / (fixed + n) <= 0.7", "P(mood == 'bad') <= 0.8"],
        ),
        {"a": 0.3, "e": [0.5, 0.5]},
    ),
    "events": (
        System(
            state={"n": range(4)},
            action={"fast": [0, 1]},
            events={
                "arrival": Event(Gamma(2, 1), {"n": "n + 1"}, when="n < 3"),
                "service": Event(1.5, {"n": "n - 1"}, times="2 if fast == 1 else 1", when="n > 0"),
                "audit": Event(0.1, costs={"waiting": "n"}),
            },
            clock=6.5,
            costs={"waiting": "n", "speed": "fast"},
            minimise="waiting",
            limits=["speed <= 0.5"],
        ),
        {"arrival": 1.2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("ending", [".toml", ".json"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_saved_system_comes_back(name, ending, tmp_path):
    system, known = SYSTEMS[name]
    system.save(tmp_path / f"it{ending}")
    again = System.load(tmp_path / f"it{ending}")
    assert again.to_dict() == system.to_dict()
    same(again.model(**known), system.model(**known))
    assert repr(again.source.unknown()) == repr(system.source.unknown())
    assert set(again.structure.randomness.priors) == set(system.structure.randomness.priors)  # shared ones are shared


def test_known_values_are_saved_too():
    again = System.from_dict(shop().with_noise(demand=1.25).to_dict())
    same(again.model(), shop().model(demand=1.25))


def test_other_thresholds_are_saved_too():
    system = shop(limits=["lost / demand <= 0.1", "holding >= 1"])
    other = system.with_thresholds({"holding": 2.0})
    assert other.thresholds.tolist() == [0.0, -2.0]
    same(System.from_dict(other.to_dict()).model(demand=1.0), other.model(demand=1.0))
    with pytest.raises(ModelError, match=r"unknown.*'holdin'"):
        system.with_thresholds({"holdin": 2.0})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"step": lambda shelf: {"shelf": shelf}, "noise": None, "costs": {"holding": "shelf", "lost": 0}},
            "the step is",
        ),
        ({"step": {"shelf": lambda shelf, demand: shelf}}, "the step of 'shelf' is"),
        ({"costs": {"holding": "shelf", "lost": lambda demand: demand}}, "the cost 'lost' is"),
        ({"available": lambda shelf: True}, "available is"),
        ({"noise": {"demand": Poisson(lambda shelf: 1.0, most=6)}}, "rate of 'demand' is"),
    ],
)  # fmt: skip
def test_python_code_is_not_written(changes, said):
    with pytest.raises(ModelError, match=f"^{said} Python code, which a file cannot hold; write it as an expression$"):
        shop(**changes).to_dict()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("minimise", "minimize", "unknown key 'minimize'; did you mean 'minimise'?"),
        ("version = 1", "version = 2", "format version 2 is not known here (newest: 1); update psconrl"),
        ("[step]", "[steps]", "unknown key 'steps'; did you mean 'step'?"),
        ('"poisson"', '"poison"', "[noise.demand] unknown distribution 'poison'; did you mean 'poisson'?"),
        ("most = 6", "", "[noise.demand] most is missing"),
        ("most = 6", "most = 6\ntime = 2", "[noise.demand] unknown key 'time'; did you mean 'times'?"),
        ("most = 6", 'most = "six"', "[noise.demand] most must be a number; got 'six'"),
        ("about = 1.5, worth = 4", "about = 1.5", "[noise.demand] rate: a gamma prior needs shape and rate, or about"),
        ("about = 1.5, worth = 4", "shape = 2", "[noise.demand] rate: a gamma prior needs shape and rate, or about"),
        ("about = 1.5, worth = 4", "shap = 2", "[noise.demand] rate: unknown key 'shap'; did you mean 'shape'?"),
        ('prior = "gamma"', 'prior = "normal"', "[noise.demand] rate must be a number, or have a prior, one of gamma"),
        ('"max(demand - shelf, 0)"', '"max(demnd - shelf, 0)"', "unknown variable 'demnd'; did you mean 'demand'?"),
        ('"max(demand - shelf, 0)"', "true", "[costs] lost must be an expression or a number; got True"),
        ('"max(demand - shelf, 0)"', "[1]", "[costs] lost must be an expression or a number; got [1]"),
        ("to = 4", "upto = 4", "[state] shelf unknown key 'upto'"),
        ("to = 4", "by = 4", "[state] shelf a range needs from and to"),
        ("from = 0", "from = 0.5", "[state] shelf from, to and by must be whole numbers"),
        ('["lost <= 0.3"]', '"lost <= 0.3"', "limits must be a list or a table; got 'lost <= 0.3'"),
        ("[costs]", "[costs", "not valid TOML"),
        ("{ shelf = 4 }", "{ shelf = 9 }", "start: 'shelf' has the values 0, 1, 2, 3, 4; got 9"),
        ('"max(demand - shelf, 0)"', '"__import__(1)"', "unknown function '__import__'"),
        ('"max(demand - shelf, 0)"', '"(1).real"', "'1 .real' is not allowed"),
    ],
)
def test_mistakes_in_a_file_are_answered_in_one_line(file, old, new, said):
    assert old in SHOP
    file.write_text(SHOP.replace(old, new))
    with pytest.raises((ModelError, ConfigError)) as caught:
        psconrl.load(file, demand=1.0)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_an_unknown_parameter_has_to_be_given(file):
    with pytest.raises(ConfigError, match="'demand' has an unknown parameter; give its value, as in --set demand="):
        psconrl.load(file)
    with pytest.raises(ConfigError, match="unknown noise or event 'deman'; did you mean 'demand'"):
        psconrl.load(file, deman=2)


@pytest.mark.parametrize(
    ("table", "name", "said"),
    [
        ('{ distribution = "categorical", values = [0, 1, 2], prior = 1 }', "demand", "--set demand=0.1,0.2,..."),
        ('{ distribution = "joint", values = [[0, 1], [1, 1], [2, 0]], prior = 1 }', '"demand, sky"',
         """--set "demand, sky"=0.1,0.2,..., load(..., **{'demand, sky': [0.1, 0.2, ...]})"""),
    ],
)  # fmt: skip
def test_unknown_probabilities_have_to_be_given_together(tmp_path, table, name, said):
    path = tmp_path / "shop.toml"
    paid = "order * sky" if "sky" in name else "order"
    path.write_text(
        "version = 1\nminimise = 'paid'\nstate = { shelf = 3 }\naction = { order = 2 }\n"
        f"noise = {{ {name} = {table} }}\ncosts = {{ paid = '{paid}' }}\n"
        "step = { shelf = 'min(max(shelf - demand, 0) + order, 2)' }\n"
    )
    with pytest.raises(ConfigError) as caught:
        psconrl.load(path)
    assert f"has 3 unknown probabilities; give all of them, as in {said}" in str(caught.value)
    assert psconrl.load(path, **{name.strip('"'): [0.5, 0.25, 0.25]}) is not None


HOSTILE = {
    "a variable of 10^12 values": ("{ from = 0, to = 4 }", "1_000_000_000_000"),
    "a range of 10^30 values": ("{ from = 0, to = 4 }", "{ from = 0, to = 1_000_000_000_000_000_000_000_000_000_000 }"),
    "10^9 actions": ("order = 3", "order = 40_000\nother = 40_000"),
    "many states": ("{ from = 0, to = 4 }", "5\nx = 100_000\ny = 100_000"),
    "a rate that depends on too many states": (
        "{ from = 0, to = 4 }", "5\nx = 100_000\ny = 100_000"
    ),
    "deep lists": ("order = 3", f"order = {'[' * 400}{']' * 400}"),
    "a long expression": ('"max(demand - shelf, 0)"', '"' + "1 + " * 2000 + '1"'),
    "a deep expression": ('"max(demand - shelf, 0)"', '"' + "-" * 1900 + '1"'),
    "a tower of powers": ('"max(demand - shelf, 0)"', '"9 ** 9 ** 9 ** 9 ** 9"'),
    "many outcomes": ("most = 6", "most = 9_999\n" + "".join(
        f'[noise.x{k}]\ndistribution = "poisson"\nrate = 50\nmost = 9_999\n' for k in range(4))),
    "a large number of trials": ("[step]", '[noise.x]\ndistribution = "binomial"\nn = 1e18\np = 0.5\n[step]'),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_fail_quickly(case, file, monkeypatch):
    old, new = HOSTILE[case]
    text = SHOP.replace(old, new)
    if case == "many outcomes":
        text = text.replace(
            '"max(shelf - demand, 0) + order"',
            '"shelf + 0 * (sqrt(demand) + exp(x0) + log(1 + x1) + exp(sqrt(x2)) + sqrt(x3))"',
        )
    if case == "a rate that depends on too many states":
        text = text.replace('{ prior = "gamma", about = 1.5, worth = 4 }', '"1 + 0 * x"')
    if case in ("many states", "a rate that depends on too many states"):
        text = text.replace("{ shelf = 4 }", "{ shelf = 4, x = 0, y = 0 }").replace(
            "[step]", '[step]\nx = "min(x + demand, 99_999)"\ny = "min(y + order, 99_999)"'
        )
        monkeypatch.setenv("PSCONRL_MEMORY_GB", "0.02")
    assert text != SHOP
    file.write_text(text)
    with pytest.raises((ModelError, ConfigError)) as caught:
        psconrl.load(file, **({} if "rate" in case else {"demand": 1.0}))
    assert len(str(caught.value)) < 2500


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"format": "psconrl-system", "state": NaN}', "[" * 5000])
def test_damaged_json_is_refused(tmp_path, text):
    path = tmp_path / "it.json"
    path.write_text(text)
    with pytest.raises(ModelError):
        System.load(path)


def test_a_model_in_json_is_still_a_model(tmp_path):
    model = shop().model(demand=1.0)
    psconrl.save(model, tmp_path / "model.json")
    same(psconrl.load(tmp_path / "model.json"), model)
    (tmp_path / "it.json").write_text(json.dumps(shop().to_dict()))
    same(psconrl.load(tmp_path / "it.json", demand=1.0), model)
