"""Triple-QA: its formulas, agreement with a slow loop in plain NumPy, and three ways of playing with the same bits."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import simulate
from psconrl.agents import TripleQA
from psconrl.envs.gym_env import CMDPEnv
from psconrl.errors import AdviceWarning, AgentError
from psconrl.kernels.agents import triple_qa
from psconrl.learning.posterior.counts import Record
from psconrl.learning.registry import load_agent, make_agent
from psconrl.learning.rivals.triple_qa import Constants
from psconrl.simulation.model_run import Simulation

ROVER = psconrl.load("marsrover-4x4")
# With the paper's constants nothing is ever learned on so short runs.
LIVELY = {"kappa": 0.02, "eps": 0.01, "gamma": 0.9, "frame": 40, "chi": 3.0, "together": False}


def rover_agent(seed=0, horizon=1000, **options):
    return make_agent("triple-qa", 16, 4, ROVER.thresholds, ROVER.costs, seed, horizon, **(LIVELY | options))


# Formulas


def test_the_constants_are_those_of_the_paper():
    K, S, A = 4_000_000, 5, 3
    agent = TripleQA(S, A, [0.5], horizon=K, kappa=2.0)
    iota = 8 * math.log(math.sqrt(2) * K)
    assert agent.constants.gamma == pytest.approx(1 - 1 / K ** (1 / 6), rel=1e-14)
    assert agent.constants.eta == pytest.approx(K ** (1 / 6), rel=1e-14)
    assert agent.constants.chi == pytest.approx(K ** (1 / 3), rel=1e-14)
    assert agent.constants.iota == pytest.approx(iota, rel=1e-14)
    assert agent.frame_length == math.ceil(K ** (2 / 3))
    assert agent.tightening == pytest.approx(9 * 2.0 * math.sqrt(15 * iota) / K ** (1 / 6), rel=1e-14)
    assert agent.hats[0, 0, 0] == agent.values[1, 4] == pytest.approx(K ** (1 / 6))


@pytest.mark.parametrize(("K", "length"), [(1, 1), (8, 4), (1000, 100), (1_000_000, 10_000), (1001, 101)])
def test_a_frame_has_the_horizon_to_two_thirds(K, length):
    assert TripleQA(2, 2, [0.5], horizon=K).frame_length == length


def test_every_constant_can_be_given():
    given = {"kappa": 3.0, "gamma": 0.5, "eta": 7.0, "chi": 2.0, "iota": 1.5, "eps": 0.125, "frame": 9}
    agent = TripleQA(2, 2, [0.5], horizon=100, **given)
    assert agent.constants == Constants(gamma=0.5, chi=2.0, iota=1.5, kappa=3.0, eta=7.0, together=True)
    assert (agent.frame_length, agent.tightening) == (9, 0.125)
    assert (agent.hats == 2.0).all()


def test_rate_and_bonus():
    constants = Constants(gamma=0.5, chi=4.0, iota=6.0, kappa=2.0, eta=1.0, together=True)
    for tau in (1, 2, 5, 1000):
        assert triple_qa.rate(tau, constants.chi) == pytest.approx(5.0 / (4.0 + tau), rel=1e-15)
        bonus = triple_qa.bonus(tau, constants.kappa, constants.chi, constants.iota)
        assert bonus == pytest.approx(2.0 * math.sqrt(5.0 * 6.0 / (4.0 + tau)), rel=1e-15)
    assert triple_qa.rate(1, constants.chi) == 1.0


def test_one_round_by_hand():
    """gamma = .5, H = 2, no bonus. The first visit forgets the table: Q = r + .5 * 2, C = g + .5 * 2."""
    agent = TripleQA(2, 2, [0.25], horizon=50, kappa=0.0, gamma=0.5, eta=1.0, chi=1.0, eps=0.0, frame=10)
    agent.queues[:] = 4.0
    agent.learn(0, 0, 1, np.array([0.3, 0.6]))
    assert agent.hats[:, 0, 0] == pytest.approx([1.7, 1.4])
    assert agent.policy.tolist() == [[0.0, 1.0], [1.0, 0.0]]  # the other action still promises 2 + 4 * 2
    assert agent.values[:, 0] == pytest.approx([2.0, 2.0])
    assert agent.totals == pytest.approx([0.5 * 1.4])
    agent.learn(0, 1, 0, np.array([0.9, 0.2]))
    assert agent.hats[:, 0, 1] == pytest.approx([1.1, 1.8])
    assert agent.policy[0].tolist() == [0.0, 1.0]  # 1.1 + 4 * 1.8 = 8.3 against 1.7 + 4 * 1.4 = 7.3
    assert agent.values[:, 0] == pytest.approx([1.1, 1.8])
    agent.learn(0, 0, 0, np.array([0.0, 1.0]))  # second visit, rate 2 / 3; here Q falls, and so does C
    assert agent.estimates[:, 0, 0] == pytest.approx([1.7 / 3 + 2 / 3 * 1.55, 1.4 / 3 + 2 / 3 * 0.9])
    assert agent.totals == pytest.approx([0.5 * (1.4 + 1.8 + agent.hats[1, 0, 0])])


@pytest.mark.parametrize("together", [True, False])
def test_hats_follow_where_both_fall_or_each_for_itself(together):
    agent = TripleQA(1, 1, [0.5], horizon=50, kappa=0.0, gamma=0.5, chi=0.0, eps=0.0, together=together)
    agent.hats[:, 0, 0] = [1.8, 1.1]
    agent.learn(0, 0, 0, np.array([0.5, 0.5]))  # both are estimated at .5 + .5 * 2 = 1.5
    assert agent.hats[:, 0, 0].tolist() == ([1.8, 1.1] if together else [1.5, 1.1])


def test_the_queue_takes_in_what_a_frame_missed_and_the_frame_begins_again():
    agent = TripleQA(1, 2, [0.25], horizon=50, kappa=0.0, gamma=0.5, chi=1.0, eps=0.125, frame=2)
    for _ in range(2):
        agent.observe(agent.act(0), 0, [0.5, 0.5])
    total = float(agent.totals[0])
    assert total == pytest.approx(0.5 * 1.5 + 0.5 * agent.hats[1, 0, 1])  # one action after the other
    agent.act(0)
    assert agent.queues == pytest.approx([0.75 + 0.125 - total / 2])  # rho = 1 - .25
    assert (agent.hats == 2.0).all()
    assert (agent.estimates == 2.0).all()
    assert (agent.values == 2.0).all()
    assert not agent.frame_visits.any()
    assert not agent.totals.any()


def test_a_queue_is_never_negative():
    agent = TripleQA(1, 2, [0.9], horizon=50, kappa=0.0, eps=0.0, frame=1)
    agent.observe(agent.act(0), 0, [0.5, 0.0])
    agent.act(0)
    assert agent.queues.tolist() == [0.0]


def test_costs_are_scaled_to_gains_by_their_ranges():
    costs = np.array([[[-5.0, 15.0]], [[2.0, 6.0]]])
    known = TripleQA(1, 2, [3.0], costs, horizon=50)
    informed = TripleQA(1, 2, [3.0], horizon=50, ranges=[[-5.0, 15.0], [2.0, 6.0]])
    for agent in (known, informed):
        assert agent.wanted.tolist() == [0.75]
        assert ((agent._scale.highest - [-5.0, 2.0]) / agent._scale.units).tolist() == [1.0, 1.0]
        assert ((agent._scale.highest - [15.0, 6.0]) / agent._scale.units).tolist() == [0.0, 0.0]
    assert TripleQA(1, 2, [0.3], horizon=50).wanted == pytest.approx([0.7])
    scaled = psconrl.CMDP(ROVER.transition, ROVER.costs * 8.0, ROVER.thresholds * 8.0, initial=ROVER.initial)
    other = make_agent("triple-qa", 16, 4, scaled.thresholds, scaled.costs, 0, 1000, **LIVELY)
    one, two = simulate(ROVER, rover_agent(), 1000, seed=0), simulate(scaled, other, 1000, seed=0)
    assert (one.cumulative * 8.0).tolist() == two.cumulative.tolist()


@pytest.mark.parametrize("ranges", [[[0.0, 1.0]], [[0.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
def test_bad_ranges_get_one_line(ranges):
    with pytest.raises(AgentError, match=r"^ranges must hold the lowest and the highest of each of 2 costs"):
        TripleQA(2, 2, [0.5], horizon=50, ranges=ranges)


@pytest.mark.filterwarnings("ignore:with these constants:psconrl.errors.AdviceWarning")
def test_an_unknown_range_of_the_objective_grows_from_frame_to_frame():
    agent = TripleQA(1, 2, [0.5], horizon=50, frame=2)
    agent.observe(agent.act(0), 0, [-3.0, 0.0])
    agent.observe(agent.act(0), 0, [-3.0, 0.0])
    assert agent._scale.lowest.tolist() == [0.0, 0.0]  # until the frame is over
    agent.act(0)
    assert (agent._scale.lowest.tolist(), agent._scale.highest.tolist()) == ([-6.0, 0.0], [0.0, 1.0])
    assert agent._scale.units.tolist() == [6.0, 1.0]
    again = TripleQA(1, 2, [0.5], horizon=50, frame=2)
    again.restore(agent.state())
    assert again._scale.lowest.tolist() == [-6.0, 0.0]
    given = TripleQA(1, 2, [0.5], horizon=50, frame=1, ranges=[[-4.0, 0.0], [0.0, 1.0]])
    given.observe(given.act(0), 0, [-3.0, 0.0])
    given.act(0)
    assert given._scale.lowest.tolist() == [-4.0, 0.0]


# The slow loop


def reference(cmdp, agent, rounds, model, first):
    """Triple-QA as its paper has it, for one or more limits, in plain NumPy. Returns tables and the costs of rounds."""
    S, A, q = cmdp.n_states, cmdp.n_actions, len(cmdp.costs)
    P, con, L = cmdp.transition.toarray().reshape(S, A, S), agent.constants, agent.frame_length
    low, high = cmdp.costs.min(axis=(1, 2)), cmdp.costs.max(axis=(1, 2))
    rho, H = (high[1:] - cmdp.thresholds) / (high - low)[1:], 1 / (1 - con.gamma)

    def fresh():
        return np.full((q, S, A), H), np.full((q, S, A), H), np.full((q, S), H), np.zeros((S, A)), np.zeros(q - 1)

    (Q, hats, V, N, total), Z, s, spent = fresh(), np.zeros(q - 1), first, []
    for t in range(rounds):
        if t and t % L == 0:
            Z = np.maximum(Z + rho + agent.tightening - total / L, 0.0)
            Q, hats, V, N, total = fresh()
        a = int(np.argmax(hats[0, s] + (Z / con.eta) @ hats[1:, s]))
        next_s = int(np.searchsorted(P[s, a].cumsum(), model[t], side="right"))
        gain = (high - cmdp.costs[:, s, a]) / (high - low)
        N[s, a] += 1
        alpha = (con.chi + 1) / (con.chi + N[s, a])
        b = con.kappa * np.sqrt((con.chi + 1) * con.iota / (con.chi + N[s, a]))
        Q[:, s, a] = (1 - alpha) * Q[:, s, a] + alpha * (gain + con.gamma * V[:, next_s] + b)
        if con.together:
            if (Q[:, s, a] <= hats[:, s, a]).all():
                hats[:, s, a] = Q[:, s, a]
        else:
            hats[:, s, a] = np.minimum(hats[:, s, a], Q[:, s, a])
        total += (1 - con.gamma) * hats[1:, s, a]
        V[:, s] = hats[:, s, int(np.argmax(hats[0, s] + (Z / con.eta) @ hats[1:, s]))]
        spent.append(cmdp.costs[:, s, a])
        s = next_s
    return Q, hats, V, Z, total, np.array(spent)


@pytest.mark.parametrize("limits", [0, 1, 2])
@pytest.mark.parametrize("together", [True, False])
def test_the_compiled_run_is_that_of_the_slow_loop(limits, together):
    cmdp = psconrl.load("garnet", states=4, actions=3, branching=3, constraints=max(limits, 1), slack=0.05, seed=7)
    if not limits:
        cmdp = psconrl.CMDP(cmdp.transition, cmdp.costs[:1])
    options = {"kappa": 0.03, "gamma": 0.8, "chi": 2.0, "eta": 1.5, "eps": 0.5, "frame": 70, "together": together}
    agent = make_agent("triple-qa", 4, 3, cmdp.thresholds, cmdp.costs, 1, 1000, **options)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5)))
    first = int(rng.choice(4, p=cmdp.initial))
    model = rng.random((4096, 1)).ravel()
    trace = simulate(cmdp, agent, 500, seed=5, checkpoints=500)
    Q, hats, V, Z, total, spent = reference(cmdp, agent, 500, model, first)
    np.testing.assert_allclose(trace.cumulative, spent.cumsum(axis=0), rtol=1e-12)
    for ours, slow in ((agent.estimates, Q), (agent.hats, hats), (agent.values, V), (agent.queues, Z)):
        np.testing.assert_allclose(ours, slow, rtol=1e-12)
    np.testing.assert_allclose(agent.totals, total, rtol=1e-12)
    assert (hats < 5.0).any()  # something was learned
    if limits:
        assert Z.any()


# Ways of playing


def test_three_ways_of_playing_have_the_same_bits():
    by_model, by_hand, by_episodes = rover_agent(), rover_agent(), rover_agent()
    run = Simulation(ROVER, by_model, seed=3)
    first = run.state
    trace = run.run(1000, checkpoints=1000)
    by_model.finish()
    moves = np.diff(trace.cumulative, axis=0, prepend=0.0)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(3)))
    rng.choice(16, p=ROVER.initial)
    P, state = ROVER.transition.toarray().reshape(16, 4, 16).cumsum(axis=2), first
    luck = rng.random((4096, 1)).ravel()
    for t in range(1000):
        action = by_hand.act(state)
        episode = by_episodes.begin(state)
        assert episode.max_steps == 1
        assert episode.policy[state, action] == 1.0
        following = int(np.searchsorted(P[state, action], luck[t], side="right"))
        costs = ROVER.costs[:, state, action]
        np.testing.assert_allclose(costs, moves[t], atol=1e-9)
        by_hand.observe(action, following, costs)
        record = Record.empty(by_episodes.counts)
        record.step(state, action, following, costs)
        by_episodes.end(record)
        state = following
    by_hand.finish()
    for other in (by_hand, by_episodes):
        for name in ("estimates", "hats", "values", "frame_visits", "totals", "queues"):
            assert getattr(other, name).tolist() == getattr(by_model, name).tolist()
        assert other.rounds == by_model.rounds == 1000


def test_a_gymnasium_environment_is_played_as_well():
    agent = rover_agent()
    trace = simulate(CMDPEnv(ROVER), agent, 500, seed=0)
    assert trace.horizon == agent.rounds + agent._play.record.steps == 500
    assert agent.queues.any() or (agent.hats < agent.hats.max()).any()


def test_an_agent_that_is_saved_while_it_awaits_an_outcome_continues_bit_for_bit(tmp_path):
    agent = rover_agent()
    simulate(ROVER, agent, 130, seed=0)
    action = agent.act(0)
    agent.save(tmp_path / "agent.npz")
    again = load_agent(tmp_path / "agent.npz")
    for one in (agent, again):
        one.observe(action, 1, ROVER.costs[:, 0, action])
    runs = [simulate(ROVER, one, 500, seed=8) for one in (agent, again)]
    assert runs[0].cumulative.tolist() == runs[1].cumulative.tolist()
    assert agent.hats.tolist() == again.hats.tolist()


def test_new_limits_hold_from_the_end_of_the_frame_on():
    agent = rover_agent()
    simulate(ROVER, agent, 50, seed=0)
    agent.set_thresholds([0.6])
    assert agent.wanted == pytest.approx([0.4])
    assert agent._open_block() == 40 - 10  # the frame goes on


def test_there_is_nothing_to_plan_in_the_background():
    one, two = rover_agent(), rover_agent()
    two.plan_in_background()
    traces = [simulate(CMDPEnv(ROVER), agent, 200, seed=0) for agent in (one, two)]
    assert traces[0].cumulative.tolist() == traces[1].cumulative.tolist()
    assert set(traces[1].episodes.kind) == {"learning"}


def test_events_keep_the_policy_of_their_frame():
    agent, events = rover_agent(), []
    agent.watch(lambda event: events.append((event.policy, event.policy.copy())))
    simulate(ROVER, agent, 400, seed=0)
    assert len(events) == 10
    assert all((kept == then).all() for kept, then in events)
    assert any((then[:, 0] == 0.0).any() for _, then in events)


def test_a_damaged_frame_is_refused():
    agent = rover_agent()
    simulate(ROVER, agent, 50, seed=0)
    state = agent.state() | {"played": 3}
    with pytest.raises(AgentError, match="played must be the sum of frame_visits"):
        rover_agent().restore(state)


def test_with_the_constants_of_the_paper_nothing_is_learned_in_a_million_rounds():
    """eps = 77 where gains are at most 1, and bonuses above 1: the hats never fall, the first action is played."""
    agent = make_agent("triple-qa", 16, 4, ROVER.thresholds, ROVER.costs, 0, 1_000_000)
    assert agent.tightening == pytest.approx(76.6, abs=0.1)
    assert triple_qa.bonus(10_000, agent.kappa, agent.constants.chi, agent.constants.iota) > 1.0
    with pytest.warns(AdviceWarning, match=r"its bonus is still 1.06 at the end of a frame.* Lower kappa below 0.94"):
        simulate(ROVER, agent, 20_000, seed=0)
    assert (agent.hats == agent.hats.max()).all()
    assert (agent.policy[:, 0] == 1.0).all()


def test_with_lively_constants_it_learns():
    """The optimum is .775 under a limit of .2; a uniform policy has .975. Twelve other seeds: the same run."""
    options = {"kappa": 0.02, "eps": 0.0, "together": False}
    agent = make_agent("triple-qa", 16, 4, ROVER.thresholds, ROVER.costs, 0, 1_000_000, **options)
    averages = simulate(ROVER, agent, 1_000_000, seed=0).cumulative[-1] / 1_000_000
    assert averages[0] < 0.92
    assert averages[1] < 0.2


def test_the_compiled_round_is_a_function_of_its_arrays():
    agent = TripleQA(2, 2, [0.5], horizon=50)
    agent.learner.learn(1, 0, 0, np.array([0.5, 0.5]))
    assert agent.frame_visits.tolist() == [[0, 0], [1, 0]]
