"""Limits as text: ``eat >= 0.5``, ``1 <= stock <= 3``, ``level == 2``.

``<`` means ``<=``, and ``>`` means ``>=``. Relations in brackets or quotation marks belong to the quantity:
``P(stock > 3) <= 0.1``.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

TOKENS = re.compile(r"""('[^']*'|"[^"]*"|[()\[\]{}]|<=|>=|==|<|>)""")
RELATIONS = {"<=": "<=", "<": "<=", ">=": ">=", ">": ">=", "==": "=="}
IN_ORDER = (["<="], [">="], ["=="])


class LimitText(NamedTuple):
    """A quantity, as it is written, that is kept at or above one number, at or below another, or both."""

    quantity: str
    low: float | None
    high: float | None


def read_limit_text(text: str, number: Callable[[str], float | None]) -> LimitText | None:
    """Return the quantity and its numbers; None if the text is no limit. ``number`` returns that of a text, or None.

    >>> read_limit_text("1 <= P(stock > 3) < 2", lambda text: float(text) if text.isdigit() else None)
    LimitText(quantity='P(stock > 3)', low=1.0, high=2.0)
    """
    sides, relations = split(text)
    numbers = [number(side) for side in sides]
    where = [k for k, value in enumerate(numbers) if value is None]
    between = relations in (["<=", "<="], [">=", ">="]) and where == [1]
    if len(where) != 1 or not (relations in IN_ORDER or between):
        return None
    low = high = None
    for k, value in enumerate(numbers):
        if value is None:
            continue
        relation = relations[min(k, len(relations) - 1)]
        is_high = (relation == "<=") == (k > where[0])
        if relation == "==" or is_high:
            high = value
        if relation == "==" or not is_high:
            low = value
    return LimitText(sides[where[0]], low, high)


def split(text: str) -> tuple[list[str], list[str]]:
    """Return what stands between the relations outside of brackets and quotation marks, and the relations.

    >>> split("p95(x, given=a == 'b') < 3")
    (["p95(x, given=a == 'b')", '3'], ['<='])
    """
    sides, relations, depth = [""], [], 0
    for part in TOKENS.split(text):
        depth += (part in ("(", "[", "{")) - (part in (")", "]", "}"))
        if part in RELATIONS and depth == 0:
            relations.append(RELATIONS[part])
            sides.append("")
        else:
            sides[-1] += part
    return [side.strip() for side in sides], relations
