"""Draw docs/results/system.png: a shop that is learned with known structure, and with nothing known.

python benchmarks/system_picture.py [--runs 5] [--rounds 5000]
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import psconrl
from psconrl.base.arrays import Floats
from psconrl.systems import Gamma, Poisson, System

TARGET = Path(__file__).parents[1] / "docs" / "results" / "system.png"


def shop() -> System:
    """Return the shop of the tutorial."""
    return System(
        state={"shelf": range(13), "coming": range(7)},
        action={"order": range(7)},
        noise={"demand": Poisson(Gamma(2, 1), most=12)},
        step={"shelf": "min(max(shelf - demand, 0) + coming, 12)", "coming": "order"},
        costs={"holding": "0.1 * shelf", "lost": "max(demand - shelf, 0)"},
        available="shelf + coming + order <= 12",
        start={"shelf": 6, "coming": 0},
        minimise="holding",
        limits=["lost / demand <= 2%"],
    )


def scores(kind: str, run: int, rounds: int) -> tuple[Floats, Floats]:
    """Return checkpoints, and regret plus overspending at its price up to each."""
    system = shop()
    true = system.with_noise(demand=2.3)
    model, best = true.model_for_learning(), psconrl.plan(true.model())
    if kind == "structure known":
        agent = psconrl.PSConRL.of(system, seed=run)
    else:
        agent = psconrl.PSConRL(model.n_states, model.n_actions, model.thresholds, model.costs, seed=run)
    trace = psconrl.simulate(true, agent, rounds, seed=1000 + run)
    lost = trace.cumulative[:, 0] - trace.rounds * best.certificate.lower
    over = np.maximum(trace.cumulative[:, 1:] - trace.rounds[:, None] * model.thresholds, 0.0)
    return trace.rounds, lost + over @ best.multipliers


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5000)
    options = parser.parse_args()
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    looks = {"structure known": ("tab:blue", "-"), "nothing known but the costs": ("tab:orange", (0, (6, 2)))}
    for kind, (colour, dash) in looks.items():
        runs = [scores(kind, run, options.rounds) for run in range(options.runs)]
        for rounds, score in runs:
            axes.plot(rounds, score, color=colour, alpha=0.35, lw=0.8)
        label = f"{kind}, mean and {len(runs)} runs"
        axes.plot(runs[0][0], np.mean([score for _, score in runs], axis=0), color=colour, ls=dash, lw=2.2, label=label)
        print(kind, np.mean([score[-1] for _, score in runs]), max(score[-1] for _, score in runs))
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(xlabel="day", ylabel="regret plus overspending (euro)")
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(TARGET, dpi=150)


if __name__ == "__main__":
    main()
