"""Spec files: what to run, as a TOML file of environments, agents, parameters and replicates.

    name = "paper"                        # all keys but [experiments] are optional
    seed = 2024
    replicates = 10

    [agents.cautious]                     # an agent of `psconrl agents` under a name of your own
    agent = "psconrl"
    options = { prior = 0.05 }
    grid = { schedule = ["ouyang", "doubling"] }      # one agent for each

    [experiments.slippery]
    env = "marsrover-4x4"                 # or a model file
    options = { slip = 0.1 }
    agents = ["cautious", "c-ucrl"]
    override.c-ucrl = { options = { h = 50 }, replicates = 5 }
    quick = { horizon = 2_000, replicates = 3 }       # what --quick changes

An unknown key is an error, which names the nearest known key.
"""

import os
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from psconrl.base.caps import MOST_TEXT
from psconrl.base.escaping import quoted
from psconrl.base.named_code import AGENTS as USER_AGENTS
from psconrl.base.named_code import as_module, installed, is_code, is_python_file
from psconrl.base.toml_reading import parse_toml
from psconrl.envs.registry import ENVIRONMENTS
from psconrl.envs.user_environments import GYM, is_user_environment
from psconrl.envs.user_systems import place_of_system
from psconrl.errors import ConfigError, unknown_name
from psconrl.experiment.job import file_digest
from psconrl.experiment.prior_knowledge import SAFEST, Knowledge
from psconrl.experiment.spec import (
    COSTS_SUFFIX,
    KNOWN,
    OTHERS_TITLE,
    WHOLE_TITLE,
    AgentSpec,
    EnvironmentGroup,
    ExperimentSpec,
    Origin,
    Spec,
)
from psconrl.experiment.user_metrics import user_metrics
from psconrl.learning.argument_checks import as_count, is_whole
from psconrl.learning.recipe import RESERVED
from psconrl.learning.registry import RECIPES, recipe_for
from psconrl.model.simulation_tables import EMISSIONS

BOARD = "board"  # in place of a list of agents: all of the file that do not know the structure
GROUPS = {"seen": True, "unseen": False}  # tables [groups.NAME], and the value of `seen` of their experiments
QUICK_KEYS = ("horizon", "replicates", "agents")
NAMES_OF_TYPES = {
    str: "text", int: "a whole number", float: "a number", dict: "a table", list: "a list", bool: "true or false",
}  # fmt: skip
OVERRIDE_KEYS = ("options", "grid", "replicates", "horizon")
EXPERIMENT_TYPES: Mapping[str, Any] = {
    "env": str, "options": dict, "grid": dict, "agents": (str, list), "override": dict, "quick": dict, "horizon": int,
    "replicates": int, "checkpoints": (int, str, list), "emission": str, "evaluate": bool, "draw": bool,
    "probe": list, "thresholds": dict, "costs": list, "seen": bool, "trajectories": bool, "without": dict,
}  # fmt: skip


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a spec file; errors name the file, the table and the key."""
    source = Path(path)
    try:
        with source.open("rb") as f:
            text = f.read(MOST_TEXT + 1).decode()  # bounded: the file may be an endless device
        return parse_spec(text, source.stem, source.parent)
    except FileNotFoundError:
        raise ConfigError(f"{source}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source}: cannot be read ({error})") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def shipped_spec(name: str) -> Spec:
    """Read a spec shipped with the library.

    ``"paper"``, ``"theory"``, ``"leaderboard"``, ``"practical"`` or ``"sensitivity"``.
    """
    text = resources.files("psconrl.experiment").joinpath("specs", f"{name}.toml").read_text(encoding="utf-8")
    return parse_spec(text, name)


def parse_spec(text: str, name: str = "experiment", folder: Path | None = None) -> Spec:
    """Parse the text of a spec file. Model files are looked up relative to ``folder``.

    >>> spec = parse_spec('[experiments.small]\\nenv = "marsrover-4x4"\\nagents = ["psconrl"]\\nreplicates = 3')
    >>> len(spec.jobs()), spec.jobs()[0].horizon
    (3, 11000)
    """
    data = parse_toml(text, "a spec", ConfigError)
    tables = {"agents": dict, "experiments": dict, "groups": dict, "metrics": dict}
    known = _checked(data, "", {"name": str, "seed": int, "replicates": int, **tables})
    if not known.get("experiments"):
        raise ConfigError("at least one table [experiments.NAME] is needed")
    agents = {label: _agent(label, table, folder) for label, table in known.get("agents", {}).items()}
    experiments = {key: _experiment(key, table, agents, folder) for key, table in known["experiments"].items()}
    seed = known.get("seed", 0)
    if seed < 0:
        raise ConfigError(f"seed must be at least 0; got {seed}")
    groups = _groups(known.get("groups", {}), experiments)
    metrics = user_metrics(known.get("metrics", {}), folder)
    replicates = _positive(known, "replicates", "") or 10
    origin = Origin(name, text, folder)
    return Spec(known.get("name", name), seed, replicates, agents, experiments, groups, metrics, origin)


def _groups(tables: Mapping[str, Any], experiments: Mapping[str, ExperimentSpec]) -> tuple[EnvironmentGroup, ...]:
    """Return the groups with their experiments; every experiment with `seen` needs its group."""
    for key in tables:
        if key not in GROUPS:
            raise ConfigError(f"[groups] {unknown_name('group', key, GROUPS)}")
    found = []
    for key, seen in GROUPS.items():
        members = [name for name, experiment in experiments.items() if experiment.seen is seen]
        if key in tables:
            data = _checked(tables[key], f"[groups.{key}]", {"title": str, "description": str})
            names = tuple(each for name in members for each in experiments[name].names(name))
            found.append(EnvironmentGroup(data.get("title", key).strip(), data.get("description", ""), names))
        elif members:
            raise ConfigError(f"[experiments.{members[0]}] seen needs a table [groups.{key}]")
    titles = [group.title for group in found]
    for title in titles:
        if title in ("", WHOLE_TITLE, OTHERS_TITLE) or titles.count(title) > 1:
            raise ConfigError(
                f"[groups] titles must differ, and not be {quoted(WHOLE_TITLE)}, {quoted(OTHERS_TITLE)} or empty; got "
                f"{quoted(title)}"
            )
    return tuple(found)


def _agent(label: str, table: Any, folder: Path | None) -> AgentSpec:
    where = f"[agents.{label}]"
    types = {
        "agent": str, "options": dict, "grid": dict, "known_costs": bool, "replicates": int, "support": bool,
        "trust": str, "worth": (int, float), "baseline": str, "structure": bool, "true_constants": bool,
        "candidates": dict, "setting": str,
    }  # fmt: skip
    data = _checked(table, where, types)
    _positive(data, "replicates", where)
    agent = data.pop("agent", label)
    try:
        agent = as_module(agent, folder) if is_code(agent) else recipe_for(agent).name
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from None
    options, grid = _own_options(data.pop("options", {}), where), _grid(data.pop("grid", {}), where)
    words = ("support", "trust", "worth", "baseline", "structure", "true_constants", "candidates")
    given: dict[str, Any] = {key: data.pop(key) for key in words if key in data}
    return AgentSpec(agent, options, _own_options(grid, where), **data, knowledge=_knowledge(given, where, folder))


def _knowledge(given: dict[str, Any], where: str, folder: Path | None) -> Knowledge:
    if "trust" in given:
        given["trust"] = _place(given["trust"], f"{where} trust:", folder)
        given["file"] = file_digest(given["trust"])
    if given.get("baseline", SAFEST) != SAFEST:
        given["baseline"] = str(((folder or Path()) / given["baseline"]).resolve())
        given["file"] = file_digest(given["baseline"])
    if "candidates" in given:
        given["candidates"] = _possible_values(given["candidates"], where)
    try:
        return Knowledge(**given)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from None


def _possible_values(table: Mapping[str, Any], where: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return options of the environment with their values, as tuples; a number n stands for 0 to n - 1."""
    found = []
    for key, given in table.items():
        values = list(range(as_count(given, f"{where} candidates.{key}", ConfigError))) if is_whole(given) else given
        if not isinstance(values, list) or not values or not {type(value) for value in values} <= {int, float}:
            raise ConfigError(f"{where} candidates.{key} must be a list of numbers, or how many; got {quoted(given)}")
        found.append((key, tuple(values)))
    return tuple(found)


def _place(env: str, where: str, folder: Path | None) -> str:
    """Return the name of an environment, or the path of a model file, as other processes can find it."""
    if is_code(env):
        return as_module(env, folder)
    if is_python_file(env) or Path(env).suffix == ".toml":
        return place_of_system(env, folder)
    if env in ENVIRONMENTS or is_user_environment(env):
        return env
    if Path(env).suffix not in (".npz", ".json"):
        hint = "(a file ends in .npz, .json, .toml or .py; your own is module:function, Gymnasium's gym:Id-v0)"
        raise ConfigError(f"{where} {unknown_name('environment', env, ENVIRONMENTS)} {hint}")
    return str(((folder or Path()) / env).resolve())


def _experiment(name: str, table: Any, agents: Mapping[str, AgentSpec], folder: Path | None) -> ExperimentSpec:
    where = f"[experiments.{name}]"
    assert set(EXPERIMENT_TYPES) == {f.name for f in fields(ExperimentSpec)}
    data = _checked(table, where, EXPERIMENT_TYPES)
    env = _place(data.pop("env", name), where, folder)
    _check_values(data, where)
    quick = _checked(data.pop("quick", {}), f"{where} quick", {key: EXPERIMENT_TYPES[key] for key in QUICK_KEYS})
    _positive(quick, "horizon", f"{where} quick")
    if quick.get("replicates") != 0:  # with 0 the short form has no run
        _positive(quick, "replicates", f"{where} quick")
    labels = _labels(data.pop("agents", None), where, agents, folder)
    without = data.get("without", {})
    _check_without(without, where, labels or list(agents))
    if "agents" in quick:
        quick["agents"] = _labels(quick["agents"], where, agents, folder)
        if set(quick["agents"]) <= set(without):
            raise ConfigError(f"{where} quick.agents has only agents that without leaves out")
    override = _override(data.pop("override", {}), where, labels, agents, folder)
    for label in override:
        if label in without:
            raise ConfigError(f"{where} override.{label} has no effect: without leaves this agent out")
    options, grid = data.pop("options", {}), _grid(data.pop("grid", {}), where)
    if env.startswith(GYM) and is_code(options.get("cost")):
        options = options | {"cost": as_module(options["cost"], folder)}
    if data.get("draw") and "seed" in {**options, **grid}:
        raise ConfigError(f"{where} draw chooses the model's seed itself; leave out the option 'seed'")
    return ExperimentSpec(env, options, grid, labels, override, quick, **data)


def _check_values(data: Mapping[str, Any], where: str) -> None:
    """Check the values of an experiment that stand by themselves."""
    for key in ("horizon", "replicates"):
        _positive(data, key, where)
    if data.get("emission", EMISSIONS[0]) not in EMISSIONS:
        raise ConfigError(f"{where} {unknown_name('emission', data['emission'], EMISSIONS)}")
    probe = data.get("probe")
    if probe is not None and (len(probe) != 3 or not all(is_whole(k) and k >= 0 for k in probe)):
        raise ConfigError(f"{where} probe must be [state, action, next state]; got {quoted(probe)}")
    for costs in data.get("costs", ()):
        if not isinstance(costs, str) or costs not in COSTS_SUFFIX:
            raise ConfigError(f"{where} {unknown_name('costs', costs, COSTS_SUFFIX)}")
    if not data.get("costs", [KNOWN]) or len(set(data.get("costs", ()))) < len(data.get("costs", ())):
        kinds = ", ".join(COSTS_SUFFIX)
        raise ConfigError(f"{where} costs must be a list of some of {kinds}, each once; got {quoted(data['costs'])}")


def _check_without(without: Mapping[str, Any], where: str, labels: list[str]) -> None:
    """Check the agents that an experiment leaves out, and that it keeps one."""
    for label, reason in without.items():
        if label not in labels:
            raise ConfigError(f"{where} without: {unknown_name('agent', label, labels)}")
        if not isinstance(reason, str) or not reason.strip():
            raise ConfigError(f"{where} without.{label} must be the reason, as text; got {quoted(reason)}")
    if len(without) == len(set(labels)):
        raise ConfigError(f"{where} without leaves no agent")


def _labels(
    labels: list[Any] | str | None, where: str, agents: Mapping[str, AgentSpec], folder: Path | None
) -> list[str] | None:
    """Return the labels of an experiment's agents; None for all agents of the file."""
    if isinstance(labels, str):
        if labels != BOARD:
            raise ConfigError(f"{where} agents must be a list, or {quoted(BOARD)}; got {quoted(labels)}")
        labels = [label for label, agent in agents.items() if not agent.knowledge.structure]
    if labels == [] or (labels is None and not agents):
        raise ConfigError(f"{where} agents must name at least one agent")
    return None if labels is None else [_agent_label(label, where, agents, folder) for label in labels]


def _override(
    override: dict[str, Any], where: str, labels: list[str] | None, agents: Mapping[str, AgentSpec], folder: Path | None
) -> dict[str, Any]:
    """Return what an experiment changes of its agents, by their labels."""
    override = {as_module(key, folder) if _is_own(key, agents) else key: value for key, value in override.items()}
    for label, changes in override.items():
        if label not in (agents if labels is None else labels):
            raise ConfigError(f"{where} override: {unknown_name('agent', label, labels or agents)}")
        own = f"{where} override.{label}"
        _checked(changes, own, {key: EXPERIMENT_TYPES[key] for key in OVERRIDE_KEYS})
        _own_options({**changes.get("options", {}), **changes.get("grid", {})}, own)
        _grid(changes.get("grid", {}), own)
        for key in ("horizon", "replicates"):
            _positive(changes, key, own)
    return override


def _agent_label(label: Any, where: str, agents: Mapping[str, AgentSpec], folder: Path | None) -> str:
    """Return an agent's label, name, or user code as other processes can find it."""
    if _is_own(label, agents):
        try:
            return as_module(label, folder)
        except ConfigError as error:
            raise ConfigError(f"{where} {error}") from None
    if not isinstance(label, str) or (
        label not in agents and label not in RECIPES and label not in installed(USER_AGENTS)
    ):
        known = unknown_name("agent", label, [*agents, *RECIPES, *installed(USER_AGENTS)])
        raise ConfigError(f"{where} {known} (one of your own is module:Class or file.py:Class)")
    return label


def _is_own(label: Any, agents: Mapping[str, AgentSpec]) -> bool:
    return isinstance(label, str) and label not in agents and is_code(label)


def _checked(table: Any, where: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table after checking that all its keys are known and of the right type."""
    prefix = f"{where} " if where else ""
    if not isinstance(table, dict):
        raise ConfigError(f"{prefix}must be a table; got {quoted(table)}")
    for key, value in table.items():
        if key not in types:
            raise ConfigError(prefix + unknown_name("key", key, types))
        wanted = types[key]
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            words = " or ".join(NAMES_OF_TYPES[kind] for kind in kinds if kind is not int or float not in kinds)
            raise ConfigError(f"{prefix}{key} must be {words}; got {quoted(value)}")
    return dict(table)


def _positive(table: Mapping[str, Any], key: str, where: str) -> Any:
    return as_count(table[key], f"{where} {key}".strip(), ConfigError) if key in table else None


def _own_options(options: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    for key in options:
        if key in RESERVED:
            raise ConfigError(f"{where} option {quoted(key)} is set by the sweep itself")
    return options


def _grid(grid: Mapping[str, Any], where: str) -> Mapping[str, list[Any]]:
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(f"{where} grid.{key} must be a list of values; got {quoted(values)}")
    return grid
