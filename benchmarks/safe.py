"""Violations during learning: ``python benchmarks/safe.py [RUNS] [ENVIRONMENT ...]``.

The agent ``safe`` from two baselines, the safest policy and the optimal one for thresholds halfway to its averages,
against PSConRL with its ledger, with the other one, and with none, and against the baselines alone. Paired seeds, known
costs. Violations are of the worst constraint, in units of the range of its cost.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import psconrl
from psconrl.learning.safe.baseline import safest_policy

ENVIRONMENTS = {
    "marsrover-4x4": ("marsrover-4x4", {}, 11_000),
    "marsrover-8x8": ("marsrover-8x8", {}, 20_000),
    "box": ("box", {}, 500_000),
    "chain": ("chain", {}, 20_000),
    "riverswim": ("riverswim", {}, 20_000),
    "queue": ("queue", {}, 100_000),
    "inventory": ("inventory", {}, 100_000),
    "garnet": ("garnet", {"states": 10, "actions": 3, "branching": 4, "slack": 0.1}, 50_000),
    "ward": ("ward", {}, 20_000),
}
AGENTS = (
    "safe, from the safest", "safe, from halfway", "psconrl", "psconrl, repaying", "psconrl, no ledger",
    "the safest alone", "halfway alone",
)  # fmt: skip


def known_of_baseline(cmdp: psconrl.CMDP, which: str) -> dict:
    """Return the knowledge about a baseline."""
    safest = safest_policy(cmdp)
    if "halfway" not in which:
        return psconrl.agents.known_baseline(cmdp, safest)
    least = psconrl.evaluate(cmdp, safest).costs[1:]
    return psconrl.agents.known_baseline(cmdp, psconrl.plan(cmdp.with_thresholds((least + cmdp.thresholds) / 2)))


def agent_for(cmdp: psconrl.CMDP, which: str, seed: int) -> psconrl.agents.Agent:
    """Make one of the agents."""
    sizes = (cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs)
    if which.startswith("safe,"):
        return psconrl.agents.make("safe", *sizes, seed, **known_of_baseline(cmdp, which))
    if which.endswith("alone"):
        return psconrl.agents.FixedPolicy(*sizes, policy=known_of_baseline(cmdp, which)["baseline"], seed=seed)
    ledger = {"psconrl": {}, "psconrl, repaying": {"ledger": "repay"}, "psconrl, no ledger": {"ledger": "none"}}[which]
    return psconrl.agents.make("psconrl", *sizes, seed, **ledger)


def one(job: tuple[str, str, int]) -> list[float]:
    """Return regret; final, largest and policies' violation; rounds until first certified; seconds."""
    environment, which, seed = job
    name, options, horizon = ENVIRONMENTS[environment]
    cmdp = psconrl.load(name, **options, **({"seed": seed} if name == "garnet" else {}))
    best, agent = psconrl.plan(cmdp), agent_for(cmdp, which, seed)
    begun = time.perf_counter()
    trace = psconrl.simulate(cmdp, agent, horizon, seed=seed, evaluate_policies=True)
    seconds = time.perf_counter() - begun
    unit = np.ptp(cmdp.costs[1:].reshape(cmdp.n_constraints, -1), axis=1)
    excess = (trace.cumulative[-1, 1:] - horizon * cmdp.thresholds) / unit
    worst = trace.largest_excess[-1] / unit
    found = psconrl.regret(trace, best)
    strong = np.nan if found.strong is None else float((found.strong[1:] / unit).max())
    log = trace.episodes
    first = next((start for start, kind in zip(log.start, log.kind, strict=True) if kind == "certified"), horizon)
    return [found.final[0], excess.max(), worst.max(), strong, first, seconds]


def main() -> None:
    """Print a table for every environment."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for environment in sys.argv[2:] or ENVIRONMENTS:
        print(f"\n{environment}, {ENVIRONMENTS[environment][2]:,} rounds, {runs} runs: mean ± standard deviation\n")
        print("| | regret | violation at the end | largest on the way | of the policies | leaves the baseline | s |")
        print("|---|---|---|---|---|---|---|")
        with ProcessPoolExecutor(2) as pool:
            for which in AGENTS:
                rows = np.array(list(pool.map(one, [(environment, which, seed) for seed in range(runs)])))
                mean, spread = rows.mean(axis=0), rows.std(axis=0, ddof=1) if runs > 1 else 0 * rows[0]
                cells = [f"{m:,.0f} ± {s:,.0f}" for m, s in zip(mean[:4], spread[:4], strict=True)]
                first, horizon = np.median(rows[:, 4]), ENVIRONMENTS[environment][2]
                left = "" if not which.startswith("safe") else "never" if first >= horizon else f"{first:,.0f}"
                print(f"| {which} | " + " | ".join([*cells, left, f"{mean[5]:.1f}"]) + " |", flush=True)


if __name__ == "__main__":
    main()
