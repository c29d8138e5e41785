"""What a user gives as a function or as an expression, called on whole arrays if that works, else one by one.

Functions must be deterministic: all randomness is noise. While a model is built, every function is called again, in
another order, at all of the first 5000 points at which it was called, and at some later ones. A function that returns
something else in a share q of its calls passes with probability :math:`(1-q)^{5000}` or less: 7e-3 for one in a
thousand, 2e-22 for one in a hundred. With fewer points, n, it is :math:`(1-q)^n`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.expressions import Expression

COMPARED = 200  # points at which a call with arrays is compared with single calls, each made twice
CALLED_AGAIN = 5000  # points at which a function is called once more while a model is built; all, if there are fewer
LATER_AGAIN = 20  # points of each later call
LARGEST_WHOLE = 2**53  # beyond, whole numbers are doubles
SAME_RESULT = 1e-9  # relative: with arrays a function may round otherwise

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
        self.expression: Expression | None = None  # if that is what was given
        if isinstance(given, str):
            expression = self.expression = Expression(given)
            try:
                expression.need_names(known)
            except ModelError as error:
                raise ModelError(f"{what}: {error}") from None
            self.names, self._call = expression.names, lambda **values: expression(values)
        elif callable(given):
            self.names, self._call = _arguments(given, what, known), given
            self.takes_arrays = False  # until a trial shows that it does
        elif isinstance(given, int | float | np.number):
            constant = _constant(given, what)
            self.names, self._call = frozenset(), lambda **values: constant
        else:
            raise ModelError(f"{what} must be a function, an expression or a number; got {quoted(given)}")
        self.is_code = callable(given)
        self._again = CALLED_AGAIN  # points at which it will be called once more

    def try_arrays(self, values: Values) -> None:
        """Find out whether the function takes arrays, by comparison with single calls at some points."""
        n = len(next(iter(values.values()), ()))
        if not self.is_code or n == 0:
            return
        some = np.unique(np.linspace(0, n - 1, min(n, COMPARED)).astype(np.int64))
        few = {name: array[some] for name, array in values.items() if name in self.names}
        single = self._one_by_one(few, some.size)
        self._need_same(single, self._one_by_one, few, some.size)
        try:
            with np.errstate(all="ignore"):
                at_once = self._shaped(self._call(**few), some.size)
        except Exception:
            self.takes_arrays = False
            return
        self.takes_arrays = _same(single, at_once)

    def __call__(self, values: Values, size: int) -> Any:
        """Return the values at all points: an array (size,), or a table of such arrays if the function returns one."""
        used = {name: array for name, array in values.items() if name in self.names}
        call = self._at_once if self.takes_arrays else self._one_by_one
        result = call(used, size)
        if self.is_code and size:
            n = min(size, max(self._again, LATER_AGAIN))
            some = np.unique(np.linspace(0, size - 1, n).astype(np.int64))
            self._again = max(self._again - some.size, 0)
            few = {name: np.broadcast_to(array, (size,))[some] for name, array in used.items()}
            self._need_same(_at_points(result, some), call, few, some.size)
        return result

    def _at_once(self, values: Values, size: int) -> Any:
        with np.errstate(all="ignore"):
            return self._shaped(self._call(**values), size)

    def _need_same(self, results: Any, call: Callable[[Values, int], Any], values: Values, size: int) -> None:
        """Raise an error unless the function returns the same results again, when called in the reverse order."""
        reverse = np.arange(size)[::-1]
        again = call({name: array[reverse] for name, array in values.items()}, size)
        if not _same(_at_points(results, reverse), again, SAME_RESULT):
            columns = {name: array.tolist() for name, array in values.items()}
            odd = next((k for k in range(size) if not _same_at(k, results, size - 1 - k, again)), 0)
            where = shown_values({name: column[odd] for name, column in columns.items()})
            raise ModelError(f"{self.what} gave two results for the same arguments, {where}; it must be deterministic")

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

    def _column(self, results: list[Any], columns: Mapping[str, list[Any]], part: str = "") -> NDArray[Any]:
        try:
            column = np.array(results)
        except ValueError:
            column = np.empty(0, dtype=object)
        if column.shape != (len(results),) or column.dtype.kind not in "biufU":
            odd = next((k for k, x in enumerate(results) if not isinstance(x, int | float | str | np.generic)), 0)
            where = shown_values({name: values[odd] for name, values in columns.items()})
            raise ModelError(f"{self.what} must return {part}a number; at {where} it returns {quoted(results[odd])}")
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
        raise ModelError(f"{what} must be a number; got {quoted(_first(array))}")
    return array.astype(np.float64)


def as_condition(values: Any, what: str, columns: Values) -> Bools:
    """Return the values of a condition as True and False; ``columns``: where it was evaluated."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{what} must be a condition; got {quoted(_first(array))}")
    undefined = np.flatnonzero(array != array)
    if undefined.size:
        where = shown_values({name: column[undefined[0]] for name, column in columns.items()})
        raise ModelError(f"{what} must be a condition; at {where} it is nan")
    return array.astype(bool)


def _first(array: NDArray[Any]) -> Any:
    value = array.ravel()[0] if array.size else None
    return value.item() if isinstance(value, np.generic) else value


def _constant(given: Any, what: str) -> Any:
    """Return a constant; raise an error if it is too large for a double."""
    try:
        return given if abs(given) < LARGEST_WHOLE else float(given)
    except OverflowError:
        raise ModelError(
            f"{what} must be a number that a double can hold; got one of {len(str(given))} digits"
        ) from None


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
            raise ModelError(f"{what} takes {quoted(p.name)}, which is no variable; known: {', '.join(sorted(known))}")
    return frozenset(p.name for p in parameters if p.name in known)


def takes_all(given: Any) -> bool:
    """Return whether a function takes all variables, by their names."""
    try:
        parameters = inspect.signature(given).parameters.values() if callable(given) else ()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def _at_points(result: Any, points: Any) -> Any:
    if isinstance(result, Mapping):
        return {key: column[points] for key, column in result.items()}
    return result[points]


def _same_at(k: int, one: Any, j: int, two: Any) -> bool:
    return _same(_at_points(one, [k]), _at_points(two, [j]), SAME_RESULT)


def _same(one: Any, two: Any, tolerance: float = 0.0) -> bool:
    if isinstance(one, Mapping):
        return (
            isinstance(two, Mapping) and one.keys() == two.keys() and all(_same(one[k], two[k], tolerance) for k in one)
        )
    if isinstance(two, Mapping) or one.shape != two.shape:
        return False
    if tolerance and one.dtype.kind == two.dtype.kind == "f":
        return bool(np.allclose(one, two, rtol=tolerance, atol=0.0, equal_nan=True))
    equal_nan = one.dtype.kind == "f" and two.dtype.kind == "f"
    return bool(np.array_equal(one, two, equal_nan=equal_nan))
