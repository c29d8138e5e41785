"""Continuous time: closed forms of queueing theory, exhaustive searches, and the docstring of model.rates."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP
from psconrl.errors import ModelError
from psconrl.model.rates import FASTER


def birth_death(births, deaths):
    """Rates (S, S) of a queue."""
    S = len(births) + 1
    q = np.zeros((S, S))
    q[np.arange(S - 1), np.arange(1, S)] = births
    q[np.arange(1, S), np.arange(S - 1)] = deaths
    return q


def product_form(births, deaths):
    """The stationary distribution of a birth-death process."""
    distribution = np.concatenate([[1.0], np.cumprod(np.asarray(births, float) / deaths)])
    return distribution / distribution.sum()


@pytest.mark.parametrize("as_given", ["dense", "flat", "sparse", "generator", "sparse generator"])
@pytest.mark.parametrize(("arrivals", "service", "room"), [(2.0, 3.0, 4), (5.0, 1.5, 7), (0.3, 0.3, 5)])
def test_a_queue_with_room_for_k(arrivals, service, room, as_given):
    """M/M/1/K: number in the system, loss per unit of time, by the textbook formulas."""
    q = birth_death([arrivals] * room, [service] * room)
    S, rho = room + 1, arrivals / service
    if "generator" in as_given:
        q -= np.diag(q.sum(axis=1))
    q = {"dense": q[:, None], "flat": q, "generator": q[:, None]}.get(as_given, csr_array(q))
    number = np.arange(S, dtype=float)[:, None]
    lost = np.where(np.arange(S) == room, arrivals, 0.0)[:, None]
    cmdp = CMDP.from_rates(q, [number, lost], [1e9])
    found = psconrl.evaluate(cmdp, np.zeros(S, dtype=int)).costs
    if rho == 1:
        length, full = room / 2, 1 / (room + 1)
    else:
        full = (1 - rho) * rho**room / (1 - rho ** (room + 1))
        length = rho / (1 - rho) - (room + 1) * rho ** (room + 1) / (1 - rho ** (room + 1))
    assert found == pytest.approx([length, arrivals * full], rel=1e-10)
    assert cmdp.is_sparse == ("sparse" in as_given)


def test_the_clock_is_a_little_faster_than_the_fastest_state():
    q = np.zeros((2, 2, 2))
    q[0, :, 1], q[1, :, 0] = [2.0, 5.0], [1.0, 4.0]
    P = CMDP.from_rates(q, [np.zeros((2, 2))]).transition.toarray().reshape(2, 2, 2)
    clock = 5.0 * FASTER
    assert P[0, 1].tolist() == pytest.approx([1 - 5 / clock, 5 / clock])
    assert P[1, 0].tolist() == pytest.approx([1 / clock, 1 - 1 / clock])
    assert (np.einsum("sas->sa", P) > 0).all()
    P = CMDP.from_rates(q, [np.zeros((2, 2))], uniform_rate=5).transition.toarray().reshape(2, 2, 2)
    assert P[0, 1].tolist() == [0, 1]  # the fastest rate suffices, on request
    P = CMDP.from_rates(q, [np.zeros((2, 2))], uniform_rate=10).transition.toarray().reshape(2, 2, 2)
    assert P[0, 1].tolist() == pytest.approx([0.5, 0.5])


def service_control(arrivals, speeds, room, holding, energy, limit=None):
    """A queue whose server runs at one of several speeds: cost of waiting, and of energy, per unit of time."""
    S, A = room + 1, len(speeds)
    q = np.zeros((S, A, S))
    for n, a in itertools.product(range(S), range(A)):
        if n < room:
            q[n, a, n + 1] = arrivals
        if n:
            q[n, a, n - 1] = speeds[a]
    waiting = np.repeat(np.arange(S, dtype=float)[:, None], A, axis=1)
    power = np.where(np.arange(S)[:, None] > 0, np.array(energy)[None, :], 0.0)
    if limit is None:
        return CMDP.from_rates(q, [holding * waiting + power])
    return CMDP.from_rates(q, [power, waiting], [limit], cost_names=["energy", "waiting"])


def test_the_best_speeds_are_those_of_an_exhaustive_search():
    arrivals, speeds, room, holding, energy = 1.0, [0.8, 1.7, 2.5], 5, 1.0, [0.2, 1.1, 3.0]
    found = psconrl.plan(service_control(arrivals, speeds, room, holding, energy))

    def average(chosen):  # by the product form, independently of the library
        distribution = product_form([arrivals] * room, [speeds[a] for a in chosen])
        power = np.array([0.0, *(energy[a] for a in chosen)])
        return float(distribution @ (holding * np.arange(room + 1) + power))

    every = {chosen: average(chosen) for chosen in itertools.product(range(3), repeat=room)}
    chosen = min(every, key=every.get)
    assert found.value == pytest.approx(every[chosen], rel=1e-10)
    assert tuple(found.policy.argmax(axis=1)[1:]) == chosen
    assert list(chosen) == sorted(chosen)  # the more wait, the faster


def test_a_limit_on_waiting_mixes_two_of_all_policies():
    arrivals, speeds, room, energy, limit = 1.0, [1.2, 2.5], 4, [0.3, 2.0], 0.9
    found = psconrl.plan(service_control(arrivals, speeds, room, 0.0, energy, limit))
    points = []
    for chosen in itertools.product(range(2), repeat=room):
        distribution = product_form([arrivals] * room, [speeds[a] for a in chosen])
        points.append(
            (distribution @ np.arange(room + 1), distribution @ np.array([0.0, *(energy[a] for a in chosen)]))
        )
    # The least energy on the line between two policies, at the limit: the lower boundary of the convex hull.
    best = min(
        y + (v - y) * (limit - x) / (u - x) if u > limit else y
        for (x, y), (u, v) in itertools.product(points, repeat=2)
        if x <= limit
    )
    assert found.status is psconrl.Status.OPTIMAL
    assert found.value == pytest.approx(best, rel=1e-9)
    assert found.costs[1] == pytest.approx(limit, rel=1e-9)


def admission(arrivals, service, room, reward, holding):
    """Arrivals are admitted, for a reward, or rejected; customers in the system have a holding cost."""
    S = room + 1
    q = np.zeros((S, 2, S))
    q[np.arange(1, S), :, np.arange(room)] = service
    q[np.arange(room), 1, np.arange(1, S)] = arrivals
    impulse = np.zeros((S, 2, S))
    impulse[np.arange(room), 1, np.arange(1, S)] = -reward
    available = np.ones((S, 2), dtype=bool)
    available[room, 1] = False
    waiting = np.repeat(holding * np.arange(S, dtype=float)[:, None], 2, axis=1)
    return CMDP.from_rates(q, [waiting], impulses=[impulse], available=available, maximise=True)


@pytest.mark.parametrize("as_given", ["by next state", "by choice", "sparse"])
def test_admission_as_naor_has_it(as_given):
    """The best threshold of all thresholds, by the product form (Naor 1969)."""
    arrivals, service, room, reward, holding = 1.2, 1.0, 10, 5.0, 1.0
    cmdp = admission(arrivals, service, room, reward, holding)
    if as_given != "by next state":
        q = cmdp.transition.toarray().reshape(room + 1, 2, room + 1) * (arrivals + service) * FASTER
        q[np.arange(room + 1), :, np.arange(room + 1)] = 0.0
        # A jump from n costs -reward on average over its kinds: arrivals are a share of all jumps.
        share = np.zeros((room + 1, 2))
        share[:room, 1] = -reward * arrivals / (arrivals + service * (np.arange(room) > 0))
        impulse = share
        if as_given == "sparse":
            jump = np.zeros((room + 1, 2, room + 1))
            jump[np.arange(room), 1, np.arange(1, room + 1)] = -reward
            impulse, q = csr_array(jump.reshape(-1, room + 1)), csr_array(q.reshape(-1, room + 1))
        waiting = np.repeat(holding * np.arange(room + 1, dtype=float)[:, None], 2, axis=1)
        cmdp = CMDP.from_rates(q, [waiting], impulses=[impulse], available=cmdp.available, maximise=True)
    found = psconrl.plan(cmdp)

    def gain(threshold):
        distribution = product_form([arrivals] * threshold, [service] * threshold)
        return reward * arrivals * distribution[:-1].sum() - holding * distribution @ np.arange(threshold + 1)

    gains = {n: gain(n) for n in range(1, room + 1)}
    best = max(gains, key=gains.get)
    assert found.value == pytest.approx(gains[best], rel=1e-10)
    admits = found.policy[:, 1] > 0.5
    assert admits[:best].all()
    assert not admits[best]
    assert best < np.floor(reward * service / holding)  # alone, customers would join a longer queue


def semi_markov(seed=0, S=4, A=2):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), size=(S, A))
    return P, rng.uniform(0.2, 5.0, (S, A)), rng.uniform(-1, 1, (S, A)), rng.uniform(-1, 1, (S, A, S))


def test_stays_of_any_distribution_count_by_their_means():
    """By the renewal theorem, a policy's average is the cost of a visit over its duration."""
    P, stay, cost, lump = semi_markov()
    cmdp = CMDP.from_rates(P, [cost], impulses=[lump], sojourn=stay)
    every = {}
    for chosen in itertools.product(range(2), repeat=4):
        rows = np.arange(4), list(chosen)
        chain = P[rows]
        visits = np.linalg.svd(chain.T - np.eye(4))[2][-1]
        visits /= visits.sum()
        per_visit = cost[rows] * stay[rows] + (chain * lump[rows]).sum(axis=1)
        every[chosen] = visits @ per_visit / (visits @ stay[rows])
        assert psconrl.evaluate(cmdp, list(chosen)).costs[0] == pytest.approx(every[chosen], rel=1e-9)
    found = psconrl.plan(cmdp)
    assert found.value == pytest.approx(min(every.values()), rel=1e-9)
    assert tuple(found.policy.argmax(axis=1)) == min(every, key=every.get)


def test_an_action_randomised_on_arrival_is_weighted_by_the_rates():
    """Probabilities of a plan are shares of time; randomised once per visit they are multiplied by the exit rates."""
    P, stay, cost, _ = semi_markov(3)
    cmdp = CMDP.from_rates(P, [cost], sojourn=stay)
    shares = np.random.default_rng(1).dirichlet(np.ones(2), size=4)
    on_arrival = shares / stay
    on_arrival /= on_arrival.sum(axis=1, keepdims=True)
    chain = np.einsum("sa,sat->st", on_arrival, P)
    visits = np.linalg.svd(chain.T - np.eye(4))[2][-1]
    average = visits @ (on_arrival * cost * stay).sum(axis=1) / (visits @ (on_arrival * stay).sum(axis=1))
    assert psconrl.evaluate(cmdp, shares).costs[0] == pytest.approx(average, rel=1e-9)


def test_what_does_not_change_with_the_clock_and_what_does():
    P, stay, cost, _ = semi_markov(5)
    slow, fast = (CMDP.from_rates(P, [cost], sojourn=stay, uniform_rate=rate) for rate in (10.0, 40.0))
    one, other = psconrl.plan(slow), psconrl.plan(fast)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert (one.policy == other.policy).all()
    bias, faster = (psconrl.evaluate(m, one.policy).biases[0] for m in (slow, fast))
    assert faster == pytest.approx(4.0 * bias, rel=1e-8)


def test_the_unit_of_time_is_that_of_the_rates():
    """Rates per hour or per minute: averages of costs per hour or per minute."""
    hourly = service_control(6.0, [4.8, 10.2], 4, 1.0, [1.2, 6.6])
    by_minute = service_control(6.0 / 60, [4.8 / 60, 10.2 / 60], 4, 1.0 / 60, [1.2 / 60, 6.6 / 60])
    assert psconrl.plan(hourly).value == pytest.approx(60 * psconrl.plan(by_minute).value, rel=1e-9)


def test_units_say_what_the_averages_are_of():
    cmdp = CMDP.from_rates(
        [[[0, 1.0]], [[2.0, 0]]],
        [[[3.0], [0.0]]],
        cost_names=["cost"],
        units={"round": "hour", "counted": {"cost": "euro"}},
    )
    assert psconrl.plan(cmdp).value == pytest.approx(3.0 * 2 / 3)
    assert cmdp.units.average("cost") == "euro an hour"


def test_what_never_moves_stays():
    cmdp = CMDP.from_rates(np.zeros((2, 1, 2)), [[[1.0], [2.0]]], initial=1)
    assert psconrl.plan(cmdp).value == pytest.approx(2.0)
    assert (cmdp.transition.toarray() == np.eye(2)).all()


def test_jumps_that_lead_back_cost_their_impulses():
    """A pump is hit at rate 3 without changing state, and every hit costs."""
    cmdp = CMDP.from_rates([[[3.0]]], [[[0.5]]], impulses=[[[2.0]]])
    assert psconrl.plan(cmdp).value == pytest.approx(0.5 + 3.0 * 2.0)
    assert psconrl.plan(CMDP.from_rates([[[3.0]]], [None], impulses=[[[[2.0]]]])).value == pytest.approx(6.0)


Q = [[[0, 1.0]], [[2.0, 0]]]
C = [[[1.0], [0.0]]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[[0, -1.0]], [[2.0, 0]]], C), r"rates\[0, 0, 1\] must be a rate.*got -1"),
        (([[[0, np.inf]], [[2.0, 0]]], C), r"rates\[0, 0, 1\]"),
        (([[[-3.0, 1.0]], [[2.0, -2.0]]], C), "must be 0, or minus the sum of the other rates, 1; got -3"),
        (([[0, 1.0], [2.0, 0], [1.0, 1.0]], C), "rates must have shape"),
        ((Q, [[[1.0, 0.0]]]), r"costs\[0\] must have shape \(2, 1\), per unit of time"),
        ((Q, [np.zeros((2, 1, 2))]), "what depends on the next state is an impulse"),
        ((Q, 3), "costs must have shape"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(arguments, words):
    with pytest.raises(ModelError, match=words):
        CMDP.from_rates(*arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"impulses": []}, "an entry, or None, for each of the 1 costs; got 0"),
        ({"impulses": [np.zeros(3)]}, r"impulses\[0\] must have shape"),
        ({"impulses": ["much"]}, r"impulses\[0\] must be an array of numbers"),
        ({"uniform_rate": 1.5}, "at least the largest rate of leaving, 2; got 1.5"),
        ({"uniform_rate": np.inf}, "got inf"),
        ({"uniform_rate": "fast"}, "got fast"),
        ({"available": [[0], [1]]}, "state 0 has no available action"),
        ({"sojourn": [[1.0], [1.0]]}, "must sum to 1"),
    ],
)
def test_wrong_options_are_said(options, words):
    with pytest.raises(ModelError, match=words):
        CMDP.from_rates(Q, C, **options)


@pytest.mark.parametrize("stay", [0.0, -1.0, np.nan, np.inf])
def test_stays_must_last(stay):
    distribution = [[[0, 1.0]], [[1.0, 0]]]
    with pytest.raises(ModelError, match=r"sojourn\[1, 0\] must be a time above 0"):
        CMDP.from_rates(distribution, C, sojourn=[[1.0], [stay]])
    with pytest.raises(ModelError, match=r"sojourn must have shape \(S, A\) = \(2, 1\)"):
        CMDP.from_rates(distribution, C, sojourn=[1.0, stay])
