"""Where the states of a grid world lie on its map, so that a policy can be drawn as arrows."""

from dataclasses import dataclass

from psconrl.arrays import Ints


@dataclass(frozen=True)
class GridLayout:
    """A map and the cell of every state.

    Several states may share a cell, as in Box, where a state is the agent's cell and the box's; then ``layers``
    names what tells them apart, and a picture shows one map a layer.
    """

    rows: tuple[str, ...]
    cells: tuple[tuple[int, int], ...]
    layers: tuple[str, ...] | None = None

    def restricted(self, states: Ints) -> "GridLayout":
        """The layout of a subset of the states."""
        layers = tuple(self.layers[s] for s in states) if self.layers else None
        return GridLayout(self.rows, tuple(self.cells[s] for s in states), layers)
