"""How often credible intervals of long-run averages cover the truth: logs of several systems, lengths and behaviours.

    python benchmarks/log_coverage.py --runs 19
    python benchmarks/log_coverage.py --runs 19 --systems held-out

Each log is written by one policy: a uniform one, a timid one (the safest action in most rounds), or one that is optimal
for a wrong model. The table has, for each system, behaviour and length, the share of the averages of the policy that
wrote the log which their 95% intervals cover, without those that are said never to have varied in the log: with costs
learned, under three beliefs; with costs known, under the one that takes what other actions do for possible; and with
the structure of the inventory known, whose demand is censored by its stock. "All" counts what never varied, too, under
the third belief. The last column has how many logs were said to disagree with the model; the stated rate is 1%.
Intervals of totals take the averages of a log together.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

import psconrl
from log_systems import ALL_SYSTEMS, HELD_OUT, SYSTEMS, behaviours, written_log
from psconrl.base.arrays import Floats
from psconrl.data.advice.averages import todays_averages
from psconrl.data.log import Log
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.posterior.row_posterior import Posterior, RowPosterior, neighbours
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.markov.evaluation import evaluate_policy

ROUNDING = 1e-12  # relative
METHODS = ("learned mass", "Dirichlet", "neighbours", "costs known", "structure")
COLUMNS = (*METHODS[:3], "all", *METHODS[3:], "alarms")


def posteriors(name: str, log: Log, costs: Floats) -> Iterator[tuple[str, Posterior]]:
    """Yield the posteriors of a log by name."""
    yield METHODS[0], RowPosterior(log)
    yield METHODS[1], RowPosterior(log, Dirichlet())
    yield METHODS[2], RowPosterior(log, neighbours(log))
    yield METHODS[3], RowPosterior(log, neighbours(log), costs)
    if name == "inventory":
        yield METHODS[4], NoisePosterior(log, psconrl.load_system(name))


def shown(values: list[float]) -> str:
    """Return a mean with the half-width of its 95% interval."""
    return f"{np.mean(values):.3f}" if len(values) < 2 else f"{np.mean(values):.3f} ({_half(values):.3f})"


def _half(values: list[float]) -> float:
    return 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5


def main() -> None:
    """Print the table, and the totals with the half-widths of their 95% intervals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5, help="logs of every system, behaviour and length")
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--rounds", type=int, nargs="+", default=[200, 2000, 20000])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--systems", nargs="+", default=["development"])
    options = parser.parse_args()
    groups = {"development": list(SYSTEMS), "held-out": list(HELD_OUT)}
    began, logs = time.process_time(), 0
    totals: dict[tuple[str, int], list[float]] = defaultdict(list)
    print("| system | behaviour | rounds | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (3 + len(COLUMNS)))
    for name in [name for given in options.systems for name in groups.get(given, [given])]:
        model = ALL_SYSTEMS[name]()
        for kind, policy in behaviours(model).items():
            truth = evaluate_policy(model, policy).costs
            tol = ROUNDING * (1.0 + np.abs(truth))
            for rounds in options.rounds:
                own: dict[str, list[float]] = defaultdict(list)
                for run in range(options.first, options.first + options.runs):
                    log, logs = written_log(model, policy, rounds, run), logs + 1
                    for label, posterior in posteriors(name, log, model.costs):
                        found = todays_averages(log, posterior, draws=options.draws, seed=run)
                        low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
                        covers = (low - tol <= truth) & (truth <= high + tol)
                        varied = np.array([not one.never_varied for one in found])
                        own[label].append(float(covers[varied].mean()) if varied.any() else np.nan)
                        if label == METHODS[2]:
                            own["all"].append(float(covers.mean()))
                        if label == METHODS[0]:
                            own["alarms"].append(float(any(one.disagreement for one in found)))
                cells = [f"{np.nanmean(own[label]):.3f}" if own[label] else "" for label in METHODS]
                alarms = f"{int(sum(own['alarms']))} of {options.runs}"
                cells.insert(3, f"{np.mean(own['all']):.3f}")
                print(f"| {name} | {kind} | {rounds:,} | {' | '.join(cells)} | {alarms} |", flush=True)
                for label, values in own.items():
                    totals[label, rounds] += values
    for rounds in [*options.rounds, 0]:
        cells = []
        for label in COLUMNS:
            pooled = [x for n in options.rounds if rounds in (0, n) for x in totals[label, n] if not np.isnan(x)]
            cells.append(shown(pooled) if pooled else "")
        print(f"| **all** | | {f'{rounds:,}' if rounds else ''} | {' | '.join(cells)} |")
    print(f"\n{logs} logs, {time.process_time() - began:.0f} s")


if __name__ == "__main__":
    main()
