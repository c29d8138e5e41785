"""Escaping of text from outside for output: to a terminal, to messages, and to tables and pages."""

import unicodedata
from typing import Any

MOST_QUOTED = 200  # characters of a value in a message
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of what a spreadsheet takes for a formula


def printable(text: str) -> str:
    """Replace every control character of a text by a visible symbol; line ends stay.

    >>> printable("a\x1b[2Jb\u202ec")
    'a␛[2Jb�c'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def quoted(value: Any) -> str:
    """Return a value from outside for a message: as Python writes it, on one line, in a bounded number of characters.

    >>> quoted("a\x1b[2J"), quoted([1, 2]), quoted(0.5), len(quoted("x" * 10_000))
    ("'a\\x1b[2J'", '[1, 2]', '0.5', 200)
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or a list within itself
        text = f"a value of type {type(value).__name__}"
    return shortened(text if isinstance(value, str) else " ".join(text.split()), MOST_QUOTED)


def shortened(text: str, most: int) -> str:
    """Return a text of at most some length: if it is longer, its beginning and the last fifth.

    >>> shortened("0123456789", 9)
    '0123567…9'
    """
    last = most // 5
    return text if len(text) <= most else f"{text[: most - last - 1]}…{text[-last:]}"


def _shown(character: str) -> str:
    code = ord(character)
    if character == "\n" or character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def csv_cell(value: Any) -> Any:
    """Return the value of a cell; text that a spreadsheet would run as a formula gets a leading apostrophe.

    >>> [csv_cell(v) for v in ("=cmd|' /C calc'!A0", "steps", -1.5)]
    ["'=cmd|' /C calc'!A0", 'steps', -1.5]
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
