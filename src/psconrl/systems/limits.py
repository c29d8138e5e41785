"""Objectives and limits as people state them, turned into costs with thresholds.

``"lost <= 0.1"``: the average of a cost, or of any expression. ``"profit >= 2"``: at least. ``"lost / demand <= 0.02"``:
the ratio of two averages. ``"P(waiting > 10) <= 0.05"``: the share of rounds. ``"p95(waiting) <= 10"``: a percentile,
which is the share of rounds above it.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.errors import ModelError
from psconrl.systems.expressions import Expression
from psconrl.systems.functions import Rule

PERCENTILE = re.compile(r"p(\d{1,2}(?:_\d+)?)")  # p95, p99_9
RELATIONS: dict[type, bool] = {ast.LtE: False, ast.Lt: False, ast.GtE: True, ast.Gt: True}


@dataclass(frozen=True, eq=False)
class Limit:
    """A cost, the sum of weighted expressions, that is kept at or below a threshold, or at or above one."""

    name: str
    terms: tuple[tuple[float, Expression], ...]
    threshold: float = 0.0
    at_least: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Names of costs and variables that it uses."""
        return frozenset().union(*(expression.names for _, expression in self.terms))

    def cost(self, columns: Mapping[str, NDArray[Any]], size: int) -> Any:
        """Return the cost at all points."""
        return sum(weight * np.asarray(term(columns), dtype=np.float64) for weight, term in self.terms) + np.zeros(size)


def read_limits(
    minimise: str | None, maximise: str | None, limits: Sequence[str], known: frozenset[str], costs: Mapping[str, Rule]
) -> tuple[Limit, list[Limit]]:
    """Return the objective and the limits."""
    if (minimise is None) == (maximise is None):
        raise ModelError("give either minimise or maximise, a cost or an expression")
    text = minimise if maximise is None else maximise
    if not isinstance(text, str):
        raise ModelError(f"the objective must be a cost or an expression; got {text!r}")
    if isinstance(limits, str) or not isinstance(limits, Sequence):
        raise ModelError(f"limits must be a list of texts such as ['lost <= 0.1']; got {limits!r}")
    names = known | frozenset(costs)
    objective = Limit(text, ((1.0, _expression(text, names)),))
    found = [_read_limit(limit, names) for limit in limits]
    for name in {limit.name for limit in found}:
        if [limit.name for limit in (objective, *found)].count(name) > 1:
            raise ModelError(f"{name!r} is limited twice, or is the objective, too")
    return objective, found


def _read_limit(text: Any, known: frozenset[str]) -> Limit:
    if not isinstance(text, str):
        raise ModelError(f"a limit must be a text such as 'lost <= 0.1'; got {text!r}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        tree = None
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or type(tree.ops[0]) not in RELATIONS:
        raise ModelError(f"a limit must be a text such as 'lost <= 0.1' or 'profit >= 2'; got {text!r}")
    threshold, at_least = _number(tree.comparators[0], text), RELATIONS[type(tree.ops[0])]
    match tree.left:
        case ast.BinOp(left=top, op=ast.Div(), right=bottom) if not isinstance(bottom, ast.Constant):
            ratio = (1.0, _expression(ast.unparse(top), known)), (-threshold, _expression(ast.unparse(bottom), known))
            return Limit(ast.unparse(tree.left), ratio, 0.0, at_least)
        case ast.Call(func=ast.Name(id="P"), args=[condition], keywords=[]):
            return Limit(
                ast.unparse(tree.left), ((1.0, _expression(ast.unparse(condition), known)),), threshold, at_least
            )
        case ast.Call(func=ast.Name(id=name), args=[quantity], keywords=[]) if PERCENTILE.fullmatch(name):
            if at_least:
                raise ModelError(f"{text!r}: a percentile can be kept at or below a value, not above")
            share = float(name[1:].replace("_", ".")) / 100.0
            above = f"({ast.unparse(quantity)}) > {threshold!r}"
            return Limit(f"P({above})", ((1.0, _expression(above, known)),), 1.0 - share, False)
        case left:
            return Limit(ast.unparse(left), ((1.0, _expression(ast.unparse(left), known)),), threshold, at_least)


def _expression(text: str, known: frozenset[str]) -> Expression:
    expression = Expression(text)
    expression.need_names(known)
    return expression


def _number(tree: ast.expr, text: str) -> float:
    try:
        value = float(Expression.of(tree)({}))
    except (KeyError, ModelError):
        raise ModelError(f"a limit must end with a number; got {text!r}") from None
    if not np.isfinite(value):
        raise ModelError(f"a limit must be finite; got {text!r}")
    return value
