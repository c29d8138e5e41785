"""Agents with a theorem for communicating models, against the others: regret, violation, their growth, and seconds.

    python benchmarks/proven_rates.py [--rounds 1500] [--runs 2] [--environments islands,ferry] [--agents psconrl]

Each agent is run for T, 4 T and 16 T rounds, since some must know the horizon, with known costs; those that assume
constants of the true model are given them. The exponent is that of the growth from T to 16 T;
none if a mean is not above 0.
"""

import argparse
import math
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.experiment.true_constants import true_constants
from psconrl.learning.registry import RECIPES

ENVIRONMENTS = {
    "islands": lambda: psconrl.load("islands"),
    "ferry": lambda: psconrl.load("islands", threshold=0.3, success=0.02),
    "riverswim": lambda: psconrl.load("riverswim"),
    "marsrover-4x4": lambda: psconrl.load("marsrover-4x4"),
    "slip": lambda: psconrl.load("marsrover-4x4", slip=0.1),
    "garnet": lambda: psconrl.load("garnet", seed=101),
}
COARSE = {"garnet": {"grid": 0.05}}  # the account's grid, where costs have many values
# Names in the table: an agent, and its options for a horizon.
AGENTS = {
    "psconrl": ("psconrl", lambda T: {}),
    "lagrangian": ("lagrangian", lambda T: {"rate": 1.0}),
    "lagrangian-theorem": ("lagrangian-theorem", lambda T: {}),
    "lagrangian-theorem, rate 0.1": ("lagrangian-theorem", lambda T: {"rate": 0.1}),
    "sa-cvi-ucb": ("sa-cvi-ucb", lambda T: {"bonus": 1e-5}),
    "psconrl-account": ("psconrl-account", lambda T: {}),
    "psconrl-account, H = 2 sqrt(T)": ("psconrl-account", lambda T: {"H": 2 * math.isqrt(T)}),
    "psconrl-account, W = T^(2/3)": ("psconrl-account", lambda T: {"W": float(round(T ** (2 / 3)))}),
}


def outcome(environment: str, label: str, rounds: int, run: int) -> tuple[float, float, float]:
    """Return regret, violation and seconds of a run."""
    model = ENVIRONMENTS[environment]()
    name, choose = AGENTS[label]
    options = choose(rounds) | (COARSE.get(environment, {}) if name in ("sa-cvi-ucb", "psconrl-account") else {})
    if RECIPES[name].theory_constants:
        options |= true_constants(model, name)
    sizes = (model.n_states, model.n_actions, model.thresholds, model.costs)
    agent = psconrl.agents.make(name, *sizes, seed=run, horizon=rounds, **options)
    began = time.process_time()
    ends = psconrl.simulate(model, agent, rounds, seed=10_000 + run).cumulative[-1]
    lower = psconrl.plan(model).certificate.lower
    return ends[0] - rounds * lower, ends[1] - rounds * model.thresholds[0], time.process_time() - began


def exponent(first: float, last: float) -> str:
    """Return the exponent of growth over a factor of 16, or a dash."""
    return f"{math.log(last / first) / math.log(16):.2f}" if min(first, last) > 0 else "-"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--environments", default=",".join(ENVIRONMENTS))
    parser.add_argument("--agents", default=";".join(AGENTS), help="separated by semicolons")
    given = parser.parse_args()
    print("| environment | agent | regret at T, 4T, 16T | exponent | violation at T, 4T, 16T | exponent | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for environment in given.environments.split(","):
        for label in given.agents.split(";"):
            found = np.array(
                [
                    [outcome(environment, label, factor * given.rounds, run) for run in range(given.runs)]
                    for factor in (1, 4, 16)
                ]
            ).mean(axis=1)
            regret, violation, seconds = found.T
            cells = [environment, label, " ".join(f"{x:,.0f}" for x in regret), exponent(regret[0], regret[2])]
            cells += [" ".join(f"{x:,.0f}" for x in violation), exponent(violation[0], violation[2])]
            print(f"| {' | '.join(cells)} | {seconds[2]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
