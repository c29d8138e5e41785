"""Fonts of figures for print: families, sizes, and texts wrapped to the width that they have."""

from dataclasses import dataclass
from functools import lru_cache

from matplotlib import font_manager
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from psconrl.errors import ConfigError, unknown_name

POINTS_AN_INCH = 72
# Families that come with Matplotlib, so that a figure is the same on every machine; serif is like Times.
SHIPPED_FAMILIES = {"sans": "DejaVu Sans", "serif": "STIXGeneral"}
FALLBACK_FAMILY = "DejaVu Sans"  # for signs that a font lacks, such as arrows
USUAL_SIZE, WIDE_SIZE = 8.0, 10.0  # points, for a printed page and for wider figures
WIDEST_PRINT = 7.5  # inches, the width of a printed page
LEAST_SIZE, MOST_SIZE = 4.0, 24.0  # points, that may be asked for
MEASURED_SIZE = 100.0  # points, at which texts are measured
HINTING = 1.03  # letters on a grid of pixels are at most this many times as wide as measured
BREAKS = "-_/=.,:+ "  # a long word is broken after one of these, if it can be


@dataclass(frozen=True)
class Typeface:
    """A font and its sizes in points, of the labels of axes, of ticks and legends, and of notes."""

    family: str = FALLBACK_FAMILY
    label: float = USUAL_SIZE

    @property
    def tick(self) -> float:
        """Size of ticks, legends and headings."""
        return 0.875 * self.label

    @property
    def note(self) -> float:
        """Size of notes and of the names of lines."""
        return 0.75 * self.label

    @property
    def families(self) -> list[str]:
        """The family, and the one that has the signs that it lacks."""
        return [self.family, FALLBACK_FAMILY]

    def width(self, text: str, size: float) -> float:
        """Return the width of a line of text in inches."""
        return HINTING * _measured_width(self.family, text) * size / MEASURED_SIZE / POINTS_AN_INCH

    def wrapped(self, text: str, size: float, wide: float) -> str:
        """Break a text into lines at most ``wide`` inches wide, at spaces, and within words that are wider alone.

        Numbers are never broken.
        """
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".lstrip()
            if self.width(longer, size) <= wide:
                lines[-1] = longer
            else:
                lines += self._parts(word, size, wide)
        return "\n".join(line for line in lines if line)

    def _parts(self, word: str, size: float, wide: float) -> list[str]:
        """Return a word in parts that fit."""
        if self.width(word, size) <= wide or not any(letter.isalpha() for letter in word):
            return [word]
        end = max((k for k in range(1, len(word)) if self.width(word[:k], size) <= wide), default=1)
        after = max((k for k in range(2, end + 1) if word[k - 1] in BREAKS), default=end)
        return [word[:after], *self._parts(word[after:], size, wide)]


def typeface_for(width: float, family: str | None = None, size: float | None = None) -> Typeface:
    """Return the typeface of a figure of a width in inches.

    ``family``: ``"sans"``, ``"serif"`` or a family that Matplotlib finds; ``size``: of the labels of axes, in points.
    """
    name = SHIPPED_FAMILIES.get(family or "sans", family or "")
    known = {font.name for font in font_manager.fontManager.ttflist}
    if name not in known:
        raise ConfigError("--font: " + unknown_name("font", family, [*SHIPPED_FAMILIES, *sorted(known)]))
    points = (USUAL_SIZE if width <= WIDEST_PRINT else WIDE_SIZE) if size is None else size
    if not LEAST_SIZE <= points <= MOST_SIZE:
        raise ConfigError(f"--fontsize: must be from {LEAST_SIZE:g} to {MOST_SIZE:g} points; got {points:g}")
    return Typeface(name, points)


@lru_cache(maxsize=10_000)
def _measured_width(family: str, text: str) -> float:
    """Return the width of a line of text at ``MEASURED_SIZE``, in points; a formula is no formula here."""
    if not text:
        return 0.0
    font = FontProperties(family=[family, FALLBACK_FAMILY])
    # Spaces at the ends have no outline: measure between two letters.
    outlines = (TextPath((0, 0), f"|{x}|".replace("$", r"\$"), MEASURED_SIZE, font) for x in (text, ""))
    whole, letters = (outline.get_extents().width for outline in outlines)
    return float(whole - letters)
