"""Deterministic policies and threshold rules, against exhaustive search."""

import itertools
import re

import numpy as np
import pytest

from models import random_cmdp
from psconrl import (
    CMDP,
    ConfigError,
    InfeasibleError,
    SolverError,
    best_deterministic,
    evaluate,
    load,
    plan,
    threshold_rule,
)
from psconrl.answers import deterministic
from psconrl.answers.deterministic import SearchProgress, is_within
from psconrl.answers.threshold_rule import best_share, is_threshold_rule, state_order, why_unordered


def deterministic_policies(cmdp):
    return itertools.product(*(np.flatnonzero(row) for row in cmdp.available))


def by_brute_force(cmdp, fits=lambda policy: True):
    """The least average objective of the feasible deterministic policies, or inf."""
    values = [np.inf]
    for policy in deterministic_policies(cmdp):
        exact = evaluate(cmdp, list(policy))
        if fits(policy) and is_within(cmdp, exact):
            values.append(float(exact.costs[0]))
    return min(values)


@pytest.mark.fuzz
@pytest.mark.part(4)
@pytest.mark.parametrize("kind", ["dense", "near_deterministic", "tied", "degenerate", "masked", "sparse", "periodic"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [1, 2])
def test_no_deterministic_policy_is_better(kind, seed, m):
    cmdp = random_cmdp(kind, 5, 3, m, seed=100 * seed + m, slack=0.02)
    best = plan(cmdp)
    if best.infeasibility is not None:
        return
    least = by_brute_force(cmdp)
    if not np.isfinite(least):
        with pytest.raises(InfeasibleError, match="no deterministic policy meets the thresholds"):
            best_deterministic(cmdp, best)
        return
    simple = best_deterministic(cmdp, best)
    assert simple.costs[0] == pytest.approx(least, abs=1e-9)
    assert simple.is_proven
    assert simple.price == pytest.approx(least - best.certificate.lower, abs=1e-9)
    assert simple.price >= -1e-9
    assert np.array_equal(simple.policy.argmax(axis=1), simple.actions)
    assert is_within(cmdp, evaluate(cmdp, simple.policy))


def test_the_brute_force_is_not_trivial():
    """Some of the models above have a randomised optimum, and some have no feasible deterministic policy."""
    prices = []
    for seed in range(4):
        cmdp = random_cmdp("dense", 5, 3, 2, seed=100 * seed + 2, slack=0.02)
        best = plan(cmdp)
        if best.infeasibility is None:
            prices.append(by_brute_force(cmdp) - best.costs[0])
    assert max(prices) > 1e-3


def test_the_price_of_a_deterministic_rover():
    """Between 0.775, the randomised optimum, and 0.875, the safe route (the only one without risk)."""
    simple = best_deterministic(load("marsrover-4x4"))
    assert simple.value == pytest.approx(0.875)
    assert simple.price == pytest.approx(0.1)
    assert repr(simple) == "SimplePolicy(value=0.875, price=0.1, the best)"


def test_few_plans_bound_the_price_from_below():
    cmdp = load("queue")
    exact = best_deterministic(cmdp)
    early = best_deterministic(cmdp, most_plans=5)
    assert exact.is_proven
    assert not early.is_proven
    assert early.least_price <= exact.price + 1e-12 <= early.price + 2e-12
    assert "least possible" in repr(early)
    with pytest.raises(SolverError, match="no deterministic policy was found in 1 plans; allow more with most_plans"):
        best_deterministic(CMDP([[[1], [1], [1]]], [[[0, 1, 5]], [[2, 0, 1]], [[0, 2, 1]]], [1, 1]), most_plans=1)


class Stop:
    """Records the progress of a search, and interrupts it after some calls."""

    def __init__(self, after):
        self.seen, self.after = [], after

    def __call__(self, progress):
        self.seen.append(progress)
        if len(self.seen) == self.after:
            raise KeyboardInterrupt


def test_the_progress_of_the_search_for_a_deterministic_policy():
    cmdp = load("queue")
    watch = Stop(after=np.inf)
    found = best_deterministic(cmdp, progress=watch)
    assert found.value == best_deterministic(cmdp).value
    assert [p.plans for p in watch.seen] == list(range(1, len(watch.seen) + 1))
    values, gaps = ([getattr(p, key) for p in watch.seen if p.value == p.value] for key in ("value", "gap"))
    assert values == sorted(values)
    assert values[-1] == found.value
    assert gaps == sorted(gaps, reverse=True)
    assert re.fullmatch(r"\d+ plans, \d+ s: value 0\.366\d+, gap \d\.\de-0\d", str(watch.seen[-1]))
    assert str(SearchProgress(1, np.nan, np.inf, 2.4)) == "1 plan, 2 s: no policy yet"
    with pytest.raises(ConfigError, match="progress must be a function, such as print; got True"):
        best_deterministic(cmdp, progress=True)


@pytest.mark.parametrize("after", [2, 6, 20])
def test_an_interrupted_search_returns_the_best_policy_so_far_with_a_valid_bound(after):
    """The branch that was being explored counts in the bound."""
    cmdp = load("queue")
    exact, watch = best_deterministic(cmdp), Stop(after)
    early = best_deterministic(cmdp, progress=watch)
    assert len(watch.seen) == after
    assert early.value == watch.seen[-1].value
    assert early.price - early.least_price == pytest.approx(watch.seen[-1].gap)
    assert not early.is_proven
    assert early.least_price <= exact.price + 1e-12 <= early.price + 2e-12


def test_an_interrupted_search_without_a_policy_or_without_progress_ends_the_program(monkeypatch):
    none_yet = CMDP([[[1], [1], [1]]], [[[0, 1, 5]], [[2, 0, 1]], [[0, 2, 1]]], [1, 1])
    with pytest.raises(KeyboardInterrupt):
        best_deterministic(none_yet, progress=Stop(after=1))

    def stop(*_, **__):
        raise KeyboardInterrupt

    cmdp = load("queue")
    best = plan(cmdp)
    monkeypatch.setattr(deterministic, "plan_unexplained", stop)
    with pytest.raises(KeyboardInterrupt):
        best_deterministic(cmdp, best)
    assert best_deterministic(cmdp, best, progress=str).value < best.value


def test_an_interrupted_search_for_a_rule_returns_the_best_so_far():
    cmdp = chain_model(3)
    watch = Stop(after=np.inf)
    whole = threshold_rule(cmdp, progress=watch)
    assert whole.price > 1e-4  # not the plan
    assert watch.seen[6] == "7 threshold rules evaluated"
    early = threshold_rule(cmdp, progress=Stop(after=len(watch.seen) // 2))
    assert early is None or early.costs[0] >= whole.costs[0] - 1e-12


def test_bad_options():
    with pytest.raises(ConfigError, match="most_plans must be a whole number from 1; got 0"):
        best_deterministic(load("box"), most_plans=0)
    with pytest.raises(ConfigError, match="order must hold every state from 0 to 5 once"):
        threshold_rule(load("riverswim"), [0, 1, 2, 3, 4, 4])


def chain_model(seed, m=1, S=5, A=2):
    """A birth and death chain with random costs: its optimal policies are sometimes threshold rules."""
    rng = np.random.default_rng(seed)
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            up, down = 0.2 + 0.5 * a / (A - 1), 0.3
            P[s, a, min(s + 1, S - 1)] += up
            P[s, a, max(s - 1, 0)] += down
            P[s, a, s] += 1 - up - down
    costs = rng.random((m + 1, S, A))
    model = CMDP(P, costs, np.full(m, 2.0))
    uniform = evaluate(model, np.full((S, A), 1 / A)).costs[1:]
    return model.with_thresholds(uniform)


def is_rule(policy):
    runs = [a for a, _ in itertools.groupby(policy)]
    return len(runs) == len(set(runs))


@pytest.mark.parametrize("seed", range(12))
def test_no_threshold_rule_of_two_actions_is_better(seed):
    """All rules, and all mixtures of two that differ in one state, as the search may randomise in one state."""
    cmdp = chain_model(seed)
    best = plan(cmdp)
    rules = [p for p in deterministic_policies(cmdp) if is_rule(p)]
    costs = {p: evaluate(cmdp, list(p)).costs for p in rules}
    least = by_brute_force(cmdp, is_rule)
    for p, q in itertools.permutations(rules, 2):
        if sum(a != b for a, b in zip(p, q, strict=True)) == 1:
            share = best_share(costs[p], costs[q], cmdp.thresholds)
            if share is not None:
                least = min(least, (1 - share) * costs[p][0] + share * costs[q][0])
    rule = threshold_rule(cmdp, best=best)
    if rule is None:
        assert not np.isfinite(least)
        return
    assert rule.costs[0] <= least + 1e-9
    assert rule.costs[0] >= best.costs[0] - 1e-9
    assert is_within(cmdp, evaluate(cmdp, rule.policy))
    assert is_threshold_rule(rule, rule.order)
    assert rule.price == pytest.approx(rule.costs[0] - best.costs[0], abs=1e-9)


def test_some_of_these_rules_are_found_by_the_search_and_some_are_the_plan():
    prices = [rule.price for seed in range(12) if (rule := threshold_rule(chain_model(seed))) is not None]
    assert min(prices) < 1e-9 < 1e-4 < max(prices)


def test_what_is_a_threshold_rule():
    class Played:
        def __init__(self, rows):
            self.occupancy = np.array(rows, float)

    order = np.arange(4)
    assert is_threshold_rule(Played([[1, 0], [1, 0], [1, 1], [0, 1]]), order)  # randomised at the switch
    assert is_threshold_rule(Played([[1, 0], [0, 0], [1, 0], [0, 1]]), order)  # unvisited states do not count
    assert not is_threshold_rule(Played([[1, 0], [0, 1], [1, 0], [0, 1]]), order)
    assert not is_threshold_rule(Played([[1, 0], [1, 1], [1, 0], [0, 1]]), order)  # randomised elsewhere
    assert not is_threshold_rule(Played([[1, 0], [1, 1], [1, 0], [1, 0]]), order)  # of an action played nowhere else
    assert is_threshold_rule(Played([[1, 0], [0, 1], [1, 0], [0, 1]]), np.array([0, 2, 1, 3]))


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["2 left", "0 left", "1 left"], [1, 2, 0]),
        (["a", "b", "c"], None),
        (None, [0, 1, 2]),
        (["0 of 5", "1 of 5", "2 of 5"], [0, 1, 2]),  # of the numbers only one varies
        (["0 and 1", "1 and 0", "1 and 1"], None),
    ],
)
def test_the_order_of_states(names, order):
    model = CMDP(np.full((3, 1, 3), 1 / 3), np.zeros((1, 3, 1)), state_names=names)
    found = state_order(model)
    assert found is None if order is None else found.tolist() == order


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["a", "b", "c"], "'a' and 'b' do not differ in a number alone"),
        (["place 0", "place 1", "end"], "'place 0' and 'end' do not differ in a number alone"),
        (["0 of 5", "0.0 of 5", "2 of 5"], "'0 of 5' and '2 of 5' do not differ in a number alone"),
        (["0 and 1", "1 and 0", "1 and 1"], "names such as '0 and 1' differ in 2 numbers"),
    ],
)
def test_why_states_have_no_order(names, why):
    model = CMDP(np.full((3, 1, 3), 1 / 3), np.zeros((1, 3, 1)), state_names=names)
    assert state_order(model) is None
    assert why_unordered(model) == f"the states have no order: {why}"


def test_a_rule_in_words():
    rule = threshold_rule(load("queue"))
    assert rule.price == pytest.approx(0, abs=1e-9)
    assert str(rule) == (
        "0 waiting: speed 0 open; 1 waiting: speed 0 open 78.19%, speed 1 open 21.81%; 2 waiting to 3 waiting: speed 1 "
        "open; 4 waiting: speed 1 open 80.57%, speed 1 closed 19.43%; 5 waiting: speed 1 closed"
    )
    where, share, actions = list(rule.intervals())[2]
    assert (where, actions) == ("2 waiting to 3 waiting", "speed 1 open")
    assert share == pytest.approx(rule.occupancy[[2, 3]].sum())


def test_a_plan_that_breaks_its_limits_is_no_rule():
    """The bound needs a mixture of two classes; the plan's policy, one action per state, is infeasible."""
    cmdp = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 5], [1, 5]], [[1, 5], [0, 5]]], [0.5])
    best = plan(cmdp)
    assert best.mixture is not None
    rule = threshold_rule(cmdp, best=best)
    assert rule is None or is_within(cmdp, evaluate(cmdp, rule.policy))
    simple = best_deterministic(cmdp, best)
    assert is_within(cmdp, evaluate(cmdp, simple.policy))


@pytest.mark.parametrize("seed", range(8))
def test_of_three_actions_all_rules_are_tried(seed):
    cmdp = chain_model(seed, S=4, A=3)
    least = by_brute_force(cmdp, is_rule)
    rule = threshold_rule(cmdp)
    assert (rule is None and not np.isfinite(least)) or rule.costs[0] <= least + 1e-9


@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_what_is_proven_does_not_depend_on_the_unit_of_the_objective(scale):
    queue = load("queue")
    scaled = CMDP(queue.transition, queue.costs * np.array([scale, 1, 1])[:, None, None], queue.thresholds)
    for plans in (5, 200):
        simple, other = best_deterministic(queue, most_plans=plans), best_deterministic(scaled, most_plans=plans)
        assert simple.is_proven == other.is_proven == (plans == 200)
        assert other.price == pytest.approx(scale * simple.price, rel=1e-6)
