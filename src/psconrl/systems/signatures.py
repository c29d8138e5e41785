"""The arguments of constructors, by their signatures: what a description holds, and what its file must hold."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

import numpy as np


def arguments_of(make: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the arguments of a constructor or a function by name, in their order."""
    return signature(make).parameters


def required(make: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments without a default.

    >>> required(lambda a, b=2: 0)
    ['a']
    """
    return [name for name, argument in arguments_of(make).items() if argument.default is Parameter.empty]


def without_defaults(make: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, in the order of the signature; all must be given.

    >>> without_defaults(lambda a, b=2: 0, {"b": 2, "a": 1})
    {'a': 1}
    """
    return {name: given[name] for name, one in arguments_of(make).items() if not _same(given[name], one.default)}


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, np.ndarray | Mapping | list) or callable(value):
        return value is default
    return bool(value is default or value == default)
