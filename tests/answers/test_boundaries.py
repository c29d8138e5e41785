"""Limits at exactly what can be reached: rounding decides nothing."""

from fractions import Fraction

import numpy as np
import pytest

import psconrl
from psconrl.systems.expressions import Expression
from psconrl.systems.limits import read_statement
from psconrl.systems.noise import Bernoulli
from psconrl.systems.rounding import ROUNDING
from psconrl.systems.system import System

KNOWN = frozenset(("c", "d"))


def test_shares_are_exact():
    for level in range(1, 1000):
        text = f"p{level / 10:g}(c) <= 1".replace(".", "_", 1)
        rest = read_statement("d", None, [text], KNOWN).rows[1].threshold
        assert rest == float(Fraction(1000 - level, 1000)), text
    assert read_statement("d", None, ["p90(c) <= 1"], KNOWN).rows[1].threshold == 0.1


def random_case(seed):
    """Return a system whose noise alone decides what a cost is, and the exact shares (value in tenths, share)."""
    rng = np.random.default_rng(seed)
    tenths = [int(x) for x in rng.integers(1, 10, 3)]
    system = System(
        state={"x": 2, "y": 2},
        action={"a": 2},
        noise={f"b{k}": Bernoulli(p / 10) for k, p in enumerate(tenths)},
        step={"x": "b0", "y": "b1 * x"},
        costs={"c": "0.1 * b0 + 0.2 * b1 + 0.3 * b2 - 0.6", "d": "-a"},
        minimise="d",
    )
    shares: dict[int, Fraction] = {}
    for bits in np.ndindex(2, 2, 2):
        value = bits[0] + 2 * bits[1] + 3 * bits[2] - 6
        each = [Fraction(p, 10) if bit else 1 - Fraction(p, 10) for p, bit in zip(tenths, bits, strict=True)]
        shares[value] = shares.get(value, Fraction(0)) + each[0] * each[1] * each[2]
    below, found = Fraction(0), []
    for value in sorted(shares)[:-1]:
        below += shares[value]
        found.append((value, below))
    return system, found


@pytest.mark.parametrize("seed", range(12))
def test_limits_at_the_boundary_are_feasible(seed):
    system, cases = random_case(seed)
    for value, below in cases:
        level = f"{float(100 * below):.10g}"
        for text in (
            f"p{level.replace('.', '_')}(c) <= {value / 10:.1f}",
            f"P(c > {value / 10:.1f}) <= {float(100 - 100 * below):.10g}%",
            f"P(c <= {value / 10:.1f}) >= {level}%",
        ):
            answer = psconrl.plan(system.with_limits([text]))
            assert answer.feasible, text
            assert answer.value == pytest.approx(-1.0, abs=1e-9)
            assert all(limit.is_kept(answer.averages[limit.name]) for limit in answer.asked.statement.requirements)


@pytest.mark.parametrize("seed", range(4))
def test_limits_beyond_the_boundary_are_infeasible(seed):
    system, cases = random_case(seed)
    for value, below in cases:
        share = float(1 - below)
        assert not psconrl.plan(system.with_limits([f"P(c > {value / 10:.1f}) <= {share - 1e-9!r}"])).feasible
        assert not psconrl.plan(system.with_limits([f"P(c >= {value / 10:.1f}) <= {share!r}"])).feasible


def test_a_limit_does_not_forbid_by_the_rounding_of_its_own_expression():
    """At order 3 the level is 0.3 - 0.6 = -0.3, and in doubles 0.1 * 3 - 0.2 * 3 is below it."""
    shop = System(
        state={"s": 1},
        action={"order": range(6)},
        step={},
        costs={"level": "0.3 - 0.2 * order", "profit": "order"},
        maximise="profit",
    )
    assert 0.3 - 0.2 * 3 < -0.3
    for limit in (
        "P(level < -0.3) <= 0",
        "p5(level) >= -0.3",
        "P(0.3 - 0.2 * order < -0.3) <= 0",
        "P(level >= -0.3) >= 1",
    ):
        answer = psconrl.plan(shop.with_limits([limit]))
        assert answer.act({"s": 0}) == {"order": 3} or limit.startswith("p5"), limit
        assert answer.value >= 3.0 - 1e-9
    available = System(
        state={"s": 1}, action={"order": range(6)}, step={}, costs={"profit": "order"}, maximise="profit",
        available="0.3 - 0.2 * order >= -0.3",
    )  # fmt: skip
    assert psconrl.plan(available).value == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("0.1 * 3 <= x", {"x": 0.3}, True),
        ("0.1 * 3 == x", {"x": 0.3}, True),
        ("0.1 * 3 != x", {"x": 0.3}, False),
        ("0.1 * 3 > x", {"x": 0.3}, False),
        ("0.1 * 3 - 0.3 > 0", {}, False),
        ("(x - 1) * 10 - 2 > 0", {"x": 1.2}, False),
        ("0.3 / 0.1 < 3", {}, False),
        ("min(0.1 * 3, 7) > 0.3", {}, False),
        ("-(0.1 * 3) < -0.3", {}, False),
        ("(0.1 * 3 if x > 1 else 0) > 0.3", {"x": 2.0}, False),
        ("0.3000001 > 0.3", {}, True),
        ("x > 0.3", {"x": 0.3 * (1 + 10 * ROUNDING)}, True),
        ("9007199254740993 > x", {"x": 9007199254740991}, True),  # whole numbers are compared exactly
    ],
)
def test_comparisons_allow_for_rounding(text, values, expected):
    assert bool(Expression(text)(values)) is expected


def test_a_column_of_differences_counts_by_its_largest_value():
    x = np.array([0.1 * 3 - 0.3, 0.5, 1.0])
    assert Expression("x > 0")({"x": x}).tolist() == [False, True, True]
