"""What better states cost that cannot be reached: ``python benchmarks/out_of_reach.py [RUNS]``.

The 4x4 grid has three more states, all free, from which its start can be reached, but to which nothing leads. An agent
that does not know this hopes for them. Regret at T, 4T and 16T, with and without doubts, for known costs.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys

import numpy as np

import psconrl
from psconrl import CMDP
from psconrl.agents import Budget

MORE = 3
HORIZON = 10_000


def with_free_states(base: CMDP) -> CMDP:
    """Return a model with states to which nothing leads, and whose first action leads to the start."""
    S, A = base.n_states, base.n_actions
    P = np.zeros((S + MORE, A, S + MORE))
    P[:S, :, :S] = base.transition.toarray().reshape(S, A, S)
    P[np.arange(S, S + MORE), :, np.arange(S, S + MORE)] = 1.0
    P[S:, 0] = np.eye(S + MORE)[0]
    costs = np.concatenate([base.costs, np.zeros((len(base.costs), MORE, A))], axis=1)
    return CMDP(P, costs, base.thresholds, initial=np.append(base.initial, np.zeros(MORE)))


def main() -> None:
    """Print the regret of every run."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    grid = with_free_states(psconrl.load("marsrover-4x4"))
    best = psconrl.plan(grid)
    for doubt in (None, Budget()):
        for rounds in (HORIZON, 4 * HORIZON, 16 * HORIZON):
            lost = []
            for seed in range(runs):
                agent = psconrl.PSConRL(
                    grid.n_states, grid.n_actions, grid.thresholds, grid.costs, seed=seed, doubt=doubt
                )
                trace = psconrl.simulate(grid, agent, rounds, seed=seed, checkpoints=2)
                lost.append(psconrl.regret(trace, best).regret[-1])
            print(f"doubt {doubt}, {rounds:,} rounds: regret {np.round(lost)}", flush=True)


if __name__ == "__main__":
    main()
