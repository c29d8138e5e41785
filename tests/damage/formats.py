"""What can be damaged in a file of each format, and how a failing file of it is made smaller."""

import json
import lzma
import tomllib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from damage import raw
from damage.archives import NPZ, UMB, simpler_npz, simpler_umb
from damage.saved_trees import saved_tree_changed
from damage.tables import SQLITE, cells_changed, simpler_database, words_changed
from damage.trees import json_changed, json_text, toml_text, tree_changed, without_parts


class Format(NamedTuple):
    """Changes that keep a file of a format valid, and ways to make it simpler."""

    changes: tuple[Callable, ...]
    simpler: Callable


def toml_changed(content, rng):
    """Keep valid TOML, and change something in it."""
    return toml_text(tree_changed(tomllib.loads(content.decode()), rng))


def packed_words_changed(content, rng):
    """Change words of a text that is packed."""
    return lzma.compress(words_changed(lzma.decompress(content), rng))


def simpler_json(content):
    """Yield simpler data."""
    yield from map(json_text, without_parts(json.loads(content)))


def simpler_toml(content):
    """Yield simpler data."""
    yield from map(toml_text, without_parts(tomllib.loads(content.decode())))


def fewer_lines(content):
    """Yield texts without a line, and without halves of long lines."""
    lines = content.split(b"\n")
    for k, line in enumerate(lines):
        yield b"\n".join(lines[:k] + lines[k + 1 :])
        if len(line) > 200:
            yield b"\n".join([*lines[:k], line[: len(line) // 2], *lines[k + 1 :]])


def fewer_packed_lines(content):
    """Yield packed texts without a line."""
    yield from map(lzma.compress, fewer_lines(lzma.decompress(content)))


FORMATS = {
    ".npz": Format((*NPZ, *(saved_tree_changed,) * 16), simpler_npz),
    ".json": Format((json_changed,), simpler_json),
    ".toml": Format((toml_changed, toml_changed, words_changed), simpler_toml),
    ".csv": Format((cells_changed,), fewer_lines),
    ".drn": Format((words_changed,), fewer_lines),
    ".drn.xz": Format((packed_words_changed,), fewer_packed_lines),
    ".umb": Format(UMB, simpler_umb),
    ".db": Format(SQLITE, simpler_database),
}
SEALED = (".npz", ".umb", ".drn.xz")  # whose checksums every change that knows the format calculates again
OF_BYTES = 0.3  # share of damage that does not know the format


class Damage(NamedTuple):
    """How a file is damaged: changes and their seeds, in their order. It can be repeated without some of them."""

    changes: tuple[tuple[str, int], ...]
    sealed: bool  # checksums are calculated again, so that the reader meets what is wrong


def drawn_damage(ending, rng) -> Damage:
    """Return random damage of a file: mostly one change, sometimes several of one sort."""
    of_bytes = bool(rng.random() < OF_BYTES)
    known = (*raw.CHANGES, raw.spliced) if of_bytes else FORMATS[ending].changes
    number = 1 if rng.random() < 0.6 else int(rng.integers(2, 5))
    names = [known[rng.integers(len(known))].__name__ for _ in range(number)]
    sealed = not of_bytes and (ending in SEALED or bool(rng.random() < 0.5))
    return Damage(tuple((name, int(rng.integers(2**32))) for name in names), sealed)


def damaged(content, other, ending, damage: Damage) -> bytes:
    """Return a damaged file; ``other``: another of the same kind. Changes that a file is too bad for are left out."""
    known = {change.__name__: change for change in (*raw.CHANGES, *FORMATS[ending].changes)}
    for name, seed in damage.changes:
        rng = np.random.default_rng(seed)
        with suppress(Exception):
            content = raw.spliced(content, other, rng) if name == "spliced" else known[name](content, rng)
    return content
