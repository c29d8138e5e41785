"""Rounds until a door is passed that opens with probability p: ``python benchmarks/doors.py [RUNS] [ROUNDS]``.

The corridor of ``environments_rare_doors.door``, with known costs. With doubts, and without.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np

import psconrl
from environments_rare_doors import door

PROBABILITIES = (0.5, 0.15, 0.05, 0.02, 0.01, 0.005)
LENGTH = 12


class DoorPassedError(Exception):
    """The door has been passed."""


def rounds_until_through(probability: float, doubts: bool, seed: int, most: int) -> float:
    """Return the rounds played at the end of the episode in which the door was passed; infinite if it never was."""
    model = door(probability, LENGTH)
    options: dict[str, Any] = {} if doubts else {"doubt": None}
    agent = psconrl.PSConRL(LENGTH, 2, model.thresholds, model.costs, seed=seed, **options)

    def look(_: object) -> None:
        if agent.counts.pairs[LENGTH // 2 + 1].any():
            raise DoorPassedError

    try:
        psconrl.simulate(model, agent, most, seed=1_000 + seed, checkpoints=1, progress=look)
    except DoorPassedError:
        return float(agent.rounds)
    return np.inf


def main() -> None:
    """Print a table: median, 90th percentile and largest number of rounds, and how many runs never came through."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 40_000
    print(
        "| probability | doubts | median | 90th percentile | largest | never |\n|---|---|---|---|---|---|", flush=True
    )
    with ProcessPoolExecutor(2) as pool:
        for probability, doubts in product(PROBABILITIES, (True, False)):
            jobs = [pool.submit(rounds_until_through, probability, doubts, seed, most) for seed in range(runs)]
            found = np.sort([job.result() for job in jobs])
            shown = [f"{x:,.0f}" for x in (found[runs // 2], found[int(0.9 * (runs - 1))], found[-1])]
            never = int(np.isinf(found).sum())
            cells = [f"{probability}", "yes" if doubts else "no", *shown, f"{never} of {runs}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
