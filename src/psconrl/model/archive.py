"""Arrays of an ``.npz`` file, with size checks before anything is unpacked. Never uses pickle.

A few bytes can claim any size: in the directory of the file, in the header of an array, and in the shape of an array
without elements, whose rows take no space in the file but some memory each. So sizes are compared with one another and
with the length of the file, and only then is an array unpacked.
"""

import ast
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.errors import PsconrlError

DEFLATED_MOST = 1032  # bytes that one byte of a deflate stream can stand for (the zlib manual)
TEXT_PARSED_BYTES = 7  # bytes of memory per byte of JSON, at worst: a character takes four, and is parsed to twenty
STREAM_BYTES = 64  # of a stream of nothing, at most
LONGEST_FORMAT = 40  # characters of the name of a format that is repeated in a message
LONGEST_HEADER = 10_000  # bytes of the header of an array
KINDS_OF_NUMBERS = "biufcSU"  # of arrays that are read: numbers, bits and text


class Archive:
    """Arrays by name, each unpacked on first access."""

    def __init__(self, f: IO[bytes], error: type[PsconrlError]) -> None:
        self._zip = zipfile.ZipFile(f)
        self._error = error
        members = self._zip.infolist()
        self._names = {member.filename: member for member in members}
        if len(self._names) < len(members):
            raise error("damaged: two of its arrays have the same name")
        for member in members:
            self._check(member)
        if sum(member.compress_size for member in members) > f.seek(0, os.SEEK_END):
            raise error("damaged: the directory claims more than the length of the file")
        # The directory bounds the memory that is ever unpacked, whatever the file contains.
        self.total = sum(member.file_size for member in members)
        need(self.total, "what it unpacks to", error)
        self._unpacked: dict[str, Any] = {}  # cached: repeated access takes no more memory

    def _check(self, member: zipfile.ZipInfo) -> None:
        """Refuse a member whose claimed size does not go with its compressed size."""
        if member.compress_type == zipfile.ZIP_STORED:
            possible = member.file_size == member.compress_size
        elif member.compress_type == zipfile.ZIP_DEFLATED:
            possible = member.file_size <= DEFLATED_MOST * (member.compress_size + STREAM_BYTES)
        else:
            raise self._error(f"{quoted(member.filename)} is compressed in a way that is not read; NumPy uses deflate")
        if not possible:
            raise self._error(
                f"damaged: {quoted(member.filename)} claims {member.file_size:,} bytes, to which its "
                f"{member.compress_size:,} cannot unpack"
            )
        self._zip.open(member).close()  # an error if it has another name there: an optional array would be left out

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._names

    def __getitem__(self, name: str) -> Any:
        if name not in self._unpacked:
            self._unpacked[name] = self._read(name)
        return self._unpacked[name]

    def _read(self, name: str) -> Any:
        member = self._names[f"{name}.npy"]
        self._header(member)
        with self._zip.open(member) as f:
            return npy.read_array(f, allow_pickle=False)

    def json(self, name: str) -> Any:
        """Return the data of an array that is one text in JSON."""
        member = self._names[f"{name}.npy"]
        shape, _, dtype = self._header(member)
        if shape or not dtype.str.startswith("<U"):
            raise self._error(f"{quoted(name)} must be one text")
        need(TEXT_PARSED_BYTES * member.file_size, "its text", self._error)
        return json.loads(str(self[name]))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array without unpacking it."""
        return self._header(self._names[f"{name}.npy"])[0]

    def need_kind(self, name: str, *kinds: str) -> None:
        """Refuse an array of other numbers than those of a kind, such as ``"<f8"``, stored row by row."""
        _, by_columns, dtype = self._header(self._names[f"{name}.npy"])
        if dtype.str not in kinds or by_columns:
            order = ", stored by columns" if by_columns else ""
            raise self._error(f"{quoted(name)} must hold numbers of type {' or '.join(kinds)}; got {dtype.str}{order}")

    def other_format(self, form: str, found: object) -> PsconrlError:
        """Return the error for a file that should be of the format ``form``, and says that it is of another."""
        is_name = isinstance(found, str) and found.isprintable() and len(found) <= LONGEST_FORMAT
        return self._error(f"not a {form} file" + (f" but a {found} one" if is_name else ""))

    def _header(self, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, Any]:
        """Return shape, order and type in the header of an array that is as long as it claims, or raise an error."""
        name = member.filename.removesuffix(".npy")
        with self._zip.open(member) as f:
            stated = _stated(f)
            start = f.tell()
        shape, by_columns = stated["shape"], stated["fortran_order"]
        whole = isinstance(shape, tuple) and all(type(n) is int for n in shape) and type(by_columns) is bool
        dtype = np.dtype(stated["descr"]) if isinstance(stated["descr"], str) else np.dtype(object)
        if dtype.kind not in KINDS_OF_NUMBERS:
            raise self._error(f"{quoted(name)} must hold numbers or text; objects are pickled, and never read")
        if not whole or dtype.str != stated["descr"]:
            raise self._error(f"{quoted(name)} has a header that NumPy does not write")
        claimed = math.prod(shape) * dtype.itemsize
        # No honest array has a longer side than the whole file has bytes, even if it is empty.
        if claimed != member.file_size - start or min(shape, default=0) < 0 or max(shape, default=0) > self.total:
            raise self._error(
                f"{quoted(name)} claims to have shape {shown_shape(shape)}, for which it is not long enough"
            )
        return tuple(shape), by_columns, dtype


def _stated(f: IO[bytes]) -> dict[str, Any]:
    """Return what the header of an array states, as it is written, and leave the file where the numbers begin."""
    wide = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}[f.read(8)]
    length = int.from_bytes(f.read(wide), "little")
    found = ast.literal_eval(f.read(min(length, LONGEST_HEADER)).decode("latin1"))
    if not isinstance(found, dict) or found.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError
    return found


@contextmanager
def opened_archive(path: Path, form: str, error: type[PsconrlError]) -> Iterator[Archive]:
    """Open a file of the format ``form``; errors in reading it are of one type, and name the file."""
    try:
        with path.open("rb") as f:
            yield Archive(f, error)
    except PsconrlError as failed:
        raise error(f"{path}: {failed}") from None
    except OSError as failed:
        raise error(f"{path}: cannot be read ({failed.strerror or failed})") from None
    except Exception as failed:  # zip, zlib, the header's tokenizer, JSON and NumPy each raise their own errors
        raise error(f"{path}: truncated, or not a {form} file ({type(failed).__name__})") from None


def shown_shape(shape: tuple[int, ...]) -> str:
    """Return a shape for a message; headers may hold numbers of thousands of digits.

    >>> shown_shape((2, 3)), shown_shape((10**50,))
    ('(2, 3)', '(1e+50,)')
    """
    sides = (str(n) if abs(n) < 10**18 else f"{float(n):.3g}" if abs(n) < 10**300 else "more" for n in shape[:8])
    return f"({', '.join(sides)}{',' if len(shape) == 1 else ''})"
