"""Table for print: agents by experiments, means with intervals, as LaTeX, Markdown or CSV."""

import csv
import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.escaping import csv_cell, latex_text, markdown_text
from psconrl.errors import ConfigError, unknown_name
from psconrl.report.base_differences import BaseDifferences, differences_from
from psconrl.report.curves import Experiment
from psconrl.report.metrics import UNKNOWN, Measure
from psconrl.report.statistics import MeanInterval, final, without_reason
from psconrl.report.unfinished import unfinished_in_words

Writer = Callable[[Any], str]
FORMATS = ("latex", "markdown", "csv")
NOTE = "Mean and 95% interval (Student's t) over runs, after the last round."
NOTE_ON_DEVIATIONS = "In the paper's metric, mean and standard deviation over runs, after the last round."
CSV_HEADER = ("experiment", "agent", "runs", "metric", "mean", "low", "high", "spread")
CSV_DIFFERENCES = ("base", "common_runs", "difference", "difference_low", "difference_high", "p", "p_corrected")
NOTE_WIDTH = 110  # characters in a line of a note in LaTeX
OWN_HEADS = 2  # columns before those of measures: the agent and its runs


@dataclass(frozen=True)
class FinalTable:
    """Measures after the last round, and their differences from a base if there is one."""

    experiments: Sequence[Experiment]
    measured: Sequence[Measure]
    differences: BaseDifferences | None = None

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        beside = [] if self.differences is None else [f"difference from {self.differences.title}"]
        return ["agent", "runs", *(head for m in self.measured for head in [m.title, *beside])]

    def heads_in(self, experiment: Experiment) -> list[str]:
        """Return the experiment's own names of the measures, above their columns."""
        beside = [] if self.differences is None else [""]
        return [head for m in self.measured for head in [m.title_in(experiment), *beside]]

    def rows_of(self, experiment: Experiment, unknown: str) -> list[list[str]]:
        """Return the rows of an experiment as texts."""
        rows = []
        for label, c in experiment.curves.items():
            cells = []
            for k, m in enumerate(self.measured):
                cells.append(str(final(m, experiment, c)) if m.known_of(experiment, c) else unknown)
                if self.differences is not None:
                    found = self.differences.found.get((experiment.name, label, k))
                    cells.append(str(found) if found else "" if label == self.differences.label else unknown)
            rows.append([c.title, f"{c.runs:,}", *cells])
        return rows

    @property
    def note(self) -> str:
        """What the numbers are, why some have no interval, and what dashes are if the table has any."""
        pairs = [
            (m, e, c) for m in self.measured for e in self.experiments if m.applies_to(e) for c in e.curves.values()
        ]
        spreads = {m.metric.deviation for m in self.measured}
        notes = [NOTE] if False in spreads else []
        notes += [NOTE_ON_DEVIATIONS] if True in spreads else []
        notes += [self.differences.note] if self.differences is not None else []
        notes += [without_reason(c.runs for m, _, c in pairs if not m.metric.deviation)]
        notes += [] if all(m.known_of(e, c) for m, e, c in pairs) else [UNKNOWN]
        notes += [unfinished_note(self.experiments)]
        return " ".join(filter(None, notes))


def unfinished_note(experiments: Sequence[Experiment]) -> str:
    """Return which of the planned runs are done, if they are not all."""
    found = [f"{e.title}: {unfinished_in_words(e.unfinished)}" for e in experiments if e.unfinished]
    return f"Unfinished: {'; '.join(found)}." if found else ""


def print_table(
    experiments: Sequence[Experiment], measured: Sequence[Measure], form: str, compare_with: str | None = None
) -> str:
    """Return the table as text; ``compare_with``: the label of the agent from which differences are shown."""
    writer = writer_of(form, {"latex": _latex, "markdown": _markdown, "csv": _csv})
    differences = None if compare_with is None else differences_from(compare_with, experiments, measured)
    return writer(FinalTable(experiments, measured, differences))


def writer_of(form: str, writers: Mapping[str, Writer]) -> Writer:
    """Return the function that writes a table in a format; an error names the known ones."""
    if form not in FORMATS:
        raise ConfigError(unknown_name("format", form, FORMATS))
    return writers[form]


def _latex(table: FinalTable) -> str:
    width = len(table.header)
    experiments, lines = table.experiments, []
    # Costs that differ from experiment to experiment are named at the head of each experiment, too.
    own = any(m.title_in(e) != m.title for m in table.measured for e in experiments if m.applies_to(e))
    for experiment in experiments:
        if len(experiments) > 1:
            lines += [r"\addlinespace"] if experiment is not experiments[0] else []
            heads = [latex_text(head) for head in table.heads_in(experiment)] if own else []
            span = OWN_HEADS if own else width
            name = rf"\multicolumn{{{span}}}{{l}}{{\emph{{{latex_text(experiment.title)}}}}}"
            lines.append(" & ".join([name, *heads]) + r" \\")
        lines += latex_rows(table.rows_of(experiment, "--"))
    return latex_table(table.header, lines, table.note)


def latex_table(header: Sequence[str], lines: Sequence[str], note: str) -> str:
    """Return a LaTeX table with the given lines, and a note below it."""
    above = [r"% \usepackage{booktabs}", rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule"]
    above += [" & ".join(map(latex_text, header)) + r" \\", r"\midrule"]
    below = [
        rf"\multicolumn{{{len(header)}}}{{l}}{{\footnotesize {latex_text(line)}}} \\"
        for line in textwrap.wrap(note, NOTE_WIDTH)
    ]
    return "\n".join([*above, *lines, r"\bottomrule", *below, r"\end{tabular}", ""])


def latex_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a LaTeX table for rows of a title and of numbers."""
    return [" & ".join([latex_text(title), *map(_in_text, numbers)]) + r" \\" for title, *numbers in rows]


def _in_text(numbers: str) -> str:
    """Replace hyphens by minus signs, and write deviations, p-values and stars as formulas; dashes stay."""
    if numbers == "--":
        return numbers
    signed = re.sub(r"(?<!e)-", "$-$", numbers).replace("±", r"$\pm$").replace(" *", "$^*$")
    return signed.replace("p = ", "$p = $ ").replace("p < ", "$p < $ ")


def _markdown(table: FinalTable) -> str:
    several = len(table.experiments) > 1
    header = [*(["experiment"] if several else []), *table.header]
    rows = [
        [*([e.title] if several else []), title, *map(PlainNumber, numbers)]
        for e in table.experiments
        for title, *numbers in table.rows_of(e, "-")
    ]
    return f"{markdown_table(header, rows)}\n\n{table.note}\n"


@dataclass(frozen=True)
class PlainNumber:
    """A cell of a Markdown table that is written as it is, apart from stars."""

    text: str

    def __str__(self) -> str:
        return self.text.replace("*", r"\*")


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


def _csv(table: FinalTable) -> str:
    """Return CSV with a line for each number, not rounded.

    ``spread`` says what ``low`` and ``high`` are: the ends of an interval of the mean, or the mean minus and plus the
    standard deviation over runs. If they are empty, it says why.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*CSV_HEADER, *(CSV_DIFFERENCES if table.differences else [])])
    for e in table.experiments:
        for label, c in e.curves.items():
            for k, m in enumerate(table.measured):
                if m.known_of(e, c):
                    row = [e.title, c.title, c.runs, m.title, *csv_ends(final(m, e, c), m.metric.deviation, c.runs)]
                    row += _difference_cells(table.differences, (e.name, label, k)) if table.differences else []
                    writer.writerow(map(csv_cell, row))
    return text.getvalue()


def csv_ends(found: MeanInterval, deviation: bool, runs: int) -> list[Any]:
    """Return the mean, the ends and what they are, as cells."""
    if not found.has_interval:
        return [float(found.mean), "", "", "" if deviation else without_reason([runs]).removesuffix(".")]
    return [float(found.mean), float(found.low), float(found.high), "deviation" if deviation else "interval"]


def _difference_cells(differences: BaseDifferences, key: tuple[str, str, int]) -> list[Any]:
    found = differences.found.get(key)
    if found is None:
        return [differences.title, *[""] * (len(CSV_DIFFERENCES) - 1)]
    one = found.found
    numbers = (one.difference.mean, one.difference.low, one.difference.high, one.p_value, found.corrected_p)
    mean, low, high, p, corrected = ("" if np.isnan(x) else float(x) for x in numbers)
    return [differences.title, one.runs, mean, low, high, p, corrected]
