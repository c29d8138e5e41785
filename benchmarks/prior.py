"""Regret and violation of PSConRL for several Dirichlet priors: ``python benchmarks/prior.py [RUNS]``.

Priors: constants, and constants over the number of states, so that the prior mass of a pair does not grow with S.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import psconrl

PRIORS = {
    "0.1": 0.1,
    "0.02": 0.02,
    "0.005": 0.005,
    "1/S": -1.0,
    "0.3/S": -0.3,
    "0.1/S": -0.1,
    "0.03/S": -0.03,
    "0.001/S": -0.001,
}
ENVIRONMENTS = [
    ("marsrover-4x4", {}, 11_000),
    ("marsrover-8x8", {}, 20_000),
    ("box", {}, 50_000),
    ("marsrover-4x4", {"slip": 0.1}, 11_000),
    ("marsrover-8x8", {"slip": 0.1}, 20_000),
    ("box", {"slip": 0.1}, 50_000),
    ("queue", {}, 10_000),
    ("inventory", {}, 10_000),
    ("riverswim", {}, 20_000),
    ("garnet", {}, 20_000),
    ("dirichlet", {}, 20_000),
]


def alpha(prior: float, n_states: int) -> float:
    return prior if prior > 0 else -prior / n_states


def one(job: tuple[str, dict, int, float, bool, bool, int]) -> tuple[float, float, int]:
    name, options, horizon, prior, known_costs, known_support, seed = job
    if name in ("garnet", "dirichlet"):
        options = options | {"seed": seed}
    cmdp = psconrl.load(name, **options)
    S, A = cmdp.n_states, cmdp.n_actions
    parameter: object = alpha(prior, S)
    if known_support:
        parameter = np.where(cmdp.transition.toarray().reshape(S, A, S) > 0, parameter, 0.0)
    agent = psconrl.PSConRL(
        S,
        A,
        cmdp.thresholds,
        cmdp.costs if known_costs else None,
        belief=psconrl.agents.Dirichlet(parameter),
        schedule=psconrl.agents.Ouyang(),
        ledger=None,
        planning_horizon=psconrl.agents.Endless(),
        optimistic_cost=float(cmdp.costs[0].min()) if cmdp.maximise else None,
        seed=seed,
    )
    trace = psconrl.simulate(cmdp, agent, horizon, seed=seed)
    lost, over = psconrl.regret(trace, psconrl.plan(cmdp)).final
    return lost, float(max(over)), trace.count("explore")


def study(title: str, runs: int, priors: dict[str, float], known_costs: bool, known_support: bool) -> None:
    print(
        f"\n### {title}, {runs} runs: regret / violation\n\n| | "
        + " | ".join(priors)
        + " |\n|"
        + "---|" * (len(priors) + 1)
    )
    with ProcessPoolExecutor(2) as pool:
        for name, options, horizon in ENVIRONMENTS:
            row = [f"{name} {options or ''} {horizon:,}".replace("{'slip': 0.1}", "slip 0.1")]
            for prior in priors.values():
                jobs = [(name, options, horizon, prior, known_costs, known_support, seed) for seed in range(runs)]
                lost, over, explored = np.array(list(pool.map(one, jobs))).T
                row.append(
                    f"{lost.mean():.0f} / {over.mean():.0f}" + (f" ({explored.mean():.0f}e)" if explored.any() else "")
                )
            print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    if len(sys.argv) > 2:  # some columns of the first table
        chosen = {key: PRIORS[key] for key in sys.argv[2].split(",")}
        study("Known costs", runs, chosen, known_costs=True, known_support=False)
        return
    study("Known costs", runs, PRIORS, known_costs=True, known_support=False)
    some = {key: PRIORS[key] for key in ("0.1", "1/S", "0.1/S")}
    study("Learned costs", runs, some, known_costs=False, known_support=False)
    study("Known costs and support", runs, some | {"1": 1.0}, known_costs=True, known_support=True)


if __name__ == "__main__":
    main()
