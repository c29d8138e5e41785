"""Positions of states on a map, so that a policy can be drawn as arrows."""

import re
from dataclasses import dataclass

from psconrl.base.arrays import Ints
from psconrl.errors import ModelError


@dataclass(frozen=True)
class GridLayout:
    """A map and the cell of every state.

    Several states may share a cell, as in Box, where a state is the agent's cell and the box's cell. Then ``layers``
    names what distinguishes them, and a picture shows one map per layer.
    """

    rows: tuple[str, ...]
    cells: tuple[tuple[int, int], ...]
    layers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        height, width = len(self.rows), len(self.rows[0]) if self.rows else 0
        if any(len(row) != width for row in self.rows):
            raise ModelError(f"layout rows must be equally long, {width} cells like the first")
        for i, j in self.cells:
            if not (0 <= i < height and 0 <= j < width):
                raise ModelError(f"layout cell ({i}, {j}) must lie on the map of {height} x {width} cells")
        if self.layers is not None and len(self.layers) != len(self.cells):
            raise ModelError(f"layout must have one layer per cell, {len(self.cells)}; got {len(self.layers)}")

    def moved(self, state: int) -> tuple[int, int] | None:
        """Return the cell of a second object, such as the box, if the state's layer names one: ``"box at (3,1)"``."""
        found = re.search(r"\((\d+), ?(\d+)\)", self.layers[state]) if self.layers else None
        return (int(found[1]), int(found[2])) if found else None

    def restricted(self, states: Ints) -> "GridLayout":
        """Return the layout of a subset of the states."""
        layers = tuple(self.layers[s] for s in states) if self.layers else None
        return GridLayout(self.rows, tuple(self.cells[s] for s in states), layers)
