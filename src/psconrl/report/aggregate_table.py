"""The table of aggregates over environments: interquartile means and probabilities of improvement, for print."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psconrl.base.escaping import csv_cell
from psconrl.errors import ConfigError, unknown_name
from psconrl.report.aggregates import (
    BOOTSTRAP_RUNS,
    RELATIVE_LOSS,
    LossTable,
    interquartile_mean,
    probability_of_improvement,
)
from psconrl.report.print_table import (
    PlainNumber,
    latex_rows,
    latex_table,
    markdown_table,
    unfinished_note,
    writer_of,
)
from psconrl.report.statistics import MeanInterval

INTERQUARTILE = "interquartile mean"


@dataclass(frozen=True)
class _Aggregates:
    """The rows of the table: title, runs in an environment, and the numbers of the columns."""

    header: list[str]
    rows: list[tuple[str, str, list[MeanInterval | None]]]
    note: str


def aggregate_table(table: LossTable, form: str, base: str | None = None) -> str:
    """Return the table as text; ``base``: the label of the agent over which an improvement is tested."""
    if base is not None and base not in table.losses:
        raise ConfigError("--compare: " + unknown_name("agent that plays all environments", base, table.losses))
    writer = writer_of(form, {"latex": _aggregates_latex, "markdown": _aggregates_markdown, "csv": _aggregates_csv})
    return writer(_aggregates(table, base))


def _aggregates(table: LossTable, base: str | None) -> _Aggregates:
    rows = []
    for label, losses in table.losses.items():
        numbers: list[MeanInterval | None] = [interquartile_mean(losses)]
        if base is not None:
            numbers.append(None if label == base else probability_of_improvement(losses, table.losses[base]))
        rows.append((table.titles[label], _counts(losses), numbers))
    header = ["agent", "runs", f"{INTERQUARTILE} of the {table.what}"]
    if base is not None:
        header.append(f"P(less than {table.titles[base]})")
    return _Aggregates(header, rows, _aggregates_note(table, base))


def _aggregates_note(table: LossTable, base: str | None) -> str:
    count = len(table.environments)
    notes = [
        f"Over the runs in {count} environment{'s' * (count > 1)}, with 95% intervals from the stratified bootstrap. "
        "Interquartile mean: of the middle half of all runs."
    ]
    if base is not None:
        notes.append("P: the probability that a run loses less than one of the other agent, a tie counting half.")
    if table.what != RELATIVE_LOSS and count > 1:
        notes.append("Without runs of uniform play everywhere, environments with large values weigh most.")
    if any(each.size < BOOTSTRAP_RUNS for losses in table.losses.values() for each in losses):
        notes.append(f"Fewer than {BOOTSTRAP_RUNS} runs in an environment: no interval.")
    if table.left_out:
        notes.append(f"Without runs in all environments, left out: {', '.join(table.left_out)}.")
    return " ".join(filter(None, [*notes, unfinished_note(table.experiments)]))


def _counts(losses: Sequence[Any]) -> str:
    sizes = sorted({each.size for each in losses})
    return f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"


def _texts(table: _Aggregates) -> list[list[str]]:
    return [[title, runs, *("" if x is None else str(x) for x in numbers)] for title, runs, numbers in table.rows]


def _aggregates_latex(table: _Aggregates) -> str:
    return latex_table(table.header, latex_rows(_texts(table)), table.note)


def _aggregates_markdown(table: _Aggregates) -> str:
    rows = [[title, *map(PlainNumber, numbers)] for title, *numbers in _texts(table)]
    return f"{markdown_table(table.header, rows)}\n\n{table.note}\n"


def _aggregates_csv(table: _Aggregates) -> str:
    """Return CSV with a line for each number, not rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["agent", "runs", "aggregate", "value", "low", "high", "spread"])
    for title, runs, numbers in table.rows:
        for name, x in zip(table.header[2:], numbers, strict=True):
            if x is not None:
                ends = [float(x.low), float(x.high), "interval"] if x.has_interval else ["", "", _why_not()]
                writer.writerow(map(csv_cell, [title, runs, name, float(x.mean), *ends]))
    return text.getvalue()


def _why_not() -> str:
    return f"fewer than {BOOTSTRAP_RUNS} runs: no interval"
