"""Exact evaluation of played policies, and the largest excess of all rounds, each against a slow reference."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, Episode, evaluate, plan, regret
from psconrl.envs.gym_env import CMDPEnv
from psconrl.experiment import job as job_module
from psconrl.experiment.job import execute
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.learning.agent import Agent
from psconrl.learning.registry import load_agent, make_agent
from psconrl.report.curves import read_experiments
from psconrl.report.page_contents import build
from psconrl.simulation import policy_values
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.policy_values import PolicyValues
from sweeps import AtOnce, changed_unnoticed

ROVER = psconrl.load("marsrover-4x4", slip=0.1)
LIVELY = {"kappa": 0.02, "eps": 0.01, "gamma": 0.9, "frame": 40, "chi": 3.0, "together": False}


def agent_for(cmdp, name="psconrl", horizon=1000, seed=3, **options):
    return make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed, horizon, **options)


# The largest running excess


def round_by_round(cumulative, limits):
    """From the totals after every single round, by the definition."""
    worst, rows = np.zeros(len(limits)), []
    for t, total in enumerate(cumulative, start=1):
        worst = [max(w, c - t * tau) for w, c, tau in zip(worst, total[1:], limits, strict=True)]
        rows.append(worst)
    return np.array(rows)


@pytest.mark.parametrize("emission", ["deterministic", "bernoulli"])
def test_the_largest_excess_is_that_of_all_rounds_not_of_checkpoints(emission):
    every = Simulation(ROVER, agent_for(ROVER, "psconrl-paper"), 5, emission=emission).run(1000, checkpoints=1000)
    few = Simulation(ROVER, agent_for(ROVER, "psconrl-paper"), 5, emission=emission).run(1000, checkpoints=3)
    expected = round_by_round(every.cumulative, ROVER.thresholds)
    np.testing.assert_array_equal(every.largest_excess, expected)
    np.testing.assert_array_equal(few.largest_excess, expected[few.rounds - 1])
    measured = regret(few, plan(ROVER))
    np.testing.assert_array_equal(measured.worst_violation, few.largest_excess)
    assert (measured.worst_violation[-1] > np.maximum(measured.violation, 0.0).max(axis=0)).any()


def test_a_limit_that_is_never_exceeded_has_an_excess_of_zero():
    cmdp = CMDP(np.ones((1, 1)), [[[1.0]], [[0.25]]], [0.5])
    trace = Simulation(cmdp, agent_for(cmdp, "uniform"), 0).run(8, checkpoints=4)
    assert trace.largest_excess.tolist() == [[0.0]] * 4
    assert regret(trace, plan(cmdp)).worst_violation.tolist() == [[0.0]] * 4


def test_the_largest_excess_in_an_environment():
    run = GymSimulation(CMDPEnv(ROVER), agent_for(ROVER), 5)
    trace = run.run(300, checkpoints=300)
    np.testing.assert_array_equal(trace.largest_excess, round_by_round(trace.cumulative, ROVER.thresholds))
    assert len(trace.policies) == 0
    assert regret(trace, plan(ROVER)).strong is None


@pytest.mark.part(2)
@pytest.mark.parametrize(("name", "options"), [("psconrl", {}), ("triple-qa", LIVELY), ("sa-cvi-ucb", {}), ("fha", {})])
def test_a_run_that_was_saved_goes_on_with_the_same_numbers(name, options, tmp_path):
    """Stopped in the middle: of an episode, of a block, between two evaluations of a live policy."""
    whole = Simulation(ROVER, agent_for(ROVER, name, **options), 5, evaluate_policies=True).run(1000, checkpoints=1)
    run = Simulation(ROVER, agent_for(ROVER, name, **options), 5, evaluate_policies=True)

    def stop(run):
        if run.round > 500:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        run.run(1000, checkpoints=1, progress=stop)
    run.save(tmp_path / "run.npz")
    resumed = Simulation.resume(ROVER, tmp_path / "run.npz")
    assert resumed.largest_excess.tolist() == run.largest_excess.tolist()
    rest = resumed.run(1000, checkpoints=1)
    np.testing.assert_array_equal(rest.largest_excess, whole.largest_excess)
    np.testing.assert_array_equal(rest.policies.costs, whole.policies.costs)
    assert rest.policies.length == whole.policies.length
    assert sum(whole.policies.length) == 1000


# Policies


def some_model(seed, n_states=6, n_actions=3, sparse=False):
    """Few successors, so that policies have several closed classes now and then."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n_states * n_actions, n_states))
    for row in P:
        row[rng.choice(n_states, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
    if sparse:
        P = csr_array(P)
    return CMDP(P, rng.random((3, n_states, n_actions)) + 1e3, rng.random(2))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_policies_have_the_averages_that_evaluate_finds(seed, sparse):
    cmdp, rng = some_model(seed, sparse=sparse), np.random.default_rng(seed)
    values = PolicyValues(cmdp)
    for _ in range(20):
        policy = np.eye(3)[rng.integers(3, size=6)] if rng.random() < 0.7 else rng.dirichlet(np.full(3, 0.2), size=6)
        for state in rng.integers(6, size=3):
            found = values._in_the_long_run(policy, int(state))
            np.testing.assert_allclose(found[0], evaluate(cmdp.with_initial(int(state)), policy).costs, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_policy_that_may_end_in_several_classes_has_their_mean(sparse):
    """From state 0 to one of two absorbing states; from those, their own costs."""
    P = np.array([[0.0, 0.3, 0.7], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    cmdp = CMDP(csr_array(P) if sparse else P, [[[1.0], [2.0], [3.0]]])
    for state, wanted in ((0, 0.3 * 2.0 + 0.7 * 3.0), (1, 2.0), (2, 3.0)):
        found = PolicyValues(cmdp)._in_the_long_run(np.ones((3, 1)), state)
        np.testing.assert_allclose(found, [[wanted]], rtol=1e-12)


def test_a_large_class_of_a_sparse_model_is_solved_as_a_sparse_one(monkeypatch):
    cmdp, policy = some_model(1, sparse=True), np.full((6, 3), 1 / 3)
    usual = PolicyValues(cmdp)._in_the_long_run(policy, 2)
    monkeypatch.setattr(policy_values, "DENSE_PLAYED_CLASS_STATES", 0)
    np.testing.assert_allclose(PolicyValues(cmdp)._in_the_long_run(policy, 2), usual, rtol=1e-9)


def test_what_no_run_is_long_enough_to_play_does_not_count():
    """A state left once in 1e100 rounds: the long-run average is that of the other state, the run's is not."""
    cmdp = CMDP([[1, 0], [0, 1], [0, 1], [0, 1]], [[[1.0, 1.0], [5.0, 5.0]]])
    policy = np.array([[1.0, 1e-100], [0.5, 0.5]])
    values = PolicyValues(cmdp)
    assert values._in_the_long_run(policy, 0).tolist() == [[1.0]]
    assert values._in_the_long_run(policy, 1).tolist() == [[5.0]]
    often = np.array([[1.0 - 1e-9, 1e-9], [0.5, 0.5]])
    assert values._in_the_long_run(often, 0).tolist() == [[5.0]]


def test_every_policy_is_evaluated_once_and_only_a_fixed_number_is_remembered(monkeypatch):
    calls = []
    kernel = policy_values.long_run
    monkeypatch.setattr(policy_values, "long_run", lambda *given: calls.append(given) or kernel(*given))
    monkeypatch.setattr(policy_values, "MOST_KNOWN", 2 * 2 * ROVER.n_states)
    values = PolicyValues(ROVER)
    a, b, c = (np.eye(4)[np.full(16, k)] for k in range(3))
    for policy in (a, a.copy(), b, a):
        values._in_the_long_run(policy, 3)
    assert len(calls) == 2
    for policy in (c, b, a):
        values._in_the_long_run(policy, 3)
    assert len(calls) == 4  # c replaced a
    assert len(values._known) == 2


def test_a_chain_that_floating_point_cannot_settle_is_unknown_and_no_error(monkeypatch):
    def fail(*_):
        raise psconrl.errors.SolverError("falls apart")

    monkeypatch.setattr(policy_values, "evaluate_policy", fail)
    start = CMDP(
        np.vstack([np.repeat([[0, 0.5, 0.5]], 2, axis=0), np.repeat(np.eye(3)[1:], 2, axis=0)]),
        [np.ones((3, 2))],
        initial=0,
    )
    assert np.isnan(PolicyValues(start)._in_the_long_run(np.full((3, 2), 0.5), 0)).all()
    trace = Simulation(start, agent_for(start, "uniform"), 0, evaluate_policies=True).run(10)
    assert np.isnan(regret(trace, plan(start)).strong).all()


class Changing(Agent):
    """Random step-dependent policies."""

    name = "changing"

    def begin(self, state):
        return Episode(self.rng.dirichlet(np.full(3, 0.4), size=(5, 6)), max_steps=5)


def test_a_policy_that_changes_with_the_step_costs_what_matrices_say():
    cmdp = some_model(2)
    starts = []
    run = Simulation(cmdp, Changing(6, 3, cmdp.thresholds, None, 1), 0, evaluate_policies=True)
    plain, policies = run.agent.begin, []

    def begin(state):
        episode = plain(state)
        starts.append(state)
        policies.append(episode.policy)
        return episode

    run.agent.begin = begin
    trace = run.run(43)
    assert trace.policies.length == [5] * 8 + [3]
    P = cmdp.transition.toarray().reshape(6, 3, 6)
    for start, policy, found, rounds in zip(starts, policies, trace.policies.costs, trace.policies.length, strict=True):
        distribution, total = np.eye(6)[start], np.zeros(3)
        for step in policy[:rounds]:
            total += np.einsum("s,sa,isa->i", distribution, step, cmdp.costs)
            distribution = np.einsum("s,sa,sat->t", distribution, step, P)
        np.testing.assert_allclose(found, total / rounds, rtol=1e-12)


# Live policies


@pytest.mark.parametrize(("horizon", "every"), [(900, 1), pytest.param(2500, 2, marks=pytest.mark.full)])
def test_a_live_policy_is_evaluated_at_fixed_rounds(horizon, every):
    """Against the same run played round by round, which looks at the policy when such a round comes."""
    trace = Simulation(ROVER, agent_for(ROVER, "triple-qa", horizon, **LIVELY), 5, evaluate_policies=True).run(horizon)
    slow = Simulation(ROVER, agent_for(ROVER, "triple-qa", horizon, **LIVELY), 5)
    aims = np.append(plan(ROVER).costs[0], ROVER.thresholds)
    strong, costs = np.zeros(2), np.zeros(2)
    for t in range(horizon):
        slow.agent.play(slow.state)  # opens a frame where one begins
        if t % every == 0:
            costs = evaluate(ROVER.with_initial(slow.state), slow.agent.policy).costs
        slow.run(t + 1)
        strong += np.maximum(costs - aims, 0.0)
    assert trace.policies.length == [every] * (horizon // every)
    assert trace.cumulative[-1].tolist() == slow.cumulative.tolist()
    np.testing.assert_allclose(regret(trace, plan(ROVER)).strong, strong, rtol=1e-9)
    assert strong.min() > 1.0


def test_on_larger_models_a_live_policy_is_evaluated_less_often():
    cmdp = psconrl.load("garnet", states=101)
    trace = Simulation(cmdp, agent_for(cmdp, "triple-qa", 1000), 5, evaluate_policies=True).run(1000)
    assert trace.policies.length == [10] * 100


# Plans for several episodes


def distribution_of_block(cmdp, agent, block, step, position, state):
    """The rest of a block in a model, by dictionaries: {(state, strides): probability}."""
    P = cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, -1)
    distribution, total, rows = {(state, position): 1.0}, np.zeros(2), []
    for h in range(step, agent.H):
        after = {}
        n = h * block.moves.reach + 1
        first = sum(cmdp.n_states * (k * block.moves.reach + 1) for k in range(h))
        for (s, j), p in distribution.items():
            a = int(block.actions[first + s * n + j])
            total = total + p * cmdp.costs[:, s, a]
            for t in range(cmdp.n_states):
                if P[s, a, t] > 0:
                    key = t, j + int(block.moves.increments[s, a])
                    after[key] = after.get(key, 0.0) + p * P[s, a, t]
        distribution = after
        rows.append(total / (h - step + 1))
    return np.array(rows)


@pytest.mark.parametrize("seed", range(3))
def test_a_block_costs_what_the_distribution_of_state_and_account_says(seed):
    cmdp = psconrl.load("garnet", states=4, actions=3, branching=2, constraints=1, seed=seed)
    run = Simulation(cmdp, agent_for(cmdp, "sa-cvi-ucb", 90, seed=seed, H=15), 5, evaluate_policies=True)
    expected, begin = [], run.agent.begin

    def seen(state):
        before, episode = run.agent._block, begin(state)
        block = run.agent._block
        if block is not before:
            expected.append(distribution_of_block(cmdp, run.agent, block, 0, 0, state))
        return episode

    run.agent.begin = seen
    trace = run.run(90)
    assert trace.policies.length == [15] * 6
    assert len(trace.episodes) > 6
    np.testing.assert_allclose(trace.policies.costs, [rows[-1] for rows in expected], rtol=1e-12)
    block, model = run.agent._block, run._values._model
    block.step, block.position = 7, 2 * block.moves.reach
    rest = distribution_of_block(cmdp, run.agent, block, 7, 2 * block.moves.reach, 1)
    np.testing.assert_allclose(block.averages(*model, 1), rest, rtol=1e-12)


def test_a_block_that_was_given_up_counts_for_what_was_played():
    cmdp = psconrl.load("chain")
    run = Simulation(cmdp, agent_for(cmdp, "sa-cvi-ucb", 400), 5, evaluate_policies=True)
    run.run(30)
    run.agent.set_thresholds([float(cmdp.thresholds[0]) + 0.05])
    trace = run.run(60)
    assert sum(trace.policies.length) == 60
    assert trace.policies.length[0] == 20
    assert 10 <= trace.policies.length[1] < 20


# Sweeps and results files

SPEC = """
replicates = 2

[experiments.rover]
env = "marsrover-4x4"
horizon = 300
checkpoints = 5
agents = ["psconrl", "sa-cvi-ucb", "triple-qa"]

[experiments.cards]
env = "CARDS"
horizon = 60
agents = ["uniform"]

[experiments.off]
env = "marsrover-4x4"
horizon = 100
evaluate = false
agents = ["uniform"]
"""

CARDS = """
import gymnasium
import psconrl

def cards():
    return psconrl.continuing(gymnasium.make("Blackjack-v1"), cost=lambda s, a, t: float(a), limits={"cards": 0.3})
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strong")
    (folder / "strong_cards.py").write_text(CARDS)
    spec = parse_spec(SPEC.replace("CARDS", "strong_cards.py:cards"), folder=folder)
    assert run_sweep(spec.jobs(), folder / "r.db", executor=AtOnce()).errors == []
    return folder / "r.db", spec


def test_sweeps_evaluate_unless_it_is_switched_off(swept):
    path, spec = swept
    assert [job.evaluate for job in spec.jobs()].count(False) == 2
    with Store(path) as store:
        rover, cards, off = read_experiments(store)
        report = build(store)
    for curves in rover.curves.values():
        assert np.isfinite(curves.strong).all()
        assert (np.diff(curves.strong, axis=1) >= 0).all()
    for curves in (*cards.curves.values(), *off.curves.values()):
        assert np.isnan(curves.strong).all()
        assert np.isfinite(curves.largest_excess[:, :, 1:]).all()
    titles = {e["name"]: [p["title"] for p in e["panels"]] for e in report["experiments"]}
    assert "Strong violation: risk" in titles["rover"]
    assert not any("Strong" in title for title in titles["cards"] + titles["off"])
    assert all(any("Largest" in title for title in found) for found in titles.values())


def test_what_is_stored_is_what_the_run_has(swept):
    path, spec = swept
    job = spec.jobs()[0]
    result = execute(job)
    with Store(path) as store:
        ((run,),) = store.query("SELECT id FROM runs WHERE hash = ?", (job.hash,))
        points = np.array(store.series(run).points, dtype=float).reshape(5, 2, 5)
    np.testing.assert_array_equal(points[:, 1, 4], result.largest_excess[:, 0])
    assert np.isnan(points[:, 0, 4]).all()
    np.testing.assert_array_equal(points[:, :, 3], result.strong)


def test_agents_that_were_not_evaluated_have_dashes(swept, tmp_path):
    path, spec = swept
    other = tmp_path / "other.db"
    other.write_bytes(path.read_bytes())
    changed_unnoticed(
        other,
        "UPDATE checkpoints SET strong = NULL",
        "DELETE FROM checkpoints WHERE run IN (SELECT id FROM runs WHERE label = 'triple-qa')",
        "DELETE FROM runs WHERE label = 'triple-qa'",
    )
    with Store(other) as store:
        titles = [p["title"] for p in build(store)["experiments"][0]["panels"]]
        assert not any("Strong" in title for title in titles)
    outcome = run_sweep(spec.jobs(), other, executor=AtOnce())
    assert (outcome.known, outcome.done) == (8, 2)
    with Store(other) as store:
        (table,) = [t for t in build(store)["experiments"][0]["tables"] if t["title"] == "Strong regret and violation"]
    assert [row[2:4] == ["-"] * 2 for row in table["rows"]] == [True, True, False]
    assert "-" not in [row[4] for row in table["rows"]]  # the largest excess is always known
    assert table["note"].endswith("A dash: not known for this agent.")


def test_large_models_are_evaluated_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(job_module, "EVALUATED_STATES", 15)
    for said, found in (("", 0), ("evaluate = true", 10), ("evaluate = false", 0)):
        spec = parse_spec(f'[experiments.marsrover-4x4]\nagents=["uniform"]\nhorizon=5\n{said}\n')
        assert execute(spec.jobs()[0]).strong.size == found
    monkeypatch.setattr(job_module, "EVALUATED_STATES", 16)
    assert (
        execute(parse_spec('[experiments.marsrover-4x4]\nagents=["uniform"]\nhorizon=5\n').jobs()[0]).strong.size == 10
    )


def test_where_no_policy_meets_the_limits_violations_are_known_all_the_same():
    spec = parse_spec('[experiments.marsrover-4x4]\nagents=["uniform"]\nhorizon=50\nthresholds={risk = -0.5}\n')
    result = execute(spec.jobs()[0])
    assert result.error == ""
    assert np.isnan(result.strong[:, 0]).all()
    assert (result.strong[:, 1] > 0).all()


def test_an_agent_in_the_midst_of_a_block_is_evaluated_from_there(tmp_path):
    cmdp = psconrl.load("chain")
    first = Simulation(cmdp, agent_for(cmdp, "sa-cvi-ucb", 400), 5)
    first.run(27)
    first.agent.save(tmp_path / "agent.npz")
    run = Simulation(cmdp, load_agent(tmp_path / "agent.npz"), 6, evaluate_policies=True)
    trace = run.run(40)
    assert trace.policies.length == [13, 20, 7]
