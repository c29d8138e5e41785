"""The command line on systems: everything in the terms in which it was stated."""

import json
import re

import pytest
from click.testing import CliRunner

import psconrl
from psconrl import Units
from psconrl.cli import app
from psconrl.cli.options import pairs
from psconrl.errors import ConfigError, InfeasibleError, ModelError, PsconrlError
from psconrl.systems.noise import Poisson
from psconrl.systems.priors import Gamma
from psconrl.systems.system import System

LIMITS = ["lost / demand <= 2%", "P(shelf == 0) <= 30%", "cvar90(lost) <= 0.4"]


def shop(**statement):
    statement = {"minimise": "money", "limits": LIMITS} | statement
    return System(
        state={"shelf": range(9)}, action={"order": range(5)}, available="shelf + order <= 8",
        noise={"demand": Poisson(Gamma(2, 1), most=8)}, step={"shelf": "max(shelf + order - demand, 0)"},
        costs={"lost": "max(demand - shelf - order, 0)", "money": "0.3 * shelf + order + 2 * (order > 0)"},
        units=Units(round="day", counted={"money": "euro", "lost": "piece", "demand": "piece"}), **statement,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a command on a file with the shop, whose demand is 2.3; return its output, or raise its error."""
    folder = tmp_path_factory.mktemp("shop")
    shop().save(folder / "shop.toml")

    def call(command, *args, code=0, statement=None):
        name = "shop.toml"
        if statement is not None:
            name = "other.toml"
            shop(**statement).save(folder / name)
        result = CliRunner().invoke(app, [command, str(folder / name), "--set", "demand=2.3", *args])
        if isinstance(result.exception, PsconrlError):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.output

    return call


@pytest.fixture(scope="module")
def answer():
    return psconrl.plan(shop(), demand=2.3)


def cells(output, name):
    """The cells of the row of a table that begins with a name."""
    lines = [line.strip().split("│")[1:-1] for line in output.splitlines() if line.startswith("│")]
    return next([cell.strip() for cell in line] for line in lines if line[0].strip() == name)


def test_solve_shows_every_limit_as_stated(run, answer):
    shown = run("solve")
    assert cells(shown, "money (minimise)")[1] == f"{answer.value:.8g} euro a day"
    assert cells(shown, "lost / demand")[1:3] == [f"{100 * answer.averages['lost / demand']:.8g}%", "<= 2%"]
    assert cells(shown, "P(shelf == 0)")[2:] == ["<= 30%", "not binding"]
    assert cells(shown, "cvar90(lost)")[2:] == ["<= 0.4", str(answer.prices["cvar90(lost)"])]
    assert cells(shown, "lost")[1] == f"{answer.averages['lost']:.8g} piece a day"
    assert "limit on lost / demand over 2%: kept" in shown
    assert " * demand" not in shown


def test_solve_writes_json_as_stated(run, answer):
    record = json.loads(run("solve", "--json"))
    assert record["stated"] == json.loads(json.dumps(answer.record()))
    assert record["stated"]["limits"]["cvar90(lost)"]["limit"] == "cvar90(lost) <= 0.4"
    assert record["stated"]["value"] == pytest.approx(record["value"])


def test_another_method_plans_the_same_linear_model(run, answer):
    assert cells(run("solve", "--method", "lp"), "money (minimise)")[1] == f"{answer.value:.8g} euro a day"


@pytest.mark.parametrize(
    ("option", "limit"),
    [
        (("--threshold", "P(shelf == 0)=5%"), {"P(shelf == 0)": 0.05}),
        (("--threshold", "P(shelf == 0)=0.05"), {"P(shelf == 0)": 0.05}),
        (("--limit", "P(shelf == 0) <= 5%"), {"P(shelf == 0)": 0.05}),
        (("--limit", "p90(shelf) <= 5"), ["p90(shelf) <= 5"]),
        (("--limit", "shelf >= 2", "--threshold", "lost / demand=4%"), ["shelf >= 2", "lost / demand <= 4%"]),
    ],
)
def test_limits_are_changed_and_added(run, option, limit):
    record = json.loads(run("solve", "--json", *option))["stated"]
    expected = psconrl.plan(shop().with_limits(limit), demand=2.3)
    assert record["value"] == pytest.approx(expected.value)
    assert list(record["limits"]) == [one.name for one in expected.asked.statement.requirements]


def test_names_may_contain_equality_signs():
    assert pairs("--threshold", ("P(x == 1)=5%", " a / b = 2 ")) == {"P(x == 1)": 0.05, "a / b": 2.0}
    for wrong in ("x", "=1", "x=", "x=1%2", "x=a", "x <=1", "x ==1"):
        with pytest.raises(ConfigError, match="--threshold: must be NAME=VALUE with a number"):
            pairs("--threshold", (wrong,))


def test_infeasible_limits_are_explained_as_stated(run):
    shown = " ".join(run("solve", "--limit", "P(order > 0) <= 5%", code=3).split())
    assert "INFEASIBLE" in shown
    said = r"o policy keeps .* and 'P\(order > 0\)' <= 0.05 together\. Raise 'P\(order > 0\)' to 0\.\d+\."
    assert re.search(said, shown)
    with pytest.raises(InfeasibleError, match=said):
        run("explain", "--limit", "P(order > 0) <= 5%", "--state", "shelf=3")


def test_inspect_shows_the_ranges_of_what_is_stated(run):
    shown = run("inspect")
    least, largest = cells(shown, "lost / demand")[1:3]
    assert largest == "100%"
    assert 0.0 < float(least.removesuffix("%")) < 1.0
    assert cells(shown, "cvar90(lost) (piece)")[2:] == ["?", "<= 0.4"]
    stated = {row["name"]: row for row in json.loads(run("inspect", "--json"))["stated"]}
    assert 100 * stated["lost / demand"]["least"] == pytest.approx(float(least.removesuffix("%")), rel=1e-6)
    assert list(stated) == ["money", "lost / demand", "P(shelf == 0)", "cvar90(lost)", "lost"]


def test_pareto_varies_what_is_stated(run, tmp_path):
    picture = tmp_path / "curve.png"
    curve = json.loads(
        run("pareto", "--constraint", "cvar90(lost)", "--from", "0.4", "--to", "0.6", "--points", "3", "--json")
    )
    expected = psconrl.pareto(shop(), "cvar90(lost)", [0.4, 0.5, 0.6], demand=2.3)
    assert [point["value"] for point in curve["curve"]] == pytest.approx(expected.values)
    assert [point["shadow_price"] for point in curve["curve"]] == pytest.approx(expected.prices)
    shown = run("pareto", "--constraint", "lost / demand", "--points", "2", "--plot", str(picture))
    assert "lost / demand <=" in shown
    here = psconrl.plan(shop(), demand=2.3)
    price = here.prices["lost / demand"].amount
    assert f"In force, lost / demand <= 0.02: money {here.value:.8g}, shadow price {price:.8g}" in shown
    assert picture.stat().st_size > 1000
    with pytest.raises(ConfigError, match="did you mean 'lost / demand'"):
        run("pareto", "--constraint", "lost / deman")
    assert "--constraint is needed; one or two of: lost / demand, P(shelf == 0)" in run("pareto", code=2)


def test_pareto_varies_two_of_what_is_stated(run, tmp_path):
    two = ("--constraint", "lost / demand", "--constraint", "cvar90(lost)", "--points", "2")
    picture = tmp_path / "surface.png"
    surface = json.loads(run("pareto", *two, "--json", "--plot", str(picture)))["surface"]
    assert picture.stat().st_size > 1000
    for point in surface:
        expected = psconrl.plan(shop().with_limits(point["thresholds"]), demand=2.3)
        assert point["value"] == pytest.approx(expected.value, rel=1e-6)
        prices = {name: expected.prices[name].amount for name in point["thresholds"]}
        assert point["shadow_prices"] == pytest.approx(prices, rel=1e-4, abs=1e-6)
    assert "a column for each limit on cvar90(lost) (piece)" in " ".join(run("pareto", *two).split())


def test_explain_counts_what_is_stated(run, answer):
    shown = run("explain", "--state", "shelf=3")
    assert "loses (euro)" in shown
    assert f"Prices: {psconrl.explain(answer, {'shelf': 3}).prices[0]}" in shown
    assert all(line in shown for line in answer.plan.proven)
    record = json.loads(run("explain", "--state", "3", "--json"))
    assert record == json.loads(json.dumps(psconrl.explain(answer, {"shelf": 3}).record()))


def test_rule(run, answer, tmp_path):
    table, rule = tmp_path / "rule.csv", psconrl.rule(answer, 1)
    shown = run("rule", "--depth", "1", "--policy", str(table))
    assert str(rule) in " ".join(shown.split())
    assert cells(shown, "money (minimise)")[1] == f"{rule.value:.8g} euro a day"
    assert table.read_text().startswith("state,action,probability")
    assert json.loads(run("rule", "--depth", "1", "--json")) == json.loads(json.dumps(rule.record()))


def test_a_ratio_as_objective(run):
    value = psconrl.plan(shop(minimise="money / demand", limits=LIMITS[:1]), demand=2.3).value
    statement = {"minimise": "money / demand", "limits": LIMITS[:1]}
    assert cells(run("solve", statement=statement), "money / demand (minimise)")[1] == f"{value:.8g} euro per piece"
    assert "money / demand" in run("explain", "--state", "shelf=3", statement=statement)


def test_what_only_systems_have(run):
    other = CliRunner().invoke(app, ["solve", "queue", "--limit", "delay <= 1"])
    assert "--limit with a System" in str(other.exception)
    with pytest.raises(ConfigError, match="has its objective in its file"):
        run("solve", "--minimise", "lost")
    with pytest.raises(ModelError, match="a limit must be a text"):
        run("solve", "--limit", "lost <= x")
