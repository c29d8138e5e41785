"""Names and units in a model file, by the rules of ``psconrl.load``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .errors import BadInputError, shown

KNOWN = ("format", "version", "state_names", "action_names", "cost_names", "maximise", "layout", "units", "at_least")
FORMAT_VERSION = 1
UNIT_FIELDS = ("round", "counted", "levels")


class ModelLabels(NamedTuple):
    """What the numbers of a model are called."""

    costs: list[str]
    states: list[str] | None
    actions: list[str] | None
    floors: frozenset[str]  # costs that are quantities to be kept at or above a threshold
    negated: frozenset[str]  # these and a reward: shown with the opposite sign
    units: list[str]  # of the averages of the costs


def read_labels(record: dict[str, Any], S: int, A: int, m: int) -> ModelLabels:
    """Return the labels in a record without numbers; refuse any field that is unknown."""
    for name in record:
        if name not in KNOWN:
            raise BadInputError(f"unknown field {shown(name)}")
    if record.get("version", FORMAT_VERSION) != FORMAT_VERSION:
        raise BadInputError(f"version {shown(record['version'])} of the format is not known here")
    maximise = record.get("maximise")
    if maximise not in (None, True, False) or type(maximise) not in (type(None), bool):
        raise BadInputError(f"maximise must be true or false; got {shown(maximise)}")
    costs = _names(record.get("cost_names"), m + 1, "cost_names")
    if costs is None:
        costs = ["reward" if maximise else "objective", *(f"cost {i}" for i in range(1, m + 1))]
    floors = _floors(record.get("at_least"), costs)
    _check_layout(record.get("layout"), S)
    units = _units(record.get("units"), costs)
    states = _names(record.get("state_names"), S, "state_names")
    actions = _names(record.get("action_names"), A, "action_names")
    return ModelLabels(costs, states, actions, floors, floors | ({costs[0]} if maximise else set()), units)


def _names(given: Any, n: int, what: str) -> list[str] | None:
    if given is None:
        return None
    if not is_texts(given):
        raise BadInputError(f"{what} must be a list of {n} names")
    valid = len(given) == n == len(set(given)) and all(len(name.splitlines()) <= 1 for name in given)
    if not valid or any("\ud800" <= c <= "\udfff" for name in given for c in name):
        raise BadInputError(f"{what} must be {n} distinct names of one line")
    return list(given)


def is_texts(given: Any) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(given, list) and all(isinstance(x, str) for x in given)


def _floors(given: Any, costs: Sequence[str]) -> frozenset[str]:
    if given is None:
        return frozenset()
    if not is_texts(given) or not set(given) <= set(costs[1:]):
        raise BadInputError("at_least must list names of constrained costs")
    return frozenset(given)


def _is_line(text: Any) -> bool:
    return isinstance(text, str) and len(text.splitlines()) <= 1


def _units(given: Any, costs: Sequence[str]) -> list[str]:
    """Return the unit of the average of every cost, empty if it has none."""
    if given is None:
        return [""] * len(costs)
    if not isinstance(given, dict) or not set(given) <= set(UNIT_FIELDS):
        raise BadInputError(f"units must have the fields {', '.join(UNIT_FIELDS)}")
    duration, counted, levels = given.get("round", ""), given.get("counted", {}), given.get("levels", {})
    if not _is_line(duration) or duration != duration.strip():
        raise BadInputError(f"units: round must be text such as 'hour'; got {shown(duration)}")
    for some in (counted, levels):
        if not isinstance(some, dict) or not set(some) <= set(costs):
            raise BadInputError("units must map names of costs to units")
        if not all(_is_line(unit) and unit.strip() for unit in some.values()):
            raise BadInputError("units must be texts of one line, such as 'euro'")
    if set(counted) & set(levels):
        raise BadInputError("units: a cost is either counted or a level, not both")
    return [
        levels.get(name) or (f"{counted[name]} {_each(duration or 'round')}" if name in counted else "")
        for name in costs
    ]


def _each(duration: str) -> str:
    """Return a duration as it follows "euro": an hour, a day, per 15 minutes."""
    if not duration[0].isalpha():
        return f"per {duration}"
    return f"{'an' if duration[0].lower() in 'aeio' or duration.startswith('hour') else 'a'} {duration}"


def _check_layout(given: Any, S: int) -> None:
    """Check a map with the cell of every state."""
    if given is None:
        return
    if not isinstance(given, dict) or not {"rows", "cells"} <= set(given) <= {"rows", "cells", "layers"}:
        raise BadInputError("layout must have rows, cells and layers")
    rows, cells, layers = given["rows"], given["cells"], given.get("layers")
    if not is_texts(rows) or len({len(row) for row in rows}) != 1:
        raise BadInputError("layout rows must be equally long")
    if not isinstance(cells, list) or len(cells) != S or not all(_is_cell(cell, rows) for cell in cells):
        raise BadInputError(f"layout must have {S} cells on the map")
    if layers is not None and not (is_texts(layers) and len(layers) == S):
        raise BadInputError(f"layout must have {S} layers")


def _is_cell(cell: Any, rows: Sequence[str]) -> bool:
    whole = isinstance(cell, list) and len(cell) == 2 and all(type(x) is int for x in cell)
    return whole and 0 <= cell[0] < len(rows) and 0 <= cell[1] < len(rows[0])
