"""How often credible intervals of long-run averages cover the truth: logs of several systems, lengths and behaviours.

    python benchmarks/log_coverage.py --runs 1000

Each log is written by one policy: a uniform one, a timid one (the safest action in nine rounds of ten), or one that is
optimal for a wrong model. The first table has, for each system and length, the share of the logs whose 95% interval
covers the average of the policy that wrote it (all averages together); the second how often the model and the batch
means were said to disagree, at a stated false-alarm rate of 1%.
"""

import argparse
import time

import numpy as np

from log_systems import SYSTEMS, behaviours, written_log
from psconrl.data.advice.averages import todays_averages
from psconrl.data.posterior.row_posterior import RowPosterior
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.markov.evaluation import evaluate_policy


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20, help="logs of every system, behaviour and length")
    parser.add_argument("--rounds", type=int, nargs="+", default=[200, 2000, 20000])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    options = parser.parse_args()
    began = time.process_time()
    print(f"{'system':14} {'behaviour':9} {'rounds':>6}  {'learned mass':>12} {'Dirichlet':>9} {'alarms':>6}")
    totals: dict[str, list[float]] = {}
    for name in options.systems:
        model = SYSTEMS[name]()
        for kind, policy in behaviours(model).items():
            truth = evaluate_policy(model, policy).costs
            for rounds in options.rounds:
                covered, alarms = {"learned": [], "dirichlet": []}, []
                for run in range(options.runs):
                    log = written_log(model, policy, rounds, run)
                    for label, belief in (("learned", None), ("dirichlet", Dirichlet())):
                        found = todays_averages(log, RowPosterior(log, belief), draws=options.draws, seed=run)
                        for average, true in zip(found, truth, strict=True):
                            tol = 1e-12 * (1.0 + abs(true))
                            covered[label].append(average.low - tol <= true <= average.high + tol)
                        if label == "learned":
                            alarms.append(any(average.disagreement for average in found))
                row = [np.mean(covered["learned"]), np.mean(covered["dirichlet"]), np.mean(alarms)]
                totals.setdefault("all", []).append(row)
                print(f"{name:14} {kind:9} {rounds:6}  {row[0]:12.3f} {row[1]:9.3f} {row[2]:6.3f}", flush=True)
    print(f"{'all':31}  {np.mean(totals['all'], axis=0).round(3)}; {time.process_time() - began:.0f} s")


if __name__ == "__main__":
    main()
