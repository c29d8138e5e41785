"""Gridworlds from text maps, as continuing tasks; those of the paper are in the folder ``maps``.

Cells: ``.`` free, ``S`` start, ``G`` goal, ``R`` risky, ``#`` wall; every map is walled in. Actions: up, down, left,
right; a move into a wall leaves the agent where it is. Every step costs 1, except that any action in the goal costs 0
and leads back to the start: the average cost is one minus the rate of arrivals. Entering a risky cell costs 1 of
``risk``, whose long-run average is constrained by the threshold.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError
from psconrl.model.cmdp import CMDP
from psconrl.model.layout import GridLayout

Cell = tuple[int, int]
State = TypeVar("State")

ACTIONS = ("up", "down", "left", "right")
MOVES: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))


def parse_map(text: str | Iterable[str], symbols: str) -> tuple[str, ...]:
    """Return the rows of a map without blanks, checked for shape, symbols, and exactly one start, goal and box.

    >>> parse_map("S . G", symbols=".SG")
    ('S.G',)
    """
    lines = text.splitlines() if isinstance(text, str) else list(text)
    rows = tuple("".join(line.split()) for line in lines if line.strip())
    if not rows:
        raise ModelError("map is empty")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ModelError(f"map row {i} must have {len(rows[0])} cells like the first; got {len(row)}")
        for j, symbol in enumerate(row):
            if symbol not in symbols:
                raise ModelError(f"map cell ({i}, {j}) must be one of {' '.join(symbols)}; got {quoted(symbol)}")
    for symbol, name in (("S", "start"), ("G", "goal"), ("B", "box")):
        if symbol in symbols and "".join(rows).count(symbol) != 1:
            raise ModelError(f"map must have exactly one {name} {quoted(symbol)}; got {''.join(rows).count(symbol)}")
    return rows


def find_symbol(rows: Sequence[str], symbol: str) -> Cell:
    """Return the cell of a symbol that occurs once."""
    return next((i, row.index(symbol)) for i, row in enumerate(rows) if symbol in row)


def free(rows: Sequence[str], cell: Cell) -> bool:
    """True if the cell is inside the map and not a wall."""
    i, j = cell
    return 0 <= i < len(rows) and 0 <= j < len(rows[0]) and rows[i][j] != "#"


def add(cell: Cell, move: Cell) -> Cell:
    """Return the neighbouring cell in the direction of a move."""
    return cell[0] + move[0], cell[1] + move[1]


def reachable_from(start: State, step: Callable[[State, int], State]) -> list[State]:
    """Return all states reachable from the start under a deterministic step, in order of discovery."""
    found = [start]
    known = {start}
    for state in found:
        for a in range(len(MOVES)):
            successor = step(state, a)
            if successor not in known:
                known.add(successor)
                found.append(successor)
    return found


def slippery(successors: Ints, slip: float) -> Floats:
    """Return transitions (S, A, S) in which, with probability ``slip``, a uniformly random action acts instead."""
    if not 0 <= slip <= 1:
        raise ModelError(f"slip must lie in [0, 1]; got {slip}")
    S, A = successors.shape
    P = np.zeros((S, A, S))
    states = np.arange(S)
    for a in range(A):
        P[states, a, successors[:, a]] += 1.0 - slip
        for b in range(A):
            P[states, a, successors[:, b]] += slip / A
    return P


def gridworld(map: str | Iterable[str], slip: float = 0.0, threshold: float = 1.0) -> CMDP:
    """Return a gridworld with risky cells, from a map.

    ``map``: text or lines of cells: S start, G goal, R risky, # wall, . free. States are the cells that can be reached
    from the start; every action in the goal leads back to the start. ``slip``: probability that a uniformly random
    action acts instead of the chosen one. ``threshold``: the largest allowed long-run frequency of entering a risky
    cell.

    >>> gridworld("S R G").n_states
    3
    """
    rows = parse_map(map, ".SGR#")
    start, goal = find_symbol(rows, "S"), find_symbol(rows, "G")

    def step(cell: Cell, action: int) -> Cell:
        if cell == goal:
            return start
        target = add(cell, MOVES[action])
        return target if free(rows, target) else cell

    cells = sorted(reachable_from(start, step))
    if goal not in cells:
        raise ModelError(f"the goal at {goal} cannot be reached from the start at {start}")
    index = {cell: s for s, cell in enumerate(cells)}
    successors = np.array([[index[step(cell, a)] for a in range(len(MOVES))] for cell in cells])
    S, A = successors.shape
    steps = np.ones((S, A))
    steps[index[goal]] = 0.0
    risky = np.array([rows[i][j] == "R" for i, j in cells], dtype=float)
    return CMDP(
        slippery(successors, slip),
        [steps, np.broadcast_to(risky, (S, A, S))],
        [threshold],
        initial=index[start],
        state_names=[f"({i},{j})" for i, j in cells],
        action_names=ACTIONS,
        cost_names=("steps", "risk"),
        layout=GridLayout(rows, tuple(cells)),
    )
