"""Ratios whose denominator may be zero, against linear programs over all policies of tiny systems."""

import re
from dataclasses import replace

import numpy as np
import pytest

import psconrl
from psconrl import ModelError, Units, certify
from psconrl.answers import denominators
from psconrl.answers.least_ratio import least_ratio
from psconrl.answers.policy_averages import PolicyAverages
from psconrl.answers.shortfalls_and_ratios import LevelSearch
from psconrl.answers.solve_statement import solve_statement
from psconrl.systems.noise import Bernoulli
from psconrl.systems.quantities import Combination, Ratio
from psconrl.systems.system import System
from tiny_systems import Tiny

SEEDS = range(8)
RATIO = Ratio("e / d", Combination.of("e"), Combination.of("d"))
NUMBER = r"(-?[\d.e-]+\d)"


def idle(seed):
    """A tiny system in which action 0 makes nothing (d) and wastes nothing (e)."""
    tiny = Tiny(seed)
    tiny.d[:, 0] = tiny.e[:, 0] = 0.0
    return tiny


def own_ratios(tiny):
    """The ratios of all deterministic policies that make anything."""
    made = tiny.averages(tiny.d)
    return tiny.averages(tiny.e)[made > 1e-12] / made[made > 1e-12]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_and_the_largest_ratio(seed):
    tiny = idle(seed)
    made, ratios = tiny.averages(tiny.d), own_ratios(tiny)
    system = tiny.system(minimise="c")
    least, largest = (least_ratio(system, RATIO, side) for side in (False, True))
    assert (least.value, largest.value) == pytest.approx((ratios.min(), ratios.max()), rel=1e-9)
    assert least.largest_bottom == pytest.approx(made.max(), rel=1e-9)
    cap = float(np.quantile(tiny.averages(tiny.c), 0.4))
    under = least_ratio(
        system, RATIO, False, tiny.system(minimise="d", limits=[f"c <= {cap!r}"]).statement.requirements
    )
    expected = tiny.best_ratio(tiny.e, tiny.d, (tiny.c, cap))
    assert under is expected is None or under.value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_unreachable_ratio_is_answered_by_the_least_and_what_some_costs(seed):
    tiny = idle(seed)
    least = float(own_ratios(tiny).min())
    found = psconrl.plan(tiny.system(minimise="c", limits=[f"e / d <= {least / 2!r}"]))
    assert found.undefined == ("e / d",)
    assert "nan" not in str(found)
    said = re.search(rf"where d is positive, e / d is at least {NUMBER}; the limit is {NUMBER};", str(found))
    assert [float(x) for x in said.groups()] == pytest.approx([least, least / 2], rel=1e-5)
    slope = tiny.best_ratio(tiny.c - found.value, tiny.d, (tiny.e - least * (1 + 1e-7) * tiny.d, 0.0))
    change = re.search(rf"one unit of d (costs|improves c by) {NUMBER}", str(found))
    assert float(change[2]) == pytest.approx(abs(slope), rel=2e-3)
    assert change[1] == ("costs" if slope >= 0 else "improves c by")
    some = psconrl.plan(found.asked.with_limits([f"e / d <= {least * (1 + 1e-7)!r}", "d == 0.01"]))
    assert some.value - found.value == pytest.approx(0.01 * slope, abs=1e-6)


def line(bad, **statement):
    """A line that makes a piece a day, or none; a share of what it makes is bad."""
    statement = {"minimise": "money", "limits": ["scrap / made <= 2%"]} | statement
    return System(
        state={"tool": 2}, action={"make": 2}, noise={"bad": Bernoulli(bad)}, step={"tool": "make"},
        costs={"scrap": "make * bad", "made": "make", "money": "2 * make"},
        units=Units(round="day", counted={"money": "euro", "made": "piece"}), **statement,
    )  # fmt: skip


def test_what_is_said():
    first, second, third = str(psconrl.plan(line(0.05))).splitlines()
    assert first == "minimise money: 0 euro a day (optimal)"
    assert second == "  scrap / made <= 0.02 says nothing, since made is zero on average"
    assert third == (
        "  note: where made is positive, scrap / made is at least 0.05; the limit is 0.02; then one piece of made "
        "costs 2 euro; to ask for it, add a limit such as 'made >= 0.1', and relax scrap / made"
    )
    assert "at least 0.01, which the limit allows; then one piece of made costs 2 euro; " in str(
        psconrl.plan(line(0.01))
    )
    earns = psconrl.plan(line(0.05, minimise=None, maximise="3 - money - 4 * (1 - make)"))
    assert "one piece of made improves 3 - money - 4 * (1 - make) by 2;" in str(earns)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("P(bad > 0, given=make == 1) <= 2%", "where make == 1 occurs, P(bad > 0, given=make == 1) is at least 0.05;"),
        ("p98(bad, given=make == 1) <= 0", "where make == 1 occurs, P(bad > 0, given=make == 1) is at least 0.05;"),
        ("1 - scrap / made >= 99%", "where made is positive, 1 - scrap / made is at most 0.95;"),
        ("98% <= 1 - scrap / made <= 99%", "where made is positive"),
    ],
)
def test_every_limit_that_divides(limit, said):
    found = psconrl.plan(line(0.05, limits=[limit]))
    assert said in str(found)
    assert "never holds" in str(found) or "made is zero on average" in str(found)
    asked = re.search(r"such as '(.*?)'", str(found))[1]
    assert not psconrl.plan(found.asked.with_limits([asked])).feasible


def test_a_limit_that_asks_for_some_is_infeasible_with_the_least_ratio():
    found = psconrl.plan(line(0.05, limits=["scrap / made <= 2%", "made >= 0.2"]))
    assert str(found.infeasibility) == (
        "no policy keeps 'scrap / made' <= 0.02; the least reachable value is 0.05. Raise the threshold."
    )


def test_what_is_never_made():
    never = System(
        state={"s": 1}, action={"a": 2}, step={}, costs={"c": "a", "made": "0 * a"}, minimise="c",
        limits=["c / made <= 3"],
    )  # fmt: skip
    found = psconrl.plan(never)
    assert found.note == "made is zero on average, whatever the policy"


def test_a_ratio_without_a_bound():
    """While nothing is made, the numerator may be negative: a mixture with hardly anything made has any ratio."""
    system = System(
        state={"s": 1}, action={"a": 3}, step={}, costs={"c": "a == 1", "gain": "(a == 1) - (a == 2)"}, minimise="c"
    )
    ratio = Ratio("gain / c", Combination.of("gain"), Combination.of("c"))
    assert least_ratio(system, ratio, False).value == -np.inf
    assert least_ratio(system, ratio, True).value == pytest.approx(1.0)


# Ratios as objectives, whose denominators are zero under policies that the limits exclude


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sense", ["minimise", "maximise"])
def test_an_objective_that_divides_by_what_the_limits_ask_for(seed, sense):
    tiny = idle(seed)
    made, sign = tiny.averages(tiny.d), 1.0 if sense == "minimise" else -1.0
    some = float(0.3 * made.max())
    found = solve_statement(tiny.system(**{sense: "e / d"}, limits=[f"d >= {some!r}"]))
    expected = sign * tiny.best_ratio(sign * tiny.e, tiny.d, (-tiny.d, -some))
    assert sign * found.value == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert found.lower == pytest.approx(found.value, rel=1e-7, abs=1e-8)
    assert certify(found.model, found.plan).holds
    shortfall = solve_statement(tiny.system(**{sense: "e / d"}, limits=[f"d >= {some!r}", "cvar50(c) <= 4.5"]))
    if shortfall.plan.feasible:
        averages = PolicyAverages(shortfall.system.expectations, shortfall.plan.occupancy)
        assert averages.mean(RATIO.bottom) >= some - 1e-7
        assert shortfall.value >= found.value - 1e-7


def test_the_bound_on_such_a_denominator_is_that_of_the_limits(monkeypatch):
    """With a plan that is off by a known gap, the ratio may be off by this gap over the least denominator."""
    tiny = idle(0)
    some = float(0.3 * tiny.averages(tiny.d).max())
    search = LevelSearch(tiny.system(minimise="e / d", limits=[f"d >= {some!r}"]))
    assert search.least_bottom == pytest.approx(some, rel=1e-8)
    assert search.least_bottom <= some * (1 + 1e-12)
    plain = LevelSearch._planned

    def loose(self, *args):
        node = plain(self, *args)
        return node._replace(plan=replace(node.plan, certificate=replace(node.plan.certificate, lower=-0.01)))

    monkeypatch.setattr(LevelSearch, "_planned", loose)
    assert search.run(None).lower == pytest.approx(tiny.best_ratio(tiny.e, tiny.d, (-tiny.d, -some)) - 0.01 / some)


def test_limits_that_cannot_be_kept_come_before_the_denominator():
    tiny = idle(0)
    most = float(tiny.averages(tiny.d).max())
    found = psconrl.plan(tiny.system(minimise="e / d", limits=[f"d >= {2 * most!r}"]))
    assert not found.feasible
    assert "; the largest reachable " in str(found.infeasibility)


def test_what_must_be_added_is_said_and_suffices():
    asked = line(0.05, minimise="money / made", limits=["scrap <= 0.04"])
    with pytest.raises(ModelError) as error:
        psconrl.plan(asked)
    assert str(error.value) == (
        "made is zero on average under some policy within the limits, but the objective 'money / made' divides by it; "
        "add a limit that excludes such policies, such as 'made >= 0.08'"
    )
    found = psconrl.plan(asked.with_limits(["made >= 0.08"]))
    assert found.value == pytest.approx(2.0)
    assert found.gap < 1e-8
    with pytest.raises(ModelError, match=r"such as 'P\(make == 1\) >= 0.1'"):
        psconrl.plan(line(0.05, minimise="P(bad > 0, given=make == 1)", limits=[]))
    with pytest.raises(ModelError, match="made is zero on average, whatever the policy within the limits, but the"):
        psconrl.plan(line(0.05, minimise="money / made", limits=["made <= 0"]))


def test_a_percentile_of_the_rounds_that_the_limits_ask_for():
    found = psconrl.plan(line(0.05, minimise="p90(bad, given=make == 1)", limits=["made >= 0.2"]))
    assert found.value == 0.0
    assert found.averages["made"] >= 0.2 - 1e-9


def test_the_least_denominator_is_planned_once(monkeypatch):
    """It depends on neither objective nor limits."""
    system, planned = line(0.05, limits=["scrap / made <= 10%", "made >= 0.1"]), []
    plain = denominators.plan_unexplained
    monkeypatch.setattr(denominators, "plan_unexplained", lambda *a, **k: planned.append(1) or plain(*a, **k))
    psconrl.pareto(system, "made", [0.1, 0.2, 0.3])
    psconrl.plan(system.with_limits({"scrap / made": 0.2}))
    assert len(planned) == 1
