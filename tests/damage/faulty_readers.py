"""Readers that fail in every way there is, for tests of the judge. Their files hold the way in words."""

import ctypes
import json
import os

import numpy as np

from damage.judging import Reader, RefusedError
from psconrl.errors import ModelError


def fail(path):
    way = path.read_bytes()
    if b"raw" in way:
        raise KeyError("no such key")
    if b"memory" in way:
        try:
            np.zeros(2 * 10**8)
        except MemoryError:
            raise ModelError("truncated or damaged") from None
    if b"time" in way:
        while True:
            pass
    if b"crash" in way:
        ctypes.string_at(0)
    if b"end" in way:
        os._exit(3)
    if b"lines" in way:
        raise ModelError("one\ntwo")
    if b"long" in way:
        raise RefusedError("x" * 10**4)
    if b"refused" in way:
        raise RefusedError("not today")


def count(path, seed):
    path.write_bytes(b"[1, 2, 3, 4]")


def numbers(path):
    """The numbers of JSON text, of which a checksum is only claimed."""
    return json.loads(path.read_bytes())


READERS = {
    reader.name: reader
    for reader in (
        Reader("faulty", ".csv", lambda path, seed: path.write_bytes(b"whole"), fail),
        Reader("careless", ".json", count, fail, numbers, None, (ValueError,)),
    )
}
