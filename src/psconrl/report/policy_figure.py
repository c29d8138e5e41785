"""Figure of a policy: arrows on its map, a table of shares, or a rule over coordinates."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psconrl.model.cmdp import CMDP
from psconrl.model.coordinates import coordinates
from psconrl.planning.plan import Plan
from psconrl.report.figure_files import LITERAL
from psconrl.report.policy_rule_figure import VISITED, rule_figure
from psconrl.report.style import BLUE, ORANGE

CELLS = {"#": "#4D4D4D", "R": "#E3C6DD", "S": "#CDEBDD", "G": "#5DBB93"}
BOX = "#C08A4E"
MOVES = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
MOST_ROWS = 40  # rows in the table of a policy without a map
MAX_LAYERS = 6


@LITERAL
def policy_figure(cmdp: CMDP, plan: Plan, title: str = "") -> Figure:
    """Draw the long-run policy: arrows on the map, wider for more frequent actions, or a table of shares.

    If there are more states than a table holds, draw the action over the numbers in the names of the states.
    """
    if cmdp.layout is not None and all(cmdp.action_name(a) in MOVES for a in range(cmdp.n_actions)):
        return _map_figure(cmdp, plan, title)
    if (plan.occupancy.sum(axis=1) > VISITED).sum() > MOST_ROWS and (places := coordinates(cmdp)) is not None:
        return rule_figure(cmdp, plan, places, _caption(cmdp, plan, title))
    return _table_figure(cmdp, plan, title)


def _caption(cmdp: CMDP, plan: Plan, title: str) -> str:
    signs = cmdp.names.signs
    costs = ", ".join(
        f"{name} {cmdp.units.with_unit(f'{c:.4g}', name)} (limit {t:g})"
        for name, c, t in zip(cmdp.cost_names[1:], (signs * plan.costs)[1:], signs[1:] * cmdp.thresholds, strict=True)
    )
    objective = cmdp.cost_names[0]
    value = cmdp.units.with_unit(f"{plan.value:.6g}", objective)
    mixture = ""
    if plan.mixture is not None:
        shares = ", ".join(f"{100 * share:.3g}%" for share in plan.mixture.shares)
        mixture = f"mixture of {len(plan.mixture)} policies ({shares}); shown: the long-run average of all"
    parts = (title, f"{plan.status.value}: {objective} {value}", costs, mixture)
    return "\n".join(part for part in parts if part)


def _map_figure(cmdp: CMDP, plan: Plan, title: str) -> Figure:
    layout = cmdp.layout
    assert layout is not None
    mass = plan.occupancy.sum(axis=1)
    labels = layout.layers or ("",) * cmdp.n_states
    share = {label: sum(m for m, own in zip(mass, labels, strict=True) if own == label) for label in labels}
    shown = sorted((label for label in share if share[label] > VISITED), key=lambda label: -share[label])[:MAX_LAYERS]
    n = max(len(shown), 1)
    rows, columns = len(layout.rows), len(layout.rows[0])
    columns_of_maps = min(n, 3)
    rows_of_maps = -(-n // columns_of_maps)
    size = 3.2 * max(columns / 4, 0.8)
    figure = Figure(figsize=(size * columns_of_maps, size * rows / columns * rows_of_maps + 0.7))
    for k, label in enumerate(shown):
        axes = figure.add_subplot(rows_of_maps, columns_of_maps, k + 1)
        here = [s for s in range(cmdp.n_states) if labels[s] == label]
        _draw_map(axes, layout.rows, layout.moved(here[0]))
        for s, (i, j) in enumerate(layout.cells):
            if labels[s] == label and mass[s] > VISITED:
                _draw_arrows(axes, cmdp, plan, s, i, j)
        if label:
            axes.set_title(f"{label} ({100 * share[label]:.3g}% of the time)", fontsize=9)
    figure.suptitle(_caption(cmdp, plan, title), fontsize=10, y=1.02)
    figure.tight_layout()
    return figure


def _draw_map(axes: Axes, rows: tuple[str, ...], moved: tuple[int, int] | None) -> None:
    for i, row in enumerate(rows):
        for j, symbol in enumerate(row):
            axes.fill(
                [j, j + 1, j + 1, j], [i, i, i + 1, i + 1], CELLS.get(symbol, "white"), edgecolor="#BBBBBB", lw=0.8
            )
            if symbol in "SGR":
                axes.text(j + 0.08, i + 0.24, symbol, fontsize=8, color="#333333")
    if moved is not None:
        i, j = moved
        axes.fill(
            [j + 0.15, j + 0.85, j + 0.85, j + 0.15],
            [i + 0.15, i + 0.15, i + 0.85, i + 0.85],
            BOX,
            edgecolor="#5A3A1C",
            lw=1.5,
        )
        for one, other in ((0.15, 0.85), (0.85, 0.15)):  # a crate
            axes.plot([j + 0.15, j + 0.85], [i + one, i + other], color="#5A3A1C", lw=1.0)
        axes.text(
            j + 0.5,
            i + 0.5,
            "B",
            fontsize=8,
            color="#333333",
            ha="center",
            va="center",
            bbox={"facecolor": BOX, "lw": 0, "pad": 1},
        )
    axes.set(xlim=(0, len(rows[0])), ylim=(len(rows), 0), aspect="equal", xticks=[], yticks=[])


def _draw_arrows(axes: Axes, cmdp: CMDP, plan: Plan, s: int, i: int, j: int) -> None:
    for a in np.flatnonzero(plan.occupancy[s] > VISITED):
        dx, dy = MOVES[cmdp.action_name(int(a))]
        p = plan.shown_policy[s, a]
        colour = BLUE if p > 1 - 1e-9 else ORANGE
        if cmdp.layout is not None and cmdp.layout.rows[i][j] == "G":
            continue  # every action leads back to the start
        axes.annotate(
            "",
            (j + 0.5 + 0.36 * dx, i + 0.5 + 0.36 * dy),
            (j + 0.5, i + 0.5),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.0 + 2.0 * p, "shrinkA": 0, "shrinkB": 0},
        )
        if p < 1 - 1e-9:
            # Right of a vertical arrow, below a horizontal one: never on another arrow from the same cell.
            x, y = (j + 0.57, i + 0.5 + 0.25 * dy) if dy else (j + 0.5 + 0.27 * dx, i + 0.64)
            axes.text(x, y, f"{100 * p:.0f}%", fontsize=7, color=ORANGE, ha="left" if dy else "center", va="center")


def _table_figure(cmdp: CMDP, plan: Plan, title: str) -> Figure:
    mass = plan.occupancy.sum(axis=1)
    order = np.argsort(-mass, kind="stable")[: min(MOST_ROWS, max(int((mass > VISITED).sum()), 1))]
    order = np.sort(order)
    figure = Figure(figsize=(max(4.0, 0.9 * cmdp.n_actions + 2.5), max(2.2, 0.28 * order.size + 1.2)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[max(cmdp.n_actions, 2), 1.5])
    played = plan.shown_policy
    left.imshow(played[order], cmap="Blues", vmin=0, vmax=1, aspect="auto")
    left.set_xticks(
        range(cmdp.n_actions), [cmdp.action_name(a) for a in range(cmdp.n_actions)], rotation=30, ha="right"
    )
    left.set_yticks(range(order.size), [cmdp.state_name(int(s)) for s in order], fontsize=8)
    for row, s in enumerate(order):
        for a in np.flatnonzero(played[s] > VISITED):
            p = played[s, a]
            left.text(
                a, row, f"{100 * p:.3g}%", ha="center", va="center", fontsize=7, color="white" if p > 0.6 else "black"
            )
    left.set(xlabel="action", ylabel="state")
    right.barh(range(order.size), mass[order], color=BLUE)
    right.set_xlabel("long-run share")
    caption = _caption(cmdp, plan, title)
    if (mass > VISITED).sum() > order.size:
        share = f"{100 * mass[order].sum():.3g}% of the time"
        caption += f"\nthe {order.size} most visited of {cmdp.n_states:,} states, {share}"
    figure.suptitle(caption, fontsize=10, y=1.02)
    figure.tight_layout()
    return figure
