"""The command line: a thin layer over the library. Exit 0 done, 2 bad input (one line), 3 infeasible, 4 uncertified."""

import importlib
import io
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from psconrl._version import __version__
from psconrl.base.escaping import printable
from psconrl.base.named_code import LOG as CODE_THAT_RUNS
from psconrl.cli.exit_codes import BAD_INPUT, INFEASIBLE, INTERRUPTED
from psconrl.errors import InfeasibleError, PsconrlError, unknown_name

# The sections of --help, in the order in which a person works. Of each command, the module, which is imported when the
# command is called, so that --help is quick, and a summary.
SECTIONS = {
    "Try": {
        "reproduce": ("psconrl.cli.reproduce", "Run the paper's experiments, draw its figures, write the page."),
        "envs": ("psconrl.cli.listing", "List the environments."),
        "agents": ("psconrl.cli.listing", "List the agents."),
    },
    "Plan": {
        "inspect": ("psconrl.cli.inspect", "Describe a model: sizes, structure, feasible range of every cost."),
        "solve": ("psconrl.cli.solve", "Plan a model: value, costs, shadow prices, policy, certificate."),
        "explain": ("psconrl.cli.explain", "Explain an action: what each would change, in units and at its price."),
        "rule": ("psconrl.cli.rule", "Find a short rule for a System: a few questions, with what the rule costs."),
        "verify": ("psconrl.cli.verify", "Check a saved proof against a model, in exact arithmetic."),
        "pareto": ("psconrl.cli.pareto", "Trade-off curves: the optimal value as one or two limits vary."),
    },
    "Learn": {
        "learn": ("psconrl.cli.learn", "Let an agent learn an environment; live progress, crash-safe, resumable."),
        "monitor": ("psconrl.cli.monitor", "Watch a run or a sweep on a local page that refreshes by itself."),
    },
    "Log": {
        "log": ("psconrl.cli.log", "Check a table of past rounds: is the state good enough, what was never tried."),
        "advise": ("psconrl.cli.advise", "Say what to do instead of what a table shows, how sure it is; write a memo."),
    },
    "Compare": {
        "sweep": ("psconrl.cli.experiments", "Run experiments from a .toml file; crash-safe, resumable, in parallel."),
        "report": ("psconrl.cli.experiments", "Write a sweep's results as one interactive page."),
        "figure": ("psconrl.cli.paper", "Plot curves of a sweep for a paper: choose agents, names, metric and width."),
        "table": ("psconrl.cli.paper", "Write final values of a sweep for a paper as LaTeX, Markdown or CSV."),
        "board": ("psconrl.cli.board", "Submit an agent to the leaderboard, check a submission, write the page."),
    },
    "Files": {
        "convert": ("psconrl.cli.convert", "Write a model to another format: .npz, .json, .umb or .drn."),
        "export": ("psconrl.cli.experiments", "Write a sweep's results as CSV or Parquet."),
        "provenance": ("psconrl.cli.provenance", "Show or restore what made a sweep's results: spec, code, versions."),
        "cite": ("psconrl.cli.cite", "Print BibTeX of the library, of agents, of all agents of a sweep."),
    },
}
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise click.UsageError(unknown_name("command", cmd_name, COMMANDS))
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))  # the same in every section
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="psconrl")
def app() -> None:
    """Planning and learning in constrained Markov decision processes under the long-run average criterion.

    MODEL is the name of a built-in environment (see psconrl envs) or a file: .npz, .json,
    or Storm's and PRISM's .umb and .drn.
    """


def main(args: list[str] | None = None) -> Any:
    """Run the command line. A user error prints one line and exits with code 2, without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # do not fail on characters that the terminal cannot show
    try:
        given = sys.argv[1:] if args is None else args
        with _code_announced():
            sys.exit(app.main(args=given or ["--help"], prog_name="psconrl", standalone_mode=False))
    except click.ClickException as error:
        _leave("UsageError", error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _ignore_signals()
        sys.exit(INTERRUPTED)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:
            _ignore_signals()
        raise
    except PsconrlError as error:
        _leave(type(error).__name__, str(error), INFEASIBLE if isinstance(error, InfeasibleError) else BAD_INPUT)
    except MemoryError:
        _leave("MemoryError", "there is not enough memory on this machine", BAD_INPUT)


class _Once(logging.Handler):
    """Logging handler that prints every distinct line once, on standard error."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line not in self._said:
            self._said.add(line)
            click.echo(printable(line), err=True)


@contextmanager
def _code_announced() -> Iterator[None]:
    """Announce the code that a spec names before it is run, so that the user of another's spec knows of it."""
    handler, level = _Once(), CODE_THAT_RUNS.level
    CODE_THAT_RUNS.addHandler(handler)
    CODE_THAT_RUNS.setLevel(logging.INFO)
    try:
        yield
    finally:
        CODE_THAT_RUNS.removeHandler(handler)
        CODE_THAT_RUNS.setLevel(level)


def _ignore_signals() -> None:
    """Ignore further signals, so that another Ctrl-C does not disturb the cleanup at exit."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _leave(kind: str, message: str, code: int) -> NoReturn:
    click.echo(printable(f"{kind}: {' '.join(message.split())}"), err=True)
    sys.exit(code)
