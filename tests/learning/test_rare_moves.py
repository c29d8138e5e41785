"""Moves between places worth staying at, by closed forms, and what the safe agent makes of them."""

import math

import numpy as np
import pytest

import psconrl
from psconrl.agents import known_baseline, make
from psconrl.base.arrays import Floats
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.safe.baseline import safest_policy
from psconrl.learning.safe.certificates import WITHIN, Certifier
from psconrl.learning.safe.certified_plans import CertifiedPlans
from psconrl.learning.safe.confidence_sets import Occasion, View, view_of_rows
from psconrl.learning.safe.rare_moves import MOST_MOVES, RareMoves, coming_back, towards_untried
from psconrl.markov.evaluation import evaluate_policy
from psconrl.planning.drafts import Drafts
from psconrl.planning.robust.pessimism import worst_average


def view_with(model: psconrl.CMDP, low: Floats, high: Floats, tries: Floats | None = None) -> View:
    """Return a view of a model with bounds (S*A, S) on all transitions."""
    S, A = model.n_states, model.n_actions
    pointers = np.arange(S * A + 1, dtype=np.int32) * S
    successors = np.tile(np.arange(S, dtype=np.int32), S * A)
    sets = (
        pointers,
        successors,
        np.ascontiguousarray(low.ravel()),
        np.ascontiguousarray(high.ravel()),
        np.zeros(S * A),
    )
    everywhere, pairs = np.ones(S, dtype=bool), np.ones((S, A), dtype=bool)
    counted = np.full((S, A), 1000) if tries is None else tries
    limited = model.costs[1:]
    return View(
        sets, limited, (None,) * len(limited), limited, limited, pairs, everywhere, everywhere, model, counted,
        int(counted.sum()), model,
    )  # fmt: skip


def islands_with(b: float) -> View:
    """Return a view of the islands in which staying in the second state may lead to the first with probability b."""
    model = psconrl.load("islands")
    low = model.transition.array.copy()
    high = low.copy()
    low[2], high[2] = [0.0, 1.0 - b], [b, 1.0]
    return view_with(model, low, high, np.full((2, 2), 10**7))


@pytest.mark.parametrize(("e", "b"), [(0.1, 0.01), (0.02, 0.001), (0.5, 0.1)])
def test_the_certificate_of_the_islands_is_that_of_the_docstring(e, b):
    view, f = islands_with(b), (e - b) / (1 + 2 * e - b)
    policy = np.array([[1 - e, e], [1 - f, f]])
    found = worst_average(policy, view.costs[0], view.distributions, start=np.array([0.5 / e, 0.0]))
    assert found.bound == pytest.approx(0.5, abs=1e-8)
    assert evaluate_policy(view.model, policy).costs[0] == pytest.approx(e * (1 + f) / (e + f))


@pytest.mark.parametrize("b", [1e-2, 1e-3, 1e-4])
def test_the_search_for_a_share_loses_little_more_than_the_best_one(b):
    """The least objective over all e, by a fine grid, is 1/2 + sqrt(b) up to higher orders."""
    view = islands_with(b)
    e = np.geomspace(b, 1.0, 100_000)[1:]
    f = (e - b) / (1 + 2 * e - b)
    least = float((e * (1 + f) / (e + f)).min()) - 0.5
    assert least == pytest.approx(math.sqrt(b), rel=3.0 * math.sqrt(b) + 0.01)
    certifier = Certifier(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5]), np.array([0.0]), np.array([1.0]))
    moves, lost = RareMoves(1), math.inf
    for _ in range(40):
        for found in moves.policies(certifier, view, Drafts(view.model), view.model.costs[0]):
            assert certifier.holds(found)
            exact = evaluate_policy(view.model, found.policy).costs
            assert exact[1] <= 0.5
            assert found.value == pytest.approx(exact[0])
            lost = exact[0] - 0.5
    assert least - 1e-9 <= lost <= 1.2 * least


def test_no_share_is_smaller_than_the_cube_root_of_the_rounds_or_larger_than_a_half():
    view = islands_with(1e-6)._replace(rounds=1000)
    certifier = Certifier(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5]), np.array([0.0]), np.array([1.0]))
    moves, shares = RareMoves(1), []
    for _ in range(30):
        list(moves.policies(certifier, view, Drafts(view.model), view.model.costs[0]))
        shares.append(moves.share)
    assert min(shares) == pytest.approx(0.1)
    assert max(shares) <= MOST_MOVES


def test_exploration_counts_the_span_where_data_prove_less():
    """Two banks; a return of probability 0.02 is only known to be above 0.001, but the baseline has a span of 50."""
    P = np.array([[[1.0, 0.0], [0.98, 0.02]], [[0.0, 1.0], [0.02, 0.98]]])
    model = psconrl.CMDP(P, [[[0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]], [0.3])
    low, high, b, up = P.reshape(4, 2).copy(), P.reshape(4, 2).copy(), 1e-4, 0.05
    low[1], high[1] = [0.9, 0.001], [0.999, 0.1]
    low[2], high[2] = [0.0, 1.0 - b], [b, 1.0]
    low[3], high[3] = [0.0, 1.0 - up], [up, 1.0]
    tries = np.array([[1000, 10], [1000, 10]])
    view = view_with(model, low, high, tries)
    certifier = Certifier(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.3]), np.array([0.0]), np.array([50.0]))
    found = coming_back(certifier, view)
    assert found is not None
    assert found.relying.tolist() == [True, False]
    assert found.cases[0].bound == pytest.approx(50.0 * b, rel=1e-6)
    share = certifier.exploring_share(found, view, np.array([0, 1]))
    assert share[1] == pytest.approx(WITHIN * (0.3 - 50 * b) / (1 + 50 * up - 50 * b), rel=1e-6)
    assert share[0] == pytest.approx(WITHIN * 0.3 / (1 + 50), rel=1e-6)  # nothing is known of the span by state


def test_the_baseline_is_not_certified_where_nothing_is_known():
    view = islands_with(0.1)._replace(own=np.zeros(2, dtype=bool))
    certifier = Certifier(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.5]), np.array([0.0]), np.array([1.0]))
    assert coming_back(certifier, view) is None


def test_exploration_leads_to_the_pair_that_was_tried_least():
    """A line of five states: every pair was tried 100 times, except for one at the far end."""
    P = np.zeros((5, 2, 5))
    for s in range(5):
        P[s, 0, max(s - 1, 0)] = P[s, 1, min(s + 1, 4)] = 1.0
    model = psconrl.CMDP(P, np.zeros((1, 5, 2)))
    tries = np.full((5, 2), 100)
    tries[4, 0] = 0
    assert towards_untried(view_with(model, P.reshape(10, 5), P.reshape(10, 5), tries)).tolist() == [1, 1, 1, 1, 0]


def test_returns_to_the_baseline_take_a_number_of_rounds_to_the_power_of_two_thirds():
    moves, t, returned = RareMoves(0), 1, 0
    while t < 30_000:
        length = math.ceil(math.sqrt(t))
        returned += length if moves.returns(t) else 0
        t += length
        assert t ** (2 / 3) - length <= returned <= t ** (2 / 3) + length
    moves.settle(t)
    assert moves.returned == returned


def test_what_is_kept_about_moves_can_be_saved():
    moves, other = RareMoves(2), RareMoves(2)
    moves.split, moves.share, moves.rising, moves.margins = True, 0.2, True, np.array([0.1, 0.2])
    moves.returned, moves.return_began = 7, 100
    other.restore(moves.state())
    assert {name: str(value) for name, value in vars(other).items()} == {k: str(v) for k, v in vars(moves).items()}
    plans = CertifiedPlans(np.ones((2, 1)), 2)
    plans.restore({"biases": np.zeros((2, 2)), "prices": np.zeros(2), "potential": np.zeros(2)})  # an older file
    assert plans.moves.share == MOST_MOVES


def test_an_action_that_explores_has_its_own_row_and_cost_where_plans_rely_on_the_baseline():
    """State 1 is unknown: plans have only the baseline there, but exploration takes action 1, which leads to 0."""
    counts, record = Counts(2, 2, 2), Record(2, 2, 2)
    for _ in range(200):
        record.step(0, 0, 0, np.zeros(2))
    record.step(0, 1, 1, np.zeros(2))
    record.step(1, 1, 0, np.zeros(2))
    counts.add(record)
    costs = np.array([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    occasion = Occasion(0, np.array([0.5]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0]))
    view = view_of_rows(counts, math.log(1000.0), costs, costs[1:], occasion)
    assert view.known.tolist() == [True, False]
    assert view.rounds == 202
    assert not view.model.available[1, 1]
    np.testing.assert_array_equal(view.whole.costs, costs)
    alternating = evaluate_policy(view.whole, np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert alternating.costs[0] == pytest.approx(3.0)


def test_of_the_safest_policies_one_is_chosen_that_does_not_move_between_classes():
    """Staying in state 0 costs nothing, in state 1 one of the second limit, of which 0.2 would do no harm."""
    P = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    model = psconrl.CMDP(P, [[[1, 1], [0, 1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]], [0.2, 0.4])
    given = known_baseline(model)
    assert evaluate_policy(model, safest_policy(model)).gains[1:].max() == pytest.approx(0.0, abs=1e-12)
    assert given["slack"] == pytest.approx([0.2, 0.4])
    assert (given["span"] <= 1.0).all()


@pytest.mark.parametrize("env", ["islands", "corridor"])
def test_policies_that_move_between_places_meet_the_constraints(env):
    """False alarms: at most 2 delta = 0.002 for each of two runs."""
    model = psconrl.load(env)
    for seed in range(2):
        sizes = (model.n_states, model.n_actions, model.thresholds, model.costs)
        agent = make("safe", *sizes, seed=seed, delta=0.001, **known_baseline(model))
        trace = psconrl.simulate(model, agent, 6_000, seed=seed, evaluate_policies=True)
        assert all((costs[1:] <= model.thresholds).all() for costs in trace.policies.costs)
        assert (agent.excess <= agent.allowance).all()
        assert trace.episodes.kind[-1] == "certified"
        # The bounds of the sets after about 3,000 visits would allow a loss of about 0.08 on the islands.
        assert trace.policies.costs[-1][0] <= psconrl.plan(model).certificate.lower + 0.2
