"""The protocol of the leaderboard for one agent: which runs it needs, and which hyperparameter values may be tried.

The environments, seeds, horizons and numbers of runs are those of two shipped specs: ``sensitivity.toml`` has the
development environments, on which a hyperparameter is chosen, and ``leaderboard.toml`` the environments that count.
Uniform play, the reference of all losses, has runs in all of them.
"""

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.base.named_code import as_module, classes_of_file, find_code, is_code, is_python_file
from psconrl.errors import ConfigError, unknown_name
from psconrl.experiment.job import Environment, Job
from psconrl.experiment.spec import AgentSpec, EnvironmentGroup, ExperimentSpec, Jobs, Spec
from psconrl.experiment.spec_file import shipped_spec
from psconrl.learning.registry import recipe_for, title_of

REFERENCE = "uniform"  # the agent whose score makes those of different environments comparable
MOST_VALUES = 8  # of a hyperparameter; agents of the leaderboard had five to eight
DEVELOPMENT = "development "  # start of the names of development environments, which may be those of the board


@dataclass(frozen=True)
class Entry:
    """An agent on the board: one of the shipped spec, or your own."""

    name: str  # a label of leaderboard.toml, or module:Class
    label: str
    title: str
    agent: AgentSpec

    def with_option(self, option: str, value: float) -> "Entry":
        """Return the entry with another value of an option."""
        setting = f"tuned: {option} {value:g}"
        return replace(self, agent=replace(self.agent, options={**self.agent.options, option: value}, setting=setting))


@dataclass(frozen=True)
class Plays:
    """The runs of an entry and of the reference, and the environments that the entry cannot play, with the reasons."""

    jobs: Jobs
    left_out: Mapping[str, str]


def find_entry(name: str) -> Entry:
    """Return the entry of an agent: ``file.py``, ``file.py:Class``, ``module:Class``, or a label of the leaderboard."""
    agents = shipped_spec("leaderboard").agents
    own = [label for label, agent in agents.items() if label != REFERENCE and not agent.knowledge.structure]
    if name in own:
        return Entry(name, name, title_of(name), agents[name])
    if name == REFERENCE:
        raise ConfigError(f"{quoted(name)} is the reference, of which every submission has runs; submit another agent")
    if is_python_file(name):
        name = f"{name}:{_only_agent(name)}"
    if not is_code(name):
        raise ConfigError(f"{unknown_name('agent', name, own)} (one of your own is file.py or file.py:Class)")
    title = recipe_for(name).title
    module = as_module(name)
    label = module if title in agents else title
    # An agent that takes no costs always learns them, so that it has no runs with known ones.
    return Entry(module, label, title, AgentSpec(module, {}, {}, known_costs=_takes_costs(name), setting="as given"))


def board_groups() -> tuple[EnvironmentGroup, ...]:
    """Return the groups of environments of the leaderboard, each of which has standings of its own."""
    return shipped_spec("leaderboard").groups


def board_plays(entry: Entry, quick: bool) -> Plays:
    """Return the runs on the environments of the leaderboard."""
    return _plays(shipped_spec("leaderboard"), entry, quick)


def tuning_plays(entry: Entry, option: str, values: Sequence[float], quick: bool) -> Plays:
    """Return the runs on the development environments, with a label ``LABEL option=value`` for every value."""
    if not 2 <= len(values) <= MOST_VALUES or len(set(values)) < len(values):
        raise ConfigError(f"a grid has 2 to {MOST_VALUES} different values; got {len(values)}")
    spec = shipped_spec("sensitivity")
    experiments = {f"{DEVELOPMENT}{name}": experiment for name, experiment in spec.experiments.items()}
    tried = replace(entry, agent=replace(entry.agent, grid={option: list(values)}))
    return _plays(replace(spec, experiments=experiments), tried, quick)


def protocol_digest(jobs: Sequence[Job]) -> str:
    """Return a digest of the protocol: the environments, seeds, horizons and checkpoints of the reference's runs."""
    parts = [
        [
            job.experiment, job.env, job.env_options, job.thresholds, job.known_costs, job.horizon, job.checkpoints,
            job.emission, job.evaluate, job.seed, job.replicate,
        ]
        for job in jobs
        if job.label == REFERENCE
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _plays(spec: Spec, entry: Entry, quick: bool) -> Plays:
    agents = {entry.label: entry.agent, REFERENCE: AgentSpec(REFERENCE, {}, {})}
    experiments = {
        name: replace(
            experiment,
            agents=list(agents),
            override={label: changes for label, changes in experiment.override.items() if label == entry.label},
            without={label: reason for label, reason in experiment.without.items() if label == entry.label},
            quick={key: value for key, value in experiment.quick.items() if key != "agents"},
        )
        for name, experiment in spec.experiments.items()
        if not _is_about_structure(spec, experiment)
    }
    jobs = replace(spec, agents=agents, experiments=experiments).jobs(quick)
    left_out = _without(experiments, entry.label) | _refusals(jobs)
    kept = [job for job in jobs if job.label == REFERENCE or job.experiment not in left_out]
    return Plays(Jobs(jobs.title, kept), left_out)


def _is_about_structure(spec: Spec, experiment: ExperimentSpec) -> bool:
    labels = experiment.agents or []
    return any(spec.agents[label].knowledge.structure for label in labels if label in spec.agents)


def _without(experiments: Mapping[str, ExperimentSpec], label: str) -> dict[str, str]:
    """Return the experiments that the protocol leaves out for an agent, with its reasons."""
    return {
        each: experiment.without[label]
        for name, experiment in experiments.items()
        if label in experiment.without
        for each in experiment.names(name)
    }


def _refusals(jobs: Sequence[Job]) -> dict[str, str]:
    """Return the experiments whose environment the agent refuses as it is built, with its message.

    An agent that refuses all of them, or that refuses some values of its hyperparameter, is an error.
    """
    environments: dict[tuple[str, str, str], Environment] = {}
    answers: dict[str, dict[str, str]] = {}
    for job in jobs:
        of_labels = answers.setdefault(job.experiment, {})
        if job.label == REFERENCE or job.label in of_labels:
            continue
        if job.model_key not in environments:
            environments[job.model_key] = job.environment()
        of_labels[job.label] = _refusal(job, environments[job.model_key])
    for experiment, of_labels in answers.items():
        some = [f"{label}: {reason}" for label, reason in of_labels.items() if reason]
        if some and len(some) < len(of_labels):
            raise ConfigError(f"environment {quoted(experiment)}, {some[0]}")
    played = {name: next(iter(of_labels.values())) for name, of_labels in answers.items() if of_labels}
    if all(played.values()):
        name, reason = next(iter(played.items()))
        raise ConfigError(f"the agent plays none of the environments; {quoted(name)}: {reason}")
    return {name: reason for name, reason in played.items() if reason}


def _refusal(job: Job, environment: Environment) -> str:
    try:
        job.make_agent(environment)
    except Exception as error:  # of the user's code
        return f"{type(error).__name__}: {error}"
    return ""


def _only_agent(file: str) -> str:
    found = [
        name
        for name, cls in classes_of_file(file).items()
        if not name.startswith("_") and all(callable(getattr(cls, method, None)) for method in ("begin", "end"))
    ]
    if len(found) != 1:
        several = f"several: {', '.join(found)}; say which, as in {file}:{found[0]}" if found else "none"
        raise ConfigError(f"{file}: must have one class with begin and end; it has {several}")
    return found[0]


def _takes_costs(name: str) -> bool:
    parameters: Mapping[str, Any] = inspect.signature(find_code(name)).parameters
    return "costs" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
