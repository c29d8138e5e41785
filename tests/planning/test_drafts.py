"""Drafts: plans without a proof are as good as plans with one, and never stay in one of the classes that they mix."""

import numpy as np
import pytest

import psconrl
from psconrl import CMDP
from psconrl.markov.evaluation import evaluate_policy
from psconrl.planning.drafts import DRAFT_SHARE, Drafts
from psconrl.planning.planner import plan_unexplained


@pytest.mark.parametrize(
    ("env", "options"), [("marsrover-4x4", {}), ("queue", {}), ("riverswim", {}), ("network", {"side": 6})]
)
def test_a_draft_has_the_averages_and_prices_of_a_plan(env, options):
    model = psconrl.load(env, **options)
    proven, draft = plan_unexplained(model), Drafts(model).plan(model.costs, model.thresholds)
    averages = evaluate_policy(model, draft.policy).costs
    assert draft.feasible
    assert averages == pytest.approx(proven.costs, abs=1e-8)
    assert draft.prices == pytest.approx(proven.multipliers, rel=1e-6, abs=1e-9)


def test_drafts_of_one_model_follow_its_costs_and_thresholds():
    model = psconrl.load("marsrover-4x4")
    drafts = Drafts(model)
    for factor, tau in ((1.0, 0.2), (2.0, 0.3), (1.0, 0.1)):
        draft = drafts.plan(factor * model.costs, np.array([factor * tau]))
        averages = evaluate_policy(model, draft.policy).costs
        assert averages == pytest.approx(plan_unexplained(model.with_thresholds([tau])).costs, abs=1e-9)


def test_if_nothing_is_feasible_the_excess_is_least_and_there_are_no_prices():
    model = psconrl.load("marsrover-4x4")
    draft = Drafts(model).plan(model.costs, np.array([-0.1]))
    least = plan_unexplained(CMDP(model.transition, model.costs[1:], initial=model.initial)).costs[0]
    assert not draft.feasible
    assert draft.prices is None
    assert not draft.potential.any()
    assert evaluate_policy(model, draft.policy).costs[1] == pytest.approx(least, abs=1e-9)


def two_places(move: float) -> CMDP:
    """Staying in state 0 costs 1 of the objective, in state 1 of the constrained cost; a move costs ``move`` more."""
    transition = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    return CMDP(transition, costs=[[[1, 1 + move], [0, move]], [[0, 0], [1, 1]]], thresholds=[0.5])


def test_classes_are_connected_at_a_loss_within_the_thresholds():
    """The bound of 0.5 is approached by ever rarer moves; the draft moves in about half of its connecting rounds."""
    model = two_places(move=1.0)
    draft = Drafts(model).plan(model.costs, model.thresholds)
    exact = evaluate_policy(model, draft.policy)
    assert len(exact.classes) == 1
    assert exact.costs == pytest.approx([0.5 + DRAFT_SHARE / 2, 0.5], abs=1e-9)


@pytest.mark.parametrize("share", [0.3, 0.03])
def test_a_draft_moves_in_the_share_of_rounds_that_is_asked_for(share):
    """Half of these rounds are moves, which cost 1 each."""
    model = two_places(move=1.0)
    draft = Drafts(model).plan(model.costs, model.thresholds, share)
    assert (draft.split, draft.tied) == (True, False)
    assert evaluate_policy(model, draft.policy).costs == pytest.approx([0.5 + share / 2, 0.5], abs=1e-9)


def test_tied_actions_that_leave_a_class_for_ever_do_not_connect():
    """On the islands, leaving the first state is tied with staying, but leaving the second one is not."""
    model = psconrl.load("islands")
    draft = Drafts(model).plan(model.costs, model.thresholds)
    assert (draft.split, draft.tied) == (True, False)
    assert evaluate_policy(model, draft.policy).costs == pytest.approx([0.5 + DRAFT_SHARE / 2, 0.5], abs=1e-9)


def test_between_classes_a_draft_only_moves_on():
    """A one-way ring of six places, two of which are worth staying at: in all others it goes on at once."""
    S = 6
    P = np.zeros((S, 2, S))
    P[np.arange(S), 0, np.arange(S)] = P[np.arange(S), 1, (np.arange(S) + 1) % S] = 1.0
    costs = np.stack([np.ones((S, 2)), np.full((S, 2), 0.5)])
    costs[:, 0, 0], costs[:, 3, 0] = (0.0, 1.0), (1.0, 0.0)
    model = CMDP(P, costs, [0.4])
    policy = Drafts(model).plan(model.costs, model.thresholds, 0.1).policy
    assert policy[[1, 2, 4, 5], 1].tolist() == [1.0] * 4
    assert 0.0 < policy[0, 1] < 0.5
    assert 0.0 < policy[3, 1] < 0.5


def test_tied_actions_connect_classes_without_loss():
    model = two_places(move=0.0)
    draft = Drafts(model).plan(model.costs, model.thresholds)
    assert (draft.split, draft.tied) == (True, True)
    exact = evaluate_policy(model, draft.policy)
    assert len(exact.classes) == 1
    assert exact.costs == pytest.approx([0.5, 0.5], abs=1e-9)


def test_states_out_of_reach_play_an_available_action():
    transition = [[[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]]]
    model = CMDP(transition, costs=[[[1, 1], [0, 0], [5, 5]]], available=[[1, 1], [1, 1], [0, 1]])
    draft = Drafts(model).plan(model.costs, model.thresholds)
    assert draft.policy[2].tolist() == [0.0, 1.0]
    assert draft.potential[2] == 0.0
    assert evaluate_policy(model, draft.policy).costs[0] == pytest.approx(0.0, abs=1e-12)


def test_models_of_several_end_components_are_planned_with_a_proof():
    """State 0 leads to two absorbing states that cost 1 and 2."""
    transition = [[[0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 1]]]
    model = CMDP(transition, costs=[[[0, 0], [1, 1], [2, 2]]])
    draft = Drafts(model).plan(model.costs, model.thresholds)
    assert draft.policy[0].tolist() == [1.0, 0.0]


def test_prices_without_an_upper_bound_are_left_out():
    """At the least possible average of the constrained cost, any large price is a shadow price."""
    model = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], costs=[[[1, 1], [0, 0]], [[0, 0], [1e-6, 1e-6]]], thresholds=[0])
    draft = Drafts(model).plan(np.array([[[1.0, 1], [0, 0]], [[0, 0], [1e-12, 1e-12]]]), model.thresholds)
    assert draft.feasible
    assert draft.prices is None
