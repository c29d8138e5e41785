"""Damaged files of every kind: each reader ends in one clear message or in a result, never in a traceback.

Every damaged file comes from a seed; ``make test-slow`` tries ten thousand of them.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from damage import BYTES, VALUES
from psconrl import CMDP, CSVLog, PSConRL, load, load_agent, save
from psconrl.errors import PsconrlError
from psconrl.experiment.export import export_tables
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, read_spec
from psconrl.experiment.store import Store
from psconrl.report.monitor.page import render_monitor
from psconrl.report.monitor.source import Source
from psconrl.report.page import render_report
from psconrl.report.page_contents import build
from psconrl.simulation.model_run import Simulation
from sweeps import AtOnce
from test_foreign_agents import Saving

SPEC = """
name = "damaged"
replicates = 2
[experiments.counterexample]
agents = ["psconrl", "uniform"]
horizon = 60
checkpoints = 5
probe = [0, 1, 1]

[experiments.bayes]
env = "dirichlet"
options = { states = 3, actions = 2 }
draw = true
evaluate = true
checkpoints = "log"
horizon = 60
agents = ["psconrl"]
"""
pytestmark = pytest.mark.fuzz

MODEL = load("counterexample")


class Kind(NamedTuple):
    """A kind of file: how to make a valid one, and the ways to use it."""

    name: str
    make: Callable
    uses: dict[str, Callable]


def make_results(path):
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())
    with Store(path) as store:
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def report(path):
    with Store(path) as store:
        render_report(build(store))


def make_log(path):
    agent = PSConRL(2, 2, MODEL.thresholds, seed=0)
    agent.watch(CSVLog(path, states=MODEL.state_names))
    psconrl.simulate(MODEL, agent, 400, seed=0)


def monitor(path):
    source = Source(path)
    source.contents()
    render_monitor(source.report(), live=True)


def export_all(path):
    with Store(path) as store:
        export_tables(store, path.parent / "tables", "csv")


def resume_sweep(path):
    run_sweep(parse_spec(SPEC).jobs(), path, executor=AtOnce())


def make_run(path):
    run = Simulation(MODEL, PSConRL(2, 2, MODEL.thresholds, seed=0), 0)
    run.run(200)
    run.save(path)


def make_planning(path):
    """Save an agent that plans in the background, during an interim episode."""
    agent = PSConRL(2, 2, MODEL.thresholds, seed=0)
    agent.plan_in_background(executor=Never())
    for _ in range(20):
        agent.observe(agent.act(0), 1, [0.5, 0.5])
    agent.save(path)


class Never(Future):
    """An executor that never finishes."""

    def submit(self, task):
        return self


def resume_run(path):
    Simulation.resume(MODEL, path).run(260)


class Checked(Saving):
    """An agent that validates its own saved state: the library does not know what it should be."""

    def restore(self, state):
        super().restore(state)
        if self.visits.dtype != float or not self.visits.shape == self.costs.shape == (4,):
            raise ValueError("not what was saved")
        self.costs = self.costs.astype(float)


def make_foreign(path):
    run = Simulation(MODEL, Checked(), 0)
    run.run(100)
    run.save(path)


def resume_foreign(path):
    Simulation.resume(MODEL, path, agent=Checked()).run(160)


def go_on_by_steps(path):
    agent = load_agent(path)
    agent.finish()
    for _ in range(20):
        agent.observe(agent.act(0), 1, [0.5, 0.5])


def go_on_planning(path):
    agent = load_agent(path)
    agent.plan_in_background(executor=AtOnce())
    for _ in range(20):
        agent.observe(agent.act(0), 1, [0.5, 0.5])
    agent.finish()


def sparse():
    rng = np.random.default_rng(0)
    P = csr_array(rng.dirichlet(np.ones(4), size=12) * (rng.random((12, 4)) < 0.7) + 0.1)
    P = csr_array(P / P.sum(axis=1)[:, None])
    mask = np.ones((4, 3))
    mask[1, 2] = 0
    return CMDP(P, [rng.random((4, 3)), csr_array(P * 2)], [1.9], available=mask, state_names=list("abcd"))


def plan_model(path):
    psconrl.plan(load(path))


def play_plan(path):
    best = psconrl.Plan.load(path)
    best.act(0, np.random.default_rng(0))
    best.to_csv(path.with_suffix(".csv"))
    best.to_json(path.with_suffix(".json"))
    psconrl.plan(sparse(), start=best)
    psconrl.certify(sparse(), best)


KINDS = (
    Kind(
        "results.db", make_results, {"report": report, "export": export_all, "monitor": monitor, "sweep": resume_sweep}
    ),
    Kind("log.csv", make_log, {"monitor": monitor}),
    Kind("model.npz", lambda path: save(load("marsrover-4x4"), path), {"plan": plan_model}),
    Kind("model.json", lambda path: save(load("counterexample"), path), {"plan": plan_model}),
    Kind("sparse.npz", lambda path: save(sparse(), path), {"plan": plan_model}),
    Kind("sparse.json", lambda path: save(sparse(), path), {"plan": plan_model}),
    Kind("run.npz", make_run, {"resume": resume_run, "load": go_on_by_steps}),
    Kind("planning.npz", make_planning, {"load": go_on_by_steps, "go on": go_on_planning}),
    Kind("foreign.npz", make_foreign, {"resume": resume_foreign}),
    Kind("plan.npz", lambda path: psconrl.plan(sparse()).save(path), {"play": play_plan}),
    Kind("spec.toml", lambda path: path.write_text(SPEC), {"jobs": lambda path: read_spec(path).jobs()}),
)


def tracebacks(kind, folder, files, seed, in_turn=False):
    """The damaged files of a seed that ended in neither a message nor a result.

    Each file is used in every way; with ``in_turn``, in one way, the next file in the next way.
    """
    path = folder / kind.name
    kind.make(path)
    whole = path.read_bytes()
    values = VALUES[kind.name]
    ways = (*BYTES, *values * (6 // len(values)))
    found, outcomes = [], {"line": 0, "result": 0}
    for k in range(files):
        for old in folder.glob(f"{kind.name}*"):
            old.unlink()
        way = ways[k % len(ways)]
        rng = np.random.default_rng([seed, k])
        if way in BYTES:
            path.write_bytes(way(whole, rng))
        else:
            path.write_bytes(whole)
            way(path, rng)
        uses = list(kind.uses.items())
        for name, use in uses[k % len(uses) :][:1] if in_turn else uses:
            try:
                with warnings.catch_warnings():  # a damaged number may overflow
                    warnings.simplefilter("ignore")
                    use(path)
                outcomes["result"] += 1
            except PsconrlError as error:
                outcomes["line"] += 1
                found += [str(error)] if len(str(error).splitlines()) != 1 else []
            except Exception as error:
                found.append(f"{name} after {way.__name__}, file {k}: {type(error).__name__}: {error}")
    assert outcomes["line"] > 0  # some damage is noticed
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_one_line_or_a_result(kind, tmp_path, full):
    """Eleven ways to damage a file, and one, two or four to use it: 44 files have every pair of them."""
    files = (33 if kind.name.endswith(".db") else 200) if full else 44
    assert tracebacks(kind, tmp_path, files, seed=1, in_turn=not full) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_ten_thousand_damaged_files(kind, tmp_path):
    assert tracebacks(kind, tmp_path, 2000, seed=2) == []


def read_plan(path):
    psconrl.Plan.load(path).save(path.with_name("again.npz"))
    with np.load(path.with_name("again.npz")) as arrays:
        return {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


def test_no_bit_of_an_archive_changes_a_number_in_silence(tmp_path, full):
    """Arrays have the CRC of the zip format, and their names are in it twice, so that none is left out."""
    path = tmp_path / "plan.npz"
    psconrl.plan(sparse()).save(path)
    whole, before = path.read_bytes(), read_plan(path)
    rng, noticed = np.random.default_rng(3), 0
    for k in range(0, len(whole), 1 if full else 9):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ (1 << int(rng.integers(8)))]) + whole[k + 1 :])
        try:
            assert read_plan(path) == before, k
        except PsconrlError:
            noticed += 1
    assert noticed > len(whole) / 30
