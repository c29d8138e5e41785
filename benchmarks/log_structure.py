"""How many rounds a recommendation takes with a System, and how many without.

    python benchmarks/log_structure.py --runs 5

An inventory whose demand is unknown and is censored by the stock; the log has states, actions and costs. A
recommendation counts if it is right and has at least a share of what the optimum gains over the policy that wrote the
log. The fewest rounds are the first of a ladder, by factors of about two, at which four logs in five have one.
"""

import argparse
import time

import numpy as np

import psconrl
from log_recommendations import Judge
from log_systems import behaviours, limits, written_log
from psconrl.data.advice.improvement import Verdict, improve

LADDER = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
ENOUGH = 0.8  # share of the logs


def main() -> None:
    """Print the shares of logs with a recommendation, and the fewest rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--room", type=int, nargs="+", default=[8, 15])
    parser.add_argument("--gain", type=float, nargs="+", default=[0.25, 0.5, 0.75])
    parser.add_argument("--most", type=int, default=100_000, help="rounds without a system")
    options = parser.parse_args()
    for room in options.room:
        model = psconrl.load("inventory", capacity=room)
        system = psconrl.load_system("inventory", capacity=room)
        for kind, behaviour in behaviours(model).items():
            judge = Judge(model, behaviour)
            if judge.room <= 0.0 and judge.feasible:
                continue
            fewest: dict[bool, dict[float, int]] = {True: {}, False: {}}
            for structured in (True, False):
                began = time.process_time()
                for rounds in LADDER:
                    if rounds > (options.most if not structured else 5_000):
                        break
                    gains = []
                    for run in range(options.runs):
                        log = written_log(model, behaviour, rounds, run, system if structured else None)
                        found = improve(log, system if structured else None, limits=limits(model), draws=1000, seed=run)
                        breaks, _, _ = judge.judged(found.policy)
                        cost = float(psconrl.evaluate(model, found.policy).costs[0])
                        certified = found.verdict in (Verdict.IMPROVE, Verdict.PAY) and not breaks
                        gains.append((float(judge.today[0]) - cost) / judge.room if certified else -np.inf)
                    shares = {gain: float(np.mean(np.array(gains) >= gain)) for gain in options.gain}
                    label = "with" if structured else "without"
                    shown = ", ".join(f"{gain:.0%} of the gain: {share:.2f}" for gain, share in shares.items())
                    print(f"{model.n_states} states, {kind}, {label} a system, {rounds:,} rounds: {shown}", flush=True)
                    for gain, share in shares.items():
                        if share >= ENOUGH:
                            fewest[structured].setdefault(gain, rounds)
                    if len(fewest[structured]) == len(options.gain):
                        break
                print(f"  {time.process_time() - began:.0f} s")
            for gain in options.gain:
                own, other = fewest[True].get(gain), fewest[False].get(gain)
                print(f"  {gain:.0%} of the gain: {own} rounds with a system, {other} without", flush=True)


if __name__ == "__main__":
    main()
