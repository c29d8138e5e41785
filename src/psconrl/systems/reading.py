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

Events in continuous time are tables ``[events.NAME]`` with a ``clock``. An unknown key is an error, which names the
nearest known key.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from psconrl.errors import ModelError, unknown_name
from psconrl.systems.events import Event
from psconrl.systems.noise import KINDS, Bernoulli, Binomial, Categorical, Geometric, Noise, Poisson
from psconrl.systems.priors import Beta, Gamma, ParameterPrior

FORMAT, VERSION = "psconrl-system", 1
TEXT, NUMBER, TABLE, LIST = "text", "a number", "a table", "a list"
TYPES: Mapping[str, tuple[type, ...]] = {TEXT: (str,), NUMBER: (int, float), TABLE: (dict,), LIST: (list,)}
RULE = (TEXT, NUMBER)
PARAMETER = (NUMBER, TEXT, TABLE)
SYSTEM_KEYS: Mapping[str, tuple[str, ...]] = {
    "format": (TEXT,), "version": (NUMBER,), "state": (TABLE,), "action": (TABLE,), "noise": (TABLE,),
    "events": (TABLE,), "clock": (NUMBER,), "step": (TABLE,), "costs": (TABLE,), "available": (TEXT,),
    "start": (TABLE,), "minimise": (TEXT,), "maximise": (TEXT,), "limits": (LIST, TABLE),
    "units": (TABLE,), "state_names": (TEXT,), "action_names": (TEXT,), "cost_names": (TABLE,),
}  # fmt: skip
NOISE_KEYS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    Bernoulli.name: {"p": PARAMETER},
    Binomial.name: {"n": RULE, "p": PARAMETER},
    Poisson.name: {"rate": PARAMETER, "most": (NUMBER,), "times": RULE},
    Geometric.name: {"p": PARAMETER, "most": (NUMBER,)},
    Categorical.name: {"values": (LIST,), "probabilities": (LIST,), "prior": (NUMBER, LIST)},
}
OPTIONAL = ("times", "probabilities", "prior")
EVENT_KEYS: Mapping[str, tuple[str, ...]] = {
    "rate": (NUMBER, TABLE), "step": (TABLE,), "times": RULE, "when": RULE, "costs": (TABLE,),
}  # fmt: skip
RANGE_KEYS = {"from": (NUMBER,), "to": (NUMBER,), "by": (NUMBER,)}
SAME_AS = "same_as"  # of a noise whose unknown parameter is that of another
PRIOR_KEYS: Mapping[str, tuple[str, ...]] = {Gamma.name: ("shape", "rate"), Beta.name: ("yes", "no")}
ABOUT = ("about", "worth")


def system_arguments(data: Any) -> dict[str, Any]:
    """Return the arguments of a ``System`` that plain data describes."""
    table = checked_keys(data, SYSTEM_KEYS)
    if table.pop("format", FORMAT) != FORMAT:
        raise ModelError(f"not a {FORMAT} file")
    version = table.pop("version", VERSION)
    if version != VERSION:
        raise ModelError(f"format version {version!r} is not known here (newest: {VERSION}); update psconrl")
    for key in ("state", "action", "costs"):
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
        raise ModelError(f"must be a table; got {table!r}")
    for key, value in table.items():
        if key not in types:
            raise ModelError(unknown_name("key", key, types))
        if isinstance(value, bool) or not isinstance(value, tuple(t for name in types[key] for t in TYPES[name])):
            raise ModelError(f"{key} must be {' or '.join(types[key])}; got {value!r}")
    return dict(table)


def need_rules(table: Mapping[str, Any], what: str) -> None:
    """Raise an error if a value is neither an expression nor a number."""
    for name, given in table.items():
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise ModelError(f"{what} {name} must be an expression or a number; got {given!r}")


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
            raise ModelError(f"a range needs from and to, as in {{ from = 0, to = 8 }}; got {given!r}")
        if not all(isinstance(value, int) for value in table.values()) or table.get("by", 1) < 1:
            raise ModelError(f"from, to and by must be whole numbers, by at least 1; got {given!r}")
        return range(table["from"], table["to"] + 1, table.get("by", 1))


def _noises(tables: Mapping[str, Any]) -> dict[str, Noise]:
    priors: dict[str, ParameterPrior] = {}
    found = {}
    for name, table in tables.items():
        with _inside(f"[noise.{name}]"):
            noise = found[name] = _noise(table, priors)
            if noise.prior is not None:
                priors[name] = noise.prior
    return found


def _noise(table: Any, priors: Mapping[str, ParameterPrior]) -> Noise:
    if not isinstance(table, dict) or not isinstance(table.get("distribution"), str):
        raise ModelError(f"needs a distribution, one of {', '.join(NOISE_KEYS)}; got {table!r}")
    kind = table["distribution"]
    if kind not in NOISE_KEYS:
        raise ModelError(unknown_name("distribution", kind, NOISE_KEYS))
    keys = NOISE_KEYS[kind]
    given = checked_keys({key: value for key, value in table.items() if key != "distribution"}, keys)
    for key in keys:
        if key not in given and key not in OPTIONAL:
            raise ModelError(f"{key} is missing")
    parameter = KINDS[kind].parameter_name
    if isinstance(given.get(parameter), dict):
        given[parameter] = _prior(given[parameter], parameter, priors)
    make: Any = KINDS[kind]
    made: Noise = make(**given)
    return made


def _prior(table: dict[str, Any], what: str, known: Mapping[str, ParameterPrior]) -> ParameterPrior:
    if SAME_AS in table:
        checked_keys(table, {SAME_AS: (TEXT,)})
        if table[SAME_AS] not in known:
            raise ModelError(f"{what}: {unknown_name('noise or event before it', table[SAME_AS], known)}")
        return known[table[SAME_AS]]
    kind = table.get("prior")
    if not isinstance(kind, str) or kind not in PRIOR_KEYS:
        raise ModelError(f"{what} must be a number, or have a prior, one of {', '.join(PRIOR_KEYS)}; got {table!r}")
    given = {key: value for key, value in table.items() if key != "prior"}
    own = PRIOR_KEYS[kind]
    numbers = checked_keys(given, dict.fromkeys(ABOUT if set(given) & set(ABOUT) else own, (NUMBER,)))
    if set(numbers) not in (set(ABOUT), set(own)):
        raise ModelError(f"{what}: a {kind} prior needs {' and '.join(own)}, or {' and '.join(ABOUT)}; got {table!r}")
    made: Any = Gamma if kind == Gamma.name else Beta
    prior: ParameterPrior = made.about(*(numbers[key] for key in ABOUT)) if "about" in numbers else made(**numbers)
    return prior


def _events(tables: Mapping[str, Any]) -> dict[str, Event]:
    priors: dict[str, ParameterPrior] = {}
    found = {}
    for name, table in tables.items():
        with _inside(f"[events.{name}]"):
            given = checked_keys(table, EVENT_KEYS)
            if "rate" not in given:
                raise ModelError("rate is missing")
            for key in ("step", "costs"):
                need_rules(given.get(key, {}), key)
            if isinstance(given["rate"], dict):
                given["rate"] = priors[name] = _prior(given["rate"], "rate", priors)
            found[name] = Event(**given)
    return found
