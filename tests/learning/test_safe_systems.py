"""The agent ``safe`` for a system: confidence sets over its noise, certificates over them, and what it plays.

Independent checks: closed forms, brute force over vertices and grids of parameters, and exact evaluation of every
policy that is played in the true model.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, gamma

import psconrl
from psconrl import CMDP, evaluate, plan
from psconrl.agents import LearnedMass, SafeStart, known_baseline
from psconrl.envs.registry import load_system
from psconrl.errors import AgentError, StructureWarning
from psconrl.kernels.sets.intervals import end_of_interval
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.safe.confidence_sets import NoiseKnowledge
from psconrl.learning.safe.noise_bounds import NoiseIntervals, _means_at, box_of_parameter, end_of_rate
from psconrl.planning.robust.lyapunov import best_within
from psconrl.planning.robust.noise_box import BlockBounds, NoiseBox
from psconrl.planning.robust.pessimism import largest_means, worst_average
from psconrl.simulation.model_run import Simulation
from psconrl.systems import Bernoulli, Beta, Binomial, Categorical, Event, Gamma, Geometric, Joint, Poisson, System

LOG = math.log(20.0)


def shop(demand):
    """A shelf of up to three items, whose demand it hides if it is larger."""
    return System(
        state={"shelf": range(4)},
        action={"order": range(4)},
        noise={"demand": demand},
        step={"shelf": "max(min(shelf + order, 3) - demand, 0)"},
        costs={"holding": "next_shelf", "lost": "max(demand - min(shelf + order, 3), 0)"},
        start={"shelf": 3},
        minimise="holding",
        limits=["lost <= 0.4"],
    )


def counted(system, moves):
    """Counts of transitions (state, action, next state), each a number of times."""
    structure = system.structure
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record = Record.empty(counts)
    for (state, action, following), times in moves.items():
        for _ in range(times):
            record.step(state, action, following, np.zeros(len(structure.fixed_costs)))
    counts.add(record)
    return counts


def agent_for(system, true, seed=0, **options):
    """The agent, given the safest policy of the true model and its span by state."""
    given = known_baseline(true.model_for_learning(), by_state=True)
    del given["ranges"]
    return SafeStart.of(system, seed=seed, **(given | options))


# Confidence sets.


def test_a_value_counts_in_rounds_that_reveal_it_whatever_happens():
    """With two items demand 0 and 1 are revealed, and 2 or more look the same; with three items all but 3, 4."""
    system = shop(Categorical(range(5), prior=1.0))
    counts = counted(system, {(2, 0, 2): 3, (2, 0, 1): 4, (2, 0, 0): 5, (3, 0, 3): 1, (3, 0, 1): 2, (3, 0, 0): 6})
    found = NoiseIntervals(system.structure).bounds(counts, LOG)
    seen = [(4, 21), (4, 21), (2, 9), (0, 0), (0, 0)]
    for value, (k, n) in enumerate(seen):
        assert found.low[0, value] == end_of_interval(k, n, LOG, 0.0)
        assert found.high[0, value] == end_of_interval(k, n, LOG, 1.0)


def test_a_count_has_an_interval_for_every_number_or_more_and_the_rate_lies_in_all():
    system = shop(Poisson(Gamma(2, 1), most=4))
    counts = counted(system, {(2, 0, 2): 30, (2, 0, 1): 40, (2, 0, 0): 50})
    found = NoiseIntervals(system.structure).bounds(counts, LOG)
    least, most = 0.0, math.inf
    for j, k in ((1, 90), (2, 50)):
        low, high = (end_of_interval(k, 120, LOG, outer) for outer in (0.0, 1.0))
        least = max(least, gamma(j).ppf(low))  # a Poisson count is at least j with the distribution function of a Gamma
        most = min(most, gamma(j).ppf(high))
    rates = np.linspace(least, most, 2001)
    none = np.exp(-rates)
    assert found.low[0, 0] == pytest.approx(none.min(), rel=1e-6)
    assert found.high[0, 0] == pytest.approx(none.max(), rel=1e-6)
    one = rates * np.exp(-rates)
    assert found.low[0, 1] == pytest.approx(one.min(), rel=1e-6)
    assert found.high[0, 1] == pytest.approx(one.max(), rel=1e-4)


def test_means_of_counts_are_quantiles_of_gamma_distributions():
    """A Poisson count is at least j with the distribution function of a Gamma(j) at its mean."""
    probabilities = np.array([[0.1, 0.5, 0.3, 0.0, 1.0], [0.2, 0.6, 0.7, 0.0, 1.0]])
    counts = np.array([1.0, 30.0, 2000.0, 3.0, 3.0])
    found = _means_at(probabilities, counts, 4000.0)
    exact = gamma(counts).ppf(probabilities)
    exact[0, 4] = 4000.0  # no lower bound is beyond the largest mean that matters
    assert found == pytest.approx(exact, rel=1e-10)
    below, above = _means_at(np.array([[0.3], [0.3]]), np.array([2.0]), 8.0)
    assert below < above


def test_trials_with_a_factor_have_an_interval_that_is_divided_by_it():
    noise = {"broken": Bernoulli(Beta(1, 1), times="1 - 0.75 * care")}
    system = System(
        state={"broken_before": range(2)}, action={"care": range(2)}, noise=noise,
        step={"broken_before": "broken"}, costs={"idle": "broken_before"}, minimise="idle",
    )  # fmt: skip
    counts = counted(system, {(0, 0, 1): 30, (0, 0, 0): 20, (0, 1, 1): 3, (1, 1, 0): 17})
    found = NoiseIntervals(system.structure).bounds(counts, LOG)
    plain, cared = ([end_of_interval(k, n, LOG, outer) for outer in (0.0, 1.0)] for k, n in ((30, 50), (3, 20)))
    low, high = max(plain[0], cared[0] / 0.25), min(plain[1], cared[1] / 0.25)
    context = int(system.structure.contexts[0])
    assert found.low[context, 1] == pytest.approx(low, abs=1e-15)
    assert found.high[context, 1] == pytest.approx(high, abs=1e-15)
    assert found.parameters["broken"][0] == pytest.approx((33 + 1) / (50 + 0.25 * 20 + 2))


def test_a_probability_has_the_interval_of_all_trials():
    noise = {"broken": Binomial("machines", Beta(1, 1))}
    system = System(
        state={"machines": range(3)}, action={"buy": range(3)}, noise=noise,
        step={"machines": "min(machines - broken + buy, 2)"}, costs={"idle": "2 - machines"}, minimise="idle",
    )  # fmt: skip
    counts = counted(system, {(2, 0, 2): 5, (2, 0, 1): 3, (2, 0, 0): 1, (1, 0, 1): 4, (1, 0, 0): 2, (2, 1, 2): 9})
    found = NoiseIntervals(system.structure).bounds(counts, LOG)
    k, n = 3 + 2 + 2, 2 * 9 + 6  # after a purchase, 0 and 1 broken machines look the same
    low, high = (end_of_interval(k, n, LOG, outer) for outer in (0.0, 1.0))
    context = int(system.structure.contexts[1 * 3])  # one machine
    assert found.low[context, 1] == pytest.approx(low, abs=1e-15)
    assert found.high[context, 1] == pytest.approx(high, abs=1e-15)


@pytest.mark.parametrize(("k", "exposure"), [(0, 3.0), (1, 40.0), (30, 100.5), (7, 7.5)])
def test_a_rate_ends_where_the_mixture_of_all_rates_is_likelier_by_the_factor(k, exposure):
    low, high = (end_of_rate(float(k), exposure, LOG, outer) for outer in (0.0, 1.0))
    assert 0.0 <= low <= min(k / exposure, 1.0) <= high <= 1.0
    for end in {low, high} - {0.0, 1.0}:
        ratio = math.factorial(k) / ((exposure + 1) ** (k + 1) * end**k * math.exp(-exposure * end))
        assert ratio == pytest.approx(20.0, rel=1e-6)


def test_events_are_trials_if_their_factor_is_the_same_wherever_they_are_possible():
    arrive, leave = Event(Gamma(1, 1), {"n": "n + 1"}, when="n < 2"), Event(Gamma(1, 1), {"n": "n - 1"}, times="n")
    system = System(
        state={"n": range(3)}, action={"wait": 1}, events={"arrive": arrive, "leave": leave}, clock=4.0,
        costs={"n_now": "n"}, minimise="n_now",
    )  # fmt: skip
    counts = counted(system, {(0, 0, 1): 4, (0, 0, 0): 6, (1, 0, 2): 3, (1, 0, 0): 2, (1, 0, 1): 5, (2, 0, 1): 3})
    found = NoiseIntervals(system.structure).bounds(counts, LOG)
    context = int(system.structure.contexts[1])  # one in the system
    assert found.low[context, 0] == pytest.approx(end_of_interval(7, 20, LOG, 0.0))
    assert found.high[context, 0] == pytest.approx(end_of_interval(7, 20, LOG, 1.0))
    exposure = 10 * 0.5 + 3  # the rate is twice as high if two may leave
    assert found.low[context, 1] == pytest.approx(0.5 * end_of_rate(5.0, exposure, LOG, 0.0))
    assert found.high[context, 1] == pytest.approx(0.5 * end_of_rate(5.0, exposure, LOG, 1.0))
    assert found.low[context, 2] == pytest.approx(max(1 - found.high[context, :2].sum(), 0.0))
    assert found.high[context, 2] == pytest.approx(1 - found.low[context, :2].sum())


@pytest.mark.parametrize(
    ("system", "number"),
    [
        (load_system("inventory"), 6),
        (load_system("queue"), 4),
        (load_system("network", side=3), 7),
        (load_system("stock", items=2, room=2, load=2), 3 + 1),
        (shop(Poisson(Gamma(2, 1), most=4)), 4),
        (shop(Categorical({0: 0.5, 1: 0.5})), 0),
        (shop(Binomial(2, Beta(1, 1), times="0.5 + 0.5 * (order == 0) - 0.5 * (order == 2)")), 2),
        (shop(Bernoulli(Beta(1, 1), times="0 * order")), 1),
    ],
)
def test_every_interval_of_the_noise_has_its_share_of_delta(system, number):
    assert NoiseIntervals(system.structure).number == number


@pytest.mark.parametrize(
    ("noise", "ends", "arguments"),
    [
        (Poisson(Gamma(1, 1), most=5), (0.7, 2.6), {"times": np.array([1.0, 2.0])}),
        (Binomial("n", Beta(1, 1)), (0.2, 0.45), {"n": np.array([3.0, 1.0]), "times": np.ones(1)}),
        (Binomial("n", Beta(1, 1)), (0.2, 0.9), {"n": np.array([3.0, 3.0]), "times": np.array([0.5, 0.0])}),
        (Geometric(Beta(1, 1), most=4), (0.15, 0.6), {"times": np.ones(1)}),
        (Geometric(Beta(1, 1), most=4), (0.15, 0.9), {"times": np.array([0.4, 0.0])}),
        (Bernoulli(Beta(1, 1)), (0.1, 0.3), {"when": np.array([1.0, 0.0]), "times": np.array([0.3, 1.0])}),
    ],
)
def test_probabilities_are_least_and_largest_over_all_parameters_of_the_interval(noise, ends, arguments):
    low, high = box_of_parameter(noise, tuple(np.array([end]) for end in ends), arguments, 2)
    tables = np.array([noise.table(np.array([x]), arguments, 2) for x in np.linspace(*ends, 4001)])
    np.testing.assert_allclose(low, tables.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(high, tables.max(axis=0), atol=1e-6)
    assert (high >= tables.max(axis=0) - 1e-12).all()


def joined(system):
    """Blocks of joint outcomes of a system, by class: a set of sets of outcomes."""
    blocks = NoiseKnowledge(system.structure).blocks._blocks
    return [{frozenset(np.flatnonzero(row == first).tolist()) for first in set(row[row >= 0])} for row in blocks]


def test_blocks_have_intervals_where_transitions_hide_single_noises():
    """With customers and an open gate a queue shows one more, one less or neither; a full one only "one less"."""
    system = load_system("queue", speeds=(0.5,), powers=(0.4,), power=0.5)  # outcomes (arrival, done): 00, 01, 10, 11
    assert sorted(joined(system), key=len) == [
        {frozenset({1}), frozenset({0, 2, 3})},
        {frozenset({0, 3}), frozenset({1}), frozenset({2})},
    ]
    blocks = NoiseKnowledge(system.structure).blocks
    assert blocks.number == 3  # "all but one less" is the complement of "one less"
    counts = counted(
        system, {(2, 0, 3): 4, (2, 0, 1): 5, (2, 0, 2): 6, (9, 0, 8): 3, (9, 0, 9): 4, (2, 1, 1): 7, (0, 0, 1): 9}
    )
    found = blocks.bounds(counts, LOG)
    of_two, of_nine = found.classes[2 * 2], found.classes[9 * 2]
    assert found.classes[0] == found.classes[2 * 2 + 1] == -1  # an empty queue, and a closed gate

    def ends(k, n):
        return end_of_interval(k, n, LOG, 0.0), end_of_interval(k, n, LOG, 1.0)

    for kind, first, (k, n) in (
        (of_two, 2, (4, 15)),
        (of_two, 1, (8, 22)),
        (of_two, 0, (6, 15)),
        (of_nine, 1, (8, 22)),
    ):
        assert (found.low[kind, first], found.high[kind, first]) == pytest.approx(ends(k, n), abs=1e-12)
    less = ends(8, 22)
    assert (found.low[of_nine, 0], found.high[of_nine, 0]) == pytest.approx((1 - less[1], 1 - less[0]), abs=1e-12)


@pytest.mark.parametrize(
    ("system", "shares"),
    [
        (load_system("inventory"), (6, None)),  # one noise: nothing is hidden by another
        (load_system("network", side=3), (7, None)),
        (load_system("queue"), (2 * 4, 2 * 9)),
    ],
)
def test_noises_and_blocks_have_half_of_delta_each(system, shares):
    found = NoiseKnowledge(system.structure).log_inverses(0.05)
    for log_inverse, number in zip(found, shares, strict=True):
        assert number is None or log_inverse == pytest.approx(math.log(number / 0.05))


@pytest.mark.full
@pytest.mark.statistical
def test_noises_and_blocks_are_in_their_sets_as_often_as_they_say_however_long_one_looks(full):
    """60 runs of 300 rounds, or 20, checked after every tenth, delta .3: more than the bound has probability 1e-4."""
    system, structure = load_system("queue"), load_system("queue", known=True).structure
    knowledge, truth = NoiseKnowledge(system.structure), structure.table({})
    alone = structure.randomness
    missed, runs, delta = 0, 60 if full else 20, 0.3
    for run in range(runs):
        rng, state = np.random.default_rng(run), 0
        counts, out = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs)), False
        for _ in range(30):
            record = Record.empty(counts)
            for _ in range(10):
                pair = state * structure.n_actions + int(rng.integers(structure.n_actions))
                outcome = int(rng.choice(truth.shape[1], p=truth[structure.contexts[pair]]))
                following = int(structure.successors[pair, outcome])
                record.step(state, pair % structure.n_actions, following, np.zeros(len(structure.fixed_costs)))
                state = following
            counts.add(record)
            logs = knowledge.log_inverses(delta)
            box, found = knowledge.intervals.bounds(counts, logs[0]), knowledge.blocks.bounds(counts, logs[1])
            own = np.hstack([alone.own_table(name, {})[alone.contexts[name]] for name in alone.noises])
            out |= bool((own < box.low - 1e-9).any() or (own > box.high + 1e-9).any())
            for pair in np.flatnonzero(found.classes >= 0):
                kind, p = found.classes[pair], truth[structure.contexts[pair]]
                sums = np.array([p[found.blocks[kind] == first].sum() for first in range(p.size)])
                out |= bool((sums < found.low[kind] - 1e-9).any() or (sums > found.high[kind] + 1e-9).any())
        missed += out
    assert missed <= binom(runs, delta).ppf(1 - 1e-4)


COVERED = {
    "values": (shop(Categorical(range(5), prior=1.0)), {"demand": [0.2, 0.3, 0.3, 0.15, 0.05]}),
    "counts": (shop(Poisson(Gamma(2, 1), most=4)), {"demand": 1.4}),
    "a factor": (shop(Binomial(2, Beta(1, 1), times="1 if order else 0.5")), {"demand": 0.6}),
    "events": (load_system("ward", beds=2), {}),
}


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("name", COVERED)
def test_the_noise_is_in_the_sets_as_often_as_they_say_however_long_one_looks(name):
    """60 runs of 300 rounds, checked after every tenth, delta .3: more than ``bound`` misses have probability 1e-4."""
    system, known = COVERED[name]
    true = system.with_noise(**known) if known else load_system("ward", beds=2, known=True)
    structure, truth = true.structure, true.structure.table({})
    intervals, missed, runs, delta = NoiseIntervals(system.structure), 0, 60, 0.3
    sizes = np.array(structure.randomness.sizes)
    assert sizes.size == 1
    for run in range(runs):
        rng, state = np.random.default_rng(run), 0
        counts, out = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs)), False
        for _ in range(30):
            record = Record.empty(counts)
            for _ in range(10):
                action = int(rng.integers(structure.n_actions))
                pair = state * structure.n_actions + action
                outcome = int(rng.choice(truth.shape[1], p=truth[structure.contexts[pair]]))
                following = int(structure.successors[pair, outcome])
                record.step(state, action, following, np.zeros(len(structure.fixed_costs)))
                state = following
            counts.add(record)
            box = intervals.bounds(counts, math.log(intervals.number / delta))
            out |= bool((truth < box.low - 1e-9).any() or (truth > box.high + 1e-9).any())
        missed += out
    assert missed <= binom(runs, delta).ppf(1 - 1e-4)


# Certificates.


def some_box(rng, sizes, S=3, A=2):
    """Random bounds of independent noise, successors and costs."""
    low = np.concatenate([rng.random(size) / (2 * size) for size in sizes])[None]
    W = int(np.prod(sizes))
    box = NoiseBox(
        rng.integers(S, size=(S * A, W)).astype(np.int32), np.zeros(S * A, np.int64), np.array(sizes), low,
        np.minimum(low + rng.random(low.shape), 1.0),
    )  # fmt: skip
    return box, rng.random((S * A, W))


def vertices(low, high):
    """The distributions at the vertices of a box."""
    for order in itertools.permutations(range(low.size)):
        p = low.copy()
        for j in order:
            p[j] += min(high[j] - p[j], max(1.0 - p.sum(), 0.0))
        if abs(p.sum() - 1.0) < 1e-12:
            yield p


@pytest.mark.parametrize("seed", range(5))
def test_the_worst_noise_is_the_worst_of_all_vertices(seed):
    rng = np.random.default_rng(seed)
    box, paid = some_box(rng, [4])
    h = rng.normal(size=3)
    found = largest_means(box, h, paid)
    for pair, successors in enumerate(box.successors):
        values = [p @ (paid[pair] + h[successors]) for p in vertices(box.low[0], box.high[0])]
        assert not values or found[pair] == pytest.approx(max(values), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_independent_noises_are_bounded_one_after_the_other(seed):
    rng = np.random.default_rng(seed)
    box, paid = some_box(rng, [2, 3])
    box = NoiseBox(box.successors, box.contexts, box.sizes, box.low, np.ones_like(box.high))
    h = rng.normal(size=3)
    found = largest_means(box, h, paid)
    firsts, seconds = list(vertices(box.low[0, :2], box.high[0, :2])), list(vertices(box.low[0, 2:], box.high[0, 2:]))
    for pair, successors in enumerate(box.successors):
        values = (paid[pair] + h[successors]).reshape(2, 3)
        nested = max(p @ np.array([max(q @ row for q in seconds) for row in values]) for p in firsts)
        assert found[pair] == pytest.approx(nested, abs=1e-12)
        assert found[pair] >= max(p @ values @ q for p in firsts for q in seconds) - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_where_blocks_have_bounds_the_smaller_of_both_means_counts(seed):
    """Outcomes 0 and 3 are one block, the most expensive of which counts; 5 is impossible."""
    rng = np.random.default_rng(seed)
    box, paid = some_box(rng, [2, 3])
    blocks = np.array([[0, 1, 2, 0, 4, -1]])
    low = np.where(blocks == np.arange(6), rng.random(6) / 8, 0.0)
    high = np.where(blocks == np.arange(6), low + 0.2 + 0.3 * rng.random(6), 0.0)
    classes = np.array([0, -1, 0, 0, -1, 0])
    both = replace(box, together=BlockBounds(classes, blocks, low, high))
    h = rng.normal(size=3)
    found, alone = largest_means(both, h, paid), largest_means(box, h, paid)
    for pair, successors in enumerate(box.successors):
        values = paid[pair] + h[successors]
        values = np.array([max(values[0], values[3]), values[1], values[2], values[4]])
        kept = [0, 1, 2, 4]
        top = max(p @ values for p in vertices(low[0, kept], high[0, kept]))
        assert found[pair] == pytest.approx(min(alone[pair], top) if classes[pair] == 0 else alone[pair], abs=1e-12)


def test_no_noise_of_the_set_costs_more_than_the_bound():
    system, (low, high) = shop(Categorical(range(5), prior=1.0)), (0.1, 0.35)
    structure = system.structure
    knowledge = NoiseKnowledge(structure)
    box = NoiseBox(
        knowledge._successors, structure.contexts, np.array([5]), np.full((1, 5), low), np.full((1, 5), high)
    )
    policy = np.full((4, 4), 0.25)
    case = worst_average(
        policy, structure.fixed_costs[1].reshape(4, 4), box, paid=np.ascontiguousarray(structure.paid(1))
    )
    top = max(
        float(evaluate(system.with_noise(demand=p / p.sum()).model_for_learning(), policy).gains[1].max())
        for p in vertices(np.full(5, low), np.full(5, high))
    )
    assert top <= case.bound + 1e-12
    assert case.bound <= top + 2e-3 * 4  # the worst noise is the same in all states here


def test_the_best_policy_within_a_certificate_is_optimal_if_it_forbids_nothing_and_stays_if_it_forbids_all():
    cmdp = psconrl.load("chain")
    given, costs = np.full((8, 2), 0.5), cmdp.costs[0]
    free = best_within(cmdp.transition, costs, np.zeros((1, 8, 2)), np.ones(1), given, np.zeros((1, 8)))
    policy = given + free.share[:, None] * (free.other - given)
    assert evaluate(cmdp, policy).costs[0] == pytest.approx(plan(CMDP(cmdp.transition, costs[None])).value, abs=1e-7)
    nothing = best_within(cmdp.transition, costs, np.full((1, 8, 2), 2.0), np.ones(1), given, np.zeros((1, 8)) + 1.0)
    assert nothing.share == pytest.approx(0.0, abs=1e-7)


# Play.

PLAYED = {
    "queue": ("queue", {}, 250),
    "inventory": ("inventory", {}, 600),
    "stock": ("stock", {"items": 2, "room": 3, "load": 3, "lost": 0.3}, 250),
    "network": ("network", {"side": 4, "waiting": 1.5}, 250),
}


@pytest.mark.part(2)
@pytest.mark.statistical
@pytest.mark.parametrize("name", PLAYED)
def test_every_policy_played_in_a_system_keeps_every_limit(name):
    """Delta .01: the certificates of a run fail in at most one of 100 runs."""
    environment, options, rounds = PLAYED[name]
    system, true = load_system(environment, **options), load_system(environment, known=True, **options)
    model, agent = true.model_for_learning(), agent_for(system, true, delta=0.01)
    trace = Simulation(model, agent, 0, evaluate_policies=True).run(rounds)
    assert (np.array(trace.policies.costs)[:, 1:] - model.thresholds).max() <= 1e-9
    assert trace.policies.costs[-1][0] < evaluate(model, agent.baseline).costs[0] - 0.01
    assert (agent.excess <= agent.allowance).all()


def test_one_elimination_order_serves_all_policies_of_a_long_queue():
    """With the order of the whole system, bounds, best policies and occupancies are as with one for every policy."""
    system = System(
        state={"waiting": range(300)}, action={"clerks": [1, 2]},
        noise={"come": Bernoulli(Beta(1, 1)), "served": Bernoulli(Beta(1, 1))},
        step={"waiting": "min(max(waiting - served * (1 + (clerks == 2) * (waiting > 1)), 0) + come, 299)"},
        costs={"wages": "clerks", "queue": "waiting"}, minimise="wages", limits=["queue <= 20"],
    )  # fmt: skip
    true = system.with_noise(come=0.4, served=0.5)
    agent = agent_for(system, true)
    Simulation(true.model_for_learning(), agent, 0).run(600)
    view, certifier, plans = agent._view(0), agent._certifier, agent._plans
    assert view.order is not None
    alone = view._replace(distributions=replace(view.distributions, order=None))
    found = [certifier.bound_tightly(plans.last, one, plans.biases) for one in (view, alone)]
    assert found[0].cases[0].bound == pytest.approx(found[1].cases[0].bound, rel=1e-9)
    shares = [plans._improved(certifier, found[0], one).policy for one in (view, alone)]
    values = [evaluate(view.whole, policy).costs for policy in shares]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    occupancies = [plans._occupancy(one, plans.last) for one in (view, alone)]
    assert occupancies[0] == pytest.approx(occupancies[1], abs=1e-12)


def test_margins_vanish_if_nothing_is_unknown():
    """The confidence set is a single model: a plan needs no margin, and is played but for exploration."""
    true = load_system("queue", known=True)
    model, agent = true.model_for_learning(), agent_for(true, true)
    for _ in range(4):  # episodes, each of which corrects the margins
        chosen = agent._plans.choose(agent._certifier, agent._view(0), agent._recovery)
    assert (agent._plans.margins <= 5e-3 * model.thresholds).all()  # the iteration stops that early
    assert evaluate(model, agent._plans.last).costs[0] == pytest.approx(plan(model).costs[0], rel=2e-3)
    assert chosen.kind == "certified"


def test_plans_stay_below_the_thresholds_by_what_is_uncertain():
    """The margins settle where the certified bound of the plan is near a threshold, and not above."""
    system, true = load_system("queue"), load_system("queue", known=True)
    agent = agent_for(system, true)
    Simulation(true.model_for_learning(), agent, 0).run(400)
    view = agent._view(0)
    bounds = []
    for found in agent._plans._lowered(agent._certifier, view):
        bounds.append([case.bound for case in found.cases])
    assert (agent._plans.margins > 0.0).all()
    assert (np.array(bounds) <= agent.thresholds).all()
    assert (np.array(bounds[-1]) >= 0.8 * agent.thresholds).any()


def test_from_the_baseline_a_state_costs_what_its_recovery_says():
    """At an empty queue, opening the gate costs the recovery from one customer at most, with nothing known."""
    system, true = load_system("queue"), load_system("queue", known=True)
    agent = agent_for(system, true)
    view, certifier = agent._view(0), agent._certifier
    alone = certifier.recovering(agent.span, view)
    opened = 0  # the slowest speed, with the gate open
    moved = certifier.towards(alone, np.eye(6)[np.full(10, opened)])
    h, tau = agent.span, agent.thresholds
    share = min(
        1.0,
        *(
            agent.slack[i] / (cost + h[i, 1] - h[i, 0] - tau[i] + agent.slack[i])
            for i, cost in enumerate((0.0, 0.1))
            if cost + h[i, 1] - h[i, 0] > tau[i]
        ),
    )
    added = moved.policy[0, opened] - (1.0 - share) * agent.baseline[0, opened]
    assert added == pytest.approx(share, rel=1e-8)


def test_a_run_in_a_system_resumes_bit_for_bit(tmp_path):
    system, true = load_system("inventory"), load_system("inventory", known=True)
    model = true.model_for_learning()
    whole = Simulation(model, agent_for(system, true), seed=1).run(250, checkpoints=10)
    first = Simulation(model, agent_for(system, true), seed=1)
    first.run(170)
    first.save(tmp_path / "run.npz")
    rest = Simulation.resume(model, tmp_path / "run.npz")
    assert rest.run(250, checkpoints=[250]).cumulative[-1].tolist() == whole.cumulative[-1].tolist()


def test_it_speaks_of_the_variables_of_the_system():
    system = shop(Poisson(Gamma(2, 1), most=4))
    agent = agent_for(system, system.with_noise(demand=1.0))
    action = agent.act({"shelf": 3})
    assert set(action) == {"order"}
    agent.observe(action, {"shelf": 2})
    agent.act({"shelf": 2})
    with pytest.raises(AgentError, match="'safe' learns from transitions only"):
        agent.observe({"order": 0}, {"shelf": 1}, noise={"demand": 1})


def test_a_system_that_is_wrong_sends_it_back_to_the_baseline():
    system = shop(Categorical(range(3), prior=1.0))
    agent = agent_for(system, system.with_noise(demand=[0.3, 0.4, 0.3]))
    agent.counts.add(record := Record.empty(agent.counts))
    record.step(3, 0, 0, np.zeros(2))  # demand is 2 at most
    agent.counts.add(record)
    with pytest.warns(StructureWarning, match=r"impossible.*plays its baseline from now on"):
        episode = agent.begin(3)
    assert episode.kind == "baseline"
    assert (episode.policy == agent.baseline).all()
    assert agent.doubts()


# Bad input.


def test_bad_input_for_a_system_gets_one_line():
    system = shop(Categorical(range(3), prior=1.0))
    true = system.with_noise(demand=[0.3, 0.4, 0.3])
    with pytest.raises(AgentError, match="of needs a System"):
        SafeStart.of(true.model())
    with pytest.raises(AgentError, match="costs and ranges follow from the system"):
        agent_for(system, true, costs=np.zeros((2, 4, 4)))
    with pytest.raises(AgentError, match=r"span must hold numbers from 0 on.*\(1, 4\); got shape \(1, 5\)"):
        agent_for(system, true, span=np.zeros((1, 5)))
    with pytest.raises(AgentError, match="belief must be Structured"):
        SafeStart(4, 4, [0.4], baseline=np.full((4, 4), 0.25), slack=0.1, belief=LearnedMass())
    with pytest.raises(AgentError, match="a baseline must be given"):
        SafeStart.of(system)


def test_slow_plans_are_announced(monkeypatch):
    true = load_system("queue", known=True)
    agent = agent_for(true, true)
    assert agent.why_slow() == ""
    cells = true.structure.successors.size
    monkeypatch.setattr("psconrl.learning.safe.safe_start.PER_OUTCOME", 4.0 / cells)
    assert agent.why_slow().startswith(
        f"an episode may take 4 s of planning: every certificate looks at {cells:,} outcomes"
    )


def test_a_joint_table_is_explored_safely():
    system = System(
        state={"n": range(4)}, action={"fast": [0, 1]}, minimise="cost", limits=["late <= 0.9"],
        noise={"x, y": Joint([(0, 0), (1, 0), (1, 1)], prior=1)}, step={"n": "min(max(n - fast, 0) + x, 3)"},
        costs={"cost": "fast + y", "late": "n == 3"},
    )  # fmt: skip
    assert NoiseIntervals(system.structure).number == 3
    agent = SafeStart.of(system, baseline=np.eye(2)[[1] * 4], slack=0.1, seed=1)
    psconrl.simulate(system.with_noise(**{"x, y": [0.6, 0.3, 0.1]}), agent, 200, seed=2)
    assert not agent.doubts()
