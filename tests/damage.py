"""Ways to damage files, for tests that a reader ends in a clear message or a result."""

import functools
import json
import sqlite3
from contextlib import closing, suppress

import numpy as np

from sweeps import changed_unnoticed

WRONG = (
    None, "", "x", -1, 0, 10**30, 1e308, -1e308, float("nan"), float("inf"), True, [], {}, [[]], [None], ["x"],
    {"a": 1}, [1, 2, 3, 4, 5], [[1, 2], [3]], "\ud800", "\x1b[2J", "=1", {"0": 0}, 2**63, 0.5,
)  # fmt: skip
TABLES = ("meta", "experiments", "runs", "checkpoints", "probes")


def bytes_flipped(content, rng):
    """Change some bytes."""
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 30))):
        damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
    return bytes(damaged)


def cut_short(content, rng):
    """Truncate the file."""
    return content[: int(rng.integers(len(content)))]


def block_zeroed(content, rng):
    """Zero a block of bytes."""
    start = int(rng.integers(len(content)))
    length = int(rng.integers(1, 5000))
    return content[:start] + bytes(len(content[start : start + length])) + content[start + length :]


def block_moved(content, rng):
    """Overwrite a block with another."""
    here, there = (int(rng.integers(len(content))) for _ in range(2))
    piece = content[here : here + 512]
    return content[:there] + piece + content[there + len(piece) :]


def noise(content, rng):
    """Replace the content by random bytes."""
    return rng.bytes(int(rng.integers(0, 4000)))


BYTES = (bytes_flipped, cut_short, block_zeroed, block_moved, noise)


def often_unnoticed(damage):
    """Calculate the checksums of half of the results files again, so that readers meet what is wrong."""

    @functools.wraps(damage)
    def damaged(path, rng):
        damage(path, rng)
        if rng.random() < 0.5:
            with suppress(sqlite3.Error, UnicodeError):
                changed_unnoticed(path)

    return damaged


@often_unnoticed
def cell_changed(path, rng):
    """Keep a valid SQLite file and put a wrong value in one place, or in all rows of a column."""
    with closing(sqlite3.connect(path)) as db:
        table = TABLES[int(rng.integers(len(TABLES)))]
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        column = columns[int(rng.integers(len(columns)))]
        value = WRONG[int(rng.integers(len(WRONG)))]
        rows = db.execute(f"SELECT {column} FROM {table}").fetchall()
        if rng.random() < 0.5 and rows:
            old = rows[int(rng.integers(len(rows)))][0]
            where, parameters = f" WHERE {column} IS ?", (old,)
        else:
            where, parameters = "", ()
        kind = int(rng.integers(4))
        if isinstance(value, list | dict | bool) or kind == 0:
            value = json.dumps(value)
        elif kind == 1:
            value = str(value).encode("utf-8", "replace")
        elif isinstance(value, int) and abs(value) >= 2**63:
            value = float(value)
        with suppress(sqlite3.Error, UnicodeEncodeError):
            db.execute("PRAGMA ignore_check_constraints = 1")
            db.execute(f"UPDATE OR REPLACE {table} SET {column} = ?{where}", (value, *parameters))
            db.commit()


@often_unnoticed
def json_changed(path, rng):
    """Change, drop or move one value within one JSON column."""
    places = [("experiments", "facts"), ("runs", "thresholds"), ("runs", "optimum"), ("runs", "summary"),
              ("runs", "provenance"), ("runs", "job"), ("meta", "value")]  # fmt: skip
    table, column = places[int(rng.integers(len(places)))]
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        chosen = rows if rng.random() < 0.3 else [rows[int(rng.integers(len(rows)))]]
        for rowid, text in chosen:
            try:
                value = json.loads(text)
            except ValueError:
                value = text
            new = json.dumps(_mutated(value, rng))
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid))
        db.commit()


def _mutated(value, rng):
    wrong = WRONG[int(rng.integers(len(WRONG)))]
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[int(rng.integers(len(value)))]
        if rng.random() < 0.25:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: _mutated(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        k = int(rng.integers(len(value)))
        if rng.random() < 0.25:
            return value[:k] + value[k + 1 :]
        return [*value[:k], _mutated(value[k], rng), *value[k + 1 :]]
    return wrong


@often_unnoticed
def rows_deleted(path, rng):
    """Drop some or all rows of one table, or the table itself."""
    with closing(sqlite3.connect(path)) as db:
        table = TABLES[int(rng.integers(len(TABLES)))]
        choice = int(rng.integers(4))
        if choice == 0:
            db.execute(f"DROP TABLE {table}")
        elif choice == 1:
            db.execute(f"DELETE FROM {table}")
        elif table in ("checkpoints", "probes"):
            db.execute(f"DELETE FROM {table} WHERE (round * 7 + run) % 3 = ?", (int(rng.integers(3)),))
        else:
            db.execute(f"DELETE FROM {table} WHERE rowid % 3 = ?", (int(rng.integers(3)),))
        db.commit()


def members_changed(path, rng):
    """Keep a valid ``.npz`` file and put something wrong in its header or in an array."""
    with np.load(path) as members:
        arrays = dict(members)
    for _ in range(int(rng.integers(1, 3))):
        name = "header" if rng.random() < 0.5 else list(arrays)[int(rng.integers(len(arrays)))]
        if name == "header":
            arrays[name] = np.array(json.dumps(_mutated(json.loads(str(arrays[name])), rng)))
        elif rng.random() < 0.2:
            del arrays[name]
        else:
            arrays[name] = _array_changed(arrays[name], rng)
        if "header" not in arrays:
            break
    np.savez(path, **arrays)


def _array_changed(array, rng):
    choice = int(rng.integers(6))
    if np.iscomplexobj(array):  # it was changed before
        array = array.real
    if choice == 0 and array.size:
        array = array.astype(np.float64)
        array.flat[int(rng.integers(array.size))] = [np.nan, np.inf, -1.0, 1e308, 1e9, 0.5][int(rng.integers(6))]
    elif choice == 1 and array.size:
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = [0, 1, -1, 10**9][int(rng.integers(4))]
    elif choice == 2:
        array = array.ravel()[: int(rng.integers(array.size + 1))]
    elif choice == 3:
        array = array[..., None]
    elif choice == 4:
        array = np.array("x")
    else:
        with np.errstate(all="ignore"):
            array = array.astype([np.float32, np.complex128, np.int8, np.bool_, "S3"][int(rng.integers(5))])
    return array


def text_changed(path, rng):
    """Keep valid JSON and put in a wrong value."""
    value = json.loads(path.read_text())
    for _ in range(int(rng.integers(1, 3))):
        value = _mutated(value, rng)
    path.write_text(json.dumps(value))


def words_changed(path, rng):
    """Change some words of a spec, or duplicate or drop lines."""
    words = [
        "=",
        "[",
        "]",
        "{",
        "}",
        ".",
        '"',
        "-1",
        "0",
        "1e400",
        "nan",
        "true",
        "x",
        "10000000000000",
        "'",
        "\n",
        "[[a]]",
    ]
    lines = path.read_text().split("\n")
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.integers(len(lines)))
        parts = lines[k].split(" ")
        parts[int(rng.integers(len(parts)))] = words[int(rng.integers(len(words)))]
        choice = int(rng.integers(4))
        lines[k : k + 1] = [[" ".join(parts)], [], [lines[k]] * 2, [" ".join(parts)]][choice]
        lines = lines or [""]
    path.write_text("\n".join(lines))


def csv_changed(path, rng):
    """Change or drop some cells of a table, or duplicate lines."""
    lines = path.read_text().split("\n")
    for _ in range(int(rng.integers(1, 6))):
        k = int(rng.integers(len(lines)))
        cells = lines[k].split(",")
        wrong = ("", "x", "-1", "0", "nan", "inf", "1e308", "-1e308", '"', "1" + "0" * 40, "[]", "optimal", "\0")
        cells[int(rng.integers(len(cells)))] = wrong[int(rng.integers(len(wrong)))]
        lines[k : k + 1] = [[",".join(cells)], [], [lines[k]] * 2, [",".join(cells)]][int(rng.integers(4))]
        lines = lines or [""]
    path.write_text("\n".join(lines))


VALUES = {
    "log.csv": (csv_changed,),
    "results.db": (cell_changed, json_changed, rows_deleted),
    "model.npz": (members_changed,),
    "sparse.npz": (members_changed,),
    "run.npz": (members_changed,),
    "old.npz": (members_changed,),
    "planning.npz": (members_changed,),
    "foreign.npz": (members_changed,),
    "plan.npz": (members_changed,),
    "model.json": (text_changed,),
    "sparse.json": (text_changed,),
    "spec.toml": (words_changed,),
}
