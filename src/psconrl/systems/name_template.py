"""Names of states and actions, made from a template: ``"{shelf} in stock"``.

A template is text in which a variable in braces stands for its value, and ``{{`` and ``}}`` for braces. A colon may be
followed by a width of at most 64 characters, for which ``<``, ``>`` and ``^`` choose the side and ``0`` fills numbers
up, and by ``.2f`` for two decimals, at most 17: ``{hour:02}``, ``{to:<6}``, ``{level:6.2f}``. What is written means
what it means to ``str.format``; nothing else may be written, so that a template cannot reach into a value or make it
long.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from numpy.typing import NDArray

from psconrl.base.caps import need
from psconrl.errors import ModelError, unknown_name

MOST_TEMPLATE = 1000  # characters
MOST_WIDTH = 64
MOST_DECIMALS = 17  # a double has no more digits
FLOAT_LENGTH = 24  # of the longest double as text, -1.7976931348623157e+308
NAME_BYTES = 96  # memory of a name in a list, without its characters
WIDEST_CHARACTER = 4  # bytes; names of ASCII take one for each

Values = Mapping[str, NDArray[Any]]  # of variables, by name

_PIECES = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<name>[^{}:]*)(?::(?P<form>[^{}]*))?\}|(?P<single>[{}])|[^{}]+")
_FORM = re.compile(r"(?:(?P<side>[<>^0])?(?P<width>[1-9][0-9]?))?(?:\.(?P<decimals>[0-9]{1,2})f)?")


class Field(NamedTuple):
    """A variable in a template, and the form of its values."""

    name: str
    form: str


class NameTemplate:
    """What the names of the combinations of some variables are made of: texts, and fields for values.

    ``values``: those of every variable. ``what``: of which names, for errors.
    """

    def __init__(self, pieces: Iterable[str | Field], values: Values, what: str) -> None:
        self._pieces, self._what = tuple(pieces), what
        texts = [piece for piece in self._pieces if isinstance(piece, str)]
        fields = [(values[piece.name], piece.form) for piece in self._pieces if isinstance(piece, Field)]
        longest = sum(map(len, texts)) + sum(_longest(shown, form) for shown, form in fields)
        is_ascii = all(map(str.isascii, texts)) and all(_is_ascii(shown) for shown, _ in fields)
        self._bytes = NAME_BYTES + longest * (1 if is_ascii else WIDEST_CHARACTER)

    @classmethod
    def plain(cls, values: Values, what: str) -> "NameTemplate":
        """Return the template of names such as "shelf=4, coming=0"."""
        texts = (f"{', ' if k else ''}{name}=" for k, name in enumerate(values))
        return cls(
            [piece for text, name in zip(texts, values, strict=True) for piece in (text, Field(name, ""))], values, what
        )

    @classmethod
    def read(cls, text: Any, values: Values, what: str) -> "NameTemplate":
        """Return the template that a text describes; raise an error that says what is wrong with it."""
        example = f"such as '{{{next(iter(values))}}}'"
        if not isinstance(text, str):
            raise ModelError(f"{what} must be a text with variables in braces, {example}; got {type(text).__name__}")
        if len(text) > MOST_TEMPLATE:
            raise ModelError(f"{what} must have at most {MOST_TEMPLATE:,} characters; got {len(text):,}")
        pieces: list[str | Field] = []
        for found in _PIECES.finditer(text):
            if found["single"]:
                raise ModelError(f"{what}: a variable stands in braces, {example}, and a brace is written twice")
            if found["name"] is None:
                pieces.append(found["brace"][0] if found["brace"] else found[0])
                continue
            if found["name"] not in values:
                raise ModelError(f"{what}: {unknown_name('variable', found['name'], values)}")
            form = found["form"] or ""
            _need_form(form, values[found["name"]], f"{what}: {found[0]}")
            pieces.append(Field(found["name"], form))
        return cls(pieces, values, what)

    def names(self, columns: Values, n: int) -> list[str]:
        """Return n names, given the values (n,) of all variables."""
        need(float(self._bytes) * n, f"a list of {n:,} {self._what}", ModelError)
        parts = (
            repeat(piece) if isinstance(piece, str) else map(format, columns[piece.name].tolist(), repeat(piece.form))
            for piece in self._pieces
        )
        return list(map("".join, zip(repeat("", n), *parts, strict=False)))


def _need_form(form: str, values: NDArray[Any], where: str) -> None:
    """Raise an error if values cannot be written in a form."""
    found = _FORM.fullmatch(form)
    if found is None or int(found["width"] or 0) > MOST_WIDTH or int(found["decimals"] or 0) > MOST_DECIMALS:
        raise ModelError(
            f"{where}: after the colon may stand <, >, ^ or 0, a width of at most {MOST_WIDTH}, and .2f for decimals, "
            f"at most {MOST_DECIMALS}"
        )
    if values.dtype.kind == "U" and (found["decimals"] or found["side"] == "0"):
        raise ModelError(f"{where}: texts have neither decimals nor leading zeros")


def _longest(values: NDArray[Any], form: str) -> int:
    """Return the length of the longest value in a form, or a bound on it."""
    if values.dtype.kind == "U":
        return max(len(format("", form)), values.dtype.itemsize // WIDEST_CHARACTER)
    ends = max(len(format(end, form)) for end in (values.min().item(), values.max().item()))
    return ends if values.dtype.kind != "f" or form.endswith("f") else max(ends, FLOAT_LENGTH)


def _is_ascii(values: NDArray[Any]) -> bool:
    return values.dtype.kind != "U" or all(map(str.isascii, values.tolist()))
