"""Learning with known structure: a belief over the parameters of the noise, against nothing known.

    python benchmarks/structure.py [--systems queue,inventory] [--runs 10] [--rounds 10000] [--agents default,structure]
    python benchmarks/structure.py --growth [--rounds 5000]

Scores are regret plus overspending at twice its price. By default rounds incur the mean costs of state and action,
so that differences between agents are not noise; with ``--happened`` they incur the realised costs. ``structure`` knows
everything but the probabilities and rates, ``support`` which transitions are possible, ``default`` neither; all but
``structure`` know the mean costs. ``known`` knows everything, and shows what luck and planning from episode to episode
cost in so short a run. ``--growth``: the network from 25 to 10,000 states, with the time of an episode.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.agents import LearnedMass
from psconrl.envs.registry import load_system
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.systems.system import System
from structure_held_out import HELD_OUT

BUILT_IN = {  # as on the leaderboard
    "inventory": ("inventory", {}),
    "queue": ("queue", {}),
    "small stock": ("stock", {"items": 2, "room": 5, "load": 4, "lost": 0.25}),
    "small network": ("network", {"side": 6, "waiting": 2.0}),
    "small ward": (
        "ward", {"beds": 3, "arrivals": [0.02, 0.03, 0.01], "staff": 4.0, "refused": 0.08, "occupied": 1.5},
    ),
}  # fmt: skip
AGENTS = ("uniform", "default", "support", "structure", "known")
SIDES = (5, 10, 20, 50, 100)


def systems(name: str) -> tuple[System, System]:
    """Return a system as its owner knows it, and as it is."""
    if name in HELD_OUT:
        system, known = HELD_OUT[name]()
        return system, system.with_noise(**known)
    environment, options = BUILT_IN[name]
    return load_system(environment, **options), load_system(environment, known=True, **options)


def score(name: str, agent: str, rounds: int, happened: bool, run: int) -> tuple[float, float]:
    """Return the score of a run, and its seconds."""
    system, true = systems(name)
    return score_of(system, true, agent, rounds, happened, run)


def score_of(system: System, true: System, agent: str, rounds: int, happened: bool, run: int) -> tuple[float, float]:
    """Return the score of a run of an agent on a system, and its seconds."""
    model = true.model()
    best = psconrl.plan(model)
    sizes = (model.n_states, model.n_actions, model.thresholds)
    if agent in ("structure", "known"):
        made = psconrl.PSConRL.of(system if agent == "structure" else true, seed=run)
    elif agent == "uniform":
        made = psconrl.agents.make("uniform", *sizes, seed=run)
    else:
        belief = None
        if agent == "support":
            possible = model.transition.csr().copy()
            possible.data[:] = 1.0
            belief = LearnedMass(support=possible)
        made = psconrl.PSConRL(*sizes, model.costs, belief=belief, seed=run)
    begun = time.perf_counter()
    total = psconrl.simulate(true if happened else model, made, rounds, seed=10_000 + run).cumulative[-1]
    seconds = time.perf_counter() - begun
    lost = total[0] - rounds * best.certificate.lower
    return float(lost + 2.0 * np.maximum(total[1:] - rounds * model.thresholds, 0.0) @ best.multipliers), seconds


def growth(rounds: int, runs: int) -> None:
    """Print the scores of networks of growing size, and the processor time of an episode."""
    print("| states | score | worst | episodes | CPU s an episode | sampling |\n|---|---|---|---|---|---|")
    for side in SIDES:
        options = {"side": side, "waiting": 2.0}
        system, true = load_system("network", **options), load_system("network", known=True, **options)
        model = true.model()
        best = psconrl.plan(model)
        scores, episodes, planning, sampling = [], 0, 0.0, [0.0]
        drawn = Structured.sample

        def timed(self, counts, rng, drawn=drawn, sampling=sampling):
            begun = time.process_time()
            found = drawn(self, counts, rng)
            sampling[0] += time.process_time() - begun
            return found

        for run in range(runs):
            agent = psconrl.PSConRL.of(system, seed=run)
            agent.begin(0)  # finds the patterns, once
            agent = psconrl.PSConRL.of(system, seed=run)
            Structured.sample = timed
            begun = time.process_time()
            trace = psconrl.simulate(model, agent, rounds, seed=10_000 + run)
            planning += time.process_time() - begun
            Structured.sample = drawn
            total = trace.cumulative[-1]
            over = 2.0 * np.maximum(total[1:] - rounds * model.thresholds, 0.0) @ best.multipliers
            scores.append(total[0] - rounds * best.certificate.lower + over)
            episodes += len(trace.episodes)
        error = np.std(scores, ddof=1) / runs**0.5 if runs > 1 else np.nan
        print(
            f"| {side * side:,} | {np.mean(scores):.1f} ± {error:.1f} | {max(scores):.1f} | {episodes / runs:.0f} | "
            f"{planning / episodes:.4f} | {100 * sampling[0] / planning:.1f}% |",
            flush=True,
        )


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default=",".join([*BUILT_IN, *HELD_OUT]))
    parser.add_argument("--agents", default=",".join(AGENTS))
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--happened", action="store_true")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    if options.growth:
        growth(options.rounds, options.runs)
        return
    agents = options.agents.split(",")
    print("| system | states, actions | " + " | ".join(agents) + " |\n" + "|---" * (len(agents) + 2) + "|")
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.systems.split(","):
            structure = systems(name)[0].structure
            print(f"| {name} | {structure.n_states}, {structure.n_actions}", end="", flush=True)
            for agent in agents:
                runs = [(name, agent, options.rounds, options.happened, run) for run in range(options.runs)]
                found = np.array(list(pool.map(score, *zip(*runs, strict=True))))
                error = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
                print(f" | {found[:, 0].mean():,.0f} ± {error:,.0f} ({found[:, 1].mean():.1f} s)", end="", flush=True)
            print(" |", flush=True)


if __name__ == "__main__":
    main()
