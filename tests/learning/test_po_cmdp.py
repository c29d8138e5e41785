"""Policy optimisation for ergodic CMDPs: every constant of the paper, one step by hand, and three ways of playing."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import simulate
from psconrl.agents import POCMDP
from psconrl.envs.gym_env import CMDPEnv
from psconrl.errors import AgentError
from psconrl.learning.posterior.counts import Record
from psconrl.learning.registry import load_agent, make_agent
from psconrl.learning.rivals.po_cmdp import mirror_step, window_values
from psconrl.learning.runtime.recording import Trajectory
from psconrl.planning.optimism.ball import evaluate_in_balls
from psconrl.simulation.model_run import Simulation

ROVER = psconrl.load("marsrover-4x4")
LIVELY = {"H": 40, "N": 5, "eta": 3.0, "theta": 1.0, "bonus": 0.001}


def rover_agent(seed=0, horizon=1000, **options):
    return make_agent("po-cmdp", 16, 4, ROVER.thresholds, ROVER.costs, seed, horizon, **(LIVELY | options))


# Formulas


def test_the_practical_constants_are_those_of_the_authors_run():
    T, S, A = 3_000_000, 5, 2
    tuning = POCMDP(S, A, [0.5], horizon=T, delta=0.1).tuning
    assert (tuning.H, tuning.N, tuning.eps) == (300, 20, 0.01)
    assert tuning.theta == pytest.approx(10 / math.sqrt(T))
    assert tuning.eta == tuning.bound == pytest.approx(math.sqrt(T))
    root = math.sqrt(0.1) * math.sqrt(S * math.log(2 * S * A * T / 0.1))
    assert tuning.ball == pytest.approx(root)
    assert tuning.iota == pytest.approx(2 * 20 * root)


def test_the_constants_of_the_theory_are_those_of_equation_5():
    T, S, A, delta, t_mix, t_hit = 100_000, 3, 2, 0.1, 1.5, 4.0
    costs = np.zeros((2, S, A))
    costs[1, 0] = 10.0
    options = {"constants": "theory", "t_mix": t_mix, "t_hit": t_hit, "safe_gap": 2.0, "delta": delta}
    tuning = POCMDP(S, A, [5.0], costs, horizon=T, **options).tuning
    gap = 0.2  # in ranges of the cost
    H = math.ceil(16 * t_mix * t_hit * math.log2(T) ** 2)
    N = math.ceil(4 * t_mix * math.log2(T))
    K, log, longer = T / H, math.log(2 * S * A * T / delta), math.log(4 * S * A * T**3 / delta)
    eta = 1 + 2**10 * gap * N * math.sqrt(S) * longer * (
        math.sqrt(S**2 * A * T) + math.sqrt(H * T) + S**1.5 * A * H * longer
    )
    bound = 40 * eta / gap
    iota = 2 * bound * N / eta * math.sqrt(S * log)
    assert (tuning.H, tuning.N) == (H, N)
    assert tuning.eta == pytest.approx(eta)
    assert tuning.bound == pytest.approx(bound)
    assert tuning.iota == pytest.approx(iota)
    assert tuning.ball == pytest.approx(math.sqrt(S * log))
    assert tuning.theta == pytest.approx(min(1 / (4 * H * iota), math.sqrt(math.log(T) / (4 * K * H**2 * iota**2))))
    assert tuning.eps == pytest.approx(min(gap / 2, 3 * bound / K))


def test_every_constant_can_be_given():
    given = {"H": 9, "N": 4, "theta": 0.5, "eta": 7.0, "bound": 3.0, "eps": 0.125}
    agent = POCMDP(2, 2, [0.5], horizon=100, bonus=0.0, **given)
    assert agent.tuning._asdict() == given | {"iota": 0.0, "ball": 0.0}
    assert POCMDP(2, 2, [0.5], horizon=100, eta=7.0).tuning.bound == pytest.approx(7.0)
    half, whole = (POCMDP(2, 2, [0.5], horizon=100, bonus=b).tuning for b in (0.5, 1.0))
    assert (2 * half.iota, 2 * half.ball) == pytest.approx((whole.iota, whole.ball))


@pytest.mark.parametrize("missing", ["t_mix", "t_hit", "safe_gap"])
def test_the_theory_needs_to_know_the_model(missing):
    known = {"t_mix": 2.0, "t_hit": 3.0, "safe_gap": 0.1}
    for value in (None, 0.0) if missing == "safe_gap" else (None,):
        with pytest.raises(AgentError, match=r"needs t_mix, t_hit and a positive safe_gap$"):
            POCMDP(2, 2, [0.5], horizon=100, constants="theory", **(known | {missing: value}))


def test_a_window_must_lie_in_an_episode():
    with pytest.raises(AgentError, match=r"^H must exceed N, the rounds of a window; got 5, 5"):
        POCMDP(2, 2, [0.5], horizon=100, H=5, N=5)


def slow_values(states, rewards, N, S):
    """Algorithm 2 as it is printed, with rounds from t_1 = 1 to t_2 = n."""
    values = np.zeros(S)
    for s in range(S):
        tau, sums = 1, []
        while tau <= len(states) - N:
            if states[tau - 1] == s:
                sums.append(sum(rewards[tau - 1 : tau - 1 + N]))
                tau += 2 * N
            else:
                tau += 1
        values[s] = np.mean(sums) if sums else 0.0
    return values


@pytest.mark.parametrize("N", [1, 3, 10])
def test_values_of_windows_are_those_of_the_printed_loop(N):
    rng = np.random.default_rng(N)
    states, rewards = rng.integers(0, 4, 60), rng.normal(size=60)
    np.testing.assert_allclose(window_values(states, rewards, N, 5), slow_values(states, rewards, N, 5), atol=1e-12)


def test_a_mirror_step_is_optimal_among_distributions_bounded_from_below():
    """At the optimum, gains minus log-ratios are equal for actions above the bound, and not larger for those at it."""
    rng = np.random.default_rng(0)
    policy, gains = rng.dirichlet(np.ones(5), 50), 3 * rng.normal(size=(50, 5))
    step = mirror_step(policy, gains, 0.05)
    np.testing.assert_allclose(step.sum(axis=1), 1.0)
    assert step.min() >= 0.05
    slope = gains - np.log(step / policy)
    above = step > 0.05
    level = np.where(above, slope, -np.inf).max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.where(above, slope, level), np.broadcast_to(level, slope.shape), atol=1e-9)
    assert (slope <= level + 1e-9).all()
    assert (~above).any()


def test_one_step_by_hand():
    """Two states, which action 0 keeps and action 1 exchanges; objective 1 in state 1, constrained cost 1 in 0."""
    costs = np.array([[[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]])
    agent = POCMDP(2, 2, [0.25], costs, horizon=50, H=6, N=2, theta=0.5, eta=2.0, eps=0.125, bonus=0.0)
    agent.multipliers[:] = 1.0
    for state, action, successor in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0), (0, 0, 0), (0, 1, 1)]:
        agent.learn(state, action, successor, costs[:, state, action])
        record = Record.empty(agent.counts)
        record.step(state, action, successor, costs[:, state, action])
        agent.end(record)
    agent.begin(1)
    # d = 1 - c0 - c1 / 2: 1/2 in state 0, 0 in state 1. No model was known before, so that values of V do not enter.
    assert agent.policy == pytest.approx(np.full((2, 2), 0.5))
    assert agent.multipliers == pytest.approx([1.0 + 3 / 4 + 0.125 - 0.25])  # the last four rounds have cost 3
    trajectory = Trajectory(
        np.array([1, 2, 3, 0, 0, 1]), np.array([1, 1, 0, 0, 0, 1]), costs.reshape(2, 4)[:, [1, 2, 3, 0, 0, 1]].T.copy()
    )
    agent.counts.add(record)  # so that the episode is not the first: (0, 1) once led to 1 before it
    agent.multipliers[:] = 1.0
    agent._improve(trajectory)
    V1 = 0.0  # rounds 2 and 3: d = 0 + 0; a window that begins in state 0: rounds 1 and 2, d = 1/2
    beta = np.array([[0.5 + 0.0, 0.5 + V1], [0.0, 0.0]])
    expected = 0.5 * np.exp(0.5 * beta)
    assert agent.policy == pytest.approx(expected / expected.sum(axis=1, keepdims=True))


def test_the_bonus_is_the_value_of_its_reward_in_the_best_model():
    agent = rover_agent(bonus=0.5)
    transitions = np.random.default_rng(0).integers(0, 5, (64, 16))
    transitions[3] = 0
    visits = transitions.sum(axis=1)
    width = 1 / np.sqrt(np.maximum(visits, 1)).reshape(16, 4)
    x = agent.tuning.iota * (width + (agent.policy * width).sum(axis=1)[:, None])
    radius = np.minimum(agent.tuning.ball * width.ravel(), 2.0)
    radius[3] = 2.0
    frequencies = transitions / np.maximum(visits, 1)[:, None]
    found = evaluate_in_balls(frequencies, radius, -x, agent.policy)
    np.testing.assert_allclose(agent._bonus(transitions), -found.pairs)
    assert not rover_agent(bonus=0.0)._bonus(transitions).any()


def test_multipliers_stay_within_their_bound():
    agent = POCMDP(1, 2, [0.0], horizon=50, H=3, N=1, bound=0.5)
    for _ in range(4):
        agent.observe(agent.act(0), 0, [0.0, 1.0])
    assert agent.multipliers.tolist() == [0.5]


# Ways of playing


def test_three_ways_of_playing_have_the_same_bits():
    by_model, by_hand, by_episodes = rover_agent(), rover_agent(), rover_agent()
    run = Simulation(ROVER, by_model, seed=3)
    first = run.state
    trace = run.run(210, checkpoints=210)
    by_model.finish()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(3)))
    rng.choice(16, p=ROVER.initial)
    P, state = ROVER.transition.toarray().reshape(16, 4, 16).cumsum(axis=2), first
    luck = rng.random((4096, 1)).ravel()
    total = np.zeros(2)
    for t in range(210):
        action = by_hand.act(state)
        assert by_episodes.begin(state).max_steps == 1
        following = int(np.searchsorted(P[state, action], luck[t], side="right"))
        costs = ROVER.costs[:, state, action]
        total += costs
        by_hand.observe(action, following, costs)
        record = Record.empty(by_episodes.counts)
        record.step(state, action, following, costs)
        by_episodes.end(record)
        state = following
    by_hand.finish()
    assert total == pytest.approx(trace.cumulative[-1])
    assert by_model.multipliers.any()
    for other in (by_hand, by_episodes):
        assert other.policy.tolist() == by_model.policy.tolist()
        assert other.multipliers.tolist() == by_model.multipliers.tolist()
        assert other.rounds == by_model.rounds == 210


def test_a_gymnasium_environment_is_played_as_well():
    agent = rover_agent()
    simulate(CMDPEnv(ROVER), agent, 100, seed=0)
    assert (agent.policy != 0.25).any()


def test_an_agent_that_is_saved_in_the_middle_of_an_episode_continues_bit_for_bit(tmp_path):
    agent = rover_agent()
    simulate(ROVER, agent, 130, seed=0)
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    runs = [simulate(ROVER, one, 200, seed=8) for one in (agent, again)]
    assert runs[0].cumulative.tolist() == runs[1].cumulative.tolist()
    assert agent.policy.tolist() == again.policy.tolist()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"pairs_played": np.full(10, 64)}, "pairs_played: must hold whole numbers from 0 to 63; has 64"),
        ({"successors_met": np.full(10, -1)}, "successors_met: must hold whole numbers from 0 to 15; has -1"),
        ({"block_rounds": 5}, "block_rounds: must be a whole number from 10 to"),
        ({"costs_met": np.ones((10, 3))}, r"costs_met: must be an array of numbers, shape \(10, 2\)"),
        ({"multipliers": [-1.0]}, "multipliers: must hold finite numbers from 0; has -1.0"),
    ],
)
def test_damaged_files_are_refused(damage, message):
    agent = rover_agent()
    simulate(ROVER, agent, 50, seed=0)
    state = agent.state() | damage
    with pytest.raises(AgentError, match=message):
        rover_agent().restore(state)


def test_costs_are_scaled_by_their_ranges():
    scaled = psconrl.CMDP(ROVER.transition, ROVER.costs * 8.0, ROVER.thresholds * 8.0, initial=ROVER.initial)
    other = make_agent("po-cmdp", 16, 4, scaled.thresholds, scaled.costs, 0, 1000, **LIVELY)
    one, two = simulate(ROVER, rover_agent(), 500, seed=0), simulate(scaled, other, 500, seed=0)
    assert (one.cumulative * 8.0).tolist() == two.cumulative.tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("known", [True, False])
def test_with_lively_constants_it_learns(known):
    """The optimum is .775 under a limit of .2; a uniform policy has .975 and .32. Other seeds: below .86 and .28."""
    options = {"H": 100, "eta": 3.0, "theta": 1.0, "bonus": 0.0}
    costs = ROVER.costs if known else None
    agent = make_agent("po-cmdp", 16, 4, ROVER.thresholds, costs, 0, 20_000, **options)
    averages = simulate(ROVER, agent, 20_000, seed=0).cumulative[-1] / 20_000
    assert averages[0] < 0.9
    assert averages[1] < 0.3
