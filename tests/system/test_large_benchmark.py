"""The benchmark of large models: its command line, and rows for what goes wrong. Its numbers are not tested."""

import argparse
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import large

FINE = {"reading": 0.5, "seconds": 2.0, "GB": 1.0, "base": 0.5, "states": 100_000, "entries": 500_000,
        "status": "optimal", "gap": 1e-9, "value": 3.0}  # fmt: skip


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.full
def test_a_small_run_prints_a_row_for_every_model(capsys):
    large.main(["queues", "--small", "--repeat", "1", "--sizes", "5", "6"])
    rows = [cells(line) for line in capsys.readouterr().out.splitlines() if line.startswith("| two queues")]
    assert [row[0] for row in rows] == ["two queues, S = 25", "two queues, S = 36"]
    for row in rows:
        assert len(row) == len(cells(large.HEADER.splitlines()[0]))
        assert row[1] == "psconrl"
        assert float(row[3]) > 0
        assert row[6] == "optimal"
        assert float(row[7]) < 1e-6


def test_a_run_beyond_the_limit_of_time_gets_a_row_and_no_second_run(tmp_path):
    case = large.queues([5], 4)[0]
    given = argparse.Namespace(storm=None, repeat=3, limit=60.0)
    large.files(case, tmp_path, False, 60.0)
    given.limit = 0.01
    runs = large.measured(case, given, tmp_path)
    assert len(runs["psconrl"]) == 1
    assert cells(large.row(case, "psconrl", runs))[3] == "not within 0 s"


def test_a_process_that_fails_says_why():
    found = large.answer(
        [sys.executable, "-c", "import sys; print('ValueError: x\\nsee there', file=sys.stderr); sys.exit(2)"], 60.0
    )
    assert found == {"trouble": "failed (2): ValueError: x"}
    found = large.answer([sys.executable, "-c", "raise SystemExit('no | memory')"], 60.0)
    assert found == {"trouble": "failed (1): no / memory"}


@pytest.mark.parametrize(
    ("seconds", "memory", "words"),
    [(300.0, 6.0, "300 s: yes, 6 GB: yes, gap 1e-06: yes"), (301.0, 6.1, "300 s: NO, 6 GB: NO, gap 1e-06: yes")],
)
def test_what_is_to_be_reached(seconds, memory, words):
    case = large.queues([1000], 4)[0]
    assert large.verdict(case, "psconrl", {"psconrl": [FINE | {"seconds": seconds, "GB": memory}]}) == words


@pytest.mark.parametrize(
    ("peer", "words", "times"),
    [
        ({"seconds": 20.0}, "10 times: yes", "10"),
        ({"seconds": 19.9}, "10 times: NO", "9.9"),
        ({"trouble": "not within 40 s", "seconds": 40.0}, "10 times: yes", "more than 20"),
        ({"trouble": "failed (1): no memory"}, "10 times: cannot say", ""),
    ],
)
def test_ratios_are_of_medians_in_one_run(peer, words, times):
    case = large.multichain([10_000], 300)[0]
    ours = [FINE | {"seconds": s} for s in (1.0, 2.0, 50.0)]
    line = cells(large.row(case, "HiGHS", {"psconrl": ours, "HiGHS": [peer if "trouble" in peer else FINE | peer]}))
    assert line[4] == times
    assert line[-1] == words


def test_storm_is_asked_for_the_same_limit():
    case = large.random([1000], 100)[0]
    paths = {"model": "m.npz", "small": "s.npz", "model, Storm": "m.umb", "small, Storm": "s.umb", "limit": "0.25"}
    calls = large.calls(case, paths, "storm/bin/python")
    assert list(calls) == ["psconrl", *large.STORM]
    assert all('R{"cost_1"}<=0.25 [LRA]' in calls[name][4] for name in large.STORM)
    assert list(large.calls(case, paths, None)) == ["psconrl"]


def test_seconds_side_by_side():
    cases = large.multichain([10_000], 300)
    late, failed = {"trouble": "not within 1,200 s", "seconds": 1200.0}, {"trouble": "failed (1): no memory"}
    found = [{"psconrl": [FINE], "HiGHS": [late]}, {"psconrl": [FINE | {"seconds": 12.3}], "HiGHS": [failed]}]
    lines = large.seconds_side_by_side(cases, found).splitlines()
    assert lines[1] == "| seconds | psconrl | HiGHS |"
    assert lines[3:] == [
        "| multichain, S = 10,000, no limit | 2 | > 1,200 |",
        "| multichain, S = 10,000, 1 limit | 12 | failed |",
    ]
    assert large.seconds_side_by_side(cases[:1], [{"psconrl": [FINE]}]) == ""


def test_the_slope_is_the_power():
    assert large.slope([1.0, 10.0, 100.0], [3.0, 3 * 10**1.2, 3 * 10**2.4]) == pytest.approx(1.2)


def test_memory_is_counted_without_what_was_there_before():
    line = large.memory_line(large.queues([316], 4)[0], [FINE])
    assert "5,000 bytes a state, 1,000 an entry" in line
