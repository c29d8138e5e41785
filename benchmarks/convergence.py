"""Growth of the score with the rounds, in environments whose optimum mixes several places: is it a square root?

    python benchmarks/convergence.py [--rounds 1000000] [--runs 30] [--agents psconrl,psconrl-paper]
                                     [--environments corridor]

The score is the regret of the objective plus overspending at twice its price, with known costs. Two environments were
used while the rule was found (corridor, islands); harbour, ferry and ring were written before they were tried.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from models import one_server, two_queues


def harbour(length: int = 4) -> psconrl.CMDP:
    """A quay with three piers: the ends of two are better than the quay, and each may be used for some of the time."""
    S = 1 + 3 * length
    P, costs = np.zeros((S, 4, S)), np.zeros((3, S, 4))
    costs[0] = 1.0
    for pier in range(3):
        cells = 1 + pier * length + np.arange(length)
        P[0, pier, cells[0]] = 1.0
        for k, cell in enumerate(cells):
            P[cell, :3, cells[max(k - 1, 0)] if k else 0] = 1.0  # back towards the quay
            P[cell, 3, cells[min(k + 1, length - 1)]] = 1.0  # onward, or stay at the end
    P[0, 3, 0] = 1.0
    for pier, cost in ((0, 0.0), (1, 0.3)):
        end = (pier + 1) * length
        costs[0, end, 3], costs[1 + pier, end, 3] = cost, 1.0
    return psconrl.CMDP(P, costs, [0.2, 0.3], initial=0)


def ring(size: int = 12) -> psconrl.CMDP:
    """Stay, or move on around a one-way ring: two of its places are worth staying at."""
    S = size
    P = np.zeros((S, 2, S))
    P[np.arange(S), 0, np.arange(S)] = 1.0
    P[np.arange(S), 1, (np.arange(S) + 1) % S] = 1.0
    costs = np.stack([np.ones((S, 2)), np.full((S, 2), 0.5)])
    costs[:, 0, 0] = 0.0, 1.0
    costs[:, S // 2, 0] = 1.0, 0.0
    return psconrl.CMDP(P, costs, [0.4], initial=0)


ENVIRONMENTS = {
    "corridor": lambda: psconrl.load("corridor"),
    "islands": lambda: psconrl.load("islands"),
    "harbour": harbour,
    "ferry": lambda: psconrl.load("islands", threshold=0.3, success=0.02),
    "ring": ring,
}
QUEUES = {"tandem": lambda: two_queues(8), "server": one_server}  # 64 states; only if they are asked for


def scores(environment: str, agent: str, rounds: int, run: int) -> list[float]:
    """Return the scores after a 64th, a 16th and a quarter of the rounds, and at their end."""
    model = (ENVIRONMENTS | QUEUES)[environment]()
    best = psconrl.plan(model)
    at = [rounds // 64, rounds // 16, rounds // 4, rounds]
    sizes = (model.n_states, model.n_actions, model.thresholds, model.costs)
    known = psconrl.agents.known_baseline(model) if agent == "safe" else {}  # the safest policy, its slack and span
    made = psconrl.agents.make(agent, *sizes, seed=run, horizon=rounds, **known)
    trace = psconrl.simulate(model, made, rounds, seed=10_000 + run, checkpoints=at)
    ends = np.asarray(at)[:, None]
    lost = trace.cumulative[:, 0] - ends[:, 0] * best.certificate.lower
    over = np.maximum(trace.cumulative[:, 1:] - ends * model.thresholds, 0.0)
    return list(lost + 2.0 * (over * best.multipliers).sum(axis=1))


def main() -> None:
    """Print a table: mean and worst score, and the mean over the root of the rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--agents", default="psconrl")
    parser.add_argument("--environments", default=",".join(ENVIRONMENTS))
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    print("| environment | agent | T/64 | T/16 | T/4 | T | worst | 90th percentile | score / sqrt(T), the same four |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for environment in given.environments.split(","):
            for agent in given.agents.split(","):
                runs = [pool.submit(scores, environment, agent, given.rounds, run) for run in range(given.runs)]
                found = np.array([one.result() for one in runs])
                mean, error = found.mean(axis=0), found[:, -1].std() / given.runs**0.5
                roots = np.sqrt(given.rounds / np.array([64, 16, 4, 1]))
                cells = [
                    *(f"{x:,.0f}" for x in mean[:3]),
                    f"{mean[3]:,.0f} ± {error:,.0f}",
                    f"{found[:, -1].max():,.0f}",
                ]
                cells += [f"{np.quantile(found[:, -1], 0.9):,.0f}", " ".join(f"{x:.2f}" for x in mean / roots)]
                print(f"| {environment} | {agent} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
