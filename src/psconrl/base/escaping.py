"""Escaping of text from outside for output: to a terminal, to messages, to tables and to pictures."""

import re
import unicodedata
from typing import Any

MOST_QUOTED = 200  # characters of a value in a message
# First characters of what a spreadsheet takes for a formula; some take the wide forms of East Asian text, too.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Characters with a meaning in Markdown, in some of its dialects or in the HTML that it may hold. Within a word
# underscores have none.
MARKDOWN = re.compile(r"[\\`*\[\]<>&|$~]|(?<![^\W_])_|_(?![^\W_])")
# Characters that are special in LaTeX, and their escapes.
LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}",
}  # fmt: skip


def printable(text: str) -> str:
    """Replace every control character of a text by a visible symbol; line ends stay.

    >>> printable("a\x1b[2Jb\u202ec")
    'a␛[2Jb�c'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def quoted(value: Any) -> str:
    """Return a value from outside for a message: as Python writes it, on one line, in a bounded number of characters.

    >>> print(quoted("two\\nlines"), quoted([1, 2]), len(quoted("x" * 10_000)))
    'two\\nlines' [1, 2] 200
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or a list within itself
        text = f"a value of type {type(value).__name__}"
    return shortened(text if isinstance(value, str) else " ".join(text.split()), MOST_QUOTED)


def shortened(text: str, most: int) -> str:
    """Return a text of at most some length: if it is longer, its beginning and the last fifth.

    >>> shortened("0123456789", 9)
    '0123456…9'
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


def markdown_text(text: str) -> str:
    """Return text for a line of Markdown, such as a cell of a table: special characters become character references.

    All renderers know these, whereas each knows other characters that a backslash escapes.

    >>> markdown_text("a|b <i> [x](y) own_agent"), markdown_text("__init__")
    ('a&#124;b &#60;i&#62; &#91;x&#93;(y) own_agent', '&#95;&#95;init&#95;&#95;')
    """
    return MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", printable(" ".join(text.split())))


def latex_text(text: str) -> str:
    r"""Return text for a line of LaTeX.

    >>> latex_text("R&D_2 [50%]")
    'R\\&D\\_2 [50\\%]'
    """
    escaped = "".join(LATEX.get(character, character) for character in printable(" ".join(text.split())))
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped  # after \\ they would start an argument


def xml_text(text: str) -> str:
    """Replace the control characters of an XML document, which may hold none, by visible symbols.

    >>> xml_text("<text>a\x1b[2J</text>")
    '<text>a␛[2J</text>'
    """
    return re.sub(r"[^\t\n\r -~]", lambda found: printable(found[0]), text)
