"""A system as plain data, and plain data as the text of a file."""

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.errors import ModelError
from psconrl.model.units import Units
from psconrl.systems.event_source import EventSource
from psconrl.systems.events import Event
from psconrl.systems.noise import Binomial, Categorical, Noise
from psconrl.systems.noise_source import NoiseSource
from psconrl.systems.priors import Gamma, ParameterPrior, Weights
from psconrl.systems.reading import FORMAT, SAME_AS, VERSION
from psconrl.systems.sources import RandomSource
from psconrl.systems.variables import Space

FEW = 4  # values that are listed rather than written as a range
BARE = re.compile(r"[A-Za-z0-9_-]+")  # keys of TOML that need no quotes


def system_data(states: Space, actions: Space, source: RandomSource, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system as plain data; ``given``: its other arguments. Raise an error if a rule is Python code."""
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for key in ("minimise", "maximise", "available", "state_names", "action_names"):
        if given.get(key) is not None:
            data[key] = rule_text(given[key], key)
    if given["limits"]:
        data["limits"] = dict(given["limits"])
    if given["cost_names"]:
        data["cost_names"] = dict(given["cost_names"])
    if isinstance(source, EventSource) and source.given_clock is not None:
        data["clock"] = source.given_clock
    data["start"] = {name: _plain(value) for name, value in given["start"].items()}
    for key, space in (("state", states), ("action", actions)):
        data[key] = {v.name: _listed(v.values) for v in space.variables}
    if isinstance(source, EventSource):
        seen: dict[int, str] = {}
        data["events"] = {name: _event(name, event, seen) for name, event in source.events.items()}
    elif isinstance(source, NoiseSource):
        if source.noise:
            seen = {}
            data["noise"] = {name: _noise(name, noise, seen) for name, noise in source.noise.items()}
        data["step"] = texts_of_rules(source.given_step, "the step of")
    data["costs"] = texts_of_rules(given["costs"], "the cost")
    units = given["units"].record() if isinstance(given["units"], Units) else given["units"]
    return data | ({"units": dict(units)} if units else {})


def rule_text(given: Any, what: str) -> Any:
    """Return an expression or a number; raise an error if it is Python code."""
    if callable(given):
        raise ModelError(f"{what} is Python code, which a file cannot hold; write it as an expression")
    return _plain(given)


def texts_of_rules(given: Any, what: str) -> dict[str, Any]:
    """Return a table of expressions and numbers; raise an error if a part of it is Python code."""
    if not isinstance(given, Mapping):
        return {"": rule_text(given, "the step")}  # raises an error: it is a function
    return {name: rule_text(part, f"{what} {name!r}") for name, part in given.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _listed(values: NDArray[Any]) -> Any:
    """Return the values of a variable: a number, a range or a list."""
    first = int(values[0]) if values.dtype.kind in "iu" else 0
    if values.dtype.kind in "iu" and np.array_equal(values, np.arange(first, first + values.size)):
        if first == 0:
            return int(values.size)
        if values.size > FEW:
            return {"from": first, "to": first + int(values.size) - 1}
    return values.tolist()


def _parameter(name: str, prior: ParameterPrior, seen: dict[int, str]) -> dict[str, Any]:
    if id(prior) in seen:
        return {SAME_AS: seen[id(prior)]}
    seen[id(prior)] = name
    return {"prior": prior.name} | {key: value for key, value in prior.to_dict().items() if key != "name"}


def _noise(name: str, noise: Noise, seen: dict[int, str]) -> dict[str, Any]:
    data: dict[str, Any] = {"distribution": noise.name}
    own = noise.parameter_name
    if isinstance(noise, Categorical):
        data["values"] = noise.values.tolist()
        if isinstance(noise.prior, Weights):
            return data | {"prior": noise.prior.weights.tolist()}
        assert noise.known is not None
        return data | {own: noise.known.tolist()}
    if isinstance(noise, Binomial) and type(noise) is Binomial:
        data["n"] = rule_text(noise.arguments["n"], f"n of {name!r}")
    if noise.prior is not None:
        data[own] = _parameter(name, noise.prior, seen)
    elif noise.known is not None:
        data[own] = float(noise.known[0])
    else:
        data[own] = rule_text(noise.arguments[own], f"{own} of {name!r}")
    if "times" in noise.arguments and noise.arguments["times"] != 1:
        data["times"] = rule_text(noise.arguments["times"], f"times of {name!r}")
    return data | noise.options()


def _event(name: str, event: Event, seen: dict[int, str]) -> dict[str, Any]:
    rate = _parameter(name, event.rate, seen) if isinstance(event.rate, Gamma) else _plain(event.rate)
    data: dict[str, Any] = {"rate": rate}
    if event.step:
        data["step"] = texts_of_rules(event.step, "the step of")
    if event.times != 1:
        data["times"] = rule_text(event.times, f"times of {name!r}")
    if event.when is not True:
        data["when"] = rule_text(event.when, f"when of {name!r}")
    return data | ({"costs": texts_of_rules(event.costs, "the cost")} if event.costs else {})


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
