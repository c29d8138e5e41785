"""Cost of repayment: PSConRL with shares from 0 to 1 on all environments: ``python benchmarks/repayment.py [RUNS]``.

Regret at shadow prices adds the value of the violations to the regret: a gain from a violation does not count.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import psconrl
from prior import ENVIRONMENTS

SHARES = (0.0, 0.1, 0.3, 1.0)
# Against the authors' code, at the paper's horizons.
PAPER = [("marsrover-4x4", {}, 11_000), ("marsrover-8x8", {}, 20_000), ("box", {}, 500_000)]
BOLDER = {
    "repay 0.1": {"ledger": "repay", "share": 0.1},
    "and prior 0.3/S": {"ledger": "repay", "share": 0.1, "mass": 0.3},
    "and prior 0.1/S": {"ledger": "repay", "share": 0.1, "mass": 0.1},
    "prior 0.3/S, doubling": {"ledger": "repay", "share": 0.1, "mass": 0.3, "schedule": "doubling"},
}


def one(job: tuple[str, dict, int, dict, int]) -> tuple[float, float, float, float]:
    """Return regret, violation of the worst constraint, its positive part, regret at shadow prices."""
    name, options, horizon, setting, seed = job
    if name in ("garnet", "dirichlet"):
        options = options | {"seed": seed}
    cmdp = psconrl.load(name, **options)
    S, A = cmdp.n_states, cmdp.n_actions
    hint = float(cmdp.costs[0].min()) if cmdp.maximise else None
    prior = setting.get("mass", 1.0) / S
    own = {key: value for key, value in setting.items() if key != "mass"}
    agent = psconrl.agents.make(
        "psconrl-plain", S, A, cmdp.thresholds, cmdp.costs, seed, prior=prior, optimistic_cost=hint, **own
    )
    best = psconrl.plan(cmdp)
    lost, over = psconrl.regret(psconrl.simulate(cmdp, agent, horizon, seed=seed), best).final
    return lost, float(over.max()), float(over.max().clip(min=0)), lost + float(best.multipliers @ over)


def table(title: str, rows: list, settings: dict[str, dict], runs: int) -> None:
    """Print one row per environment, one column per setting."""
    print(f"\n{title}\n\n| | " + " | ".join(settings) + " |\n|" + "---|" * (len(settings) + 1))
    with ProcessPoolExecutor(2) as pool:
        for name, options, horizon in rows:
            cells = []
            for setting in settings.values():
                jobs = [(name, options, horizon, setting, seed) for seed in range(runs)]
                results = np.array(list(pool.map(one, jobs)))
                mean, error = results.mean(axis=0), results.std(axis=0, ddof=1) / np.sqrt(runs)
                cells.append(f"{mean[0]:.0f}; {mean[1]:.0f} ({mean[2]:.0f}); {mean[3]:.0f} ± {error[3]:.0f}")
            slip = " slip 0.1" if options else ""
            print(f"| {name}{slip}, {horizon:,} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    meaning = "regret; violation (if positive); regret at shadow prices ± standard error"
    table(
        f"Means of {runs} runs: {meaning}",
        ENVIRONMENTS,
        {f"repay {r:g}": {"ledger": "repay", "share": r} if r else {} for r in SHARES},
        runs,
    )
    riverswim = next(environment for environment in ENVIRONMENTS if environment[0] == "riverswim")
    table(f"Bolder, at the paper's horizons, {runs} runs: {meaning}", [*PAPER, riverswim], BOLDER, runs)


if __name__ == "__main__":
    main()
