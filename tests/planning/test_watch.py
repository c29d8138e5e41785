"""Monitoring a long plan: progress, estimates, and interruption."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from models import tandem
from psconrl.cli import progress as lines
from psconrl.planning import methods
from psconrl.planning import plan_time as estimates
from psconrl.planning.mixture import solve as solving
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.plan_time import PlanningEffort, planning_effort
from psconrl.planning.progress import Progress
from psconrl.planning.proof import candidate_to_plan
from psconrl.planning.proof.certificate import Status


def queue(n=600, limit=5.0, maximise=False):
    """Pay for speed; few may wait on average. Sparse, slow to mix."""
    k = np.arange(n)
    rows, columns, data = [], [], []
    for a, serve in enumerate((0.32, 0.45)):
        up, down = np.where(k < n - 1, 0.3, 0.0), np.where(k > 0, serve, 0.0)
        for to, p in ((np.minimum(k + 1, n - 1), up), (np.maximum(k - 1, 0), down), (k, 1.0 - up - down)):
            rows.append(2 * k + a), columns.append(to), data.append(p)
    P = csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(2 * n, n))
    speed, waiting = np.repeat([[0.0, 1.0]], n, axis=0), np.repeat(k[:, None], 2, axis=1).astype(float)
    if maximise:
        return psconrl.CMDP(P, [5.0 - 2.0 * speed, waiting], [limit], maximise=True)
    return psconrl.CMDP(P, [speed, waiting], [limit])


@pytest.mark.parametrize("maximise", [False, True])
def test_progress_closes_in_on_the_value_from_both_sides(maximise):
    reported = []
    model = queue(maximise=maximise)
    plan = psconrl.plan(model, progress=reported.append)
    assert plan.status is Status.OPTIMAL
    sign = -1 if maximise else 1
    assert all(sign * p.value >= sign * plan.value - 1e-9 for p in reported)
    assert all(sign * p.bound <= sign * plan.value + 1e-9 for p in reported)
    assert [p.policies for p in reported] == sorted(p.policies for p in reported)
    assert reported[-1].gap <= 1e-8 < reported[0].gap
    assert reported[-1].value == pytest.approx(plan.value, abs=1e-8)


def test_a_line_of_progress():
    assert str(Progress(7, 1.25, 1.0, 12.4)) == "7 policies, 12 s: value 1.25, gap 2.5e-01"
    assert Progress(7, -3.0, -2.5, 0.0).gap == 0.5


def interrupted_after(monkeypatch, steps):
    improve, asked = Howard.improve, []

    def stop(self, *question):
        asked.append(1)
        if len(asked) == steps:
            raise KeyboardInterrupt
        return improve(self, *question)

    monkeypatch.setattr(Howard, "improve", stop)


def test_ctrl_c_returns_the_best_plan_so_far(monkeypatch):
    model = tandem(20)
    best = psconrl.plan(model)
    interrupted_after(monkeypatch, 4)
    plan = psconrl.plan(model, progress=lambda _: None)
    assert plan.status is Status.STOPPED
    assert plan.note == "stopped by hand"
    assert plan.meets_constraints
    assert plan.certificate.holds
    assert plan.certificate.lower <= best.value <= plan.value
    assert plan.gap > 1e-6
    assert (plan.costs[1:] <= model.thresholds + 1e-7).all()
    again = psconrl.certify(model, plan)
    assert again.holds
    assert again.gap == pytest.approx(plan.gap)
    assert psconrl.evaluate(model, plan.policy).costs == pytest.approx(plan.costs)


def test_ctrl_c_ends_the_program_without_a_progress_callback(monkeypatch):
    interrupted_after(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        psconrl.plan(queue())


def test_ctrl_c_before_anything_feasible_is_found(monkeypatch):
    interrupted_after(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        psconrl.plan(queue(), progress=lambda _: None)


def test_a_stopped_plan_is_kept_and_read(monkeypatch, tmp_path):
    interrupted_after(monkeypatch, 4)
    plan = psconrl.plan(tandem(20), progress=lambda _: None)
    plan.save(tmp_path / "plan.npz")
    read = psconrl.Plan.load(tmp_path / "plan.npz")
    assert read.status is Status.STOPPED
    assert read.gap == plan.gap
    assert "stopped" in Status.STOPPED.advice


def test_estimates_in_closed_form(monkeypatch):
    assert planning_effort(psconrl.load("queue")) is None
    model = queue(6000)
    monkeypatch.setattr(estimates, "_timed", lambda cmdp: (2e-3, False))
    slow = planning_effort(model)
    entries = model.transition.n_possible
    assert slow.seconds == pytest.approx(estimates.PASSES * 2e-3)
    size = estimates.BYTES_PER_ENTRY * entries + 2 * 6000 * (2 * estimates.BYTES_PER_COST + estimates.BYTES_PER_STATE)
    assert slow.gigabytes == pytest.approx(size / 1e9)
    monkeypatch.setattr(estimates, "_timed", lambda cmdp: (2e-3, True))
    assert planning_effort(model).seconds == pytest.approx(estimates.PASSES_IF_MIXING * 2e-3)
    monkeypatch.setattr(estimates, "_timed", lambda cmdp: (1e-3, False))
    assert planning_effort(queue(100_000)).seconds == pytest.approx(2 * estimates.PASSES * 1e-3)  # ten times 10,000
    assert str(PlanningEffort(14.6, 0.64)) == "about 15 s, 0.6 GB"
    assert str(PlanningEffort(250.0, 4.96)) == "about 4 minutes, 5.0 GB"


def test_what_mixes_is_recognised():
    assert not estimates._timed(queue(6000))[1]
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 6000, size=6000 * 5)
    P = csr_array((np.full(30_000, 0.2), (np.repeat(np.arange(6000), 5), columns)), shape=(6000, 6000))
    assert estimates._timed(psconrl.CMDP(P, [rng.random((6000, 1))], []))[1]


def test_the_line_of_the_terminal(capsys):
    clock = iter([0.0, 0.5, 2.0, 3.0]).__next__
    line = lines._Line(True, clock)
    line.show(Progress(1, 2.0, 1.0, 0.5))  # too early
    assert capsys.readouterr().err == ""
    line.show(Progress(2, 2.0, 1.0, 2.0))
    assert capsys.readouterr().err == "\r2 policies, 2 s: value 2, gap 1.0e+00"
    line.end()
    assert capsys.readouterr().err.strip() == ""
    silent = lines._Line(False, lambda: 10.0)
    silent.show(Progress(2, 2.0, 1.0, 2.0))
    silent.end()
    assert capsys.readouterr().err == ""


def test_the_line_is_cut_to_the_width_of_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    lines._Line(True, lambda: 0.0, patience=0.0).show("Range of 'delay\n'")
    assert capsys.readouterr().err == "\rRange of "


def test_simpler_policies_and_inspection_show_their_progress(monkeypatch, capsys):
    monkeypatch.setattr(lines, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(lines.sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    model = psconrl.load("garnet")
    best = psconrl.plan(model)
    found = lines.best_deterministic_with_progress(model, best, 5)
    assert not found.is_proven
    said = capsys.readouterr().err
    assert "\r4 plans, 0 s: value " in said
    assert "(Ctrl-C stops with the best so far)" in said
    assert lines.threshold_rule_with_progress(model, best) is not None
    assert "\r9 threshold rules evaluated (Ctrl-C stops" in capsys.readouterr().err
    assert lines.inspect_with_progress(model, False).n_states == 20
    said = capsys.readouterr().err
    for step in ("Plan", "Range of 'objective', 1 of 2", "Structure and diameter"):
        assert f"\r{step}" in said


def test_ctrl_c_while_randomised_actions_are_reduced_keeps_them(monkeypatch):
    model = tandem(20)
    best = psconrl.plan(model)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(methods, "fewest_randomised", stop)
    plan = psconrl.plan(model, progress=lambda _: None)
    assert plan.status is Status.OPTIMAL
    assert plan.value == pytest.approx(best.value, abs=1e-9)
    with pytest.raises(KeyboardInterrupt):
        psconrl.plan(model)


def test_ctrl_c_while_answers_are_refined(monkeypatch):
    monkeypatch.setattr(solving, "HASTY_STATES", 1)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Howard, "refined", stop)
    plan = psconrl.plan(tandem(20), progress=lambda _: None)
    assert plan.status in (Status.STOPPED, Status.OPTIMAL)
    assert plan.certificate.holds


def test_progress_that_cannot_be_called():
    with pytest.raises(psconrl.ConfigError, match=r"progress must be a function, such as print; got 3"):
        psconrl.plan(queue(300), progress=3)


@pytest.mark.parametrize("where", ["distributions", "certificate"])
def test_ctrl_c_while_a_plan_is_put_together(monkeypatch, where):
    places = {"distributions": (solving, "mixed_occupancy"), "certificate": (candidate_to_plan, "evaluate_policy")}
    place, name = places[where]
    work, asked = getattr(place, name), []

    def stop(*given):
        asked.append(1)
        if len(asked) > 1:
            return work(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, name, stop)
    plan = psconrl.plan(tandem(20), progress=lambda _: None)
    assert plan.status is Status.OPTIMAL
    asked.clear()
    with pytest.raises(KeyboardInterrupt):
        psconrl.plan(tandem(20))
