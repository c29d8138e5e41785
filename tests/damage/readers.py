"""Every reader of a file: how to make a file for it, and how to read the file and use what it holds a little."""

import contextlib
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import psconrl
import psconrl.check_proof.__main__ as checker
from damage.foreign import Checked
from damage.judging import Reader, RefusedError
from psconrl import CMDP, CSVLog, LabelledAgent, PSConRL, System, load_agent
from psconrl.agents import SafeStart, known_baseline
from psconrl.check_proof.model_files import read_model
from psconrl.cli import main as command
from psconrl.envs.registry import load_system
from psconrl.experiment.export import export_tables
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, read_spec
from psconrl.experiment.store import Store
from psconrl.learning.registry import RECIPES, make_agent
from psconrl.learning.runtime.persistence import read_saved
from psconrl.report.board_page import read_folder, write_board
from psconrl.report.monitor.page import render_monitor
from psconrl.report.monitor.source import Source
from psconrl.report.page import render_report
from psconrl.report.page_contents import build
from psconrl.report.submission import files_digest
from psconrl.report.submission_file import write_submission
from psconrl.simulation.model_run import Simulation
from random_systems import random_system
from reports import made_up_submission
from sweeps import AtOnce

MODEL = psconrl.load("counterexample")
QUEUE = load_system("inventory")
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


def plan_and_save(model, path):
    psconrl.plan(model)
    psconrl.save(model, path.with_name(f"again{path.suffix}"))


def play_plan(path):
    best = psconrl.Plan.load(path)
    best.act(0, np.random.default_rng(0))
    best.to_csv(path.with_suffix(".csv"))
    best.to_json(path.with_suffix(".json"))
    psconrl.plan(small_model(0), start=best)
    psconrl.certify(small_model(0), best)


def explicit(path):
    """Read a file of another program."""
    return psconrl.load(path, minimise="objective")


def check(model, proof):
    """Check a proof with the command of the library and with that of the checker, which must agree."""
    with contextlib.redirect_stdout(None):
        plain = checker.main([str(model), str(proof)])
        try:
            command(["verify", str(model), str(proof)])
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    assert (code == 0) == (plain == 0), f"verify ends with {code}, check_proof with {plain}"
    if code:
        raise RefusedError(f"exit code {code}")


def check_with_right_model(path):
    model = path.with_name("model.npz")
    psconrl.save(small_model(0), model)
    check(model, path)


def check_with_right_proof(path):
    proof = path.with_name("proof-of-plan.json")
    proof.write_bytes(right_proof(path.with_name("plan.proof.json")))
    check(path, proof)


def right_proof(path) -> bytes:
    """The proof of the plan of a small model."""
    psconrl.plan(small_model(0)).save_proof(path, small_model(0))
    return path.read_bytes()


def write_again_as(ending):
    def read(path):
        """Read a system, and build its model if that is quick."""
        system = System.load(path)
        again = path.with_name(f"again{ending}")
        system.save(again)
        System.load(again)
        if system.states.size * system.actions.size <= SOME_STATES:
            PSConRL.of(system) if system.source.unknown() else system.model()

    return read


def any_agent(path, seed):
    """Save an agent of the registry after some rounds; the seed chooses which."""
    names = sorted(RECIPES)
    name = names[seed % len(names)]
    options = {} if name != "safe" else known_baseline(MODEL)
    agent = make_agent(name, 2, 2, MODEL.thresholds, MODEL.costs, seed=seed, horizon=1000, **options)
    played(agent).save(path)


def played(agent, rounds=40):
    """Return an agent after some rounds on two states."""
    for k in range(rounds):
        agent.observe(agent.act(k % 2), (k + 1) % 2, [0.5] * agent.n_costs)
    return agent


def agent_of_system(path, seed):
    agent = PSConRL.of(QUEUE, seed=seed) if seed % 2 else safe_agent(seed)
    run = Simulation(load_system("inventory", known=True), agent, seed)
    run.run(60)
    run.save(path)


def safe_agent(seed):
    known = known_baseline(load_system("inventory", known=True).model_for_learning(), by_state=True)
    del known["ranges"]
    return SafeStart.of(QUEUE, seed=seed, **known)


def planning_agent(path, seed):
    """Save an agent that plans in the background, during an interim episode."""
    agent = PSConRL(2, 2, MODEL.thresholds, seed=seed)
    agent.plan_in_background(executor=Never())
    played(agent).save(path)


def labelled_agent(path, seed):
    agent = LabelledAgent(PSConRL(2, 2, MODEL.thresholds, seed=seed), ["idle", "busy"], [0, ("a", 1)])
    agent.observe(agent.act("idle"), "busy", [0.5, 0.5])
    agent.save(path)


def labelled_again(path):
    agent = LabelledAgent.load(path)
    agent.observe(agent.act("idle"), "busy", [0.5, 0.5])


def play_on(path, planned=False):
    agent = load_agent(path)
    if planned:
        agent.plan_in_background(executor=AtOnce())
    else:
        agent.finish()
    start, n = 0, min(agent.n_states, 2)
    for k in range(30):
        agent.observe(agent.act(start), k % n, [0.5] * agent.n_costs)
        start = k % n
    agent.save(path.with_name("again.npz"))


def saved_run(agent):
    def sample(path, seed):
        run = Simulation(MODEL, agent(seed), seed)
        run.run(200)
        run.save(path)

    return sample


def resume(model, agent=None):
    def read(path):
        run = Simulation.resume(model, path, agent=agent and agent())
        run.run(run.round + 60)
        run.save(path)

    return read


def log(path, seed):
    agent = PSConRL(2, 2, MODEL.thresholds, seed=0)
    agent.watch(CSVLog(path, states=MODEL.state_names))
    psconrl.simulate(MODEL, agent, 200 + 20 * seed, seed=0)


def results(path, seed):
    run_sweep(parse_spec(SPEC.format(seed=seed)).jobs(), path, executor=AtOnce())
    with Store(path) as store:
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def export(path):
    with Store(path) as store:
        export_tables(store, path.parent / "tables", "csv")


def report(path):
    with Store(path) as store:
        render_report(build(store))


def monitor(path):
    source = Source(path)
    source.contents()
    render_monitor(source.report(), live=True)


def submission(path, seed):
    outcomes = {"chain": (30.0 + seed, 3.0), "queue": (20.0, 1.0 + seed)}
    made = made_up_submission(outcomes)
    write_submission(replace(made, code=files_digest(made.files)), path)


def board(path):
    write_board(read_folder(path.parent), path.parent / "board.html")


def numbers_of_model(path):
    model = psconrl.load(path)
    return [model.transition.matrix, model.costs, model.thresholds, model.initial, model.available,
            list(model.state_names or ())]  # fmt: skip


def numbers_of_agent(path):
    return list(read_saved(path))


def numbers_of_plan(path):
    best = psconrl.Plan.load(path)
    return [best.policy, best.costs, best.value, best.multipliers]


READERS = {
    reader.name: reader
    for reader in (
        Reader("model", ".npz", lambda path, seed: psconrl.save(small_model(seed), path),
               lambda path: plan_and_save(psconrl.load(path), path), numbers_of_model),
        Reader("sparse-model", ".npz", lambda path, seed: psconrl.save(small_model(seed, sparse=True), path),
               lambda path: plan_and_save(psconrl.load(path), path), numbers_of_model),
        Reader("model-text", ".json", lambda path, seed: psconrl.save(small_model(seed), path),
               lambda path: plan_and_save(psconrl.load(path), path)),
        Reader("sparse-text", ".json", lambda path, seed: psconrl.save(small_model(seed, sparse=True), path),
               lambda path: plan_and_save(psconrl.load(path), path)),
        Reader("umb", ".umb", lambda path, seed: psconrl.save(small_model(seed), path), explicit),
        Reader("drn", ".drn", lambda path, seed: psconrl.save(small_model(seed), path), explicit),
        Reader("system", ".toml", lambda path, seed: random_system(seed)[0].save(path), write_again_as(".json")),
        Reader("system-text", ".json", lambda path, seed: random_system(seed)[0].save(path), write_again_as(".toml")),
        Reader("plan", ".npz", lambda path, seed: psconrl.plan(small_model(seed)).save(path), play_plan,
               numbers_of_plan),
        Reader("proof", ".json", lambda path, seed: right_proof(path), check_with_right_model),
        Reader("proven-model", ".npz", lambda path, seed: psconrl.save(small_model(0), path), check_with_right_proof,
               lambda path: list(vars(read_model(path)).values())),
        Reader("proven-text", ".json", lambda path, seed: psconrl.save(small_model(0), path), check_with_right_proof),
        Reader("agent", ".npz", any_agent, play_on, numbers_of_agent),
        Reader("agent-of-system", ".npz", agent_of_system, play_on, numbers_of_agent),
        Reader("planning-agent", ".npz", planning_agent, lambda path: play_on(path, planned=True), numbers_of_agent),
        Reader("labelled-agent", ".npz", labelled_agent, labelled_again, numbers_of_agent),
        Reader("run", ".npz", saved_run(lambda seed: PSConRL(2, 2, MODEL.thresholds, seed=seed)), resume(MODEL),
               numbers_of_agent),
        Reader("run-of-system", ".npz", agent_of_system, resume(load_system("inventory", known=True)),
               numbers_of_agent),
        Reader("run-of-foreign", ".npz", saved_run(Checked), resume(MODEL, Checked), numbers_of_agent),
        Reader("log", ".csv", log, monitor),
        Reader("log-continued", ".csv", log, lambda path: log(path, 12)),
        Reader("report", ".db", results, report),
        Reader("export", ".db", results, export),
        Reader("monitor", ".db", results, monitor),
        Reader("sweep", ".db", results, lambda path: results(path, 0)),
        Reader("submission", ".json", submission, board),
        Reader("spec", ".toml", lambda path, seed: path.write_text(SPEC.format(seed=seed)),
               lambda path: read_spec(path).jobs()),
    )
}  # fmt: skip
