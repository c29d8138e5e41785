"""Expressions in the variables of a system, such as ``max(demand - shelf, 0)``.

They are parsed, never run as code: arithmetic, comparisons, ``and``, ``or``, ``not``, ``x if condition else y``,
numbers, percentages, quoted text, names of variables, and the functions in ``FUNCTIONS``. They work on
whole arrays. Comparisons of calculated decimals allow for rounding, see ``rounding``.

>>> Expression("max(demand - shelf, 0)")({"shelf": np.array([0, 3]), "demand": np.array([2, 2])}).tolist()
[2.0, 0.0]
"""

import ast
import sys
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, unknown_name
from psconrl.systems.rounding import compared, size_of_result, size_of_values
from psconrl.systems.syntax import parsed, written


def _pick(*arguments: Any) -> Any:
    """Return the value with a number, counted from 0, of several."""
    which, *values = np.broadcast_arrays(*arguments)
    stacked = np.stack(values)
    inside = (which >= 0) & (which < len(values)) & (which == np.floor(which))
    places = np.where(inside, which, 0).astype(np.int64)
    return np.where(inside, np.take_along_axis(stacked, places[None], axis=0)[0], np.nan)


LONGEST = 2000  # characters of an expression
DEEPEST = 50  # nesting levels of an expression

FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {  # with the least and the largest number of arguments
    "min": (lambda *x: reduce(np.minimum, x), 2, 20),
    "max": (lambda *x: reduce(np.maximum, x), 2, 20),
    "abs": (np.abs, 1, 1),
    "floor": (np.floor, 1, 1),
    "ceil": (np.ceil, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
    "exp": (np.exp, 1, 1),
    "log": (np.log, 1, 1),
    "pick": (_pick, 2, 100),
}
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod, ast.Pow: np.power, ast.USub: np.negative, ast.UAdd: np.positive, ast.Not: np.logical_not,
    ast.And: np.logical_and, ast.Or: np.logical_or, ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.Lt: np.less,
    ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
}  # fmt: skip


class Expression:
    """An expression in named variables; calling it with their values, numbers or arrays, returns its value."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ModelError(f"an expression may have {LONGEST} characters; this one has {len(text)}")
        try:
            tree = parsed(text)
        except ModelError:
            raise
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise ModelError(f"{quoted(text)} is no expression: {getattr(error, 'msg', error)}") from None
        self.text, self.tree = text.strip(), tree
        self.names: frozenset[str] = frozenset(_checked(tree, self.text))

    @classmethod
    def of(cls, tree: ast.expr) -> "Expression":
        """Return the expression of a part of a parsed one."""
        return cls(written(tree))

    def need_names(self, known: Mapping[str, Any] | frozenset[str]) -> None:
        """Raise an error if the expression has a name that is not known."""
        for name in sorted(self.names):
            if name not in known:
                raise ModelError(f"in {quoted(self.text)}: {unknown_name('variable', name, known)}")

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Return the value; where it is not a number, as in 1/0, the result is not finite."""
        return evaluated(self.tree, values)

    def __repr__(self) -> str:
        return f"Expression({quoted(self.text)})"


def evaluated(tree: ast.AST, values: Mapping[str, Any]) -> Any:
    """Return the value of a parsed expression, or of a part of one."""
    with np.errstate(all="ignore"):
        return _value(tree, values)


def _checked(tree: ast.AST, text: str, depth: int = 0) -> set[str]:
    """Return the names of the variables in a parsed expression; raise an error at whatever is not allowed."""
    if depth > DEEPEST:
        raise ModelError(f"{quoted(text[:60])}... has more than {DEEPEST} nesting levels")
    match tree:
        case ast.Constant(value=int() as number) if number > sys.float_info.max:
            raise ModelError(f"in {quoted(text)}: a whole number has more than {sys.float_info.max_10_exp} digits")
        case ast.Constant(value=bool() | int() | float() | str()):
            return set()
        case ast.Name(id=name):
            return {name}
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS:
            parts = [x for x in ast.iter_child_nodes(tree) if isinstance(x, ast.expr)]
        case ast.Compare(ops=ops) if all(type(op) in OPERATORS for op in ops):
            parts = [tree.left, *tree.comparators]
        case ast.IfExp():
            parts = [tree.test, tree.body, tree.orelse]
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
            if name not in FUNCTIONS:
                raise ModelError(f"in {quoted(text)}: {unknown_name('function', name, FUNCTIONS)}")
            least, most = FUNCTIONS[name][1:]
            if not least <= len(parts) <= most:
                wanted = f"{least}" if least == most else f"{least} or more"
                raise ModelError(f"in {quoted(text)}: {name} takes {wanted} arguments; got {len(parts)}")
        case _:
            raise ModelError(
                f"in {quoted(text)}: {quoted(written(tree))} is not allowed; use arithmetic, comparisons, and, or, "
                f"not, 'x if condition else y', and {', '.join(FUNCTIONS)}"
            )
    return set().union(*(_checked(part, text, depth + 1) for part in parts))


def _value(tree: ast.AST, values: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bool() | int() | float() as number):
            return np.float64(number)  # numbers are doubles, so that no power of them takes for ever
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_number(left, values), _number(right, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = _number(operand, values)
            return _defined(value, np.logical_not(value))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](_number(operand, values))
        case ast.BoolOp(op=op, values=parts):
            return reduce(partial(_joined, OPERATORS[type(op)]), [_number(part, values) for part in parts])
        case ast.Compare(left=left, ops=ops, comparators=others):
            return reduce(np.logical_and, _comparisons([left, *others], ops, values))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition = _number(test, values)
            return _defined(condition, np.where(condition, _value(body, values), _value(orelse, values)))
        case ast.Call(func=ast.Name(id=name), args=parts):
            return FUNCTIONS[name][0](*(_number(part, values) for part in parts))
    raise AssertionError(tree)  # _checked knows all others


def _number(tree: ast.AST, values: Mapping[str, Any]) -> Any:
    """Return the value of an operand as numbers."""
    return _as_number(_value(tree, values), tree)


def _as_number(given: Any, tree: ast.AST) -> Any:
    value = np.asarray(given)
    if value.dtype.kind not in "bif":
        raise ModelError(f"{quoted(written(tree))} is text, and cannot be calculated with")
    return value.astype(np.float64)


def _comparisons(parts: list[ast.expr], ops: list[ast.cmpop], values: Mapping[str, Any]) -> list[Any]:
    """Return the results of all comparisons in a chain such as ``0 < x <= 3``."""
    sides = [_value(part, values) for part in parts]
    found = []
    for (k, one), op in zip(enumerate(sides[:-1]), ops, strict=True):
        other = sides[k + 1]
        texts = [np.asarray(side).dtype.kind == "U" for side in (one, other)]
        if texts[0] != texts[1]:
            pair = [written(part) for part in parts[k : k + 2]]
            text, number = pair if texts[0] else pair[::-1]
            raise ModelError(f"{text} is text and {number} is a number, which cannot be compared")
        size = partial(_size_of_both, parts[k], parts[k + 1], values)
        found.append(compared(OPERATORS[type(op)], one, other, size))
    return found


def _size_of_both(one: ast.expr, other: ast.expr, values: Mapping[str, Any]) -> Any:
    return _size(one, values) + _size(other, values)


def _size(tree: ast.AST, values: Mapping[str, Any]) -> Any:
    """Return the size of the numbers of which the value of an expression is calculated, see ``rounding``."""
    match tree:
        case ast.Constant() | ast.Name():
            return size_of_values(_value(tree, values))
        case ast.BinOp(left=left, op=op, right=right):
            sides = [(_number(side, values), _size(side, values)) for side in (left, right)]
            return size_of_result(OPERATORS[type(op)], _number(tree, values), sides)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _size(operand, values)
        case ast.IfExp(body=body, orelse=orelse):
            return np.maximum(_size(body, values), _size(orelse, values))
        case ast.Call(args=parts):
            return reduce(np.maximum, [_size(part, values) for part in parts], size_of_values(_value(tree, values)))
    return 0.0  # a condition


def _joined(operator: Callable[..., Any], one: Any, other: Any) -> Any:
    """Return ``and`` or ``or`` of two conditions, as in Python: the first decides if it can, and nan is not decided."""
    decided = one == 0 if operator is np.logical_and else (one != 0) & ~np.isnan(one)
    undefined = ~decided & (np.isnan(one) | np.isnan(other))
    return np.where(undefined, np.nan, operator(one, other)) if undefined.any() else operator(one, other)


def _defined(condition: Any, result: Any) -> Any:
    """Return what follows from a condition, and nan where the condition is nan."""
    undefined = np.isnan(condition)
    return np.where(undefined, np.nan, result) if undefined.any() else result
