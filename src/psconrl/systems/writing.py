"""A system as plain data, and plain data as the text of a file."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.errors import ModelError
from psconrl.model.units import Units
from psconrl.systems.event_source import EventSource
from psconrl.systems.events import Event
from psconrl.systems.noise_base import Noise
from psconrl.systems.noise_source import NoiseSource
from psconrl.systems.priors import ParameterPrior
from psconrl.systems.reading import FORMAT, VERSION
from psconrl.systems.signatures import without_defaults
from psconrl.systems.sources import RandomSource
from psconrl.systems.variables import Space

FEW = 4  # values that are listed rather than written as a range
BARE = re.compile(r"[A-Za-z0-9_-]+")  # keys of TOML that need no quotes


def system_data(
    make: Callable[..., Any], states: Space, actions: Space, source: RandomSource, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a system, whose constructor is given, as plain data; raise an error if a rule is Python code.

    ``given``: those of its arguments that say neither what its variables are nor what is random.
    """
    units = given["units"].record() if isinstance(given["units"], Units) else given["units"]
    random: dict[str, Any] = {"step": None, "noise": None, "events": None, "clock": None}
    if isinstance(source, EventSource):
        random |= {"events": {name: _event(name, event) for name, event in source.events.items()}}
        random |= {"clock": plain_value(source.given_clock)}
    elif isinstance(source, NoiseSource):
        noise = {name: _noise(name, noise) for name, noise in source.noise.items()}
        random |= {"noise": noise or None, "step": texts_of_rules(source.given_step, "the step of")}
    everything = {
        **{"minimise": None, "maximise": None}, **given, **random,
        "state": {v.name: _listed(v.values) for v in states.variables},
        "action": {v.name: _listed(v.values) for v in actions.variables},
        "start": {name: plain_value(value) for name, value in given["start"].items()},
        "available": None if given["available"] is None else rule_text(given["available"], "available"),
        "limits": dict(given["limits"]) or (),
        "cost_names": dict(given["cost_names"] or {}) or None,
        "costs": texts_of_rules(given["costs"], "the cost"),
        "units": dict(units or {}) or None,
    }  # fmt: skip
    return {"format": FORMAT, "version": VERSION, **without_defaults(make, everything)}


def rule_text(given: Any, what: str) -> Any:
    """Return an expression or a number; raise an error if it is Python code."""
    if callable(given):
        raise ModelError(f"{what} is Python code, which a file cannot hold; write it as an expression")
    return plain_value(given)


def texts_of_rules(given: Any, what: str) -> dict[str, Any]:
    """Return a table of expressions and numbers; raise an error if a part of it is Python code."""
    if not isinstance(given, Mapping):
        return {"": rule_text(given, "the step")}  # raises an error: it is a function
    return {name: rule_text(part, f"{what} {name!r}") for name, part in given.items()}


def plain_value(value: Any) -> Any:
    """Return a number or a text as a file holds it."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, bool) else value


def _listed(values: NDArray[Any]) -> Any:
    """Return the values of a variable: a number, a range or a list."""
    first = int(values[0]) if values.dtype.kind in "iu" else 0
    if values.dtype.kind in "iu" and np.array_equal(values, np.arange(first, first + values.size)):
        if first == 0:
            return int(values.size)
        if values.size > FEW:
            return {"from": first, "to": first + int(values.size) - 1}
    return values.tolist()


def _noise(name: str, noise: Noise) -> dict[str, Any]:
    return {"distribution": noise.name, **_described(noise.description(), name)}


def _event(name: str, event: Event) -> dict[str, Any]:
    given = {one.name: getattr(event, one.name) for one in fields(Event)}
    given |= {"step": texts_of_rules(event.step, "the step of"), "costs": texts_of_rules(event.costs, "the cost")}
    found = {key: value for key, value in without_defaults(Event, given).items() if value != {}}
    return _described(found, name)


def _described(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments of a noise or an event as a file holds them."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, ParameterPrior):
            found[key] = {"prior": value.name, **value.description()}
        elif isinstance(value, list):
            found[key] = [rule_text(part, f"{key} of {name!r}") if callable(part) else part for part in value]
        else:
            found[key] = value if isinstance(value, Mapping) else rule_text(value, f"{key} of {name!r}")
    return found


def toml_text(data: Mapping[str, Any]) -> str:
    """Return plain data as TOML: its tables, and the tables in ``noise`` and ``events``, have headers of their own."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in data.items() if not isinstance(value, Mapping)]
    for key, table in data.items():
        if not isinstance(table, Mapping):
            continue
        has_parts = key in ("noise", "events")
        parts = {f"{key}.{_key(name)}": part for name, part in table.items()} if has_parts else {key: table}
        for header, part in parts.items():
            lines += ["", f"[{header}]", *(f"{_key(name)} = {_value(value)}" for name, value in part.items())]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
