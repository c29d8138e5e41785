"""The diagram of the paper's Example 1: two states, what they cost, and where the actions lead."""

import math
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

from psconrl.envs.counterexample import counterexample
from psconrl.model.cmdp import CMDP
from psconrl.report.style import BLUE, GREY, ORANGE

RADIUS = 0.55
CENTRES = ((0.0, 0.0), (3.6, 0.0))
COLOURS = (BLUE, ORANGE)  # of the two actions


class Arc(NamedTuple):
    """How an arrow is drawn."""

    begin: float  # degrees on the circle of its state
    end: float  # degrees on the circle of its target
    bend: float
    label: tuple[float, float]  # from the centre of its state


# Loops of the first and of the other action, and arrows between the states.
ARCS = {
    "first": Arc(218, 142, -1.9, (-1.3, 0.62)),
    "other": Arc(128, 52, -1.9, (0.0, 1.32)),
    "there": Arc(25, 155, -0.3, (1.8, 0.88)),
    "back": Arc(205, 335, -0.3, (-1.8, -0.88)),
}


class Move(NamedTuple):
    """A transition to draw, of one action or of several that do the same."""

    state: int
    actions: tuple[int, ...]
    target: int
    probability: float


def draw_example(axes: Axes, cmdp: CMDP | None = None) -> None:
    """Draw the two states of Example 1 with their reward and cost, and an arrow for every transition.

    ``cmdp``: a model made by ``psconrl.load("counterexample")``, perhaps with another theta; the paper's by default.
    """
    model = counterexample() if cmdp is None else cmdp
    for move in moves_of(model):
        _draw_arrow(axes, move, _label(model, move))
    for state, centre in enumerate(CENTRES):
        axes.add_patch(Circle(centre, RADIUS, facecolor="white", edgecolor="black", lw=1.2, zorder=3))
        axes.text(*centre, model.state_name(state), ha="center", va="center", fontsize=11, zorder=4)
        axes.text(centre[0], centre[1] - RADIUS - 0.2, _costs(model, state), ha="center", va="top", fontsize=8)
    axes.set(xlim=(-2.0, 4.4), ylim=(-1.6, 1.6), aspect="equal", title="Example 1")
    axes.axis("off")


def moves_of(model: CMDP) -> list[Move]:
    """Return the transitions of a model; actions of a state with the same probabilities share theirs.

    >>> [(m.state, m.actions, m.target, round(m.probability, 3)) for m in moves_of(counterexample())]
    [(0, (0,), 0, 1.0), (0, (1,), 0, 0.1), (0, (1,), 1, 0.9), (1, (0, 1), 0, 1.0)]
    """
    rows = model.transition.toarray().reshape(model.n_states, model.n_actions, model.n_states)
    found = []
    for state, of_state in enumerate(rows):
        alike = [tuple(a for a, row in enumerate(of_state) if np.array_equal(row, first)) for first in of_state]
        for actions in dict.fromkeys(alike):
            row = of_state[actions[0]]
            found += [Move(state, actions, int(target), float(row[target])) for target in np.flatnonzero(row)]
    return found


def _label(model: CMDP, move: Move) -> str:
    names = " or ".join(model.action_name(action) for action in move.actions)
    value = f"{move.probability:.4g}"
    if move.probability < 1:
        value = rf"$\theta$ = {value}" if move.target != move.state else rf"$1 - \theta$ = {value}"
    return f"{names}: {value}"


def _costs(model: CMDP, state: int) -> str:
    """Return the reward and the cost of a state, for every action if they differ."""
    lines = []
    for name, sign, costs in zip(model.cost_names, model.names.signs, model.costs[:, state], strict=True):
        values = dict.fromkeys(f"{sign * cost + 0.0:g}" for cost in costs)
        lines.append(f"{name} {' or '.join(values)}")
    return "\n".join(lines)


def _draw_arrow(axes: Axes, move: Move, label: str) -> None:
    first = "first" if move.actions[0] == 0 else "other"
    arc = ARCS[first if move.target == move.state else "there" if move.target > move.state else "back"]
    colour = COLOURS[move.actions[0]] if len(move.actions) == 1 else GREY
    begin, end = _on_circle(move.state, arc.begin), _on_circle(move.target, arc.end)
    axes.add_patch(
        FancyArrowPatch(
            begin, end, connectionstyle=f"arc3,rad={arc.bend}", arrowstyle="-|>", mutation_scale=11, color=colour,
            lw=1.5, shrinkA=0, shrinkB=0, zorder=2,
        )
    )  # fmt: skip
    (x, y), (right, up) = CENTRES[move.state], arc.label
    axes.text(x + right, y + up, label, color=colour, fontsize=9, ha="center", va="center")


def _on_circle(state: int, degrees: float) -> tuple[float, float]:
    """Return the point at an angle on the circle of a state."""
    angle, (x, y) = math.radians(degrees), CENTRES[state]
    return x + RADIUS * math.cos(angle), y + RADIUS * math.sin(angle)
