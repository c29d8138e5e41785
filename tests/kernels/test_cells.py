"""Cells of CSV: compared with the csv module, float() and datetime."""

import csv
import io
import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import examples
from psconrl.kernels.tables import cells, moments

TEXT = st.text(alphabet='ab ,"\n\r;1.é', max_size=6)
WIDTH = 3


def split(raw, begin=0, is_last=True, rows=64, line=1):
    buffer = np.frombuffer(raw, dtype=np.uint8)
    starts, lengths = np.zeros((WIDTH, rows), np.int64), np.zeros((WIDTH, rows), np.int32)
    lines, widths = np.zeros(rows, np.int64), np.zeros(rows, np.int32)
    place = np.arange(WIDTH, dtype=np.int32)
    n, rest, after = cells.split(
        buffer, begin, len(raw), ord(","), place, starts, lengths, lines, widths, line, is_last
    )
    found = [
        [
            raw[s : s + k].decode().replace('""', '"') if k >= 0 else None
            for s, k in zip(starts[:, r], lengths[:, r], strict=True)
        ]
        for r in range(n)
    ]
    return found, rest, after, lines[: max(n, 0)].tolist(), widths[: max(n, 0)].tolist()


@examples(200)
@given(st.lists(st.lists(TEXT, min_size=WIDTH, max_size=WIDTH), max_size=6), st.booleans())
def test_rows_are_those_of_the_csv_module(rows, windows):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n" if windows else "\n").writerows(rows)
    raw = out.getvalue().encode()
    found, rest, _, lines, widths = split(raw)
    assert found == list(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert rest == len(raw)
    assert widths == [WIDTH] * len(rows)
    ends = [1 + raw[: raw.index(b"\n", 0)].count(b"\n")] if rows else []
    assert lines[:1] == ends


@examples(200)
@given(st.lists(st.lists(TEXT, min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=6), st.integers(1, 40))
def test_blocks_give_the_same_rows_as_the_whole(rows, size):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    raw = out.getvalue().encode()
    whole, _, after, lines, _ = split(raw)
    found, found_lines, rest, line = [], [], b"", 1
    for k in range(0, len(raw), size):
        part = rest + raw[k : k + size]
        some, used, line, at, _ = split(part, is_last=k + size >= len(raw), line=line)
        found, found_lines, rest = found + some, found_lines + at, part[used:]
    assert (found, found_lines, line) == (whole, lines, after)


def test_blanks_blank_lines_and_rows_of_another_width():
    found, _, _, lines, widths = split(b' a , "b" x,c\n\n1\n1,2,3,4\n , ,\n')
    assert found == [["a", "b", "c"], ["1", None, None], ["1", "2", "3"], ["", "", ""]]
    assert (lines, widths) == ([1, 3, 4, 5], [3, 1, 4, 3])


def test_a_quote_that_is_not_closed():
    raw = b'a,b,c\n1,"2,3\n4,5,6\n'
    assert split(raw)[0] == []  # the number of rows is -1
    found, rest, line, _, _ = split(raw, is_last=False)
    assert (found, rest, line) == ([["a", "b", "c"]], 6, 2)


def numbers(texts):
    raw = "".join(texts).encode()
    sizes = np.array([len(t.encode()) for t in texts], dtype=np.int32)
    starts = np.append(0, np.cumsum(sizes)[:-1]).astype(np.int64)
    into = np.full(len(texts), 7.0)
    hard = cells.numbers(np.frombuffer(raw, dtype=np.uint8), starts, sizes, into)
    return into, hard.tolist()


@examples(300)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.integers().map(str),
        st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    )
)
def test_numbers_are_rounded_as_by_float(text):
    into, hard = numbers([text])
    assert hard == [0] or (into[0] == float(text) and math.copysign(1, into[0]) == math.copysign(1, float(text)))


def test_most_numbers_are_not_hard_and_what_is_none_is():
    texts = ["1", "-2.50", "+.5", "3.", "1e3", "1E-7", "0.1", "123456.789", ""]
    into, hard = numbers(texts)
    assert hard == []
    assert into[:-1].tolist() == [float(t) for t in texts[:-1]]
    assert math.isnan(into[-1])
    assert numbers(["x", "1x", "-", ".", "1e", "inf", "nan", "1_0", "1 2", "1" * 30, "1e400", "--1"])[1] == list(
        range(12)
    )


@examples(200)
@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)), st.integers(-720, 720) | st.none())
def test_moments_are_those_of_datetime(moment, minutes):
    moment = moment if minutes is None else moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    utc, local, kind = seconds(moment.isoformat())
    epoch = datetime(1970, 1, 1)
    assert kind == (1 if minutes is None else 2)
    assert local == pytest.approx((moment.replace(tzinfo=None) - epoch) / timedelta(seconds=1), abs=1e-4)
    own = moment if minutes is None else moment.astimezone(UTC).replace(tzinfo=None)
    assert utc == pytest.approx((own - epoch) / timedelta(seconds=1), abs=1e-4)


def seconds(text):
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    utc, local = np.zeros(1), np.zeros(1)
    kinds = moments.read(raw, np.zeros(1, np.int64), np.array([raw.size], np.int32), utc, local)
    return utc[0], local[0], int(kinds[0])


@pytest.mark.parametrize(
    "text",
    ["2024-02-30", "2023-02-29", "2024-13-01", "2024-1-01", "2024-01-01T24:00", "2024-01-01T10:60", "2024-01-01T",
     "2024-01-01T10:00:", "2024-01-01T10:00:00.", "2024-01-01T10:00+2", "2024-01-01T10:00+25:00", "10:00", "0000-01-01",
     "2024-01-01T10:00:00Zx", "2024/01/01"],
)  # fmt: skip
def test_what_is_no_moment(text):
    assert seconds(text)[2] == 0


def test_leap_days_and_short_zones():
    assert seconds("2024-02-29")[0] == seconds("2024-02-28")[0] + 86400.0
    assert seconds("2000-02-29")[2] == 1
    assert seconds("1900-02-29")[2] == 0
    assert seconds("2024-03-31T02:00+01")[0] == seconds("2024-03-31 01:00Z")[0] == seconds("2024-03-31T00:30-0030")[0]


@examples(100)
@given(st.lists(st.text(alphabet="abé0", max_size=4), max_size=40), st.lists(st.text(alphabet="abé0", max_size=4)))
def test_codes_are_those_of_a_table(known, asked):
    known = list(dict.fromkeys(known))
    labels = "".join(known).encode()
    ends = np.cumsum([len(t.encode()) for t in known], dtype=np.int64)
    slots = cells.label_slots(np.frombuffer(labels, dtype=np.uint8), ends)
    texts = [t for t in asked if t in known]
    texts += [t for t in asked if t not in known]
    raw = "".join(texts).encode()
    sizes = np.array([len(t.encode()) for t in texts], dtype=np.int32)
    starts = (np.cumsum(sizes) - sizes).astype(np.int64)
    into = np.empty(len(texts), np.int32)
    row = cells.codes(
        np.frombuffer(raw, dtype=np.uint8), starts, sizes, slots, np.frombuffer(labels, dtype=np.uint8), ends, into, 0
    )
    assert row == sum(t in known for t in texts)
    assert [known[code] for code in into[:row]] == texts[:row]


def test_cells_outside_of_the_buffer_are_refused():
    raw, one = np.zeros(4, np.uint8), np.zeros(1)
    for call in (
        lambda s, k: cells.numbers(raw, s, k, one),
        lambda s, k: moments.read(raw, s, k, one, one.copy()),
        lambda s, k: cells.codes(
            raw, s, k, np.full(64, -1, np.int32), raw[:0], np.zeros(0, np.int64), np.zeros(1, np.int32), 0
        ),
    ):
        with pytest.raises(ValueError, match="outside"):
            call(np.array([2], np.int64), np.array([3], np.int32))
