"""The table of the paper's claims: what the paper says, what the runs give, and the verdict."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.base.escaping import markdown_text
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.experiment.spec import COSTS_SUFFIX, KNOWN, LEARNED
from psconrl.learning.registry import title_of
from psconrl.report.claim_rules import (
    LEAST_RUNS,
    UNDECIDED,
    WRONG_VERDICTS,
    judge_range,
    judge_value,
    mean_of_runs,
    measured_text,
    welch_interval,
)
from psconrl.report.curves import Curves, Experiment
from psconrl.report.number_format import format_number
from psconrl.report.paper_claims import AUTHORS_OPTIMUM, BOX, CLAIMS, COMPARISONS, ENDS, AgentRuns, Claim, RangeRule
from psconrl.report.print_table import markdown_table

TITLE = "The paper's claims"
SHORT_RUNS = "The runs of the short form are too few, or end too early, for most verdicts."


def claims_table(
    experiments: Sequence[Experiment], figures: Collection[str] = ("figure1", "figure2", "figure3")
) -> list[dict[str, Any]]:
    """Return the table of the claims about some figures, or nothing if none of their experiments has been run."""
    found = _columns(experiments)
    rows = [_row(claim, found) for claim in CLAIMS if claim.figure in figures and _is_shown(claim, found)]
    known = sorted(name for name, e in found.items() if _knows_costs(name, e))
    note = (
        f"Here: mean ± standard error, number of runs; regret and violation in the paper's metric. Comparisons: Welch "
        f"intervals at level .05 / {COMPARISONS}. Values: within the error of reading and the 95% interval of the "
        f"difference. Undecided below {LEAST_RUNS} runs."
    )
    if BOX in found:
        note += f" On {BOX}, regret is that over {AUTHORS_OPTIMUM[BOX]}, the optimum in the authors' script."
    if known:
        note += f" In the paper the agents learn the costs; here they know them on {', '.join(known)}."
    table = {
        "title": TITLE,
        "note": note,
        "header": ["figure", "claim", "in the paper", "here", "verdict"],
        "rows": rows,
    }
    return [table] if rows else []


def decided_claims(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table of claims without those that are undecided, whose number the note gives."""
    rows = [row for row in table["rows"] if row[-1] != UNDECIDED]
    left_out = len(table["rows"]) - len(rows)
    note = f" {left_out} of {len(table['rows'])} claims are undecided and not shown." if left_out else ""
    return table | {"rows": rows, "note": table["note"] + note}


def claims_markdown(table: Mapping[str, Any], remark: str = "") -> str:
    """Return a table of claims as a Markdown section."""
    note = f"{table['note']} {remark}".strip()
    return f"## {table['title']}\n\n{markdown_text(note)}\n\n{markdown_table(table['header'], table['rows'])}\n"


def write_claims(path: Path, table: Mapping[str, Any], remark: str = "") -> None:
    """Write a table of claims as a Markdown file."""
    text = claims_markdown(table, remark)
    write_atomically(path, lambda f: f.write(text.encode()), ConfigError)


def _columns(experiments: Sequence[Experiment]) -> dict[str, Experiment]:
    """Return the experiments of the paper's environments by name: with learned costs, as in the paper, or known."""
    by_name = {e.name: e for e in experiments if e.curves}
    names = {name: (name + COSTS_SUFFIX[LEARNED], name + COSTS_SUFFIX[KNOWN]) for name in ENDS}
    chosen = {name: next((by_name[x] for x in columns if x in by_name), None) for name, columns in names.items()}
    return {name: experiment for name, experiment in chosen.items() if experiment is not None}


def _knows_costs(name: str, experiment: Experiment) -> bool:
    """Whether the costs are known here and learned in the paper; in its Example 1 they are known."""
    return name != "counterexample" and not experiment.name.endswith(COSTS_SUFFIX[LEARNED])


def _is_shown(claim: Claim, found: Mapping[str, Experiment]) -> bool:
    """Whether the claim's experiments have been run, with the agent that the claim is about."""
    about = claim.players[0]
    return all(p.environment in found for p in claim.players) and about.label in found[about.environment].curves


def _row(claim: Claim, found: Mapping[str, Experiment]) -> list[str]:
    players = [(found[p.environment], found[p.environment].curves.get(p.label), p) for p in claim.players]
    titles = [curves.title if curves and curves.title else title_of(p.label) for _, curves, p in players]
    here, verdict = _judged(claim, players)
    return [claim.figure.replace("figure", "figure "), claim.text.format(*titles), claim.in_paper, here, verdict]


def _judged(claim: Claim, players: Sequence[tuple[Experiment, Curves | None, AgentRuns]]) -> tuple[str, str]:
    """Return what was measured, and the verdict."""
    means = []
    for experiment, curves, player in players:
        if curves is None:
            return f"no runs of {title_of(player.label)}", UNDECIDED
        end = ENDS[player.environment]
        if curves.rounds[-1] < end:
            return f"runs end at round {curves.rounds[-1]:,} of {end:,}", UNDECIDED
        values = claim.measured(experiment, curves) if _can_be_measured(claim, experiment, curves) else np.empty(0)
        if not (values.size and np.isfinite(values).all()):
            return f"not recorded for {title_of(player.label)}", UNDECIDED
        means.append(mean_of_runs(values))
    here = "; ".join(map(measured_text, means))
    if min(mean.runs for mean in means) < LEAST_RUNS:
        return here, UNDECIDED
    if not isinstance(claim.rule, RangeRule):
        return here, judge_value(means[0], claim.rule)
    interval = welch_interval(means[0], means[1] if len(means) > 1 else None, WRONG_VERDICTS / COMPARISONS)
    what = "difference" if len(means) > 1 else "mean"
    ends = f"{format_number(interval.low)} to {format_number(interval.high)}"
    return f"{here}; {what} {ends}", judge_range(interval, claim.rule.low, claim.rule.high)


def _can_be_measured(claim: Claim, experiment: Experiment, curves: Curves) -> bool:
    """Whether the results have what a claim needs: constraints, an optimum, and on Example 1 the sampled theta."""
    if claim.figure == "figure1":
        return bool(curves.probe.size) and curves.cumulative.shape[2] > 1
    known = experiment.facts
    return curves.cumulative.shape[2] > 1 and {"optimum", "safest"} <= set(known) and known.get("env") in ENDS
