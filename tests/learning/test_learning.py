"""PSConRL: its stopping rule, its posterior, its exploration, its files."""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, PSConRL, plan, regret, simulate
from psconrl.agents import (
    CubeRoot,
    Doubling,
    EveryRound,
    Explore,
    Growing,
    LengthOnly,
    Ouyang,
    SquareRoot,
    Steady,
    Unconstrained,
    Uniform,
)
from psconrl.errors import AgentError, ConfigError
from psconrl.learning.parts import schedules
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.sampled_rows import dirichlet_rows, log_gamma_variates
from psconrl.learning.posterior.transition_beliefs import Dirichlet
from psconrl.learning.registry import make_agent
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem
from psconrl.simulation.model_run import Simulation

NAMES = ("marsrover-4x4", "counterexample", "queue", "riverswim", "inventory")

# Example 1 with everything known but theta: Beta(1, 1) on it, zeros for impossible transitions.
EXAMPLE_PRIOR = [[[1, 0], [1, 1]], [[1, 0], [1, 0]]]


def agent_for(cmdp, seed=0, **options):
    return PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed, **options)


@pytest.mark.parametrize("name", NAMES)
def test_the_stopping_rule_step_by_step(name):
    """t > t_k + T_(k-1) or N > 2 N_k for some pair, with T_0 = 1: not a step earlier, not a step later."""
    cmdp = psconrl.load(name)
    agent = agent_for(cmdp, seed=1, schedule=Ouyang())
    rng = np.random.default_rng(0)
    P = cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, -1)
    N = np.zeros((cmdp.n_states, cmdp.n_actions), dtype=int)
    state, t, t_k, last, N_k = 0, 1, 1, 1, N.copy()
    ends = []
    for _ in range(1500):
        action = agent.act(state)
        successor = int(rng.choice(cmdp.n_states, p=P[state, action]))
        agent.observe(action, successor, cmdp.costs[:, state, action])
        N[state, action] += 1
        state, t = successor, t + 1
        stop = t > t_k + last or (2 * N_k < N).any()
        assert agent.between_episodes == stop
        if stop:
            last, t_k, N_k = t - t_k, t, N.copy()
            ends.append(last)
    assert ends[0] == 1  # a first visit ends an episode
    assert all(b <= a + 1 for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(
    "schedule", [Ouyang(), Doubling(), Steady(), SquareRoot(), LengthOnly(), Growing(), EveryRound(), CubeRoot()]
)
@pytest.mark.part(2)
@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_episodes_is_within_its_bound(name, schedule, full):
    cmdp = psconrl.load(name)
    for T in (100, 5000 if full or not isinstance(schedule, EveryRound) else 1000):
        trace = simulate(cmdp, agent_for(cmdp, schedule=schedule), T, seed=0)
        assert len(trace.episodes) <= schedule.most_episodes(cmdp.n_states, cmdp.n_actions, T)


@pytest.mark.parametrize(("tried", "least"), [(3, 1), (4, 2), (5, 2)])
def test_first_visits_end_episodes_until_many_pairs_have_been_tried(tried, least, monkeypatch):
    monkeypatch.setattr(schedules, "ENDING_FIRST_VISITS", 4)
    counts = SimpleNamespace(pairs=np.where(np.arange(6) < tried, [1, 7, 3, 2, 1, 9], 0).reshape(2, 3))
    steps, caps = SquareRoot().caps(counts)
    assert steps == math.ceil(math.sqrt(counts.pairs.sum()))
    assert (caps == np.maximum(counts.pairs, least)).all()


@pytest.mark.parametrize("free", [10, 60, 1000])
def test_where_every_round_is_a_first_visit_few_of_them_are_planned(free, monkeypatch):
    """A circle of 300 states: the first visits end an episode each, then it lasts the root of the rounds before it."""
    monkeypatch.setattr(schedules, "ENDING_FIRST_VISITS", free)
    S = 300
    circle = csr_array((np.ones(S), (np.arange(S), np.roll(np.arange(S), -1))), shape=(S, S))
    cmdp = CMDP(circle, np.zeros((1, S, 1)), [])
    agent = agent_for(cmdp, belief=LearnedMass(support=circle))
    lengths, t = [], 0
    while t < S:
        lengths.append(min(1 if t < free else math.ceil(math.sqrt(t)), S - t))
        t += lengths[-1]
    assert simulate(cmdp, agent, S, seed=0).episodes.length == lengths


@pytest.mark.statistical
@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.1, 0.7, 1.0, 12.5])
def test_dirichlet_marginals(alpha):
    """The first entry of Dirichlet(a, a, a, b) is Beta(a, 2a + b). KS at 1e-4: false alarms 6e-4 over the six."""
    rng = np.random.default_rng(17)
    rows = dirichlet_rows(np.tile([alpha, alpha, alpha, 2.0], (20_000, 1)), rng)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    for j, (a, b) in enumerate([(alpha, 2 * alpha + 2)] * 3 + [(2.0, 3 * alpha)]):
        # Compare logarithms: a tiny parameter puts most mass below the smallest double.
        x = rows[:, j]
        if alpha < 0.01:
            if j < 3:
                assert np.mean(x < 1e-90) == pytest.approx(stats.beta.cdf(1e-90, a, b), abs=0.02)
        else:
            assert stats.kstest(x, stats.beta(a, b).cdf).pvalue > 1e-4


def test_zeros_in_the_prior_are_never_sampled_and_rows_never_vanish():
    prior = np.full((3, 2, 3), 1e-4)
    prior[0, 0] = [0, 0, 1]
    prior[1, 1, 2] = 0
    belief = Dirichlet(prior).made_for(3, 2, 1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        P = belief.sample(Counts(3, 2, 1), rng).toarray()
        assert np.isfinite(P).all()
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        assert P[0].tolist() == [0, 0, 1]
        assert P[3, 2] == 0


@pytest.mark.statistical
@pytest.mark.parametrize("shape", [0.02, 0.1, 0.9, 1.0, 1.5, 400.0])
def test_gamma_variates_follow_their_distribution(shape):
    """Kolmogorov-Smirnov on the probability transform: false alarms once in 10,000 seeds for each shape."""
    logs = log_gamma_variates(np.full(50_000, shape), np.random.default_rng(0))
    # log of the distribution function where the variate is below the smallest double: x^a / Gamma(a + 1)
    tail = shape * logs - special.gammaln(shape + 1)
    u = np.where(logs < -600, np.exp(tail), special.gammainc(shape, np.exp(np.maximum(logs, -600))))
    assert stats.kstest(u, "uniform").pvalue > 1e-4


@pytest.mark.full
@pytest.mark.statistical
def test_posterior_calibration():
    """If the truth comes from the prior, its rank among posterior draws is uniform, for any functional.

    Chi-square over 10 bins, 400 truths, at level 1e-3: that is the false-alarm rate.
    """
    rng = np.random.default_rng(5)
    S, A, draws, alpha = 4, 2, 19, 0.3
    costs = np.arange(S, dtype=float)
    ranks = []
    for _ in range(400):
        truth = dirichlet_rows(np.full((S * A, S), alpha), rng)
        counts = Counts(S, A, 1)
        state = 0
        for _ in range(30):
            pair = state * A + int(rng.integers(A))
            state = int(rng.choice(S, p=truth[pair]))
            counts.tally.note(pair, state)
            counts.visits[pair] += 1
        functional = [
            (p @ costs).sum() for p in (Dirichlet(alpha).made_for(S, A, 0).sample(counts, rng) for _ in range(draws))
        ]
        ranks.append(np.sum(np.array(functional) < (truth @ costs).sum()))
    observed = np.bincount(np.array(ranks) // 2, minlength=10)
    assert stats.chisquare(observed).pvalue > 1e-3


def example_run(seed, fallback):
    cmdp = psconrl.load("counterexample")
    agent = agent_for(cmdp, seed, belief=Dirichlet(EXAMPLE_PRIOR), schedule=EveryRound(), fallback=fallback)
    trace = simulate(cmdp, agent, 500, seed=seed)
    agent.finish()
    theta = agent.belief.mean(agent.counts)[1, 1]
    return trace.averages[-1][1], theta, agent.counts.pairs[0, 1]


@pytest.mark.full
@pytest.mark.statistical
def test_example_1_is_learned_with_exploration_and_not_without():
    """A third of the runs of the paper's Figure 1.

    Over 30 other seeds the average cost was 0.530 +- 0.003 with exploration and 0.81 +- 0.10 without, theta 0.900 +-
    0.018, tried 261 +- 4 and 104 +- 55 times: every bound is five standard errors away from the means of nine and of
    five runs, false alarms below 1e-5.
    """
    explored = np.array([example_run(seed, Explore()) for seed in range(9)]).mean(axis=0)
    ignored = np.array([example_run(seed, Unconstrained()) for seed in range(5)]).mean(axis=0)
    assert explored[0] == pytest.approx(0.5275, abs=0.02)
    assert explored[1] == pytest.approx(0.9, abs=0.03)
    assert ignored[0] > 0.56  # violates the limit of 0.5275
    assert ignored[2] < explored[2]  # and learns less about theta


def test_exploration_goes_to_the_least_visited_state_that_can_be_reached():
    prior = np.zeros((4, 2, 4))
    prior[0, :, :3] = prior[1, :, :3] = prior[2, :, :3] = 0.5
    prior[3, :, 3] = 1.0  # an island: never visited, never reachable
    agent = PSConRL(
        4, 2, thresholds=[-1.0], costs=np.zeros((2, 4, 2)), belief=Dirichlet(prior), fallback=Explore(), seed=0
    )  # always infeasible
    P = prior / prior.sum(axis=2, keepdims=True)
    cmdp = CMDP(P, np.zeros((2, 4, 2)), [0.0])
    trace = simulate(cmdp, agent, 600, seed=0)
    assert set(trace.episodes.kind) == {"explore"}
    visits = agent.counts.pairs.sum(axis=1)
    assert visits[3] == 0
    assert visits[:3].min() > 100


@pytest.mark.parametrize(("rule", "in_target"), [("shortest", 1), ("least_tried", 2)])
def test_least_tried_explores_actions_too(rule, in_target):
    """State 2 is least visited. Its action 1 returns soonest, its action 2 was least tried: the rules differ there."""
    follows = np.array([[0, 1, 2], [0, 1, 0], [0, 2, 1]])
    prior = np.eye(3)[follows]  # all is known
    agent = PSConRL(3, 3, [-1.0], np.zeros((2, 3, 3)), belief=Dirichlet(prior), fallback=Explore(rule), seed=0)
    agent.counts.visits[:] = [9, 9, 9, 9, 9, 9, 4, 3, 2]
    for pair, follower in enumerate(follows.ravel()):
        for _ in range(agent.counts.visits[pair]):
            agent.counts.tally.note(pair, follower)
    episode = agent.begin(0)
    assert episode.kind == "explore"
    assert episode.policy[0].argmax() == 2
    assert episode.policy[2].argmax() == in_target


@pytest.mark.parametrize("limit", [0.05, 0.2, 0.6])
def test_the_value_of_a_solution_is_that_of_its_frequencies(limit):
    cmdp = psconrl.load("marsrover-4x4", threshold=limit)
    agent = agent_for(cmdp, 0)
    simulate(cmdp, agent, 500, seed=0)
    problem = Problem.of(cmdp)
    for _ in range(20):
        found = solve(problem.with_transition(agent.belief.sample(agent.counts, agent.rng)))
        assert found.value == pytest.approx(problem.costs[0] @ found.occupancy.ravel(), abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["marsrover-4x4", "inventory", "queue"])
@pytest.mark.part(2)
@pytest.mark.parametrize("known", [True, False])
def test_it_learns(name, known):
    cmdp = psconrl.load(name)
    best = plan(cmdp)
    given = {"costs": cmdp.costs} if known else {"optimistic_cost": float(cmdp.costs[0].min())}
    agent = PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, belief=Dirichlet(0.05), seed=1, **given)
    trace = simulate(cmdp, agent, 60_000, seed=1, evaluate_policies=True)
    late = np.mean(trace.policies.costs[-50:], axis=0)
    # The delay of the queue is the slowest: over 32 seeds its error was 0.08 +- 0.06, so 0.42 is five deviations away.
    np.testing.assert_allclose(late, best.costs, rtol=0.2, atol=0.02)


def test_the_published_preset_is_what_was_published():
    agent = make_agent("psconrl-published", 16, 4, [0.2], np.zeros((2, 16, 4)), seed=0)
    assert agent.costs is None
    assert agent.belief.parameters(agent.counts).min() == 0.05
    episode = agent.begin(0)
    assert (episode.visit_caps == 3).all()
    assert episode.max_steps > 10**15
    impossible = make_agent("psconrl-published", 16, 4, [-1.0], seed=0).begin(0)
    assert impossible.kind == "uniform"
    np.testing.assert_array_equal(impossible.policy, 0.25)


def test_new_thresholds_must_fit():
    with pytest.raises(AgentError, match="1 finite numbers"):
        PSConRL(16, 4, [0.2]).set_thresholds([0.1, 0.2])


def test_a_saved_agent_continues_bit_for_bit_even_within_an_episode(tmp_path):
    cmdp = psconrl.load("queue")
    agent = agent_for(cmdp, 3)
    rng = np.random.default_rng(1)
    P = cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, -1)

    def live(agent, state, rng, rounds):
        seen = []
        for _ in range(rounds):
            action = agent.act(state)
            state = int(rng.choice(cmdp.n_states, p=P[state, action]))
            agent.observe(action, state, cmdp.costs[:, 0, action])
            seen.append((action, state))
        return seen, state

    _, state = live(agent, 0, rng, 777)
    while agent.between_episodes:
        _, state = live(agent, state, rng, 1)
    agent.save(tmp_path / "agent.npz")
    copy = PSConRL.load(tmp_path / "agent.npz")
    bits = rng.bit_generator.state
    one, _ = live(agent, state, rng, 500)
    rng.bit_generator.state = bits
    two, _ = live(copy, state, rng, 500)
    assert one == two
    # Also between act and observe.
    action = agent.act(0)
    agent.save(tmp_path / "agent.npz")
    PSConRL.load(tmp_path / "agent.npz").observe(action, 1, np.zeros(3))


def test_corrupt_or_foreign_agent_files_are_refused_clearly(tmp_path):
    path = tmp_path / "agent.npz"
    agent = PSConRL(3, 2, [0.5], seed=0)
    agent.save(path)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(AgentError, match="truncated, or not a psconrl-agent file"):
            PSConRL.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "psconrl-agent", "version": 99})))
    with pytest.raises(AgentError, match="version 99 is not 1; update psconrl"):
        PSConRL.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "other"})))
    with pytest.raises(AgentError, match="not a psconrl-agent file but a other one"):
        PSConRL.load(path)
    np.savez(path, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(AgentError, match="objects are pickled, and never read"):
        PSConRL.load(path)
    psconrl.save(psconrl.load("box"), path)
    with pytest.raises(AgentError, match="not a psconrl-agent file but a psconrl-cmdp one"):
        PSConRL.load(path)
    with pytest.raises(AgentError, match="no such file"):
        PSConRL.load(tmp_path / "nothing.npz")
    with pytest.raises(AgentError, match="cannot be written"):
        agent.save(tmp_path / "no" / "where.npz")
    with pytest.raises(AgentError, match="exists and holds no agent; choose another name"):
        agent.save(path)
    path.unlink()
    Uniform(3, 2, [0.5]).save(path)
    with pytest.raises(AgentError, match="holds an agent 'uniform', not 'psconrl'"):
        PSConRL.load(path)
    agent.save(path)
    with pytest.raises(AgentError, match="holds an agent but no run"):
        Simulation.resume(psconrl.load("box"), path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": 0}, "n_states must be a whole number from 1 on"),
        ({"thresholds": [np.nan]}, "thresholds must be finite"),
        ({"costs": np.zeros((2, 2, 2))}, r"costs must be finite and have shape \(m\+1, S, A\) = \(2, 3, 2\)"),
        ({"costs": np.full((2, 3, 2), np.inf)}, "costs must be finite"),
        ({"belief": lambda: Dirichlet(-1.0)}, "prior must be finite and not negative"),
        ({"belief": lambda: Dirichlet(np.zeros((3, 2, 3)))}, r"prior\[0, 0\] must allow at least one next state"),
        ({"belief": lambda: Dirichlet(np.ones((2, 2, 2)))}, r"shape \(S, A, S\) = \(3, 2, 3\)"),
        ({"fallback": lambda: Explore("lest_tried")}, "did you mean 'least_tried'"),
        ({"schedule": "doubling"}, r"schedule must be one such as Doubling\(\); got 'doubling'"),
        ({"belief": 0.1}, r"belief must be one such as Dirichlet\(0.1\); got 0.1"),
        ({"fallback": Doubling()}, r"fallback must be one such as Explore\(\); got Doubling\(\)"),
        ({"ledger": 0.1}, r"ledger must be one such as Repay\(0.1\); got 0.1"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"n_states": 2.5}, "must be a whole number from 1 on; got 2.5"),
        ({"thresholds": ["a"]}, "thresholds must be numbers"),
        ({"belief": lambda: Dirichlet("x")}, "prior must be a number"),
        ({"optimistic_cost": np.nan}, "optimistic_cost must be a finite number"),
    ],
)
def test_bad_arguments_get_one_clear_line(arguments, message):
    def build():
        given = {key: value() if callable(value) else value for key, value in arguments.items()}
        PSConRL(**({"n_states": 3, "n_actions": 2, "thresholds": [0.5]} | given))

    with pytest.raises((AgentError, ConfigError), match=message) as error:
        build()
    assert "\n" not in str(error.value)


def test_misuse_of_the_step_wise_interface_is_refused():
    agent = PSConRL(3, 2, [0.5], seed=0)
    with pytest.raises(AgentError, match="observe was called before act"):
        agent.observe(0, 0, [0, 0])
    for state in (-1, 3, 1.0, "a", None):
        with pytest.raises(AgentError, match="state must be an integer from 0 to 2"):
            agent.act(state)
    action = agent.act(0)
    with pytest.raises(AgentError, match="act was called twice"):
        agent.act(0)
    with pytest.raises(AgentError, match="must be 2 numbers"):
        agent.observe(action, 0, [0.0])
    with pytest.raises(AgentError, match="must be finite"):
        agent.observe(action, 0, [0.0, np.nan])
    with pytest.raises(AgentError, match="state must be an integer"):
        agent.observe(action, 7, [0.0, 0.0])
    with pytest.raises(AgentError, match=r"action must lie in 0\.\.1"):
        agent.observe(5, 0, [0.0, 0.0])
    agent.observe(action, 0, [0.0, 0.0])  # nothing was corrupted
    with pytest.raises(ConfigError, match="did you mean 'psconrl-paper'"):
        make_agent("psconrl-papr", 3, 2, [0.5])
    with pytest.raises(ConfigError, match="unknown option 'piror'; did you mean 'prior'"):
        make_agent("psconrl", 3, 2, [0.5], piror=0.1)


def test_tiny_models_and_no_constraints_work():
    one = CMDP([[[1.0]]], [[[0.5]]])
    trace = simulate(one, PSConRL(1, 1, [], seed=0), 100, seed=0)
    assert regret(trace, plan(one)).final[0] == 0.0


def test_samples_that_fall_apart_are_planned_all_the_same():
    """With a prior of 1e-4 whole rows underflow to a single successor and the sampled model is multichain."""
    cmdp = psconrl.load("marsrover-4x4")
    trace = simulate(cmdp, agent_for(cmdp, belief=Dirichlet(1e-4)), 1500, seed=0)
    assert trace.horizon == 1500
