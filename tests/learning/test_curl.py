"""PS-CURL and UC-CURL: thresholds tightened by a margin, and the policy played where they cannot be met."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, simulate
from psconrl.agents import Dirichlet, Doubling, Endless, LeastExcess, PSConRL, Tightened
from psconrl.learning.episode_planner import EpisodePlanner
from psconrl.learning.parts.tightened import MARGIN_TRIES
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.registry import make_agent
from psconrl.model.transition import Transition

ROVER = psconrl.load("marsrover-4x4")


def booked(K, costs, limits):
    """A ledger that has seen these costs (m, pairs), each once."""
    part, costs = Tightened(K).made_for(1, len(costs[0]), len(limits)), np.array(costs)
    record = Record.empty(Counts(1, costs.shape[1], len(limits) + 1))
    for a in range(costs.shape[1]):
        record.step(0, a, 0, np.array([9.0, *costs[:, a]]))
    part.enter(record, np.array(limits))
    return part


def test_the_margin_is_that_of_the_paper_in_ranges_of_the_cost():
    part = booked(0.5, [[0.0, 1.0], [3.0, 5.0]], [0.2, 4.0])
    for t in (2, 100, 12_345):
        rate = 0.5 * math.sqrt(math.log(t) / t)
        assert part.margin(t) == pytest.approx([rate, 2.0 * rate], rel=1e-14)
    assert booked(1.0, [[0.0, 0.5]], [0.9]).margin(8) == pytest.approx([0.9 * math.sqrt(math.log(8) / 8)], rel=1e-14)


def test_there_is_no_margin_before_anything_was_seen():
    part = booked(0.5, [[0.0, 1.0]], [0.2])
    assert part.margin(0).tolist() == part.margin(1).tolist() == [0.0]
    assert list(part.targets(np.array([0.2]), 1)) == []
    assert list(Tightened(0.0).made_for(1, 1, 1).targets(np.array([0.2]), 50)) == []


def test_smaller_margins_are_tried_by_halves():
    limits = np.array([0.2, 4.0])
    part = booked(0.5, [[0.0, 1.0], [3.0, 5.0]], limits)
    targets = np.array(list(part.targets(limits, 100)))
    assert MARGIN_TRIES == len(targets) == 6
    rate = 0.5 * math.sqrt(math.log(100) / 100)
    shares = 0.5 ** np.arange(6)
    np.testing.assert_allclose(limits - targets, np.outer(shares, [rate, 2 * rate]), rtol=1e-12)


def one_state(values):
    """A planner of one state whose actions have these costs (m+1, A)."""
    costs = np.array(values, dtype=float)[:, None, :]
    return EpisodePlanner(1, costs.shape[2]), Transition.of(np.ones((costs.shape[2], 1))), costs


def test_the_least_excess_is_that_of_the_best_mixture():
    """Two actions with constrained costs (1, 0) and (0, 1): half of each minimises the largest excess over (.2, .2)."""
    planner, P, costs = one_state([[0.0, 4.0], [1.0, 0.0], [0.0, 1.0]])
    nearest = planner.least_excess(P, costs, np.array([0.2, 0.2]), 0)
    assert nearest.policy[0] == pytest.approx([0.5, 0.5], abs=1e-9)
    assert nearest.value == pytest.approx(2.0, abs=1e-9)
    skewed = planner.least_excess(P, costs, np.array([0.4, 0.2]), 0)
    assert skewed.policy[0] == pytest.approx([0.6, 0.4], abs=1e-9)


def test_the_least_excess_from_where_one_is_if_the_sample_falls_apart():
    P = Transition.of(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    costs = np.array([[[0.0, 0.0], [0.0, 0.0]], [[0.9, 0.7], [0.3, 0.4]]])
    nearest = EpisodePlanner(2, 2).least_excess(P, costs, np.array([0.1]), 0)
    assert nearest.policy[0].tolist() == [0.0, 1.0]


def test_ps_curl_is_psconrl_with_other_parts():
    parts = {"belief": Dirichlet(), "schedule": Doubling(), "fallback": LeastExcess(), "planning_horizon": Endless()}
    one = make_agent("ps-curl", 16, 4, ROVER.thresholds, ROVER.costs, seed=3, K=0.7)
    two = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, ledger=Tightened(0.7), seed=3, **parts)
    traces = [simulate(ROVER, agent, 1000, seed=1) for agent in (one, two)]
    assert traces[0].cumulative.tolist() == traces[1].cumulative.tolist()


@pytest.mark.parametrize("name", ["ps-curl", "uc-curl"])
def test_what_is_played_is_within_the_tightened_limit(name):
    """With practically known transitions, plans meet the threshold less the margin, and exactly that."""
    costs = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    agent = make_agent(name, 1, 2, [0.5], costs, seed=0, K=1.0)
    simulate(CMDP(np.ones((2, 1)), costs, [0.5]), agent, 200, seed=0)
    agent.finish()
    episode, eps = agent.begin(0), math.sqrt(math.log(200) / 200)
    assert episode.kind == "tightened"
    assert episode.policy[0, 1] == pytest.approx(0.5 - eps, abs=1e-6)
    assert episode.value == pytest.approx(0.5 + eps, abs=1e-6)


@pytest.mark.parametrize("name", ["ps-curl", "uc-curl"])
def test_half_a_margin_where_there_is_no_room_for_more(name):
    """The least that can be spent is .4: of a margin of .163 below .5 a half fits, .0814."""
    costs = np.array([[[1.0, 0.0]], [[0.4, 1.4]]])
    agent = make_agent(name, 1, 2, [0.5], costs, seed=0, K=1.0)
    simulate(CMDP(np.ones((2, 1)), costs, [0.5]), agent, 200, seed=0)
    agent.finish()
    eps = math.sqrt(math.log(200) / 200)
    assert 0.4 + agent.begin(0).policy[0, 1] == pytest.approx(0.5 - eps / 2, abs=1e-6)


@pytest.mark.parametrize("name", ["ps-curl", "uc-curl"])
def test_the_least_excess_where_no_limit_can_be_kept(name):
    costs = np.array([[[1.0, 0.0]], [[0.4, 1.0]]])
    agent = make_agent(name, 1, 2, [0.3], costs, seed=0)
    trace = simulate(CMDP(np.ones((2, 1)), costs, [0.3]), agent, 50, seed=0)
    assert set(trace.episodes.kind) == {"least excess"}
    assert trace.cumulative[-1, 1] == pytest.approx(0.4 * 50)


def test_the_log_term_of_uc_curl_has_the_rounds_so_far():
    agent = make_agent("uc-curl", 3, 2, [0.5], seed=0)
    assert agent._log_term(0.05) == pytest.approx(math.log(2 * 9 * 2 * 1 / 0.05))
    agent.rounds = 700
    assert agent._log_term(0.05) == pytest.approx(math.log(2 * 9 * 2 * 700 / 0.05))


@pytest.mark.parametrize("name", ["ps-curl", "uc-curl"])
def test_new_limits_begin_a_new_book(name):
    agent = make_agent(name, 16, 4, ROVER.thresholds, ROVER.costs, seed=0)
    simulate(ROVER, agent, 500, seed=0)
    assert agent.ledger.extremes.any()
    agent.finish()
    agent.set_thresholds([0.3])
    assert not agent.ledger.extremes.any()
