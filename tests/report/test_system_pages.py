"""Logs, pages and figures of an agent that was made for a system: its own names, and lower limits as they are."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

import psconrl
from psconrl.cli import app
from psconrl.learning.runtime.events import EpisodeEvent
from psconrl.report.monitor.log_contents import log_contents
from psconrl.report.monitor.log_file import LogFile
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
    assert "late / arrival over 9%" not in panels


def played_by_hand(agent, rounds):
    """Play the ward in plain Python; return how many arrived, and how many of them waited."""
    rng, state, arrived, late = np.random.default_rng(5), {"waiting": 0, "mood": "calm"}, 0, 0
    for _ in range(rounds):
        action, waiting = agent.act(state), state["waiting"]
        arrival, turn = int(rng.random() < 0.6), rng.random() < 0.3
        arrived, late = arrived + arrival, late + arrival * (waiting > 1)
        served = int(action["staff"] == "full")
        mood = state["mood"] if not turn else "calm" if state["mood"] == "high" else "high"
        state = {"waiting": min(max(waiting - served, 0) + arrival, 4), "mood": mood}
        agent.observe(action, state, noise={"arrival": arrival})
    return arrived, late


def test_a_ratio_is_that_of_what_happened_on_the_page_and_in_the_log(tmp_path):
    """Counted by hand in a run: late arrivals by all arrivals, against 9%."""
    path, events = tmp_path / "run.csv", []
    agent = psconrl.PSConRL.of(ward(), seed=3)
    agent.watch(psconrl.CSVLog(path))
    agent.watch(events.append)
    arrived, late = played_by_hand(agent, 300)
    agent.finish()
    (ratio,) = events[-1].ratios
    assert (ratio.row, ratio.name, ratio.limit) == (1, "late / arrival", 0.09)
    assert ratio.so_far == pytest.approx(late / arrived)
    weights = [event.length * event.ratios[0].per_round for event in events]
    assert sum(weights) == pytest.approx(arrived)
    parts = [weight * event.ratios[0].episode for weight, event in zip(weights, events, strict=True) if weight]
    assert sum(parts) == pytest.approx(late)
    log = LogFile(path)
    log.refresh()
    contents = log_contents(log)
    exceeded = ", exceeded" if late / arrived > 0.09 else ""
    assert dict(contents["facts"])["late / arrival"] == f"{100 * late / arrived:.4g}% (limit 9%{exceeded})"
    (panel,) = (one for one in contents["sections"][0]["panels"] if one["title"] == "late / arrival")
    assert (panel["y"], panel["lines"]) == ("ratio of averages, %", [["limit", 9.0]])
    curves = {curve["agent"]: curve["mean"] for curve in panel["series"]}
    assert curves["since the start"][-1] == pytest.approx(100 * late / arrived)
    row = list(csv.DictReader(path.read_text().splitlines()))[-1]
    assert float(row["ratio of limit 1: late / arrival [%] so far"]) == pytest.approx(late / arrived)


def test_a_ratio_with_a_lower_limit_and_another_threshold_is_shown_as_it_is(tmp_path):
    """The limit on the ratio is where its linear limit meets the threshold: r - t / b for "at least"."""
    events = []
    made = psconrl.PSConRL.of(ward(limits=["served / arrival >= 20%", "late <= 0.5"]), seed=3)
    made.save(tmp_path / "agent.npz")
    agent = psconrl.load_agent(tmp_path / "agent.npz")  # the file holds the ratios
    agent.watch(events.append)
    arrived, _ = played_by_hand(agent, 200)
    agent.finish()
    (ratio,) = events[-1].ratios
    assert (ratio.row, ratio.limit) == (1, 0.2)
    assert ratio.so_far == pytest.approx(0.2 + -events[-1].averages[1] / (arrived / 200))
    agent.set_thresholds([-0.03, 0.5])
    more, _ = played_by_hand(agent, 100)
    agent.finish()
    assert events[-1].ratios[0].limit == pytest.approx(0.2 + 0.03 / ((arrived + more) / 300))


def test_a_ratio_whose_denominator_is_hidden_is_shown_by_its_linear_limit(tmp_path):
    """Arrivals in a full ward are not seen."""
    path, events = tmp_path / "run.csv", []
    agent = psconrl.PSConRL.of(ward(), seed=3)
    agent.watch(psconrl.CSVLog(path))
    agent.watch(events.append)
    agent.act({"waiting": 0, "mood": "calm"})
    agent.observe({"staff": "low"}, {"waiting": 1, "mood": "calm"})  # one arrival is seen
    for k in range(40):
        agent.act({"waiting": 4, "mood": ["calm", "high"][k // 3 % 2]})
        agent.observe({"staff": "low"}, {"waiting": 4, "mood": ["calm", "high"][(k + 1) // 3 % 2]})
    agent.finish()
    assert np.isnan([events[-1].ratios[0].so_far, events[-1].ratios[0].per_round]).all()
    log = LogFile(path)
    log.refresh()
    facts = dict(log_contents(log)["facts"])
    assert facts["late / arrival over 9%"] == "unknown (limit 0)"
    assert "late / arrival" not in facts


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
    assert psconrl.rule(psconrl.plan(lamp), 1).text == "staff low if mood == calm, else staff full"
    answer = psconrl.plan(ward(limits=["late / arrival <= 50%"]), arrival=0.4)
    found = psconrl.heat_map(answer, "waiting", "mood")
    chosen, number = found.likeliest_values["staff"], found.likeliest
    assert [None if k < 0 else ["low", "full"][k] for k in number.ravel()] == chosen.ravel().tolist()
    assert set(chosen.ravel().tolist()) - {None}


def test_denominators_are_added_up_from_episode_to_episode_and_found_again_without():
    """A second watcher that joins late has the same numbers as one that recomputes them from all counts."""
    events = []
    agent = psconrl.PSConRL.of(ward(), seed=3)
    arrived = played_by_hand(agent, 100)[0]
    agent.finish()
    agent.watch(events.append)  # from here on
    for rounds in (80, 120):
        arrived += played_by_hand(agent, rounds)[0]
        agent.finish()
        total = agent.belief.denominators.sums(agent.counts)
        assert total == pytest.approx([arrived])
        assert agent.belief.denominators._running[1] == pytest.approx(total)
    assert len(events) > 2
