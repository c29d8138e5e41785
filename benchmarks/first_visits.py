"""Effect of the number of first visits that end an episode: ``benchmarks/first_visits.py MODEL [RUNS] [NUMBER,...]``.

Plays the default agent with different numbers of first visits that end an episode (``ENDING_FIRST_VISITS``), on the
same seeds, and shows regret at shadow prices, the paired difference from "all of them", plans and seconds.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

import psconrl
from psconrl.agents import LearnedMass, PSConRL
from psconrl.learning.parts import schedules
from scale import support_of, ward

ALL = 10**9


def grid(side: int) -> psconrl.CMDP:
    """A map on which a quarter of all cells are risky."""
    rng = np.random.default_rng(5)
    rows = [["R" if rng.random() < 0.25 else "." for _ in range(side)] for _ in range(side)]
    rows[0][0], rows[-1][side // 2] = "G", "S"
    return psconrl.gridworld("\n".join(" ".join(row) for row in rows), threshold=0.1)


def ring(states: int = 6000) -> psconrl.CMDP:
    """Move one step or two; double steps are constrained. Nearly every round is a first visit."""
    pairs = np.arange(2 * states)
    onward = (pairs // 2 + 1 + pairs % 2) % states
    P = csr_array((np.ones(2 * states), (pairs, onward)), shape=(2 * states, states))
    costs = np.zeros((2, states, 2))
    costs[0], costs[1, :, 1] = np.random.default_rng(0).random((states, 2)), 1.0
    return psconrl.CMDP(P, costs, [0.5])


# The model of a seed, rounds, and whether the support is known.
MODELS: dict[str, tuple[Callable[[int], psconrl.CMDP], int, bool]] = {
    "4x4": (lambda seed: psconrl.load("marsrover-4x4"), 5000, False),
    "4x4 slip .1": (lambda seed: psconrl.load("marsrover-4x4", slip=0.1), 5000, False),
    "queue": (lambda seed: psconrl.load("queue"), 5000, False),
    "inventory": (lambda seed: psconrl.load("inventory"), 5000, False),
    "garnet": (lambda seed: psconrl.load("garnet", seed=seed), 5000, False),
    "riverswim": (lambda seed: psconrl.load("riverswim"), 5000, False),
    "grid 14x14": (lambda seed: grid(14), 3000, False),
    "garnet 300x10": (lambda seed: psconrl.load("garnet", states=300, actions=10, seed=seed, sparse=True), 2000, True),
    "ward of 8": (lambda seed: ward(8), 2000, True),
    "garnet 900x4": (lambda seed: psconrl.load("garnet", states=900, actions=4, seed=seed, sparse=True), 2500, True),
    "ring": (lambda seed: ring(), 5000, True),
}


def one(name: str, number: int, seed: int) -> tuple[float, int, float]:
    """Return the regret at shadow prices, plans and seconds of a run."""
    make, rounds, support_known = MODELS[name]
    schedules.ENDING_FIRST_VISITS = number
    cmdp = make(seed)
    best = psconrl.plan(cmdp)
    options = {"belief": LearnedMass(support=support_of(cmdp))} if support_known else {}
    agent = PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed, **options)
    trace = psconrl.simulate(cmdp, agent, rounds, seed=1000 + seed, checkpoints=1)
    lost, over = psconrl.regret(trace, best).final
    return float(lost + over @ best.multipliers), len(trace.episodes), trace.provenance["seconds"]


def main() -> None:
    """Run the agents and print the table."""
    name, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    numbers = [int(n) for n in sys.argv[3].split(",")] if len(sys.argv) > 3 else [0, 500, 1000]
    base = np.array([one(name, ALL, seed) for seed in range(runs)])
    print(f"{name}: all: {base[:, 0].mean():.1f}, {base[:, 1].mean():.0f} plans, {base[:, 2].mean():.1f} s")
    for number in numbers:
        found = np.array([one(name, number, seed) for seed in range(runs)])
        apart = found[:, 0] - base[:, 0]
        error = apart.std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
        print(
            f"{number}: {apart.mean():+.1f} ± {error:.1f}, {found[:, 1].mean():.0f} plans, {found[:, 2].mean():.1f} s"
        )


if __name__ == "__main__":
    main()
