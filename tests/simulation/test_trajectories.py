"""Trajectories on request: all rounds of a run, in memory, as tables and in results files."""

import csv
import sqlite3
import zlib
from contextlib import closing

import gymnasium
import numpy as np
import pytest

import psconrl
from psconrl import CMDPEnv
from psconrl.cli import main
from psconrl.errors import ConfigError, StoreError
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.experiment.trajectories import export_trajectories, read_trajectories
from psconrl.learning.registry import make_agent
from psconrl.model.names import Names
from psconrl.model.units import Units
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.run_trajectory import RunTrajectory, need_storable, stored_bytes
from psconrl.systems.noise import Bernoulli
from sweeps import AtOnce, changed, content

ROVER = psconrl.load("marsrover-4x4", slip=0.1)


def agent_for(name="psconrl-paper", model=ROVER, horizon=1000):
    sizes = model.n_states, model.n_actions, model.thresholds
    learning = {"kappa": 0.02, "eps": 0.0} if name == "triple-qa" else {}  # with which it does not warn
    return make_agent(name, *sizes, model.costs, seed=0, horizon=horizon, **learning)


@pytest.mark.parametrize("name", ["psconrl-paper", "triple-qa", "po-cmdp", "pdnac"])  # the last three at every round
@pytest.mark.parametrize("emission", ["deterministic", "bernoulli"])
def test_recording_changes_nothing_and_adds_up(name, emission):
    plain, recorded = (
        psconrl.simulate(ROVER, agent_for(name), 1000, seed=4, emission=emission, trajectory=on) for on in (False, True)
    )
    assert plain.trajectory is None
    np.testing.assert_array_equal(plain.cumulative, recorded.cumulative)
    rounds = recorded.trajectory
    assert (len(rounds), rounds.states.shape, rounds.costs.shape) == (1000, (1001,), (1000, 2))
    sums = np.cumsum(rounds.costs, axis=0)[recorded.rounds - 1]
    np.testing.assert_array_equal(sums, recorded.cumulative)
    pairs = rounds.states[:-1] * 4 + rounds.actions
    assert (ROVER.transition.toarray()[pairs, rounds.next_states] > 0).all()
    if emission == "deterministic":
        np.testing.assert_array_equal(rounds.costs[:, 0], ROVER.costs[0].ravel()[pairs])
        np.testing.assert_array_equal(rounds.costs[:, 1], np.asarray(ROVER.outcome_costs[1])[pairs, rounds.next_states])
    else:
        assert set(np.unique(rounds.costs[:, 1])) == {0.0, 1.0}


def test_both_loops_record_the_same():
    runs = [psconrl.simulate(env, agent_for(), 700, seed=1, trajectory=True) for env in (ROVER, CMDPEnv(ROVER))]
    for field in ("states", "actions", "costs"):
        one, two = (getattr(run.trajectory, field) for run in runs)
        np.testing.assert_array_equal(one, two)
    assert runs[0].trajectory.table() == runs[1].trajectory.table()


def test_an_environment_without_a_model_has_numbers():
    lake = psconrl.continuing(gymnasium.make("FrozenLake-v1"))
    agent = make_agent("uniform", lake.states.size, lake.actions.size, [], seed=0)
    rounds = psconrl.simulate(lake, agent, 40, seed=0, trajectory=True).trajectory
    table = rounds.table()
    assert list(table) == ["run", "time", "state", "action", *rounds.names.costs]
    assert table["state"] == rounds.states.tolist()
    assert set(table[rounds.names.costs[0]][:-1]) <= {0.0, 1.0}  # a reward


def test_costs_of_a_system_are_those_that_were_incurred():
    lamp = psconrl.System(
        state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(0.5)}, step={"on": "switch"},
        costs={"heat": "3 * switch"}, minimise="heat",
    )  # fmt: skip
    agent = make_agent("uniform", 2, 1, [], seed=0)
    rounds = psconrl.simulate(lamp, agent, 50, seed=0, trajectory=True).trajectory
    np.testing.assert_array_equal(rounds.costs[:, 0], 3.0 * rounds.next_states)


def test_a_run_that_goes_on_records_from_where_it_was_asked_to(tmp_path):
    run = Simulation(ROVER, agent_for(), 3)
    run.run(100)
    run.save(tmp_path / "run.npz")
    run.record_trajectory()
    first = run.run(150).trajectory
    whole = run.run(400).trajectory
    assert (first.start, len(first), len(whole)) == (100, 50, 300)
    np.testing.assert_array_equal(whole.states[:51], first.states)
    again = Simulation.resume(ROVER, tmp_path / "run.npz")
    again.record_trajectory()
    np.testing.assert_array_equal(again.run(400).trajectory.costs, whole.costs)
    assert whole.table()["time"] == list(range(100, 401))


def test_the_table_has_names_and_natural_signs(tmp_path):
    queue = psconrl.load("queue")
    agent = make_agent("uniform", queue.n_states, queue.n_actions, queue.thresholds, seed=0)
    rounds = psconrl.simulate(queue, agent, 20, seed=0, trajectory=True).trajectory
    table = rounds.table(run=7)
    assert list(table) == ["run", "time", "state", "action", "throughput", "delay", "power"]
    assert set(map(len, table.values())) == {21}
    assert table["run"] == [7] * 21
    assert table["state"][3] == queue.state_name(rounds.states[3])
    assert table["action"][-1] is table["power"][-1] is None
    assert table["throughput"][:-1] == (-rounds.costs[:, 0]).tolist()  # a reward
    rounds.to_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as f:
        rows = list(csv.reader(f))
    assert rows[0] == list(table)
    assert [float(row[5]) for row in rows[1:-1]] == table["delay"][:-1]
    assert rows[-1][3:] == [""] * 4


def test_a_cost_named_like_a_column_gets_another_name():
    names = Names(None, None, ("time", "risk"), maximise=False, units=Units())
    rounds = RunTrajectory(np.array([0, 1]), np.array([2]), np.array([[3.0, 4.0]]), names)
    assert rounds.table() == {
        "run": [0, 0], "time": [0, 1], "state": [0, 1], "action": [2, None], "cost time": [3.0, None],
        "risk": [4.0, None],
    }  # fmt: skip


def test_packed_and_unpacked_it_is_the_same():
    rounds = psconrl.simulate(ROVER, agent_for(), 300, seed=2, trajectory=True).trajectory
    assert stored_bytes(300, 2) == 4 * 301 + 4 * 300 + 16 * 300
    again = RunTrajectory.unpacked(rounds.packed(), 300, ROVER.names)
    for field in ("states", "actions", "costs"):
        np.testing.assert_array_equal(getattr(rounds, field), getattr(again, field))
    endless = zlib.compress(bytes(10_000_000))
    for data, n in ((rounds.packed(), 299), (rounds.packed()[:-9], 300), (b"", 300), (endless, 300)):
        with pytest.raises(StoreError, match="damaged: not a trajectory"):
            RunTrajectory.unpacked(data, n, ROVER.names)
    wrong = RunTrajectory(rounds.states, rounds.actions + 4, rounds.costs, ROVER.names).packed()
    with pytest.raises(StoreError, match="that do not exist"):
        RunTrajectory.unpacked(wrong, 300, ROVER.names)


def test_what_is_too_long_is_refused_before_it_begins():
    need_storable(16_000_000, 2)
    with pytest.raises(ConfigError, match=r"17,000,000 rounds with 2 costs takes 408 MB, .* 400 MB .* 16,666,666"):
        need_storable(17_000_000, 2)
    with pytest.raises(ConfigError, match=r"a trajectory of 1,000,000,000 rounds takes 32 GB"):
        psconrl.simulate(ROVER, agent_for("uniform"), 10**9, trajectory=True)
    spec = parse_spec('[experiments.queue]\nagents = ["uniform"]\nhorizon = 20_000_000\ntrajectories = true')
    with pytest.raises(ConfigError, match="experiment 'queue', agent 'uniform': a trajectory of 20,000,000 rounds"):
        run_sweep(spec.jobs(), "never.db")


SPEC = """
replicates = 2
[experiments."queue a/b"]
env = "queue"
agents = ["uniform", "psconrl-paper"]
horizon = 120
trajectories = true
[experiments.rover]
env = "marsrover-4x4"
agents = ["uniform"]
horizon = 100
"""


@pytest.fixture
def results(tmp_path):
    run_sweep(parse_spec(SPEC).jobs(), tmp_path / "r.db", executor=AtOnce())
    return tmp_path / "r.db"


def test_a_sweep_stores_the_rounds_of_its_runs(results, tmp_path):
    with Store(results) as store:
        found = list(read_trajectories(store))
        assert [(run.experiment, run.label, run.replicate) for run in found] == [
            ("queue a/b", label, k) for label in ("psconrl-paper", "uniform") for k in range(2)
        ]
        for run in found:
            last = store.series(run.run).points[-3:]
            np.testing.assert_allclose(run.trajectory.costs.sum(axis=0), [total for _, _, total, *_ in last])
            assert run.trajectory.names.actions
        assert [run.label for run in read_trajectories(store, label="uniform")] == ["uniform"] * 2
        assert not list(read_trajectories(store, "rover"))
        (path,) = export_trajectories(store, tmp_path / "tables")
    assert path.name == "trajectories-queue-a-b.csv"
    with path.open(newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 4 * 121
    assert [int(row["run"]) for row in rows] == [run.run for run in found for _ in range(121)]
    assert float(rows[5]["delay"]) == found[0].trajectory.costs[5, 1]


def test_only_runs_with_trajectories_have_another_hash():
    with_them, without = (parse_spec(text).jobs() for text in (SPEC, SPEC.replace("trajectories = true", "")))
    same = [one.hash == two.hash for one, two in zip(with_them, without, strict=True)]
    assert same == [False] * 4 + [True] * 2


def test_a_changed_trajectory_is_noticed_and_made_again(results):
    before = content(results)
    changed(results, "UPDATE trajectories SET rounds = 119 WHERE run = 1")
    with Store(results) as store, pytest.raises(StoreError, match="the trajectory of run 1 must be as it was written"):
        list(read_trajectories(store))
    with Store(results) as store:
        assert store.changed_parts(with_series=True)
        assert not store.changed_parts(with_series=False)
    again = run_sweep(parse_spec(SPEC).jobs(), results, executor=AtOnce())
    assert (again.done, again.known) == (1, 5)
    assert content(results) == before
    changed(results, "DELETE FROM trajectories WHERE run = 2")
    assert run_sweep(parse_spec(SPEC).jobs(), results, executor=AtOnce()).done == 1


def test_a_file_of_an_older_version_gets_the_table(results):
    """Such a file has no table of trajectories; it can be read, and continued."""
    changed(results, "DELETE FROM runs WHERE experiment <> 'rover'", "DROP TABLE trajectories")
    run_sweep(parse_spec(SPEC).jobs(), results, executor=AtOnce())
    with closing(sqlite3.connect(results)) as db:
        assert db.execute("SELECT count(*) FROM trajectories").fetchall() == [(4,)]


def test_the_command_line(results, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        return left.value.code or 0, capsys.readouterr()

    assert run("export", str(results), "--trajectories", "-o", "tables")[0] == 0
    assert (tmp_path / "tables/trajectories-queue-a-b.csv").is_file()
    code, printed = run("learn", "riverswim", "--horizon", "30", "--trajectory", "t.csv")
    assert (code, "Trajectory: t.csv" in printed.out) == (0, True)
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 32
    code, printed = run("learn", "riverswim", "--trajectory", "t.npz")
    assert (code, printed.err) == (2, "ConfigError: --trajectory: 't.npz' must end in .csv\n")
    spec = SPEC.replace("trajectories = true", "")
    run_sweep(parse_spec(spec).jobs(), tmp_path / "none.db", executor=AtOnce())
    code, printed = run("export", "none.db", "--trajectories")
    assert (code, "no run has a trajectory; set trajectories = true" in printed.err) == (2, True)
