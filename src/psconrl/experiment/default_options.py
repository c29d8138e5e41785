"""Default values of the options of agents, which a sweep notes in its results file for exports.

Those of the user's own agents are the defaults of their constructors. An agent of the library also has those of its
parts. Only numbers, texts and truth values are noted: None often stands for a value that depends on the environment.
"""

import inspect
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from psconrl.base.named_code import AGENTS, find_object, from_package, installed, is_code
from psconrl.experiment.job import Job
from psconrl.experiment.store import Store
from psconrl.experiment.versions import code_digest
from psconrl.learning.recipe import RESERVED, Recipe
from psconrl.learning.registry import RECIPES

DEFAULTS = "defaults "  # start of the keys in meta: an agent and its code
PLAIN_TYPES = (bool, int, float, str)
Options = Mapping[str, Any]


def defaults_noted(jobs: Iterable[Job]) -> dict[str, str]:
    """Return the default options of the agents of some jobs: rows of the table meta."""
    agents = {_key(job.agent, job.code, code_digest()): job.agent for job in jobs}
    return {key: json.dumps(default_options(agent)) for key, agent in agents.items()}


def default_options(agent: str) -> dict[str, dict[str, Any]]:
    """Return the default options of an agent: of its constructor, and of its parts, as a spec may name them.

    >>> default_options("psconrl-paper")["parts"]["schedule"]
    'ouyang'
    """
    recipe = RECIPES.get(agent)
    parameters: Iterable[inspect.Parameter] = ()
    if recipe or is_code(agent) or agent in installed(AGENTS):
        made = recipe.cls if recipe else find_object(agent) if is_code(agent) else from_package(AGENTS, agent)
        with suppress(TypeError, ValueError):  # a constructor without a signature
            parameters = inspect.signature(made).parameters.values()
    own = {p.name: p.default for p in parameters if isinstance(p.default, PLAIN_TYPES) and p.name not in RESERVED}
    return {"own": own, "parts": _of_parts(recipe, own) if recipe else {}}


def _of_parts(recipe: Recipe, own: Options) -> dict[str, Any]:
    """Return the options of the default parts, as ``slot``, ``slot.option``, or ``option`` if one slot alone has it."""
    chosen = {slot: recipe.parts.get(slot, part) for slot, part in recipe.slots.items()}
    tables = {slot: part.to_dict() for slot, part in chosen.items() if part is not None}
    number = Counter(option for table in tables.values() for option in table)
    found: dict[str, Any] = {}
    for slot, table in tables.items():
        for option, value in table.items():
            if isinstance(value, PLAIN_TYPES):
                alone = option != "name" and number[option] == 1 and option not in own
                found |= {f"{slot}.{option}": value} | ({option: value} if alone else {})
        if isinstance(table.get("name"), str):
            found[slot] = table["name"]
    return found


def options_left_out(store: Store, job: Options, code: Any) -> dict[str, Any]:
    """Return the options that a run leaves at their defaults, if these are known.

    ``job``: the settings of the run; ``code``: the digest of the library's code in its provenance. If a run names
    parts or their options, or has prior knowledge, which choose among parts, those of parts are left out.
    """
    rows = store.query(
        "SELECT value FROM meta WHERE key = ?", (_key(str(job.get("agent")), str(job.get("code")), str(code)),)
    )
    if not rows:
        return {}
    noted = store.columns.table(rows[0][0], "default options of an agent")
    own, parts = _mappings_among(noted, "own", "parts")
    given, knowledge = _mappings_among(job, "agent_options", "knowledge")
    usual = set(given) <= set(own) and not any(knowledge.values())
    return {name: value for name, value in {**(parts if usual else {}), **own}.items() if name not in given}


def _mappings_among(values: Mapping[str, Any], *names: str) -> list[dict[str, Any]]:
    return [each if isinstance(each := values.get(name), dict) else {} for name in names]


def _key(agent: str, own_code: str, library_code: str) -> str:
    return f"{DEFAULTS}{agent} {own_code if is_code(agent) else library_code}"
