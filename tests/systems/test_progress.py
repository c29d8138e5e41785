"""Whatever takes long on a system says so when asked, and says nothing otherwise."""

import re

import pytest

import psconrl
from psconrl.agents import PSConRL, SafeStart
from psconrl.cli import progress as cli_progress
from psconrl.errors import ConfigError
from psconrl.planning.progress import Watch
from psconrl.systems import Bernoulli, Beta, System
from psconrl.systems.reports import Reports

SEARCH = r"\d+ policies, \d+ s: value \S+, gap \S+"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Every line is passed on."""
    monkeypatch.setattr("psconrl.systems.reports.FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("psconrl.systems.reports.BETWEEN_SECONDS", 0.0)


def queue(places=400, arrival=0.3, **statement):
    statement = {"minimise": "power", "limits": ["waiting <= 3", "P(fast == 1) >= 5%"]} | statement
    return System(
        state={"waiting": range(places)}, action={"fast": [0, 1]},
        noise={"arrival": Bernoulli(arrival), "done": Bernoulli("0.6 if fast else 0.4")},
        step={"waiting": f"min(max(waiting - done, 0) + arrival, {places - 1})"},
        costs={"power": "fast + 0.01 * done * waiting"}, **statement,
    )  # fmt: skip


def matching(pattern, lines):
    return [line for line in lines if re.fullmatch(pattern, line)]


def test_every_point_of_a_trade_off_and_the_search_for_it():
    lines, system = [], queue()
    psconrl.pareto(system, "waiting", points=3, progress=lines.append)
    stages = [f"range of waiting, {k} of 2" for k in (1, 2)] + [f"point {k} of 3" for k in (1, 2, 3)]
    assert [line for line in lines if line in stages] == stages
    for stage in stages[1:]:
        assert matching(f"{stage}: {SEARCH}", lines)
    lines.clear()
    psconrl.pareto(system, "waiting", [3.0])
    psconrl.plan(system)
    assert not lines


def test_plans_for_ratios_levels_and_infeasible_limits_are_reported():
    lines = []
    psconrl.plan(queue(minimise="power / waiting", limits=["waiting >= 1"]), progress=lines.append)
    assert matching(SEARCH, lines)
    assert matching(r"\d plans for levels and ratios", lines)
    lines.clear()
    found = psconrl.plan(queue(limits=["waiting <= 0.01"]), progress=lines.append)
    assert not found.feasible
    why = "the limits cannot be kept; finding out why"
    assert why in lines
    assert matching(f"{why}: {SEARCH}", lines[lines.index(why) :])


def test_setting_up_an_agent_is_reported():
    lines, system = [], queue(40, arrival=Beta(1, 1))
    PSConRL.of(system, seed=1, progress=lines.append)
    assert lines[-3:] == ["outcomes in 40 of 40 states", "costs in 40 of 40 states", "transitions of 320 outcomes"]
    lines.clear()
    PSConRL.of(queue(40, arrival=Beta(1, 1)), seed=1)
    system.model_for_learning()
    assert not lines
    with pytest.raises(ConfigError, match="progress must be a function"):
        PSConRL.of(system, progress=3)
    with pytest.raises(ConfigError, match="progress must be a function"):
        SafeStart.of(system, progress=3)


def test_stages_precede_their_lines():
    lines = []
    report = Reports(lines.append)
    report("before")
    report.stage("point 1 of 2")
    report("a line")
    report.stage("")
    report("after")
    assert lines == ["before", "point 1 of 2", "point 1 of 2: a line", "after"]


def test_an_interrupt_ends_longer_work_but_stops_a_single_plan():
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        psconrl.pareto(
            queue(), "waiting", [3.0, 4.0], progress=lambda line: interrupt(line) if "policies" in line else None
        )
    watch = Watch(print, False)
    watch.interrupted()
    assert watch.stopped
    with pytest.raises(KeyboardInterrupt):
        Watch(print, False, stoppable=False).interrupted()


def test_the_command_line_shows_the_preparation(monkeypatch):
    shown = []
    monkeypatch.setattr(cli_progress._Line, "show", lambda self, line: shown.append(str(line)))
    cli_progress.prepare_with_progress(queue(40))
    assert "costs in 40 of 40 states" in shown
    shown.clear()
    model = queue().model()
    best = cli_progress.reference_with_progress(model)
    assert best.feasible
    assert matching(SEARCH, shown)
    low = cli_progress.reference_with_progress(model.with_thresholds({"waiting": 0.0}))
    assert low.infeasibility is not None
