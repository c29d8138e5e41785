"""Table for print: agents by experiments, means with intervals, as LaTeX, Markdown or CSV."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psconrl.errors import ConfigError, unknown_name
from psconrl.escaping import csv_cell, latex_text, markdown_text
from psconrl.report.curves import Experiment
from psconrl.report.metrics import UNKNOWN, Measure
from psconrl.report.statistics import MeanInterval, final

FORMATS = ("latex", "markdown", "csv")
NOTE = "Mean and 95% bootstrap interval over runs, after the last round."
NOTE_ON_DEVIATIONS = "In the paper's metric, mean and standard deviation over runs, after the last round."


def print_table(experiments: Sequence[Experiment], measured: Sequence[Measure], form: str) -> str:
    """Return the table as text."""
    if form not in FORMATS:
        raise ConfigError(unknown_name("format", form, FORMATS))
    return {"latex": _latex, "markdown": _markdown, "csv": _csv}[form](experiments, measured)


def _entries(experiment: Experiment, measured: Sequence[Measure]) -> list[tuple[str, int, list[MeanInterval | None]]]:
    """Return the name, number of runs and measures of every agent; None for a measure that it lacks."""
    return [
        (c.title, c.runs, [final(m, experiment, c) if m.known_of(experiment, c) else None for m in measured])
        for c in experiment.curves.values()
    ]


def _note(experiments: Sequence[Experiment], measured: Sequence[Measure]) -> str:
    """Return the note on the numbers, and on dashes if the table has any."""
    pairs = [(m, e, c) for m in measured for e in experiments if m.applies_to(e) for c in e.curves.values()]
    spreads = {m.metric.deviation for m in measured}
    lacking = not all(m.known_of(e, c) for m, e, c in pairs)
    notes = ((NOTE, False in spreads), (NOTE_ON_DEVIATIONS, True in spreads), (UNKNOWN, lacking))
    return " ".join(note for note, applies in notes if applies)


def _latex(experiments: Sequence[Experiment], measured: Sequence[Measure]) -> str:
    width = 2 + len(measured)
    lines = [r"% \usepackage{booktabs}", rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}", r"\toprule"]
    lines += [" & ".join(["agent", "runs", *(latex_text(m.title) for m in measured)]) + r" \\", r"\midrule"]
    for experiment in experiments:
        if len(experiments) > 1:
            lines += [r"\addlinespace"] if experiment is not experiments[0] else []
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{latex_text(experiment.title)}}}}} \\")
        for title, runs, estimates in _entries(experiment, measured):
            cells = [latex_text(title), f"{runs:,}", *("--" if e is None else _in_text(str(e)) for e in estimates)]
            lines.append(" & ".join(cells) + r" \\")
    note = rf"\multicolumn{{{width}}}{{l}}{{\footnotesize {latex_text(_note(experiments, measured))}}} \\"
    return "\n".join([*lines, r"\bottomrule", note, r"\end{tabular}", ""])


def _in_text(numbers: str) -> str:
    """Replace hyphens by minus signs, and write a standard deviation as a formula."""
    return re.sub(r"(?<!e)-", "$-$", numbers).replace("±", r"$\pm$")


def _markdown(experiments: Sequence[Experiment], measured: Sequence[Measure]) -> str:
    several = len(experiments) > 1
    header = [*(["experiment"] if several else []), "agent", "runs", *(m.title for m in measured)]
    rows = [
        [*([e.title] if several else []), title, f"{runs:,}", *("-" if x is None else x for x in estimates)]
        for e in experiments
        for title, runs, estimates in _entries(e, measured)
    ]
    return f"{markdown_table(header, rows)}\n\n{_note(experiments, measured)}\n"


@dataclass(frozen=True)
class Bold:
    """A cell of a Markdown table in bold type."""

    cell: Any


def markdown_table(header: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table, in which texts stand for themselves.

    >>> print(markdown_table(["agent", "runs"], [["a|b", 5], ["c", Bold(6)]]))
    | agent | runs |
    |---|---|
    | a&#124;b | 5 |
    | c | **6** |
    """
    lines = ["| " + " | ".join(map(_markdown_cell, row)) + " |" for row in [header, *rows]]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join(lines)


def _markdown_cell(cell: Any) -> str:
    if isinstance(cell, Bold):
        return f"**{_markdown_cell(cell.cell)}**"
    return markdown_text(cell) if isinstance(cell, str) else str(cell)


def _csv(experiments: Sequence[Experiment], measured: Sequence[Measure]) -> str:
    """Return CSV with a line for each number, not rounded; a single run has no spread.

    ``spread`` says what ``low`` and ``high`` are: the ends of an interval of the mean, or the mean minus and plus the
    standard deviation over runs.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["experiment", "agent", "runs", "metric", "mean", "low", "high", "spread"])
    for experiment in experiments:
        for title, runs, estimates in _entries(experiment, measured):
            for measure, found in zip(measured, estimates, strict=True):
                if found is not None:
                    spread = "deviation" if measure.metric.deviation else "interval"
                    ends = [float(found.low), float(found.high), spread] if found.has_interval else ["", "", ""]
                    row = [experiment.title, title, runs, measure.title, float(found.mean), *ends]
                    writer.writerow(map(csv_cell, row))
    return text.getvalue()
