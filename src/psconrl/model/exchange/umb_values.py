"""Binary arrays of UMB: numbers of all its types, bits, strings, and the variables of a state."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError

DEFAULT_SIZE = {
    "bool": 1, "int": 64, "uint": 64, "double": 64, "rational": 128, "string": 64,
    "int-interval": 128, "uint-interval": 128, "double-interval": 128, "rational-interval": 256,
}  # fmt: skip
PLAIN = {"double": "<f8", "int": "<i8", "uint": "<u8"}
WORD = 64  # lists of bits are padded to multiples of this


def type_of(record: Any, what: str) -> tuple[str, int]:
    """Return a type of the index, and its size in bits."""
    kind = record.get("type") if isinstance(record, Mapping) else None
    kind = "string" if kind == "String" else kind  # Storm 2.0's spelling
    if kind not in DEFAULT_SIZE:
        raise ModelError(f"index.json: the type of {what} is not known: {quoted(record)}")
    size = record.get("size", DEFAULT_SIZE[kind])
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ModelError(f"index.json: the size of {what} must be a number of bits; got {quoted(size)}")
    return kind, size


def numbers(data: memoryview, record: Any, n: int, what: str) -> Floats:
    """Return n numbers of a numeric type as doubles; fractions are rounded once."""
    kind, size = type_of(record, what)
    if kind.endswith("-interval"):
        raise ModelError(f"{what} is given by intervals; only a model with plain numbers can be planned")
    if kind in PLAIN and size == 64:
        return np.asarray(whole(data, PLAIN[kind], n, what), dtype=np.float64)
    if kind == "rational" and size % 128 == 0:
        return _fractions(data, size // 16, n, what)
    raise ModelError(f"{what} has numbers of type {quoted(kind)} and {size} bits, which cannot be read")


def whole(data: memoryview, kind: str, n: int, what: str) -> Any:
    """Return n entries of a plain type, unconverted."""
    size = np.dtype(kind).itemsize
    if len(data) != n * size:
        raise ModelError(f"{what} must have {n} entries of {size} bytes; it has {len(data)} bytes")
    return np.frombuffer(data, dtype=kind)


def _fractions(data: memoryview, half: int, n: int, what: str) -> Floats:
    """Return fractions from signed numerators and denominators of ``half`` bytes each."""
    if len(data) != 2 * half * n:
        raise ModelError(f"{what} must have {n} entries of {2 * half} bytes; it has {len(data)} bytes")
    if half == 8:
        pairs = np.frombuffer(data, dtype=[("top", "<i8"), ("bottom", "<u8")])
        if not pairs["bottom"].all():
            raise ModelError(f"{what} has a fraction whose denominator is 0")
        exact = (np.abs(pairs["top"].astype(np.float64)) < 2**53) & (pairs["bottom"] < 2**53)
        if exact.all():
            return pairs["top"].astype(np.float64) / pairs["bottom"].astype(np.float64)
    tops = (int.from_bytes(data[k : k + half], "little", signed=True) for k in range(0, len(data), 2 * half))
    bottoms = (int.from_bytes(data[k + half : k + 2 * half], "little") for k in range(0, len(data), 2 * half))
    try:
        return np.array([top / bottom for top, bottom in zip(tops, bottoms, strict=True)], dtype=np.float64)
    except (ZeroDivisionError, OverflowError):
        raise ModelError(f"{what} has a fraction that is not a finite number") from None


def bits(data: memoryview, n: int, what: str) -> Bools:
    """Return n bits; the first is the least significant bit of the first byte."""
    if len(data) != (n + WORD - 1) // WORD * (WORD // 8):
        raise ModelError(f"{what} must have {n} bits, filled up to multiples of {WORD}; it has {len(data)} bytes")
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=n, bitorder="little").astype(bool)


def packed_bits(mask: Bools) -> bytes:
    """Return a mask as bits in the format that ``bits`` reads."""
    filled = np.zeros((mask.size + WORD - 1) // WORD * WORD, dtype=bool)
    filled[: mask.size] = mask
    return np.packbits(filled, bitorder="little").tobytes()


def strings(mapping: memoryview, texts: memoryview, n: int, what: str) -> list[str]:
    """Return n strings, given their offsets in a list of bytes."""
    begins = whole(mapping, "<u8", n + 1, what)
    if begins[0] != 0 or begins[-1] != len(texts) or (begins[1:] < begins[:-1]).any():
        raise ModelError(f"{what} must rise from 0 to {len(texts)}")
    places = begins.tolist()
    try:
        return [str(texts[a:b], "utf-8") for a, b in pairwise(places)]
    except UnicodeDecodeError:
        raise ModelError(f"{what}: a string is not UTF-8") from None


def packed_strings(texts: list[str]) -> tuple[bytes, bytes]:
    """Return the offsets of strings, and their bytes."""
    encoded = [text.encode() for text in texts]
    places = np.concatenate([[0], np.cumsum([len(text) for text in encoded], dtype=np.int64)])
    return places.astype("<u8").tobytes(), b"".join(encoded)


def variables(data: memoryview, classes: Any, texts: list[str], n: int) -> list[str] | None:
    """Return a description of each of n states, "x=2, ready=true"; None if the encoding is not supported.

    A single string variable is the name itself.
    """
    if not isinstance(classes, list) or len(classes) != 1:
        return None
    parts = classes[0].get("variables", [])
    width = sum(part["padding"] if "padding" in part else type_of(part["type"], "a variable")[1] for part in parts)
    if not n or width % 8 or len(data) != n * width // 8 or any(part.get("is-optional") for part in parts):
        return None
    table = np.frombuffer(data, dtype=np.uint8).reshape(n, -1)
    shown: list[list[str]] = []
    names: list[str] = []
    begin = 0
    for part in parts:
        if "padding" in part:
            begin += part["padding"]
            continue
        kind, size = type_of(part["type"], "a variable")
        column = (
            _variable(_word(table, begin, size), kind, size, part.get("offset", 0), texts) if size <= WORD else None
        )
        if column is None:
            return None
        shown.append(column)
        names.append(str(part["name"]))
        begin += size
    if len(names) == 1 and parts[0].get("type", {}).get("type") == "string":
        return shown[0]
    varied = [k for k, column in enumerate(shown) if len(set(column)) > 1]  # drops constant variables
    chosen, columns = [names[k] for k in varied], [shown[k] for k in varied]
    return [", ".join(f"{name}={x}" for name, x in zip(chosen, row, strict=True)) for row in zip(*columns, strict=True)]


def _word(table: Any, begin: int, size: int) -> Any:
    """Return bits ``begin`` to ``begin + size`` of every row, as unsigned numbers."""
    first, last = begin // 8, (begin + size - 1) // 8
    spread = np.unpackbits(np.ascontiguousarray(table[:, first : last + 1]), axis=1, bitorder="little")
    chosen = spread[:, begin - 8 * first : begin - 8 * first + size]
    filled = np.zeros((len(table), WORD), dtype=np.uint8)
    filled[:, :size] = chosen
    return np.packbits(filled, axis=1, bitorder="little").view("<u8").ravel()


def _variable(word: Any, kind: str, size: int, offset: int, texts: list[str]) -> list[str] | None:
    if kind == "bool":
        return ["true" if x else "false" for x in word.tolist()]
    if kind == "uint":
        return [str(x + offset) for x in word.tolist()]
    if kind == "int":
        return [str((x - (1 << size) if x >> (size - 1) else x) + offset) for x in word.tolist()]
    if kind == "double":
        return [f"{x:g}" for x in word.view("<f8").tolist()]
    if kind == "string" and texts and int(word.max()) < len(texts):
        return [texts[k] for k in word.tolist()]
    return None
