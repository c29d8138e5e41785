"""The monitor: reading logs and results while they are written, their display, and the local server."""

import dataclasses
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import psconrl
from psconrl import CSVLog, LabelledAgent, PSConRL
from psconrl.agents import Explore
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.learning.registry import title_of
from psconrl.learning.runtime.events import EpisodeEvent
from psconrl.learning.watchdog import FIRST, Alarm
from psconrl.report.monitor import log_file, source
from psconrl.report.monitor.axis import LEAST_FACTOR, LOG_MARGIN, MARGIN, WORTHWHILE, clipped_range
from psconrl.report.monitor.log_contents import LOG_POINTS, MOMENTS, log_contents
from psconrl.report.monitor.log_file import LogFile
from psconrl.report.monitor.page import render_monitor
from psconrl.report.monitor.server import Server
from psconrl.report.monitor.source import Source
from psconrl.report.running_averages import window_for
from psconrl.simulation.model_run import Simulation
from sweeps import AtOnce, changed_unnoticed
from test_cli_learn import shell

QUEUE = psconrl.load("queue")


def events_of(rounds=1500):
    """Return the events of a run, with planning times that do not depend on the machine."""
    sizes, found = (QUEUE.n_states, QUEUE.n_actions, QUEUE.thresholds, QUEUE.costs), []
    agent = PSConRL(*sizes, fallback=Explore(), doubt=None, seed=0)
    agent.watch(found.append)
    psconrl.simulate(QUEUE, agent, rounds, seed=0)
    return [dataclasses.replace(event, planning_time=0.001 * (1 + k % 3)) for k, event in enumerate(found)]


EVENTS = events_of()  # the first episodes explore


def write_log(path, events=EVENTS, **options):
    log = CSVLog(path, QUEUE.cost_names, states=QUEUE.state_names, actions=QUEUE.action_names, **options)
    for event in events:
        log(event)
    return path


def read(path):
    log = LogFile(path)
    log.refresh()
    return log


def panels_of(contents):
    return {panel["title"]: panel for section in contents["sections"] for panel in section["panels"]}


def curve(panel, name):
    (series,) = (s for s in panel["series"] if s["agent"] == name)
    return series["x"], np.array(series["mean"])


# Reading a log


def test_a_log_is_read_as_it_was_written(tmp_path):
    log = read(write_log(tmp_path / "run.csv"))
    episodes = log.episodes()
    assert log.cost_names == list(QUEUE.cost_names)
    assert log.kinds == [e.kind for e in EVENTS]
    assert episodes.ends.tolist() == [e.round for e in EVENTS]
    assert episodes.length.tolist() == [e.length for e in EVENTS]
    assert episodes.number.tolist() == [e.episode for e in EVENTS]
    np.testing.assert_array_equal(episodes.costs, [e.costs for e in EVENTS])
    np.testing.assert_array_equal(episodes.averages, [e.averages for e in EVENTS])
    np.testing.assert_array_equal(episodes.limits, [e.thresholds for e in EVENTS])
    for column in ("explored", "value", "planning_time", "changed"):
        np.testing.assert_array_equal(getattr(episodes, column), [getattr(e, column) for e in EVENTS])
    assert log.unread == 0


def test_it_reads_on_where_it_was_and_leaves_a_line_that_is_being_written(tmp_path, monkeypatch):
    whole = write_log(tmp_path / "whole.csv").read_bytes()
    path, sizes, reads = tmp_path / "run.csv", [], []
    log = LogFile(path)
    take = LogFile._take
    monkeypatch.setattr(LogFile, "_take", lambda self, lines: reads.append(len(lines)) or take(self, lines))
    for end in (20, 200, 1000, 1003, 9000, len(whole)):
        with path.open("ab") as f:
            f.write(whole[f.tell() : end])
        log.refresh()
        sizes.append(len(log))
        assert len(log) == max(whole[:end].count(b"\n") - 1, 0)
        assert log.unread == 0
    assert len(set(sizes)) > 3
    assert sum(reads) == len(whole)  # nothing was read twice
    np.testing.assert_array_equal(log.episodes().averages, read(tmp_path / "whole.csv").episodes().averages)


def test_after_a_crash_no_round_appears_twice(tmp_path):
    """Also where the lines of the first attempt are still there, whichever process wrote them."""
    lines = write_log(tmp_path / "whole.csv").read_bytes().splitlines(keepends=True)
    path = tmp_path / "run.csv"
    path.write_bytes(b"".join([*lines[:31], b"201,99,opt\n", *lines[21:]]))  # saved after 20 episodes, died after 30
    log, whole = read(path), read(tmp_path / "whole.csv")
    assert log.unread == 1
    assert log.kinds == whole.kinds
    np.testing.assert_array_equal(log.episodes().ends, whole.episodes().ends)
    assert log.episodes().policies == whole.episodes().policies
    # A monitor that has seen the first attempt sees the file change under it.
    path.write_bytes(b"".join(lines[:31]))
    log = read(path)
    assert len(log) == 30
    write_log(path, EVENTS[20:])  # a new process: drops lines, then goes on
    log.refresh()
    np.testing.assert_array_equal(log.episodes().ends, whole.episodes().ends)


def test_a_system_that_goes_another_way_after_a_crash_has_every_episode_once(tmp_path):
    """Replayed episodes need not end where they did."""
    path = tmp_path / "run.csv"
    lines = write_log(path, EVENTS[:3]).read_bytes().splitlines(keepends=True)
    cells = [line.split(b",", 4) for line in lines[1:]]

    def line(end, episode, length):
        return b",".join([b"%d" % end, b"%d" % episode, cells[0][2], b"%d" % length, cells[0][4]])

    path.write_bytes(
        b"".join([lines[0], line(5, 1, 5), line(9, 2, 4), line(12, 3, 3), line(15, 2, 10), line(16, 3, 1)])
    )
    log = read(path)
    assert log.episodes().ends.tolist() == [5, 15, 16]
    assert log.episodes().number.tolist() == [1, 2, 3]
    assert [end for end, _ in log.episodes().policies] == [5, 15, 16, 16]  # the last is always included


def test_another_file_of_the_same_name_is_read_from_its_beginning(tmp_path):
    path = write_log(tmp_path / "run.csv", EVENTS[:40])
    log = read(path)
    inode = path.stat().st_ino
    other = write_log(tmp_path / "other.csv", EVENTS[5:]).read_bytes()
    with path.open("r+b") as f:  # the same file, other contents, and longer
        f.truncate()
        f.write(other)
    assert path.stat().st_ino == inode
    log.refresh()
    assert log.episodes().ends.tolist() == [e.round for e in EVENTS[5:]]


def broken_limit(first, episodes):
    """Episodes of 50 rounds whose plans promise 1 and whose cost is 1.5."""
    event = EpisodeEvent(FIRST, 1, "optimal", FIRST, np.zeros(2), np.array([0.0, 1.1]), np.array([1.0]), 0.0, 0)
    costs = np.array([0.0, 1.5])
    return [event] * (first == 0) + [
        dataclasses.replace(event, round=FIRST + 50 * k, episode=1 + k, length=50, costs=costs)
        for k in range(max(first, 1), first + episodes)
    ]


def test_the_page_says_what_a_watchdog_says(tmp_path):
    writer = CSVLog(tmp_path / "run.csv", ["loss", "delay"])
    for event in broken_limit(0, 20):
        writer(event)
    log = read(tmp_path / "run.csv")
    assert log.alarms() == []
    for event in broken_limit(20, 1):
        writer(event)
    log.refresh()
    alarm = Alarm("delay", 1000, 2000, pytest.approx(1.5), 1.0)
    assert log.alarms() == [alarm]
    assert log.alarms() == [alarm]  # asked again, it does not alert twice
    note = log_contents(log)["warnings"][0]
    assert note.startswith("Watchdog: delay was 1.5 on average in rounds 1,001 to 2,000, while plans promised 1")
    assert note.endswith("yet.")


def test_a_watchdog_forgets_episodes_that_are_repeated(tmp_path):
    path = tmp_path / "run.csv"
    writer = CSVLog(path, ["loss", "delay"])
    for event in broken_limit(0, 21):
        writer(event)
    log = read(path)
    assert len(log.alarms()) == 1
    kept = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as f:  # as a run that resumes without the log's own care would
        f.write(kept[-1])
    log.refresh()
    assert len(log.alarms()) == 1


def test_a_cost_may_be_called_as_a_column_is(tmp_path):
    log = CSVLog(tmp_path / "run.csv", ["changed", "policy", "=round"])
    log(EVENTS[0])
    log(EVENTS[1])
    assert read(tmp_path / "run.csv").cost_names == ["changed", "policy", "'=round"]
    np.testing.assert_array_equal(read(tmp_path / "run.csv").episodes().costs, [e.costs for e in EVENTS[:2]])


def test_a_long_log_keeps_some_policies_and_its_page_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(log_file, "MOST_POLICIES", 8)
    path = tmp_path / "run.csv"
    lines = write_log(path).read_bytes().splitlines(keepends=True)
    many = [lines[0]]
    for k in range(3000):
        cells = lines[1 + k % 50].split(b",")
        many.append(b",".join([b"%d" % (10 * (k + 1)), b"%d" % (k + 1), cells[2], b"10", *cells[4:]]))
    path.write_bytes(b"".join(many))
    log = read(path)
    kept = log.episodes().policies
    assert 8 <= len(kept) <= 18
    gaps = np.diff([end for end, _ in kept[:-1]])
    assert len(set(gaps)) == 1  # evenly spread
    assert kept[-1][0] == 30_000
    contents = log_contents(log)
    assert all(len(s["x"]) <= LOG_POINTS for p in panels_of(contents).values() for s in p["series"])
    assert len(json.dumps(contents)) < 250_000


# What is shown of a log


def test_averages_are_recent_ones_and_those_since_the_start_against_the_limits(tmp_path):
    contents = log_contents(read(write_log(tmp_path / "run.csv")))
    panels = panels_of(contents)
    assert list(panels) == ["throughput", "delay", "power", "Exploring", "Planning time", "Change of policy"]
    window = window_for(EVENTS[-1].round)
    assert f"last {window:,} rounds" in contents["notes"][0]
    recent = [e for e in EVENTS if e.round > EVENTS[-1].round - window]
    rounds = sum(e.length for e in recent)
    assert 0 < len(recent) < len(EVENTS)
    for i, name in enumerate(QUEUE.cost_names):
        x, so_far = curve(panels[name], "since the start")
        assert x == [e.round for e in EVENTS]
        np.testing.assert_array_equal(so_far, [e.averages[i] for e in EVENTS])
        _, running = curve(panels[name], "running average")
        assert running[-1] == pytest.approx(sum(e.costs[i] * e.length for e in recent) / rounds)
    assert panels["delay"]["lines"] == [["limit", 2.0]]
    assert panels["throughput"]["lines"] == []
    _, expected = curve(panels["throughput"], "expected by the agent")
    planned = [e for e in recent if np.isfinite(e.value)]
    assert expected[-1] == pytest.approx(sum(e.value * e.length for e in planned) / sum(e.length for e in planned))
    _, explored = curve(panels["Exploring"], "since the start")
    assert explored[-1] == EVENTS[-1].explored / EVENTS[-1].round > 0
    _, planning_time = curve(panels["Planning time"], "running average")
    assert planning_time[-1] == pytest.approx(np.mean([e.planning_time for e in recent]))
    _, longest = curve(panels["Planning time"], "longest of them")
    assert longest[-1] == max(e.planning_time for e in recent)
    _, changed = curve(panels["Change of policy"], "running average")
    assert changed[-1] == pytest.approx(sum(e.changed * e.length for e in recent) / rounds)
    facts = dict(contents["facts"])
    assert facts["rounds"] == f"{EVENTS[-1].round:,}"
    over = ", exceeded" if EVENTS[-1].averages[1] > 2.0 else ""
    assert facts["delay"] == f"{EVENTS[-1].averages[1]:.4g} (limit 2{over})"
    assert [panel["range"] for panel in panels.values()] == [None] * 6  # nothing is cut off
    assert not any("cut off" in note for note in contents["notes"])


@pytest.mark.parametrize("maximise", [False, True])
def test_the_header_has_the_objective_before_the_constraints(tmp_path, maximise):
    facts = log_contents(read(write_log(tmp_path / "run.csv", maximise=maximise)))["facts"]
    assert [name for name, _ in facts[-3:]] == list(QUEUE.cost_names)
    sign = -1.0 if maximise else 1.0
    value = [e.value for e in EVENTS if np.isfinite(e.value)][-1]
    assert dict(facts)["throughput"] == f"{sign * EVENTS[-1].averages[0]:.4g} (expected {sign * value:.4g})"
    unplanned = [dataclasses.replace(e, value=np.nan) for e in EVENTS]
    facts = log_contents(read(write_log(tmp_path / "unplanned.csv", unplanned, maximise=maximise)))["facts"]
    assert dict(facts)["throughput"] == f"{sign * EVENTS[-1].averages[0]:.4g}"


ROUNDS = np.arange(401)
RAMP = np.linspace(0.0, 1.0, 401)  # quartiles 1/4 and 3/4


def with_spike(at, size, values=RAMP):
    return np.where(at == ROUNDS, size, values)


def test_an_axis_reaches_four_times_the_distance_of_the_quartiles_beyond_them():
    assert clipped_range([(ROUNDS, RAMP)]) is None
    assert clipped_range([(ROUNDS, with_spike(390, 100.0))]) == [0.0, 0.75 + MARGIN * 0.5]
    assert clipped_range([(ROUNDS, with_spike(10, -100.0))]) == [0.25 - MARGIN * 0.5, 1.0]
    both = [(ROUNDS, with_spike(390, 100.0)), (ROUNDS, RAMP - 0.5)]  # quartiles from -1/4 to 3/4
    assert clipped_range(both) == [-0.5, 0.75 + MARGIN * 1.0]


def test_a_spike_is_cut_off_only_where_that_gains_much():
    most = 0.75 + MARGIN * 0.5
    assert clipped_range([(ROUNDS, with_spike(390, WORTHWHILE * most))]) is None
    assert clipped_range([(ROUNDS, with_spike(390, 1.001 * WORTHWHILE * most))]) == [0.0, most]


def test_a_logarithmic_axis_has_its_margin_in_decades():
    times = with_spike(390, 1e6, 10.0**RAMP)
    assert clipped_range([(ROUNDS, times)], log=True) == pytest.approx([1.0, 10.0 ** (0.75 + LOG_MARGIN * 0.5)])
    steady = with_spike(390, 1e6, 10.0 ** (0.01 * RAMP))
    assert clipped_range([(ROUNDS, steady)], log=True) == pytest.approx([1.0, LEAST_FACTOR * 10.0**0.0075])
    assert clipped_range([(ROUNDS, with_spike(3, 0.0, times))], log=True) is None


def test_the_last_value_is_always_on_the_axis():
    assert clipped_range([(ROUNDS, with_spike(400, 100.0))]) is None
    assert clipped_range([(ROUNDS, with_spike(390, 1000.0)), (ROUNDS, with_spike(400, 100.0))]) == [0.0, 100.0]


def test_many_short_episodes_at_the_start_do_not_count_more():
    rounds = np.concatenate([np.arange(1000) / 1000, np.arange(1, 402)])
    assert clipped_range([(rounds, np.concatenate([np.full(1000, 100.0), RAMP]))])[1] < 5.0


@pytest.mark.parametrize(
    "values", [np.full(401, np.nan), np.ones(401), with_spike(5, 9.0, np.ones(401)), 0.3 + 1e-17 * RAMP]
)
def test_a_curve_that_is_constant_or_unknown_is_not_cut_off(values):
    assert clipped_range([(ROUNDS, values)]) is None
    assert clipped_range([]) is None


def test_a_planning_time_of_seconds_among_milliseconds_is_cut_off(tmp_path):
    slow = [dataclasses.replace(e, planning_time=0.001 + 1e-6 * k) for k, e in enumerate(EVENTS)]
    slow[100] = dataclasses.replace(slow[100], planning_time=8.0)
    contents = log_contents(read(write_log(tmp_path / "run.csv", slow)))
    panel = panels_of(contents)["Planning time"]
    assert panel["range"][1] < 0.01
    assert curve(panel, "longest of them")[1].max() == 8.0  # the page has all values
    assert "Triangles mark spikes that are cut off" in contents["notes"][-1]


def test_exploring_is_what_the_kinds_of_episodes_say(tmp_path):
    early = [e for e in EVENTS if e.round <= 100]
    panels = panels_of(log_contents(read(write_log(tmp_path / "run.csv", early))))
    _, running = curve(panels["Exploring"], "running average")  # the window holds all of them
    assert running[-1] == pytest.approx(early[-1].explored / early[-1].round)
    assert running[-1] > 0


def test_limits_that_change_are_a_curve(tmp_path):
    agent = PSConRL(2, 2, [0.5], seed=0)
    agent.watch(CSVLog(tmp_path / "run.csv"))
    for k in range(300):
        if k == 150:
            agent.set_thresholds([0.25])
        agent.observe(agent.act(0), 0, [1.0, 0.1])
    panel = panels_of(log_contents(read(tmp_path / "run.csv")))["cost 1"]
    assert panel["lines"] == []
    x, limit = curve(panel, "limit")
    assert set(limit) == {0.5, 0.25}
    assert limit[np.array(x) >= 150].tolist() == [0.25] * sum(end >= 150 for end in x)


def test_the_policy_is_that_of_now_and_of_moments_before(tmp_path):
    contents = log_contents(read(write_log(tmp_path / "run.csv")))
    policy = contents["policy"]
    assert (policy["start"], policy["last"]) == (0.0, EVENTS[-1].round)
    busiest = int(np.argmax(EVENTS[-1].visits))
    first = policy["rows"][0]
    assert first["state"] == QUEUE.state_names[busiest]
    assert first["share"] == round(EVENTS[-1].visits[busiest] / EVENTS[-1].round, 4)
    assert len(first["moments"]) == MOMENTS
    for k in (0, 40, MOMENTS - 1):
        middle = (k + 0.5) * EVENTS[-1].round / MOMENTS
        playing = next(e for e in EVENTS if e.round >= middle)
        distribution = playing.policy[busiest]
        if playing.visits[busiest]:
            assert first["moments"][k] == [
                QUEUE.action_names[int(np.argmax(distribution))],
                round(float(distribution.max()), 3),
            ]
        else:
            assert first["moments"][k] is None
    now = EVENTS[-1].policy[busiest]
    assert first["now"] == QUEUE.action_names[int(np.argmax(now))]
    colours = dict(policy["actions"])
    assert set(colours) <= set(QUEUE.action_names)
    assert len(set(colours.values())) == len(colours)
    assert log_contents(read(write_log(tmp_path / "none.csv", most_states=0)))["policy"] is None


# What is shown of a sweep

SPEC = """
name = "Two agents"
replicates = 2
[experiments.rover]
env = "marsrover-4x4"
agents = ["uniform", "psconrl"]
horizon = 300
checkpoints = 10
[experiments.none]
env = "counterexample"
thresholds = { cost = 0.4 }
agents = ["uniform"]
horizon = 60
replicates = 1
"""


def test_progress_of_a_sweep_while_it_runs_and_after(tmp_path):
    path, seen = tmp_path / "results.db", []
    watched = Source(path)
    watched._not_before = -1.0
    assert watched.contents()["state"] == "waiting"

    def look(outcome):
        watched._not_before = 0.0
        seen.append((outcome.done, watched.contents()))

    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce(), progress=look)
    for done, contents in seen:
        assert dict(contents["facts"])["runs"] == f"{done} of 5"
    assert dict(seen[2][1]["facts"])["state"] == f"{5 - seen[2][0]} to go"
    last = Source(path).contents()
    assert dict(last["facts"]) == {"runs": "5 of 5", "state": "complete"}
    assert last["title"] == "Two agents"
    assert [name for name, *_ in last["looks"]] == ["uniform", "PSConRL"]
    rover, none = last["sections"]
    assert (rover["name"], none["name"]) == ("rover", "none")
    assert [row[:4] for row in rover["tables"][0]["rows"]] == [["uniform", 2, 2, 0], ["PSConRL", 2, 2, 0]]
    assert [p["title"] for p in rover["panels"]] == ["Regret", "Average steps", "Average risk"]
    assert [s["agent"] for s in rover["panels"][0]["series"]] == ["uniform", "PSConRL"]
    assert "Regret" not in [p["title"] for p in none["panels"]]  # no policy meets the limits
    render_monitor({"age": 0.0, "contents": last}, live=False)


def test_means_of_a_sweep_are_those_over_its_runs(tmp_path):
    path = tmp_path / "results.db"
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())
    with Store(path) as store:
        totals = store.query(
            "SELECT cost, total FROM checkpoints JOIN runs ON runs.id = run"
            " WHERE label = 'psconrl' AND round = 300 ORDER BY cost"
        )
        optimum = json.loads(store.query("SELECT optimum FROM runs WHERE experiment = 'rover'")[0][0])[0]
    ends = [np.mean([total for i, total in totals if i == cost]) for cost in (0, 1)]
    panels = panels_of({"sections": Source(path).contents()["sections"][:1]})
    assert curve(panels["Regret"], "PSConRL")[1][-1] == pytest.approx(ends[0] - 300 * optimum)
    assert curve(panels["Average steps"], "PSConRL")[1][-1] == pytest.approx(ends[0] / 300)
    assert curve(panels["Average risk"], "PSConRL")[1][-1] == pytest.approx(ends[1] / 300)
    assert panels["Average steps"]["lines"] == [["optimum", pytest.approx(optimum)]]
    assert panels["Average risk"]["lines"] == [["limit", pytest.approx(0.2)]]


def test_the_panels_of_a_sweep_say_the_units(tmp_path):
    path = tmp_path / "results.db"
    spec = 'replicates = 1\n[experiments.queue]\nagents = ["uniform"]\nhorizon = 50\n'
    run_sweep(parse_spec(spec).jobs(), path, executor=AtOnce())
    panels = panels_of(Source(path).contents())
    assert [panel["y"] for panel in panels.values()] == [
        "cumulative, signed, mean over runs, customers",
        "so far, mean over runs, customers a step",
        "so far, mean over runs, customers",
        "so far, mean over runs",
    ]
    assert [bool(panel.get("clip")) for panel in panels.values()] == [True, False, False, False]


def test_failed_runs_and_those_of_older_code_do_not_count(tmp_path):
    path = tmp_path / "results.db"
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())
    changed_unnoticed(
        path,
        "UPDATE runs SET current = 0 WHERE experiment = 'rover' AND label = 'uniform' AND replicate = 0",
        "UPDATE runs SET status = 'failed' WHERE label = 'psconrl' AND replicate = 0",
    )
    with Store(path) as store:
        wanted = store.query(
            "SELECT label, total FROM checkpoints JOIN runs ON runs.id = run WHERE experiment = 'rover'"
            " AND replicate = 1 AND round = 300 AND cost = 1"
        )
    contents = Source(path).contents()
    assert dict(contents["facts"]) == {"runs": "3 of 5", "failed": "1", "state": "1 to go"}
    assert [row[:4] for row in contents["sections"][0]["tables"][0]["rows"]] == [
        ["uniform", 1, 2, 0],
        ["PSConRL", 1, 2, 1],
    ]
    panels = panels_of({"sections": contents["sections"][:1]})
    for label, total in wanted:
        assert curve(panels["Average risk"], title_of(label))[1][-1] == pytest.approx(total / 300)


def test_a_results_file_of_an_earlier_version_has_no_plan_to_show(tmp_path):
    path = tmp_path / "results.db"
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())
    changed_unnoticed(path, "DELETE FROM meta WHERE key LIKE 'planned%'")
    contents = Source(path).contents()
    assert dict(contents["facts"]) == {"runs": "5"}
    assert [row[2] for row in contents["sections"][0]["tables"][0]["rows"]] == [None, None]


# Files that are not there, or of another kind


def test_a_file_that_is_not_there_is_waited_for(tmp_path):
    path = tmp_path / "run.csv"
    watched = Source(path)
    for content in (None, b"", b"round,episode,ki"):
        if content is not None:
            path.write_bytes(content)
        watched._not_before = 0.0
        assert watched.contents()["state"] == "waiting"
        assert (watched.report()["age"] is None) == (content is None)
    path.unlink()
    write_log(path)
    watched._not_before = 0.0
    assert watched.contents()["state"] == "log"


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", b"hello", b"round,episode\n", b"\x00\xff\n" * 9, b"SQLite format 3\0 no"]
)
def test_another_kind_of_file_is_one_line_and_exit_2(tmp_path, content):
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    ended = shell("monitor", str(path), "--no-browser")
    assert ended.returncode == 2
    (line,) = ended.stderr.strip().splitlines()
    assert "file.csv" in line
    report = Source(path).report()  # if it becomes one while it is monitored, the page says so
    assert report["contents"]["state"] == "problem"
    assert "file.csv" in report["contents"]["message"]


def test_other_mistakes_are_one_line_and_exit_2(tmp_path):
    path = str(write_log(tmp_path / "run.csv"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        wrong = {
            "is a folder": [str(tmp_path)],
            f"--port: {port} cannot be used": [path, "--port", port, "--no-browser"],
            "--port": [path, "--port", "70000"],
            "must end in .html": [path, "--once", "page.txt"],
            "no such file": [str(tmp_path / "none.csv"), "--once", str(tmp_path / "page.html")],
            "does not exist": [path, "--once", str(tmp_path / "nowhere" / "page.html")],
        }
        for message, arguments in wrong.items():
            ended = shell("monitor", *arguments)
            assert ended.returncode == 2, message
            assert message in ended.stderr or "No such file" in ended.stderr
            assert len(ended.stderr.strip().splitlines()) == 1


def test_a_snapshot_is_a_page_of_its_own(tmp_path):
    path, page = write_log(tmp_path / "run.csv"), tmp_path / "page.html"
    ended = shell("monitor", str(path), "--once", str(page))
    assert ended.returncode == 0, ended.stderr
    text = page.read_text()
    assert '"live":false' in text
    assert "https://" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_reading_that_takes_long_is_not_repeated_at_once(tmp_path, monkeypatch):
    watched, reads = Source(write_log(tmp_path / "run.csv")), []
    clock = itertools.count()  # a reading takes a second
    monkeypatch.setattr(source.time, "monotonic", lambda: next(clock))
    plain = watched._read
    monkeypatch.setattr(watched, "_read", lambda: reads.append(1) or plain())
    for _ in range(20):
        watched.contents()
    assert 3 <= len(reads) <= 5


# The server


@contextmanager
def serving(path):
    server = Server(Source(path))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
        assert not thread.is_alive()


def ask(server, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"Host": f"127.0.0.1:{server.server_port}"} | headers).items():
            for each in [value] if isinstance(value, str) else value:
                connection.putheader(name, each)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_the_server_has_two_addresses_and_answers_no_other_name(tmp_path):
    with serving(write_log(tmp_path / "run.csv")) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"
        port = server.server_port
        status, headers, page = ask(server)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert '"live":true' in page
        assert "connect-src 'self'" in headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in headers
        assert headers["Cache-Control"] == "no-store"
        status, headers, data = ask(server, "/data.json", Host=f"localhost:{port}")
        assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        assert json.loads(data)["contents"]["state"] == "log"
        for path in ("/run.csv", "/../run.csv", "/data.json?x", "/etc/passwd", "/%2e%2e/", "http://elsewhere/"):
            status, _, text = ask(server, path)
            assert (status, "round" in text) == (404, False)
        hosts = ("evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", "",
                 f"127.0.0.1:{port}.evil.example", [f"127.0.0.1:{port}", "evil.example"])  # fmt: skip
        for host in hosts:
            status, _, text = ask(server, "/data.json", Host=host)
            assert (status, "contents" in text) == (403, False), host
        status, headers, text = ask(server, method="HEAD")
        assert (status, text, int(headers["Content-Length"]) > 10_000) == (200, "", True)
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert ask(server, method=method)[0] == 501


def test_the_server_is_not_reached_from_elsewhere(tmp_path):
    """By any other address of this machine, if it has one."""
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} | {"127.0.0.2"}
    with serving(write_log(tmp_path / "run.csv")) as server:
        for address in others - {"127.0.0.1"}:
            with socket.socket() as caller:
                caller.settimeout(2)
                assert caller.connect_ex((address, server.server_port)) != 0


def test_a_silent_caller_does_not_keep_others_waiting(tmp_path):
    with serving(write_log(tmp_path / "run.csv")) as server, socket.create_connection(server.server_address):
        assert ask(server)[0] == 200


def test_names_cannot_become_markup(tmp_path):
    evil = "</script><img src=x onerror=alert(1)>{{css}}"
    log = CSVLog(tmp_path / "run.csv", [evil, "b", "c"], states=[evil] * QUEUE.n_states)
    for event in EVENTS[:30]:
        log(event)
    page = render_monitor(Source(tmp_path / "run.csv").report(), live=True)
    assert evil not in page
    assert "\\u003c/script\\u003e" in page


# As a user types it


@contextmanager
def child(*arguments, **options):
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.part(2)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_terminated(tmp_path, sent):
    path = tmp_path / "run.csv"
    with child("-m", "psconrl", "monitor", str(path), "--no-browser") as process:
        line = process.stdout.readline()
        assert "which does not exist yet" in line
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends\)", line)[1])
        server = type("At", (), {"server_port": port})
        assert json.loads(ask(server, "/data.json")[2])["contents"]["state"] == "waiting"
        write_log(path)
        for _ in range(100):
            contents = json.loads(ask(server, "/data.json")[2])["contents"]
            if contents["state"] == "log":
                break
            time.sleep(0.1)
        assert dict(contents["facts"])["rounds"] == f"{EVENTS[-1].round:,}"
        process.send_signal(sent)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest, errors) == (0, "Ended.\n", "")


# Saves itself once, soon, and then no more: what comes after is lost with the process.
LEARN = """
from psconrl.cli import autosave, learn
autosave.AUTOSAVE_SECONDS = 0.3
save = learn.Simulation.save
learn.Simulation.save = lambda run, path: None if path.exists() else save(run, path)
learn.learn_command()
"""


def test_a_run_that_is_killed_and_resumed_has_every_round_once(tmp_path):
    """The log while it runs, after kill -9, and at the end: what a monitor sees never has a round twice."""
    kept, path = tmp_path / "run.npz", tmp_path / "learning.csv"
    watched = LogFile(path)

    def last():
        """The last round in the log; every one before it is there once."""
        watched.refresh()
        if not len(watched):
            return 0
        episodes = watched.episodes()
        assert episodes.ends[0] == episodes.length[0]
        assert (episodes.ends[:-1] == (episodes.ends - episodes.length)[1:]).all()
        return int(episodes.ends[-1])

    command = ["-c", LEARN, "queue", "--log", str(path), "--horizon", "1000000000", "--save", str(kept)]
    with child(*command) as process:
        for _ in range(6000):
            if kept.exists():
                break
            time.sleep(0.05)
        saved = Simulation.resume(QUEUE, kept).round
        while last() < saved + 1000:  # lines that will be written again
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    died, seen = last(), len(watched)
    assert died >= saved + 1000
    ended = shell("learn", "queue", "--resume", str(kept), "--log", str(path), "--horizon", str(saved + 500))
    assert ended.returncode == 0, ended.stderr
    assert "psconrl monitor" in ended.stdout
    assert saved - 500 < last() <= saved + 500 < died  # the lines of the first attempt are gone
    assert len(watched) < seen
    shell("learn", "queue", "--resume", str(kept), "--log", str(path), "--horizon", str(died + 1000))
    assert last() == psconrl.load_agent(kept).rounds > died
    assert watched.unread == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--log", "run.txt"], "--log: 'run.txt' must end in .csv"),
        (["--log", "nowhere/run.csv"], "--log: folder 'nowhere' does not exist"),
        (["--log", "same.csv", "--save", "same.csv"], "is the file of the saved run"),
        (["--log", "folder.csv"], "--log: 'folder.csv' is a folder"),
        (["--log", "other.csv"], "other.csv: holds other columns; delete it or give another name"),
    ],
)
def test_a_log_that_cannot_be_written_is_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    ended = shell("learn", "counterexample", "--horizon", "200", *arguments)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_task_that_can_only_be_played_and_one_with_background_planning_have_a_log_too(tmp_path):
    for name, more in (("gym:FrozenLake-v1", []), ("queue", ["--background"])):
        path = tmp_path / f"{name[:3]}.csv"
        ended = shell("learn", name, "--horizon", "400", "--log", str(path), *more)
        assert ended.returncode == 0, ended.stderr
        if more and not path.exists():  # the rounds were over before the first plan was ready
            assert "Log: none; no episode has ended yet" in " ".join(ended.stdout.split())
            continue
        assert log_contents(read(path))["policy"]["rows"]


def test_an_agent_with_labels_is_shown_in_its_words(tmp_path):
    agent = LabelledAgent(PSConRL(2, 2, [0.5], seed=0), ["idle", "busy"], ["wait", "work"])
    agent.watch(CSVLog(tmp_path / "run.csv", ["loss", "noise"], states=agent.states, actions=agent.actions))
    for k in range(100):
        agent.observe(agent.act(["idle", "busy"][k % 2]), ["busy", "idle"][k % 2], [1.0, 0.1])
    policy = Source(tmp_path / "run.csv").contents()["policy"]
    assert {row["state"] for row in policy["rows"]} == {"idle", "busy"}
    assert {action for action, _ in policy["actions"]} <= {"wait", "work"}
