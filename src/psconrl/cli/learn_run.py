"""The options of ``learn``, and the run that they describe."""

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from psconrl.base.escaping import quoted
from psconrl.base.sizes import EVALUATED_STATES
from psconrl.cli.options import output_path, pairs, picture_path, words
from psconrl.cli.progress import prepare_with_progress
from psconrl.envs.continuing import ContinuingEnv
from psconrl.envs.gym_env import CMDPEnv
from psconrl.envs.registry import ENVIRONMENTS, load_system
from psconrl.errors import ConfigError
from psconrl.experiment.job import Environment, model_of
from psconrl.experiment.prior_knowledge import SAID_BY, Knowledge
from psconrl.learning.recipe import RESERVED
from psconrl.learning.registry import make_agent, recipe_for, with_hints
from psconrl.learning.runtime.logs import CSVLog
from psconrl.learning.runtime.player import Player
from psconrl.model.cmdp import CMDP
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.run import Run
from psconrl.systems.system import System

USUAL_ROUNDS = 20_000  # horizon of an environment without one of its own
OF_A_MODEL = ("save_to", "emission", "support", "structure", "trust", "worth", "baseline")  # options that need a model
OF_A_NEW_RUN = (
    "agent_name", "seed", "options", "unknown_costs", "emission", "support", "structure", "trust", "worth", "baseline",
)  # fmt: skip


@dataclass(frozen=True)
class LearnOptions:
    """The command line of ``learn``; the fields are named after its parameters."""

    env: str
    agent_name: str
    horizon: int | None
    seed: int
    settings: tuple[str, ...]
    thresholds: tuple[str, ...]
    options: tuple[str, ...]
    unknown_costs: bool
    emission: str
    background: bool
    save_to: str | None
    resume_from: str | None
    log_to: str | None
    trajectory_to: str | None
    support: bool
    structure: bool | None
    trust: str | None
    worth: float | None
    baseline: str | None
    plot: str | None

    @property
    def rounds(self) -> int:
        """The horizon of a new run."""
        return self.horizon or (ENVIRONMENTS[self.env].horizon if self.env in ENVIRONMENTS else USUAL_ROUNDS)

    @property
    def knowledge(self) -> Knowledge:
        """The prior knowledge of the agent."""
        return Knowledge(self.support, self.trust or "", self.worth, self.baseline or "", dashes="--")


@dataclass(frozen=True)
class OutputFiles:
    """The files that ``learn`` writes, checked before the run starts; None for those not wanted."""

    picture: Path | None
    run: Path | None
    log: Path | None
    trajectory: Path | None

    @classmethod
    def of(cls, options: LearnOptions) -> "OutputFiles":
        """Check the files that the options name."""
        picture = picture_path(options.plot)
        if options.background and (options.save_to or options.resume_from):
            raise ConfigError("--background: such a run cannot be saved or resumed; leave out --save and --resume")
        run = _save_path(options.save_to or options.resume_from, options.resume_from)
        trajectory = output_path("--trajectory", options.trajectory_to, (".csv",))
        return cls(picture, run, _log_path(options.log_to, run), trajectory)


def make_run(environment: Environment, options: LearnOptions) -> tuple[Run, int]:
    """Return a new or resumed run, and the round up to which to play it."""
    if options.resume_from is not None:
        _refuse_with_resume(*OF_A_NEW_RUN)
        resumed = Simulation.resume(_playable(environment, options.env, "--resume"), options.resume_from)
        return resumed, options.horizon or resumed.horizon
    chosen = _agent_options(options.options)
    if not isinstance(environment, ContinuingEnv):
        return _run_on_model(environment, options, chosen), options.rounds
    _refuse_without_model(options.env, *OF_A_MODEL)
    sizes = (environment.states.size, environment.actions.size, environment.thresholds)
    agent = make_agent(options.agent_name, *sizes, None, options.seed, options.rounds, **chosen)
    if options.background:
        agent.plan_in_background()
    return GymSimulation(environment, agent, options.seed), options.rounds


def _run_on_model(environment: CMDP | System, options: LearnOptions, chosen: dict[str, Any]) -> Run:
    if isinstance(environment, System):
        prepare_with_progress(environment)
    cmdp = model_of(environment)
    assert cmdp is not None
    knowledge = options.knowledge
    if _knows_structure(environment, options, chosen):
        knowledge = replace(knowledge, structure=True)
    knowledge.need_believer(options.agent_name, chosen)
    if knowledge.structure:
        system, limits = load_system(options.env, **words("--set", options.settings)), options.thresholds
        system = system.with_thresholds(pairs("--threshold", limits)) if limits else system
        prepare_with_progress(system)
        chosen = knowledge.options_in_system(system, cmdp, options.agent_name) | chosen
    else:
        known_costs, emission = not options.unknown_costs, options.emission
        chosen = knowledge.options(cmdp, options.agent_name, known_costs=known_costs, emission=emission) | chosen
    agent = _agent_for(cmdp, options, chosen, knowledge.structure)
    if options.background:
        return _in_steps(environment, cmdp, agent, options.seed, options.emission)
    return Simulation(
        environment, agent, options.seed, emission=options.emission, evaluate_policies=cmdp.n_states <= EVALUATED_STATES
    )


def _knows_structure(environment: CMDP | System, options: LearnOptions, chosen: dict[str, Any]) -> bool:
    """Return whether the agent knows the structure: as asked for, else if there is one and nothing contradicts it."""
    if options.structure is not None:
        return options.structure
    free = not (options.support or options.trust or options.unknown_costs or set(SAID_BY) & set(chosen))
    return free and isinstance(environment, System) and "belief" in recipe_for(options.agent_name).slots


def _agent_for(cmdp: CMDP, options: LearnOptions, chosen: dict[str, Any], structure: bool) -> Player:
    """Return the agent, with the prior knowledge of a model that it is given."""
    name, costs = options.agent_name, None if options.unknown_costs or structure else cmdp.costs
    if options.unknown_costs and structure:
        raise ConfigError("--unknown-costs and --structure contradict each other: the structure determines the costs")
    if options.unknown_costs:
        chosen = with_hints(name, cmdp, chosen, options.emission)
    sizes = (cmdp.n_states, cmdp.n_actions, cmdp.thresholds)
    return make_agent(name, *sizes, costs, options.seed, options.rounds, **chosen)


def _in_steps(environment: CMDP | System, cmdp: CMDP, agent: Player, seed: int, emission: str) -> Run:
    """Return a run on the model as an environment that goes on while the agent plans."""
    copy.deepcopy(agent).begin(0)  # the imports of the first plan take longer than many runs
    agent.plan_in_background()
    run = GymSimulation(CMDPEnv(environment, emission=emission), agent, seed)
    run.cost_names = cmdp.cost_names
    run.provenance |= {
        "emission": emission,
        "maximise": cmdp.maximise,
        "units": cmdp.units.record(),
        "background": True,
    }
    return run


def log_of(model: CMDP | None, run: Run, path: Path) -> CSVLog:
    """Return a log with the names and units of the model, if there is one."""
    if model is None:
        return CSVLog(path, run.cost_names, maximise=True)
    costs = [model.units.named(name) for name in run.cost_names]
    at_least = [model.units.named(name) for name in model.at_least]
    return CSVLog(
        path,
        costs,
        states=model.state_names,
        actions=model.action_names,
        maximise=model.maximise,
        at_least=at_least,
    )


def _save_path(path: str | None, resumed: str | None = None) -> Path | None:
    """Return the file for saving the run, checked before it starts; only a resumed run is overwritten."""
    if path is None:
        return None
    if not Path(path).parent.is_dir():
        raise ConfigError(f"--save: folder {quoted(str(Path(path).parent))} does not exist")
    if Path(path).is_dir():
        raise ConfigError(f"--save: {quoted(path)} is a folder")
    if Path(path).exists() and path != resumed:
        raise ConfigError(f"--save: {quoted(path)} exists; --resume {path} continues it; or choose another name")
    return Path(path)


def _log_path(path: str | None, saved: Path | None) -> Path | None:
    """Return the file for the log, checked before the run starts; an existing log is continued."""
    if path is None:
        return None
    if Path(path).suffix.lower() != ".csv":
        raise ConfigError(f"--log: {quoted(path)} must end in .csv")
    if not Path(path).parent.is_dir():
        raise ConfigError(f"--log: folder {quoted(str(Path(path).parent))} does not exist")
    if Path(path).is_dir():
        raise ConfigError(f"--log: {quoted(path)} is a folder")
    if saved is not None and Path(path).absolute() == saved.absolute():
        raise ConfigError(f"--log: {quoted(path)} is the file of the saved run; give another name")
    return Path(path)


def _agent_options(values: tuple[str, ...]) -> dict[str, Any]:
    """Parse agent options given as KEY=VALUE."""
    result = words("--option", values)
    for key in result:
        if key in RESERVED:
            raise ConfigError(f"--option: {quoted(key)} follows from the environment and the other options")
    return result


def _playable(environment: Environment, env: str, what: str) -> CMDP | System:
    if not isinstance(environment, ContinuingEnv):
        return environment
    raise ConfigError(f"{what}: {env} can only be played, and such a run cannot be saved or resumed")


def _refuse_without_model(env: str, *names: str) -> None:
    for option in _given(*names):
        raise ConfigError(f"{option} needs a model, and {env} has none: it can only be played")


def _refuse_with_resume(*names: str) -> None:
    """Raise an error for options that conflict with --resume: a resumed run keeps its own settings."""
    for option in _given(*names):
        raise ConfigError(f"--resume continues with the run's own settings; leave out {option}")


def _given(*names: str) -> list[str]:
    """Return those of some options that were given on the command line."""
    context = click.get_current_context()
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
