"""What to run, as data: a TOML file of environments, agents, parameters and replicates.

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

Strict: a key that nobody knows is an error, with the nearest one that exists.
"""

import itertools
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from psconrl.envs.outside import GYM, is_outside
from psconrl.envs.registry import ENVIRONMENTS
from psconrl.errors import ConfigError, unknown_name
from psconrl.experiment.job import Job, digest_of, env_code_names, file_digest
from psconrl.experiment.knowledge import NOTHING, SAFEST, Knowledge
from psconrl.learning.checks import as_count, is_whole
from psconrl.learning.recipe import RESERVED
from psconrl.learning.registry import RECIPES, recipe_for
from psconrl.limits import MOST_NESTED, MOST_PARTS, MOST_TEXT, need
from psconrl.model.tables import EMISSIONS
from psconrl.named_code import AGENTS as OWN
from psconrl.named_code import ENVIRONMENTS as OWN_ENVIRONMENTS
from psconrl.named_code import as_module, installed, is_code

DEFAULT_HORIZON = 20_000
KNOWN, LEARNED = "known", "learned"  # what costs are to agents
LEARNED_SUFFIX = " (costs learned)"  # of an experiment that there is both with known and with learned costs
ALL = "all"  # among the names of agents: those that an experiment has
RUN_BYTES = 5_000  # that a run waiting for its turn takes: its settings, its hash, its place in the queue
QUICK_KEYS = ("horizon", "replicates", "agents")
NAMES_OF_TYPES = {
    str: "text", int: "a whole number", float: "a number", dict: "a table", list: "a list", bool: "true or false",
}  # fmt: skip
OVERRIDE_KEYS = ("options", "grid", "replicates", "horizon")
# An unclosed string ends with its line, so that one pass is enough.
_STRINGS_AND_COMMENTS = re.compile(r""""(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|#[^\n]*""")

T = TypeVar("T")


@dataclass(frozen=True)
class AgentSpec:
    """One table ``[agents.LABEL]``."""

    agent: str
    options: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    known_costs: bool = True
    replicates: int | None = None
    knowledge: Knowledge = NOTHING  # what it is told beforehand: support, trust, worth, baseline, spans
    setting: str = ""  # how its options were chosen, in a few words for tables


@dataclass(frozen=True)
class ExperimentSpec:
    """One table ``[experiments.NAME]``."""

    env: str
    options: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    agents: list[str] | None
    override: Mapping[str, Mapping[str, Any]]
    quick: Mapping[str, Any]
    horizon: int | None = None
    replicates: int | None = None
    checkpoints: int | str | list[int] = 200
    emission: str = EMISSIONS[0]
    evaluate: bool | None = None  # also the exact averages of every policy played? if not said, where that is cheap
    draw: bool = False  # every replicate is played on a model of its own (option seed), drawn from the seed
    probe: list[int] | None = None  # state, action, next state of a sampled probability to record
    thresholds: Mapping[str, float] | None = None  # other limits than the environment's, by name
    costs: list[str] = field(default_factory=lambda: [KNOWN])  # known, learned or one experiment for each of the two


class Jobs(list[Job]):
    """The runs of a spec, under its name."""

    def __init__(self, title: str, jobs: Iterable[Job]) -> None:
        super().__init__(jobs)
        self.title = title


class _Member(NamedTuple):
    """An agent as it takes part in an experiment."""

    label: str
    agent: AgentSpec
    options: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    runs: int
    horizon: int


@dataclass(frozen=True)
class Spec:
    """A whole file."""

    name: str
    seed: int
    replicates: int
    agents: Mapping[str, AgentSpec]
    experiments: Mapping[str, ExperimentSpec]

    def jobs(self, quick: bool = False) -> Jobs:
        """All runs of the file, those of one experiment after those of another."""
        count = sum(self._count(experiment, quick) for experiment in self.experiments.values())
        need(count * RUN_BYTES, f"a sweep of {count:,} runs", ConfigError)
        return Jobs(
            self.name,
            [job for name, experiment in self.experiments.items() for job in self._jobs_of(name, experiment, quick)],
        )

    def with_agents(self, names: Sequence[str]) -> "Spec":
        """The same experiments with other agents: labels of the file, names of ``psconrl agents``, or code of yours.

        ``"all"`` stands for those that an experiment has. Code, ``module:Class``, gets the title of its class as label.
        """
        agents = dict(self.agents)
        labels = []
        for name in names:
            label = recipe_for(name).title if is_code(name) else name
            if is_code(name):
                label = name if label in (ALL, *self.agents, *RECIPES) else label
                agents[label] = AgentSpec(as_module(name), {}, {})
            elif name != ALL and name not in self.agents:
                recipe_for(name)  # which knows what to say if there is none
            labels.append(label)
        if len(set(labels)) < len(labels):
            raise ConfigError(f"agents must have names that differ; got {', '.join(labels)}")

        def chosen(own: Iterable[str]) -> list[str]:
            return list(dict.fromkeys(x for label in labels for x in (own if label == ALL else [label])))

        experiments = {}
        for key, e in self.experiments.items():
            quick = {**e.quick, "agents": chosen(e.quick["agents"])} if "agents" in e.quick else e.quick
            experiments[key] = replace(e, agents=chosen(e.agents or self.agents), quick=quick)
        return replace(self, agents=agents, experiments=experiments)

    def _count(self, experiment: ExperimentSpec, quick: bool) -> int:
        """How many runs an experiment has, without making them."""
        points = sum(
            member.runs * _points(member.grid) * len(_columns(experiment, member.agent))
            for member in self._agents_of(experiment, quick)
        )
        return _points(experiment.grid) * points

    def _jobs_of(self, name: str, experiment: ExperimentSpec, quick: bool) -> Iterator[Job]:
        digest = file_digest(experiment.env)
        worlds = _variants(name, experiment.options, experiment.grid)
        for (world, env_options), costs in itertools.product(worlds, experiment.costs):
            title = world + LEARNED_SUFFIX if costs == LEARNED and len(experiment.costs) > 1 else world
            of_env = env_code_names(experiment.env, env_options)
            env_code = digest_of(of_env)
            for label, agent, options, grid, runs, horizon in self._agents_of(experiment, quick):
                if costs not in _columns(experiment, agent):
                    continue
                code = digest_of([(agent.agent, OWN), (agent.knowledge.trust, OWN_ENVIRONMENTS), *of_env])
                for variant, agent_options in _variants(label, options, grid):
                    for replicate in range(runs):
                        drawn = {"seed": _draw(self.seed, replicate)} if experiment.draw else {}
                        yield Job(
                            experiment=title,
                            env=experiment.env,
                            env_options={**env_options, **drawn},
                            thresholds=experiment.thresholds,
                            label=variant,
                            agent=agent.agent,
                            agent_options=agent_options,
                            known_costs=agent.known_costs and costs == KNOWN,
                            horizon=horizon,
                            checkpoints=experiment.checkpoints,
                            emission=experiment.emission,
                            evaluate=experiment.evaluate,
                            probe=experiment.probe,
                            seed=self.seed,
                            replicate=replicate,
                            file=digest,
                            code=code,
                            env_code=env_code,
                            knowledge=agent.knowledge,
                        )

    def _agents_of(self, experiment: ExperimentSpec, quick: bool) -> Iterator[_Member]:
        """The agents of an experiment, all overrides applied."""
        changes = experiment.quick if quick else {}
        labels = changes.get("agents", experiment.agents)
        for label in self.agents if labels is None else labels:
            agent = self.agents.get(label) or AgentSpec(label, {}, {})
            own = experiment.override.get(label, {})
            runs = _first(own.get("replicates"), agent.replicates, experiment.replicates, self.replicates)
            horizon = _first(own.get("horizon"), experiment.horizon, _usual(experiment.env))
            yield _Member(
                label,
                agent,
                {**agent.options, **own.get("options", {})},
                {**agent.grid, **own.get("grid", {})},
                min(runs, _first(changes.get("replicates"), runs)),
                min(horizon, _first(changes.get("horizon"), horizon)),
            )


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read a file; errors name the file, the table and the key."""
    source = Path(path)
    try:
        with source.open("rb") as f:
            text = f.read(MOST_TEXT + 1).decode()  # of a device without an end, too
        return parse_spec(text, source.stem, source.parent)
    except FileNotFoundError:
        raise ConfigError(f"{source}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source}: cannot be read ({error})") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def shipped_spec(name: str) -> Spec:
    """One of the files that come with the library: ``"paper"``, ``"theory"``, ``"leaderboard"``, ``"sensitivity"``."""
    text = resources.files("psconrl.experiment").joinpath("specs", f"{name}.toml").read_text(encoding="utf-8")
    return parse_spec(text, name)


def parse_spec(text: str, name: str = "experiment", folder: Path | None = None) -> Spec:
    """The contents of a file. Model files are looked for beside it, in ``folder``.

    >>> spec = parse_spec('[experiments.small]\\nenv = "marsrover-4x4"\\nagents = ["psconrl"]\\nreplicates = 3')
    >>> len(spec.jobs()), spec.jobs()[0].horizon
    (3, 11000)
    """
    data = _toml(text)
    known = _checked(data, "", {"name": str, "seed": int, "replicates": int, "agents": dict, "experiments": dict})
    if not known.get("experiments"):
        raise ConfigError("at least one table [experiments.NAME] is needed")
    agents = {label: _agent(label, table, folder) for label, table in known.get("agents", {}).items()}
    experiments = {key: _experiment(key, table, agents, folder) for key, table in known["experiments"].items()}
    seed = known.get("seed", 0)
    if seed < 0:
        raise ConfigError(f"seed must be at least 0; got {seed}")
    return Spec(known.get("name", name), seed, _positive(known, "replicates", "") or 10, agents, experiments)


def _toml(text: str) -> dict[str, Any]:
    """The tables of a text that is not so large or so deep that reading it takes minutes, or all of the stack."""
    if len(text) > MOST_TEXT:
        raise ConfigError(f"a spec has at most {MOST_TEXT:,} characters")
    bare = _STRINGS_AND_COMMENTS.sub("x", text)
    if any(word.count(".") >= MOST_PARTS for word in re.split(r"[^\w\-. \t]+", bare)):
        raise ConfigError(f"a key has at most {MOST_PARTS} parts")
    too_deep = ConfigError(f"a spec is nested at most {MOST_NESTED} levels deep")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise too_deep from None
    except ValueError as error:
        raise ConfigError(f"not valid TOML: {error}") from None
    level: list[Any] = [data]
    for _ in range(MOST_NESTED):
        level = [part for whole in level for part in _parts(whole)]
    if level:
        raise too_deep
    return data


def _parts(whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict):
        return whole.values()
    return whole if isinstance(whole, list) else ()


def _agent(label: str, table: Any, folder: Path | None) -> AgentSpec:
    where = f"[agents.{label}]"
    types = {
        "agent": str, "options": dict, "grid": dict, "known_costs": bool, "replicates": int, "support": bool,
        "trust": str, "worth": (int, float), "baseline": str, "spans": bool, "setting": str,
    }  # fmt: skip
    data = _checked(table, where, types)
    _positive(data, "replicates", where)
    agent = data.pop("agent", label)
    try:
        agent = as_module(agent, folder) if is_code(agent) else recipe_for(agent).name
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from None
    options, grid = _own_options(data.pop("options", {}), where), _grid(data.pop("grid", {}), where)
    words = ("support", "trust", "worth", "baseline", "spans")
    told: dict[str, Any] = {key: data.pop(key) for key in words if key in data}
    return AgentSpec(agent, options, _own_options(grid, where), **data, knowledge=_knowledge(told, where, folder))


def _knowledge(told: dict[str, Any], where: str, folder: Path | None) -> Knowledge:
    if "trust" in told:
        told["trust"] = _place(told["trust"], f"{where} trust:", folder)
        told["file"] = file_digest(told["trust"])
    if told.get("baseline", SAFEST) != SAFEST:
        told["baseline"] = str(((folder or Path()) / told["baseline"]).resolve())
        told["file"] = file_digest(told["baseline"])
    try:
        return Knowledge(**told)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from None


def _place(env: str, where: str, folder: Path | None) -> str:
    """The name of an environment, or the path of a model file, as other processes find it."""
    if is_code(env):
        return as_module(env, folder)
    if env in ENVIRONMENTS or is_outside(env):
        return env
    if Path(env).suffix not in (".npz", ".json"):
        hint = "(a file ends in .npz or .json; your own is module:function, Gymnasium's gym:Id-v0)"
        raise ConfigError(f"{where} {unknown_name('environment', env, ENVIRONMENTS)} {hint}")
    return str(((folder or Path()) / env).resolve())


def _experiment(name: str, table: Any, agents: Mapping[str, AgentSpec], folder: Path | None) -> ExperimentSpec:
    where = f"[experiments.{name}]"
    types = {
        "env": str, "options": dict, "grid": dict, "agents": list, "override": dict, "quick": dict, "horizon": int,
        "replicates": int, "checkpoints": (int, str, list), "emission": str, "evaluate": bool, "draw": bool,
        "probe": list, "thresholds": dict, "costs": list,
    }  # fmt: skip
    assert set(types) == {f.name for f in fields(ExperimentSpec)}
    data = _checked(table, where, types)
    env = _place(data.pop("env", name), where, folder)
    for key in ("horizon", "replicates"):
        _positive(data, key, where)
    if data.get("emission", EMISSIONS[0]) not in EMISSIONS:
        raise ConfigError(f"{where} {unknown_name('emission', data['emission'], EMISSIONS)}")
    probe = data.get("probe")
    if probe is not None and (len(probe) != 3 or not all(is_whole(k) and k >= 0 for k in probe)):
        raise ConfigError(f"{where} probe must be [state, action, next state]; got {probe}")
    for costs in data.get("costs", ()):
        if costs not in (KNOWN, LEARNED):
            raise ConfigError(f"{where} {unknown_name('costs', costs, (KNOWN, LEARNED))}")
    if not data.get("costs", [KNOWN]) or len(set(data.get("costs", ()))) < len(data.get("costs", ())):
        raise ConfigError(f"{where} costs must be ['known'], ['learned'] or both; got {data['costs']}")
    quick = _checked(data.pop("quick", {}), f"{where} quick", {key: types[key] for key in QUICK_KEYS})
    for key in ("horizon", "replicates"):
        _positive(quick, key, f"{where} quick")
    labels = data.pop("agents", None)
    if labels == [] or quick.get("agents") == []:
        raise ConfigError(f"{where} agents must name at least one agent")
    for label in [*(labels or ()), *quick.get("agents", ())]:
        if not isinstance(label, str) or (label not in agents and label not in RECIPES and label not in installed(OWN)):
            raise ConfigError(f"{where} {unknown_name('agent', label, [*agents, *RECIPES, *installed(OWN)])}")
    if labels is None and not agents:
        raise ConfigError(f"{where} agents must name at least one agent")
    override = data.pop("override", {})
    for label, changes in override.items():
        if label not in (agents if labels is None else labels):
            raise ConfigError(f"{where} override: {unknown_name('agent', label, labels or agents)}")
        own = f"{where} override.{label}"
        _checked(changes, own, {key: types[key] for key in OVERRIDE_KEYS})
        _own_options({**changes.get("options", {}), **changes.get("grid", {})}, own)
        _grid(changes.get("grid", {}), own)
        for key in ("horizon", "replicates"):
            _positive(changes, key, own)
    options, grid = data.pop("options", {}), _grid(data.pop("grid", {}), where)
    if env.startswith(GYM) and is_code(options.get("cost")):
        options = options | {"cost": as_module(options["cost"], folder)}
    if data.get("draw") and "seed" in {**options, **grid}:
        raise ConfigError(f"{where} draw chooses the model's seed itself; leave out the option 'seed'")
    return ExperimentSpec(env, options, grid, labels, override, quick, **data)


def _checked(table: Any, where: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """The table, if all its keys are known and of the right type."""
    prefix = f"{where} " if where else ""
    if not isinstance(table, dict):
        raise ConfigError(f"{prefix}must be a table; got {table!r}")
    for key, value in table.items():
        if key not in types:
            raise ConfigError(prefix + unknown_name("key", key, types))
        wanted = types[key]
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            words = " or ".join(NAMES_OF_TYPES[kind] for kind in kinds if kind is not int or float not in kinds)
            raise ConfigError(f"{prefix}{key} must be {words}; got {value!r}")
    return dict(table)


def _positive(table: Mapping[str, Any], key: str, where: str) -> Any:
    return as_count(table[key], f"{where} {key}".strip(), ConfigError) if key in table else None


def _own_options(options: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    for key in options:
        if key in RESERVED:
            raise ConfigError(f"{where} option {key!r} is set by the sweep itself")
    return options


def _grid(grid: Mapping[str, Any], where: str) -> Mapping[str, list[Any]]:
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(f"{where} grid.{key} must be a list of values; got {values!r}")
    return grid


def _columns(experiment: ExperimentSpec, agent: AgentSpec) -> list[str]:
    """Does an agent of an experiment know the costs, learn them, or both? One that always learns them does it once."""
    learns = not agent.known_costs or (not is_code(agent.agent) and recipe_for(agent.agent).learns_costs)
    return [LEARNED] if learns and LEARNED in experiment.costs else experiment.costs


def _points(grid: Mapping[str, list[Any]]) -> int:
    return math.prod(len(values) for values in grid.values())


def _variants(
    name: str, options: Mapping[str, Any], grid: Mapping[str, list[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The options for each point of a grid, with a name that says which."""
    for point in itertools.product(*grid.values()):
        chosen = dict(zip(grid, point, strict=True))
        yield " ".join([name, *(f"{key}={value}" for key, value in chosen.items())]), {**options, **chosen}


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)


def _draw(seed: int, replicate: int) -> int:
    """The seed of the model of a replicate, if each has its own."""
    return int(np.random.SeedSequence([seed, replicate]).generate_state(1)[0])


def _usual(env: str) -> int:
    return ENVIRONMENTS[env].horizon if env in ENVIRONMENTS else DEFAULT_HORIZON
