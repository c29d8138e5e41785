"""How often recommendations are wrong, and what they gain, beside the plan on means and SPIBB's rule.

    python benchmarks/log_recommendations.py --runs 10
    python benchmarks/log_recommendations.py --runs 10 --systems held-out

A recommendation is *wrong* if the policy breaks a limit in the true model or has a worse objective than the policy that
wrote the log (the latter is not claimed where today's policy breaks a limit, verdict "pay"). *Gain*: what the objective
improves by over the policy that wrote the log, as a share of what the optimum improves it by; its mean over all logs
written by a policy that keeps the limits, with 0 where nothing is recommended. Intervals of shares are those of Clopper
and Pearson.
"""

import argparse
import time
from collections import defaultdict

import numpy as np
from scipy.stats import binomtest

import psconrl
from log_rivals import plan_on_means, spibb
from log_systems import ALL_SYSTEMS, HELD_OUT, SYSTEMS, behaviours, limits, written_log
from psconrl.base.arrays import Floats
from psconrl.data.advice.improvement import Verdict, improve
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP

TOL = 1e-9  # relative, of averages that are equal but for rounding
LEAST_GAIN = 0.02  # of the optimum over the log's policy, relative to the largest cost, for shares of it


class Judge:
    """The truth about policies for a model and a logged policy."""

    def __init__(self, model: CMDP, behaviour: Floats) -> None:
        self.model = model
        self.today = evaluate_policy(model, behaviour).costs
        self.best = float(psconrl.plan(model).costs[0])
        self.tol = TOL * (1.0 + np.abs(model.costs).max(axis=(1, 2)))
        self.room = float(self.today[0]) - self.best
        self.feasible = bool((self.today[1:] <= model.thresholds + self.tol[1:]).all())
        self.has_room = self.feasible and self.room > LEAST_GAIN * float(np.ptp(model.costs[0]))

    def judged(self, policy: Floats) -> tuple[bool, bool, float]:
        """Return whether a policy breaks a limit, whether it loses to today's, and its gain."""
        found = evaluate_policy(self.model, policy / policy.sum(axis=1, keepdims=True)).costs
        breaks = bool((found[1:] > self.model.thresholds + self.tol[1:]).any())
        gain = float(self.today[0] - found[0])
        return breaks, gain < -self.tol[0], gain / self.room if self.has_room else np.nan


def share(times: int, of: int) -> str:
    """Return a share with its 95% interval."""
    if not of:
        return "none"
    low, high = binomtest(times, of).proportion_ci()
    return f"{times}/{of} = {times / of:.1%} ({low:.1%} to {high:.1%})"


def main() -> None:
    """Print a line for each system, behaviour and length, and the sums."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5, help="logs of every system, behaviour and length")
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--rounds", type=int, nargs="+", default=[200, 2000, 20000])
    parser.add_argument("--systems", nargs="+", default=["development"])
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--known-costs", action="store_true")
    options = parser.parse_args()
    groups = {"development": list(SYSTEMS), "held-out": list(HELD_OUT)}
    names = [name for given in options.systems for name in groups.get(given, [given])]
    began, total = time.process_time(), defaultdict(int)
    gains = defaultdict(list)
    for name in names:
        model = ALL_SYSTEMS[name]()
        known = model.costs if options.known_costs else None
        for kind, behaviour in behaviours(model).items():
            judge = Judge(model, behaviour)
            for rounds in options.rounds:
                here, verdicts = defaultdict(int), defaultdict(int)
                for run in range(options.first, options.first + options.runs):
                    log = written_log(model, behaviour, rounds, run)
                    found = improve(
                        log, limits=limits(model), costs=known, confidence=options.confidence, draws=1000, seed=run
                    )
                    verdicts[found.verdict.value] += 1
                    recommended = found.verdict in (Verdict.IMPROVE, Verdict.PAY)
                    chosen = {
                        "means": plan_on_means(log, model.thresholds, known),
                        "spibb": spibb(log, model.thresholds, behaviour, costs=known),
                        "ours": found.policy,
                    }
                    for who, policy in chosen.items():
                        breaks, loses, gain = judge.judged(policy)
                        gains[who, rounds].append(
                            gain if who != "ours" or recommended else 0.0 if judge.has_room else np.nan
                        )
                        if who != "ours" or recommended:
                            loses &= not (who == "ours" and found.verdict is Verdict.PAY)
                            here[who] += 1
                            here[who, "breaks"] += breaks
                            here[who, "loses"] += loses and not breaks
                            here[who, "wrong"] += breaks or loses
                for key, value in here.items():
                    total[key] += value
                wrong = " ".join(f"{who} {here[who, 'wrong']}/{here[who]}" for who in chosen)
                print(f"{name:12} {kind:8} {rounds:6} wrong: {wrong}  {dict(verdicts)}", flush=True)
    print(f"\nof {sum(map(len, gains.values())) // 3} logs; {time.process_time() - began:.0f} s")
    for who in ("ours", "means", "spibb"):
        parts = ", ".join(f"{what} {share(total[who, what], total[who])}" for what in ("wrong", "breaks", "loses"))
        print(f"{who:6} {parts}")
        for rounds in options.rounds:
            kept = [gain for gain in gains[who, rounds] if not np.isnan(gain)]
            print(f"       {rounds:6} rounds: mean gain {np.mean(kept) if kept else np.nan:.3f} of the optimum's")


if __name__ == "__main__":
    main()
