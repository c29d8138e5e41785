"""Ratios, percentiles and expected shortfalls, against linear programs over all policies of tiny systems."""

import numpy as np
import pytest

from psconrl import ModelError, certify
from psconrl.answers.solve_statement import solve_statement
from psconrl.systems.noise import Bernoulli
from psconrl.systems.system import System
from tiny_systems import Tiny, tail

SEEDS = range(12)
CLOSE = {"rel": 1e-7, "abs": 1e-8}


def between(tiny, table, share):
    """A threshold between the least and the largest average of a table."""
    values = tiny.averages(table)
    return float(values.min() + share * np.ptp(values))


def check(found, expected):
    if expected is None:
        assert not found.plan.feasible
        return
    assert found.value == pytest.approx(expected, **CLOSE)
    assert found.lower == pytest.approx(expected, **CLOSE)
    assert certify(found.model, found.plan).holds


@pytest.mark.parametrize("seed", SEEDS)
def test_ratios(seed):
    tiny = Tiny(seed)
    tau = between(tiny, tiny.e, 0.4)
    check(
        solve_statement(tiny.system(minimise="c / d", limits=[f"e <= {tau!r}"])),
        tiny.best_ratio(tiny.c, tiny.d, (tiny.e, tau)),
    )
    found = solve_statement(tiny.system(maximise="c / d", limits=[f"e <= {tau!r}"]))
    assert -found.value == pytest.approx(-tiny.best_ratio(-tiny.c, tiny.d, (tiny.e, tau)), **CLOSE)
    ratio = between(tiny, tiny.e, 0.3) / float(tiny.averages(tiny.d).mean())
    limit = (tiny.e - ratio * tiny.d, 0.0)
    check(solve_statement(tiny.system(minimise="c", limits=[f"e / d <= {ratio!r}"])), tiny.best(tiny.c, limit))


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_and_percentiles(seed):
    tiny = Tiny(seed)
    check(solve_statement(tiny.system(minimise="c", limits=["P(e > 2) <= 0.3"])), tiny.best(tiny.c, (tiny.e > 2, 0.3)))
    check(solve_statement(tiny.system(minimise="c", limits=["p70(e) <= 2"])), tiny.best(tiny.c, (tiny.e > 2, 0.3)))
    check(solve_statement(tiny.system(minimise="c", limits=["p30(e) >= 2"])), tiny.best(tiny.c, (tiny.e < 2, 0.3)))
    night = np.zeros(tiny.c.shape)
    night[1] = 1.0
    given = ((tiny.e > 2) * night - 0.4 * night, 0.0)
    check(
        solve_statement(tiny.system(minimise="c", limits=["P(e > 2, given=s == 1) <= 0.4"])), tiny.best(tiny.c, given)
    )
    check(solve_statement(tiny.system(minimise="c", limits=["p60(e, given=s == 1) <= 2"])), tiny.best(tiny.c, given))


@pytest.mark.parametrize("seed", SEEDS)
def test_two_sides(seed):
    tiny = Tiny(seed)
    low, high = between(tiny, tiny.e, 0.4), between(tiny, tiny.e, 0.6)
    both = ((tiny.e, high), (-tiny.e, -low))
    check(solve_statement(tiny.system(minimise="c", limits=[f"{low!r} <= e <= {high!r}"])), tiny.best(tiny.c, *both))
    check(
        solve_statement(tiny.system(minimise="c", limits=[f"e == {low!r}"])),
        tiny.best(tiny.c, (tiny.e, low), (-tiny.e, -low)),
    )


@pytest.mark.part(2)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_expected_shortfalls(seed, share):
    tiny = Tiny(seed)
    levels = np.unique(tiny.e)
    tau = between(tiny, tail(tiny.e, np.median(tiny.e), share), 0.2)
    text = f"cvar{100 * share:.0f}(e)"

    def under(objective, *limits):
        found = [tiny.best(objective, (tail(tiny.e, y, share), tau), *limits) for y in levels]
        return min((x for x in found if x is not None), default=None)

    check(solve_statement(tiny.system(minimise="c", limits=[f"{text} <= {tau!r}"])), under(tiny.c))
    cap = between(tiny, tiny.d, 0.5)
    check(
        solve_statement(tiny.system(minimise="c", limits=[f"{text} <= {tau!r}", f"d <= {cap!r}"])),
        under(tiny.c, (tiny.d, cap)),
    )
    least = min(tiny.best(tail(tiny.e, y, share), (tiny.d, cap)) for y in levels)
    check(solve_statement(tiny.system(minimise=text, limits=[f"d <= {cap!r}"])), least)
    ratios = [tiny.best_ratio(tiny.c, tiny.d, (tail(tiny.e, y, share), tau)) for y in levels]
    ratio = min((x for x in ratios if x is not None), default=None)
    check(solve_statement(tiny.system(minimise="c / d", limits=[f"{text} <= {tau!r}"])), ratio)


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_two_expected_shortfalls(seed):
    tiny = Tiny(seed)
    low, high = (between(tiny, tail(x, np.median(x), 0.7), 0.5) for x in (tiny.d, tiny.e))
    found = [
        tiny.best(tiny.c, (tail(tiny.d, y, 0.7), low), (tail(tiny.e, z, 0.7), high))
        for y in np.unique(tiny.d)
        for z in np.unique(tiny.e)
    ]
    expected = min((x for x in found if x is not None), default=None)
    check(
        solve_statement(tiny.system(minimise="c", limits=[f"cvar70(d) <= {low!r}", f"cvar70(e) <= {high!r}"])), expected
    )


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_expected_shortfall_under_a_condition(seed):
    tiny = Tiny(seed)
    weight, tau, share = np.zeros(tiny.c.shape), 3.5, 0.5
    weight[0] = 1.0
    found = [tiny.best(tiny.c, (weight * (tail(tiny.e, y, share) - tau), 0.0)) for y in np.unique(tiny.e)]
    expected = min((x for x in found if x is not None), default=None)
    check(solve_statement(tiny.system(minimise="c", limits=[f"cvar50(e, given=s == 0) <= {tau}"])), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_percentile_as_objective(seed):
    tiny = Tiny(seed)
    cap = between(tiny, tiny.c, 0.5)
    values = np.unique(tiny.e)
    least = next(v for v in values if tiny.best(tiny.e > v, (tiny.c, cap)) <= 0.3 + 1e-9)
    assert solve_statement(tiny.system(minimise="p70(e)", limits=[f"c <= {cap!r}"])).value == least
    largest = next(v for v in values[::-1] if tiny.best(tiny.e < v, (tiny.c, cap)) <= 0.3 + 1e-9)
    assert -solve_statement(tiny.system(maximise="p30(e)", limits=[f"c <= {cap!r}"])).value == largest


def test_denominators_must_be_positive():
    def shop(**statement):
        return System(
            state={"open": 2}, action={"go": 2}, noise={"flip": Bernoulli(0.5)}, step={"open": "go"},
            costs={"cost": "go + flip", "orders": "open * flip", "balance": "open - 0.5"}, **statement,
        )  # fmt: skip

    with pytest.raises(
        ModelError, match=r"orders is zero on average under some policy, but.* such as 'orders >= 0.05'"
    ):
        solve_statement(shop(minimise="cost / orders"))
    with pytest.raises(ModelError, match=r"'balance'.*must not be negative.*-0.5"):
        solve_statement(shop(minimise="cost", limits=["orders / balance <= 3"]))
    assert solve_statement(shop(maximise="cost", limits=["cost / orders <= 3"])).plan.feasible
    with pytest.raises(ModelError, match=r"weight 'balance' must not be negative"):
        solve_statement(shop(minimise="cost", limits=["p90(cost, given=balance) <= 3"]))


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        ({"minimise": "power", "limits": ["cvar90(delay) <= 6"]}, 6),
        ({"minimise": "cvar90(delay)", "limits": ["power <= 3"]}, 6),
        ({"minimise": "power / done", "limits": ["delay <= 2"]}, 5),
    ],
)
def test_few_plans_are_made(statement, most):
    """There are a hundred levels: bounds exclude most of them."""
    queue = System(
        state={"waiting": range(100)}, action={"speed": range(4)},
        noise={"arrival": Bernoulli(0.3), "done": Bernoulli("0.1 + 0.15 * speed")},
        step={"waiting": "min(max(waiting - done, 0) + arrival, 99)"},
        costs={"power": "speed ** 2", "delay": "waiting"}, **statement,
    )  # fmt: skip
    found = solve_statement(queue)
    assert found.plans <= most
    assert found.value - found.lower <= 1e-8 * found.value
