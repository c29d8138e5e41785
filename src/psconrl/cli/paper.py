"""The commands ``figure`` and ``table``: results of a sweep for a paper."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from psconrl.base.escaping import quoted
from psconrl.base.extras import need_matplotlib
from psconrl.base.files import write_atomically
from psconrl.cli.options import PICTURES, output_path
from psconrl.cli.render import console
from psconrl.cli.unfinished import print_unfinished
from psconrl.errors import ConfigError, unknown_name
from psconrl.experiment.store import Store

UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}  # TeX's point, as in \columnwidth
NARROWEST_FIGURE, LOWEST_FIGURE, WIDEST_FIGURE = 1.5, 1.0, 40.0  # inches
LENGTH = re.compile(r"(\d+\.?\d*|\.\d+) *([a-z]*)", re.ASCII)


def inches(text: str, option: str = "--width", least: float = NARROWEST_FIGURE) -> float:
    """Convert a length with its unit to inches.

    >>> inches("3.25in"), round(inches("8.5cm"), 3)
    (3.25, 3.346)
    """
    found = LENGTH.fullmatch(text.strip().lower())
    if not found or found[2] not in UNITS:
        raise ConfigError(
            f"{option}: must be a number with its unit ({', '.join(UNITS)}), e.g. 3.25in; got {quoted(text)}"
        )
    length = float(found[1]) * UNITS[found[2]]
    if not least <= length <= WIDEST_FIGURE:
        raise ConfigError(f"{option}: must be from {least:g}in to {WIDEST_FIGURE:g}in; got {quoted(text)}")
    return length


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
        help="regret, violation, score, priced, objective, cost, strong-regret, strong-violation, largest-excess, "
        "paper-regret, paper-violation. [default: regret,violation; without an optimum objective,cost]",
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
@click.option("--height", metavar="LENGTH", help="Exact height. [default: by the width, with space for all texts]")
@click.option("--font", metavar="NAME", help="sans, serif (like Times), or an installed font. [default: sans]")
@click.option("--fontsize", type=float, metavar="PT", help="Of the labels of axes, in points. [default: 8 up to 7.5in]")
@click.option(
    "--ylim",
    "reaches",
    multiple=True,
    metavar="[METRIC=]LOW,HIGH",
    help="Ends of the vertical axes, of one metric or of all; repeatable. Curves beyond them are marked and named.",
)
@click.option("--log", type=click.Choice(["x", "y", "xy"]), help="Logarithmic axes.")
@click.option("--against", metavar="OPTION", help="Final values against an option of a grid, in place of rounds.")
@click.option("--profile", is_flag=True, help="Performance profiles over all environments, in place of rounds.")
@click.option("-o", "--out", required=True, metavar="FILE", help="A .pdf, .svg or .png file.")
def figure_command(
    width: str | None,
    height: str | None,
    font: str | None,
    fontsize: float | None,
    reaches: tuple[str, ...],
    log: str | None,
    against: str | None,
    profile: bool,
    out: str,
    results: str,
    metrics: tuple[str, ...],
    **given: Any,
) -> None:
    """Draw curves of RESULTS for a paper: means over runs with bands, in the width of its column.

    Bands are 95% intervals of the mean (Student's t), from three runs on; for paper-regret and paper-violation,
    standard deviations over runs.

    --profile draws the share of runs whose loss (the score in % of uniform play) is above each value.

    Agents have the colours of the page. Any two differ in dash or marker, also in greyscale. A curve that leaves the
    axes is cut off: a triangle marks where, and the panel says where it ends. If only its band leaves them, the
    triangle is hollow.
    """
    target = output_path("--out", out, PICTURES)
    need_matplotlib("figure")
    from psconrl.report.figure_files import write_figure
    from psconrl.report.grid_curves import grid_over
    from psconrl.report.metrics import measures
    from psconrl.report.panel_contents import rows_of
    from psconrl.report.panels import Print, panel_figure

    wide = None if width is None else inches(width)
    experiments = _read(results, **given)
    high = None if height is None else inches(height, "--height", LOWEST_FIGURE)
    form = Print(wide, high, family=font, size=fontsize, log=log or "")
    assert target is not None
    if profile:
        _refuse_with("--profile", metric=_is_given("metrics"), against=against is not None)
        write_figure(_profiles(experiments, form, _axis_ends(reaches, []).get(""), given), target, exact=True)
        console().print(Text(f"Picture: {target}"))
        return
    grid = None if against is None else grid_over(experiments, against)
    shown = _chosen(experiments if grid is None else grid.experiments, **given)
    played = shown if grid is None else [member for e in shown for member in grid.environments(e)]
    names = _listed_metrics(metrics) or _usual_metrics(played)
    measured = [(measure, measure.names(name, played)) for name in names for measure in measures(played, [name])]
    ends = _axis_ends(reaches, list(dict.fromkeys(name for _, called in measured for name in called)))
    rows = [
        row
        for measure, called in measured
        for row in (rows_of if grid is None else grid.rows)(
            [measure], next((ends[name] for name in [*called, ""] if name in ends), None)
        )
    ]
    write_figure(panel_figure(shown, rows, form), target, exact=True)
    _say_what_is_missing(played, names)
    console().print(Text(f"Picture: {target}"))


def _profiles(experiments: list[Any], form: Any, reach: tuple[float, float] | None, given: dict[str, Any]) -> Any:
    """Return the figure of the performance profiles of the chosen agents."""
    from psconrl.report.aggregates import loss_table
    from psconrl.report.panels import panel_figure
    from psconrl.report.profile_panel import profile_panel

    shown = _chosen(experiments, **given)
    table = loss_table(experiments, shown)
    for title in table.left_out:
        console(stderr=True).print(Text(f"Left out: {title} does not play all environments"), soft_wrap=True)
    together, row = profile_panel(table, shown, form.log, reach)
    return panel_figure([together], [row], form)


def _is_given(parameter: str) -> bool:
    """Whether the command line has an option."""
    return click.get_current_context().get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE


def _refuse_with(option: str, **others: bool) -> None:
    """Raise an error if an option is given with one that it makes void."""
    for other, given in others.items():
        if given:
            raise ConfigError(f"{option} shows the score over all environments; leave out --{other}")


def _axis_ends(given: tuple[str, ...], metrics: list[str]) -> dict[str, tuple[float, float]]:
    """Return the ends of the vertical axes by metric; the name "" stands for all others."""
    ends = {}
    for text in given:
        name, _, numbers = text.rpartition("=")
        try:
            low, high = (float(part) for part in numbers.split(","))
        except ValueError:
            low, high = math.nan, math.nan
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ConfigError(f"--ylim: must be LOW,HIGH or METRIC=LOW,HIGH with LOW below HIGH; got {quoted(text)}")
        if name and name not in metrics:
            raise ConfigError("--ylim: " + unknown_name("metric in this figure", name, metrics))
        if name in ends:
            raise ConfigError(f"--ylim: {quoted(name or text)} is given twice")
        ends[name] = (low, high)
    return ends


def _say_what_is_missing(shown: list[Any], metrics: list[str]) -> None:
    """Print the metrics that some experiments do not have."""
    from psconrl.report.metrics import lacking

    for line in dict.fromkeys(line for name in metrics for line in lacking(name, shown)):
        console(stderr=True).print(Text(f"Left out: {line}"), soft_wrap=True)


@click.command("table")
@chosen
@click.option("--format", "form", default="markdown", show_default=True, metavar="FORMAT", help="latex, markdown, csv.")
@click.option("--compare", metavar="LABEL", help="Add differences from this agent, with p-values.")
@click.option("--aggregate", is_flag=True, help="One row for each agent: interquartile mean over all environments.")
@click.option("-o", "--out", metavar="FILE", help="The file to write. [default: print the table]")
def table_command(
    form: str,
    compare: str | None,
    aggregate: bool,
    out: str | None,
    results: str,
    metrics: tuple[str, ...],
    **given: Any,
) -> None:
    """Tabulate final values of RESULTS for a paper: mean and 95% interval over runs, and the number of runs.

    --compare adds the difference over runs with the same seed, its interval, and the p-value of a paired t-test,
    corrected for all differences of the table. With --aggregate, it adds the probability that a run loses less than
    one of that agent.

    paper-regret and paper-violation have the standard deviation over runs in place of the interval.

    LaTeX needs the package booktabs; CSV has a line for each number, not rounded, and the column spread says
    whether low and high are those of the interval or of the deviation.
    """
    from psconrl.report.aggregate_table import aggregate_table
    from psconrl.report.aggregates import loss_table
    from psconrl.report.metrics import measures
    from psconrl.report.print_table import print_table

    experiments = _read(results, **given)
    shown = _chosen(experiments, **given)
    if aggregate:
        _refuse_with("--aggregate", metric=_is_given("metrics"))
        text = aggregate_table(loss_table(experiments, shown), form, compare)
    else:
        names = _listed_metrics(metrics) or _usual_metrics(shown)
        text = print_table(shown, measures(shown, names), form, compare)
        _say_what_is_missing(shown, names)
    if out is None:
        console().print(Text(text.removesuffix("\n")), soft_wrap=True)
        return
    write_atomically(Path(out), lambda f: f.write(text.encode("utf-8", "replace")), ConfigError)
    console().print(Text(f"Table: {out}"))


def _listed_metrics(texts: tuple[str, ...]) -> list[str]:
    """Return the names in a list of comma-separated lists; that of a constraint, in brackets, may have commas."""
    names = (name.strip() for text in texts for name in re.findall(r"(?:\([^()]*\)|[^,])+", text))
    return list(dict.fromkeys(filter(None, names)))


def _usual_metrics(shown: list[Any]) -> list[str]:
    """Return regret and violation, or if no experiment has an optimum, the objective and costs; print that it is so."""
    from psconrl.report.metrics import lacking

    def known(*names: str) -> list[str]:
        return [name for name in names if len(lacking(name, shown)) < len(shown)]

    if known("regret"):
        return known("regret", "violation")
    names = known("objective", "cost")
    text = f"No experiment has an optimum to compare with: shown are {' and '.join(names)}; choose others with --metric"
    console(stderr=True).print(Text(text), soft_wrap=True)
    return names


def _read(results: str, experiments: tuple[str, ...], **_: Any) -> list[Any]:
    """Return the experiments of a results file; print what was planned of those without a finished run.

    ``experiments``: those that are shown, if they are named.
    """
    from psconrl.report.curves import read_experiments
    from psconrl.report.unfinished import unfinished_experiments

    with Store(results) as store:
        if not experiments:
            print_unfinished(unfinished_experiments(store, started=False))
        return read_experiments(store)


def _chosen(
    found: list[Any], experiments: tuple[str, ...], agents: tuple[str, ...], rename: tuple[str, ...]
) -> list[Any]:
    """Return the experiments and agents to show, with their names."""
    from psconrl.report.selection import select
    from psconrl.report.unfinished import unfinished_in_words

    shown = select(found, experiments, agents, rename)
    print_unfinished(f"{e.title}: {unfinished_in_words(e.unfinished)}" for e in shown if e.unfinished)
    return shown
