"""How agents look, in figures and on the page: the one place with their names, colours and dashes.

Colours are Okabe and Ito's, which everybody can tell apart, the yellow darkened, and a brown; dashes tell them apart in
print. An agent of the library looks the same wherever it is drawn and whoever is drawn beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from psconrl.learning.registry import RECIPES

BLUE, ORANGE, GREEN, GREY, PURPLE = "#0072B2", "#D55E00", "#009E73", "#7F7F7F", "#CC79A7"
AMBER, SKY, BLACK, OLIVE, BROWN = "#E69F00", "#56B4E9", "#000000", "#B3A100", "#7B4B2A"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, BLACK, GREY, OLIVE, BROWN)
# Of agents that the library does not know.
OTHERS = ("#5B2A86", "#B0004E", "#00605A", "#8C6BB1", "#3F5300")
# Lengths of lines and gaps, in widths of the line; none is a line without gaps.
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
        """As Matplotlib takes them."""
        return {"color": self.colour, "ls": (0, self.dash) if self.dash else "-"}


UNKNOWN = Look(GREY, LONG)
LOOKS = {
    "psconrl": Look(BLUE, SOLID),
    "psconrl-learning-costs": Look(ORANGE, LONG),
    "psconrl-paper": Look(GREEN, SHORT),
    "psconrl-plain": Look(PURPLE, LONG_SHORT),
    "psconrl-repaying": Look(PURPLE, SOLID),
    "psconrl-published": Look(AMBER, LONG_DOTS),
    "psconrl-unbooked": Look(BLUE, SHORT),
    "psconrl-same-prior": Look(BLUE, LONG_SHORT),
    "cmdp-psrl": Look(SKY, SOLID),
    "ps-curl": Look(GREEN, LONG),
    "uc-curl": Look(ORANGE, LONG_DOTS),
    "c-ucrl": Look(BLACK, LONG),
    "safe": Look(SKY, LONG),
    "ucrl-cmdp": Look(GREY, SHORT),
    "fha": Look(OLIVE, LONG_SHORT),
    "span-fha": Look(OLIVE, SOLID),
    "sa-cvi-ucb": Look(GREEN, SOLID),
    "lagrangian": Look(BROWN, LONG_DOTS),
    "triple-qa": Look(BLACK, LONG_DOTS),
    "uniform": Look(GREY, SOLID),
    "resampling-psconrl": Look(BLUE, LONG),
    "resampling-cmdp-psrl": Look(ORANGE, SHORT),
}

# Names in pictures of labels that are no agents: those of the shipped specs. Agents have theirs in the registry.
TITLES = {
    "resampling-psconrl": "PSConRL",
    "resampling-cmdp-psrl": "CMDP-PSRL",
    "psconrl-learning-costs": "PSConRL, learning costs",
    "psconrl-unbooked": "PSConRL, no ledger",
    "psconrl-same-prior": "PSConRL, no ledger",
    "triple-qa-each": "Triple-QA, hats each",
}


def title_of(label: str) -> str:
    """What to call an agent.

    >>> title_of("c-ucrl"), title_of("mine")
    ('C-UCRL', 'mine')
    """
    return RECIPES[label].title if label in RECIPES else TITLES.get(label, label)


def looks_of(labels: Iterable[str]) -> dict[str, Look]:
    """How the agents of a results file look; those that the library does not know, in the order of the file.

    Give all labels of the file, not only those to be drawn: then an agent looks the same in every picture of it.

    >>> looks_of(["mine", "psconrl"])["psconrl"] == LOOKS["psconrl"]
    True
    """
    others = count()
    return {
        label: LOOKS[label] if label in LOOKS else nth_look(next(others), OTHERS) for label in dict.fromkeys(labels)
    }


def nth_look(k: int, colours: tuple[str, ...] = PALETTE) -> Look:
    """A look for the k-th of several things that are no agents of the library; the pairs repeat late, if at all."""
    turn = k // len(colours)
    return Look(colours[k % len(colours)], DASHES[(k + turn) % len(DASHES)])
