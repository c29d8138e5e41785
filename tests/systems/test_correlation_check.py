"""Noises that depend on each other are found and named where both are reported; the formula of the test, by hand."""

import itertools
import math
import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import psconrl
from psconrl.errors import AdviceWarning, StructureWarning
from psconrl.learning.posterior.checks.correlation_check import CorrelationCheck, log_evidence
from psconrl.learning.posterior.checks.distribution_check import FALSE_ALARMS
from psconrl.learning.posterior.checks.structure_advice import correlation_text
from psconrl.learning.posterior.checks.structure_check import StructureCheck
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def station(noise, arriving="arriving", sky="sky"):
    """Arrivals are served from a stock, and cost more under a sky of 1. ``noise``: two, or one that stands for both."""
    return System(
        state={"n": range(4)}, action={"order": range(3)}, noise=noise,
        step={"n": f"min(max(n - ({arriving}), 0) + order, 3)"}, minimise="lost", start={"n": 3},
        costs={"lost": f"(1 + ({sky})) * max(({arriving}) - n, 0) + 0.1 * order"},
    )  # fmt: skip


POISSON = {"arriving": Poisson(Gamma(2, 1), most=12), "sky": Bernoulli(Beta())}


def reports(system, rounds):
    """Counts of rounds (state, noise) that stay in the state, in which the noise that is not None was seen."""
    structure, names = system.structure, list(system.structure.randomness.noises)
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record, S, W = Record.empty(counts), structure.n_states, structure.randomness.n_outcomes
    for state, values in rounds:
        pair = state * structure.n_actions
        seen = [values[name] is not None for name in names]
        outcome = np.ravel_multi_index([values[name] or 0 for name in names], structure.randomness.sizes)
        record.step(state, 0, state, np.zeros(len(structure.fixed_costs)))
        bits = sum(1 << k for k, one in enumerate(seen) if one)
        record.noise.note(pair * S + state, bits, (int(structure.contexts[pair]) * W + int(outcome),))
    counts.add(record)
    return counts


def by_hand(rows):
    """E of rows (context, b, a, k): predictions one by one, over the largest likelihood."""
    top, seen = Fraction(1), {}
    for g, b, a, k in rows:
        earlier = [x for x in seen if x[:2] == (g, b)]
        n = sum(seen[x] for x in earlier)
        top *= (seen.get((g, b, a), 0) + Fraction(1, 2)) / (n + Fraction(k, 2))
        seen[g, b, a] = seen.get((g, b, a), 0) + 1
    for g, a in {(g, a) for g, _, a, _ in rows}:
        n = sum(row[0] == g for row in rows)
        here = sum(row[0] == g and row[2] == a for row in rows)
        top /= Fraction(here, n) ** here
    return math.log(top)


def test_evidence_by_hand():
    """A has two values in context 0, and three in context 4."""
    rows = [(0, 0, 0, 2)] * 3 + [(0, 1, 1, 2)] * 2 + [(0, 1, 0, 2)]
    rows += [(4, 0, 2, 3)] * 4 + [(4, 0, 1, 3)] + [(4, 7, 0, 3)] * 5
    g, b, a, k = np.array(rows).T
    assert log_evidence(g, b, a, np.ones(len(rows)), k) == pytest.approx(by_hand(rows), abs=1e-12)
    # (3/8 5/16 at b = 0) over (2/5)^2 (3/5)^3: b = 0 came with 0 twice, and b = 1 with 1 three times.
    two = log_evidence(np.zeros(2, dtype=int), np.arange(2), np.arange(2), np.array([2.0, 3.0]), np.array([2, 2]))
    assert two == pytest.approx(math.log(3 / 8 * 5 / 16 / (0.4**2 * 0.6**3)), abs=1e-12)
    nothing = np.empty(0, dtype=np.int64)
    assert log_evidence(nothing, nothing, nothing, np.empty(0), nothing) == 0.0


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_it_is_reached_as_rarely_as_ville_says(p):
    """All sequences of five rounds with their probabilities; B depends on the value of A in the round before."""

    @cache
    def log(a, b):
        zeros = np.zeros(len(a), dtype=int)
        return log_evidence(zeros, np.array(b), np.array(a), np.ones(len(a)), zeros + 2)

    bound, reached, mean = 1.5, 0.0, 0.0
    for xs in itertools.product((0, 1), repeat=10):
        a, b = np.array(xs[:5]), np.array(xs[5:])
        given = np.where(np.append(0, a[:-1]) == 1, 0.7, 0.1)
        probability = math.prod(np.where(a == 1, p, 1 - p)) * math.prod(np.where(b == 1, given, 1 - given))
        logs = [log(xs[:t], xs[5 : 5 + t]) for t in range(1, 6)]
        reached += probability * (max(logs) >= math.log(bound))
        mean += probability * math.exp(logs[-1])
    assert 0.0 < mean <= 1.0
    assert 0.0 < reached <= 1 / bound


def test_the_mean_over_few_classes_and_all_values():
    """Eight values of equal probability have the quartiles 01, 23, 45 and 67."""
    eight = Categorical(range(8), [1 / 8] * 8)
    system = station({"sky": Bernoulli(Beta()), "arriving": eight})
    rounds = [(0, {"arriving": a, "sky": b}) for a, b in [(0, 0), (1, 0), (1, 0), (6, 1), (7, 1), (4, 1), (4, 0)]]
    alone = [(0, {"arriving": 3, "sky": None}), (0, {"arriving": None, "sky": 1})]
    check = CorrelationCheck(system.structure)
    assert check.pairs == [("arriving", "sky")]
    assert check.evidence(reports(system, alone)) == {}
    found = check.evidence(reports(system, rounds + alone))
    few = by_hand([(0, x["sky"], x["arriving"] // 2, 4) for _, x in rounds])
    each = by_hand([(0, x["sky"], x["arriving"], 8) for _, x in rounds])
    exact = math.log((math.exp(few) + math.exp(each)) / 2)
    assert found == {"arriving": {"sky": pytest.approx(exact, abs=1e-12)}}


def test_the_other_noise_has_two_classes_and_all_values():
    """Of two with as many contexts and values, the first is tested; halves of the second are 1 to 4 and 5 to 9."""
    six = Categorical(range(6), [0.4, 0.1, 0.1, 0.2, 0.1, 0.1])
    sky = Categorical([9, 1, 2, 3, 4, 5], [0.4, 0.08, 0.28, 0.08, 0.08, 0.08])
    system, quartile, half = station({"arriving": six, "sky": sky}), [0, 1, 2, 2, 3, 3], [1, 0, 0, 0, 0, 1]
    places = [(0, 1), (1, 2), (1, 1), (5, 0), (4, 5), (4, 3), (3, 1), (2, 2)]
    few = by_hand([(0, half[b], quartile[a], 4) for a, b in places])
    each = by_hand([(0, b, a, 6) for a, b in places])
    found = CorrelationCheck(system.structure).evidence(
        reports(system, [(0, {"arriving": a, "sky": b}) for a, b in places])
    )
    exact = math.log((math.exp(few) + math.exp(each)) / 2)
    assert found == {"arriving": {"sky": pytest.approx(exact, abs=1e-12)}}


def test_texts_have_a_class_each():
    texts = Categorical(["a", "b", "c", "d", "e"], [0.2] * 5)
    system = station({"arriving": texts, "sky": Bernoulli(0.5)}, "1 if arriving == 'a' else 0")
    places = [(0, 1), (1, 0), (1, 0), (4, 0), (0, 1), (3, 1)]
    found = CorrelationCheck(system.structure).evidence(
        reports(system, [(0, {"arriving": a, "sky": b}) for a, b in places])
    )
    exact = by_hand([(0, b, a, 5) for a, b in places])
    assert found == {"arriving": {"sky": pytest.approx(exact, abs=1e-12)}}


def test_rounds_in_which_a_noise_has_one_value_only_are_left_out():
    """The sky varies in state 1 only; so do arrivals in states 1 and 2, whose possible values are 0 to n."""
    system = station({"arriving": Binomial("n", Beta()), "sky": Bernoulli(Beta(), when="n == 1 or n == 2")})
    rounds = [(1, 1, 1), (1, 0, 0), (2, 2, 1), (2, 0, 0), (2, 2, 1)]
    others = [(0, 0, 0), (3, 2, 0), (3, 1, 0)]
    given = [(n, {"arriving": a, "sky": b}) for n, a, b in rounds + others]
    check = CorrelationCheck(system.structure)
    assert check.pairs == [("sky", "arriving")]  # two contexts, and not four
    exact = by_hand([(0, a, b, 2) for _, a, b in rounds])
    assert check.evidence(reports(system, given)) == {"sky": {"arriving": pytest.approx(exact, abs=1e-12)}}


def test_rounds_in_which_the_other_noise_has_one_value_only_are_left_out():
    """Both have three contexts, and arrivals more values; below 2 the sky is always 0."""
    system = station({"arriving": Binomial("max(n, 1)", Beta()), "sky": Bernoulli("max(n - 1, 0) / 6")})
    rounds = [(2, 2, 1), (2, 0, 0), (3, 3, 1), (2, 2, 0), (3, 1, 0)]
    given = [(n, {"arriving": a, "sky": b}) for n, a, b in [*rounds, (1, 0, 0), (1, 1, 0), (0, 1, 0)]]
    check = CorrelationCheck(system.structure)
    assert check.pairs == [("arriving", "sky")]
    exact = by_hand([(n, b, a, n + 1) for n, a, b in rounds])
    assert check.evidence(reports(system, given)) == {"arriving": {"sky": pytest.approx(exact, abs=1e-12)}}


def test_independence_given_contexts_is_no_evidence():
    """Both noises depend on the state, as the system says; an alarm has a probability of 1/1000 at most."""
    system = station({"arriving": Binomial(3, "0.1 + 0.25 * n"), "sky": Bernoulli("0.1 + 0.25 * n")})
    rng = np.random.default_rng(1)
    states = rng.integers(4, size=1500)
    p = 0.1 + 0.25 * states
    a, b = rng.binomial(3, p), (rng.random(1500) < p).astype(int)
    rounds = [(n, {"arriving": x, "sky": y}) for n, x, y in np.column_stack([states, a, b]).tolist()]
    log = CorrelationCheck(system.structure).evidence(reports(system, rounds))["arriving"]["sky"]
    without = log_evidence(0 * states, b, a, np.ones(1500), 0 * states + 4)
    assert log < math.log(1 / FALSE_ALARMS) < 50 < without


def test_the_number_of_tests():
    three = station({"arriving": Binomial(2, Beta()), "sky": Bernoulli(Beta()), "x": Bernoulli(0.5)}, sky="sky + x")
    one = station({"arriving": Binomial(2, Beta()), "sky": Categorical([1], [1.0])})
    timed = System(
        state={"n": 3}, action={"wait": 1}, clock=4.0, costs={}, minimise="n",
        events={"up": Event(1.0, {"n": "n + 1"}, when="n < 2"), "down": Event(1.0, {"n": "n - 1"}, when="n > 0")},
    )  # fmt: skip
    assert [CorrelationCheck(each.structure).number for each in (three, one, timed)] == [3, 0, 0]
    check = StructureCheck(three.structure)
    others = len(check._distribution.tested) + check._dependence.number + check._joint.number
    assert check.number == others + 3


# Live.


def play(system, draw, rounds, seed):
    rng, n = np.random.default_rng(seed), 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)
        warnings.simplefilter("ignore", AdviceWarning)  # the sky is seen only if it is reported
        agent = psconrl.PSConRL.of(system, seed=seed)
        for _ in range(rounds):
            order = agent.act({"n": n})["order"]
            arriving, noise = draw(rng)
            n = min(max(n - arriving, 0) + order, 3)
            agent.observe({"order": order}, {"n": n}, noise=noise)
        agent.finish()
        agent.begin(0)
    return agent


def common_cause(rng):
    """A mean of 2.1 under a sky of 1, else of 0.9."""
    sky = int(rng.random() < 0.5)
    arriving = min(int(rng.poisson(2.1 if sky else 0.9)), 12)
    return arriving, {"arriving": arriving, "sky": sky}


def copula(rng):
    """The sky is 1 if a normal variable is positive that correlates by 0.7 with that of the arrivals."""
    x = rng.normal()
    y = 0.7 * x + math.sqrt(1 - 0.7**2) * rng.normal()
    u, arriving, tail = 0.5 * math.erfc(-x / math.sqrt(2)), 0, math.exp(-1.5)
    total = tail
    while u > total and arriving < 12:
        arriving += 1
        tail *= 1.5 / arriving
        total += tail
    return arriving, {"arriving": arriving, "sky": int(y > 0)}


def independent(rng):
    arriving = min(int(rng.poisson(1.5)), 12)
    return arriving, {"arriving": arriving, "sky": int(rng.random() < 0.5)}


@pytest.mark.parametrize("draw", [common_cause, copula])
def test_noises_that_depend_on_each_other_are_named(draw, tmp_path):
    agent = play(station(POISSON), draw, 450, 1)
    (doubt,) = agent.doubts()
    assert doubt.startswith("arriving and sky depend on each other (arriving is on average ")
    assert '"arriving, sky": Joint(itertools.product(range(13), range(2)), prior=1), or let one of them' in doubt
    agent.finish()
    agent.save(tmp_path / "agent.npz")
    again, structure = psconrl.load_agent(tmp_path / "agent.npz"), station(POISSON).structure
    one, two = (CorrelationCheck(structure).evidence(each.counts) for each in (agent, again))
    assert one == two
    assert again.doubts() == (doubt,)


def test_a_common_cause_that_is_a_variable_is_named_instead():
    """Both depend on the hour; the system says so of the sky only."""
    system = System(
        state={"hour": 2, "n": 3}, action={"wait": 1}, costs={"c": "n"}, minimise="c",
        noise={"arriving": Bernoulli(Beta()), "sky": Bernoulli("0.2 + 0.6 * hour")},
        step={"hour": "1 - hour", "n": "arriving + sky"},
    )  # fmt: skip
    rng, agent, state = np.random.default_rng(1), psconrl.PSConRL.of(system, seed=1), {"hour": 0, "n": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)
        for _ in range(600):
            agent.act(state)
            p = {"arriving": 0.25 + 0.5 * state["hour"], "sky": 0.2 + 0.6 * state["hour"]}
            noise = {name: int(rng.random() < p[name]) for name in p}
            state = {"hour": 1 - state["hour"], "n": sum(noise.values())}
            agent.observe({"wait": 0}, state, noise=noise)
        agent.finish()
        agent.begin(0)
    assert CorrelationCheck(system.structure).evidence(agent.counts)["arriving"]["sky"] > 10.0
    assert [doubt.split(" (")[0] for doubt in agent.doubts()] == ["arriving depends on hour"]


def test_silent_on_noises_that_are_independent(full):
    """The probability of an alarm is at most 2/1000 in each run: 3 runs have one with probability 0.006 at most."""
    for seed in range(30 if full else 3):
        assert play(station(POISSON), independent, 300, seed).doubts() == ()


def test_the_remedy_ends_the_doubt():
    """One joint table; an alarm has a probability of 2/1000 at most."""
    system = station({"arriving, sky": Joint(itertools.product(range(13), range(2)), prior=1)})
    agent = play(system, common_cause, 450, 1)
    assert agent.doubts() == ()
    shares = agent.belief.parameters["arriving, sky"].reshape(13, 2)
    means = (np.arange(13)[:, None] * shares).sum(axis=0) / shares.sum(axis=0)
    assert means[0] + 0.5 < means[1]


@pytest.mark.parametrize(
    ("values", "by", "times", "said"),
    [
        (2, 3, [[4, 0], [1, 3], [0, 0]],
         ("average 0 when b is 0, 0.75 when b is 1)", '"a, b": Joint(itertools.product(range(2), range(3))')),
        (["few", "many"], 2, [[9, 1], [1, 1]],
         ("few in a share of 0.9 when b is 0, 0.5 when b is 1)", "(['few', 'many'], range(2))")),
        ([3, 5], ["x", "y"], [[4, 0], [0, 4]], ("3 when b is x, 5 when b is y)", "([3, 5], ['x', 'y'])")),
        (2, 5, [[2, 0], [2, 0], [0, 1], [0, 1], [2, 2]], ("0.2 when b is at most 2, 0.6 when b is above 2)",)),
        (10.5 + np.arange(9), 2, np.ones((2, 9)), ("itertools.product([the values of a], range(2))",)),
    ],
)  # fmt: skip
def test_a_doubt_says_what_was_found(values, by, times, said):
    both = (np.arange(each) if isinstance(each, int) else np.array(each) for each in (values, by))
    text = correlation_text("a", next(both), "b", next(both), np.array(times, dtype=float))
    assert text.startswith("a and b depend on each other (a is ")
    assert all(part in text for part in said)
