"""Colours and dashes of agents, in figures and on the page.

Colours are Okabe and Ito's colour-blind safe palette, with the yellow darkened and a brown added. Dashes distinguish
agents in black-and-white print, and those of similar colours: two blues never have the same dash. An agent of the
library looks the same in every figure.
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


@dataclass(frozen=True)
class Look:
    """A colour and a dash."""

    colour: str
    dash: tuple[float, ...]

    @property
    def line(self) -> dict[str, Any]:
        """Keyword arguments for Matplotlib."""
        return {"color": self.colour, "ls": (0, self.dash) if self.dash else "-"}


UNKNOWN = Look(GREY, LONG)
LOOKS = {
    "psconrl": Look(BLUE, SOLID),
    "psconrl-paper": Look(GREEN, SHORT),
    "psconrl-plain": Look(PURPLE, LONG_SHORT),
    "psconrl-repaying": Look(PURPLE, SOLID),
    "psconrl-published": Look(AMBER, LONG_DOTS),
    "psconrl-published-2023": Look(PURPLE, SHORT),
    "psconrl-covered": Look(BLUE, SHORT),
    "psconrl-same-prior": Look(PURPLE, LONG),
    "cmdp-psrl": Look(SKY, LONG_DOTS),
    "ps-curl": Look(GREEN, LONG),
    "uc-curl": Look(ORANGE, LONG_SHORT),
    "c-ucrl": Look(BLACK, LONG),
    "safe": Look(SKY, LONG_SHORT),
    "ucrl-cmdp": Look(GREY, SHORT),
    "fha": Look(OLIVE, LONG_SHORT),
    "span-fha": Look(OLIVE, SOLID),
    "sa-cvi-ucb": Look(GREEN, SOLID),
    "pd-lscvi-ucb": Look(GREEN, LONG_DOTS),
    "pd-lsvi-ucb": Look(OLIVE, LONG),
    "po-cmdp": Look(BROWN, LONG_SHORT),
    "pdnac": Look(ORANGE, SOLID),
    "lagrangian": Look(BROWN, LONG_DOTS),
    "lagrangian-published": Look(BROWN, LONG),
    "triple-qa": Look(BLACK, LONG_DOTS),
    "tsde": Look(BLACK, SHORT),
    "ucrl2": Look(BLACK, SOLID),
    "pmevi-dt": Look(BLACK, LONG_SHORT),
    "uniform": Look(GREY, SOLID),
    "resampling-psconrl": Look(BLUE, LONG),
    "resampling-cmdp-psrl": Look(ORANGE, SHORT),
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
        label: known[label] if label in known else nth_look(next(others), OTHERS) for label in dict.fromkeys(labels)
    }


def nth_look(k: int, colours: tuple[str, ...] = PALETTE) -> Look:
    """Return the look of the k-th item that is not an agent of the library; looks repeat only after many items."""
    turn = k // len(colours)
    return Look(colours[k % len(colours)], DASHES[(k + turn) % len(DASHES)])
