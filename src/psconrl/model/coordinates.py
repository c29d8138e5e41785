"""Coordinates of states, read from the numbers in their names.

``"4 urgent, 1 elective, 0 transfer"`` is the point (4, 1, 0) of a space whose axes are urgent, elective and transfer.
"""

import re
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.model.cmdp import CMDP

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Coordinates(NamedTuple):
    """Coordinates of all states, and the name of each axis."""

    names: tuple[str, ...]
    values: Floats  # (states, coordinates)


def coordinates(cmdp: CMDP) -> Coordinates | None:
    """Return the numbers that distinguish the states; None if the names differ in form, or only in words.

    States without names have one coordinate, their number.
    """
    if cmdp.state_names is None:
        return Coordinates(("state",), np.arange(cmdp.n_states, dtype=np.float64)[:, None])
    form, *others = {NUMBER.sub("#", name) for name in cmdp.state_names}
    if others:
        return None
    values = np.array([[float(x) for x in NUMBER.findall(name)] for name in cmdp.state_names])
    varied = [k for k in range(values.shape[1]) if np.ptp(values[:, k]) > 0]
    if len(np.unique(values, axis=0)) < cmdp.n_states:
        return None
    return Coordinates(tuple(axis_name(form, k) for k in varied), values[:, varied])


def why_unlike(cmdp: CMDP) -> str:
    """Say why states have no coordinates, for a model for which ``coordinates`` is None."""
    names = cmdp.state_names
    assert names is not None
    other = next((name for name in names if NUMBER.sub("", name) != NUMBER.sub("", names[0])), names[-1])
    return f"{quoted(names[0])} and {quoted(other)} do not differ in a number alone"


def with_total(places: Coordinates) -> Coordinates:
    """Append the sum of three or more counts as a coordinate, since rules often depend on it."""
    counts = (places.values >= 0).all() and (places.values == places.values.round()).all()
    if len(places.names) < 3 or not counts:
        return places
    return Coordinates((*places.names, "in all"), np.column_stack([places.values, places.values.sum(axis=1)]))


def axis_name(form: str, k: int) -> str:
    """Return what the k-th number of a name counts, from the words around it.

    >>> [axis_name("# urgent, # elective", k) for k in (0, 1)], axis_name("# and # waiting", 1), axis_name("(#, #)", 0)
    (['urgent', 'elective'], '· and n waiting', '(n, ·)')
    """
    parts = form.split("#")
    before, after = "·".join(parts[: k + 1]), "·".join(parts[k + 1 :])
    head, tail = before.rpartition(",")[2].strip(), after.partition(",")[0].strip()
    words = f"{head} {tail}".strip()
    if not any(letter.isalpha() for letter in words) or words.count("(") != words.count(")"):
        return f"{before}n{after}".strip()  # the comma is within brackets
    return f"{before.rpartition(',')[2]}n{after.partition(',')[0]}".strip() if "·" in words else words
