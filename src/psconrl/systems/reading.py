"""A system from plain data, as TOML and JSON hold it: expressions are parsed, and nothing is run as code.

    version = 1
    minimise = "holding + lost"
    limits = ["lost <= 0.1"]

    [state]
    shelf = { from = 0, to = 8 }            # or a list of values, or a number n for 0 to n - 1

    [action]
    order = 4

    [noise.demand]
    distribution = "poisson"
    rate = { prior = "gamma", shape = 2, rate = 1 }     # or a number, or an expression
    most = 10

    [step]
    shelf = "min(max(shelf - demand, 0) + order, 8)"

    [costs]
    holding = "shelf"
    lost = "max(demand - shelf, 0)"

Events in continuous time are tables ``[events.NAME]`` with a ``clock``. The keys of each table are the arguments of the
constructor that it stands for, ``System``, ``Poisson``, ``Event`` or ``Gamma``, and no others. An unknown key is an
error, which names the nearest known key.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import ModelError, unknown_name
from psconrl.systems.events import Event
from psconrl.systems.noise import KINDS
from psconrl.systems.noise_base import Noise
from psconrl.systems.priors import Beta, Gamma, ParameterPrior
from psconrl.systems.signatures import arguments_of, required

FORMAT, VERSION = "psconrl-system", 1
TEXT, NUMBER, TABLE, LIST = "text", "a number", "a table", "a list"
TYPES: Mapping[str, tuple[type, ...]] = {TEXT: (str,), NUMBER: (int, float), TABLE: (dict,), LIST: (list,)}
RULE = (TEXT, NUMBER)
PARAMETER = (NUMBER, TEXT, TABLE)
Forms = Mapping[str, tuple[str, ...]]  # of every key, what its value may be
SYSTEM_FORMS: Forms = {
    "state": (TABLE,), "action": (TABLE,), "noise": (TABLE,), "events": (TABLE,), "clock": (NUMBER,), "step": (TABLE,),
    "costs": (TABLE,), "available": RULE, "start": (TABLE,), "minimise": (TEXT,), "maximise": (TEXT,),
    "limits": (LIST, TABLE), "units": (TABLE,), "state_names": (TEXT,), "action_names": (TEXT,), "cost_names": (TABLE,),
}  # fmt: skip
NOISE_FORMS: Forms = {
    "n": RULE, "p": PARAMETER, "rate": PARAMETER, "most": (NUMBER,), "times": RULE, "when": RULE,
    "values": (LIST, TABLE), "probabilities": (LIST,), "prior": (NUMBER, LIST),
}  # fmt: skip
EVENT_FORMS: Forms = {"rate": (NUMBER, TABLE), "step": (TABLE,), "times": RULE, "when": RULE, "costs": (TABLE,)}
PRIOR_FORMS: Forms = {
    **dict.fromkeys(("shape", "rate", "yes", "no", "value", "worth"), (NUMBER,)), "shared": (TEXT,),
}  # fmt: skip
RANGE_KEYS = {"from": (NUMBER,), "to": (NUMBER,), "by": (NUMBER,)}


def forms_of(make: Callable[..., Any], forms: Forms) -> Forms:
    """Return what a file may hold for each argument of a constructor; a KeyError if it could not hold one."""
    return {name: forms[name] for name in arguments_of(make)}


NOISE_KEYS: Mapping[str, Forms] = {kind.name: forms_of(kind, NOISE_FORMS) for kind in KINDS.values()}
EVENT_KEYS = forms_of(Event, EVENT_FORMS)
PRIOR_KINDS: Mapping[str, Any] = {kind.name: kind for kind in (Gamma, Beta)}


def system_arguments(data: Any, make: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments of a ``System``, whose constructor is given, that plain data describes."""
    table = checked_keys(data, {"format": (TEXT,), "version": (NUMBER,), **forms_of(make, SYSTEM_FORMS)})
    if table.pop("format", FORMAT) != FORMAT:
        raise ModelError(f"not a {FORMAT} file")
    version = table.pop("version", VERSION)
    if version != VERSION:
        raise ModelError(f"format version {quoted(version)} is not known here (newest: {VERSION}); update psconrl")
    for key in required(make):
        if key not in table:
            raise ModelError(f"the table [{key}] is missing")
    for key in ("state", "action"):
        table[key] = {name: _values(values, f"[{key}] {name}") for name, values in table[key].items()}
    for key in ("step", "costs"):
        if key in table:
            need_rules(table[key], f"[{key}]")
    if "noise" in table:
        table["noise"] = _noises(table["noise"])
    if "events" in table:
        table["events"] = _events(table["events"])
    return table


def checked_keys(table: Any, types: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return a table after checking that all its keys are known and their values of the right type."""
    if not isinstance(table, dict):
        raise ModelError(f"must be a table; got {quoted(table)}")
    for key, value in table.items():
        if key not in types:
            raise ModelError(unknown_name("key", key, types))
        if isinstance(value, bool) or not isinstance(value, tuple(t for name in types[key] for t in TYPES[name])):
            raise ModelError(f"{key} must be {' or '.join(types[key])}; got {quoted(value)}")
    return dict(table)


def need_rules(table: Mapping[str, Any], what: str) -> None:
    """Raise an error if a value is neither an expression nor a number."""
    for name, given in table.items():
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise ModelError(f"{what} {name} must be an expression or a number; got {quoted(given)}")


@contextmanager
def _inside(where: str) -> Iterator[None]:
    """Prefix errors with the table in which they are."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{where} {error}") from None


def _values(given: Any, where: str) -> Any:
    """Return the values of a variable: a list, a number n for 0 to n - 1, or a range."""
    if not isinstance(given, dict):
        return given
    with _inside(where):
        table = checked_keys(given, RANGE_KEYS)
        if not {"from", "to"} <= table.keys():
            raise ModelError(f"a range needs from and to, as in {{ from = 0, to = 8 }}; got {quoted(given)}")
        if not all(isinstance(value, int) for value in table.values()) or table.get("by", 1) < 1:
            raise ModelError(f"from, to and by must be whole numbers, by at least 1; got {quoted(given)}")
        return range(table["from"], table["to"] + 1, table.get("by", 1))


def _noises(tables: Mapping[str, Any]) -> dict[str, Noise]:
    found = {}
    for name, table in tables.items():
        with _inside(f"[noise.{name}]"):
            found[name] = _noise(table)
    return found


def _noise(table: Any) -> Noise:
    if not isinstance(table, dict) or not isinstance(table.get("distribution"), str):
        raise ModelError(f"needs a distribution, one of {', '.join(NOISE_KEYS)}; got {quoted(table)}")
    kind = table["distribution"]
    if kind not in NOISE_KEYS:
        raise ModelError(unknown_name("distribution", kind, NOISE_KEYS))
    make: Any = KINDS[kind]
    given = checked_keys({key: value for key, value in table.items() if key != "distribution"}, NOISE_KEYS[kind])
    _need_keys(given, required(make))
    parameter = make.parameter_name
    if isinstance(given.get(parameter), dict):
        given[parameter] = _prior(given[parameter], parameter)
    made: Noise = make(**given)
    return made


def _need_keys(given: Mapping[str, Any], keys: list[str]) -> None:
    for key in keys:
        if key not in given:
            raise ModelError(f"{key} is missing")


def _prior(table: dict[str, Any], what: str) -> ParameterPrior:
    kind = table.get("prior")
    if not isinstance(kind, str) or kind not in PRIOR_KINDS:
        raise ModelError(
            f"{what} must be a number, or have a prior, one of {', '.join(PRIOR_KINDS)}; got {quoted(table)}"
        )
    given = {key: value for key, value in table.items() if key != "prior"}
    made: Any = PRIOR_KINDS[kind]
    numbers = " and ".join(name for name in arguments_of(made) if name != "shared")
    made = made.about if {"about", "worth"} & set(given) else made
    in_file = {"value": "about"}  # the first argument of Gamma.about and Beta.about
    with _inside(f"{what}:"):
        own = {in_file.get(name, name): form for name, form in forms_of(made, PRIOR_FORMS).items()}
        given = checked_keys(given, own)
        if not {in_file.get(name, name) for name in required(made)} <= set(given):
            raise ModelError(f"a {kind} prior needs {numbers}, or about and worth; got {quoted(table)}")
        prior: ParameterPrior = made(
            **{name: given[key] for name, key in zip(arguments_of(made), own, strict=True) if key in given}
        )
    return prior


def _events(tables: Mapping[str, Any]) -> dict[str, Event]:
    found = {}
    for name, table in tables.items():
        with _inside(f"[events.{name}]"):
            given = checked_keys(table, EVENT_KEYS)
            _need_keys(given, required(Event))
            for key in ("step", "costs"):
                need_rules(given.get(key, {}), key)
            if isinstance(given["rate"], dict):
                given["rate"] = _prior(given["rate"], "rate")
            found[name] = Event(**given)
    return found
