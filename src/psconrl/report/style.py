"""Colours, dashes and markers of agents, in figures and on the page.

Colours are Okabe and Ito's colour-blind safe palette, with the yellow darkened and a brown added. Any two agents differ
in dash or marker, so that they differ in greyscale. The first agents of the paper's environments and of the leaderboard
have different markers, as far as they have any. Dashes also distinguish agents of similar colours: two blues never
have the same dash. An agent of the library looks the same in every figure. The page, whose curves can be picked out
with the mouse, has no markers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from psconrl.learning.registry import title_of

BLUE, ORANGE, GREEN, GREY, PURPLE = "#0072B2", "#D55E00", "#009E73", "#7F7F7F", "#CC79A7"
AMBER, SKY, BLACK, OLIVE, BROWN = "#E69F00", "#56B4E9", "#000000", "#B3A100", "#7B4B2A"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, AMBER, BLACK, SKY, GREY, OLIVE, BROWN)
# Colours of agents that are not in the library.
OTHERS = ("#5B2A86", "#B0004E", "#00605A", "#8C6BB1", "#3F5300")
# Lengths of dashes and gaps, in line widths; empty is a solid line.
SOLID: tuple[float, ...] = ()
LONG, SHORT, LONG_SHORT, LONG_DOTS = (6, 2), (2, 1.5), (8, 2, 2, 2), (4, 1.5, 1, 1.5, 1, 1.5)
DASHES: tuple[tuple[float, ...], ...] = (SOLID, LONG, SHORT, LONG_SHORT, LONG_DOTS)
# Names in Matplotlib; empty is no marker. Agents of the library and others have different ones.
MARKERS = ("", "o", "s", "^", "v", "D", "*")
OTHER_MARKERS = ("P", "X", "<", ">", "h", "d")
MARKER_SIZE = 3.5  # points


@dataclass(frozen=True)
class Look:
    """A colour, a dash and a marker."""

    colour: str
    dash: tuple[float, ...]
    marker: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """Keyword arguments for Matplotlib, without the marker."""
        return {"color": self.colour, "ls": (0, self.dash) if self.dash else "-"}

    @property
    def marked_line(self) -> dict[str, Any]:
        """Keyword arguments for Matplotlib, with the marker."""
        return self.line | {"marker": self.marker, "ms": MARKER_SIZE, "mew": 0.6}


UNKNOWN = Look(GREY, LONG)
LOOKS = {
    "psconrl": Look(BLUE, SOLID),
    "psconrl-paper": Look(GREEN, SHORT),
    "psconrl-plain": Look(PURPLE, LONG_SHORT),
    "psconrl-repaying": Look(PURPLE, SOLID, "o"),
    "psconrl-published": Look(AMBER, LONG_DOTS),
    "psconrl-published-2023": Look(PURPLE, SHORT, "^"),
    "psconrl-covered": Look(BLUE, SHORT, "v"),
    "psconrl-same-prior": Look(PURPLE, LONG, "s"),
    "psconrl-account": Look(PURPLE, LONG_DOTS, "*"),
    "cmdp-psrl": Look(SKY, LONG_DOTS, "D"),
    "ps-curl": Look(GREEN, LONG, "^"),
    "uc-curl": Look(ORANGE, LONG_SHORT, "v"),
    "c-ucrl": Look(BLACK, LONG),
    "safe": Look(SKY, LONG_SHORT, "D"),
    "ucrl-cmdp": Look(GREY, SHORT, "s"),
    "tilted": Look(OLIVE, SHORT, "D"),
    "fha": Look(OLIVE, LONG_SHORT, "*"),
    "span-fha": Look(OLIVE, SOLID, "s"),
    "sa-cvi-ucb": Look(GREEN, SOLID, "^"),
    "pd-lscvi-ucb": Look(GREEN, LONG_DOTS, "v"),
    "pd-lsvi-ucb": Look(OLIVE, LONG, "v"),
    "po-cmdp": Look(BROWN, LONG_SHORT, "o"),
    "pdnac": Look(ORANGE, SOLID, "v"),
    "lagrangian": Look(BROWN, LONG_DOTS, "o"),
    "lagrangian-published": Look(BROWN, LONG, "D"),
    "lagrangian-theorem": Look(ORANGE, LONG, "o"),
    "triple-qa": Look(BLACK, LONG_DOTS, "s"),
    "tsde": Look(BLACK, SHORT, "*"),
    "ucrl2": Look(BLACK, SOLID, "D"),
    "pmevi-dt": Look(BLACK, LONG_SHORT, "s"),
    "uniform": Look(GREY, SOLID, "*"),
    "resampling-psconrl": Look(BLUE, LONG, "*"),
    "resampling-cmdp-psrl": Look(ORANGE, SHORT, "o"),
}
BY_TITLE = {title_of(label): look for label, look in LOOKS.items()}


def looks_of(labels: Iterable[str]) -> dict[str, Look]:
    """Return the look of every agent of a results file, given by label or title.

    Unknown agents get theirs in the order of the file. Give all agents of the file, not only those to be drawn, so that
    an agent looks the same in every figure.

    >>> looks_of(["mine", "psconrl"])["psconrl"] == LOOKS["psconrl"]
    True
    """
    known, others = BY_TITLE | LOOKS, count()
    return {
        label: known[label] if label in known else nth_look(next(others), OTHERS, OTHER_MARKERS)
        for label in dict.fromkeys(labels)
    }


def nth_look(k: int, colours: tuple[str, ...] = PALETTE, markers: tuple[str, ...] = MARKERS) -> Look:
    """Return the look of the k-th item that is not an agent of the library; looks repeat only after many items."""
    turn = k // len(colours)
    marker = markers[k // len(DASHES) % len(markers)]
    return Look(colours[k % len(colours)], DASHES[(k + turn) % len(DASHES)], marker)
