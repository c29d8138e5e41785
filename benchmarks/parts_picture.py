"""Draw docs/assets/psconrl-parts.png, the parts of PSConRL in an episode: python benchmarks/parts_picture.py."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from psconrl.learning.agents.psconrl import PSConRL

Point = tuple[float, float]
TARGET = Path(__file__).parents[1] / "docs" / "assets" / "psconrl-parts.png"
DARK, GREY, PALE = "0.15", "0.45", "0.9"
WIDTH, HEIGHT = 1.9, 0.86
# Parts of the agent, which can be replaced, and what they work on.
PARTS = {
    "belief": (3.2, 4.5),
    "cost_belief": (3.2, 3.0),
    "doubt": (3.2, 1.5),
    "ledger": (7.9, 4.8),
    "planning_horizon": (7.9, 1.2),
    "commitment": (10.6, 4.0),
    "fallback": (10.6, 2.0),
    "schedule": (7.9, -0.5),
}
STEPS = {
    "what was seen": (0.7, 3.0),
    "a sampled\nmodel": (5.6, 3.0),
    "a plan": (7.9, 3.0),
    "an episode": (10.6, -0.5),
    "your system": (4.4, -0.5),
}


def draw_box(axes: Axes, place: Point, name: str, default: str = "") -> None:
    """Draw a part with a thick line and its default, or a step without."""
    x, y = place
    width, look = (WIDTH, {"fc": "white", "ec": DARK, "lw": 2.0}) if default else (1.5, {"fc": PALE, "ec": PALE})
    corner = (x - width / 2, y - HEIGHT / 2)
    axes.add_patch(FancyBboxPatch(corner, width, HEIGHT, boxstyle="round,pad=0,rounding_size=0.12", **look))
    middle = {"ha": "center", "va": "center"}
    if default:
        axes.text(x, y + 0.16, name, fontsize=10, weight="bold", **middle)
        axes.text(x, y - 0.19, default, fontsize=8, family="monospace", color=GREY, **middle)
    else:
        axes.text(x, y, name, fontsize=10, **middle)


def draw_arrow(axes: Axes, path: list[Point], said: str = "", at: Point = (0.0, 0.0), ls: str = "-") -> None:
    """Draw a path with an arrow at its end, and say what it hands on."""
    axes.plot(*zip(*path, strict=True), color=GREY, lw=1.3, ls=ls, zorder=0)
    arrow = {"arrowstyle": "-|>", "color": GREY, "lw": 1.3, "shrinkA": 0, "shrinkB": 0, "ls": ls}
    axes.annotate("", path[-1], path[-2], arrowprops=arrow)
    axes.text(*at, said, fontsize=8.5, ha="center", va="center", style="italic")


def main() -> None:
    """Draw the picture."""
    figure, axes = plt.subplots(figsize=(9.2, 4.9), layout="constrained")
    agent = PSConRL(2, 2, [0.5], seed=0)
    for slot, place in PARTS.items():
        draw_box(axes, place, slot.replace("_", " "), type(getattr(agent, slot)).__name__)
    for name, place in STEPS.items():
        draw_box(axes, place, name)
    half = WIDTH / 2
    for slot in ("belief", "cost_belief"):
        draw_arrow(axes, [(1.45, 3.0), (3.2 - half, PARTS[slot][1])])
    draw_arrow(axes, [(3.2 + half, 4.5), (4.85, 3.25)], "transitions", (5.15, 4.1))
    draw_arrow(axes, [(3.2 + half, 3.0), (4.85, 3.0)], "costs", (4.48, 3.18))
    draw_arrow(axes, [(3.2 + half, 1.5), (4.85, 2.75)], "in some episodes,\nwhat they exclude", (5.45, 1.75), "--")
    draw_arrow(axes, [(6.35, 3.0), (7.15, 3.0)])
    draw_arrow(axes, [(7.9, 4.8 - HEIGHT / 2), (7.9, 3.43)], "thresholds", (7.25, 3.9))
    draw_arrow(axes, [(7.9, 1.2 + HEIGHT / 2), (7.9, 2.57)], "rounds ahead", (7.15, 2.1))
    draw_arrow(axes, [(8.65, 3.2), (10.6 - half, 3.9)], "feasible", (8.95, 3.75))
    draw_arrow(axes, [(8.65, 2.8), (10.6 - half, 2.1)], "infeasible", (8.95, 2.25))
    draw_arrow(axes, [(10.6 + half, 4.0), (11.9, 4.0), (11.9, -0.5), (11.35, -0.5)], "policy", (11.45, 0.55))
    draw_arrow(axes, [(10.6 + half, 2.0), (11.9, 2.0), (11.9, -0.5), (11.35, -0.5)])
    draw_arrow(axes, [(7.9 + half, -0.5), (9.85, -0.5)], "ends it", (9.35, -0.3))
    draw_arrow(axes, [(10.6, -0.93), (10.6, -1.35), (4.4, -1.35), (4.4, -0.93)], "actions", (7.0, -1.2))
    draw_arrow(axes, [(3.65, -0.5), (0.7, -0.5), (0.7, 2.57)], "states, costs", (2.1, -0.3))
    axes.set(xlim=(-0.15, 12.0), ylim=(-1.5, 5.4))
    axes.set_axis_off()
    figure.savefig(TARGET, dpi=110, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
