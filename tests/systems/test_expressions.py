"""Expressions: what they mean, on numbers and on arrays, and what is refused."""

import numpy as np
import pytest

from psconrl.errors import ModelError
from psconrl.systems.expressions import Expression

VALUES = {"x": 3, "y": -2, "mode": "fast"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x + 2 * y", -1.0),
        ("-x ** 2", -9.0),
        ("7 // 2 + (7) % 4", 6.0),
        ("x / 4", 0.75),
        ("min(x, y, 1)", -2.0),
        ("max(x, y)", 3.0),
        ("abs(y) + floor(2.7) + ceil(2.2)", 7.0),
        ("sqrt(x + 1) + log(exp(2))", 4.0),
        ("1 if x > 2 else 0", 1.0),
        ("x > 2 and y > 0", 0.0),
        ("x > 2 or y > 0", 1.0),
        ("not x > 2", 0.0),
        ("0 <= x < 3", 0.0),
        ("-5 < y < x", 1.0),
        ("pick(x, 5, 6, 7, x + 8)", 11.0),
        ("pick(x - 3, 5, 6)", 5.0),
        ("mode == 'fast'", 1.0),
        ("2 if mode != 'fast' else 5", 5.0),
        ("9 ** 9 ** 9 ** 9", np.inf),
    ],
)
def test_value(text, value):
    assert float(Expression(text)(VALUES)) == value


def test_arrays_give_the_values_of_their_elements():
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 5, size=(2, 200))
    expression = Expression("x * y if x > y else (abs(x) - y // 3 if not y > 2 else min(x, 2 * y))")
    expected = [float(expression({"x": a, "y": b})) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(expression({"x": x, "y": y}), expected)


def test_names_are_those_of_the_variables():
    assert Expression("max(a, 2) if b > 0 else c").names == {"a", "b", "c"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "x.real",
        "x[0]",
        "[1, 2]",
        "lambda: 1",
        "(x := 3)",
        "f'{x}'",
        "min(x, *y)",
        "max(x)",
        "sqrt(x, y)",
        "open('f')",
        "x <",
        "",
        "1; 2",
        "x is y",
        "x in y",
        "b'1'",
        "1j",
        "...",
        "x @ y",
        "x << 3",
        "~x",
        "yield x",
        "+".join(["x"] * 2000),
        "(" * 300 + "x" + ")" * 300,
        "-" * 60 + "x",
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises(ModelError):
        Expression(text)


def test_text_is_not_calculated_with():
    with pytest.raises(ModelError, match="'mode' is text"):
        Expression("mode + 1")(VALUES)


def test_unknown_names_have_suggestions():
    with pytest.raises(ModelError, match="did you mean 'shelf'"):
        Expression("shlef + 1").need_names(frozenset({"shelf", "order"}))
