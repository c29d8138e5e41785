"""Objectives and limits as people state them.

``"lost <= 0.1"``, ``"profit >= 2"``, ``"1 <= stock <= 3"``, ``"stock == 2"``: the average of a cost, or of any
expression. ``"lost / demand <= 2%"``: the ratio of two averages; a division within every round belongs in a cost.
``"P(waiting > 10) <= 0.05"``: the share of rounds. ``"p95(waiting) <= 10"``: a percentile. ``"cvar90(cost) <= 5"``: the
mean of the worst tenth of the rounds. ``"p95(waiting, given=shift == 'night') <= 5"``: of the rounds in which a
condition holds, as with ``P``, ``mean`` and ``cvar``.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.base.limit_text import read_limit_text, split
from psconrl.errors import ModelError, unknown_name
from psconrl.systems.expressions import Expression
from psconrl.systems.quantities import ONE, Combination, LinearLimit, Mean, Percentile, Quantity, Ratio, Shortfall
from psconrl.systems.syntax import exact, parsed, written

PERCENTILE = re.compile(r"p(\d{1,2}(?:_\d+)?)")  # p95, p99_9
SHORTFALL = re.compile(r"cvar(\d{1,2}(?:_\d+)?)")
LARGEST_SHARE = 1 - Fraction(1, 10**8)  # of a percentile; beyond, less than the precision of a plan is left
SAME_LIMIT = 2e-9  # of the number, or of one: a smaller excess is the precision of a plan
CONDITIONS = (ast.Compare, ast.BoolOp)


@dataclass(frozen=True, eq=False)
class Requirement:
    """A quantity that is kept at or above one number, at or below another, or both."""

    name: str
    quantity: Quantity
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return self.written()

    def written(self, kind: str = "g") -> str:
        """Return the limit as a text, with short numbers, or with all digits if ``kind`` is ``"r"``."""
        low, high = (None if x is None else (repr(x) if kind == "r" else f"{x:g}") for x in (self.low, self.high))
        if low is None:
            return f"{self.quantity.text} <= {high}"
        if high is None:
            return f"{self.quantity.text} >= {low}"
        if self.low == self.high:
            return f"{self.quantity.text} == {low}"
        return f"{low} <= {self.quantity.text} <= {high}"

    @property
    def sides(self) -> list[tuple[float, bool]]:
        """The numbers, each with whether it is a lower one."""
        return [(x, below) for x, below in ((self.high, False), (self.low, True)) if x is not None]

    def excess(self, value: float) -> float:
        """Return by how much a value of the quantity is beyond the limit: at most zero if it is kept, or undefined."""
        beyond = [number - value if below else value - number for number, below in self.sides]
        return max((x for x in beyond if x == x), default=0.0)

    def is_kept(self, value: float) -> bool:
        """Whether a value of the quantity is within the limit, up to the precision of a plan."""
        return self.excess(value) <= SAME_LIMIT * max(1.0, *(abs(number) for number, _ in self.sides))

    def with_number(self, number: float) -> "Requirement":
        """Return the limit with another number; of two different ones, neither can be meant."""
        if self.low is not None and self.high is not None and self.low != self.high:
            raise ModelError(f"{quoted(str(self))} has two numbers; replace it by a text such as '1 <= x <= 3'")
        x = _finite(number, self.name)
        return _sided(replace(self, low=None if self.low is None else x, high=None if self.high is None else x))


@dataclass(frozen=True, eq=False)
class Statement:
    """What is asked of a system: the objective, whether it is maximised, and the limits."""

    goal: Quantity
    maximises: bool
    requirements: tuple[Requirement, ...]

    def record(self) -> dict[str, Any]:
        """Return the arguments of a system that state the same."""
        return {
            "maximise" if self.maximises else "minimise": self.goal.text,
            "limits": {limit.name: limit.written("r") for limit in self.requirements},
        }

    @property
    def names(self) -> frozenset[str]:
        """Names of costs and variables that are used."""
        return self.goal.names.union(*(requirement.quantity.names for requirement in self.requirements))

    @property
    def texts(self) -> tuple[str, ...]:
        """The quantities as stated, and the names of the limits."""
        limits = (text for limit in self.requirements for text in (limit.name, limit.quantity.text))
        return self.goal.text, *limits

    @property
    def is_linear(self) -> bool:
        """Whether it is a linear objective under linear limits, which one plan solves."""
        linear = isinstance(self.goal, Mean) or (isinstance(self.goal, Shortfall) and self.goal.level is not None)
        return linear and not self.open_levels

    @property
    def open_levels(self) -> tuple[Shortfall, ...]:
        """Expected shortfalls whose levels are to be found: that of the objective first."""
        several = (self.goal, *(requirement.quantity for requirement in self.requirements))
        return tuple(q for q in several if isinstance(q, Shortfall) and q.level is None)

    @cached_property
    def rows(self) -> tuple[LinearLimit, ...]:
        """The costs of a model: of the objective, which must be linear, and of the limits, with different names."""
        if not isinstance(self.goal, Mean | Shortfall):
            raise ModelError(
                f"the objective {quoted(self.goal.text)} is not linear: plan it with psconrl.plan(system), whose "
                "answer has a linear model with the same optimum, or learn psconrl.linear(system)"
            )
        found = [self.goal.limit(0.0, False)]
        taken = {self.goal.text}
        for requirement in self.requirements:
            for number, below in requirement.sides:
                row = requirement.quantity.limit(number, below)
                name = requirement.name if row.name == requirement.quantity.text else row.name
                for extra in ("", " (at least)" if below else " (at most)", f" ({requirement.name})"):
                    if name + extra not in taken:
                        name += extra
                        break
                taken.add(name)
                found.append(replace(row, name=name))
        return tuple(found)

    @property
    def signs(self) -> Floats:
        """The signs of the rows in a model: -1 for what is maximised, or kept at or above a number."""
        return np.array([-1.0 if self.maximises else 1.0, *(-1.0 if row.at_least else 1.0 for row in self.rows[1:])])

    @property
    def thresholds(self) -> Floats:
        """The thresholds of the rows in a model."""
        return self.signs[1:] * [row.threshold for row in self.rows[1:]]

    def with_requirements(self, limits: Any, known: frozenset[str]) -> "Statement":
        """Return the statement with some limits replaced, added or, if None, left out."""
        by_name = {requirement.name: requirement for requirement in self.requirements}
        if isinstance(limits, Mapping):
            for name, given in limits.items():
                if not isinstance(given, str) and name not in by_name:
                    raise ModelError(unknown_name("limit", name, by_name))
                if given is None:
                    del by_name[name]
                elif isinstance(given, str):
                    by_name[name] = _read_limit(given, known, name)
                else:
                    by_name[name] = by_name[name].with_number(given)
        else:
            for new in _read_texts(limits, known):
                same = [n for n, old in by_name.items() if n == new.name or old.quantity.text == new.quantity.text]
                by_name |= {name: replace(new, name=name) for name in same or [new.name]}
        return _checked(Statement(self.goal, self.maximises, tuple(by_name.values())), known)


def read_statement(minimise: Any, maximise: Any, limits: Any, known: frozenset[str]) -> Statement:
    """Return the objective and the limits. ``known``: names of variables and costs."""
    if (minimise is None) == (maximise is None):
        raise ModelError("give either minimise or maximise, a cost or an expression")
    text = minimise if maximise is None else maximise
    if not isinstance(text, str):
        raise ModelError(f"the objective must be a cost or an expression; got {quoted(text)}")
    goal = _quantity(_parsed(text, "the objective"), known)
    if isinstance(goal, Shortfall) and maximise is not None:
        raise ModelError(f"{quoted(text)} cannot be maximised; minimise that of the negative, such as cvar90(-profit)")
    if isinstance(goal, Shortfall) and goal.given is not ONE:
        raise ModelError(f"{quoted(text)}: the objective must be an expected shortfall over all rounds")
    if isinstance(goal, Percentile) and maximise is not None:
        goal = replace(goal, upper=True)
    return _checked(Statement(goal, maximise is not None, tuple(_read_texts(limits, known))), known)


def _checked(statement: Statement, known: frozenset[str]) -> Statement:
    for limit in statement.requirements:
        if not (isinstance(limit.name, str) and limit.name.strip() and limit.name.isprintable()):
            raise ModelError(f"the name of a limit must be a line of text, such as 'service'; got {quoted(limit.name)}")
        if limit.quantity.text == statement.goal.text or limit.name == statement.goal.text:
            raise ModelError(f"{quoted(statement.goal.text)} is the objective and cannot be limited, too")
        if (name := limit.name) in known and name != limit.quantity.text:
            raise ModelError(f"the limit '{limit}' needs a name of its own; {quoted(name)} is a cost or a variable")
    return statement


def _read_texts(limits: Any, known: frozenset[str]) -> list[Requirement]:
    """Return limits from texts, by name if they are a table; two sides of one quantity become one limit."""
    if isinstance(limits, Mapping):
        return [_read_limit(text, known, name) for name, text in limits.items()]
    if isinstance(limits, str) or not isinstance(limits, Sequence):
        raise ModelError(f"limits must be a list of texts such as ['lost <= 0.1']; got {quoted(limits)}")
    found: dict[str, Requirement] = {}
    for text in limits:
        new = _read_limit(text, known, None)
        old = found.get(new.name)
        if old is not None and ((old.low is None) == (new.low is None) or (old.high is None) == (new.high is None)):
            raise ModelError(f"{quoted(new.name)} is limited twice: {old} and {new}")
        if old is not None:
            low, high = old.low if new.low is None else new.low, old.high if new.high is None else new.high
            new = replace(new, low=low, high=high)
        found[new.name] = _sided(new)
    return list(found.values())


def _sided(limit: Requirement) -> Requirement:
    """Return a limit, whose numbers must be in order, with the percentile that its sides are about."""
    low, high = limit.low, limit.high
    if low is not None and high is not None and low > high:
        raise ModelError(f"no number is at least {low:g} and at most {high:g}, as {quoted(limit.name)} should be")
    if isinstance(limit.quantity, Percentile):
        return replace(limit, quantity=limit.quantity.within(low, high))
    return limit


def _read_limit(text: Any, known: frozenset[str], name: str | None) -> Requirement:
    if not isinstance(text, str):
        raise ModelError(f"a limit must be a text such as 'lost <= 0.1'; got {quoted(text)}")
    tree = _parsed(text, "a limit")
    comparison = isinstance(tree, ast.Compare) and len(tree.ops) == len(split(text)[1])
    found = read_limit_text(text, _number) if comparison else None
    if found is None:
        raise ModelError(
            "a limit must be a text such as 'lost <= 0.1', 'profit >= 2', 'x == 3' or '1 <= x <= 3'; "
            f"got {quoted(text)}"
        )
    low, high = (None if number is None else _finite(number, text) for number in (found.low, found.high))
    quantity = _quantity(_parsed(found.quantity, "a limit"), known)
    if isinstance(quantity, Shortfall) and low is not None:
        raise ModelError(f"{quoted(text)}: an expected shortfall can be kept at or below a number, not above")
    return _sided(Requirement(quantity.text if name is None else name, quantity, low, high))


def _number(text: str) -> float | None:
    return _constant(_parsed(text, "a limit"))


def _parsed(text: str, what: str) -> ast.expr:
    try:
        return parsed(text)
    except ModelError:
        raise
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        example = "'lost <= 0.1' or 'lost / demand'"
        raise ModelError(f"{what} must be a text such as {example}; got {quoted(text)}") from None


def _quantity(tree: ast.expr, known: frozenset[str]) -> Quantity:
    text = written(tree)
    match tree:
        case ast.Call(func=ast.Name(id=name), args=[x]) if PERCENTILE.fullmatch(name):
            options = _options(tree, known, ("given",))
            return Percentile(text, _share(name[1:], text), _expression(x, known), **options)
        case ast.Call(func=ast.Name(id=name), args=[x]) if SHORTFALL.fullmatch(name):
            options = _options(tree, known, ("given", "at"))
            return Shortfall(text, _share(name[4:], text), _expression(x, known), **options)
    top, bottom = _fraction(tree, known)
    return Mean(text, top) if bottom is None else Ratio(text, top, bottom)


Quotient = tuple[Combination, Combination | None]


def _fraction(tree: ast.expr, known: frozenset[str]) -> Quotient:
    """Return numerator and denominator, combinations of expressions, of sums, multiples and one division."""
    match tree:
        case ast.Call(func=ast.Name(id="P" | "mean" as name), args=[x]):
            given = _options(tree, known, ("given",)).get("given")
            text = written(x) if name == "mean" or isinstance(x, CONDITIONS) else f"({written(x)}) != 0"
            if given is None:
                return _one(text, known), None
            return _one(f"({text}) * ({given.text})", known), _one(given.text, known)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            top, bottom = _fraction(x, known)
            return top * -1.0, bottom
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1.0 if isinstance(op, ast.Add) else -1.0
            (a, under_a), (b, under_b) = _fraction(left, known), _fraction(right, known)
            if under_a is not None and under_b is not None and str(under_a) != str(under_b):
                raise ModelError(f"{quoted(written(tree))}: ratios with different denominators cannot be added")
            if under_a is None and under_b is not None:
                a = _times(a, under_b, tree)
            if under_b is None and under_a is not None:
                b = _times(b, under_a, tree)
            return a + b * sign, under_a or under_b
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for x, other in ((left, right), (right, left)):
                if (factor := _constant(x)) is not None:
                    top, bottom = _fraction(other, known)
                    return top * factor, bottom
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            (a, under_a), (b, under_b) = _fraction(left, known), _fraction(right, known)
            if (divisor := _constant(right)) is not None:
                if divisor == 0.0:
                    raise ModelError(f"{quoted(written(tree))} divides by zero")
                return a * (1.0 / divisor), under_a
            if under_a is None and under_b is None:
                return a, b
    _need_plain(tree)
    return _one(written(tree), known), None


def _times(constant: Combination, bottom: Combination, tree: ast.expr) -> Combination:
    """Return a denominator times a sum of numbers."""
    if constant.names:
        raise ModelError(f"{quoted(written(tree))}: only a number can be added to a ratio of averages")
    return bottom * float(sum(weight * float(expression({})) for weight, expression in constant.terms))


def _need_plain(tree: ast.expr) -> None:
    """Raise an error if a part of an expression in every round is a quantity over all rounds, or a ratio."""
    for part in ast.walk(tree):
        name = part.func.id if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) else ""
        if name in ("P", "mean") or PERCENTILE.fullmatch(name) or SHORTFALL.fullmatch(name):
            raise ModelError(
                f"in {quoted(written(tree))}: {quoted(written(part))} is taken over all rounds; a share can be "
                "added to averages or multiplied by a number, anything else must stand alone"
            )
    factors = [tree]
    while factors:
        match factors.pop():
            case ast.BinOp(left=left, op=ast.Mult() | ast.Add() | ast.Sub(), right=right):
                factors += [left, right]
            case ast.BinOp(op=ast.Div(), right=bottom) if _constant(bottom) is None:
                raise ModelError(
                    f"in {quoted(written(tree))}: it is not clear whether averages are divided; state one ratio of "
                    "averages, or make what is divided in every round a cost"
                )


def _options(call: ast.Call, known: frozenset[str], allowed: tuple[str, ...]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg not in allowed:
            raise ModelError(f"in {quoted(written(call))}: {unknown_name('option', keyword.arg, allowed)}")
        if [other.arg for other in call.keywords].count(keyword.arg) > 1:
            where = f"in {quoted(written(call))}: {keyword.arg}"
            raise ModelError(f"{where} is given twice; join conditions by 'and', as in given=a and b")
        if keyword.arg == "at":
            number = _constant(keyword.value)
            if number is None:
                raise ModelError(f"in {quoted(written(call))}: the level must be a number")
            options["level"] = _finite(number, written(call))
        else:
            options["given"] = _expression(keyword.value, known)
    return options


def _share(digits: str, text: str) -> Fraction:
    share = Fraction(digits.replace("_", ".")) / 100
    if not 0 < share <= LARGEST_SHARE:
        raise ModelError(f"{quoted(text)}: the share must lie between 0 and 100, and be at most 99.999999")
    return share


def _expression(tree: ast.expr, known: frozenset[str]) -> Expression:
    expression = Expression(written(tree))
    expression.need_names(known)
    return expression


def _one(text: str, known: frozenset[str]) -> Combination:
    combination = Combination.of(text)
    combination.terms[0][1].need_names(known)
    return combination


def _constant(tree: ast.expr) -> float | None:
    """Return the value of an expression without variables, exact before it is rounded; None if it is none."""
    try:
        number = exact(tree)
        if number is not None:
            return float(number)
        expression = Expression.of(tree)
        return None if expression.names else float(expression({}))
    except OverflowError:
        return np.inf
    except (ModelError, TypeError, ValueError):
        return None


def _finite(number: Any, text: str) -> float:
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        value = np.nan
    if not np.isfinite(value):
        raise ModelError(f"{quoted(text)}: a limit needs a finite number; got {quoted(number)}")
    return value
