"""The same log from every kind of table, and what a slow loop over its rows counts."""

from collections import Counter
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest

import psconrl
from psconrl import Log
from psconrl.data.tables.opening import open_table

pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
arrow = pytest.importorskip("pyarrow")

ROWS = 400
COLUMNS = {"state": ["mood", "level", "half", "on"], "action": "act", "costs": "cost", "run": "plant", "time": "when"}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    return pandas.DataFrame(
        {
            "mood": rng.choice(["good", "bad", "so, so", 'a "b"'], ROWS),
            "level": rng.integers(0, 12, ROWS),
            "half": rng.integers(0, 3, ROWS) / 2,
            "act": rng.choice(["go", "None", "=1+1"], ROWS),
            "on": rng.random(ROWS) < 0.5,
            "cost": np.round(rng.normal(size=ROWS), 3),
            "plant": rng.integers(0, 3, ROWS),
            "when": pandas.date_range("2024-03-30", periods=ROWS, freq="h", tz="Europe/Berlin"),
        }
    )


def tables(frame, folder):
    other = polars.from_pandas(frame)
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.csv.gz", index=False)
    other.write_csv(folder / "b.csv", separator=";")
    frame.to_csv(folder / "c.tsv", sep="\t", index=False, lineterminator="\r\n", encoding="utf-8-sig", quoting=1)
    frame.to_parquet(folder / "a.parquet")
    other.write_ipc(folder / "a.arrow", compression="uncompressed")
    table = arrow.Table.from_pandas(frame)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    lists = {name: frame[name].tolist() for name in frame if name != "when"}
    return {
        "CSV": folder / "a.csv",
        "CSV, packed": str(folder / "a.csv.gz"),
        "CSV with semicolons": folder / "b.csv",
        "TSV of Windows": folder / "c.tsv",
        "Parquet": folder / "a.parquet",
        "Arrow file": folder / "a.arrow",
        "pandas": frame,
        "Polars": other,
        "Polars, lazy": other.lazy(),
        "Arrow": table,
        "DuckDB": connection.from_arrow(table),
        "lists": lists | {"when": [time.to_pydatetime() for time in frame["when"]]},
        "texts": {name: [str(value) for value in values] for name, values in lists.items()}
        | {"when": [time.isoformat() for time in frame["when"]]},
    }


def contents(log):
    counts = log.counts()
    return {
        "labels": (log.state_labels, log.action_labels),
        "transitions": dict(zip(counts.tally.numbers.tolist(), counts.tally.times.tolist(), strict=True)),
        "costs": counts.cost_sums.tolist(),
        "rows": (log.run.tolist(), log.lines.tolist(), log.follows.tolist()),
        "times": (log.times.tolist(), log.local_times.tolist()),
    }


def test_every_kind_of_table_gives_the_same_log(frame, tmp_path):
    found = {name: contents(Log(table, **COLUMNS)) for name, table in tables(frame, tmp_path).items()}
    for name, log in found.items():
        assert log == found["CSV"], name


def test_counts_are_those_of_a_slow_loop(frame, tmp_path):
    log = Log(frame, **COLUMNS)
    expected, sums, last = Counter(), Counter(), {}
    for row in frame.to_dict("records"):
        state = f"mood={row['mood']}, level={row['level']}, half={row['half']:g}, on={int(row['on'])}"
        if row["plant"] in last:
            before, action, cost = last[row["plant"]]
            expected[before, action, state] += 1
            sums[before, action] += cost
        last[row["plant"]] = state, row["act"], row["cost"]
    counts = log.counts()
    S, A = log.n_states, log.n_actions
    names, acts = log.state_labels, log.action_labels
    found = {
        (names[n // S // A], acts[n // S % A], names[n % S]): times
        for n, times in zip(counts.tally.numbers.tolist(), counts.tally.times.tolist(), strict=True)
    }
    assert found == expected
    for (state, action), total in sums.items():
        assert counts.cost_sums[0, names.index(state) * A + acts.index(action)] == pytest.approx(total, abs=1e-12)


def test_behaviour_is_the_share_of_actions():
    log = Log({"s": [0, 0, 0, 1, 0], "a": ["x", "y", "x", "x", "y"]}, state="s", action="a")
    assert log.behaviour().tolist() == [[2 / 3, 1 / 3], [1.0, 0.0]]


def test_next_states_in_the_row_need_no_order():
    log = Log({"s": [0, 1], "a": [0, 0], "t": [1, 1]}, state="s", action="a", next_state="t")
    assert (log.states.tolist(), log.next_states.tolist(), log.follows.tolist()) == ([0, 1], [1, 1], [False, True])


def test_labels_in_the_form_that_no_table_changes():
    log = Log({"s": ["10", "9", "2.0", "9"], "a": [True, "false", "TRUE", "true"]}, state="s", action="a")
    assert (log.state_labels, log.action_labels) == (("2", "9", "10"), ("0", "1"))


def test_declared_values_are_all_states():
    log = Log(
        {"s": [0, 1, 0], "m": ["b", "b", "b"], "a": [0, 0, 0]}, state={"s": 3, "m": ["a", "b"]}, action={"a": [0, 1]}
    )
    assert log.n_states == 6
    assert log.n_actions == 2
    assert log.state_labels[:2] == ("s=0, m=a", "s=0, m=b")
    assert log.states.tolist() == [1, 3]


def test_runs_may_be_mixed_and_regular_times_have_gaps():
    hours = [0, 0, 1, 1, 2, 2, 3, 5, 4, 6, 5, 7, 6]
    plants = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    log = Log({"s": [0] * 13, "a": [0] * 13, "h": hours, "p": plants}, state="s", action="a", time="h", run="p")
    assert log.gaps == 1
    assert log.lines.tolist() == [2, 4, 6, 8, 10, 12, 3, 5, 9, 11]
    assert log.follows.tolist() == [False] + [True] * 5 + [False, True, False, True]


def test_times_with_zones_are_in_order_through_the_change_of_the_clock():
    berlin = [timezone(timedelta(hours=h)) for h in (2, 2, 1, 1)]
    moments = [datetime(2024, 10, 27, h, 30, tzinfo=zone) for h, zone in zip((1, 2, 2, 3), berlin, strict=True)]
    log = Log({"s": range(4), "a": [0] * 4, "t": moments}, state="s", action="a", time="t")
    assert np.diff(log.times).tolist() == [3600.0, 3600.0]
    assert np.diff(log.local_times).tolist() == [3600.0, 0.0]
    assert log.gaps == 0


def test_records_are_columns_beside_the_state():
    log = Log(
        {"s": [0, 1, 2], "a": [0, 0, 0], "sky": ["grey", None, "blue"], "wind": [1.5, 2.0, None]}, state="s", action="a"
    )
    assert log.records["sky"].tolist() == ["grey", ""]
    assert log.records["wind"].tolist() == [1.5, 2.0]


def test_a_table_of_no_known_kind():
    with pytest.raises(psconrl.LogError, match="a table must be"):
        open_table(3)


def log_of(**columns):
    return Log({"a": [0] * 4, **columns}, state="s", action="a", skip_bad=True)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["9007199254740993", "9007199254740992", "1", "1"], ("1", "9007199254740992", "9007199254740993")),
        (["cafe\u0301", "caf\u00e9", " caf\u00e9", "x"], ("caf\u00e9", "x")),
        (["2.0", "2", "x", "x"], ("2", "x")),
        (["true", "1", "false", "0"], ("0", "1")),
        (np.ma.array([1, 7, 3, 3], mask=[0, 1, 0, 0]), ("1", "3")),
    ],
)
def test_one_label_for_each_value(labels, expected):
    assert log_of(s=labels).state_labels == expected


def test_next_states_have_the_labels_of_states():
    log = Log({"s": ["1", "2"], "a": [0, 0], "n": ["2.0", "x"]}, state="s", action="a", next_state="n")
    assert log.state_labels == ("1", "2", "x")
    assert log.next_states.tolist() == [1, 2]


@pytest.mark.parametrize(
    "times",
    [
        [date(2024, 1, 30 + k) if k < 2 else date(2024, 2, k - 1) for k in range(4)],
        [20240130, 20240131, 20240201, 20240202],
        ["20240130", "20240131", "20240201", "20240202"],
        np.array(["2024-01-30", "2024-01-31", "2024-02-01", "2024-02-02"], "M8[D]"),
    ],
)
def test_days(times):
    log = Log({"s": [0] * 4, "a": [0] * 4, "t": times}, state="s", action="a", time="t")
    assert np.diff(log.local_times).tolist() == [86400.0, 86400.0]
    assert log.gaps == 0


def test_numbers_that_only_look_like_days():
    log = Log(
        {"s": [0] * 4, "a": [0] * 4, "t": [20240130, 20240131, 20240132, 20240133]}, state="s", action="a", time="t"
    )
    assert (log.local_times, log.n_rounds) == (None, 3)


def test_durations_are_seconds():
    hours = np.arange(0, 14_400, 3600).astype("m8[s]").astype("m8[ms]")
    for table in ({"t": hours}, polars.DataFrame({"t": hours})):
        given = {"s": [0] * 4, "a": [0] * 4, "t": table["t"]}
        log = Log(given if isinstance(table, dict) else polars.DataFrame(given), state="s", action="a", time="t")
        assert log.times.tolist() == [0.0, 3600.0, 7200.0]


def test_columns_of_other_kinds_are_not_read():
    frame = polars.DataFrame(
        {"s": [0, 1, 0], "a": [0] * 3, "lists": [[1], [2, 3], []], "sky": ["grey", "blue", "grey"]}
    )
    log = Log(frame, state="s", action="a")
    assert list(log.records) == ["sky"]
    with pytest.raises(psconrl.LogError, match="'lists' must be numbers, texts or times"):
        Log(frame, state="lists", action="a")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (lambda: pandas.DataFrame([[1, 2, 3]] * 3, columns=["s", "s", "a"]), "Expected unique column names"),
        (lambda: pandas.DataFrame([[1, 2]] * 3), "names of columns must be texts"),
        (lambda: duckdb.sql("select 1 as s, 0 as a, error('no such river') as z"), "no such river"),
    ],
)
def test_frames_that_cannot_be_read(frame, message):
    with pytest.raises(psconrl.LogError, match=message) as error:
        Log(frame(), state="s", action="a")
    assert "\n" not in str(error.value)


def test_separators_within_quotes_of_the_header(tmp_path):
    path = tmp_path / "quoted.csv"
    path.write_text('s,a,"x;y;z;w"\n1,0,2\n2,0,2\n')
    assert open_table(path).columns == ["s", "a", "x;y;z;w"]
