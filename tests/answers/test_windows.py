"""Constraints over windows, against power series, linear programs and play; errors; the command."""

import csv
import json

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import psconrl
from psconrl.cli import main
from psconrl.errors import ConfigError, InfeasibleError, ModelError, PolicyError

CASES = [("islands", {}, 50), ("corridor", {}, 30), ("queue", {}, 20), ("inventory", {}, 7)]


def arrays(model):
    return model.transition.toarray().reshape(model.n_states, model.n_actions, model.n_states)


def window_lp(model, state, length):
    """The least objective over a window from a state within the limits; None if there is none."""
    S, A = model.n_states, model.n_actions
    stay = 1.0 - 1.0 / length
    flow = np.repeat(np.eye(S), A, axis=1) - stay * arrays(model).reshape(S * A, S).T
    start = np.zeros(S)
    start[state] = 1.0 / length
    costs = model.costs.reshape(len(model.costs), S * A)
    found = linprog(costs[0], costs[1:], model.thresholds, flow, start, method="highs")
    return found.fun if found.success else None


@pytest.mark.parametrize(("name", "options", "length"), CASES)
def test_every_window_has_the_optimum_of_its_linear_program(name, options, length):
    model = psconrl.load(name, **options)
    windows = psconrl.plan_windows(model, length)
    assert windows.proven
    for state, part in windows.plans.items():
        least = window_lp(model, state, length)
        assert part.feasible == (least is not None)
        if least is not None:
            assert part.costs[0] == pytest.approx(least, abs=1e-9)
    assert set(windows.infeasible.tolist()) == {s for s, part in windows.plans.items() if not part.feasible}


@pytest.mark.parametrize(("name", "options", "length"), CASES)
def test_averages_are_those_of_the_rounds_one_after_another(name, options, length):
    """Sums over the rounds of a window, then over many windows, by hand."""
    model = psconrl.load(name, **options)
    windows = psconrl.plan_windows(model, length)
    P, stay = arrays(model), 1.0 - 1.0 / length
    averages, follow = {}, np.zeros((model.n_states, model.n_states))
    for state, part in windows.plans.items():
        chain = np.einsum("sa,sat->st", part.policy, P)
        paid = np.einsum("sa,isa->is", part.policy, model.costs)
        here, weight, total = np.eye(model.n_states)[state], 1.0 / length, np.zeros(len(model.costs))
        for _ in range(60 * length):  # what is left has a weight of e^-60
            total += weight * (paid @ here)
            here = here @ chain
            follow[state] += weight * here
            weight *= stay
        averages[state] = total
        assert total == pytest.approx(part.costs, abs=1e-9)
    first = model.initial.copy()
    for _ in range(4000):  # far beyond convergence: a window may end where it begins
        first = first @ follow
    long_run = sum(first[s] * averages[s] for s in averages)
    assert long_run == pytest.approx(windows.costs, abs=1e-9)
    assert windows.worst == pytest.approx(np.max([a[1:] for a in averages.values()], axis=0), abs=1e-9)
    assert windows.price == pytest.approx(windows.costs[0] - psconrl.plan(model).costs[0], abs=1e-9)


def test_the_controller_plays_windows(full):
    """A run of 200,000 rounds, or 40,000. False alarm: beyond five standard errors of 200 batches, below 1e-5."""
    model = psconrl.load("islands")
    windows = psconrl.plan_windows(model, 20)
    P, rng, state = arrays(model), np.random.default_rng(1), 0
    controller = windows.controller(2)
    rounds = 200_000 if full else 40_000
    paid = np.zeros((rounds, 2))
    for t in range(rounds):
        action = controller.act(state)
        paid[t] = model.costs[:, state, action]
        state = int(rng.random() < P[state, action, 1])
    batches = paid.reshape(200, -1, 2).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(batches.mean(axis=0) - windows.costs) < 5.0 * error).all()


def test_a_window_ends_after_a_round_with_probability_one_over_its_length():
    """40,000 rounds, five standard errors: a false alarm in more than a million."""
    windows, rounds = psconrl.plan_windows(psconrl.load("islands"), 20), 40_000
    controller, ended = windows.controller(4), 0
    for _ in range(rounds):
        controller.act(0)
        ended += controller._plan is None
    assert abs(ended / rounds - 1 / 20) < 5.0 * np.sqrt(1 / 20 * 19 / 20 / rounds)


def test_the_same_seed_plays_the_same():
    windows = psconrl.plan_windows(psconrl.load("queue"), 20)
    first, second = windows.controller(3), windows.controller(np.random.default_rng(3))
    assert [first.act("3 waiting") for _ in range(200)] == [second.act("3 waiting") for _ in range(200)]


def test_longer_windows_cost_less():
    prices = [psconrl.plan_windows(psconrl.load("islands"), length).price for length in (10, 100, 1000)]
    assert prices[0] > prices[1] > prices[2] > 0.0


def test_windows_that_no_policy_saves_are_named():
    windows = psconrl.plan_windows(psconrl.load("queue"), 20)
    assert windows.infeasible.tolist() == [8, 9]
    assert windows.worst[0] > 2.0
    assert "2 of them infeasible" in repr(windows)
    assert windows.controller(0).act("9 waiting")  # the policy of least excess


def test_sparse_models_have_the_same_windows():
    dense = psconrl.load("queue")
    sparse = psconrl.CMDP(
        csr_array(dense.transition.toarray()), dense.costs, dense.thresholds, initial=dense.initial, maximise=True
    )
    one, other = psconrl.plan_windows(dense, 30), psconrl.plan_windows(sparse, 30)
    assert other.value == pytest.approx(one.value, abs=1e-9)
    assert other.worst == pytest.approx(one.worst, abs=1e-9)


@pytest.mark.parametrize("within", [1, 0, -5, float("nan"), float("inf"), "long", None])
def test_a_length_must_be_a_number_of_rounds(within):
    with pytest.raises(ConfigError, match="within must be a finite number of rounds above 1"):
        psconrl.plan_windows(psconrl.load("islands"), within)


def test_what_cannot_be_planned_is_refused(monkeypatch):
    model = psconrl.load("queue")
    with pytest.raises(ModelError, match="plan_windows needs a CMDP"):
        psconrl.plan_windows("queue", 10)
    with pytest.raises(InfeasibleError):
        psconrl.plan_windows(model.with_thresholds([0.0, 0.0]), 10)
    with pytest.raises(ModelError, match="plain must be the plan of this model"):
        psconrl.plan_windows(model, 10, psconrl.plan(psconrl.load("islands")))
    with pytest.raises(ModelError, match=r"plain must be a plan, as .* returns it; got str"):
        psconrl.plan_windows(model, 10, "plan")
    with pytest.raises(ConfigError, match="progress must be a function, such as print; got 3"):
        psconrl.plan_windows(model, 10, progress=3)
    windows = psconrl.plan_windows(model, 10)
    for rng in ("x", -1, 0.5):
        with pytest.raises(PolicyError, match="rng must be a NumPy generator or a seed from 0 on"):
            windows.controller(rng)
    monkeypatch.setattr("psconrl.answers.windows.MOST_STARTS", 3)
    with pytest.raises(ConfigError, match="windows can begin in more than 3 states"):
        psconrl.plan_windows(model, 10)


def test_a_window_begins_only_where_the_start_leads():
    model = psconrl.CMDP(
        [[[1.0, 0.0]], [[1.0, 0.0]]], [[[0.0], [1.0]], [[0.0], [0.0]]], [0.5], state_names=["here", "there"]
    )
    controller = psconrl.plan_windows(model, 10).controller(0)
    assert controller.act(0) == 0
    for _ in range(100):
        controller.act("here")
    with pytest.raises(PolicyError, match="no window begins in state 'there'"):
        psconrl.plan_windows(model, 10).controller(0).act("there")


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_the_probability_of_a_restart_is_checked(probability):
    with pytest.raises(ModelError, match="probability must lie in"):
        psconrl.load("islands").restarting(0, probability)


def test_a_restart_leads_to_one_state():
    with pytest.raises(ModelError, match="restarting needs one state"):
        psconrl.load("islands").restarting([0.5, 0.5], 0.1)


def test_progress_counts_states():
    lines = []
    psconrl.plan_windows(psconrl.load("islands"), 10, progress=lines.append)
    assert lines[-1] == "2 of 2 states in which windows begin"


def test_the_command_shows_windows_and_writes_their_policies(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["solve", "queue", "--within", "20", "--policy", str(tmp_path / "policies.csv")])
    assert ended.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "over windows of 20 rounds" in printed
    assert "Windows: they begin in 10 states; to keep the limits wherever that is possible costs" in printed
    assert "Windows from 2 states exceed a limit under every policy: '8 waiting', '9 waiting'." in printed
    rows = list(csv.DictReader((tmp_path / "policies.csv").read_text(encoding="utf-8").splitlines()))
    assert list(rows[0]) == ["first_state", "state", "action", "probability", "long_run_share"]
    windows = psconrl.plan_windows(psconrl.load("queue"), 20)
    own = [row for row in rows if row["first_state"] == "4 waiting" and row["state"] == "4 waiting"]
    assert sum(float(row["probability"]) for row in own) == pytest.approx(1.0)
    assert len({row["first_state"] for row in rows}) == len(windows.plans)


def test_the_command_has_windows_in_its_json(capsys):
    with pytest.raises(SystemExit):
        main(["solve", "islands", "--within", "50", "--json"])
    record = json.loads(capsys.readouterr().out)["windows"]
    windows = psconrl.plan_windows(psconrl.load("islands"), 50)
    assert record["price"] == pytest.approx(windows.price)
    assert record["worst"] == {"other": pytest.approx(0.5)}
    assert record["first_states"] == ["first", "second"]


def test_the_command_refuses_windows_of_simpler_policies(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["solve", "queue", "--within", "20", "--kind", "threshold"])
    assert ended.value.code == 2
    assert "windows have plans of their own" in " ".join(capsys.readouterr().err.split())
