"""All combinations of the outcomes of several noises, and what they do to the state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.systems.functions import Rule
from psconrl.systems.variables import Space


@dataclass(frozen=True, eq=False)
class JointOutcomes:
    """The joint outcomes of all noises: the value of every noise in each of them."""

    values: Mapping[str, NDArray[Any]]  # (W,) each
    size: int

    @classmethod
    def of(cls, values: Sequence[Mapping[str, NDArray[Any]]]) -> "JointOutcomes":
        """Return all combinations of the outcomes of several noises, the last noise running fastest.

        ``values``: of every noise, the values of its variables in each of its outcomes.
        """
        shape = tuple(len(next(iter(own.values()))) for own in values)
        size, names = prod(shape), [name for own in values for name in own]
        need(8.0 * size * (len(names) + 1), f"{size:.3g} joint outcomes of {', '.join(names)}", ModelError)
        places = np.unravel_index(np.arange(size), shape) if shape else ()
        pairs = zip(values, places, strict=True)
        return cls({name: v[place] for own, place in pairs for name, v in own.items()}, size)


def next_values(
    step: Mapping[str, Rule] | Rule, states: Space, columns: Mapping[str, NDArray[Any]], size: int, what: str
) -> dict[str, NDArray[Any]]:
    """Return the variables of the next state at some points; those that a table does not name keep their values."""
    if isinstance(step, Rule):
        returned = step(columns, size)
        if not isinstance(returned, Mapping):
            raise ModelError(
                f"{what} must return a table of the next state's variables; got {quoted(returned[0].item())}"
            )
        for name in states.names:
            if name not in returned:
                raise ModelError(f"{what} must return all variables of the state; {quoted(name)} is missing")
        for name in returned:
            if name not in states.names:
                raise ModelError(f"{what} returns {quoted(name)}, which is no variable of the state")
        return dict(returned)
    found = {name: step[name](columns, size) if name in step else columns[name] for name in states.names}
    for name, values in found.items():
        if isinstance(values, Mapping):
            raise ModelError(
                f"the {what} of {quoted(name)} must return a number or a text; got a table of {', '.join(values)}"
            )
    return found
