"""The commands ``learn``, ``envs`` and ``agents``."""

import copy
import inspect
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from psconrl.caps import MOST_ROUNDS
from psconrl.cli import INTERRUPTED
from psconrl.cli.options import end_politely, picture_path, read_environment, words
from psconrl.cli.render import console, number
from psconrl.envs.continuing import ContinuingEnv
from psconrl.envs.gym_env import CMDPEnv
from psconrl.envs.registry import ENVIRONMENTS, open_environment
from psconrl.errors import ConfigError, PsconrlError
from psconrl.experiment.prior_knowledge import Knowledge
from psconrl.learning.advice import advice, hindsight
from psconrl.learning.recipe import RESERVED
from psconrl.learning.registry import RECIPES, make_agent, recipe_for, with_hints
from psconrl.learning.runtime.logs import CSVLog
from psconrl.learning.runtime.player import Player
from psconrl.learning.runtime.watchdog import Watchdog
from psconrl.model.cmdp import CMDP
from psconrl.model.tables import EMISSIONS
from psconrl.named_code import AGENTS, from_package, installed
from psconrl.named_code import ENVIRONMENTS as OWN_ENVIRONMENTS
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.planning.proof import Status
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.interrupt import Interrupted
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.policy_values import EVALUATED_STATES
from psconrl.simulation.regret import regret, signed_regret, targets
from psconrl.simulation.run import Run
from psconrl.simulation.trace import Trace

AUTOSAVE_SECONDS = 10.0
REFRESH_SECONDS = 0.1
WIDE_SCREEN = 110


@click.command()
@click.argument("env")
@click.option(
    "--agent", "agent_name", default="psconrl", show_default=True, help="A name from `psconrl agents`, or module:Class."
)
@click.option(
    "--horizon",
    type=click.IntRange(1, MOST_ROUNDS),
    help="Total number of rounds. [default: the environment's, or the resumed run's]",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of agent and environment.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Environment option, such as slip=0.1.")
@click.option("--threshold", "thresholds", multiple=True, metavar="NAME=VALUE", help="Change a limit.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Agent option, such as prior=0.05.")
@click.option(
    "--unknown-costs", is_flag=True, help="The agent has to learn the costs too (it is given the largest reward)."
)
@click.option(
    "--emission", type=click.Choice(EMISSIONS), default=EMISSIONS[0], show_default=True, help="Distribution of costs."
)
@click.option(
    "--background",
    is_flag=True,
    help="Plan in a thread while the environment goes on, step by step, under the previous policy.",
)
@click.option("--save", "save_to", metavar="FILE", help="Save the run to a file, every 10 s and at the end.")
@click.option("--resume", "resume_from", metavar="FILE", help="Continue a saved run, bit for bit, and save it there.")
@click.option("--log", "log_to", metavar="FILE", help="Write a .csv line per episode, for `psconrl monitor FILE`.")
@click.option("--support", is_flag=True, help="Give the agent the set of possible transitions.")
@click.option("--trust", metavar="MODEL", help="Start from another model, such as a rough simulator's.")
@click.option("--worth", type=float, metavar="N", help="Weight of --trust in visits of every pair. [default: learned]")
@click.option("--baseline", metavar="PLAN", help="A safe policy to start with: a plan's .npz file, or safest.")
@click.option("--plot", metavar="FILE", help="Plot the run to a .png, .svg or .pdf file.")
def learn(
    env: str,
    agent_name: str,
    horizon: int | None,
    seed: int,
    settings: tuple[str, ...],
    thresholds: tuple[str, ...],
    options: tuple[str, ...],
    unknown_costs: bool,
    emission: str,
    background: bool,
    save_to: str | None,
    resume_from: str | None,
    log_to: str | None,
    support: bool,
    trust: str | None,
    worth: float | None,
    baseline: str | None,
    plot: str | None,
) -> None:
    """Let an agent learn ENV, an environment or a model file unknown to the agent.

    module:function names your own environment: the function returns a model or a Gymnasium environment. gym:Id-v0 names
    one of Gymnasium.

    Ctrl-C ends the run early and keeps the results so far (exit code 130).
    """
    picture = picture_path(plot)
    if background and (save_to or resume_from):
        raise ConfigError("--background: such a run cannot be saved or resumed; leave out --save and --resume")
    target = save_path(save_to or resume_from, resume_from)
    log = log_path(log_to, target)
    environment = read_environment(env, settings, thresholds)
    rounds = horizon or (ENVIRONMENTS[env].horizon if env in ENVIRONMENTS else 20_000)
    run: Run
    if resume_from is not None:
        known = ("support", "trust", "worth", "baseline")
        _refuse_with_resume("agent_name", "seed", "options", "unknown_costs", "emission", *known)
        run = Simulation.resume(_model(environment, env, "--resume"), resume_from)
        rounds = horizon or run.horizon
    else:
        chosen = agent_options(options)
        if isinstance(environment, CMDP):
            knowledge = Knowledge(support, trust or "", worth, baseline or "", dashes="--")
            knowledge.need_believer(agent_name, chosen)
            chosen = knowledge.options(environment, agent_name) | chosen
            agent = _agent_for(environment, agent_name, seed, rounds, unknown_costs, chosen)
            run = _in_steps(environment, agent, seed, emission) if background else Simulation(
                environment, agent, seed, emission=emission, evaluate_policies=environment.n_states <= EVALUATED_STATES
            )  # fmt: skip
        else:
            _refuse_without_model(env, "save_to", "emission", "support", "trust", "worth", "baseline")
            sizes = (environment.states.size, environment.actions.size, environment.thresholds)
            agent = make_agent(agent_name, *sizes, None, seed, rounds, **chosen)
            if background:
                agent.plan_in_background()
            run = GymSimulation(environment, agent, seed)
    if log is not None:
        run.agent.watch(_log_of(environment, run, log))
    floors = environment.at_least if isinstance(environment, CMDP) else ()
    watchdog = Watchdog(run.cost_names[1:], lambda alarm: None, floors)  # alarms are printed at the end
    run.agent.watch(watchdog)
    out = console()
    maximise = isinstance(environment, CMDP) and environment.maximise
    for line in advice(run.agent, rounds, maximise):
        out.print(Text(line, style="yellow"))
    best = plan(environment) if isinstance(environment, CMDP) else None
    who = run.agent.recipe
    if run.round >= rounds:
        trace = run.trace()
        out.print(Text(f"{resume_from}: complete, {run.round} rounds were played; a larger --horizon continues it"))
        target = target if save_to else None  # the resumed file is up to date
    else:
        end_politely()
        trace = _run_with_progress(run, rounds, best, target)
        _print_result(out, f"{who} on {env}", trace, best)
        for alarm in watchdog.alarms:
            out.print(Text(f"Watchdog: {alarm}.", style="yellow"))
        for line in hindsight(run.agent, run.state, maximise):
            out.print(Text(f"Note: {line}.", style="yellow"))
    if target is not None and isinstance(run, Simulation):
        run.save(target)
    if picture is not None:
        from psconrl.report.figures import trace_figure, write_figure

        write_figure(trace_figure(trace, best, title=f"{who} on {env}"), picture)
        out.print(Text(f"Picture: {picture}"))
    if log is not None:
        shown = f"{log} (psconrl monitor {log} shows it)" if log.exists() else "none; no episode has ended yet"
        out.print(Text(f"Log: {shown}"))
    if target is not None:
        out.print(Text(f"Saved: {target} (continue with --resume {target} --horizon N)"))
    if trace.interrupted:
        sys.exit(INTERRUPTED)


def _agent_for(cmdp: CMDP, name: str, seed: int, rounds: int, unknown_costs: bool, options: dict[str, Any]) -> Player:
    """Return the agent, with the prior knowledge of a model that it is given."""
    if unknown_costs:
        options = with_hints(name, cmdp, options)
    costs = None if unknown_costs else cmdp.costs
    return make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, costs, seed, rounds, **options)


def _model(environment: CMDP | ContinuingEnv, env: str, what: str) -> CMDP:
    if isinstance(environment, CMDP):
        return environment
    raise ConfigError(f"{what}: {env} can only be played, and such a run cannot be saved or resumed")


def _refuse_without_model(env: str, *names: str) -> None:
    for option in _given(*names):
        raise ConfigError(f"{option} needs a model, and {env} has none: it can only be played")


def _in_steps(cmdp: CMDP, agent: Player, seed: int, emission: str) -> Run:
    """Return a run on the model as an environment that goes on while the agent plans."""
    copy.deepcopy(agent).begin(0)  # the imports of the first plan take longer than many runs
    agent.plan_in_background()
    run = GymSimulation(CMDPEnv(cmdp, emission=emission), agent, seed)
    run.cost_names = cmdp.cost_names
    run.provenance |= {
        "emission": emission,
        "maximise": cmdp.maximise,
        "units": cmdp.units.record(),
        "background": True,
    }
    return run


def save_path(path: str | None, resumed: str | None = None) -> Path | None:
    """Return the file for saving the run, checked before it starts; only a resumed run is overwritten."""
    if path is None:
        return None
    if not Path(path).parent.is_dir():
        raise ConfigError(f"--save: folder {str(Path(path).parent)!r} does not exist")
    if Path(path).is_dir():
        raise ConfigError(f"--save: {path!r} is a folder")
    if Path(path).exists() and path != resumed:
        raise ConfigError(f"--save: {path!r} exists; --resume {path} continues it; or choose another name")
    return Path(path)


def log_path(path: str | None, saved: Path | None) -> Path | None:
    """Return the file for the log, checked before the run starts; an existing log is continued."""
    if path is None:
        return None
    if Path(path).suffix.lower() != ".csv":
        raise ConfigError(f"--log: {path!r} must end in .csv")
    if not Path(path).parent.is_dir():
        raise ConfigError(f"--log: folder {str(Path(path).parent)!r} does not exist")
    if Path(path).is_dir():
        raise ConfigError(f"--log: {path!r} is a folder")
    if saved is not None and Path(path).absolute() == saved.absolute():
        raise ConfigError(f"--log: {path!r} is the file of the saved run; give another name")
    return Path(path)


def _log_of(environment: CMDP | ContinuingEnv, run: Run, path: Path) -> CSVLog:
    """Return a log with the names and units of the model, if it has any."""
    if not isinstance(environment, CMDP):
        return CSVLog(path, run.cost_names, maximise=True)
    costs = [environment.units.named(name) for name in run.cost_names]
    return CSVLog(
        path, costs, states=environment.state_names, actions=environment.action_names, maximise=environment.maximise
    )


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


def agent_options(values: tuple[str, ...]) -> dict[str, Any]:
    """Parse agent options given as KEY=VALUE."""
    result = words("--option", values)
    for key in result:
        if key in RESERVED:
            raise ConfigError(f"--option: {key!r} follows from the environment and the other options")
    return result


def _run_with_progress(run: Run, horizon: int, best: Plan | None, target: Path | None) -> Trace:
    """Run with a live progress bar and periodic saving."""
    shown = saved = time.monotonic()
    screen = console(stderr=True)
    wide = [BarColumn()] if screen.width >= WIDE_SCREEN else []  # the figures matter more than the bar
    bar = Progress(
        TextColumn("{task.description}"), *wide,
        MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=2 * len(str(horizon)) + 1)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
        TextColumn("{task.fields[status]}", markup=False),
        console=screen, transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    task = bar.add_task("round", total=horizon, completed=run.round, status="")

    def progress(run: Run) -> None:
        nonlocal shown, saved
        now = time.monotonic()
        if now - shown >= REFRESH_SECONDS:
            shown = now
            bar.update(task, completed=run.round, status=_status(run, best))
        if target is not None and isinstance(run, Simulation) and now - saved >= AUTOSAVE_SECONDS:
            run.save(target)
            saved = now

    with nullcontext() if bar.disable else bar:  # older versions of rich print a line even if disabled
        try:
            return run.run(horizon, progress=progress)
        except Interrupted as stopped:
            trace: Trace = stopped.trace
            return trace


def _status(run: Run, best: Plan | None) -> str:
    t = max(run.round, 1)
    averages = run.cumulative / t
    limits = ", ".join(
        f"{name} {a:.3f}/{tau:g}" for name, a, tau in zip(run.cost_names[1:], averages[1:], run.thresholds, strict=True)
    )
    lost = ""
    if best is not None and best.status is not Status.INFEASIBLE:
        signed = signed_regret(run.cumulative[None], [t], targets(best.costs[0], run.thresholds))
        lost = f", regret {signed[0, 0]:.0f}"
    return f"episode {len(run.log)}, {limits}{lost}"


def _print_result(out: Any, title: str, trace: Trace, best: Plan | None) -> None:
    kinds = ", ".join(f"{trace.count(kind)} {kind}" for kind in dict.fromkeys(trace.episodes.kind))
    ended = "interrupted after" if trace.interrupted else "played"
    seconds, planning = trace.provenance["seconds"], trace.provenance["planning_seconds"]
    out.print(Text(f"{title}: {ended} {sum(trace.episodes.length)} rounds in {len(trace.episodes)} episodes ({kinds})"))
    beside = ", in the background" if trace.provenance.get("background") else ""
    out.print(Text(f"{seconds:.2f} s, of which {planning:.2f} s sampling and planning{beside}"))
    if not trace.rounds.size:
        return
    sign = -1.0 if trace.provenance["maximise"] else 1.0
    averages, names, limits = trace.averages[-1], trace.cost_names, trace.thresholds
    if best is not None and best.status is Status.INFEASIBLE:
        out.print(Text(f"No policy can meet the limits: {best.infeasibility}"))
        best = None
    optimum, lost, strong = "", "", None
    over, worst = trace.cumulative[-1, 1:] - trace.rounds[-1] * limits, trace.largest_excess[-1]
    if best is not None:
        measured = regret(trace, best)
        optimum, lost, strong = number(best.value), f"regret {measured.final[0]:.1f}", measured.strong
    table = Table(
        "", "average", "optimum or limit", "over the run", "at worst", *([] if strong is None else ["strong"])
    )
    for column in table.columns[1:]:
        column.justify = "right"
    named = trace.units.named
    exact = [()] * len(names) if strong is None else [(f"{x:.1f}",) for x in strong]
    table.add_row(Text(named(names[0])), number(sign * averages[0]), optimum, lost, "", *exact[0])
    for i, name in enumerate(names[1:]):
        found = number(averages[i + 1]), number(float(limits[i])), f"violation {over[i]:.1f}", f"{worst[i]:.1f}"
        table.add_row(Text(named(name)), *found, *exact[i + 1])
    out.print(table)


@click.command()
def envs() -> None:
    """List the environments, including those of installed packages."""
    table = Table("environment", "S", "A", "limits", "what it is")
    for name, environment in ENVIRONMENTS.items():
        table.add_row(name, *_size_and_limits(environment.build()), Text(environment.summary))
    for name in installed(OWN_ENVIRONMENTS):
        try:
            found = open_environment(name)
            table.add_row(Text(name), *_size_and_limits(found), Text(_summary_of(name)))
        except Exception as error:  # of a third-party package; the others are still listed
            table.add_row(Text(name), "", "", "", Text(_failure(name, error)))
    console().print(table)


def _size_and_limits(environment: CMDP | ContinuingEnv) -> tuple[str, str, Text]:
    limits = ", ".join(
        f"{n} <= {t:.4g}" for n, t in zip(environment.cost_names[1:], environment.thresholds, strict=False)
    )
    if isinstance(environment, CMDP):
        return str(environment.n_states), str(environment.n_actions), Text(limits)
    return str(environment.states.size), str(environment.actions.size), Text(limits)


def _summary_of(name: str) -> str:
    """Return the first line of the docstring of an environment."""
    return (inspect.getdoc(from_package(OWN_ENVIRONMENTS, name)) or "").partition("\n")[0]


def _failure(name: str, error: Exception) -> str:
    line = " ".join(str(error).split()) if isinstance(error, PsconrlError) else f"{type(error).__name__}: {error}"
    return "cannot be used: " + line.removeprefix(f"{name}: ")


@click.command()
def agents() -> None:
    """List the agents, including those of installed packages."""
    table = Table("agent", "what it is")
    for name in [*RECIPES, *installed(AGENTS)]:
        try:
            summary = recipe_for(name).summary
        except PsconrlError as error:
            summary = _failure(name, error)
        table.add_row(Text(name), Text(summary))
    console().print(table)
