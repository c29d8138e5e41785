"""Every reader of a file: how to make a file for it, and how to read the file and use what it holds a little."""

import contextlib
import io
import json
import lzma
import sqlite3
import tempfile
from concurrent.futures import Future
from contextlib import closing
from dataclasses import asdict, replace
from importlib import resources
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import psconrl
import psconrl.check_proof.__main__ as checker
from damage.judging import Reader, RefusedError
from damage.trees import json_text
from damage.user_agents import Checked
from psconrl import CMDP, CSVLog, LabelledAgent, PSConRL, System, load_agent
from psconrl.agents import SafeStart, known_baseline
from psconrl.check_proof.model_files import read_model
from psconrl.cli import main as command
from psconrl.envs.registry import load_system
from psconrl.experiment.provenance import restore
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, read_spec
from psconrl.experiment.store import Store
from psconrl.experiment.trajectories import read_trajectories
from psconrl.learning.registry import RECIPES, make_agent
from psconrl.learning.runtime.persistence import read_saved
from psconrl.report import page_contents
from psconrl.report.board_page import board_contents, submissions_by_title, write_board
from psconrl.report.export import export_tables
from psconrl.report.monitor.page import render_monitor
from psconrl.report.monitor.source import Source
from psconrl.report.page import render_report
from psconrl.report.submission import files_digest
from psconrl.report.submission_checksums import with_checksums
from psconrl.report.submission_file import read_submission, write_submission
from psconrl.simulation.model_run import Simulation
from random_systems import random_system
from reports import made_up_submission
from sweeps import AtOnce, changed_unnoticed, content

MODEL = psconrl.load("counterexample")
STOCK, KNOWN_STOCK = load_system("inventory"), load_system("inventory", known=True)
# From s0 to s1 and back; staying costs (0, 1) and (1, 0), moving (1, 1): the optimum is a mixture of two policies.
ISLANDS = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 1], [1, 1]], [[1, 1], [0, 1]]], [0.5])
SOME_STATES = 300  # of a system, above which its model takes long to build: this is not about files
SPEC = """
name = "damaged"
replicates = 2
seed = {seed}
[experiments.counterexample]
agents = ["psconrl", "uniform"]
horizon = 60
checkpoints = 5
probe = [0, 1, 1]
trajectories = true

[experiments.bayes]
env = "dirichlet"
options = {{ states = 3, actions = 2 }}
draw = true
evaluate = true
checkpoints = "log"
horizon = 60
agents = ["psconrl"]
"""


class Never(Future):
    """An executor that never finishes."""

    def submit(self, task):
        return self


def small_model(seed, sparse=False) -> CMDP:
    """A random model of four states and three actions, of which one is not available."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(4), size=12) * (rng.random((12, 4)) < 0.7) + 0.1
    P /= P.sum(axis=1)[:, None]
    mask = np.ones((4, 3))
    mask[1, 2] = 0
    P[5] = 0
    costs = [rng.random((4, 3)), csr_array(P * 2) if sparse else rng.random((4, 3))]
    return CMDP(
        csr_array(P) if sparse else P.reshape(4, 3, 4), costs, [1.9 if sparse else 0.5], available=mask,
        state_names=list("abcd"), units=psconrl.Units(round="minute"),
    )  # fmt: skip


def dense(path, seed):
    psconrl.save(small_model(seed), path)


def sparse(path, seed):
    psconrl.save(small_model(seed, sparse=True), path)


def plan_and_save(path):
    model = psconrl.load(path)
    psconrl.plan(model)
    psconrl.save(model, path.with_name(f"again{path.suffix}"))


def plan(path, seed):
    psconrl.plan(small_model(seed) if seed else ISLANDS).save(path)


def play_plan(path):
    best = psconrl.Plan.load(path)
    rng = np.random.default_rng(0)
    (best if best.mixture is None else best.draw(rng)).act(0, rng)
    best.to_csv(path.with_suffix(".csv"))
    best.to_json(path.with_suffix(".json"))
    model = ISLANDS if best.policy.shape == (2, 2) else small_model(0)
    psconrl.plan(model, start=best)
    psconrl.certify(model, best)


def packed_drn(path, seed):
    plain = path.with_name("plain.drn")
    psconrl.save(small_model(seed), plain)
    path.write_bytes(lzma.compress(plain.read_bytes()))


def plan_explicit(path):
    """Read a file of another program."""
    psconrl.plan(psconrl.load(path, minimise="objective"))


def run(*arguments):
    """Run a command; an exit code that says that it refused is an error for the user."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            command([str(each) for each in arguments])
        except SystemExit as ended:
            if ended.code:
                raise RefusedError(f"exit code {ended.code}") from None


def check(model, proof):
    """Check a proof with the checker alone and with the command of the library, which must agree."""
    said = io.StringIO()
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(said):
        code = checker.check_files([str(model), str(proof)])
    if MemoryError.__name__ in said.getvalue():
        raise MemoryError
    try:
        run("verify", model, proof)
    except RefusedError:
        assert code, "refused by verify, proven by check_proof"
        raise
    assert code == 0, f"proven by verify, code {code} of check_proof"


def check_against(model):
    def read(path):
        """Check a proof against its model."""
        psconrl.save(model, path.with_name("model.npz"))
        check(path.with_name("model.npz"), path)

    return read


def check_with_right_proof(path):
    proof = path.with_name("right-proof.json")
    proof_of(small_model(0))(proof, 0)
    check(path, proof)


def proof_of(model):
    return lambda path, _: psconrl.plan(model).save_proof(path, model)


def proven(path, seed):
    psconrl.save(small_model(0), path)


def system(path, seed):
    random_system(seed)[0].save(path)


def build(path):
    """Read a system, write it in the other format, and build its model if that is quick."""
    found, again = System.load(path), path.with_name(f"again{'.toml' if path.suffix == '.json' else '.json'}")
    found.save(again)
    System.load(again)
    if found.states.size * found.actions.size <= SOME_STATES:
        PSConRL.of(found) if found.source.unknown() else found.model()


def any_agent(path, seed):
    """Save an agent of the registry after some rounds; the seed chooses which."""
    names = sorted(RECIPES)
    name = names[seed % len(names)]
    options = {} if name != "safe" else known_baseline(MODEL)
    agent = make_agent(name, 2, 2, MODEL.thresholds, MODEL.costs, seed=seed, horizon=1000, **options)
    played(agent).save(path)


def played(agent):
    """Return an agent after some rounds, in which it goes from the first state to the second and back."""
    n = min(agent.n_states, 2)
    for k in range(40):
        agent.observe(agent.act(k % n), (k + 1) % n, [0.5] * agent.n_costs)
    return agent


def run_of_system(path, seed):
    agent = PSConRL.of(STOCK, seed=seed) if seed % 2 else safe_agent(seed)
    simulated = Simulation(KNOWN_STOCK, agent, seed)
    simulated.run(60)
    simulated.save(path)


def safe_agent(seed):
    known = known_baseline(KNOWN_STOCK.model_for_learning(), by_state=True)
    del known["ranges"]
    return SafeStart.of(STOCK, seed=seed, **known)


def planning_agent(path, seed):
    """Save an agent that plans in the background, during an interim episode."""
    agent = PSConRL(2, 2, MODEL.thresholds, seed=seed)
    agent.plan_in_background(executor=Never())
    played(agent).save(path)


def labelled_agent(path, seed):
    agent = LabelledAgent(PSConRL(2, 2, MODEL.thresholds, seed=seed), ["idle", "busy"], [0, ("a", 1)])
    agent.observe(agent.act("idle"), "busy", [0.5, 0.5])
    agent.save(path)


def play_on_labels(path):
    agent = LabelledAgent.load(path)
    agent.observe(agent.act("idle"), "busy", [0.5, 0.5])


def play_on(path):
    agent = load_agent(path)
    agent.finish()
    played(agent).save(path)


def plan_on(path):
    agent = load_agent(path)
    agent.plan_in_background(executor=AtOnce())
    played(agent).save(path)


def learner(seed):
    return PSConRL(2, 2, MODEL.thresholds, seed=seed)


def run_of(agent):
    def sample(path, seed):
        simulated = Simulation(MODEL, agent(seed), seed, evaluate_policies=bool(seed % 2))
        simulated.run(200)
        simulated.save(path)

    return sample


def resume(model, agent=None):
    def read(path):
        found = Simulation.resume(model, path, agent=agent and agent())
        found.run(found.round + 60)
        found.save(path)

    return read


def log(path, seed):
    agent = PSConRL(2, 2, MODEL.thresholds, seed=0)
    agent.watch(CSVLog(path, states=MODEL.state_names))
    psconrl.simulate(MODEL, agent, 200 + 20 * seed, seed=0)


def continue_log(path):
    log(path, 12)


def log_of_system(path, seed):
    agent = PSConRL.of(STOCK, seed=seed)
    agent.watch(CSVLog(path))
    Simulation(KNOWN_STOCK, agent, seed).run(100)


def results(path, seed):
    run_sweep(parse_spec(SPEC.format(seed=seed)).jobs(), path, executor=AtOnce())
    with Store(path) as store:
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def continue_sweep(path):
    results(path, 0)


def spec(path, seed):
    """Write a shipped spec, or a short one."""
    folder = resources.files("psconrl.experiment").joinpath("specs")
    shipped = sorted((each for each in folder.iterdir() if each.name.endswith(".toml")), key=lambda each: each.name)
    path.write_text(SPEC.format(seed=seed) if seed == 0 else shipped[seed % len(shipped)].read_text())


def jobs(path):
    read_spec(path).jobs()


def export(path):
    with Store(path) as store:
        export_tables(store, path.parent / "tables", "csv")
        for run in read_trajectories(store):
            run.trajectory.table()


def write_back(path):
    with Store(path) as store, store.snapshot():
        restore(store, path.parent / "restored")


def report(path):
    with Store(path) as store:
        render_report(page_contents.build(store))


def seal_results(content):
    """Calculate the checksums of a results file again."""
    with tempfile.TemporaryDirectory(prefix="sealed-") as folder:
        path = Path(folder, "file.db")
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as db:
            if db.execute("SELECT * FROM sqlite_master WHERE type = 'view'").fetchall():
                return content  # which may have rows without end
        changed_unnoticed(path)
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.read_bytes()


def table(path):
    run("table", path, "--format", "csv", "--metric", "objective", "--metric", "cost")


def monitor(path):
    source = Source(path)
    source.contents()
    render_monitor(source.report(), live=True)


def submission(path, seed):
    outcomes = {"chain": (30.0 + seed, 3.0), "queue": (20.0, 1.0 + seed)}
    made = made_up_submission(outcomes)
    write_submission(replace(made, code=files_digest(made.files)), path)


def seal_submission(content):
    """Calculate the checksums of a submission, and that of its code, again."""
    record = json.loads(content)
    return json_text(with_checksums(record | {"code": files_digest(record["files"])}))


def board(path):
    write_board(board_contents(submissions_by_title(path.parent)), path.parent / "board.html")


def numbers_of_model(path):
    model = psconrl.load(path)
    return [model.transition.matrix, model.costs, model.thresholds, model.initial, model.available,
            list(model.state_names or ())]  # fmt: skip


def numbers_of_proven(path):
    """What the checker of proofs reads, which it does without the package."""
    return list(vars(read_model(path)).values())


def numbers_of_results(path):
    """All runs and experiments."""
    return list(content(path))


def numbers_of_submission(path):
    return asdict(read_submission(path))


def numbers_of_agent(path):
    return list(read_saved(path))


def numbers_of_plan(path):
    best = psconrl.Plan.load(path)
    parts = (best.status.value, best.value, best.costs, best.thresholds, best.policy, best.occupancy)
    return [*parts, best.multipliers, best.potential, best.low_potential]


READERS = {
    reader.name: reader
    for reader in (
        Reader("model", ".npz", dense, plan_and_save, numbers_of_model),
        Reader("sparse-model", ".npz", sparse, plan_and_save, numbers_of_model),
        Reader("model-text", ".json", dense, plan_and_save),
        Reader("sparse-text", ".json", sparse, plan_and_save),
        Reader("umb", ".umb", dense, plan_explicit),
        Reader("drn", ".drn", dense, plan_explicit),
        Reader("packed-drn", ".drn.xz", packed_drn, plan_explicit),
        Reader("system", ".toml", system, build),
        Reader("system-text", ".json", system, build),
        Reader("plan", ".npz", plan, play_plan, numbers_of_plan),
        Reader("proof", ".json", proof_of(small_model(0)), check_against(small_model(0))),
        Reader("proof-of-mixture", ".json", proof_of(ISLANDS), check_against(ISLANDS)),
        Reader("proven-model", ".npz", proven, check_with_right_proof, numbers_of_proven),
        Reader("proven-text", ".json", proven, check_with_right_proof),
        Reader("agent", ".npz", any_agent, play_on, numbers_of_agent),
        Reader("agent-of-system", ".npz", run_of_system, play_on, numbers_of_agent),
        Reader("planning-agent", ".npz", planning_agent, plan_on, numbers_of_agent),
        Reader("labelled-agent", ".npz", labelled_agent, play_on_labels, numbers_of_agent),
        Reader("run", ".npz", run_of(learner), resume(MODEL), numbers_of_agent),
        Reader("run-of-system", ".npz", run_of_system, resume(KNOWN_STOCK), numbers_of_agent),
        Reader("run-of-foreign", ".npz", run_of(Checked), resume(MODEL, Checked), numbers_of_agent),
        Reader("log", ".csv", log, monitor),
        Reader("log-of-system", ".csv", log_of_system, monitor),
        Reader("log-continued", ".csv", log, continue_log),
        Reader("report", ".db", results, report, numbers_of_results, seal_results),
        Reader("table", ".db", results, table, numbers_of_results, seal_results),
        Reader("export", ".db", results, export, numbers_of_results, seal_results),
        Reader("monitor", ".db", results, monitor, seal=seal_results),
        Reader("sweep", ".db", results, continue_sweep, seal=seal_results),
        Reader("submission", ".json", submission, board, numbers_of_submission, seal_submission),
        Reader("spec", ".toml", spec, jobs),
        Reader("provenance", ".db", results, write_back, numbers_of_results, seal_results),
    )
}
