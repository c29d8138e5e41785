"""Damage of results files, which are SQLite, and of text in lines: CSV, specs, ``.drn``."""

import json
import re
import sqlite3
from contextlib import closing, suppress

from damage.trees import NUMBERS, TEXTS, WRONG, tree_changed

JOURNAL = slice(18, 20)  # of the header: 2, 2 for write-ahead logging, which a database in memory cannot have
CELLS = ("", "x", "-1", "0", "nan", "inf", "1e308", "-1e308", '"', "1" + "0" * 40, "[]", "optimal", "\0", "1,1", "=1")
WORDS = (
    "=", "[", "]", "{", "}", ".", '"', "'", "\n", "-1", "0", "1e400", "nan", "true", "x", "10000000000000", "[[a]]",
    "1979-05-27", '"""', "a.b.c", "0x7fffffffffffffffffff", "[0.5, nan]", "9" * 5000,
)  # fmt: skip
ENDLESS = "WITH RECURSIVE more(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM more) SELECT k"


def _in_database(change):
    """Turn a change of an open database into one of a file."""

    def changed(content, rng):
        with closing(sqlite3.connect(":memory:")) as db:
            db.deserialize(content[: JOURNAL.start] + b"\1\1" + content[JOURNAL.stop :])
            db.execute("PRAGMA ignore_check_constraints = 1")
            db.execute("PRAGMA writable_schema = 1")
            with suppress(sqlite3.Error, OverflowError, UnicodeError):  # such as a value that the table cannot take
                change(db, rng)
            db.commit()
            damaged = db.serialize()
        return damaged[: JOURNAL.start] + content[JOURNAL] + damaged[JOURNAL.stop :]

    changed.__name__ = change.__name__
    return changed


def _table(db, rng):
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return tables[rng.integers(len(tables))]


def _column(db, table, rng):
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    return columns[rng.integers(len(columns))]


def _some_rows(db, table, column, rng):
    """Return a condition that is met by some rows, or by all."""
    rows = db.execute(f"SELECT {column} FROM {table}").fetchall()
    if not rows or rng.random() < 0.3:
        return "1", ()
    return f"{column} IS ?", rows[rng.integers(len(rows))]


@_in_database
def cell_changed(db, rng):
    """Put a wrong value in some cells of a column."""
    table = _table(db, rng)
    column = _column(db, table, rng)
    where, parameters = _some_rows(db, table, column, rng)
    value = (*NUMBERS, *TEXTS, *WRONG)[rng.integers(len(NUMBERS) + len(TEXTS) + len(WRONG))]
    if isinstance(value, list | dict | bool) or rng.random() < 0.2:
        value = json.dumps(value)
    elif rng.random() < 0.2:
        value = str(value).encode(errors="replace")
    elif isinstance(value, int) and abs(value) >= 2**63:
        value = float(value)
    db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {where}", (value, *parameters))


@_in_database
def json_of_cell_changed(db, rng):
    """Change something within the JSON of a cell, or of all cells of a column."""
    places = []
    for table in [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]:
        for row in db.execute(f"PRAGMA table_info({table})").fetchall():
            places += [
                (table, row[1], rowid, text)
                for rowid, text in _with_rowid(db, table, row[1])
                if isinstance(text, str) and text.startswith(("{", "["))
            ]
    table, column, rowid, text = places[rng.integers(len(places))]
    new = json.dumps(tree_changed(json.loads(text), rng))
    where, which = ("1", ()) if rng.random() < 0.2 else ("rowid = ?", (rowid,))
    db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (new, *which))


def _with_rowid(db, table, column):
    try:
        return db.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    except sqlite3.Error:  # a table without rowid, whose cells are numbers
        return []


@_in_database
def rows_changed(db, rng):
    """Drop or duplicate some rows."""
    table = _table(db, rng)
    column = _column(db, table, rng)
    where, parameters = _some_rows(db, table, column, rng)
    if rng.random() < 0.6:
        db.execute(f"DELETE FROM {table} WHERE {where}", parameters)
        return
    key = _column(db, table, rng)
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    chosen = ", ".join(f"{key} || '2'" if name == key else name for name in columns)
    db.execute(f"INSERT OR IGNORE INTO {table} SELECT {chosen} FROM {table} WHERE {where}", parameters)


@_in_database
def schema_changed(db, rng):
    """Drop a table or a column, replace a table by a view, add a trigger, or change types."""
    table = _table(db, rng)
    column = _column(db, table, rng)
    kind = int(rng.integers(6))
    if kind == 0:
        db.execute(f"DROP TABLE {table}")
    elif kind == 1:
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    elif kind == 2:
        db.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    elif kind == 3:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        rows = ", ".join(f"k AS {name}" for name in columns)
        endless = rng.random() < 0.5
        db.execute(f"ALTER TABLE {table} RENAME TO other")
        source = f"({ENDLESS} FROM more)" if endless else "other"
        db.execute(f"CREATE VIEW {table} AS SELECT {rows if endless else '*'} FROM {source}")
    elif kind == 4:
        db.execute(f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM runs; END")
    else:
        old = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        new = re.sub(r"TEXT|INTEGER|REAL|NOT NULL", ["BLOB", "TEXT", "REAL", ""][rng.integers(4)], old)
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (new, table))


def words_changed(content, rng):
    """Change some words, or duplicate or drop lines."""
    return _lines_changed(content, rng, " ", WORDS)


def cells_changed(content, rng):
    """Change some cells of a CSV table, or duplicate or drop lines."""
    return _lines_changed(content, rng, ",", CELLS)


def _lines_changed(content, rng, separator, choices):
    lines = content.decode(errors="surrogateescape").split("\n")
    for _ in range(int(rng.integers(1, 6))):
        k = int(rng.integers(len(lines)))
        parts = lines[k].split(separator)
        parts[rng.integers(len(parts))] = choices[rng.integers(len(choices))]
        changed = separator.join(parts)
        lines[k : k + 1] = [[changed], [], [lines[k]] * 2, [changed]][rng.integers(4)]
        lines = lines or [""]
    return "\n".join(lines).encode(errors="surrogateescape")


SQLITE = (cell_changed, cell_changed, json_of_cell_changed, json_of_cell_changed, rows_changed, schema_changed)


def simpler_database(content):
    """Yield databases with fewer rows."""
    for table in ("probes", "checkpoints", "runs", "experiments", "meta"):
        for where in ("1", "rowid % 2 = 0", "rowid % 2 = 1"):

            @_in_database
            def without(db, _, table=table, where=where):
                db.execute(f"DELETE FROM {table} WHERE {where}")
                db.commit()
                db.execute("VACUUM")

            yield without(content, None)
