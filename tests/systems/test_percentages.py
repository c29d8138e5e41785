"""Percentages and remainders: a table of cases, and random texts against an own evaluator in fractions."""

import ast
import random
from fractions import Fraction

import pytest

from psconrl.errors import ModelError
from psconrl.systems.expressions import Expression
from psconrl.systems.limits import read_statement
from psconrl.systems.syntax import exact, parsed, written

KNOWN = frozenset(("d", "hour", "cost", "day"))


def limit(text):
    return read_statement("cost", None, [text], KNOWN).statement.requirements[0]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("d <= 5%", None, 0.05),
        ("d <= 10% + 5%", None, 0.15),
        ("d <= 5% - 1%", None, 0.04),
        ("d >= 5% + 5%", 0.1, None),
        ("d <= 10% * 3", None, 0.3),
        ("d <= 3 * 10%", None, 0.3),
        ("d <= (10% + 5%) / 3", None, 0.05),
        ("d <= 1 - 90%", None, 0.1),
        ("d <= 1 - .9", None, 0.1),
        ("d <= 0.1 + 0.2", None, 0.3),
        ("d <= 5 % - 1", None, -0.95),
        ("d <= 5%-1%", None, 0.04),
        ("d <= -5%", None, -0.05),
        ("d <= 2.5%", None, 0.025),
        ("d <= .7%", None, 0.007),
        ("d <= 5.%", None, 0.05),
        ("d <= 1e2%", None, 1.0),
        ("d <= 1_000%", None, 10.0),
        ("10% <= d <= 20%", 0.1, 0.2),
        ("20% >= d >= 10%", 0.1, 0.2),
        ("d == 7%", 0.07, 0.07),
        ("d <= (70) % 3", None, 1.0),
        ("d <= (7 + 1) % 3", None, 2.0),
        ("d <= 3**2%", None, 3**0.02),
        ("d <= max(5%, 7%)", None, 0.07),
    ],
)
def test_numbers_of_limits(text, low, high):
    found = limit(text)
    assert (found.low, found.high) == (low, high)
    again = limit(found.written("r"))
    assert (again.low, again.high) == (low, high)


@pytest.mark.parametrize("text", ["d <= 70 % 3", "d <= 70%3", "d <= 2 % hour", "d <= 2 % (3)", "P(hour % 24 % 5) <= 1"])
def test_a_remainder_of_a_number_needs_parentheses(text):
    with pytest.raises(
        ModelError, match=r"after a number, as in '\d+ %', % means percent; for a remainder write \(\d+\) %"
    ):
        limit(text)


@pytest.mark.parametrize(
    "text", ["d <= %", "d <= 5%%", "d <= (5 + 5)%", "d <= 0x1%", "d <= 3j%", "d% <= 3", "d <= 1e9999%"]
)
def test_no_percentages(text):
    with pytest.raises(ModelError) as caught:
        limit(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("P(hour % 24 == 3) <= 1", "P(hour % 24 == 3)"),
        ("P((2 * hour) % 24 == 3) <= 1", "P((2 * hour) % 24 == 3)"),
        ("P((24) % hour == hour % day) <= 1", "P((24) % hour == hour % day)"),
        ("P(((hour * 2 + 1) % 24) % 5 == 3) <= 1", None),
        ("P(day == '5%') <= 1", "P(day == '5%')"),
        ("50% * d <= 3", "0.5 * d"),
    ],
)  # fmt: skip
def test_texts_are_read_again(text, shown):
    found = limit(text).quantity.text
    assert shown is None or found == shown
    assert ast.dump(parsed(found)) == ast.dump(parsed(text.rpartition("<")[0]))
    assert limit(f"{found} <= 1").quantity.text == found


def test_percentages_in_all_expressions():
    assert Expression("50% * x + 5%")({"x": 2.0}) == 1.05


class Terms:
    """Random texts with percentages, and their values in fractions, by an evaluator that knows the grammar only."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self):
        digits = self.random.choice(["5", "10", ".5", "2.5", "0.1", "7.", "1e1", "30"])
        value, sign = Fraction(digits), self.random.choice(["", "%", " %"])
        return digits + sign, value / 100 if sign else value

    def primary(self, depth):
        if depth == 0 or self.random.random() < 0.5:
            return self.number()
        text, value = self.sum(depth - 1)
        return f"({text})", value

    def product(self, depth):
        text, value = self.primary(depth)
        while self.random.random() < 0.4:
            operator = self.random.choice("*/%")
            other, b = self.primary(depth)
            if operator == "%":  # a remainder, whose left side may not end in a number
                if not b:
                    continue
                text, value = f"({text}) % {other}", value - b * (value // b)
            elif operator == "*" or b:
                space = self.random.choice(["", " "])
                text, value = f"{text}{space}{operator}{space}{other}", value * b if operator == "*" else value / b
        return text, value

    def sum(self, depth):
        text, value = self.product(depth)
        while self.random.random() < 0.5:
            operator = self.random.choice("+-")
            other, b = self.product(depth)
            space = self.random.choice(["", " "])
            text, value = f"{text}{space}{operator}{space}{other}", value + b if operator == "+" else value - b
        return text, value


def has_remainder(tree):
    return any(isinstance(part, ast.Mod) for part in ast.walk(tree))


def test_random_texts():
    seen = 0
    for seed in range(300):
        text, value = Terms(seed).sum(2)
        tree = parsed(text)
        assert ast.dump(parsed(written(tree))) == ast.dump(tree)
        if has_remainder(tree):
            continue  # in doubles, where a remainder may jump
        seen += 1
        assert exact(tree) == value, text
        found = limit(f"d <= {text}")
        assert found.high == float(value)
    assert seen > 100


def test_random_remainders_of_whole_numbers():
    draw = random.Random(3)
    for _ in range(300):
        a, b, c = draw.randint(-50, 50), draw.randint(1, 20), draw.randint(1, 9)
        assert limit(f"d <= ({a}) % {b} + {c}%").high == pytest.approx(a % b + c / 100)


def test_powers_of_numbers_are_exact_while_they_are_short():
    assert exact(parsed("((2**64)**64)**24")) == 2 ** (64 * 64 * 24)
    assert exact(parsed("((2**64)**64)**-24")) == Fraction(1, 2 ** (64 * 64 * 24))
    for text in ("((2**64)**64)**25", "((0.5**64)**64)**25", "((2**64)**64)**-25", "((((9**64)**64)**64)**64)**64"):
        assert exact(parsed(text)) is None
