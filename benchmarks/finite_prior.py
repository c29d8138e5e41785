"""Fifty models of which one is true: a prior on which the assumptions of the theorems for posterior sampling hold.

    python benchmarks/finite_prior.py [--rounds 10000,40000,160000] [--runs 100] [--agents psconrl,psconrl-account]

Every run draws the true model from the prior, and agents have the exact posterior (``Candidates``). The costs are the
same in all models, and known. Every model is communicating, with a diameter of at most 20, and has a policy that stays
below the threshold by the gap that is printed, which is given to the agents that need one. Six places on a ring can be
stayed at or left: how often leaving succeeds, and how often one drifts on while staying (from 1e-5 to 0.1 of the
rounds) differ between the models, so that the optimum has to move between two places, and single costs have spans of up
to 1e5. The table has means with half the width of a 95% interval, and the exponent of growth from one horizon to the
next, with the interval of the bootstrap over runs.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.agents import Candidates
from psconrl.planning.slater import slater_gap

PLACES, MODELS, MOST_DIAMETER, SEED = 6, 50, 20.0, 49
LEAST_GAP, THRESHOLD = 0.1, 0.4
AGENTS = ("psconrl", "lagrangian", "lagrangian-theorem", "psconrl-account")


def place_costs() -> np.ndarray:
    """Return the costs (2, S, 2) of staying and leaving: staying is good in two places, of which one is limited."""
    costs = np.stack([np.ones((PLACES, 2)), np.full((PLACES, 2), 0.5)])
    costs[:, 0, 0] = 0.0, 1.0
    costs[:, PLACES // 2, 0] = 1.0, 0.0
    return costs


def drawn_model(rng: np.random.Generator) -> psconrl.CMDP:
    """Return a ring whose places are left with probability 0.4 to 1, and drifted from with probability 1e-5 to 0.1."""
    places, following = np.arange(PLACES), (np.arange(PLACES) + 1) % PLACES
    P = np.zeros((PLACES, 2, PLACES))
    for action, leaving in enumerate((10.0 ** rng.uniform(-5, -1, PLACES), rng.uniform(0.4, 1.0, PLACES))):
        P[places, action, places] = 1.0 - leaving
        P[places, action, following] = leaving
    return psconrl.CMDP(P, place_costs(), [THRESHOLD], initial=0)


@cache
def prior() -> tuple[list[psconrl.CMDP], float]:
    """Return the models, and the least of their Slater gaps."""
    rng, models, gaps = np.random.default_rng(SEED), [], []
    while len(models) < MODELS:
        model = drawn_model(rng)
        gap = slater_gap(model)
        if psconrl.diameter(model) <= MOST_DIAMETER and gap >= LEAST_GAP:
            models.append(model)
            gaps.append(gap)
    return models, min(gaps)


def outcome(agent: str, rounds: int, run: int) -> tuple[float, float]:
    """Return regret and violation of a run in a model drawn from the prior."""
    models, gap = prior()
    model = models[np.random.default_rng([SEED, run]).integers(MODELS)]
    options = {"gap": gap} if agent in ("lagrangian-theorem", "psconrl-account") else {}
    belief = Candidates([one.transition.toarray().reshape(PLACES, 2, PLACES) for one in models])
    made = psconrl.agents.make(
        agent, PLACES, 2, model.thresholds, model.costs, seed=run, horizon=rounds, belief=belief, **options
    )
    ends = psconrl.simulate(model, made, rounds, seed=10_000 + run).cumulative[-1]
    return ends[0] - rounds * psconrl.plan(model).certificate.lower, ends[1] - rounds * model.thresholds[0]


def growth(before: np.ndarray, after: np.ndarray, factor: float) -> str:
    """Return the exponent of growth of the mean, with the interval of the bootstrap, or a dash."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(after), size=(1000, len(after)))
    means = np.stack([before[draws].mean(axis=1), after[draws].mean(axis=1)])
    if min(before.mean(), after.mean()) <= 0 or (means <= 0).mean() > 0.02:
        return "-"
    kept = means[:, (means > 0).all(axis=0)]
    low, high = np.quantile(np.log(kept[1] / kept[0]), [0.025, 0.975]) / np.log(factor)
    return f"{np.log(after.mean() / before.mean()) / np.log(factor):.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Print what holds for the prior, and a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", default="10000,40000,160000")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    models, gap = prior()
    largest = max(psconrl.diameter(model) for model in models)
    binding = sum(psconrl.plan(model).multipliers[0] > 0 for model in models)
    print(f"{len(models)} models, diameters up to {largest:.1f}, gaps from {gap:.2f}; {binding} with a binding limit\n")
    print("| agent | T | regret | exponent | violation | exponent |")
    print("|---|---|---|---|---|---|", flush=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for agent in given.agents.split(","):
            last: tuple[int, np.ndarray] | None = None
            for rounds in map(int, given.rounds.split(",")):
                runs = [pool.submit(outcome, agent, rounds, run) for run in range(given.runs)]
                found = np.array([one.result() for one in runs])
                cells = [agent, f"{rounds:,}"]
                for k in (0, 1):
                    half = 1.96 * found[:, k].std() / given.runs**0.5
                    cells.append(f"{found[:, k].mean():,.0f} ± {half:,.0f}")
                    cells.append("" if last is None else growth(last[1][:, k], found[:, k], rounds / last[0]))
                print(f"| {' | '.join(cells)} |", flush=True)
                last = rounds, found


if __name__ == "__main__":
    main()
