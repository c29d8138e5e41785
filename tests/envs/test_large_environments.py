"""Environments with thousands of states: rows checked by hand, certified optima found in two ways, closed forms."""

from math import factorial

import numpy as np
import pytest

import psconrl
from event_transitions import transitions
from psconrl import Status, evaluate, load, plan
from psconrl.envs.network import ACTIONS, network
from psconrl.envs.stock import stock
from psconrl.envs.ward import ward
from psconrl.errors import ModelError
from psconrl.markov.structure import is_communicating

DEFAULTS = {  # states, actions, successors at most, optimum
    "ward": (1330, 12, 7, 1.0742491699),
    "network": (2500, 4, 5, 0.9842045528),
    "stock": (1728, 4, 8, 11.3033922358),
}
SMALL = {
    "ward": {"beds": 5, "arrivals": (0.04, 0.05, 0.025), "refused": 0.06, "occupied": 2.5},
    "network": {"side": 8, "waiting": 5.0},
    "stock": {"items": 2, "room": 6, "load": 4},
}


def row(cmdp, state, action):
    """The transitions of an action in a state, by name."""
    k = cmdp.state_names.index(state) * cmdp.n_actions + cmdp.action_names.index(action)
    distribution = cmdp.transition.csr()[[k]].toarray().ravel()
    return {cmdp.state_names[s]: pytest.approx(distribution[s], abs=1e-15) for s in np.flatnonzero(distribution)}


def always(cmdp, action):
    return np.full(cmdp.n_states, cmdp.action_names.index(action))


def some_policy(cmdp):
    return np.random.default_rng(0).dirichlet(np.ones(cmdp.n_actions), size=cmdp.n_states)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_large_environment_is_sparse_communicating_and_certified_with_binding_constraints(name):
    states, actions, successors, optimum = DEFAULTS[name]
    cmdp = load(name)
    P = cmdp.transition.csr()
    assert cmdp.is_sparse
    assert (cmdp.n_states, cmdp.n_actions) == (states, actions)
    assert cmdp.available.all()
    assert np.diff(P.indptr).max() == successors
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-14)
    assert P.data.min() > 1e-6  # no rounding residue
    assert is_communicating(cmdp)
    best = plan(cmdp)
    assert best.status is Status.OPTIMAL
    assert psconrl.certify(cmdp, best).holds
    assert abs(best.gap) < 1e-9
    assert best.value == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(best.costs[1:], cmdp.thresholds, atol=1e-9)
    assert (best.multipliers > 1e-4).all()
    assert 1 <= best.randomised_states.size <= cmdp.n_constraints


@pytest.mark.parametrize("name", SMALL)
def test_a_small_one_has_the_optimum_of_the_referee_and_looser_limits_are_worth_no_less(name):
    cmdp = load(name, **SMALL[name])
    best = plan(cmdp)
    assert best.status is Status.OPTIMAL
    assert best.value == pytest.approx(plan(cmdp, method="lp").value, abs=1e-7)
    assert best.multipliers.max() > 1e-4
    for i in range(cmdp.n_constraints):
        one = np.arange(cmdp.n_constraints) == i
        costs = [plan(cmdp.with_thresholds(cmdp.thresholds * (1 + share * one))).costs[0] for share in (0.1, 0.3, 0.9)]
        assert (np.diff([best.costs[0], *costs]) <= 1e-10).all()


def test_ten_thousand_states_are_built_without_a_dense_table(full):
    builders = (lambda: network(side=100), lambda: ward(beds=37), lambda: stock(items=4, room=9))
    for build in builders if full else builders[:1]:
        cmdp = build()
        assert cmdp.n_states > 9_800
        assert cmdp.transition.csr().nnz <= 13 * cmdp.n_states * cmdp.n_actions


def test_events_leave_the_rest_to_staying_but_not_what_is_left_by_rounding():
    P = transitions(2, 2, [([0.1, 0.5], [[1], [0]]), ([[0.2], [0.3]], 0)])
    np.testing.assert_allclose(P.toarray(), [[0.9, 0.1], [0.5, 0.5], [0.4, 0.6], [0.8, 0.2]], atol=1e-15)
    tenths = transitions(2, 1, [(0.1, [[1], [0]])] * 10)
    assert sum([0.1] * 10) < 1
    assert tenths.toarray().diagonal().tolist() == [0.0, 0.0]


# The ward


def test_rows_of_the_ward():
    cmdp = ward()  # rates sum to one: they are the probabilities
    assert row(cmdp, "1 urgent, 0 elective, 2 transfer", "staff 1 admits urgent and transfer") == {
        "2 urgent, 0 elective, 2 transfer": 0.16,
        "1 urgent, 0 elective, 3 transfer": 0.1,
        "0 urgent, 0 elective, 2 transfer": 1 * 0.02 * 0.8,
        "1 urgent, 0 elective, 1 transfer": 2 * 0.025 * 0.8,
        "1 urgent, 0 elective, 2 transfer": 1 - 0.16 - 0.1 - 0.016 - 0.04,
    }
    assert row(cmdp, "9 urgent, 9 elective, 0 transfer", "staff 2 admits urgent and elective and transfer") == {
        "8 urgent, 9 elective, 0 transfer": 9 * 0.02,
        "9 urgent, 8 elective, 0 transfer": 9 * 0.03,
        "9 urgent, 9 elective, 0 transfer": 1 - 0.18 - 0.27,
    }
    place = cmdp.state_names.index("9 urgent, 9 elective, 0 transfer")
    np.testing.assert_allclose(cmdp.costs[:, place, 8:], [[0] * 4, [6] * 4, [1] * 4, [18] * 4])
    np.testing.assert_allclose(-cmdp.costs[0, 0, :4], [0.8, 0.8 + 0.3, 0.8 + 0.4, 0.8 + 0.4 + 0.3])


def erlang(load, beds):
    """The share of patients without a bed (Erlang 1917)."""
    weights = [load**n / factorial(n) for n in range(beds + 1)]
    return weights[-1] / sum(weights)


@pytest.mark.parametrize("beds", [1, 4, 9])
def test_a_ward_of_one_class_and_one_staff_is_erlangs(beds):
    cmdp = ward(beds, [0.3], [0.1], [2.0], [1.0], [5.0])
    assert (cmdp.n_states, cmdp.n_actions) == (beds + 1, 1)
    exact = evaluate(cmdp, np.zeros(beds + 1, dtype=int))
    blocked = erlang(0.3 / 0.1, beds)
    np.testing.assert_allclose(exact.costs, [-0.3 * 2.0 * (1 - blocked), 5.0, blocked, 3.0 * (1 - blocked)], rtol=1e-12)


def test_a_ward_that_admits_all_has_the_distribution_of_a_loss_network():
    cmdp = ward(beds=7)
    distribution = evaluate(cmdp, always(cmdp, "staff 2 admits urgent and elective and transfer")).occupancy.sum(axis=1)
    loads = (0.16 / 0.02, 0.2 / 0.03, 0.1 / 0.025)
    weights = np.array(
        [np.prod([r**n / factorial(n) for r, n in zip(loads, _numbers(s), strict=True)]) for s in cmdp.state_names]
    )
    np.testing.assert_allclose(distribution, weights / weights.sum(), rtol=1e-10)
    full = [sum(_numbers(s)) == 7 for s in cmdp.state_names]
    assert distribution[full].sum() == pytest.approx(erlang(sum(loads), 7), rel=1e-12)


def test_who_is_admitted_is_discharged():
    """By class and for any policy: rates in equal rates out."""
    cmdp = ward(beds=4, values=(1.0, 0.0, 0.0))
    policy = some_policy(cmdp)
    exact = evaluate(cmdp, policy)
    urgent = np.array([_numbers(s)[0] for s in cmdp.state_names])[:, None]
    out = urgent * 0.02 * np.repeat([0.6, 0.8, 1.0], 4)
    assert (exact.occupancy * out).sum() == pytest.approx(exact.value, rel=1e-10)
    assert exact.value == pytest.approx(0.16 * (1 - exact.costs[2]), rel=1e-10)  # urgent patients see time averages


def _numbers(state):
    return [int(word) for word in state.replace(",", "").split() if word.isdigit()]


# The network


def test_rows_of_the_network():
    cmdp = network()  # rates sum to 2.5
    assert row(cmdp, "3 and 1 waiting", "fast") == {
        "3 and 2 waiting": 1.2 / 2.5,
        "2 and 1 waiting": 0.7 * 0.8 / 2.5,
        "2 and 2 waiting": 0.7 * 0.2 / 2.5,
        "3 and 0 waiting": 0.6 / 2.5,
    }
    assert row(cmdp, "5 and 49 waiting", "first") == {
        "6 and 49 waiting": 1.2 / 2.5,
        "4 and 49 waiting": 0.6 / 2.5,  # done, or lost on the way to the second
        "5 and 48 waiting": 0.5 / 2.5,
        "5 and 49 waiting": 0.2 / 2.5,
    }
    assert row(cmdp, "0 and 49 waiting", "second") == {"0 and 48 waiting": 0.2, "0 and 49 waiting": 0.8}
    assert row(cmdp, "0 and 0 waiting", "refuse") == {"0 and 0 waiting": 1.0}
    assert row(cmdp, "4 and 4 waiting", "fast")["5 and 4 waiting"] == 0.48  # the first, if equal
    place = cmdp.state_names.index("3 and 1 waiting")
    np.testing.assert_allclose(-cmdp.costs[0, place], [0.98, 0.98, 0.98, 0.7 * 0.8 + 0.6 - 0.15])
    assert cmdp.costs[1, place].tolist() == [4.0] * 4


def test_a_network_that_refuses_all_customers_is_empty():
    cmdp = network(side=6)
    assert evaluate(cmdp, always(cmdp, "refuse")).costs.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("action", "rate"), [("first", 0.6), ("second", 0.5)])
def test_one_station_alone_is_the_queue_of_the_textbook(action, rate):
    """M/M/1 with room for K: a truncated geometric distribution."""
    K = 9
    cmdp = network(side=K + 1, onward=0.0)
    distribution = (1.2 / rate) ** np.arange(K + 1)
    distribution /= distribution.sum()
    exact = evaluate(cmdp, always(cmdp, action))
    assert exact.costs[1] == pytest.approx(distribution @ np.arange(K + 1), rel=1e-10)
    assert exact.value == pytest.approx(rate * (1 - distribution[0]), rel=1e-10)
    assert exact.value == pytest.approx(1.2 * (1 - distribution[-1]), rel=1e-10)


def test_who_comes_is_served_or_lost_on_the_way():
    side = 7
    cmdp = network(side, price=0.0)
    exact = evaluate(cmdp, some_policy(cmdp))
    mass = exact.occupancy.reshape(side, side, len(ACTIONS))
    shorter_full = mass[-1, -1, 3]  # the shorter line is full only if both are
    taken = mass[:-1, :, 0].sum() + mass[:, :-1, 1].sum() + mass[:, :, 3].sum() - shorter_full
    lost = 0.2 * mass[1:, -1, :].sum(axis=0) @ [0.6, 0.6, 0.6, 0.7]
    assert 1.2 * taken == pytest.approx(exact.value + lost, rel=1e-10)


# The stock


def test_rows_of_the_stock():
    cmdp = stock()  # asked for with 0.3, 0.2 and 0.1; the truck is through with 0.2 and brings 6
    assert row(cmdp, "1 0 11 in stock", "send item 2") == {
        "0 0 11 in stock": 0.3 * 0.8,
        "0 6 11 in stock": 0.3 * 0.2,
        "1 0 11 in stock": (0.2 + 0.4) * 0.8,  # a sale is lost, or there is no demand
        "1 6 11 in stock": (0.2 + 0.4) * 0.2,
        "1 0 10 in stock": 0.1 * 0.8,
        "1 6 10 in stock": 0.1 * 0.2,
    }
    assert row(cmdp, "5 1 0 in stock", "send item 1")["11 1 0 in stock"] == (0.1 + 0.4) * 0.2
    assert row(cmdp, "8 1 0 in stock", "send item 1")["11 1 0 in stock"] == (0.3 + 0.1 + 0.4) * 0.2  # no room for more
    assert row(cmdp, "2 1 0 in stock", "wait") == {
        "1 1 0 in stock": 0.3,
        "2 0 0 in stock": 0.2,
        "2 1 0 in stock": 0.5,
    }
    place = cmdp.state_names.index("1 0 11 in stock")
    assert cmdp.costs[:, place].tolist() == [[12.0, 14.0, 14.0, 14.0], [0.0] * 4, [1.0] * 4, [0.0] * 4]


def test_a_stock_without_a_truck_runs_out():
    cmdp = stock(items=2, room=3)
    np.testing.assert_allclose(evaluate(cmdp, always(cmdp, "wait")).costs, [0.0, 1.0, 1.0], atol=1e-12)


def test_a_shelf_for_one_is_a_switch():
    """Empty after a sale without delivery, filled by a delivery: two states."""
    demand, delivery = 0.6, 0.2
    cmdp = stock(items=1, room=1, demand=demand, delivery=delivery, load=3, holding=4.0, trip=0.5)
    empty = demand * (1 - delivery) / (demand * (1 - delivery) + delivery)
    exact = evaluate(cmdp, always(cmdp, "send item 1"))
    np.testing.assert_allclose(exact.costs, [4.0 * (1 - empty) + 0.5, empty], rtol=1e-12)


def test_what_is_sold_was_brought():
    cmdp = stock(items=2, room=4, load=1, demand=0.6, delivery=0.3)
    exact = evaluate(cmdp, some_policy(cmdp))
    levels = np.array([[int(word) for word in s.split()[:2]] for s in cmdp.state_names])
    for k, asked in enumerate((0.4, 0.2)):
        sold = asked * (1 - exact.costs[1 + k])
        sent = exact.occupancy[:, 1 + k]
        wasted = sent @ ((levels[:, k] == 4) * (1 - asked))  # no room, unless one was sold in the same step
        assert 0.3 * (sent.sum() - wasted) == pytest.approx(sold, rel=1e-10)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ward(beds=0), "beds must be a whole number from 1 on; got 0"),
        (lambda: ward(beds=float("nan")), "beds must be a whole number from 1 on; got nan"),
        (lambda: ward(arrivals=[0.1, 0.1]), "one number a class, of one to three classes"),
        (lambda: ward(arrivals=[], discharges=[], values=[]), "one number a class, of one to three classes"),
        (lambda: ward(arrivals=[0.1] * 4, discharges=[0.1] * 4, values=[1] * 4), "of one to three classes"),
        (lambda: ward(discharges=(0.1, 0.0, 0.1)), "must be positive and finite"),
        (lambda: ward(speeds=(0.1, 1.0, float("inf"))), "must be positive and finite"),
        (lambda: ward(speeds=[1.0]), "speeds and nurses must have one number a staff"),
        (lambda: ward(speeds="fast"), "speeds must be an array of numbers"),
        (lambda: ward(refused=float("nan")), "thresholds must be finite"),
        (lambda: ward(beds=10**6), "a model of 166,667,666,668,500,001 states and 12 actions takes"),
        (lambda: network(side=1), "side must be a whole number from 2 on; got 1"),
        (lambda: network(arrival=0), "arrival must be positive and finite; got 0"),
        (lambda: network(service=[1.0]), "service and fast must be two positive rates each"),
        (lambda: network(fast=(0.1, 0.6)), "fast ones no slower"),
        (lambda: network(onward=1.5), r"onward must lie in \[0, 1\]; got 1.5"),
        (lambda: network(side=10**6), "a model of 1,000,000,000,000 states and 4 actions takes"),
        (lambda: stock(items=0), "items must be a whole number from 1 on; got 0"),
        (lambda: stock(items=11), "items must be at most 10; got 11"),
        (lambda: stock(room=2.5), "room must be a whole number from 1 on; got 2.5"),
        (lambda: stock(load=0), "load must be a whole number from 1 on; got 0"),
        (lambda: stock(demand=1.0), "demand must lie strictly between 0 and 1; got 1.0"),
        (lambda: stock(delivery=0.0), "delivery must lie strictly between 0 and 1; got 0.0"),
        (lambda: stock(items=10, room=100), "states and 11 actions takes"),
    ],
)
def test_bad_options_get_one_clear_line(build, message):
    with pytest.raises(ModelError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "option"), [("ward", "beds"), ("network", "side"), ("stock", "room"), ("stock", "items")]
)
def test_sizes_beyond_all_numbers_end_in_one_line(name, option):
    for size in (10**400, 2**63 - 1):
        with pytest.raises(psconrl.ModelError) as error:
            psconrl.load(name, **{option: size})
        assert "\n" not in str(error.value)


def test_a_truck_that_brings_more_than_fits_fills_the_shelf():
    huge, full = (psconrl.load("stock", items=1, room=3, load=load) for load in (2**63 - 1, 3))
    np.testing.assert_array_equal(huge.transition.toarray(), full.transition.toarray())
