"""A real table: monthly prices since 1990, which come with matplotlib. Counts are compared with plain Python."""

import csv
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from psconrl import Log, LogError

matplotlib = pytest.importorskip("matplotlib")
PRICES = Path(matplotlib.get_data_path()) / "sample_data" / "Stocks.csv"


@pytest.fixture(scope="module")
def rows():
    if not PRICES.is_file():
        pytest.skip("matplotlib without its sample data")
    with PRICES.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def table(rows):
    """Whether the index and one share rose in the month; empty where there is no price."""
    found, last = {"month": [], "index": [], "share": []}, {}
    for row in rows:
        found["month"].append(row["Date"])
        for name, column in (("index", "^GSPC"), ("share", "IBM")):
            price = float(row[column]) if row[column] else None
            rose = price is not None and name in last and price >= last[name]
            found[name].append(None if price is None else "up" if rose else "down")
            last[name] = last.get(name) if price is None else price
    return found | {"action": ["hold"] * len(rows)}


GIVEN = {"state": ["index", "share"], "action": "action", "time": "month"}


def test_rows_without_prices_are_located(rows):
    """Days on which a dividend was paid have a row of their own, without prices."""
    empty = [line for line, row in enumerate(rows, 2) if not row["^GSPC"] or not row["IBM"]]
    with pytest.raises(LogError, match=f"{len(empty):,} rows .lines {empty[0]}, {empty[1]}, {empty[2]}, ….: the state"):
        Log(table(rows), **GIVEN)
    log = Log(table(rows), **GIVEN, skip_bad=True)
    assert (log.faults[0].count, log.faults[0].lines) == (len(empty), tuple(empty[:10]))
    kept = [k for k in range(len(rows) - 1) if not {k + 2, k + 3} & {*empty}]
    assert log.lines.tolist() == [k + 2 for k in kept]


def test_counts_are_those_of_plain_python(rows):
    monthly = [row for row in rows if row["^GSPC"] and row["IBM"] and row["Date"].endswith("-01")]
    found = table(monthly)
    states = [f"index={a}, share={b}" for a, b in zip(found["index"], found["share"], strict=True)]
    expected = Counter(pairwise(states))
    log = Log(found, **GIVEN)
    S, counts = log.n_states, log.counts()
    numbers = zip(counts.tally.numbers.tolist(), counts.tally.times.tolist(), strict=True)
    assert {(log.state_labels[n // S], log.state_labels[n % S]): times for n, times in numbers} == expected
    assert log.gaps == 0  # months are regular, although they have 28 to 31 days
    report = log.check()
    assert "the action is always hold" in str(report)
    assert {tried.suspect.name for tried in report.tests} >= {"the period", "the state one round before"}


def test_months_that_are_left_out_are_gaps(rows):
    monthly = [row for row in rows if row["^GSPC"] and row["IBM"] and row["Date"].endswith("-01")]
    kept = [row for k, row in enumerate(monthly) if k not in (20, 21, 100)]
    log = Log(table(kept), **GIVEN)
    assert log.gaps == 2
    assert log.n_rounds == len(kept) - 1 - 2
