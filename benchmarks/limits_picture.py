"""Draw docs/assets/limits.png: what each kind of limit asks for, on the shop of the tutorial under its optimal policy.

python benchmarks/limits_picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from psconrl.answers.answer import Answer
from psconrl.base.arrays import Floats
from psconrl.systems.system import System
from system_picture import shop

TARGET = Path(__file__).parents[1] / "docs" / "assets" / "limits.png"
RATE, MOST = 2.3, 12
DAYS, WINDOW = 120, 20
AVERAGE, QUANTILE, TAIL, SHORTFALL = 8.0, 9, 0.1, 10.5  # shelf <= 8, p90(shelf) <= 9, cvar90(shelf) <= 10.5
LOST = (0.01, 0.02)  # limits on lost / demand, of which the first cannot be met
CURVE = (0.01328, 0.0134, 0.0137, 0.0142, 0.015, 0.017, 0.02, 0.024, 0.03, 0.035, 0.04)
DARK, GREY, PALE = "0.15", "0.6", "0.88"


def run_of(answer: Answer) -> Floats:
    """Return the units on the shelf in one run of the policy."""
    rng = np.random.default_rng(5)
    state, shelves = {"shelf": 6, "coming": 0}, []
    for _ in range(DAYS):
        shelves.append(state["shelf"])
        order = answer.act(state, rng)["order"]
        demand = min(int(rng.poisson(RATE)), MOST)
        state = {"shelf": min(max(state["shelf"] - demand, 0) + state["coming"], 12), "coming": order}
    return np.array(shelves, dtype=float)


def draw_run(axes: Axes, run: Floats, limit: float) -> None:
    """Draw the units of every day, and a limit."""
    axes.step(np.arange(DAYS), run, where="mid", color=GREY, lw=0.8)
    axes.axhline(limit, color=DARK, lw=1.6, ls=(0, (5, 3)))
    axes.set(xlabel="day", xlim=(0, DAYS), ylim=(0, 12.5), yticks=range(0, 13, 3), ylabel="shelf")


def draw_shares(axes: Axes, shares: Floats, dark: Floats) -> None:
    """Draw the shares of the days by units on the shelf, a part of each dark."""
    values = np.arange(shares.size)
    axes.bar(values, 100.0 * shares, color=PALE, edgecolor=GREY, width=0.9)
    axes.bar(values, 100.0 * dark, color=DARK, width=0.9)
    axes.set(xlabel="shelf", ylabel="% of days", xticks=range(0, 13, 3))


def draw_trade_off(axes: Axes, system: System) -> None:
    """Draw what every limit on lost sales costs, and where no policy is."""
    curve = system.pareto("lost / demand", list(CURVE))
    lost, holding = 100.0 * np.array(CURVE), np.array(curve.values)
    bottom, top, right = 0.55, 0.8, 100.0 * CURVE[-1]
    edge = np.array([[0.0, top], [lost[0], top], *np.column_stack([lost, holding]), [right, bottom], [0.0, bottom]])
    axes.fill(*edge.T, facecolor="white", edgecolor=GREY, hatch="///", lw=0)
    axes.plot([lost[0], *lost], [top, *holding], color=DARK, lw=2)
    for limit in LOST:
        axes.axvline(100.0 * limit, color=DARK, lw=1.6, ls=(0, (5, 3)))
    axes.plot(100.0 * LOST[1], curve.values[CURVE.index(LOST[1])], "o", color=DARK, markersize=8)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(100.0 * LOST[1] + 0.12, 0.69, "the plan for 2%", fontsize=9)
    axes.text(2.1, 0.58, "no policy", fontsize=9, bbox=box)
    axes.text(0.06, 0.61, "1%: not\nfeasible", fontsize=9, bbox=box)
    axes.set(xlabel="lost / demand, %", ylabel="holding", xlim=(0, right), ylim=(bottom, top))


def main() -> None:
    """Draw the picture."""
    known = shop().with_noise(demand=RATE)
    answer = known.plan()
    run = run_of(answer)
    shares = np.bincount(known.state_table["shelf"], answer.plan.occupancy.sum(axis=1))
    values = np.arange(shares.size)
    above = np.where(values > QUANTILE, shares, 0.0)
    worst = np.clip(TAIL - (shares.sum() - shares.cumsum()), 0.0, shares)  # of every value, in the worst tenth
    print(f"average {values @ shares:.3f}, P(shelf > {QUANTILE}) {above.sum():.4f}, cvar {values @ worst / TAIL:.3f}")

    figure, axes = plt.subplots(2, 3, figsize=(9.8, 5.0), layout="constrained")
    average, share, window, percentile, shortfall, infeasible = axes.flat
    draw_run(average, run, AVERAGE)
    so_far = run.cumsum() / np.arange(1, DAYS + 1)
    average.plot(so_far, color=DARK, lw=2)
    average.set_title("an average: shelf <= 8", loc="left", fontsize=10)
    draw_run(share, run, QUANTILE)
    days = np.flatnonzero(run > QUANTILE)
    share.plot(days, run[days], "o", color=DARK, markersize=4)
    share.set_title("a share: P(shelf > 9) <= 10%", loc="left", fontsize=10)
    draw_run(window, run, AVERAGE)
    for first in range(0, DAYS, WINDOW):
        mean = run[first : first + WINDOW].mean()
        window.plot([first + 0.8, first + WINDOW - 0.8], [mean, mean], color=DARK, lw=2.4)
    window.set_title("averages of 20 days: shelf <= 8", loc="left", fontsize=10)
    draw_shares(percentile, shares, above)
    percentile.set_title("a percentile: p90(shelf) <= 9", loc="left", fontsize=10)
    percentile.text(-0.4, 14.5, "at most 10%\nabove 9", fontsize=9)
    draw_shares(shortfall, shares, worst)
    shortfall.axvline(SHORTFALL, color=DARK, lw=1.6, ls=(0, (5, 3)))
    shortfall.plot(values @ worst / TAIL, 9.0, "v", color=DARK, markersize=8)
    shortfall.text(-0.4, 14.5, "mean of the\nhighest 10%", fontsize=9)
    shortfall.set_title("a shortfall: cvar90(shelf) <= 10.5", loc="left", fontsize=10)
    draw_trade_off(infeasible, known)
    infeasible.set_title("what can be met", loc="left", fontsize=10)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
    figure.savefig(TARGET, dpi=100, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
