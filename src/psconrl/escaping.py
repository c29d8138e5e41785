"""Escaping of text from outside for output: to a terminal, and to a table that a spreadsheet may open."""

import unicodedata
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of what a spreadsheet takes for a formula


def printable(text: str) -> str:
    """Replace every control character of a text by a visible symbol; line ends stay.

    >>> printable("a\x1b[2Jb\u202ec")
    'a␛[2Jb�c'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


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
