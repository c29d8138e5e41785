"""Colours and dashes that everybody can tell apart, in print too: Okabe and Ito's, the yellow darkened; many dashes."""

from collections.abc import Iterable
from typing import Any

from psconrl.learning.registry import RECIPES

BLUE, ORANGE, GREEN, GREY, PURPLE = "#0072B2", "#D55E00", "#009E73", "#7F7F7F", "#CC79A7"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000", GREY, "#B3A100", "#7B4B2A")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (8, 2, 2, 2)), (0, (4, 1.5, 1, 1.5, 1, 1.5)))

# Names in pictures of labels that are no agents: those of the shipped specs. Agents have theirs in the registry.
TITLES = {
    "resampling-psconrl": "PSConRL",
    "resampling-cmdp-psrl": "CMDP-PSRL",
    "psconrl-learning-costs": "PSConRL, learning costs",
    "psconrl-unbooked": "PSConRL, no ledger",
    "psconrl-same-prior": "PSConRL, no ledger",
}


def title_of(label: str) -> str:
    """What to call an agent in a legend, where $ and a leading _ mean something."""
    named = RECIPES[label].title if label in RECIPES else TITLES.get(label, label)
    plain = named.replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain


def line_styles(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and a dash for every label, the same in all panels of a figure.

    >>> line_styles(["a", "b"])["a"]["color"]
    '#0072B2'
    """
    return {
        label: {"color": PALETTE[k % len(PALETTE)], "ls": DASHES[k % len(DASHES)]}
        for k, label in enumerate(dict.fromkeys(labels))
    }
