"""The commands ``figure`` and ``table``: results of a sweep for a paper."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from psconrl.cli.options import PICTURES, output_path
from psconrl.cli.render import console
from psconrl.errors import ConfigError
from psconrl.escaping import quoted
from psconrl.experiment.store import Store
from psconrl.extras import need_matplotlib
from psconrl.files import write_atomically

UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # TeX's point, as in \columnwidth
NARROWEST_FIGURE, WIDEST_FIGURE = 1.0, 40.0  # inches
LENGTH = re.compile(r"(\d+\.?\d*|\.\d+) *([a-z]*)", re.ASCII)


def inches(text: str) -> float:
    """Convert a length with its unit to inches.

    >>> inches("3.25in"), round(inches("8.5cm"), 3)
    (3.25, 3.346)
    """
    found = LENGTH.fullmatch(text.strip().lower())
    if not found or found[2] not in UNITS:
        raise ConfigError(
            f"--width: must be a number with its unit ({', '.join(UNITS)}), e.g. 3.25in; got {quoted(text)}"
        )
    width = float(found[1]) * UNITS[found[2]]
    if not NARROWEST_FIGURE <= width <= WIDEST_FIGURE:
        raise ConfigError(f"--width: must be from {NARROWEST_FIGURE:g}in to {WIDEST_FIGURE:g}in; got {quoted(text)}")
    return width


SELECTION = (
    click.argument("results"),
    click.option("--experiments", multiple=True, metavar="A,B", help="Names, in this order. [default: all]"),
    click.option("--agents", multiple=True, metavar="A,B", help="Labels, in this order. [default: all]"),
    click.option("--rename", multiple=True, metavar="LABEL=NAME", help="Rename an agent or an experiment; repeatable."),
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="A,B",
        default=("regret,violation",),
        show_default=True,
        help="Also priced, penalised, objective, cost, strong-regret, strong-violation, largest-excess, paper-regret, "
        "paper-violation.",
    ),
)


def chosen(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument RESULTS, and the options that select what is shown, and under which names."""
    for option in reversed(SELECTION):
        command = option(command)
    return command


@click.command("figure")
@chosen
@click.option("--width", metavar="LENGTH", help="Exact width, e.g. 3.25in, 8.5cm, 85mm, 246pt. [default: as it fits]")
@click.option("-o", "--out", required=True, metavar="FILE", help="A .pdf, .svg or .png file.")
def figure_command(width: str | None, out: str, **given: Any) -> None:
    """Draw curves of RESULTS for a paper: means over runs with bands, in the width of its column.

    Bands are 95% intervals of the mean; for paper-regret and paper-violation, standard deviations over runs.

    Agents have the colours of the page. A curve that leaves the axes is cut off, and the panel says where it ends.
    """
    target = output_path("--out", out, PICTURES)
    need_matplotlib("figure")
    from psconrl.report.figure_files import write_figure
    from psconrl.report.panels import panel_figure, rows_of

    wide = None if width is None else inches(width)
    shown, measured = _read(**given)
    assert target is not None
    write_figure(panel_figure(shown, rows_of(measured), wide), target, exact=True)
    console().print(Text(f"Picture: {target}"))


@click.command("table")
@chosen
@click.option("--format", "form", default="markdown", show_default=True, metavar="FORMAT", help="latex, markdown, csv.")
@click.option("-o", "--out", metavar="FILE", help="The file to write. [default: print the table]")
def table_command(form: str, out: str | None, **given: Any) -> None:
    """Tabulate final values of RESULTS for a paper: mean and 95% interval over runs, and the number of runs.

    paper-regret and paper-violation have the standard deviation over runs in place of the interval.

    LaTeX needs the package booktabs; CSV has a line for each number, not rounded, and the column spread says
    whether low and high are those of the interval or of the deviation.
    """
    from psconrl.report.print_table import print_table

    text = print_table(*_read(**given), form)
    if out is None:
        console().print(Text(text.removesuffix("\n")), soft_wrap=True)
        return
    write_atomically(Path(out), lambda f: f.write(text.encode("utf-8", "replace")), ConfigError)
    console().print(Text(f"Table: {out}"))


def _read(
    results: str,
    experiments: tuple[str, ...],
    agents: tuple[str, ...],
    rename: tuple[str, ...],
    metrics: tuple[str, ...],
) -> tuple[list[Any], list[Any]]:
    """Return the experiments and the measures to show."""
    from psconrl.report.curves import read_experiments
    from psconrl.report.metrics import measures
    from psconrl.report.selection import select

    with Store(results) as store:
        shown = select(read_experiments(store), experiments, agents, rename)
    return shown, measures(shown, [name.strip() for text in metrics for name in text.split(",") if name.strip()])
