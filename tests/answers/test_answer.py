"""Answers in the terms of the question: values, prices, sentences, actions, maps and reasons."""

import numpy as np
import pytest

import psconrl
from psconrl import ConfigError, InfeasibleError, ModelError, PolicyError, PSConRL, Units, certify, evaluate, simulate
from psconrl.systems.noise import Bernoulli, Poisson
from psconrl.systems.priors import Gamma
from psconrl.systems.system import System
from tiny_systems import Tiny


def shop(demand=2.3, **options):
    """A shop whose orders arrive at once, before the demand."""
    statement = {"minimise": "money", "limits": ["lost / demand <= 2%"]} | options
    return System(
        state={"shelf": range(9)},
        action={"order": range(5)},
        available="shelf + order <= 8",
        noise={"demand": Poisson(demand, most=8)},
        step={"shelf": "max(shelf + order - demand, 0)"},
        costs={"lost": "max(demand - shelf - order, 0)", "money": "0.3 * shelf + order + 2 * (order > 0)"},
        units=Units(round="day", counted={"money": "euro", "lost": "piece", "demand": "piece"}),
        **statement,
    )


@pytest.mark.parametrize(
    ("statement", "limit", "number", "amount"),
    [
        ({}, "lost / demand", 0.02, 1.0),
        ({"minimise": "money / demand"}, "lost / demand", 0.02, 1.0),
        ({"limits": ["lost <= 0.05"]}, "lost", 0.05, 1.0),
        ({"limits": ["cvar90(lost) <= 0.4"]}, "cvar90(lost)", 0.4, 1.0),
        ({"limits": ["P(lost > 0) <= 4%"]}, "P(lost > 0)", 0.04, 1.0),
        ({"limits": ["P(lost > 0, given=shelf < 4) <= 4%"]}, "P(lost > 0, given=shelf < 4)", 0.04, 1.0),
        ({"limits": ["1 - lost / demand >= 0.98"]}, "1 - lost / demand", 0.98, -1.0),
        ({"limits": ["shelf == 3"]}, "shelf", 3.0, 1.0),
        ({"minimise": "cvar90(money)"}, "lost / demand", 0.02, 1.0),
    ],
)
def test_a_price_is_the_derivative_of_the_value(statement, limit, number, amount):
    system, step = shop(**statement), 1e-5 * number
    price = psconrl.plan(system).prices[limit].amount
    low, high = (psconrl.plan(system.with_limits({limit: number + sign * step})).value for sign in (-1, 1))
    assert price * amount == pytest.approx((low - high) / (2 * step), rel=1e-4)


def test_the_price_of_a_percentile_is_that_of_its_share():
    as_share = psconrl.plan(shop(limits=["P(lost > 0) <= 4%"]))
    found = psconrl.plan(shop(limits=["p96(lost) <= 0"]))
    assert found.value == pytest.approx(as_share.value, rel=1e-9)
    assert found.averages["p96(lost)"] == 0.0
    assert found.prices["p96(lost)"].amount == pytest.approx(as_share.prices["P(lost > 0)"].amount)
    assert str(found.prices["p96(lost)"]).startswith("one percentage point more of rounds with lost > 0 is worth")


def test_what_is_said():
    found = psconrl.plan(shop(limits=["lost / demand <= 2%", "P(shelf == 8) <= 90%"]))
    first, second, third = str(found).splitlines()
    assert first == f"minimise money: {found.value:.6g} euro a day (optimal)"
    worth = found.prices["lost / demand"].amount / 100
    assert second == (
        "  lost / demand <= 0.02 holds with 0.02; one percentage point more of lost / demand is worth "
        f"{worth:.4g} euro a day"
    )
    assert third.endswith("P(shelf == 8) is not binding")
    assert repr(found).startswith("Answer(optimal, money=")
    per_piece = psconrl.plan(shop(minimise="money / demand", limits=["shelf >= 2"]))
    assert "euro per piece" in str(per_piece)
    assert "one unit less of shelf" in str(per_piece)


def test_values_are_those_of_the_model():
    found = psconrl.plan(shop())
    assert found.averages["lost / demand"] == pytest.approx(0.02)
    assert found.value == found.averages["money"] == pytest.approx(found.plan.value)
    assert found.averages["lost"] == pytest.approx(0.02 * demand_mean(found), rel=1e-9)
    assert certify(found.model, found.plan).holds
    assert found.bound == pytest.approx(found.value, rel=1e-9)
    assert found.gap <= 1e-9 * found.value


def demand_mean(found):
    return found.averages["lost"] / found.averages["lost / demand"]


def test_a_ratio_has_a_linear_model_with_the_same_optimum():
    found = psconrl.plan(shop(minimise="money / demand"))
    assert found.plan.value == pytest.approx(0.0, abs=1e-9)
    assert found.bound == pytest.approx(found.value, rel=1e-9)
    again = psconrl.plan(found.system)
    assert again.averages["lost / demand"] == pytest.approx(0.02)
    assert again.value == pytest.approx(0.0, abs=1e-9)
    assert np.allclose(found.system.model().costs, found.model.costs)


def test_an_expected_shortfall_has_a_linear_model_with_the_same_optimum():
    found = psconrl.plan(shop(limits=["cvar90(lost) <= 0.4"]))
    assert str(found.system.statement.requirements[0]) == "cvar90(lost, at=0) <= 0.4"
    assert np.allclose(found.system.model().costs, found.model.costs)
    again = psconrl.plan(found.system)
    assert again.value == pytest.approx(found.value, rel=1e-9)
    assert again.averages["cvar90(lost)"] == pytest.approx(0.4)


def simulated(policy, rounds, seed):
    """Play a policy (S, A) in the shop, and return the values of shelf, order, lost and money, and the demands."""
    rng = np.random.default_rng(seed)
    demands = np.minimum(rng.poisson(2.3, rounds), 8)
    shelf, seen = 0, np.empty((rounds, 4))
    upto, uniforms = np.cumsum(policy, axis=1), rng.random(rounds)
    for t, demand in enumerate(demands.tolist()):
        order = int(np.searchsorted(upto[shelf], uniforms[t], side="right"))
        seen[t] = shelf, order, max(demand - shelf - order, 0), 0.3 * shelf + order + 2 * (order > 0)
        shelf = max(shelf + order - demand, 0)
    return seen.T, demands


def test_simulation_agrees():
    statement = {"limits": ["lost / demand <= 5%", "P(shelf > 4) <= 30%", "cvar90(money) <= 6", "p80(shelf) <= 5"]}
    found = psconrl.plan(shop(**statement))
    (shelf, _, lost, money), demand = simulated(found.plan.policy, 40_000, 1)
    assert lost.sum() / demand.sum() == pytest.approx(found.averages["lost / demand"], abs=0.004)
    assert (shelf > 4).mean() == pytest.approx(found.averages["P(shelf > 4)"], abs=0.01)
    assert np.sort(money)[-4000:].mean() == pytest.approx(found.averages["cvar90(money)"], abs=0.02)
    assert np.quantile(shelf, 0.8) == found.averages["p80(shelf)"]
    assert money.mean() == pytest.approx(found.value, abs=0.03)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            ["lost / demand <= 0.0001"],
            r"no policy keeps 'lost / demand' <= 0.0001; the least reachable value is 0\.00\d+\. Raise the threshold",
        ),
        (
            ["shelf >= 30"],
            r"no policy keeps 'shelf' >= 30; the largest reachable average is [\d.]+\. Lower the threshold\.",
        ),
        (
            ["p95(lost) <= -1"],
            r"no policy keeps 'p95\(lost\)' <= -1; the least reachable value is 0\. Raise the threshold\.",
        ),
        (
            ["cvar90(lost) <= 0.0001"],
            r"no policy keeps 'cvar90\(lost\)' <= 0.0001; the least reachable value is 0\.0\d+\. Raise the",
        ),
        (
            ["lost / demand <= 2%", "P(order == 0) >= 90%"],
            r"no policy keeps 'lost / demand' <= 0.02 and 'P\(order == 0\)' >= 0.9 together. "
            r"Raise 'lost / demand' to 0\.\d+ or lower 'P\(order == 0\)' to 0\.\d+\.$",
        ),
        (
            ["lost <= 0.05", "P(order == 0) >= 90%"],
            r"no policy keeps 'lost' <= 0.05 and 'P\(order == 0\)' >= 0.9 together. Raise 'lost' to [\d.]+ or lower "
            r"'P\(order == 0\)' to 0\.\d+ \(multipliers: 'lost' [\d.]+, 'P\(order == 0\)' [\d.]+\)\.$",
        ),
    ],
)
def test_infeasible_limits_are_explained(limits, said):
    found = psconrl.plan(shop(limits=limits))
    assert not found.feasible
    with pytest.raises(InfeasibleError, match=said):
        found.required()
    assert "infeasible" in str(found)
    assert found.prices == {}


def test_what_can_be_reached_is_reached():
    best = psconrl.plan(shop(limits=["cvar90(lost) <= 0.0001"])).infeasibility.alone[0]
    assert psconrl.plan(shop(limits=[f"cvar90(lost) <= {best * 1.0001}"])).feasible
    assert not psconrl.plan(shop(limits=[f"cvar90(lost) <= {best * 0.9999}"])).feasible


def test_actions_are_tables():
    found = psconrl.plan(shop())
    assert found.act({"shelf": 0}) == {"order": 4}
    assert found.act({"shelf": 8}) == {"order": 0}
    with pytest.raises(ModelError, match="shelf"):
        found.act({"shelf": 9})
    with pytest.raises(InfeasibleError):
        psconrl.plan(shop(limits=["shelf >= 30"])).act({"shelf": 0})


def test_a_mixture_is_drawn():
    stay_or_go = System(
        state={"gone": 2}, action={"go": 2}, step={"gone": "max(gone, go)"}, costs={},
        minimise="max(gone, go)", limits=["P(gone == 0 and go == 0) <= 75%"],
    )  # fmt: skip
    found = psconrl.plan(stay_or_go)
    assert found.value == pytest.approx(0.25)
    with pytest.raises(PolicyError, match="mixture"):
        found.act({"gone": 0})
    drawn = {found.action_of(found.plan.draw(np.random.default_rng(k)), {"gone": 0})["go"] for k in range(20)}
    assert drawn == {0, 1}


def test_unknown_parameters_are_given():
    system = shop(demand=Gamma(2, 1))
    with pytest.raises(ModelError, match="'demand' has an unknown parameter"):
        psconrl.plan(system)
    assert psconrl.plan(system, demand=2.3).value == pytest.approx(psconrl.plan(shop()).value, rel=1e-12)


def test_trade_off():
    curve = psconrl.pareto(shop(), "lost / demand", [0.01, 0.02, 0.05])
    assert curve.values.tolist() == sorted(curve.values.tolist(), reverse=True)
    assert curve.values[1] == pytest.approx(psconrl.plan(shop()).value, rel=1e-9)
    assert (np.diff(curve.prices) <= 1e-9).all()
    whole = psconrl.pareto(shop(limits=["cvar90(lost) <= 0.4"]), "cvar90(lost)", points=3)
    assert all(one.feasible for one in whole.answers)
    assert whole.prices[-1] == pytest.approx(0.0, abs=1e-9)
    assert np.isnan(psconrl.pareto(shop(), "lost / demand", [1e-5]).values[0])
    with pytest.raises(ConfigError, match="did you mean 'lost / demand'"):
        psconrl.pareto(shop(), "lost / deman", [0.1])


def test_reasons_have_the_costs_of_the_system():
    found = psconrl.plan(shop())
    reasons = psconrl.explain(found, {"shelf": 3})
    assert reasons.share == pytest.approx(found.plan.occupancy[found.asked.state_number({"shelf": 3})].sum())
    played = [one for one in reasons.alternatives if one.probability > 0]
    assert all(one.loss == pytest.approx(0.0, abs=1e-9) for one in played)
    assert all(one.loss >= -1e-9 for one in reasons.alternatives)
    assert set(reasons.alternatives[0].changes) == {"lost", "money", "lost / demand"}
    assert str(reasons).splitlines()[0].startswith("shelf=3, ")
    assert "euro" in str(reasons)


def test_the_change_of_a_cost_is_that_of_its_total():
    """Playing an action once and then the plan changes the total by the difference of finite sums."""
    tiny = Tiny(3)
    found = psconrl.plan(tiny.system(minimise="c", limits=[]))
    one = next(x for x in psconrl.explain(found, {"s": 1}).alternatives if x.probability == 0)
    exact = evaluate(found.model, found.plan.policy)
    P = found.model.transition.toarray()[1 * 2 + one.action["a"]]
    direct = found.model.costs[0, 1, one.action["a"]] + P @ exact.biases[0] - exact.gains[0, 1] - exact.biases[0, 1]
    assert one.changes["c"] == pytest.approx(direct, abs=1e-9) == pytest.approx(one.loss, abs=1e-9)


def test_a_map_of_two_variables():
    warehouse = System(
        state={"shelf": range(4), "coming": range(3)}, action={"order": range(3)}, noise={"demand": Bernoulli(0.5)},
        step={"shelf": "min(max(shelf - demand, 0) + coming, 3)", "coming": "order"},
        costs={"money": "shelf + order", "lost": "demand > shelf"}, minimise="money", limits=["lost <= 0.05"],
    )  # fmt: skip
    found = psconrl.plan(warehouse)
    shown = psconrl.heat_map(found, "shelf", "coming")
    assert shown.share.shape == (shown.x_values.size, shown.y_values.size)
    assert shown.share.sum() == pytest.approx(1.0)
    mean = np.nansum(shown.share * np.nan_to_num(shown.actions["order"]))
    assert mean == pytest.approx(found.averages["money"] - (shown.share.sum(axis=1) @ shown.x_values))
    assert ((shown.likeliest >= 0) == (shown.share > 0)).all()
    with pytest.raises(ConfigError, match="two different"):
        psconrl.heat_map(found, "shelf", "shelf")
    with pytest.raises(ConfigError, match="did you mean 'shelf'"):
        psconrl.heat_map(found, "shell", "coming")


def test_a_denominator_that_is_zero_is_noted():
    lamp = System(
        state={"on": 2}, action={"switch": 2}, step={"on": "switch"}, costs={"power": "on", "use": "2 * on"},
        minimise="power", limits=["use / power <= 3"],
    )  # fmt: skip
    found = psconrl.plan(lamp)
    assert np.isnan(found.averages["use / power"])
    assert found.undefined == ("use / power",)
    assert "use / power <= 3 says nothing, since power is zero on average" in str(found)


def test_a_system_for_agents_is_linear():
    system = shop(demand=Gamma(4, 2), limits=["lost / demand <= 5%"])
    assert psconrl.linear(system) is system
    system = system.with_limits(["cvar90(lost) <= 1"])
    linear = psconrl.linear(system)
    assert [str(limit) for limit in linear.statement.requirements] == [
        "lost / demand <= 0.05",
        "cvar90(lost, at=0) <= 1",
    ]
    assert linear.source.noise["demand"].prior is not None
    for rate in (1.0, 2.0, 2.3):  # sufficient, whatever the rate is
        found = psconrl.plan(linear, demand=rate)
        exact = found.of_policy(found.plan.occupancy)
        assert system.statement.requirements[1].quantity.value(exact) <= 1 + 1e-9
    ratio = psconrl.linear(shop(demand=Gamma(4, 2), minimise="money / demand"), demand=2.3)
    assert ratio.statement.rows[0].name.startswith("money - 1.")


def test_agents_learn_under_ratios_percentiles_and_shortfalls():
    """After 5,000 rounds the averages are near the limits, of which that on the expected shortfall binds."""
    system = System(
        state={"shelf": range(7)}, action={"order": range(4)}, noise={"demand": Poisson(Gamma(2, 1), most=6)},
        step={"shelf": "min(max(shelf + order - demand, 0), 6)"},
        costs={"lost": "max(demand - shelf - order, 0)", "money": "0.3 * shelf + order + 2 * (order > 0)"},
        minimise="money", limits=["lost / demand <= 10%", "p99(lost) <= 2", "cvar90(lost) <= 1"],
    )  # fmt: skip
    linear = psconrl.linear(system)
    model = linear.model(demand=1.5)
    run = simulate(model, PSConRL.of(linear, seed=0), 5000, seed=1)
    assert (run.averages[-1][1:] - model.thresholds <= [0.02, 0.01, 0.1]).all()
    assert run.averages[-1][0] == pytest.approx(psconrl.plan(system, demand=1.5).value, rel=0.1)
