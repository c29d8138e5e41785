"""Logs, pages and figures of an agent that was made for a system: its own names, and lower limits as they are."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

import psconrl
from psconrl.cli import app
from psconrl.learning.runtime.events import EpisodeEvent
from psconrl.report.monitor.log_file import LogFile
from psconrl.report.monitor.log_view import log_contents
from psconrl.report.run_figure import trace_figure
from psconrl.systems.noise import Bernoulli
from psconrl.systems.priors import Beta
from psconrl.systems.system import System


def ward(**options):
    """Patients wait for staff, which is called by name; revenue is to be high, and so is the number who are served."""
    statement = {"maximise": "revenue", "limits": ["late / arrival <= 9%", "served >= 0.2"]} | options
    return System(
        state={"waiting": 5, "mood": ["calm", "high"]}, action={"staff": ["low", "full"]},
        noise={"arrival": Bernoulli(Beta(1, 1)), "turn": Bernoulli(0.3)},
        step={
            "waiting": "min(max(waiting - (1 if staff == 'full' else 0), 0) + arrival, 4)",
            "mood": "('calm' if mood == 'high' else 'high') if turn else mood",
        },
        costs={
            "revenue": "2 - (1 if staff == 'full' else 0) - (0.5 if mood == 'high' and staff == 'low' else 0)",
            "late": "(waiting > 1) * arrival",
            "served": "(waiting > 0) * (1 if staff == 'full' else 0)",
        },
        **statement,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 600 rounds, with the log that knows nothing but its path."""
    path = tmp_path_factory.mktemp("ward") / "run.csv"
    system, events = ward(), []
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.watch(psconrl.CSVLog(path))
    agent.watch(events.append)
    known = system.with_noise(arrival=0.4)
    trace = psconrl.simulate(known, agent, 600, seed=2)
    log = LogFile(path)
    log.refresh()
    return path, log, events, trace, known


def test_a_log_has_the_names_of_the_system(run):
    path, log, events, _, _ = run
    assert log.cost_names == ["revenue [reward]", "late / arrival over 9%", "served [at least]"]
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [float(row["served [at least] limit"]) for row in rows] == [0.2] * len(events)
    assert [float(row["served [at least]"]) for row in rows] == [-event.costs[2] for event in events]
    assert [float(row["late / arrival over 9%"]) for row in rows] == [event.costs[1] for event in events]
    assert [float(row["revenue [reward] so far"]) for row in rows] == [-event.averages[0] for event in events]
    assert '"waiting=0, mood=calm"' in rows[-1]["policy"]
    assert '"staff=full"' in rows[-1]["policy"]


def test_names_that_are_given_replace_those_of_the_system(run, tmp_path):
    events = run[2]
    log = psconrl.CSVLog(tmp_path / "own.csv", ["a", "b", "c"], at_least=["c"])
    log(events[0])
    header = (tmp_path / "own.csv").read_text().splitlines()[0]
    assert ",a,b,c [at least],a so far," in header


def test_a_page_shows_lower_limits_as_they_are(run):
    contents = log_contents(run[1])
    facts = dict(contents["facts"])
    average = -run[2][-1].averages[2]
    missed = ", not reached" if average < 0.2 else ""
    assert facts["served"] == f"{average:.4g} (at least 0.2{missed})"
    panels = {panel["title"]: panel for panel in contents["sections"][0]["panels"]}
    assert panels["served"]["y"] == "average (at least its limit)"
    assert panels["served"]["lines"] == [["limit", 0.2]]
    assert "late / arrival over 9%" in panels


def test_a_page_shows_estimates_over_time(run):
    _, log, events, _, _ = run
    panels = {panel["title"]: panel for panel in log_contents(log)["sections"][0]["panels"]}
    (curve,) = panels["Estimate of arrival"]["series"]
    assert curve["x"][-1] == events[-1].round
    assert curve["mean"] == pytest.approx([event.estimates["arrival"] for event in events], rel=1e-5)


def test_the_watchdog_of_a_page_knows_lower_limits(tmp_path):
    """Plans promise at least 0.2, and 0.1 is served in 2,000 rounds: an alarm; at 0.3 there is none."""
    for served, alarms in ((0.1, 1), (0.3, 0)):
        path = tmp_path / f"{served}.csv"
        writer = psconrl.CSVLog(path, ["cost", "served"], at_least=["served"])
        averages = np.array([1.0, -served])
        for k in range(1, 21):
            writer(EpisodeEvent(100 * k, k, "optimal", 100, averages, averages, np.array([-0.2]), 1.0, 0))
        log = LogFile(path)
        log.refresh()
        assert len(log.alarms()) == alarms
        assert len(log_contents(log)["warnings"]) == alarms


def test_a_figure_shows_lower_limits_as_they_are(run):
    _, _, _, trace, known = run
    figure = trace_figure(trace, psconrl.plan(known.model()))
    served = figure.axes[4]
    assert served.get_legend_handles_labels()[1][1] == "at least 0.2"
    assert (np.asarray(served.lines[0].get_ydata()) >= 0).all()


def test_learn_prints_lower_limits_as_they_are(tmp_path):
    ward().save(tmp_path / "ward.toml")
    arguments = ["learn", str(tmp_path / "ward.toml"), "--set", "arrival=0.4", "--horizon", "300"]
    shown = CliRunner().invoke(app, arguments).output
    row = next(line.split("│") for line in shown.splitlines() if line.startswith("│ served"))
    assert float(row[2]) >= 0
    assert row[3].strip() == ">= 0.2"


def test_rules_and_maps_with_texts():
    lamp = System(
        state={"mood": ["calm", "high"]}, action={"staff": ["low", "full"]}, noise={"turn": Bernoulli(0.3)},
        step={"mood": "('calm' if mood == 'high' else 'high') if turn else mood"},
        costs={"loss": "(mood == 'high') == (staff == 'low')"}, minimise="loss",
    )  # fmt: skip
    assert lamp.plan().rule(1).text == "staff low if mood == calm, else staff full"
    answer = ward(limits=["late / arrival <= 50%"]).plan(arrival=0.4)
    found = answer.heat_map("waiting", "mood")
    chosen, number = found.likeliest_values["staff"], found.likeliest
    assert [None if k < 0 else ["low", "full"][k] for k in number.ravel()] == chosen.ravel().tolist()
    assert set(chosen.ravel().tolist()) - {None}
