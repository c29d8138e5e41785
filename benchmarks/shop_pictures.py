"""Draw the pictures of the shop of the tutorial: docs/assets/shop-days.png and docs/assets/shop-policy.png.

python benchmarks/shop_pictures.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from psconrl.answers.answer import Answer
from system_picture import shop

FOLDER = Path(__file__).parents[1] / "docs" / "assets"
RATE = 2.3
DEMANDS = (3, 5, 1)  # of the days in the picture
ORDERED, EVENING, OPEN = 0.02, 0.86, (0.1, 0.78)  # hours of a day, as shares of it
DARK, PALE = "0.15", "0.93"


def draw_days(axes: Axes, answer: Answer) -> None:
    """Draw the stock over some days: orders, customers, lost sales and deliveries."""
    shelf, coming = 6, 0
    times, stock = [0.0], [float(shelf)]
    for day, demand in enumerate(DEMANDS):
        if day % 2:
            axes.axvspan(day, day + 1, color=PALE, zorder=0)
        order = answer.act({"shelf": shelf, "coming": coming})["order"]
        height, arrives = -1.5 - 1.4 * (day % 2), day + 1 + EVENING
        arrow = {"arrowstyle": "->", "color": DARK, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (arrives, height), (day + ORDERED, height), arrowprops=arrow)
        axes.text(day + ORDERED + 0.04, height + 0.2, f"orders {order}", fontsize=9)
        axes.plot([arrives, arrives], [height, 0.0], color=DARK, lw=0.9, ls=":")
        for number, hour in enumerate(np.linspace(*OPEN, demand), start=1):
            if number <= shelf:
                times += [day + hour, day + hour]
                stock += [stock[-1], stock[-1] - 1.0]
            else:
                axes.plot(day + hour, 0.0, "x", color=DARK, markersize=8, mew=2, clip_on=False, zorder=5)
        lost = max(demand - shelf, 0)
        said = f"demand {demand}" + (f", {lost} lost" if lost else "")
        axes.text(day + 0.44, 7.5, said, ha="center", fontsize=9)
        times += [day + EVENING, day + EVENING]
        stock += [stock[-1], stock[-1] + coming]
        if coming:
            axes.annotate(
                f"+{coming}", (day + EVENING, stock[-1]), (-6, -3), textcoords="offset points", ha="right", fontsize=9
            )
        shelf, coming = min(max(shelf - demand, 0) + coming, 12), order
    axes.plot([*times, len(DEMANDS)], [*stock, stock[-1]], color=DARK, lw=2)
    axes.fill_between([*times, len(DEMANDS)], [*stock, stock[-1]], color="0.75", alpha=0.6, lw=0)
    axes.axhline(0.0, color=DARK, lw=0.8)
    axes.set(xlim=(0, len(DEMANDS) + 0.02), ylim=(-3.3, 8.2), yticks=range(0, 8, 2), ylabel="units on the shelf")
    axes.set_xticks(np.arange(len(DEMANDS)) + 0.5, [f"day {day + 1}" for day in range(len(DEMANDS))])
    axes.tick_params(axis="x", length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def draw_policy(left: Axes, right: Axes, answer: Answer) -> None:
    """Draw what is ordered, and how often, over the units on the shelf and on the way."""
    found = answer.heat_map("shelf", "coming")
    order, share = found.actions["order"].T, 100.0 * np.where(found.share > 0, found.share, np.nan).T
    for axes, values, title, digits in (
        (left, order, "units ordered", "{:.3g}"),
        (right, share, "% of days", "{:.0f}"),
    ):
        axes.imshow(values, origin="lower", cmap="Blues", aspect="equal", vmin=0.0, vmax=1.25 * np.nanmax(values))
        for (y, x), value in np.ndenumerate(values):
            if value >= 0.5 or (axes is left and value >= 0.0):
                dark = value > 0.75 * np.nanmax(values)
                axes.text(
                    x, y, digits.format(value), ha="center", va="center", fontsize=8, color="white" if dark else "black"
                )
        axes.set_title(title, loc="left", fontsize=10)
        axes.set(xlabel="on the shelf", xticks=range(0, 13, 2), yticks=range(0, 7, 2), ylim=(-0.5, 5.5))
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("on the way")


def main() -> None:
    """Draw both pictures."""
    answer = shop().plan(demand=RATE)
    figure, axes = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    draw_days(axes, answer)
    figure.savefig(FOLDER / "shop-days.png", dpi=110, pil_kwargs={"optimize": True})
    figure, pair = plt.subplots(1, 2, figsize=(7.6, 2.5), layout="constrained", sharey=True)
    draw_policy(*pair, answer)
    figure.savefig(FOLDER / "shop-policy.png", dpi=110, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
