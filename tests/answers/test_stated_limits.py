"""Limits as texts: what they mean, how they are replaced, and what is refused."""

import pytest

import psconrl
from psconrl import ConfigError, ModelError, Units
from psconrl.systems.limits import read_statement
from psconrl.systems.noise import Bernoulli
from psconrl.systems.quantities import Mean, Percentile, Ratio, Shortfall
from psconrl.systems.system import System

KNOWN = frozenset(("lost", "demand", "cost", "waiting", "shift", "overtime"))


def read(*limits, minimise="cost"):
    return read_statement(minimise, None, list(limits), KNOWN)


def rows(*limits):
    return [(row.name, row.threshold, row.at_least) for row in read(*limits).rows[1:]]


@pytest.mark.parametrize(
    ("text", "shown", "expected"),
    [
        ("lost <= 0.1", "lost <= 0.1", [("lost", 0.1, False)]),
        ("lost < 0.1", "lost <= 0.1", [("lost", 0.1, False)]),
        ("lost >= 2", "lost >= 2", [("lost", 2.0, True)]),
        ("0.1 >= lost", "lost <= 0.1", [("lost", 0.1, False)]),
        ("2 * lost + 1 <= 3", "2 * lost + 1 <= 3", [("2 * lost + 1", 3.0, False)]),
        ("lost == 3", "lost == 3", [("lost", 3.0, False), ("lost (at least)", 3.0, True)]),
        ("1 <= lost <= 3", "1 <= lost <= 3", [("lost", 3.0, False), ("lost (at least)", 1.0, True)]),
        ("3 >= lost >= 1", "1 <= lost <= 3", [("lost", 3.0, False), ("lost (at least)", 1.0, True)]),
        ("lost / demand <= 0.02", "lost / demand <= 0.02", [("lost - 0.02 * demand", 0.0, False)]),
        ("lost / demand <= 2%", "lost / demand <= 0.02", [("lost - 0.02 * demand", 0.0, False)]),
        ("lost / demand <= 0", "lost / demand <= 0", [("lost", 0.0, False)]),
        ("1 - lost / demand >= 98%", "1 - lost / demand >= 0.98", [("demand - lost - 0.98 * demand", 0.0, True)]),
        ("P(waiting > 10) <= 5%", "P(waiting > 10) <= 0.05", [("P(waiting > 10)", 0.05, False)]),
        ("P(overtime) <= 0.1", "P(overtime) <= 0.1", [("P(overtime)", 0.1, False)]),
        ("p95(waiting) <= 10", "p95(waiting) <= 10", [("P(waiting > 10)", 0.05, False)]),
        ("p5(waiting) >= 2", "p5(waiting) >= 2", [("P(waiting < 2)", 0.05, False)]),
        ("cvar90(cost, at=7) <= 9", "cvar90(cost, at=7) <= 9", [("cvar90(cost, at=7)", 9.0, False)]),
    ],
)
def test_a_limit_is_a_linear_one(text, shown, expected):
    statement = read(text, minimise="demand")
    assert [str(limit) for limit in statement.requirements] == [shown]
    found = [(row.name, row.threshold, row.at_least) for row in statement.rows[1:]]
    assert [(name, pytest.approx(x), below) for name, x, below in expected] == found


def test_kinds_of_quantities():
    kinds = {text: read(minimise=text).goal for text in ("cost", "cost / demand", "p90(cost)", "cvar90(cost)", "-cost")}
    assert [type(kind) for kind in kinds.values()] == [Mean, Ratio, Percentile, Shortfall, Mean]
    assert str(kinds["cost / demand"].top) == "cost"
    assert str(kinds["cost / demand"].bottom) == "demand"
    assert kinds["cvar90(cost)"].share == pytest.approx(0.9)


def test_conditions_are_ratios():
    ratio = read("P(waiting > 3, given=shift == 'night') <= 0.1").requirements[0].quantity
    assert str(ratio.top) == "(waiting > 3) * (shift == 'night')"
    assert str(ratio.bottom) == "(shift == 'night')" or str(ratio.bottom) == "shift == 'night'"
    assert isinstance(read("mean(waiting, given=overtime) <= 3").requirements[0].quantity, Ratio)


def test_two_texts_about_one_quantity_are_its_two_sides():
    assert [str(limit) for limit in read("lost >= 0", "lost <= 3").requirements] == ["0 <= lost <= 3"]
    with pytest.raises(ModelError, match="limited twice"):
        read("lost <= 2", "lost <= 3")
    with pytest.raises(ModelError, match="at least 4 and at most 3"):
        read("lost >= 4", "lost <= 3")


def test_a_rounding_error_is_not_beyond_a_percentile():
    above = read("p95(lost) <= 0.3").rows[1]
    below = read("p5(lost) >= 0.3").rows[1]
    assert [bool(row.cost({"lost": 0.1 * 3}, 1)) for row in (above, below)] == [False, False]
    assert above.name == "P(lost > 0.3)"
    assert above.cost({"lost": 0.30001}, 1) == 1
    assert below.cost({"lost": 0.29999}, 1) == 1


def test_limits_that_give_the_same_cost_have_different_names():
    names = [name for name, _, _ in rows("p95(waiting) <= 10", "p99(waiting) <= 10")]
    assert len(set(names)) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lost", "must be a text such as"),
        ("lost <= demand", "must be a text such as"),
        ("1 <= lost >= 3", "must be a text such as"),
        ("lost != 3", "must be a text such as"),
        ("lost <= 1e999", "finite"),
        ("losst <= 3", "did you mean 'lost'"),
        ("cost <= 3", "is the objective"),
        ("cvar90(lost) >= 3", "not above"),
        ("cvar0(lost) <= 3", "between 0 and 100"),
        ("cost * P(lost > 3) <= 1", "over all rounds"),
        ("1 + p95(lost) <= 3", "stand alone"),
        ("cost * (lost / demand) <= 3", "not clear whether"),
        ("lost / demand + cost / waiting <= 3", "different denominators"),
        ("cost + lost / demand <= 3", "only a number"),
        ("lost / 0 <= 3", "divides by zero"),
        ("p95(lost, givn=cost) <= 3", "did you mean 'given'"),
        ("cvar90(lost, at=cost) <= 3", "level must be a number"),
        (3, "must be a text"),
    ],
)
def test_what_is_no_limit(text, message):
    with pytest.raises(ModelError, match=message):
        read(text)


def test_objectives_that_make_no_sense():
    for text in ("cvar90(cost)",):
        with pytest.raises(ModelError, match="cannot be maximised"):
            read_statement(None, text, [], KNOWN)
    with pytest.raises(ModelError, match="over all rounds"):
        read_statement("cvar90(cost, given=shift == 1)", None, [], KNOWN)
    with pytest.raises(ModelError, match="either minimise or maximise"):
        read_statement("cost", "lost", [], KNOWN)


def queue(**options):
    return System(
        state={"waiting": range(5)},
        action={"fast": [0, 1]},
        noise={"arrival": Bernoulli(0.3), "done": Bernoulli("0.6 if fast else 0.4")},
        step={"waiting": "min(max(waiting - done, 0) + arrival, 4)"},
        costs={"power": "fast", "delay": "waiting"},
        **({"minimise": "power"} | options),
    )


def test_limits_are_replaced_by_name_and_by_quantity():
    system = queue(limits={"service": "delay <= 1", "full": "P(waiting == 4) <= 1%"})
    shown = lambda one: {limit.name: str(limit) for limit in one.statement.requirements}  # noqa: E731
    assert shown(system) == {"service": "delay <= 1", "full": "P(waiting == 4) <= 0.01"}
    assert shown(system.with_limits({"service": 2}))["service"] == "delay <= 2"
    assert shown(system.with_limits(["delay <= 3"]))["service"] == "delay <= 3"
    assert shown(system.with_limits({"full": None})) == {"service": "delay <= 1"}
    assert list(shown(system.with_limits(["delay / arrival <= 3"]))) == ["service", "full", "delay / arrival"]
    assert shown(system)["service"] == "delay <= 1"
    with pytest.raises(ModelError, match="did you mean 'service'"):
        system.with_limits({"servce": 2})
    with pytest.raises(ModelError, match="two numbers"):
        queue(limits=["1 <= delay <= 2"]).with_limits({"delay": 1.5})


def test_the_model_has_the_thresholds_of_both_sides():
    model = queue(limits=["0.5 <= delay <= 1", "power >= 0.1"], minimise="delay * waiting").model()
    assert model.cost_names == ("delay * waiting", "delay", "delay (at least)", "power")
    assert model.thresholds.tolist() == [1.0, -0.5, -0.1]


def test_a_statement_that_is_not_linear_has_no_model_of_its_own():
    with pytest.raises(ModelError, match=r"plan it with psconrl.plan"):
        queue(minimise="power / done").model()
    with pytest.raises(ModelError, match="its level is chosen"):
        queue(limits=["cvar90(delay) <= 3"]).model()


def test_units_may_be_those_of_any_cost():
    system = queue(limits=["delay <= 1"], units=Units(round="hour", counted={"power": "kWh", "arrival": "job"}))
    assert system.model().units.average("power") == "kWh an hour"
    with pytest.raises(ModelError, match="did you mean 'power'"):
        queue(units=Units(counted={"powr": "kWh"}))


def test_other_noise_brings_other_outcomes():
    from psconrl.systems.noise import Binomial

    system = queue()
    assert system.model().n_states == 5
    other = system.with_noise(arrival=Binomial(2, 0.1))
    assert other.structure.successors.shape[1] == 3 * 2


def ups_and_downs(**options):
    """Two states, between which the action chooses; costs are those of being down."""
    return System(state={"up": [0, 3]}, action={"a": [0, 3]}, step={"up": "a"}, costs={"up_to": "up"}, **options)


@pytest.mark.parametrize("limits", [["1 <= p50(up) <= 2"], ["p50(up) <= 2", "p50(up) >= 1"], ["p50(up) == 1"]])
def test_a_percentile_between_two_numbers_holds_where_half_of_the_rounds_are_on_either_side(limits):
    answer = psconrl.plan(ups_and_downs(minimise="P(up > 0)", limits=limits))
    assert answer.value == pytest.approx(0.5)  # P(up < 1) <= 1/2: every number from 0 to 3 is a median
    assert answer.averages["p50(up)"] == 1.0
    assert " is missed" not in str(answer)
    assert answer.record()["limits"]["p50(up)"]["kept"]


def test_a_percentile_between_two_numbers_is_missed_on_either_side():
    ends = [("minimise", 0.0), ("maximise", 3.0)]
    for goal, end in ends:
        free = psconrl.plan(ups_and_downs(**{goal: "up_to"}))
        percentile = free.asked.with_limits(["1 <= p50(up) <= 2"]).statement.requirements[0]
        averages = free.of_policy(free.plan.occupancy)
        assert percentile.quantity.value(averages) == end
        assert not percentile.is_kept(end)


def test_a_limit_does_not_take_the_name_of_a_cost_or_a_variable():
    for name in ("delay", "waiting", "fast", "done"):
        with pytest.raises(ModelError, match=f"needs a name of its own; '{name}' is a cost or a variable"):
            queue(limits={name: "delay / arrival <= 5"})
    with pytest.raises(ModelError, match="needs a name of its own"):
        queue(limits=["delay <= 1"]).with_limits({"delay": "delay / arrival <= 5"})
    assert psconrl.plan(queue(limits={"delay": "delay <= 1"})).averages["delay"] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["", " ", "a\nb", 1, (1,), "\x00"])
def test_the_name_of_a_limit_is_a_line_of_text(name):
    with pytest.raises(ModelError, match="the name of a limit must be a line of text"):
        queue(limits={name: "delay <= 1"})
    with pytest.raises(ModelError, match="the name of a limit must be a line of text"):
        queue().with_limits({name: "delay <= 1"})


def test_thresholds_are_a_table():
    with pytest.raises(ModelError, match="limits must be a table of numbers by name"):
        queue(limits=["delay <= 1"]).with_thresholds(3)


@pytest.mark.parametrize("points", [0, -1, 2.5, "a", None, 10_001])
def test_the_points_of_a_trade_off_are_a_number_of_points(points):
    with pytest.raises(ConfigError, match="points must be a whole number from 1 to 10,000"):
        psconrl.pareto(queue(limits=["delay <= 1"]), "delay", points=points)


def test_the_numbers_of_a_trade_off_are_some():
    with pytest.raises(ConfigError, match="thresholds must be a list of 1 to 10,000 finite numbers"):
        psconrl.pareto(queue(limits=["delay <= 1"]), "delay", [])
