"""Draw docs/results/corridor.png: the score of some agents on the corridor, against rounds.

python benchmarks/corridor_picture.py [--runs 10] [--rounds 80000]
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib.pyplot as plt
import numpy as np

import psconrl

AGENTS = {
    "psconrl": ("PSConRL, this library's", "-", ""),
    "psconrl-paper": ("PSConRL (paper)", "--", "s"),
    "cmdp-psrl": ("CMDP-PSRL", "-.", "o"),
    "ps-curl": ("PS-CURL", ":", "^"),
    "lagrangian": ("Lagrangian PSRL", (0, (1, 1)), "D"),
    "uniform": ("uniform play", (0, (5, 1)), ""),
}
BANDS = ("psconrl", "psconrl-paper")  # agents whose range over all runs is shown
PICTURE = Path(__file__).parents[1] / "docs" / "results" / "corridor.png"


def scores(agent: str, rounds: int, run: int) -> tuple[list[int], list[float]]:
    """Return regret plus overspending at twice its price, at logarithmically spaced rounds."""
    model = psconrl.load("corridor")
    best = psconrl.plan(model)
    made = psconrl.agents.make(agent, 8, 2, model.thresholds, model.costs, seed=run)
    trace = psconrl.simulate(model, made, rounds, seed=run, checkpoints="log")
    lost = trace.cumulative[:, 0] - trace.rounds * best.value
    over = np.maximum(trace.cumulative[:, 1] - trace.rounds * model.thresholds[0], 0.0)
    return list(trace.rounds), list(lost + 2.0 * best.multipliers[0] * over)


def main() -> None:
    """Run the agents and draw the figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=80_000)
    given = parser.parse_args()
    figure, axes = plt.subplots(figsize=(7.5, 4.0), layout="constrained")
    with ProcessPoolExecutor(2) as pool:
        for number, (agent, (title, dashes, marker)) in enumerate(AGENTS.items()):
            runs = list(pool.map(scores, repeat(agent), repeat(given.rounds), range(given.runs)))
            rounds, found = np.array(runs[0][0]), np.array([each[1] for each in runs])
            late = rounds >= 100
            mean = np.maximum(found.mean(axis=0), 1.0)
            print(
                f"{title}: {found[:, -1].mean():,.0f} ± {found[:, -1].std() / given.runs**0.5:,.0f}, "
                f"worst {found[:, -1].max():,.0f}",
                flush=True,
            )
            line = axes.plot(
                rounds[late],
                mean[late],
                label=title,
                linestyle=dashes,
                marker=marker,
                markevery=(number, 12),
                linewidth=2.0,
            )[0]
            if agent in BANDS:
                low, high = (np.maximum(end, 1.0)[late] for end in (found.min(axis=0), found.max(axis=0)))
                axes.fill_between(rounds[late], low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="rounds", ylabel="regret + 2 price * violation")
    axes.set_title(
        "A corridor of eight states: means of ten runs, and the range of all for two agents", loc="left", fontsize=11
    )
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize=8.5, frameon=False)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
