"""Tables that are no logs: each is refused in one line, within a gigabyte."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psconrl import Log, LogError
from psconrl.errors import PsconrlError

RNG = np.random.default_rng(1)
HEADER = b"state,action\n"
FILES = {
    "rubbish.csv": (RNG.integers(0, 256, 10**5, dtype=np.uint8).tobytes(), "not text in UTF-8"),
    "without zeros.csv": (RNG.integers(1, 256, 10**5, dtype=np.uint8).tobytes(), "not text in UTF-8|16 MB|column"),
    "rubbish.parquet": (RNG.integers(0, 256, 10**5, dtype=np.uint8).tobytes(), "cannot be read"),
    "rubbish.arrow": (RNG.integers(0, 256, 10**5, dtype=np.uint8).tobytes(), "cannot be read"),
    "utf16.csv": ("state,action\n1,2\n".encode("utf-16"), "it seems to be UTF-16"),
    "sheet.csv": (b"PK\x03\x04" + bytes(100), "spreadsheet"),
    "latin.csv": ("state,action\ncafé,2\nx,3\n".encode("latin-1"), "'state' is not text in UTF-8: byte 0xe9"),
    "latin header.csv": ("état,action\ncaf,2\nx,3\n".encode("latin-1"), "the header, which begins"),
    "lines in names.csv": (b'"state\n(unit)",action\n1,2\n', "unknown column 'state'"),
    "empty.csv": (b" \n", "the file is empty"),
    "header.csv": (HEADER, "no round: the table has 0 rows"),
    "one row.csv": (HEADER + b"1,2\n", "no round: the table has 1 row,"),
    "open quote.csv": (HEADER + b'1,2\n"3,4\n' + b"5,6\n" * 10_000, "line 3: a quote is opened"),
    "long line.csv": (HEADER + b"1," + b"x" * 40_000_000, "line 2 does not end within 16 MB"),
    "long label.csv": (HEADER + b"x" * 2_000 + b",1\ny,1\n", "a cell of 2,000 bytes"),
    "two names.csv": (b"state,state,action\n1,2,3\n", "two columns 'state'"),
    "columns.csv": (b",".join(b"c%d" % k for k in range(10**6)) + b"\n", "has 1,000,000 columns, more than 1,000"),
    "cut.csv.gz": (gzip.compress(HEADER + b"1,2\n" * 10_000)[:-20], "the archive is damaged"),
    "no archive.csv.gz": (HEADER + b"1,2\n", "the archive is damaged"),
    "floats.csv": (
        HEADER + b"\n".join(b"%.6f,1" % x for x in RNG.normal(size=10**5)),
        "a state needs values that recur",
    ),
    "labels.csv": (HEADER + b"\n".join(b"a%d,1" % k for k in range(250_000)), "more than 200,000 distinct values"),
    "log.xlsx": (b"PK", "a table must be a file in .csv"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path):
    content, message = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PsconrlError, match=message) as error:
        Log(path, state="state", action="action")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(path))


def test_a_header_that_claims_a_billion_rows(tmp_path):
    """The number of rows in the footer of a Parquet file of three, a zigzag number after the byte of its field."""
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "claim.parquet"
    parquet.write_table(arrow.table({"state": [1, 2, 3], "action": [1, 2, 3]}), path)
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    body, footer = whole[: -8 - size], whole[-8 - size : -8]
    claimed, value = b"", 2 * 10**9
    while value:
        claimed, value = claimed + bytes([value & 127 | (128 if value > 127 else 0)]), value >> 7
    for at in range(size - 1):
        if footer[at : at + 2] == b"\x16\x06":
            other = footer[: at + 1] + claimed + footer[at + 2 :]
            path.write_bytes(body + other + len(other).to_bytes(4, "little") + b"PAR1")
            try:
                if parquet.ParquetFile(path).metadata.num_rows == 10**9:
                    break
            except Exception:  # another field
                continue
    else:
        pytest.fail("no field for the number of rows")
    with pytest.raises(LogError, match="1,000,000,000 rows takes 16 GB, more than 1 GB"):
        Log(path, state="state", action="action")


def test_an_archive_that_unpacks_to_more_than_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setenv("PSCONRL_MEMORY_GB", "0.01")
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(HEADER + b"1,2\n" * 3_000_000))
    with pytest.raises(LogError, match=r"rows and more takes .* more than 10 MB"):
        Log(path, state="state", action="action")


def test_formulas_and_control_characters_in_labels_are_texts(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(b"state,action\n\"=cmd|' /C calc'!A0\",go\n\x1b[2Ja,@x\nb,go\n")
    log = Log(path, state="state", action="action")
    assert "=cmd|' /C calc'!A0" in log.state_labels
    with pytest.raises(LogError) as error:
        Log(path, state={"state": ["b"]}, action="action")
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"table": {"s": [0, 1], "a": [0]}}, "'a' has 1 rows, 's' 2"),
        ({"table": {"s": [[0], [1]], "a": [0, 1]}}, "the column 's' must be a list"),
        ({"state": None}, "state must be the name of a column"),
        ({"state": []}, "state must be the name of a column"),
        ({"run": 3}, "run must be the name of a column"),
        ({"costs": "sky"}, "unknown column 'sky'"),
        ({"next_state": ["s", "a"]}, "next_state needs 1 columns"),
        ({"state": {"s": [0, 0]}}, "must have a list of different values"),
        (
            {"state": {"s": 10**4, "b": 10**4}, "table": {name: [0, 1] for name in "sab"}},
            "1e\\+08 combinations of values",
        ),
        ({"state": {"s": 10**9}}, "'s' has 1,000,000,000 values, more than 1,000,000"),
        ({"state": {"s": range(10**9)}}, "'s' has 1,000,000,000 values"),
        ({"state": {"s": 0.5}}, "must have a list of values, or their number; got 0.5"),
        ({"action": "s"}, "the column 's' cannot be a part of the state and of the action"),
        ({"system": 3}, "system must be a System"),
        ({"support": 3}, "support must be a CMDP"),
        ({"table": "nowhere.csv"}, "no such file"),
        ({"time": "s"}, "'s' cannot be the time and a label, too"),
        ({"time": "t", "table": {"s": [0, 1], "a": [0, 1], "t": ["x", "y"]}}, "'t' is no time such as"),
    ],
)
def test_arguments(given, message):
    with pytest.raises(LogError, match=message):
        Log(**({"table": {"s": [0, 1], "a": [0, 1]}, "state": "s", "action": "a"} | given))


DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 2_000),
        st.integers(0, 30),
        st.sampled_from(
            [b"", b",", b";", b'"', b'""', b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan", b"1e999", b"99:99"]
        )
        | st.binary(max_size=8),
    ),
    max_size=8,
)


@pytest.mark.fuzz
@given(damage=DAMAGE, asked=st.sets(st.sampled_from(["costs", "time", "run"])), skip_bad=st.booleans())
def test_damaged_tables_are_read_or_refused_in_one_line(tmp_path_factory, damage, asked, skip_bad):
    """Parts of a table are cut out and replaced; whatever is left, each round is of a row with cells for it."""
    raw = b"s,a,c,t,r\n" + b"".join(
        b"%d,%d,%d.5,2024-01-01T%02d:00Z,%d\n" % (k % 4, k % 2, k, k, k // 8) for k in range(24)
    )
    for place, length, new in damage:
        raw = raw[:place] + new + raw[place + length :]
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_bytes(raw)
    columns = {"costs": "c", "time": "t", "run": "r"}
    try:
        log = Log(path, state="s", action="a", skip_bad=skip_bad, **{name: columns[name] for name in asked})
    except PsconrlError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert skip_bad or not log.faults
    assert int(log.counts().tally.times.sum()) == log.n_rounds <= raw.count(b"\n") + raw.count(b"\r")
    assert log.costs is None or np.isfinite(log.costs).all()
