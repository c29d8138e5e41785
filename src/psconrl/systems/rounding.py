"""Comparisons of calculated decimals: what differs by rounding only is equal.

In doubles 0.1 + 0.2 exceeds 0.3 by 6e-17, and a limit at 0.3 would forbid it. Numbers are therefore equal if they
differ by no more than ``ROUNDING`` times the size of the numbers of which they are calculated. Whole numbers are
compared exactly.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDING = 1e-13


def compared(operator: Callable[..., Any], one: Any, other: Any, size: Callable[[], Any]) -> Any:
    """Return the result of a comparison. ``size``: that of the numbers of which both are calculated.

    >>> bool(compared(np.less_equal, 0.1 + 0.2, 0.3, lambda: 0.3))
    True
    """
    if (are_whole(one) and are_whole(other)) or not (_is_number(one) and _is_number(other)):
        return operator(one, other)
    near = np.abs(np.subtract(one, other)) <= ROUNDING * size()
    return operator(one, np.where(near, one, other))


def are_whole(values: Any) -> bool:
    """Whether all values are whole numbers, which are calculated without rounding."""
    array = np.asarray(values)
    return array.dtype.kind in "biu" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))


def size_of_values(values: Any) -> Any:
    """Return the size of given values: the largest one, since they may have been calculated from all of them."""
    if not _is_number(values) or are_whole(values):
        return 0.0
    finite = np.abs(values)[np.isfinite(values)]
    return finite.max() if finite.size else 0.0


def size_of_result(operator: Callable[..., Any], result: Any, sides: list[tuple[Any, Any]]) -> Any:
    """Return the size of the numbers of which a result is calculated; ``sides``: of both, the values and their size."""
    (left, of_left), (right, of_right) = sides
    own = np.abs(result)
    if operator is np.multiply:
        return own + np.abs(left) * of_right + np.abs(right) * of_left
    if operator is np.divide:
        return own + of_left / np.abs(right) + own * of_right / np.abs(right)
    return own + of_left + of_right


def _is_number(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "biuf"
