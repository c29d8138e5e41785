"""What a user gives as a function or as an expression, called on whole arrays if that works, else one by one."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats
from psconrl.errors import ModelError
from psconrl.systems.expressions import Expression

COMPARED = 24  # points at which a call with arrays is compared with single calls

Values = Mapping[str, NDArray[Any]]


class Rule:
    """A function of the variables of a system, or an expression, or a constant.

    ``what`` names it in errors; ``known`` are the names of the variables that it may use.
    """

    def __init__(self, given: Any, what: str, known: frozenset[str]) -> None:
        self.what = what
        self.takes_arrays = True
        self.names: frozenset[str]
        self._call: Callable[..., Any]
        if isinstance(given, str):
            expression = Expression(given)
            try:
                expression.need_names(known)
            except ModelError as error:
                raise ModelError(f"{what}: {error}") from None
            self.names, self._call = expression.names, lambda **values: expression(values)
        elif callable(given):
            self.names, self._call = _arguments(given, what, known), given
            self.takes_arrays = False  # until a trial shows that it does
        elif isinstance(given, int | float | np.number):
            self.names, self._call = frozenset(), lambda **values: given
        else:
            raise ModelError(f"{what} must be a function, an expression or a number; got {given!r}")
        self.is_code = callable(given)

    def try_arrays(self, values: Values) -> None:
        """Find out whether the function takes arrays, by comparison with single calls at some points."""
        n = len(next(iter(values.values()), ()))
        if not self.is_code or n == 0:
            return
        some = np.unique(np.linspace(0, n - 1, min(n, COMPARED)).astype(np.int64))
        few = {name: array[some] for name, array in values.items() if name in self.names}
        single, again = self._one_by_one(few, some.size), self._one_by_one(few, some.size)
        if not _same(single, again):
            raise ModelError(
                f"{self.what} gave two results for the same arguments, {self._first_difference(few, some.size)}; "
                "it must be deterministic"
            )
        try:
            with np.errstate(all="ignore"):
                at_once = self._shaped(self._call(**few), some.size)
        except Exception:
            return
        self.takes_arrays = _same(single, at_once)

    def __call__(self, values: Values, size: int) -> Any:
        """Return the values at all points: an array (size,), or a table of such arrays if the function returns one."""
        used = {name: values[name] for name in self.names}
        if self.takes_arrays:
            with np.errstate(all="ignore"):
                return self._shaped(self._call(**used), size)
        return self._one_by_one(used, size)

    def _shaped(self, result: Any, size: int) -> Any:
        if isinstance(result, Mapping):
            return {key: np.broadcast_to(np.asarray(value), (size,)) for key, value in result.items()}
        return np.broadcast_to(np.asarray(result), (size,))

    def _one_by_one(self, values: Values, size: int) -> Any:
        columns = {name: array.tolist() for name, array in values.items()}
        results = [self._at(point) for point in _points(columns, size)]
        if results and isinstance(results[0], Mapping):
            self._need_same_keys(results, columns)
            return {key: self._column([r[key] for r in results], columns, f"{key} as ") for key in results[0]}
        return self._column(results, columns)

    def _need_same_keys(self, results: list[Any], columns: Mapping[str, list[Any]]) -> None:
        """Raise an error if a result is not a table with the keys of the first."""
        keys = results[0].keys()
        odd = next((k for k, x in enumerate(results) if not isinstance(x, Mapping) or x.keys() != keys), None)
        if odd is not None:
            result = results[odd]
            got = ", ".join(map(str, result)) or "nothing" if isinstance(result, Mapping) else repr(result)
            where = shown_values({name: values[odd] for name, values in columns.items()})
            raise ModelError(
                f"{self.what} must return {', '.join(map(str, keys))} everywhere; at {where} it returns {got}"
            )

    def _at(self, point: Mapping[str, Any]) -> Any:
        try:
            return self._call(**point)
        except Exception as error:
            raise ModelError(f"{self.what} failed at {shown_values(point)}: {error}") from error

    def _first_difference(self, values: Values, size: int) -> str:
        """Return a point at which two calls differ, as text."""
        columns = {name: array.tolist() for name, array in values.items()}
        for point in _points(columns, size):
            if repr(self._at(point)) != repr(self._at(point)):
                return shown_values(point)
        return "at some of them"

    def _column(self, results: list[Any], columns: Mapping[str, list[Any]], part: str = "") -> NDArray[Any]:
        try:
            column = np.array(results)
        except ValueError:
            column = np.empty(0, dtype=object)
        if column.shape != (len(results),) or column.dtype.kind not in "biufU":
            odd = next((k for k, x in enumerate(results) if not isinstance(x, int | float | str | np.generic)), 0)
            where = shown_values({name: values[odd] for name, values in columns.items()})
            raise ModelError(f"{self.what} must return {part}a number; at {where} it returns {results[odd]!r}")
        return column


def _points(columns: Mapping[str, list[Any]], size: int) -> Iterator[dict[str, Any]]:
    for k in range(size):
        yield {name: column[k] for name, column in columns.items()}


def shown_values(values: Mapping[str, Any]) -> str:
    """Return values as text: "shelf=4, order=2"."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def rule_numbers(values: Any, what: str) -> Floats:
    """Return the values of a rule as numbers; raise an error if they are not."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{what} must be a number; got {array.ravel()[0].item()!r}")
    return array.astype(np.float64)


def as_condition(values: Any, what: str) -> Bools:
    """Return the values of a condition as True and False."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{what} must be a condition; got {array.ravel()[0].item()!r}")
    return array.astype(bool)


def _arguments(function: Callable[..., Any], what: str, known: frozenset[str]) -> frozenset[str]:
    """Return the names of the variables that a function takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be a function with named arguments") from None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return known
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY) or (p.name not in known and p.default is p.empty):
            raise ModelError(f"{what} takes {p.name!r}, which is no variable; known: {', '.join(sorted(known))}")
    return frozenset(p.name for p in parameters if p.name in known)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, Mapping):
        return isinstance(two, Mapping) and one.keys() == two.keys() and all(_same(one[k], two[k]) for k in one)
    if isinstance(two, Mapping):
        return False
    equal_nan = one.dtype.kind == "f" and two.dtype.kind == "f"
    return bool(np.array_equal(one, two, equal_nan=equal_nan))
