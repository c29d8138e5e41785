"""Damage of data in tables and lists, as JSON and TOML hold it: the file stays valid, its contents do not."""

import json
import math

WRONG = (
    None, True, False, "", "x", [], {}, [[]], [None], ["x"], {"a": 1}, [1, 2, 3, 4, 5], [[1, 2], [3]], {"0": 0},
    {"@array": "array0"}, [[[[]]]], "psconrl",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 7, 0.5, -0.0, 1.5, 1e-300, 5e-324, 1e9, 1e100, 1.01e100, 1e300, -1e308, math.nan, math.inf, -math.inf,
    10**8, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**400,
)  # fmt: skip
TEXTS = (
    "\0", "\x1b[2J", "\n", "\ud800", "\u202e", "=1", "a" * 100_000, "{x}", "{x:>400000000}", "{x!r}", "{0}", "{}", "{",
    "{x.real}", "%s", "../x", "/dev/zero", "a:b", "gym:a:b", "nan", "9**9**9", "10**10**10", "1/0", "0**-1",
    "x" + " + x" * 5000,
    "(" * 300, "-" * 5000 + "1", "not " * 3000 + "1", "x if x else " * 500 + "x", "min()", "max(x)", "x[0]", "x.real",
    "'a' * 10**9", "lambda: 0", "x == 'good'", "p95(x) <= 7", "x <= 1e999", "<= 1", "1e400", "floor(1e300)", "x" * 300,
    "10**300 * 10**300", "x % 0", "x // 0", "(-8)**0.5", "next_x", "[1, 2]", "range(10**9)", "0..1000000000",
)  # fmt: skip
DEEP = (3, 40, 400)


class Twin(str):
    """A key that is distinct from an equal one, so that a table can hold both."""

    __slots__ = ()

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


def tree_changed(tree, rng):
    """Return the data with one thing changed: a key, an element, a number, a text, or a whole part."""
    if isinstance(tree, dict) and tree and rng.random() < 0.93:
        return _table_changed(tree, rng)
    if isinstance(tree, list) and tree and rng.random() < 0.85:
        return _list_changed(tree, rng)
    return _replaced(tree, rng)


def _table_changed(table, rng):
    keys = list(table)
    key = keys[rng.integers(len(keys))]
    kind = rng.random()
    if kind < 0.12:
        return {k: v for k, v in table.items() if k is not key}
    if kind < 0.16:
        return {(TEXTS[rng.integers(len(TEXTS))] if k is key else k): v for k, v in table.items()}
    if kind < 0.20:
        return table | {Twin(key): tree_changed(table[key], rng)}
    if kind < 0.24:
        return table | {TEXTS[rng.integers(len(TEXTS))]: _replaced(0, rng)}
    if kind < 0.28:
        other = keys[rng.integers(len(keys))]
        return table | {key: table[other], other: table[key]}
    return table | {key: tree_changed(table[key], rng)}


def _list_changed(items, rng):
    k = int(rng.integers(len(items)))
    kind = rng.random()
    if kind < 0.12:
        return items[:k] + items[k + 1 :]
    if kind < 0.20:
        return items[:k] + [items[k]] * int(rng.choice([2, 3, 300])) + items[k + 1 :]
    if kind < 0.24:
        j = int(rng.integers(len(items)))
        swapped = list(items)
        swapped[j], swapped[k] = items[k], items[j]
        return swapped
    return [*items[:k], tree_changed(items[k], rng), *items[k + 1 :]]


def _replaced(value, rng):
    kind = rng.random()
    if isinstance(value, bool | int | float) and kind < 0.75:
        if kind < 0.25 and abs(value) < 1e300:
            return [value + 1, value - 1, -value, value * 10, value * 10**6, value / 3, float(value)][rng.integers(7)]
        return NUMBERS[rng.integers(len(NUMBERS))]
    if isinstance(value, str) and kind < 0.6:
        text = TEXTS[rng.integers(len(TEXTS))]
        return [text, value + text, text + value, value[: len(value) // 2]][rng.integers(4)]
    if kind < 0.80:
        return NUMBERS[rng.integers(len(NUMBERS))]
    if kind < 0.85:
        return TEXTS[rng.integers(len(TEXTS))]
    if kind < 0.92:
        for _ in range(int(DEEP[rng.integers(len(DEEP))])):
            value = [value] if rng.random() < 0.5 else {"a": value}
        return value
    return WRONG[rng.integers(len(WRONG))]


def json_text(tree) -> bytes:
    """Return data as JSON."""
    return json.dumps(tree).encode()


def json_changed(content, rng):
    """Keep valid JSON, and change something in it."""
    return json_text(tree_changed(json.loads(content), rng))


def toml_text(tree) -> bytes:
    """Return a table as TOML, with a line for each of its keys."""
    return "".join(f"{_quoted(key)} = {_inline(value)}\n" for key, value in tree.items()).encode(errors="surrogatepass")


def _inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)} = {_inline(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return '""' if value is None else str(value).lower()


def _quoted(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def without_parts(tree):
    """Yield simpler data: without one part, or with one part replaced by something simple."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield {k: v for k, v in tree.items() if k is not key}
            yield from (tree | {key: part} for part in without_parts(value))
    elif isinstance(tree, list):
        if len(tree) > 3:
            yield tree[: len(tree) // 2]
            yield tree[len(tree) // 2 :]
        for k, value in enumerate(tree[:40]):
            yield tree[:k] + tree[k + 1 :]
            yield from ([*tree[:k], part, *tree[k + 1 :]] for part in without_parts(value))
    elif isinstance(tree, str) and len(tree) > 1:
        yield from (tree[: len(tree) // 2], tree[len(tree) // 2 :], tree[1:], tree[:-1])
