"""Checksums of what is stored, SHA-256 of values, each with its type and its length; the error if one does not hold.

They detect accidents: a flipped digit, a lost row, an edit by hand. They do not detect forgery, since anyone can
calculate the checksum of what they have changed. ``results_check`` compares those of a results file with its values.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from psconrl.errors import StoreError

MOST_CHANGES_NAMED = 3  # changed parts in one message
_MODULUS = 2**256
# How the numbers of a table are packed, by type; nothing is a zero byte.
_PACKED = {int: "q", float: "d", type(None): "x"}


def checksum(values: Iterable[Any]) -> str:
    """Return the checksum of numbers, texts, bytes, None, and lists of rows of numbers.

    >>> checksum(["ab", "c"]) == checksum(["a", "bc"])
    False
    >>> checksum([1]) == checksum([1.0])
    False
    """
    digest = hashlib.sha256()
    for value in values:
        kind, content = _encoded(value)
        digest.update(f"{kind} {len(content)} ".encode() + content)
    return digest.hexdigest()


def sum_of(rows: Iterable[Sequence[Any]], before: str = "") -> str:
    """Return the sum of the checksums of rows, added to an earlier sum.

    It does not depend on the order, so that it is kept up to date row by row.

    >>> sum_of([("a", 1), ("b", 2)]) == sum_of([("a", 1)], sum_of([("b", 2)]))
    True
    """
    return _shifted(before, sum(int(checksum(row), 16) for row in rows))


def difference_of(rows: Iterable[Sequence[Any]], before: str = "") -> str:
    """Return a sum of checksums without those of some rows.

    >>> difference_of([("a", 1)], sum_of([("a", 1), ("b", 2)])) == sum_of([("b", 2)])
    True
    """
    return _shifted(before, -sum(int(checksum(row), 16) for row in rows))


def changes_named(parts: Sequence[str]) -> str:
    """Name parts that were changed: some of them, if there are many."""
    more = len(parts) - MOST_CHANGES_NAMED
    return "; ".join(parts[:MOST_CHANGES_NAMED]) + (f"; and {more} more" if more > 0 else "")


def changed_error(path: Path, parts: Sequence[str], remedy: str) -> StoreError:
    """Return the error of a file of which some parts are not as they were written."""
    return StoreError(
        f"{path}: was changed since it was written: {changes_named(parts)}. {remedy}, or take an older copy"
    )


def _shifted(before: str, change: int) -> str:
    try:
        start = int(before or "0", 16)
    except ValueError:  # the sum itself was changed, and stays wrong
        start = 0
    return f"{(start + change) % _MODULUS:064x}"


def _encoded(value: Any) -> tuple[str, bytes]:
    if value is None:
        return "none", b""
    if isinstance(value, int):
        return "int", str(value).encode()
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    if isinstance(value, str):
        return "text", value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return "bytes", value
    return _table(list(chain.from_iterable(value)))


def _table(values: list[Any]) -> tuple[str, bytes]:
    try:
        form = "".join([_PACKED[type(value)] for value in values])
    except KeyError:  # text or bytes in place of a number
        return "others", checksum(values).encode()
    return "numbers", form.encode() + struct.pack(f"<{form}", *[value for value in values if value is not None])
