"""The price of safety with known structure: ``python benchmarks/safe_systems.py [--runs 10] [--rounds 10000]``.

The agent ``safe`` from the safest policy: with confidence sets over rows, over the noise of the system, and over the
noise with the span of the baseline by state. Scores are regret plus overspending at twice its price, in rounds that pay
mean costs, also in percent of uniform play; ``largest excess`` is that of the exact averages of all policies that were
played over a threshold, which is negative if all of them keep all limits.

    python benchmarks/safe_systems.py --rounds 150 --runs 75 --agents states  # violations only
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.agents import SafeStart, known_baseline
from structure import systems

SYSTEMS = ("queue", "inventory", "small stock", "small network")
AGENTS = ("uniform", "baseline", "rows", "noise", "states")


def one(name: str, agent: str, rounds: int, run: int) -> tuple[float, float, float]:
    """Return the score of a run, the largest excess of a played policy, and the seconds."""
    system, true = systems(name)
    model, all_actions = true.model(), true.model_for_learning()
    best, sizes = psconrl.plan(model), (model.n_states, model.n_actions, model.thresholds)
    given = known_baseline(all_actions, by_state=agent == "states")
    if agent == "uniform":
        made = psconrl.agents.make("uniform", *sizes, seed=run)
    elif agent == "baseline":
        made = psconrl.agents.FixedPolicy(*sizes, model.costs, policy=given["baseline"], seed=run)
    elif agent == "rows":
        made = SafeStart(*sizes, model.costs, **given, seed=run)
    else:
        del given["ranges"]
        made = SafeStart.of(system, **given, seed=run)
    begun = time.perf_counter()
    trace = psconrl.simulate(model, made, rounds, seed=10_000 + run, evaluate_policies=True)
    seconds = time.perf_counter() - begun
    total = trace.cumulative[-1]
    over = 2.0 * np.maximum(total[1:] - rounds * model.thresholds, 0.0) @ best.multipliers
    excess = (np.array(trace.policies.costs)[:, 1:] - model.thresholds).max()
    return float(total[0] - rounds * best.certificate.lower + over), float(excess), seconds


def main() -> None:
    """Print a line for each system and agent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print("| system | agent | score | of uniform play | largest excess | s |\n|---|---|---|---|---|---|")
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.systems.split(","):
            uniform = np.mean([score for score, *_ in pool.map(one, *_jobs(name, "uniform", options))])
            for agent in options.agents.split(","):
                found = np.array(list(pool.map(one, *_jobs(name, agent, options))))
                error = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
                mean, worst, seconds = found[:, 0].mean(), found[:, 1].max(), found[:, 2].mean()
                print(
                    f"| {name} | {agent} | {mean:,.0f} ± {error:,.0f} | {100 * mean / uniform:.1f}% | {worst:.2g} | "
                    f"{seconds:.1f} |",
                    flush=True,
                )


def _jobs(name: str, agent: str, options: argparse.Namespace) -> list[tuple]:
    return list(zip(*((name, agent, options.rounds, run) for run in range(options.runs)), strict=True))


if __name__ == "__main__":
    main()
