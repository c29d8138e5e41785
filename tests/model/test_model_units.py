"""Units of costs: shown in tables and files, without changing any number."""

import json

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, ModelError, Units, load, plan, save
from psconrl.cli import main
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.metrics import measures
from psconrl.report.page_contents import build
from sweeps import AtOnce

ONE = {"transition": [[[1.0]]], "costs": [[[2.0]], [[3.0]]], "thresholds": [5.0]}


def model(**options):
    return CMDP([[[1.0]]], [[[2.0]], [[3.0]]], [5.0], cost_names=["cost", "delay"], **options)


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        ("hour", "euro an hour"),
        ("day", "euro a day"),
        ("year", "euro a year"),
        ("eighth", "euro an eighth"),
        ("unit of time", "euro a unit of time"),
        ("15 minutes", "euro per 15 minutes"),
        ("", "euro a round"),
    ],
)
def test_a_rate_in_words(duration, words):
    assert Units(duration, {"cost": "euro"}).average("cost") == words


def test_totals_and_prices():
    units = Units("hour", {"cost": "euro"}, {"delay": "patients"})
    assert (units.total("cost"), units.total("delay"), units.total("risk")) == ("euro", "patients x hour", "")
    assert units.price("delay", "cost") == "euro an hour per patients"
    assert units.price("risk", "cost") == ""
    assert units.with_unit("3", "delay") == "3 patients"
    assert units.with_unit("3", "risk") == "3"


def test_units_change_no_number():
    plain, said = plan(model()), plan(model(units=Units("day", {"cost": "euro"})))
    assert plain.value == said.value
    assert np.array_equal(plain.costs, said.costs)


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_units_survive_a_file(ending, tmp_path):
    units = Units("day", {"cost": "euro"}, {"delay": "patients"})
    save(model(units=units), tmp_path / f"m{ending}")
    assert load(tmp_path / f"m{ending}").units == units
    save(model(), tmp_path / f"plain{ending}")
    assert load(tmp_path / f"plain{ending}").units == Units()


def test_a_model_by_hand(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(
        json.dumps(ONE | {"cost_names": ["cost", "delay"], "units": {"round": "day", "counted": {"cost": "euro"}}})
    )
    assert load(path).units.average("cost") == "euro a day"


@pytest.mark.parametrize(
    ("units", "says"),
    [
        ({"rounds": "day"}, "unknown field of units 'rounds'; did you mean 'round'?"),
        ({"counted": {"costs": "euro"}}, "units: unknown cost 'costs'; did you mean 'cost'?"),
        ({"counted": "euro"}, "units: counted must map names of costs to units; got 'euro'"),
        ({"round": 15}, "units: round must be text such as 'hour'; got 15"),
        ({"counted": {"cost": ""}}, "units: that of 'cost' must be text such as 'euro'; got ''"),
        ({"counted": {"cost": "a\nb"}}, "units: that of 'cost' must be text such as 'euro'; got 'a\\nb'"),
        ({"counted": {"cost": "euro"}, "levels": {"cost": "euro"}}, "units: 'cost' is either counted or a level"),
        ("euro", "units must be psconrl.Units or a mapping with round, counted, levels; got 'euro'"),
    ],
)
def test_bad_units(units, says):
    with pytest.raises(ModelError) as error:
        model(units=units)
    assert str(error.value).startswith(says)


def test_parts_and_other_limits_keep_their_units():
    inventory = load("inventory")
    assert inventory.with_thresholds({"lost": 1}).units == inventory.units
    assert inventory.restricted(np.arange(inventory.n_states)).units == inventory.units
    assert plan(inventory).names.units == inventory.units


def test_tables_say_them(capsys):
    for command, words in (
        (["solve", "inventory"], ["euro a day", "sales a day", "orders a day"]),
        (["inspect", "inventory"], ["holding (euro a day)", "lost (sales a day)"]),
        (
            ["pareto", "inventory", "--constraint", "lost", "--points", "2"],
            ["lost (sales a day) <=", "holding (euro a day)"],
        ),
        (["explain", "inventory", "--state", "2"], ["holding (euro)", "lost (sales)"]),
        (["learn", "inventory", "--horizon", "200"], ["holding (euro a day)", "orders (orders a day)"]),
    ):
        with pytest.raises(SystemExit) as end:
            main(command)
        out = capsys.readouterr().out
        assert not end.value.code
        for word in words:
            assert word in out, (command, word)
    record = plan(load("inventory")).record()
    assert record["units"] == {"holding": "euro a day", "lost": "sales a day", "orders": "orders a day"}


def test_a_trace_knows_them():
    inventory = load("inventory")
    agent = psconrl.PSConRL(inventory.n_states, inventory.n_actions, inventory.thresholds, inventory.costs, seed=0)
    assert psconrl.simulate(inventory, agent, horizon=20, seed=0).units == inventory.units


@pytest.mark.full
def test_pages_and_tables_of_a_sweep_say_them(tmp_path):
    spec = '[experiments.shop]\nenv = "inventory"\nagents = ["uniform"]\nhorizon = 60\nreplicates = 2'
    run_sweep(parse_spec(spec).jobs(), tmp_path / "r.db", executor=AtOnce())
    with Store(tmp_path / "r.db") as store:
        (experiment,) = build(store)["experiments"]
        (read,) = read_experiments(store)
    assert [panel["y"] for panel in experiment["panels"]] == [
        "cumulative, signed, euro", "cumulative, signed, sales", "cumulative, signed, orders",
        "of the policies played, exact, sales", "of the policies played, exact, orders",
        "of all rounds so far, sales", "of all rounds so far, orders",
        "average so far, euro a day", "average so far, sales a day", "average so far, orders a day",
    ]  # fmt: skip
    assert ["limit on lost", "0.3 sales a day"] in experiment["facts"]
    titles = [measure.title for measure in measures([read], ["regret", "violation", "objective", "cost"])]
    assert titles == [
        "regret, euro", "violation (lost), sales", "violation (orders), orders", "average holding, euro a day",
        "average lost, sales a day", "average orders, orders a day",
    ]  # fmt: skip
