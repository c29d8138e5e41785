"""The sentence above the results of an experiment: the agent with the least mean score, and what is certain of it."""

from collections.abc import Sequence

import numpy as np

from psconrl.report.curves import Curves, Experiment
from psconrl.report.growth import NEGLIGIBLE_REGRET
from psconrl.report.number_format import format_number
from psconrl.report.page_tables import adjusted_p, criterion, p_text, verdict
from psconrl.report.priced_regret import has_score
from psconrl.report.statistics import FEW_RUNS, Comparison, compare

NAMED = 4  # longer lists of agents are counted


def headline(experiment: Experiment) -> str:
    """Return which agent has the least mean score, and how it compares with the others; empty if that is not known.

    Without constraints it is the regret. P-values are corrected as in the table of all pairs.
    """
    agents = list(experiment.curves.values())
    if len(agents) < 2 or (len(experiment.cost_names) > 1 and not has_score(experiment.facts)):
        return ""
    what, final_of = criterion(experiment)
    means = [float(final_of(c).mean()) for c in agents]
    if not np.isfinite(means).all():
        return ""
    if max(means) - min(means) < NEGLIGIBLE_REGRET:
        return f"All agents have the same mean {what}."
    best = agents[int(np.argmin(means))]
    found = [compare(best, c, final_of) for c in agents if c is not best]
    parts = [] if what == "regret" else [f"regret {format_number(float(best.regret[:, -1].mean()))}"]
    parts += [
        f"violation of {name} {format_number(float(best.violation(i)[:, -1].mean()))}"
        for i, name in enumerate(experiment.cost_names[1:], start=1)
    ]
    values = f"{format_number(min(means))}{': ' if parts else ''}{', '.join(parts)}"
    pairs = len(agents) * (len(agents) - 1) // 2
    return f"{best.title} has the least mean {what} over {best.runs} runs ({values}){_certainty(best, found, pairs)}."


def _certainty(best: Curves, found: Sequence[Comparison], pairs: int) -> str:
    """Return from which agents the best differs significantly, and from which it does not, with p-values."""
    tested = [r for r in found if np.isfinite(r.p_value)]
    if not tested:
        return f", with fewer than {FEW_RUNS} runs too few for a verdict"
    ahead = [r for r in tested if verdict(r, pairs) == f"{best.title} has less"]
    doubtful = [f"{r.second} ({_p_of([r], pairs)})" for r in tested if r not in ahead]
    untested = [r.second for r in found if not np.isfinite(r.p_value)]
    parts = []
    if ahead:
        names = _names([r.second for r in ahead]) if len(ahead) < len(found) else "every other agent"
        parts.append(f"significantly less than {names} ({_p_of(ahead, pairs)})")
    if doubtful:
        parts.append(f"not significantly different from {', '.join(doubtful)}")
    if untested:
        parts.append(f"with too few common runs to compare with {', '.join(untested)}")
    comparisons = f", corrected for {pairs} comparisons" if pairs > 1 else ""
    return f", {'; '.join(parts)}; paired t-tests{comparisons}"


def _names(titles: Sequence[str]) -> str:
    return ", ".join(titles) if len(titles) <= NAMED else f"{len(titles)} other agents"


def _p_of(results: Sequence[Comparison], pairs: int) -> str:
    """Return the largest corrected p-value, with the sign of what is known about all."""
    shown = p_text(max(adjusted_p(r, pairs) for r in results))
    return f"p {shown}" if shown.startswith("<") else f"p {'=' if len(results) == 1 else '≤'} {shown}"
