"""Arrays of an ``.npz`` file, with size checks before anything is unpacked. Never uses pickle."""

import math
import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from psconrl.caps import need
from psconrl.errors import PsconrlError


class Archive:
    """Arrays by name, each unpacked on first access."""

    def __init__(self, f: IO[bytes], error: type[PsconrlError]) -> None:
        self._zip = zipfile.ZipFile(f)
        self._error = error
        # The directory bounds the memory that is ever unpacked, whatever the file contains.
        need(sum(member.file_size for member in self._zip.infolist()), "what it unpacks to", error)
        self._names = {member.filename: member for member in self._zip.infolist()}
        self._unpacked: dict[str, Any] = {}  # cached: repeated access takes no more memory

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._names

    def __getitem__(self, name: str) -> Any:
        if name not in self._unpacked:
            self._unpacked[name] = self._read(name)
        return self._unpacked[name]

    def _read(self, name: str) -> Any:
        member = self._names[f"{name}.npy"]
        shape, dtype, start = self._header(member)
        if dtype.hasobject:
            raise ValueError("objects are pickled, and never read")
        if math.prod(shape) * dtype.itemsize != member.file_size - start:
            raise self._error(f"{name!r} claims to have shape {shape}, for which it is not long enough")
        with self._zip.open(member) as f:
            return npy.read_array(f, allow_pickle=False)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array without unpacking it."""
        return self._header(self._names[f"{name}.npy"])[0]

    def _header(self, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype[Any], int]:
        with self._zip.open(member) as f:
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(f)]
            shape, _, dtype = read(f)
            return shape, dtype, f.tell()
