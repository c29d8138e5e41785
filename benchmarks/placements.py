"""Why the authors' code has a regret of 7,346 on Box: ``python benchmarks/placements.py [RUNS]``.

Their model keeps all 121 placements of agent and box, most of which cannot be reached, and their agent learns the
costs: an unvisited state counts as free, and a posterior-sampling agent keeps trying to reach it. Either alone is
harmless.
Draws docs/results/box-placements.png.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import psconrl
from psconrl.report.style import nth_look

HORIZON = 500_000
OUT = Path(__file__).parents[1] / "docs" / "results" / "box-placements.png"
CASES = {
    "the authors' rule, 121 placements, costs learned": ("psconrl-published", True, False),
    "the authors' rule, 60 placements, costs learned": ("psconrl-published", False, False),
    "the authors' rule, 121 placements, costs known": ("psconrl-published", True, True),
    "PSConRL as in the paper, 121 placements, costs learned": ("psconrl-paper", True, False),
    "PSConRL, this library's, 121 placements, costs learned": ("psconrl", True, False),
    "PSConRL, this library's, 60 placements, costs learned": ("psconrl", False, False),
}


def one(job: tuple[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return rounds, and regret and violation at them."""
    name, unreachable, known = CASES[job[0]]
    cmdp = psconrl.load("box", unreachable=unreachable)
    agent = psconrl.agents.make(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, None, job[1])
    agent.costs = cmdp.costs if known else None  # the recipe would learn them
    trace = psconrl.simulate(cmdp, agent, HORIZON, seed=job[1], checkpoints=100)
    found = psconrl.regret(trace, psconrl.plan(cmdp))
    return trace.rounds, np.column_stack([found.regret, found.violation[:, 0]])


def main() -> None:
    """Run the agents, draw the figure, and print the final values."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    figure = Figure(figsize=(7.6, 4.4))
    axes = figure.subplots()
    styles = {case: nth_look(k).marked_line | {"markevery": 0.15} for k, case in enumerate(CASES)}
    with ProcessPoolExecutor(2) as pool:
        for case in CASES:
            found = list(pool.map(one, [(case, seed) for seed in range(runs)]))
            lost = np.array([curve[:, 0] for _, curve in found])
            print(f"{case}: regret {lost[:, -1].round()}, violation {[round(c[-1, 1]) for _, c in found]}", flush=True)
            axes.plot(found[0][0], lost.T, lw=1.0, **styles[case])
            axes.plot([], [], label=case, **styles[case])
    axes.set(xlabel="round", ylabel="regret", title=f"Box with and without what cannot be reached, {runs} runs each")
    axes.set_yscale("log")
    axes.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
    axes.grid(alpha=0.3, lw=0.4)
    figure.savefig(OUT, dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
