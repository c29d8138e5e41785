"""The command ``learn``."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from psconrl.base.caps import MOST_ROUNDS
from psconrl.cli.autosave import AUTOSAVE_SECONDS
from psconrl.cli.exit_codes import INTERRUPTED
from psconrl.cli.learn_progress import learn_with_progress
from psconrl.cli.learn_result import print_result
from psconrl.cli.learn_run import LearnOptions, OutputFiles, log_of, make_run
from psconrl.cli.options import read_environment, set_option, threshold_option
from psconrl.cli.progress import build_with_progress, reference_with_progress
from psconrl.cli.render import console
from psconrl.cli.signals import end_politely
from psconrl.experiment.job import model_of
from psconrl.learning.advice import advice, hindsight
from psconrl.learning.runtime.constraint_names import ConstraintNames
from psconrl.learning.watchdog import Watchdog
from psconrl.model.cmdp import CMDP
from psconrl.model.simulation_tables import EMISSIONS
from psconrl.planning.plan import Plan
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.run import Run
from psconrl.simulation.trace import Trace
from psconrl.systems.system import System


@click.command("learn")
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
@set_option
@threshold_option
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
@click.option(
    "--save", "save_to", metavar="FILE", help=f"Save the run to a file, every {AUTOSAVE_SECONDS:g} s and at the end."
)
@click.option("--resume", "resume_from", metavar="FILE", help="Continue a saved run, bit for bit, and save it there.")
@click.option("--log", "log_to", metavar="FILE", help="Write a .csv line per episode, for `psconrl monitor FILE`.")
@click.option(
    "--trajectory", "trajectory_to", metavar="FILE", help="Write a .csv line per round: state, action, costs."
)
@click.option("--support", is_flag=True, help="Give the agent the set of possible transitions.")
@click.option(
    "--structure/--no-structure",
    default=None,
    help="Give the agent a System, except for its unknown parameters. [default: if ENV is one and the agent can]",
)
@click.option("--trust", metavar="MODEL", help="Start from another model, such as a rough simulator's.")
@click.option("--worth", type=float, metavar="N", help="Weight of --trust in visits of every pair. [default: learned]")
@click.option(
    "--baseline",
    metavar="PLAN",
    help="A safe policy for --agent safe or c-ucrl: a plan's .npz file, or safest. For safe, it goes with --structure.",
)
@click.option("--plot", metavar="FILE", help="Plot the run to a .png, .svg or .pdf file.")
def learn_command(**given: Any) -> None:
    """Let an agent learn ENV, an environment or a model file unknown to the agent.

    module:function names your own environment: the function returns a model or a Gymnasium environment. gym:Id-v0 names
    one of Gymnasium. A System (shop.toml, shop.py) needs the true values of its unknown parameters, --set demand=2.3,
    which the agent has to learn.

    Ctrl-C ends the run early and keeps the results so far (exit code 130).
    """
    options = LearnOptions(**given)
    files = OutputFiles.of(options)
    environment = read_environment(options.env, options.settings, options.thresholds)
    model = model_of(environment)
    run, rounds = make_run(environment, options)
    if files.log is not None:
        run.agent.watch(log_of(model, run, files.log))
    if files.trajectory is not None:
        run.record_trajectory()
    watchdog = _watchdog(model, run)
    out, maximise = console(), model is None or model.maximise  # Gymnasium has rewards
    limits = ConstraintNames.of(run.cost_names[1:], () if model is None else model.at_least)
    _print_in_yellow(out, advice(run.agent, rounds, maximise))
    best = None
    if model is not None:
        best = reference_with_progress(build_with_progress(environment) if isinstance(environment, System) else model)
    title = f"{run.agent.recipe} on {options.env}"
    if run.round >= rounds:
        trace = run.trace()
        played = f"{options.resume_from}: complete, {run.round} rounds were played"
        out.print(Text(f"{played}; a larger --horizon continues it"))
        if not options.save_to:  # the resumed file is up to date
            files = replace(files, run=None)
    else:
        end_politely()
        trace = learn_with_progress(run, rounds, best, files.run)
        print_result(out, title, trace, best)
        _print_in_yellow(out, (f"Watchdog: {alarm}." for alarm in watchdog.alarms))
        doubts = run.agent.doubts() or ()
        _print_in_yellow(out, (f"What the agent was given is wrong: {doubt}." for doubt in doubts))
        _print_in_yellow(out, (f"Note: {line}." for line in hindsight(run.agent, run.state, maximise, limits)))
    _write(out, files, run, trace, best, title)
    if trace.interrupted:
        sys.exit(INTERRUPTED)


def _watchdog(model: CMDP | None, run: Run) -> Watchdog:
    """Return a watchdog of the run, whose alarms are printed at the end."""
    floors = () if model is None else model.at_least
    watchdog = Watchdog(run.cost_names[1:], lambda alarm: None, floors)
    run.agent.watch(watchdog)
    return watchdog


def _print_in_yellow(out: Console, lines: Iterable[str]) -> None:
    for line in lines:
        out.print(Text(line, style="yellow"))


def _write(out: Console, files: OutputFiles, run: Run, trace: Trace, best: Plan | None, title: str) -> None:
    """Save the run, draw its picture, and print which files there are."""
    if files.run is not None and isinstance(run, Simulation):
        run.save(files.run)
    if files.picture is not None:
        from psconrl.report.figure_files import write_figure
        from psconrl.report.run_figure import trace_figure

        write_figure(trace_figure(trace, best, title=title), files.picture)
        out.print(Text(f"Picture: {files.picture}"))
    if files.log is not None:
        log = files.log
        shown = f"{log} (psconrl monitor {log} shows it)" if log.exists() else "none; no episode has ended yet"
        out.print(Text(f"Log: {shown}"))
    if files.trajectory is not None and trace.trajectory is not None:
        trace.trajectory.to_csv(files.trajectory)
        out.print(Text(f"Trajectory: {files.trajectory}"))
    if files.run is not None:
        out.print(Text(f"Saved: {files.run} (continue with --resume {files.run} --horizon N)"))
