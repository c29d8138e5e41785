"""The graph of a model and its distances, against brute force over subsets and policies, and closed forms."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl import CMDP, diameter, load
from psconrl.errors import SolverError
from psconrl.markov.hitting_times import hitting_times
from psconrl.markov.structure import (
    end_components,
    is_communicating,
    is_weakly_communicating,
    reachable,
)
from psconrl.markov.unichain import is_unichain

FORMS = pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "sparse"])
SEEDS = pytest.mark.parametrize("seed", range(40))


def build(transition, form=np.array, **options):
    P = np.asarray(transition, float)
    S, A = P.shape[:2]
    return CMDP(form(P.reshape(S * A, S)), np.zeros((1, S, A)), **options)


def deterministic(*successors, **options):
    """Row s holds the successors of state s, one an action."""
    return build(np.eye(len(successors))[np.array(successors)], **options)


def tiny(seed):
    """A random model with few edges and a mask, dense or sparse, so that every structure occurs."""
    rng = np.random.default_rng(seed)
    S, A = rng.integers(1, 6), rng.integers(1, 3)
    P = rng.random((S, A, S)) * (rng.random((S, A, S)) < rng.choice([0.0, 0.1, 0.3]))
    P[np.arange(S)[:, None], np.arange(A), rng.integers(0, S, size=(S, A))] += 0.3
    available = rng.random((S, A)) < 0.8
    available[:, 0] = True
    initial = np.eye(S)[rng.integers(S)]
    P /= P.sum(axis=2, keepdims=True)
    return build(P, rng.choice([np.array, csr_array]), available=available, initial=initial)


def distributions(cmdp):
    return cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, cmdp.n_states)


def paths(edges):
    """Which states lead to which, in any number of steps, none included."""
    n = len(edges)
    return np.linalg.matrix_power(np.eye(n, dtype=int) + edges, n) > 0


def policies(cmdp):
    return itertools.product(*(np.flatnonzero(mask) for mask in cmdp.available))


def chains(cmdp):
    states = np.arange(cmdp.n_states)
    return [distributions(cmdp)[states, np.array(actions)] for actions in policies(cmdp)]


def recurrent_classes(P):
    lead = paths(P > 0)
    return {frozenset(np.flatnonzero(lead[s])) for s in range(len(P)) if (lead[lead[s]][:, s]).all()}


def brute_end_components(cmdp):
    """All maximal sets of states with actions that stay inside, strongly connected under them."""
    P, S = distributions(cmdp), cmdp.n_states
    found = {}
    for size in range(S, 0, -1):
        for states in map(set, itertools.combinations(range(S), size)):
            outside = [s for s in range(S) if s not in states]
            stays = cmdp.available & ~(P[:, :, outside] > 0).any(axis=2)
            stays[outside] = False
            if any(states <= set(other) for other in found) or not stays[list(states)].any(axis=1).all():
                continue
            edges = ((P > 0) & stays[:, :, None]).any(axis=1)
            if paths(edges)[np.ix_(list(states), list(states))].all():
                found[tuple(sorted(states))] = np.flatnonzero(stays.ravel()).tolist()
    return found


def brute_hitting_times(cmdp, target):
    """The least over all policies; a policy's time is finite where the target cannot be missed."""
    best = np.full(cmdp.n_states, np.inf)
    for P in chains(cmdp):
        P[target] = np.eye(len(P))[target]
        lead = paths(P > 0)
        away = [s for s in range(len(P)) if s != target and lead[lead[s], target].all()]
        times = np.full(len(P), np.inf)
        times[target] = 0.0
        times[away] = np.linalg.solve(np.eye(len(away)) - P[np.ix_(away, away)], np.ones(len(away)))
        best = np.minimum(best, times)
    return best


@SEEDS
def test_reachable_states(seed):
    cmdp = tiny(seed)
    lead = paths((distributions(cmdp) > 0).any(axis=1))
    assert reachable(cmdp).tolist() == np.flatnonzero(lead[cmdp.initial > 0].any(axis=0)).tolist()


def test_reachable_from_an_initial_distribution():
    assert reachable(deterministic([1], [1], [3], [3], [0], initial=[0.5, 0, 0.5, 0, 0])).tolist() == [0, 1, 2, 3]


def test_many_actions_to_one_state_are_one_edge():
    """256 of them: a byte counter would wrap to zero."""
    for form in (np.array, csr_array):
        assert is_communicating(deterministic([1] * 256, [0] * 256, form=form))
        assert not is_communicating(deterministic([1] * 256, [1] * 256, form=form))


@SEEDS
def test_end_components(seed):
    cmdp = tiny(seed)
    ours = {tuple(part.states.tolist()): part.pairs.tolist() for part in end_components(cmdp)}
    assert ours == brute_end_components(cmdp)
    assert list(ours) == sorted(ours)  # by their first states, however a library numbers them


def test_end_components_without_some_states():
    ring = deterministic([1, 0], [2, 1], [0, 0])
    assert [part.states.tolist() for part in end_components(ring)] == [[0, 1, 2]]
    rest = end_components(ring, without=np.array([2]))
    assert [(part.states.tolist(), part.pairs.tolist()) for part in rest] == [([0], [1]), ([1], [3])]
    assert end_components(ring, without=np.arange(3)) == []


@SEEDS
def test_communicating_and_weakly_communicating(seed):
    cmdp = tiny(seed)
    assert is_communicating(cmdp) == paths((distributions(cmdp) > 0).any(axis=1)).all()
    assert is_weakly_communicating(cmdp) == (len(brute_end_components(cmdp)) == 1)


@pytest.mark.parametrize(
    ("cmdp", "communicating", "weakly"),
    [
        (deterministic([1, 0], [0, 1]), True, True),
        (deterministic([1, 1], [2, 2], [1, 2]), False, True),
        (deterministic([0, 1], [0, 1], [2, 2]), False, False),
        (deterministic([1, 0], [0, 1], available=[[1, 1], [0, 1]]), False, False),
        (deterministic([0]), True, True),
    ],
)
def test_what_communicates(cmdp, communicating, weakly):
    assert (is_communicating(cmdp), is_weakly_communicating(cmdp)) == (communicating, weakly)


def test_hundreds_of_actions_to_one_state_are_one_edge():
    ring = deterministic([1] * 256, [2] * 256, [0] * 256)  # 256 wraps to 0 in a byte
    assert is_communicating(ring)
    assert reachable(ring).tolist() == [0, 1, 2]
    assert diameter(ring) == 2


@SEEDS
def test_unichain_agrees_with_all_policies(seed):
    cmdp = tiny(seed)
    assert is_unichain(cmdp) == all(len(recurrent_classes(P)) == 1 for P in chains(cmdp))


def triangle(extra=0, n_actions=2):
    """Any two cycles of the triangle meet, but no state is on all of them; extra states only lead there."""
    rows = [[1, 2], [2, 0], [0, 1], *([[0, 1]] * extra)]
    return deterministic(*(np.resize(row, n_actions) for row in rows))


def test_unichain_that_only_trying_all_policies_proves():
    assert is_unichain(triangle()) is True


def test_unichain_is_left_open_where_it_would_take_too_long():
    assert is_unichain(triangle(extra=15)) is None
    assert is_unichain(triangle(extra=200, n_actions=40)) is None  # 40^203 policies: more than a float can count


@pytest.mark.parametrize(
    ("name", "unichain", "distance"),
    [("marsrover-4x4", False, 6), ("marsrover-8x8", False, 14), ("box", False, 22), ("counterexample", True, 1 / 0.9)],
)
def test_the_built_in_environments(name, unichain, distance):
    cmdp = load(name)
    sparse = CMDP(cmdp.transition.csr(), cmdp.costs, cmdp.thresholds)
    for twin in (cmdp, sparse):
        assert is_communicating(twin)
        assert is_unichain(twin) is unichain
        assert diameter(twin) == pytest.approx(distance, rel=1e-14)


@SEEDS
def test_hitting_times_are_the_least_over_all_policies(seed):
    cmdp = tiny(seed)
    for target in range(cmdp.n_states):
        np.testing.assert_allclose(hitting_times(cmdp, target), brute_hitting_times(cmdp, target), rtol=1e-10)


@SEEDS
def test_diameter_is_the_largest_hitting_time(seed):
    cmdp = tiny(seed)
    brute = max(brute_hitting_times(cmdp, target).max() for target in range(cmdp.n_states))
    assert diameter(cmdp) == pytest.approx(brute if is_communicating(cmdp) else np.inf)


@FORMS
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_a_walk_on_a_line(form, n):
    states = np.arange(n)
    P = np.zeros((n, 1, n))
    P[states, 0, np.minimum(states + 1, n - 1)] += 0.5
    P[states, 0, np.maximum(states - 1, 0)] += 0.5
    walk = build(P, form)
    N = n - 1
    np.testing.assert_allclose(hitting_times(walk, N), N * (N + 1) - states * (states + 1), rtol=1e-11)
    assert diameter(walk) == pytest.approx(N * (N + 1), rel=1e-11)


@FORMS
def test_a_steered_walk_on_a_line(form):
    n, p = 12, 0.3  # each step goes the chosen way with probability p, else nowhere
    states = np.arange(n)
    P = np.zeros((n, 2, n))
    for a, ahead in enumerate((np.minimum(states + 1, n - 1), np.maximum(states - 1, 0))):
        P[states, a, states] += 1 - p
        P[states, a, ahead] += p
    line = build(P, form)
    np.testing.assert_allclose(hitting_times(line, 4), np.abs(states - 4) / p)
    assert diameter(line) == pytest.approx((n - 1) / p)


@FORMS
def test_a_risky_short_cut_is_not_taken_if_it_may_never_arrive(form):
    P = np.zeros((4, 2, 4))
    P[0, 0, [2, 3]] = [0.9, 0.1]  # fast, but 3 is a trap
    P[0, 1, 1] = P[1, :, 2] = P[2, :, 2] = P[3, :, 3] = 1
    assert hitting_times(build(P, form), 2).tolist() == [2, 1, 0, np.inf]
    assert diameter(build(P, form)) == np.inf


@FORMS
@pytest.mark.parametrize("rare", [1e-8, 1e-16, 1e-30, 1e-200])
def test_rare_ways_take_long_but_not_forever(form, rare):
    alone = build([[[1 - rare, rare]], [[1, 0]]], form)
    assert diameter(alone) == pytest.approx(1 / rare, rel=1e-14)
    pair = build([[[0.5 - rare, 0.5, rare]], [[0.5, 0.5, 0]], [[1, 0, 0]]], form)
    np.testing.assert_allclose(hitting_times(pair, 2), [2 / rare, 2 / rare + 2, 0], rtol=1e-14)


@FORMS
def test_a_time_beyond_floating_point_is_refused_not_guessed(form):
    e = 1e-200  # the walk to 2 takes 1e400 steps
    with pytest.raises(SolverError, match="left too rarely for floating point"):
        diameter(build([[[1 - e, e, 0]], [[1 - e, 0, e]], [[1, 0, 0]]], form))


@pytest.mark.parametrize("seed", range(5))
def test_sparse_distances_are_dense_distances(seed):
    rng = np.random.default_rng(seed)
    P = np.where(rng.random((20, 3, 20)) < 0.15, rng.random((20, 3, 20)), 0) + 0.1 * np.eye(20)[:, None, :]
    P /= P.sum(axis=2, keepdims=True)
    one, two = build(P), build(P, csr_array)
    for target in range(20):
        np.testing.assert_allclose(hitting_times(one, target), hitting_times(two, target), rtol=1e-10)
    assert [part.pairs.tolist() for part in end_components(one)] == [p.pairs.tolist() for p in end_components(two)]
    assert diameter(one) == pytest.approx(diameter(two))
