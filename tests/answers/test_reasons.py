"""Reasons of actions: losses against policy improvement on tables written by hand, and the words for them."""

import itertools

import numpy as np
import pytest

import psconrl
from psconrl import Units
from psconrl.systems.noise import Poisson
from psconrl.systems.system import System
from tiny_systems import A, S, Tiny, W, tail


def of_state(s):
    """The table (S, A, W) that is one in a state."""
    table = np.zeros((S, A, W))
    table[s] = 1.0
    return table


# Of every statement: the table of the objective and of the limit, both to be small, given the optimum and the levels.
STATEMENTS = {
    "mean": ({"minimise": "c", "limits": ["e <= 2.2"]}, lambda t, v: (t.c, t.e)),
    "reward": ({"maximise": "c", "limits": ["e >= 2.4"]}, lambda t, v: (-t.c, -t.e)),
    "ratio": ({"minimise": "c", "limits": ["e / d <= 1.1"]}, lambda t, v: (t.c, t.e - 1.1 * t.d)),
    "goal": ({"minimise": "c / d", "limits": ["e <= 2.2"]}, lambda t, v: (t.c - v * t.d, t.e)),
    "share": ({"maximise": "c / d", "limits": ["P(e > 2) >= 50%"]}, lambda t, v: (v * t.d - t.c, -1.0 * (t.e > 2))),
    "percentile": ({"minimise": "c", "limits": ["p60(e) <= 2"]}, lambda t, v: (t.c, t.e > 2)),
    "lower": ({"minimise": "c", "limits": ["p40(e) >= 2"]}, lambda t, v: (t.c, t.e < 2)),
    "given": (
        {"minimise": "c", "limits": ["P(e > 2, given=s == 1) <= 40%"]},
        lambda t, v: (t.c, of_state(1) * ((t.e > 2) - 0.4)),
    ),
    "shortfall": ({"minimise": "c", "limits": ["cvar50(e, at=2) <= 3.4"]}, lambda t, v: (t.c, tail(t.e, 2.0, 0.5))),
}


def improved(tiny, cost):
    """The least average of a cost (S, A) and the advantages (S, A) of all actions, by policy improvement."""
    P = np.zeros((S, A, S))
    for s, a, w in itertools.product(range(S), range(A), range(W)):
        P[s, a, tiny.next[s, a, w]] += tiny.p[w]
    policy, every = np.zeros(S, dtype=int), np.arange(S)
    while True:
        equations = np.eye(S) - P[every, policy]
        equations[:, 0] = 1.0  # h(0) = 0 leaves its column to the gain
        found = np.linalg.solve(equations, cost[every, policy])
        gain, h = found[0], np.concatenate([[0.0], found[1:]])
        loss = cost - gain + P @ h - h[:, None]
        if loss.min() >= -1e-10:
            return gain, loss
        policy = np.where(loss.min(axis=1) < -1e-10, loss.argmin(axis=1), policy)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_losses_are_those_of_policy_improvement(kind):
    """At the prices of the plan, whose average less the thresholds is the optimum, losses are those of improvement."""
    statement, tables = STATEMENTS[kind]
    binding = 0
    for seed in range(12):
        tiny = Tiny(seed)
        found = psconrl.plan(tiny.system(**statement))
        if not found.feasible:
            continue
        price = float(found.plan.multipliers[0])
        goal, limit = ((table * tiny.p).sum(axis=2) for table in tables(tiny, found.value))
        gain, loss = improved(tiny, goal + price * limit)
        assert gain - price * found.model.thresholds[0] == pytest.approx(found.plan.costs[0], abs=1e-8)
        binding += price > 1e-9
        name = found.asked.statement.requirements[0].name
        for s in found.asked.state_table["s"].tolist():
            reasons = psconrl.explain(found, {"s": s})
            for one in reasons.alternatives:
                assert one.loss == pytest.approx(loss[s, one.action["a"]], abs=1e-8)
                parts = one.changes[found.asked.statement.goal.text], one.changes[name]
                sign = -1.0 if found.asked.statement.maximises else 1.0
                assert one.loss == pytest.approx(sign * parts[0] + reasons.counted[name].price * parts[1], abs=1e-8)
                assert not one.average_changes
            assert (f"prices: {name} " in str(reasons)) == (price > 1e-9)
    assert binding >= 3


def never_back(limits=()):
    """State 2 is left for good; there, either action leads to state 0, at different costs."""
    return System(
        state={"s": 3}, action={"a": 2}, step={"s": "0 if s == 2 else a"}, start={"s": 2},
        costs={"c": "5 * (s == 2) * (1 - a) + s"}, minimise="c", limits=limits,
    )  # fmt: skip


def test_where_the_plan_never_gets_it_is_followed_as_its_prices_suggest():
    found = psconrl.plan(never_back())
    losses = {one.action["a"]: one.loss for one in psconrl.explain(found, {"s": 2}).alternatives}
    assert losses == pytest.approx({0: 5.0, 1: 0.0})
    for s in (0, 1):
        assert {one.action["a"]: one.loss for one in psconrl.explain(found, {"s": s}).alternatives} == pytest.approx(
            {0: 0, 1: 1}
        )


def test_what_leads_elsewhere_for_good_is_said():
    door = System(
        state={"gone": 2}, action={"go": 2}, step={"gone": "max(gone, go)"}, costs={"c": "1 + 2 * gone"}, minimise="c",
        units=Units(round="day", counted={"c": "euro"}),
    )  # fmt: skip
    stay, go = psconrl.explain(psconrl.plan(door), {"gone": 0}).alternatives
    assert (stay.loss, stay.average_changes) == (0.0, {})
    assert (go.loss, go.average_changes) == (np.inf, {"c": 2.0})
    said = str(psconrl.explain(psconrl.plan(door), {"gone": 0})).splitlines()[2]
    assert said.startswith("  go=1: loses in every round for good")
    assert said.endswith("leads elsewhere for good, with c +2 euro a day on average")


def shop(**statement):
    return System(
        state={"shelf": range(9)}, action={"order": range(5)}, available="shelf + order <= 8",
        noise={"demand": Poisson(2.3, most=8)}, step={"shelf": "max(shelf + order - demand, 0)"},
        costs={"lost": "max(demand - shelf - order, 0)", "money": "0.3 * shelf + order + 2 * (order > 0)"},
        units=Units(round="day", counted={"money": "euro", "lost": "piece", "demand": "piece"}), **statement,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "unit", "beyond", "of_one"),
    [
        ({"limits": ["lost / demand <= 2%"]}, "piece", "over 2%", "piece over 2%"),
        ({"limits": ["P(lost > 0) <= 4%"]}, "rounds", "", "round"),
        ({"limits": ["p96(lost) <= 0"]}, "rounds", "with lost > 0", "round with lost > 0"),
        ({"limits": ["p4(shelf) >= 2"]}, "rounds", "with shelf < 2", "round with shelf < 2"),
        ({"limits": ["P(lost > 0, given=shelf < 4) <= 4%"]}, "rounds", "over 4%", "round over 4%"),
        ({"limits": ["cvar90(lost) <= 0.4"]}, "piece", "", "piece"),
        ({"limits": ["shelf >= 2"]}, "", "", "unit"),
        ({"limits": {"service": "1 - lost / demand >= 98%"}}, "piece", "over 98%", "piece over 98%"),
    ],
)
def test_a_limit_that_binds_is_counted_in_its_own_terms(statement, unit, beyond, of_one):
    found = psconrl.plan(shop(minimise="money", **statement))
    reasons = psconrl.explain(found, {"shelf": 3})
    name = found.asked.statement.requirements[0].name
    counted = reasons.counted[name]
    assert (counted.unit, counted.beyond, counted.of_one) == (unit, beyond, of_one)
    other = next(one for one in reasons.alternatives if one.changes[name])
    assert counted.change(other.changes[name]) in str(reasons)
    assert str(reasons).splitlines()[-1] == f"  prices: {name} {abs(counted.price):.4g} euro per {of_one}"


def test_the_price_of_what_is_counted_is_that_of_the_limit():
    """One percentage point more of a ratio is a hundredth of the demand more."""
    found = psconrl.plan(shop(minimise="money", limits=["lost / demand <= 2%"]))
    demand = found.averages["lost"] / found.averages["lost / demand"]
    counted = psconrl.explain(found, {"shelf": 3}).counted["lost / demand"]
    assert counted.price * demand == pytest.approx(found.prices["lost / demand"].amount, rel=1e-9)


def test_a_ratio_as_objective_is_counted_over_its_optimum():
    found = psconrl.plan(shop(minimise="money / demand", limits=["lost / demand <= 2%"]))
    reasons = psconrl.explain(found, {"shelf": 3})
    least = reasons.alternatives[-1]
    assert f"money / demand {least.changes['money / demand']:+.4g} euro over {found.value:.6g}" in str(reasons)
    assert least.loss == pytest.approx(
        least.changes["money / demand"] + reasons.counted["lost / demand"].price * least.changes["lost / demand"]
    )
