"""The contents of a spec: agents, experiments, and the runs they expand to."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.base.named_code import AGENTS as USER_AGENTS
from psconrl.base.named_code import ENVIRONMENTS as USER_ENVIRONMENTS
from psconrl.base.named_code import as_module, is_code
from psconrl.envs.registry import ENVIRONMENTS
from psconrl.errors import ConfigError
from psconrl.experiment.job import Job, digest_of, env_code_names, file_digest
from psconrl.experiment.playable import has_known_costs
from psconrl.experiment.prior_knowledge import NOTHING, Knowledge
from psconrl.experiment.user_metrics import UserMetric
from psconrl.learning.registry import RECIPES, recipe_for
from psconrl.model.simulation_tables import EMISSIONS

DEFAULT_HORIZON = 20_000
# What an agent knows of the costs. Noisy costs are learned too, from samples drawn around their means.
KNOWN, LEARNED, NOISY = "known", "learned", "noisy"
# Suffixes that distinguish the experiments of one table [experiments.NAME].
COSTS_SUFFIX = {KNOWN: "", LEARNED: " (costs learned)", NOISY: " (costs noisy)"}
USUAL_NOISE = "uniform"  # the emission of noisy costs if an experiment names none
ALL = "all"  # among the names of agents: the experiment's own agents
WHOLE_TITLE, OTHERS_TITLE = "all", "other"  # of all environments of a leaderboard, and of those in no group
RUN_BYTES = 5_000  # memory per waiting run: its settings, its hash, its place in the queue

T = TypeVar("T")


@dataclass(frozen=True)
class AgentSpec:
    """One table ``[agents.LABEL]``."""

    agent: str
    options: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    known_costs: bool = True
    replicates: int | None = None
    knowledge: Knowledge = NOTHING  # prior knowledge: support, trust, worth, baseline, true constants
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
    evaluate: bool | None = None  # whether to evaluate every policy played exactly; None: where that is cheap
    draw: bool = False  # every replicate has a model of its own (option seed), drawn from the spec's seed
    probe: list[int] | None = None  # state, action, next state of a sampled probability to record
    thresholds: Mapping[str, float] | None = None  # thresholds that replace the environment's, by name
    # Known, learned, noisy: one experiment for each. None: known if there is a model, else learned.
    costs: list[str] | None = None
    seen: bool | None = None  # whether parts of an agent were chosen on it: its group on a leaderboard
    trajectories: bool = False  # whether all rounds of every run are stored
    without: Mapping[str, str] = field(default_factory=dict)  # agents that have no runs, with the reasons

    def names(self, name: str) -> list[str]:
        """Return the names of the experiments of the table [experiments.NAME]."""
        variants = _variants(name, self.options, self.grid)
        return [self.title(variant, costs) for variant, _ in variants for costs in self.kinds_of_costs]

    @property
    def kinds_of_costs(self) -> list[str]:
        """The kinds of costs, those of a model if none are named."""
        return [KNOWN] if self.costs is None else self.costs

    def title(self, variant: str, costs: str) -> str:
        """Return the name of the experiment of a grid point and a kind of costs."""
        return variant + COSTS_SUFFIX[costs] if len(self.kinds_of_costs) > 1 else variant

    def informed(self, name: str, env_options: Mapping[str, Any], code: str) -> "ExperimentSpec":
        """Return the experiment with costs that can be known if its environment has a model, and with learned if not.

        ``env_options``: those of one of its environments. ``code``: digest of the environment's user code.
        """
        if KNOWN not in self.kinds_of_costs or has_known_costs(self.env, env_options, code):
            return self
        if self.costs is None:
            return replace(self, costs=[LEARNED])
        raise ConfigError(
            f"[experiments.{name}] costs: {self.env} has no model, so that no agent is given its costs; write "
            f'costs = ["{LEARNED}"]'
        )


@dataclass(frozen=True)
class EnvironmentGroup:
    """One table ``[groups.NAME]``: experiments for which a leaderboard also has standings of their own."""

    title: str
    description: str
    experiments: tuple[str, ...]  # their names, in the order of the file


class Origin(NamedTuple):
    """Where runs come from: the text of a spec, its folder, and whether they are its short form."""

    name: str  # of the file, without .toml
    text: str
    folder: Path | None
    quick: bool = False


class Jobs(list[Job]):
    """The runs of a spec, with its name as title, and its own metrics."""

    def __init__(
        self, title: str, jobs: Iterable[Job], metrics: Sequence[UserMetric] = (), origin: Origin | None = None
    ) -> None:
        super().__init__(jobs)
        self.title, self.metrics, self.origin = title, tuple(metrics), origin

    def of(self, experiments: Collection[str]) -> "Jobs":
        """Return the runs of some experiments."""
        return Jobs(self.title, (job for job in self if job.experiment in experiments), self.metrics, self.origin)


class _Member(NamedTuple):
    """An agent with its settings in one experiment."""

    label: str
    agent: AgentSpec
    options: Mapping[str, Any]
    grid: Mapping[str, list[Any]]
    runs: int
    horizon: int


@dataclass(frozen=True)
class Spec:
    """The contents of a spec file."""

    name: str
    seed: int
    replicates: int
    agents: Mapping[str, AgentSpec]
    experiments: Mapping[str, ExperimentSpec]
    groups: tuple[EnvironmentGroup, ...] = ()
    metrics: tuple[UserMetric, ...] = ()
    origin: Origin | None = None

    def jobs(self, quick: bool = False) -> Jobs:
        """Return all runs of the spec, grouped by experiment."""
        count = sum(self._count(experiment, quick) for experiment in self.experiments.values())
        need(count * RUN_BYTES, f"a sweep of {count:,} runs", ConfigError)
        return Jobs(
            self.name,
            [job for name, experiment in self.experiments.items() for job in self._jobs_of(name, experiment, quick)],
            self.metrics,
            None if self.origin is None else self.origin._replace(quick=quick),
        )

    def shortened(self) -> list[str]:
        """Return what the short form leaves out, one line for all experiments with the same omissions."""
        lines: dict[str, list[str]] = {}
        for name, experiment in self.experiments.items():
            full, quick = ({m.label: m for m in self._agents_of(experiment, q)} for q in (False, True))
            left: list[str] = []
            for what, of in (("runs", "runs"), ("rounds", "horizon")):
                kept, most = (max(getattr(member, of) for member in form.values()) for form in (quick, full))
                left += [f"{kept:,} of {most:,} {what}"] * (kept < most)
            missing = [label for label in full if label not in quick]
            left += [f"without {' and '.join(missing)}"] * bool(missing)
            if left:
                lines.setdefault(", ".join(left), []).append(name)
        return [f"{', '.join(names)}: {left}" for left, names in lines.items()]

    def with_agents(self, names: Sequence[str]) -> "Spec":
        """Return a spec with the same experiments and other agents.

        Agents are labels of the file, names of ``psconrl agents``, or your own code, ``module:Class``, whose label is
        the title of the class. ``"all"`` stands for the agents that an experiment has. Agents that know the structure
        stay in the experiments that have them, which get no others.
        """
        agents = dict(self.agents)
        labels = []
        for name in names:
            label = recipe_for(name).title if is_code(name) else name
            if is_code(name):
                label = name if label in (ALL, *self.agents, *RECIPES) else label
                agents[label] = AgentSpec(as_module(name), {}, {})
            elif name != ALL and name not in self.agents:
                recipe_for(name)  # raises an error if there is none
            labels.append(label)
        if len(set(labels)) < len(labels):
            raise ConfigError(f"agents must have names that differ; got {quoted(', '.join(labels))}")

        structured = {label for label, agent in self.agents.items() if agent.knowledge.structure}

        def chosen(own: Collection[str]) -> list[str]:
            named = dict.fromkeys(x for label in labels for x in (own if label == ALL else [label]))
            return [x for x in named if x in own or not structured & {x, *own}]

        experiments = {}
        for key, e in self.experiments.items():
            quick = {**e.quick, "agents": chosen(e.quick["agents"])} if "agents" in e.quick else e.quick
            experiments[key] = replace(e, agents=chosen(e.agents or self.agents), quick=quick)
        origin = self.origin
        if origin is not None:
            origin = origin._replace(text=f"# Run with other agents than below: {', '.join(names)}\n{origin.text}")
        return replace(self, agents=agents, experiments=experiments, origin=origin)

    def _count(self, experiment: ExperimentSpec, quick: bool) -> int:
        """Return the number of runs of an experiment without building them."""
        points = sum(
            member.runs * _points(member.grid) * len(_columns(experiment, member.agent))
            for member in self._agents_of(experiment, quick)
        )
        return _points(experiment.grid) * points

    def _jobs_of(self, name: str, experiment: ExperimentSpec, quick: bool) -> Iterator[Job]:
        digest = file_digest(experiment.env)
        environments = list(_variants(name, experiment.options, experiment.grid))
        first = environments[0][1]
        experiment = experiment.informed(name, first, digest_of(env_code_names(experiment.env, first)))
        for (environment, env_options), costs in itertools.product(environments, experiment.kinds_of_costs):
            title = experiment.title(environment, costs)
            of_env = env_code_names(experiment.env, env_options)
            env_code = digest_of(of_env)
            for label, agent, options, grid, runs, horizon in self._agents_of(experiment, quick):
                if costs not in _columns(experiment, agent):
                    continue
                code = digest_of([(agent.agent, USER_AGENTS), (agent.knowledge.trust, USER_ENVIRONMENTS), *of_env])
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
                            emission=_emission(experiment, costs),
                            evaluate=experiment.evaluate,
                            probe=experiment.probe,
                            seed=self.seed,
                            replicate=replicate,
                            file=digest,
                            code=code,
                            env_code=env_code,
                            knowledge=agent.knowledge,
                            trajectory=experiment.trajectories,
                        )

    def _agents_of(self, experiment: ExperimentSpec, quick: bool) -> Iterator[_Member]:
        """Yield the agents of an experiment with all overrides applied."""
        changes = experiment.quick if quick else {}
        labels = changes.get("agents", experiment.agents)
        for label in self.agents if labels is None else labels:
            if label in experiment.without:
                continue
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


def _columns(experiment: ExperimentSpec, agent: AgentSpec) -> list[str]:
    """Return the kinds of costs an agent runs with; an agent that always learns costs has no run with known ones."""
    learns = not agent.known_costs or (not is_code(agent.agent) and recipe_for(agent.agent).learns_costs)
    kinds = experiment.kinds_of_costs
    return [costs for costs in kinds if costs != KNOWN] or kinds if learns else kinds


def _emission(experiment: ExperimentSpec, costs: str) -> str:
    """Return how costs are emitted; if one kind of costs is noisy, the other kinds emit the means."""
    if NOISY not in experiment.kinds_of_costs:
        return experiment.emission
    noise = USUAL_NOISE if experiment.emission == EMISSIONS[0] else experiment.emission
    return noise if costs == NOISY else EMISSIONS[0]


def _points(grid: Mapping[str, list[Any]]) -> int:
    return math.prod(len(values) for values in grid.values())


def _variants(
    name: str, options: Mapping[str, Any], grid: Mapping[str, list[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the options at each point of a grid, with a name that includes the point."""
    for point in itertools.product(*grid.values()):
        chosen = dict(zip(grid, point, strict=True))
        yield " ".join([name, *(f"{key}={value}" for key, value in chosen.items())]), {**options, **chosen}


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)


def _draw(seed: int, replicate: int) -> int:
    """Return the seed of the model of a replicate, if each replicate has its own."""
    return int(np.random.SeedSequence([seed, replicate]).generate_state(1)[0])


def _usual(env: str) -> int:
    return ENVIRONMENTS[env].horizon if env in ENVIRONMENTS else DEFAULT_HORIZON
