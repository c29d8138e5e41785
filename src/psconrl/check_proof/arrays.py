"""Arrays of numbers from ``.npz`` files, without NumPy, and from nested lists in JSON.

Sizes are compared with one another and with the length of the file before an array is unpacked; see
``psconrl.model.archive``, whose rules these are.
"""

import ast
import math
import os
import sys
import zipfile
from array import array
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from .errors import BadInputError, shown

KINDS = {"<f8": "d", "<i8": "q", "<i4": "i", "|b1": "B"}
DEFLATED_MOST, STREAM_BYTES = 1032, 64  # bytes that one byte of a deflate stream, and an empty one, can stand for
LONGEST_HEADER = 10_000
CHUNK = 2**20  # bytes
MEMORY = "PSCONRL_MEMORY_GB"
DEEPEST_LIST = 3  # of nested lists


def need_memory(size: float, what: str) -> None:
    """Refuse what takes more than 1 GB, or the number of gigabytes in the environment variable ``MEMORY``."""
    try:
        allowed = float(os.environ.get(MEMORY) or 1.0)
    except ValueError:
        allowed = math.nan
    if not allowed > 0:
        raise BadInputError(f"{MEMORY} must be a positive number of gigabytes")
    if size > 1e9 * allowed:
        raise BadInputError(f"{what} takes {size / 1e9:.3g} GB, more than {allowed:g} GB; set {MEMORY} to allow it")


class Header(NamedTuple):
    """What the file says about an array."""

    shape: tuple[int, ...]
    kind: str
    begin: int  # where its numbers begin


class Arrays:
    """The arrays of an open ``.npz`` file."""

    def __init__(self, f: IO[bytes]) -> None:
        self.zip = zipfile.ZipFile(f)
        members = self.zip.infolist()
        self.members = {member.filename: member for member in members}
        if len(self.members) < len(members):
            raise BadInputError("two of its arrays have the same name")
        for member in members:
            packed, full = member.compress_size, member.file_size
            stored = member.compress_type == zipfile.ZIP_STORED and full == packed
            deflated = member.compress_type == zipfile.ZIP_DEFLATED and full <= DEFLATED_MOST * (packed + STREAM_BYTES)
            if not (stored or deflated):
                raise BadInputError(f"{shown(member.filename)} claims a size to which it cannot unpack")
            self.zip.open(member).close()  # an error if it has another name there
        if sum(member.compress_size for member in members) > f.seek(0, os.SEEK_END):
            raise BadInputError("the directory claims more than the length of the file")
        self.total = sum(member.file_size for member in members)
        need_memory(self.total, "what it unpacks to")

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self.members

    def member(self, name: str) -> zipfile.ZipInfo:
        """Return the entry of an array in the directory."""
        if name not in self:
            raise BadInputError(f"{name!r} is missing")
        return self.members[f"{name}.npy"]

    def header(self, name: str) -> Header:
        """Return shape and kind of an array, after checking that the array is as long as it claims."""
        member = self.member(name)
        with self.zip.open(member) as f:
            start = f.read(8)
            wide = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}.get(start)
            if wide is None:
                raise BadInputError(f"{name!r} is no array")
            length = int.from_bytes(f.read(wide), "little")
            if length > LONGEST_HEADER:
                raise BadInputError(f"{name!r} has a header of {length:,} bytes")
            found = ast.literal_eval(f.read(length).decode("latin1"))
            begin = f.tell()
        if not isinstance(found, dict) or found.keys() != {"descr", "fortran_order", "shape"}:
            raise BadInputError(f"{name!r} has no header of an array")
        shape, kind = found["shape"], found["descr"]
        if not isinstance(shape, tuple) or not all(type(n) is int for n in shape) or not isinstance(kind, str):
            raise BadInputError(f"{name!r} claims a shape that is none")
        if found["fortran_order"] is not False:
            raise BadInputError(f"{name!r} must be stored row by row")
        size = 4 * int(kind[2:]) if kind.startswith("<U") and kind[2:].isdecimal() else int(kind[2:3] or 0)
        if kind not in KINDS and not kind.startswith("<U"):
            raise BadInputError(f"{name!r}: numbers of type {shown(kind)} are not read")
        if min(shape, default=0) < 0 or math.prod(shape) * size != member.file_size - begin:
            raise BadInputError(f"{name!r} claims to have shape {shown(list(shape))}, for which it is not long enough")
        if max(shape, default=0) > self.total:
            raise BadInputError(f"{name!r} claims to have shape {shown(list(shape))}")
        return Header(shape, kind, begin)

    def chunks(self, name: str, kinds: tuple[str, ...]) -> Iterator[Any]:
        """Yield the numbers of an array in arrays of bounded length."""
        header = self.header(name)
        if header.kind not in kinds:
            raise BadInputError(f"{name!r} must have numbers of type {' or '.join(kinds)}; got {header.kind}")
        with self.zip.open(self.member(name)) as f:
            f.read(header.begin)
            while content := f.read(CHUNK):
                while len(content) % 8 and (more := f.read(8 - len(content) % 8)):
                    content += more
                values = array(KINDS[header.kind], content)
                if sys.byteorder == "big":
                    values.byteswap()
                yield values

    def numbers(self, name: str, *kinds: str) -> Any:
        """Return the numbers of an array."""
        result = array(KINDS[kinds[-1]])
        for values in self.chunks(name, kinds):
            result.extend(values if values.typecode == result.typecode else array(result.typecode, values))
        return result

    def text(self, name: str) -> str:
        """Return an array that is one text."""
        header = self.header(name)
        if header.shape != () or not header.kind.startswith("<U"):
            raise BadInputError(f"{name!r} must be one text")
        need_memory(7 * self.member(name).file_size, "its text")
        return self.zip.read(self.member(name))[header.begin :].decode("utf-32-le").rstrip("\0")


class NumberTable(NamedTuple):
    """Numbers of a nested list with equal rows."""

    shape: tuple[int, ...]
    values: Any  # array of doubles


def table(given: Any, what: str) -> NumberTable:
    """Return a nested list of numbers as a table; a number alone has shape ()."""
    shape: list[int] = []
    level = given
    while isinstance(level, list) and len(shape) <= DEEPEST_LIST:
        shape.append(len(level))
        level = level[0] if level else None
    values = array("d")
    _collect(given, shape, values, what)
    return NumberTable(tuple(shape), values)


def _collect(given: Any, shape: list[int], values: Any, what: str) -> None:
    """Append the numbers of a nested list of a given shape."""
    if not shape:
        if type(given) not in (int, float, bool):
            raise BadInputError(f"{what} must hold numbers; got {shown(given)}")
        values.append(float(given))
        return
    if not isinstance(given, list) or len(given) != shape[0]:
        raise BadInputError(f"{what} must have equal rows")
    for row in given:
        _collect(row, shape[1:], values, what)
