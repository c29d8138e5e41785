"""The compiled run on a model against a plain loop, and runs that are interrupted, resumed, or played by steps."""

import math
import os
import pickle
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, PSConRL, plan, regret, simulate
from psconrl.agents import FixedPolicy
from psconrl.errors import AgentError, ConfigError, ModelError
from psconrl.kernels.play.play_loop import EpisodeInPlay, RunSoFar, play
from psconrl.learning.registry import load_agent
from psconrl.learning.runtime.random_numbers import BLOCK, UniformStream
from psconrl.model import fingerprint as fingerprints
from psconrl.model.fingerprint import fingerprint
from psconrl.model.simulation_tables import EMISSIONS, Tables
from psconrl.simulation.interrupt import Interrupted
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.regret import paper_regret


def agent_for(cmdp, seed=0, **options):
    return PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed, **options)


def outcomes(cmdp, i, row):
    """All values that a cost has in a row."""
    by_successor = cmdp.outcome_costs[i]
    if by_successor is None:
        return [cmdp.costs[i].ravel()[row]]
    return [by_successor[row, t] for t in np.flatnonzero(cmdp.transition.toarray().reshape(-1, cmdp.n_states)[row])]


def plain_loop(cmdp, policy, caps, max_steps, state, actions_u, model_u, emission):
    """The kernel's algorithm in plain Python."""
    S, A = cmdp.n_states, cmdp.n_actions
    P = cmdp.transition.toarray().reshape(S, A, S)
    path, costs = [], []
    every = [[x for row in range(S * A) for x in outcomes(cmdp, i, row)] for i in range(len(cmdp.costs))]
    ranges = [(min(possible), max(possible)) for possible in every]
    visits = np.zeros((S, A), dtype=int)
    for t, (u, v) in enumerate(zip(actions_u, model_u, strict=True)):
        cdf = np.cumsum(policy[min(t, len(policy) - 1), state])
        action = int(np.searchsorted(cdf, u[0] * cdf[-1], side="right"))
        successors = np.flatnonzero(P[state, action])
        chosen = np.searchsorted(np.cumsum(P[state, action][successors]), v[0], side="right")
        successor = int(successors[min(chosen, successors.size - 1)])
        cost = np.empty(len(cmdp.costs))
        for i, outcome in enumerate(cmdp.outcome_costs):
            cost[i] = cmdp.costs[i, state, action] if outcome is None else outcome[state * A + action, successor]
            if emission == "bernoulli":
                cost[i] = float(v[1 + i] < cost[i])
            elif emission == "uniform":
                low, high = ranges[i]
                cost[i] += (v[1 + i] - 0.5) * (high - low)
            elif emission == "two-point":
                low, high = ranges[i]
                cost[i] = high if v[1 + i] * (high - low) < cost[i] - low else low
            elif emission == "poisson":
                cost[i] = stats.poisson.ppf(v[1 + i], cost[i]) if cost[i] else 0.0
        path.append((state, action, successor))
        costs.append(cost)
        visits[state, action] += 1
        if visits[state, action] >= caps[state, action] or t + 1 >= max_steps:
            break
        state = successor
    return path, np.array(costs)


@pytest.mark.parametrize("emission", EMISSIONS)
@pytest.mark.parametrize("H", [1, 7])
@pytest.mark.parametrize("name", ["marsrover-4x4", "box", "garnet"])
def test_a_compiled_run_equals_the_plain_loop_on_the_same_uniforms(name, H, emission):
    cmdp = psconrl.load(name, **({} if name == "garnet" else {"slip": 0.3}))
    S, A = cmdp.n_states, cmdp.n_actions
    rng = np.random.default_rng(3)
    policy = rng.dirichlet(np.full(A, 0.3), size=(H, S))
    caps = rng.integers(5, 60, size=(S, A))
    n, m1 = 500, len(cmdp.costs)
    actions_u, model_u = rng.random((n, 1)), rng.random((n, 1 + m1))
    path, costs = plain_loop(cmdp, policy, caps, 400, 0, actions_u, model_u, emission)

    tables = Tables.of(cmdp, emission)
    visits, log = np.zeros(S * A, dtype=np.int64), np.zeros(n, dtype=np.int64)
    sums, total = np.zeros((m1, S * A)), np.zeros(m1)
    checkpoints = np.array([1, 2, 10, 399, 10_000])
    at, largest, largest_at = np.zeros((5, m1)), np.zeros(m1 - 1), np.zeros((5, m1 - 1))
    episode = EpisodeInPlay(0, 0, n, 400, policy, caps.ravel(), actions_u, model_u, visits, log, sums)
    run = RunSoFar(0, cmdp.thresholds, total, largest, checkpoints, 0, at, largest_at)
    state, played, reached, ended = play(tables, episode, run, None)
    assert played == len(path)
    assert ended == (len(path) < n)
    assert state == path[-1][2]
    np.testing.assert_allclose(total, costs.sum(axis=0), atol=1e-12)
    pairs = [s * A + a for s, a, _ in path]
    np.testing.assert_array_equal(log[:played], [pair * S + t for pair, (_, _, t) in zip(pairs, path, strict=True)])
    np.testing.assert_array_equal(visits, np.bincount(pairs, minlength=S * A))
    for k in range(reached):
        np.testing.assert_allclose(at[k], costs[: checkpoints[k]].sum(axis=0), atol=1e-12)
    excess = costs[:, 1:].cumsum(axis=0) - np.arange(1, played + 1)[:, None] * cmdp.thresholds
    worst = np.maximum.accumulate(np.maximum(excess, 0.0), axis=0)
    np.testing.assert_array_equal(largest, worst[-1])
    for k in range(reached):
        np.testing.assert_array_equal(largest_at[k], worst[checkpoints[k] - 1])


def test_sparse_models_play_like_dense_ones():
    dense = psconrl.load("garnet", seed=3)
    sparse = psconrl.load("garnet", seed=3, sparse=True)
    a, b = (simulate(m, agent_for(dense, 1), 3000, seed=2) for m in (dense, sparse))
    np.testing.assert_array_equal(a.cumulative, b.cumulative)


def test_a_stream_gives_the_same_numbers_one_by_one_in_blocks_and_restored():
    whole = UniformStream(np.random.default_rng(5))
    numbers = [whole.next() for _ in range(BLOCK + 10)]
    again = UniformStream(np.random.default_rng(5))
    first = [again.next() for _ in range(BLOCK - 3)]
    restored = UniformStream(np.random.default_rng(6))
    restored.restore(again.state())
    assert first + [restored.next() for _ in range(13)] == numbers


@pytest.mark.parametrize("name", ["marsrover-4x4", "queue", "counterexample"])
def test_step_by_step_gives_the_same_bits_as_by_episodes(name):
    cmdp = psconrl.load(name)
    compiled = Simulation(cmdp, agent_for(cmdp, 4), seed=9)
    compiled.run(3000)
    stepped = Simulation(cmdp, agent_for(cmdp, 4), seed=9)  # used for its model only
    agent, tables, stream, state = stepped.agent, stepped._tables, stepped._uniforms, stepped.state
    for _ in range(3000):
        action = agent.act(state)
        pair = state * cmdp.n_actions + action
        low, high = tables.indptr[pair], tables.indptr[pair + 1]
        k = low + min(int(np.searchsorted(tables.cdf[low:high], stream.next(), side="right")), high - low - 1)
        agent.observe(action, int(tables.successors[k]), tables.outcomes[:, k])
        state = int(tables.successors[k])
    agent.finish()
    compiled.agent.finish()
    assert state == compiled.state
    assert agent.episodes == compiled.agent.episodes
    for part in ("transitions", "cost_sums", "visits"):
        np.testing.assert_array_equal(getattr(agent.counts, part), getattr(compiled.agent.counts, part))
    assert agent.rng.bit_generator.state == compiled.agent.rng.bit_generator.state


def test_a_run_in_two_parts_saved_between_equals_one(tmp_path):
    cmdp = psconrl.load("marsrover-4x4", slip=0.1)
    whole = Simulation(cmdp, agent_for(cmdp, 1), seed=2, evaluate_policies=True)
    full = whole.run(5000, checkpoints=50)
    first = Simulation(cmdp, agent_for(cmdp, 1), seed=2, evaluate_policies=True)
    stop_at = 1234

    def progress(run):
        if run.round >= stop_at:
            run.save(tmp_path / "run.npz")
            raise TimeoutError

    with pytest.raises(TimeoutError):
        first.run(5000, checkpoints=50, progress=progress)
    second = Simulation.resume(cmdp, tmp_path / "run.npz")
    rest = second.run(5000, checkpoints=50)
    np.testing.assert_array_equal(rest.rounds, full.rounds)
    np.testing.assert_array_equal(rest.cumulative, full.cumulative)
    assert rest.episodes.start == full.episodes.start
    assert rest.episodes.kind == full.episodes.kind
    np.testing.assert_array_equal(rest.policies.costs, full.policies.costs)
    assert rest.policies.length == full.policies.length == full.episodes.length
    np.testing.assert_array_equal(rest.largest_excess, full.largest_excess)
    assert second.agent.rng.bit_generator.state == whole.agent.rng.bit_generator.state


def test_kill_9_loses_nothing_that_was_saved(tmp_path):
    """A real process, killed while it learns; the run goes on from its file to the very same end."""
    script = (
        "import sys, psconrl\n"
        "from psconrl.simulation.model_run import Simulation\n"
        "m = psconrl.load('marsrover-4x4')\n"
        "a = psconrl.PSConRL(16, 4, m.thresholds, m.costs, seed=3)\n"
        "def keep(run):\n"
        "    run.save(sys.argv[1])\n"
        "    print(run.round, flush=True)\n"
        "Simulation(m, a, seed=4).run(10**9, checkpoints=[500, 3000], progress=keep)\n"
    )
    path = tmp_path / "run.npz"
    child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if int(line) > 700:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".")] == ["run.npz"]
    cmdp = psconrl.load("marsrover-4x4")
    resumed = Simulation.resume(cmdp, path)
    assert 700 <= resumed.round < 10_000
    after = resumed.run(10_000, checkpoints=[500, 3000])
    whole = simulate(cmdp, agent_for(cmdp, 3), 10_000, seed=4, checkpoints=[500, 3000])
    assert after.cumulative[-1].tolist() == whole.cumulative[-1].tolist()
    assert resumed.agent.episodes == len(whole.episodes)


def test_an_agent_may_move_to_another_run_in_the_middle_of_an_episode():
    cmdp = psconrl.load("marsrover-4x4")
    agent = agent_for(cmdp)
    for seed in (1, 2):
        trace = simulate(cmdp, agent, 500, seed=seed)
        assert sum(trace.episodes.length) == 500
    agent.finish()
    assert agent.rounds == 1000


def test_a_trace_does_not_change_when_the_run_goes_on():
    cmdp = psconrl.load("marsrover-4x4")
    run = Simulation(cmdp, agent_for(cmdp), seed=0)
    first = run.run(100)
    n = len(first.episodes)
    run.run(1000)
    assert len(first.episodes) == n < len(run.log)
    assert repr(Simulation(cmdp, agent_for(cmdp)).trace()) == "Trace(0 rounds)"


def test_regret_refuses_an_infeasible_plan():
    cmdp = psconrl.load("counterexample", threshold=0.1)
    with pytest.raises(ConfigError, match="this plan is infeasible"):
        regret(simulate(cmdp, agent_for(cmdp), 50), plan(cmdp))


def test_ctrl_c_leaves_what_was_done():
    cmdp = psconrl.load("marsrover-4x4")

    def progress(run):
        if run.round > 1000:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        simulate(cmdp, agent_for(cmdp), 10**7, seed=0, progress=progress)
    trace = raised.value.trace
    assert trace.interrupted
    assert 1000 < trace.horizon < 10_000
    assert len(trace.episodes) > 10


@pytest.mark.parametrize("environment", ["model", "Gymnasium"])
@pytest.mark.parametrize("when", ["early", "in the last moment"])
def test_ctrl_c_ends_the_callers_loop(environment, when):
    """However late it comes, Ctrl-C ends the caller's loop over seeds."""
    cmdp = psconrl.load("counterexample")
    horizon, seeds = 500, []

    def progress(run):
        if run.round >= (1 if when == "early" else horizon):
            signal.raise_signal(signal.SIGINT)

    def all_seeds():
        for seed in range(3):
            seeds.append(seed)
            env = cmdp if environment == "model" else psconrl.CMDPEnv(cmdp)
            simulate(env, PSConRL(2, 2, cmdp.thresholds, seed=0), horizon, seed=seed, progress=progress)

    with pytest.raises(KeyboardInterrupt) as raised:
        all_seeds()
    assert seeds == [0]
    trace = pickle.loads(pickle.dumps(raised.value)).trace
    assert trace.interrupted == (when == "early")
    assert (0 < trace.horizon < horizon) if when == "early" else trace.horizon == horizon


def test_a_script_that_is_interrupted_does_not_end_in_success(tmp_path):
    script = """
import signal, psconrl
model = psconrl.load("counterexample")
for seed in range(100):
    print(seed, flush=True)
    agent = psconrl.PSConRL(2, 2, model.thresholds, seed=seed)
    psconrl.simulate(model, agent, 10**12, seed=seed)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "0\n"
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            time.sleep(0.2)
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode != 0
    assert out == ""


def test_a_run_stopped_and_resumed_has_the_checkpoints_of_one_that_was_not(tmp_path):
    cmdp = psconrl.load("marsrover-4x4")

    def progress(run):
        if run.round > 700:
            raise KeyboardInterrupt

    run = Simulation(cmdp, agent_for(cmdp), 0)
    with pytest.raises(Interrupted) as raised:
        run.run(2000, 20, progress)
    assert raised.value.trace.rounds[-1] == run.round
    run.save(tmp_path / "run.npz")
    resumed = Simulation.resume(cmdp, tmp_path / "run.npz").run(2000, 20)
    whole = simulate(cmdp, agent_for(cmdp), 2000, seed=0, checkpoints=20)
    np.testing.assert_array_equal(resumed.rounds, whole.rounds)
    np.testing.assert_array_equal(resumed.cumulative, whole.cumulative)


def test_a_run_file_with_missing_parts_is_called_damaged(tmp_path):
    cmdp = psconrl.load("marsrover-4x4")
    run = Simulation(cmdp, agent_for(cmdp), 0)
    run.run(50)
    run.save(tmp_path / "run.npz")
    agent = load_agent(tmp_path / "run.npz")
    del agent.extra["simulation"]["uniforms"]
    agent.save(tmp_path / "run.npz", agent.extra)
    with pytest.raises(AgentError, match=r"run\.npz: extra/simulation/uniforms: is missing"):
        Simulation.resume(cmdp, tmp_path / "run.npz")
    with pytest.raises(AgentError, match="is a directory"):
        Simulation.resume(cmdp, tmp_path)


def test_traces_are_exact_at_every_kind_of_checkpoint():
    cmdp = psconrl.load("marsrover-4x4")
    traces = [simulate(cmdp, agent_for(cmdp, 1), 2000, seed=1, checkpoints=c) for c in (None, "log", [7, 500], 2000)]
    every = dict(zip(traces[3].rounds.tolist(), traces[3].cumulative.tolist(), strict=True))
    assert len(every) == 2000
    for trace in traces:
        assert trace.rounds[-1] == 2000
        for t, total in zip(trace.rounds.tolist(), trace.cumulative.tolist(), strict=True):
            assert every[t] == total
    assert traces[2].rounds.tolist() == [7, 500, 2000]


@pytest.mark.statistical
def test_regret_of_the_optimal_policy_is_noise_and_its_strong_regret_nothing():
    cmdp = psconrl.load("marsrover-4x4")
    best = plan(cmdp)
    agent = FixedPolicy(16, 4, cmdp.thresholds, policy=best.policy, seed=0)
    trace = simulate(cmdp, agent, 200_000, seed=1, evaluate_policies=True)
    result = regret(trace, best)
    np.testing.assert_allclose(result.strong, 0.0, atol=1e-8)
    # 200,000 rounds are some 47,000 trips of which each is short or long: standard deviation below 0.5 a trip,
    # so 5 sigma are 5 * 0.5 * sqrt(47,000) = 540; false-alarm rate below 1e-6.
    assert abs(result.final[0]) < 540
    assert abs(result.final[1][0]) < 540
    assert (result.worst_violation >= result.violation).all()
    rounds, curves = paper_regret([trace, trace], best, window=5000)
    assert curves.shape == (2, rounds.size, 2)
    assert (np.diff(curves, axis=1) >= 0).all()
    assert (curves[:, rounds < 5000] == 0).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("emission", "deviation"), [("uniform", 1.2), ("two-point", 2.0), ("poisson", 1.5)])
def test_drawn_costs_have_the_right_mean(emission, deviation):
    cmdp = CMDP(np.full((2, 1, 2), 0.5), [[[0.5], [2.5]], [[0.1], [0.1]]], [0.2])
    trace = simulate(cmdp, agent_for(cmdp), 100_000, seed=0, emission=emission)
    # 5 standard deviations of a mean of 100,000, at most: a false-alarm rate of 6e-7 each.
    np.testing.assert_allclose(trace.averages[-1], [1.5, 0.1], atol=5 * deviation / 100_000**0.5)
    if emission != "poisson":
        assert trace.averages[-1, 1] == pytest.approx(0.1, abs=1e-12)  # a constant has one value


def test_costs_that_cannot_be_counts():
    with pytest.raises(ModelError, match=r"Poisson costs must lie in \[0, 500\]"):
        simulate(psconrl.load("queue"), agent_for(psconrl.load("queue")), 10, emission="poisson")


@pytest.mark.statistical
def test_bernoulli_costs_have_the_right_mean():
    cmdp = CMDP(np.full((2, 1, 2), 0.5), [[[0.3], [0.7]], [[0.1], [0.1]]], [0.2])
    trace = simulate(cmdp, agent_for(cmdp), 100_000, seed=0, emission="bernoulli")
    # Standard deviation of a mean of 100,000 zeros and ones: at most 0.0016; 5 sigma, false-alarm rate 6e-7 each.
    np.testing.assert_allclose(trace.averages[-1], [0.5, 0.1], atol=0.008)
    assert (trace.cumulative == trace.cumulative.round()).all()
    with pytest.raises(ModelError, match="Bernoulli costs must lie in"):
        simulate(psconrl.load("queue"), agent_for(psconrl.load("queue")), 10, emission="bernoulli")


class Corridor(gymnasium.Env):
    """Three cells; the third ends the episode. Pays 1 for arriving, costs 1 for every step right."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, style):
        self.style = style

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at = min(self.at + action, 2)
        reward, cost, over = float(self.at == 2), float(action), self.at == 2
        if self.style == "tuple":
            return self.at, reward, cost, over, False, {}
        info = {"costs": [cost]} if self.style == "costs" else {"cost": cost} if self.style == "cost" else {}
        return self.at, reward, over, False, info


@pytest.mark.parametrize("style", ["costs", "cost", "tuple"])
def test_agents_learn_gymnasium_environments(style):
    """Right, right, restart: a reward every three steps at a cost of 2/3 a step; half of that is allowed."""
    agent = PSConRL(3, 2, thresholds=[1 / 3], optimistic_cost=-1.0, seed=0)
    trace = simulate(Corridor(style), agent, 4000, seed=0)
    assert trace.horizon == 4000
    assert sum(trace.episodes.length) == 4000
    assert trace.averages[-1][1] == pytest.approx(1 / 3, abs=0.03)
    assert -trace.averages[-1][0] == pytest.approx(1 / 6, abs=0.03)


def test_what_does_not_fit_is_refused():
    cmdp = psconrl.load("box")
    with pytest.raises(
        AgentError, match=r"the model has \(S, A, m\) = \(60, 4, 1\), the agent was made for \(16, 4, 1\)"
    ):
        simulate(cmdp, PSConRL(16, 4, [0.2]), 10)
    with pytest.raises(ConfigError, match="horizon must be a whole number"):
        simulate(cmdp, agent_for(cmdp), 0)
    with pytest.raises(ConfigError, match="horizon must be a whole number"):
        simulate(cmdp, agent_for(cmdp), 1.5)
    for checkpoints in ("linear", math.nan, [0, 5], [2.5], []):
        with pytest.raises(ConfigError, match="'log'"):
            simulate(cmdp, agent_for(cmdp), 10, checkpoints=checkpoints)
    run = Simulation(cmdp, agent_for(cmdp), 0)
    run.run(50)
    with pytest.raises(ConfigError, match="already played 50 rounds"):
        run.run(20)
    with pytest.raises(ConfigError, match=r"as psconrl\.plan returns it; got int"):
        regret(run.trace(), 3)
    with pytest.raises(ConfigError, match="unknown emission"):
        simulate(cmdp, agent_for(cmdp), 10, emission="gamma")
    with pytest.raises(ConfigError, match="CMDP or a Gymnasium environment"):
        simulate("box", agent_for(cmdp), 10)
    with pytest.raises(AgentError, match="0 constrained costs, the agent has 1 limits"):
        simulate(Corridor("none"), PSConRL(3, 2, [0.5]), 10)
    with pytest.raises(AgentError, match="3 states and 2 actions"):
        simulate(Corridor("cost"), PSConRL(4, 2, [0.5]), 10)
    with pytest.raises(ModelError, match="observations must be finitely many"):
        simulate(gymnasium.make("CartPole-v1"), PSConRL(4, 2, []), 10)
    with pytest.raises(ConfigError, match="the plan has 3 costs, the trace 2"):
        regret(simulate(cmdp, agent_for(cmdp), 10), plan(psconrl.load("queue")))


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (
            psconrl.plan(psconrl.load("counterexample")),
            "needs an agent, such as PSConRL; got Plan; psconrl agents lists",
        ),
        (
            psconrl.LabelledAgent(PSConRL(2, 2, [1.0]), psconrl.Labels([*"ab"]), psconrl.Labels([*"xy"])),
            r"got LabelledAgent: give its \.agent",
        ),
    ],
)
def test_what_is_no_agent_is_refused(agent, message):
    with pytest.raises(ConfigError, match=message):
        simulate(psconrl.load("counterexample"), agent, 10)


class OneAction(FixedPolicy):
    """A foreign agent."""

    name = "one-action"


def test_a_run_of_an_agent_of_ones_own_is_resumed_by_its_class(tmp_path):
    cmdp = psconrl.load("counterexample")
    run = Simulation(cmdp, OneAction(2, 2, cmdp.thresholds, policy=[[0.5, 0.5], [1.0, 0.0]], seed=0), 0)
    run.run(100)
    run.save(tmp_path / "run.npz")
    resumed = Simulation.resume(cmdp, tmp_path / "run.npz", agent=OneAction)
    assert isinstance(resumed.agent, OneAction)
    np.testing.assert_array_equal(resumed.run(300).cumulative, run.run(300).cumulative)
    assert isinstance(load_agent(tmp_path / "run.npz", OneAction), OneAction)
    with pytest.raises(AgentError, match=r"unknown agent 'one-action'.*if it is your own, give agent="):
        Simulation.resume(cmdp, tmp_path / "run.npz")
    with pytest.raises(AgentError, match="holds an agent 'one-action', not 'psconrl'"):
        Simulation.resume(cmdp, tmp_path / "run.npz", agent=PSConRL)


@pytest.mark.parametrize("seed", ["x", -1, 1.5, float("nan"), {}, 1j, [-1]], ids=repr)
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number from 0 on, or several; got"):
        simulate(psconrl.load("counterexample"), PSConRL(2, 2, [0.5]), 5, seed=seed)


def test_regret_needs_a_trace():
    with pytest.raises(ConfigError, match=r"regret needs a trace, .*; got list"):
        regret([], plan(psconrl.load("counterexample")))


@pytest.mark.parametrize("window", [0, -5, 2.5, float("nan"), "a", None, True], ids=repr)
def test_a_window_that_is_no_number_of_rounds_is_refused(window):
    cmdp = psconrl.load("counterexample")
    trace = simulate(cmdp, agent_for(cmdp), 5, seed=0)
    with pytest.raises(ConfigError, match="window must be a whole number from 1 on; got"):
        paper_regret([trace], plan(cmdp), window=window)


def test_the_papers_metric_needs_traces_and_an_optimum():
    cmdp = psconrl.load("counterexample")
    trace, best = simulate(cmdp, agent_for(cmdp), 5, seed=0), plan(cmdp)
    for given in ([], (), trace, None):
        with pytest.raises(ConfigError, match="paper_regret needs a list of traces, at least one; got"):
            paper_regret(given, best, window=2)
    with pytest.raises(ConfigError, match=r"paper_regret needs a trace, .*; got int"):
        paper_regret([trace, 1], best, window=2)
    with pytest.raises(ConfigError, match=r"paper_regret needs a plan of the model, .*; got CMDP"):
        paper_regret([trace], cmdp, window=2)
    with pytest.raises(ConfigError, match="paper_regret needs an optimum; this plan is infeasible"):
        paper_regret([trace], plan(cmdp.with_thresholds([-1.0])), window=2)
    with pytest.raises(ConfigError, match="paper_regret needs traces with the same checkpoints"):
        paper_regret([trace, simulate(cmdp, agent_for(cmdp), 6, seed=0)], best, window=2)


def test_regret_refuses_a_plan_of_another_model():
    """Other sizes, other costs, other transitions and other thresholds, each with the same number of costs."""
    cmdp = psconrl.load("marsrover-4x4")
    trace, remedy = simulate(cmdp, agent_for(cmdp), 20, seed=0), r"; give psconrl\.plan of the model that was played$"
    with pytest.raises(ConfigError, match="64 states and 4 actions, the run was played on one with 16 and 4" + remedy):
        regret(trace, plan(psconrl.load("marsrover-8x8")))
    dearer = CMDP(cmdp.transition, 2.0 * cmdp.costs, cmdp.thresholds)
    for other in (psconrl.load("marsrover-4x4", slip=0.1), dearer):
        with pytest.raises(ConfigError, match="same size with other transitions or costs" + remedy):
            regret(trace, plan(other))
        with pytest.raises(ConfigError, match="other transitions or costs"):
            paper_regret([trace], plan(other), window=5)
    with pytest.raises(ConfigError, match=r"for thresholds \[0\.3\], the run was played under \[0\.2\]" + remedy):
        regret(trace, plan(cmdp.with_thresholds([0.3])))


def test_regret_takes_the_plan_of_the_model_however_it_is_stored(tmp_path):
    """Sparse or dense, unnamed, started elsewhere, or read from a file; one of an older file has no fingerprint."""
    cmdp = psconrl.load("marsrover-4x4")
    trace = simulate(cmdp, agent_for(cmdp), 20, seed=0)
    expected = regret(trace, plan(cmdp)).regret.tolist()
    plan(cmdp).save(tmp_path / "plan.npz")
    loaded = psconrl.Plan.load(tmp_path / "plan.npz")
    assert loaded.model == plan(cmdp).model
    sparse = CMDP(cmdp.transition.csr(), cmdp.costs, cmdp.thresholds, initial=3)
    unknown = psconrl.Plan(**{**vars(loaded), "origin": ""})
    for same in (loaded, plan(sparse), unknown):
        assert regret(trace, same).regret.tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("block", [1, 100, 10**9])
def test_a_fingerprint_is_that_of_the_entries(block, monkeypatch):
    monkeypatch.setattr(fingerprints, "READ_ENTRIES", block)
    cmdp = psconrl.load("queue")
    dense = cmdp.transition.toarray()
    everything = np.indices(dense.shape).reshape(2, -1)
    padded = csr_array((dense.ravel(), everything), shape=dense.shape)  # with stored zeros
    for transition in (dense, csr_array(dense), padded):
        assert fingerprint(CMDP(transition, cmdp.costs, cmdp.thresholds)) == fingerprint(cmdp)
    moved = np.roll(dense, 1, axis=1)
    assert fingerprint(CMDP(moved, cmdp.costs, cmdp.thresholds)) != fingerprint(cmdp)
    nearly = cmdp.costs.copy()
    nearly[0, 3, 1] = np.nextafter(nearly[0, 3, 1], 2.0)
    assert fingerprint(CMDP(dense, nearly, cmdp.thresholds)) != fingerprint(cmdp)
