"""The current state of a model as text or image: the map with the agent on it, or a strip of all states.

Images are drawn with NumPy; only the caption of a strip needs Matplotlib, without a display, once per state.
"""

from functools import lru_cache
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from psconrl.base.extras import need_matplotlib
from psconrl.model.cmdp import CMDP

Image = NDArray[np.uint8]

CELL = 24  # pixels
STRIP = 40  # most cells; with more states, neighbours share one
CAPTION = 26  # pixels
FLOOR = (236, 236, 230)
COLOURS = {"#": (58, 62, 70), "S": (178, 204, 232), "G": (150, 206, 150), "R": (236, 158, 140)}
AGENT = (34, 68, 150)
BOX = (150, 104, 60)


def as_text(cmdp: CMDP, state: int) -> str:
    """Return the map with the agent as ``@`` (and the box as ``B``), or a strip of states, below the state's name.

    >>> import psconrl
    >>> print(as_text(psconrl.load("riverswim"), 2))
    position 2
    ..@...
    """
    if cmdp.layout is None:
        place, cells = _place(cmdp.n_states, state)
        rows = ["." * place + "@" + "." * (cells - place - 1)]
    else:
        rows = list(cmdp.layout.rows)
        for cell, symbol in ((cmdp.layout.moved(state), "B"), (cmdp.layout.cells[state], "@")):
            if cell is not None:
                i, j = cell
                rows[i] = rows[i][:j] + symbol + rows[i][j + 1 :]
    return "\n".join([cmdp.state_name(state), *rows])


def as_image(cmdp: CMDP, state: int) -> Image:
    """Return the state as an image of shape (height, width, 3)."""
    if cmdp.layout is None:
        place, cells = _place(cmdp.n_states, state)
        strip = _tiles(["." * cells])
        _draw_agent(strip, (0, place))
        width = max(strip.shape[1], 10 * CELL)
        padded = np.full((CELL, width, 3), 255, dtype=np.uint8)
        padded[:, : strip.shape[1]] = strip
        return np.vstack([_caption(cmdp.state_name(state), width), padded])
    image = _tiles(cmdp.layout.rows)
    moved = cmdp.layout.moved(state)
    if moved is not None:
        _cell(image, moved)[3:-3, 3:-3] = BOX
    _draw_agent(image, cmdp.layout.cells[state])
    return image


def _place(n_states: int, state: int) -> tuple[int, int]:
    """Return the cell of a state in a strip, and the number of cells."""
    cells = min(n_states, STRIP)
    return state * cells // n_states, cells


def _tiles(rows: "tuple[str, ...] | list[str]") -> Image:
    colours = np.array([[COLOURS.get(symbol, FLOOR) for symbol in row] for row in rows], dtype=np.uint8)
    image = colours.repeat(CELL, axis=0).repeat(CELL, axis=1)
    image[::CELL] = image[:, ::CELL] = 255  # lines between the cells
    return image


def _cell(image: Image, cell: tuple[int, int]) -> Image:
    i, j = cell
    return image[i * CELL + 1 : (i + 1) * CELL, j * CELL + 1 : (j + 1) * CELL]


def _draw_agent(image: Image, cell: tuple[int, int]) -> None:
    tile = _cell(image, cell)
    y, x = np.ogrid[: tile.shape[0], : tile.shape[1]]
    middle = (CELL - 2) / 2
    tile[(y - middle) ** 2 + (x - middle) ** 2 <= (0.36 * CELL) ** 2] = AGENT


@lru_cache(maxsize=4096)
def _caption(text: str, width: int) -> Image:
    need_matplotlib("the picture of an environment")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 100, CAPTION / 100), dpi=100, facecolor="white")
    most = width // 7
    figure.text(0.01, 0.3, text if len(text) <= most else text[: most - 1] + "…", fontsize=9, parse_math=False)
    pixels = BytesIO()
    figure.savefig(pixels, format="rgba", dpi=100)
    return np.frombuffer(pixels.getvalue(), dtype=np.uint8).reshape(CAPTION, width, 4)[..., :3]
