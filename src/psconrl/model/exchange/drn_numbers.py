"""Numbers in the text of a ``.drn`` file: decimals, fractions such as ``1/3``, placeholders and indices."""

from collections.abc import Callable, Sequence

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError


def number_reader(placeholders: dict[str, str]) -> Callable[[str], float]:
    """Return a parser for numbers that are not plain."""
    known: dict[str, float] = {}

    def read(text: str) -> float:
        text = text.strip()
        if text not in known:
            known[text] = _fraction(placeholders.get(text, text))
        return known[text]

    return read


def _fraction(text: str) -> float:
    top, slash, bottom = text.partition("/")
    try:
        if slash:
            return int(top) / int(bottom)
        return float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        kind = " but an interval" if text.startswith(("[", "(")) and "," in text else ""
        raise ModelError(f"{quoted(text[:60])} is not a number{kind}") from None


def floats_of(texts: Sequence[str], number: Callable[[str], float]) -> Floats:
    """Return numbers; ``number`` parses those that are not plain."""
    try:
        return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    except ValueError:
        return np.array([number(text) for text in texts])


def indices_of(texts: Sequence[str]) -> Ints:
    """Return numbers of states."""
    try:
        return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
    except (ValueError, OverflowError):
        wrong = next(text for text in texts if not text.strip().isdecimal() or int(text) >= 2**63)
        raise ModelError(f"{quoted(wrong.strip()[:60])} is not the number of a state") from None
