"""Noises that vary too much, in fits or together are found where next states, costs and reports show it."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

import psconrl
from psconrl.errors import AdviceWarning, AgentError, StructureWarning
from psconrl.learning.posterior.checks.dependence_check import DependenceCheck
from psconrl.learning.posterior.checks.fluctuation_check import (
    DISPERSION,
    DRAWN_AGAIN,
    FITS,
    INTERACTIONS,
    NODES,
    SHARES,
    SPREADS,
    FluctuationCheck,
    _interactions,
)
from psconrl.learning.posterior.checks.joint_check import JointCheck
from psconrl.learning.posterior.checks.result_likelihood import ResultLikelihood
from psconrl.learning.posterior.checks.round_results import CELLS, TRANSITION, RoundResults
from psconrl.learning.posterior.checks.structure_check import CONSIDERED, OF_FITS, StructureCheck
from psconrl.learning.posterior.checks.variables import TIME, varying_variables
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Categorical, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System
from sweeps import AtOnce


def counter(noise, shown="x"):
    """A system that shows its noise, or part of it, in every round."""
    return System(
        state={"n": range(9)}, action={"wait": 1}, noise=noise, step={"n": shown}, costs={"c": "n"}, minimise="c"
    )


def kiosk():
    """Neither demand nor spoilage shows in the state: the costs show only their sum."""
    return System(
        state={"day": 2}, action={"make": range(2, 6)}, minimise="money",
        noise={"demand": Poisson(Gamma(6, 3), most=9), "spoilt": Binomial(3, 0.3)},
        step={"day": "1 - day"},
        costs={"money": "make + 2 * max(demand + spoilt - make, 0)", "over": "demand + spoilt"},
    )  # fmt: skip


def line():
    return System(
        state={"n": range(6)}, action={"wait": 1}, clock=4.0, costs={"queue": "n"}, minimise="queue",
        events={"up": Event(Gamma(2, 2), {"n": "n + 1"}, when="n < 5"),
                "down": Event(Gamma(2, 2), {"n": "n - 1"}, when="n > 0")},
    )  # fmt: skip


def numbered(system, **values):
    return system.state_number(values)


def joint_check(system):
    words = system.vocabulary()
    return JointCheck(system.structure, [], DependenceCheck(system.structure, [], words))


class Live:
    """Rounds that are counted one by one, with what a user reports."""

    def __init__(self, system):
        self.structure, self.words = system.structure, system.vocabulary()
        self.counts = Counts(self.structure.n_states, self.structure.n_actions, len(self.structure.fixed_costs))
        self.record = Record.empty(self.counts)

    def round(self, s, a, t, reported=0, cells=(), paid=False):
        self.record.step(s, a, t, np.zeros(len(self.structure.fixed_costs)))
        number = (s * self.structure.n_actions + a) * self.structure.n_states + t
        if reported:
            self.record.noise.note(number, reported, cells)
        elif paid:
            self.record.noise.note_paid(number, cells)
        return number

    def follow(self, number, cells, times=1):
        self.record.noise.follow(number, cells, times)

    def seen(self):
        self.counts.add(self.record)
        self.record.clear()
        return self.counts


# Results of rounds.


def both():
    """The sum of two binary noises."""
    return counter({"x": Bernoulli(0.3), "y": Bernoulli(Beta())}, "x + y")


def test_a_result_is_the_set_of_outcomes_that_agree_with_what_was_seen():
    system = both()
    live, results = Live(system), RoundResults(system.structure)
    zero, one = numbered(system, n=0), numbered(system, n=1)
    live.round(zero, 0, one)
    live.round(zero, 0, one)
    live.round(zero, 0, one, reported=0b01, cells=(2,))  # x = 1, so y = 0
    live.round(one, 0, zero, paid=True, cells=(0,))
    rounds = results.new(live.seen())
    sets = {}
    for pair, result, times in zip(rounds.pairs, rounds.results, rounds.times, strict=True):
        cells = results.cells([result])
        sets[int(pair), tuple(cells.outcomes.tolist())] = times
    assert sets == {(zero, (1, 2)): 2.0, (zero, (2,)): 1.0, (one, (0,)): 1.0}
    live.round(zero, 0, one)
    again = results.new(live.seen())
    assert (again.times.tolist(), again.order) == ([1.0], None)


def test_the_order_of_rounds_is_known_if_all_were_noted():
    system = both()
    live, results = Live(system), RoundResults(system.structure)
    zero, one = numbered(system, n=0), numbered(system, n=1)
    for s, t, cells in ((zero, one, ()), (one, zero, ()), (zero, one, (2,))):
        live.follow(live.round(s, 0, t, int(bool(cells)), cells), cells)
    order = results.new(live.seen()).order
    assert [results.results[k][0] for k in order] == [TRANSITION, TRANSITION, CELLS]
    assert order[0] != order[1]
    live.follow(live.round(zero, 0, one), ())
    live.round(zero, 0, one)
    assert results.new(live.seen()).order is None


def test_rounds_noted_before_they_are_counted_wait_for_the_next_look():
    """As when a plan is made in a thread: the rounds played meanwhile are counted later."""
    system = both()
    live, results = Live(system), RoundResults(system.structure)
    zero, one = numbered(system, n=0), numbered(system, n=1)
    live.follow(live.round(zero, 0, one), ())
    counts, later = live.seen(), live.round(one, 0, zero)
    live.follow(later, ())
    first = results.new(counts)
    second = results.new(live.seen())
    assert [results.results[k] for rounds in (first, second) for k in rounds.order] == results.results
    assert len(results.results) == 2


def test_time_that_no_transition_was_seen_in_has_no_order():
    system = both()
    live, results = Live(system), RoundResults(system.structure)
    zero, one = numbered(system, n=0), numbered(system, n=1)
    number = live.round(zero, 0, one)
    live.round(zero, 0, one)
    live.record.noise.note_ticks(number, 1)
    live.follow(-1, ())
    live.follow(number, ())
    rounds = results.new(live.seen())
    assert (rounds.order.tolist(), rounds.times.tolist()) == ([0], [1.0])


def test_results_survive_saving():
    system = both()
    live, results = Live(system), RoundResults(system.structure)
    zero, one = numbered(system, n=0), numbered(system, n=1)
    live.follow(live.round(zero, 0, one, 0b01, (2,)), (2,))
    results.new(live.seen())
    live.follow(live.round(zero, 0, one), ())
    again = RoundResults(system.structure)
    again.restore(results.state())
    live.round(one, 0, zero)
    counts = live.seen()
    first, second = results.new(counts), again.new(counts)
    np.testing.assert_equal(tuple(first), tuple(second))
    assert results.results == again.results
    damaged = results.state()
    damaged["results"][0] = [1, 99]
    with pytest.raises(AgentError, match="results/0: must be a kind of result"):
        RoundResults(system.structure).restore(damaged)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("counts", [{0: 5, 1: 9, 2: 2}, {0: 1, 1: 30, 2: 0}, {0: 50, 1: 1, 2: 20}])
def test_the_largest_likelihood_of_joint_results(counts, free):
    """x with p = .3 and y with an unknown one: the best of a fine grid, by the formula."""
    system = counter({"x": Bernoulli(0.3), "y": Categorical(range(2), prior=1)}, "x + y") if free else both()
    live, results = Live(system), RoundResults(system.structure)
    for n, times in counts.items():
        for _ in range(times):
            live.round(0, 0, numbered(system, n=n))
    rounds = results.new(live.seen())
    times = np.bincount(rounds.results, weights=rounds.times)
    found, at = ResultLikelihood(system.structure, results).largest(times, {"y": np.full(1 + free, 0.5)})
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    shares = [0.7 * (1 - grid), 0.3 * (1 - grid) + 0.7 * grid, 0.3 * grid]
    logs = sum(n * np.log(p) for n, p in zip(counts.values(), shares, strict=True))
    assert found == pytest.approx(logs.max(), abs=1e-3)
    assert at["y"][-1] == pytest.approx(grid[logs.argmax()], abs=2e-2)


def seen_together(system, table):
    """Results, sets of joint outcomes that were seen some times, and these times; outcomes are in one context."""
    live, results = Live(system), RoundResults(system.structure)
    for outcomes in table:
        live.round(0, 0, numbered(system, n=0), reported=1, cells=outcomes)
    results.new(live.seen())
    return results, np.array([table[tuple(cells)] for _, *cells in results.results], dtype=float)


@pytest.mark.parametrize("start", [0.2, 0.5, 0.9])
def test_the_largest_likelihood_where_only_a_product_is_well_known(start):
    """Of 10,000 rounds, x y = 1 in 3,000; x alone was 1 in 14 of 20 others: x = 0.7 and y = 0.3 / 0.7 fit both."""
    system = counter({"x": Bernoulli(Beta()), "y": Bernoulli(Beta())}, "x * y")
    results, times = seen_together(system, {(3,): 3000, (0, 1, 2): 7000, (2, 3): 14, (0, 1): 6})
    exact = sum(n * math.log(p) for n, p in ((3000, 0.3), (7000, 0.7), (14, 0.7), (6, 0.3)))
    near = {"x": np.array([start]), "y": np.array([0.3 / max(start, 0.31)])}
    found, _ = ResultLikelihood(system.structure, results).largest(times, near)
    assert exact - 2e-2 <= found <= exact + 1e-9


def test_the_largest_likelihood_among_several_local_ones():
    """Whether one of two trials succeeded is as probable under 1 - p; a few rounds that show both tell p = 0.8."""
    system = counter({"k": Binomial(2, Beta()), "j": Bernoulli(Beta())}, "(k == 1) + j")
    places = {(k, j): 2 * k + j for k in range(3) for j in range(2)}
    one = tuple(places[1, j] for j in range(2))
    other = tuple(places[k, j] for k in (0, 2) for j in range(2))
    both = tuple(places[2, j] for j in range(2))
    results, times = seen_together(system, {one: 3200, tuple(sorted(other)): 6800, both: 20})
    likelihood, start = ResultLikelihood(system.structure, results), {"k": np.array([0.2]), "j": np.array([0.5])}
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    ways = 2 * grid * (1 - grid)
    exact = (3200 * np.log(ways) + 6800 * np.log1p(-ways) + 20 * np.log(grid**2)).max()
    assert likelihood.largest(times, start)[0] < exact - 20.0
    assert likelihood.largest_of(times, [start]) == pytest.approx(exact, abs=2e-3)


def test_the_largest_likelihood_of_noises_that_are_alike():
    """The sum of two noises is as probable if they are exchanged: where they are equal, searches have no direction."""
    values = {"x": Categorical(range(2), prior=1), "y": Categorical(range(2), prior=1)}
    system = counter(values, "x + y")
    results, times = seen_together(system, {(0,): 90, (1, 2): 820, (3,): 90})
    exact = 180 * math.log(0.09) + 820 * math.log(0.82)  # 0.9 and 0.1
    start = {"x": np.full(2, 0.5), "y": np.full(2, 0.5)}
    near = {"x": np.array([0.7, 0.3]), "y": np.array([0.3, 0.7])}
    likelihood = ResultLikelihood(system.structure, results)
    assert likelihood.largest(times, start)[0] < exact - 100.0
    assert likelihood.largest_of(times, [start, near]) == pytest.approx(exact, abs=2e-3)


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("shown", ["x * y", "(x + y) % 2", "x + y", "min(x, 1) + (y > x)"])
def test_no_other_search_finds_a_larger_likelihood(shown, seed):
    """Nelder and Mead's method from ten places, for 5,000 rounds of joint results and 20 that show both noises."""
    rng = np.random.default_rng(seed)
    system = counter({"x": Binomial(2, Beta()), "y": Bernoulli(Beta())}, shown)
    true, sets = system.structure.table({name: rng.uniform(0.05, 0.95, 1) for name in "xy"})[0], {}
    for outcome, state in enumerate(system.structure.successors[0].tolist()):
        sets.setdefault(state, []).append(outcome)
    table = {tuple(some): rng.binomial(5000, true[some].sum()) for some in sets.values()}
    for outcome, times in enumerate(rng.multinomial(20, true).tolist()):
        table[outcome,] = table.get((outcome,), 0) + times
    results, times = seen_together(system, table)
    likelihood = ResultLikelihood(system.structure, results)

    def loss(odds):
        return -likelihood.log(times, {k: 1 / (1 + np.exp(-odds[[i]])) for i, k in enumerate("xy")})

    options = {"xatol": 1e-6, "fatol": 1e-6, "maxiter": 2000}
    places = rng.normal(scale=1.5, size=(10, 2))
    other = -min(minimize(loss, place, method="Nelder-Mead", options=options).fun for place in places)
    starts = [{"x": np.array([0.5]), "y": np.array([0.5])}, {"x": np.array([0.2]), "y": np.array([0.7])}]
    assert likelihood.largest_of(times, starts) >= other - 0.1


# The numerators, by hand.


def logit_shifted(p, eta):
    odds = p / (1 - p) * np.exp(eta)
    return odds / (1 + odds)


def tilts_of(p, deviation):
    """By spread, the tilts of a probability: sigma times the nodes, less sigma^2 (1 - 2 p) / 2."""
    return [s / max(deviation, 0.5) * NODES - 0.5 * (s / max(deviation, 0.5)) ** 2 * (1 - 2 * p) for s in SPREADS]


def added(system, values, order):
    """What rounds with these values of n add to the numerators, and the check."""
    check = FluctuationCheck(system.structure, tuple(system.structure.randomness.noises))
    live, results = Live(system), RoundResults(system.structure)
    table = system.structure.table(system.structure.randomness.initial())
    check.plug_in(table)
    for value in values:
        number = live.round(0, 0, numbered(system, n=value))
        if order:
            live.follow(number, ())
    rounds = results.new(live.seen())
    seen = np.unique(rounds.results)
    times = np.bincount(rounds.results, weights=rounds.times)[seen]
    placed = None if rounds.order is None else np.searchsorted(seen, rounds.order)
    assert (placed is not None) == order
    check.add(results.cells(seen), times, placed, table)
    return check


def test_dispersion_is_a_mixture_of_binomial_distributions():
    p, values = 0.3, [0, 0, 3, 1]
    check = added(counter({"x": Binomial(3, p)}), values, order=False)
    exact = []
    for etas in tilts_of(p, math.sqrt(3 * p * (1 - p))):
        q = logit_shifted(p, etas)
        pmf = {k: float((SHARES * math.comb(3, k) * q**k * (1 - q) ** (3 - k)).sum()) for k in set(values)}
        exact.append(sum(math.log(pmf[k]) for k in values))
    assert check._logs["x", DISPERSION].tolist() == pytest.approx(exact, abs=1e-9)


def test_fits_are_a_sum_over_all_paths():
    """The tilt is drawn again with probability h after each round: all paths of the tilts in three rounds."""
    p, values = 0.3, [1, 1, 0]
    check = added(counter({"x": Bernoulli(p)}), values, order=True)
    exact = []
    for h in DRAWN_AGAIN:
        move = (1 - h) * np.eye(NODES.size) + h * SHARES
        for etas in tilts_of(p, 0.0):
            q = logit_shifted(p, etas)
            total = 0.0
            for path in itertools.product(range(NODES.size), repeat=3):
                share = SHARES[path[0]] * math.prod(move[a, b] for a, b in itertools.pairwise(path))
                total += share * math.prod(q[k] if value else 1 - q[k] for k, value in zip(path, values, strict=True))
            exact.append(math.log(total))
    assert check._logs["x", FITS].tolist() == pytest.approx(exact, abs=1e-9)


def test_without_an_order_a_tilt_lasts_until_the_next_look():
    p, values = 0.3, [1, 1, 0]
    check = added(counter({"x": Bernoulli(p)}), values, order=False)
    exact = [math.log((SHARES * q**2 * (1 - q)).sum()) for q in (logit_shifted(p, e) for e in tilts_of(p, 0.0))]
    assert check._logs["x", FITS].tolist() == pytest.approx(exact * DRAWN_AGAIN.size, abs=1e-9)


def test_an_interaction_keeps_the_marginal_distributions_and_has_its_odds_ratio():
    p, q = 0.3, 0.6
    one = np.outer([1 - p, p], [1 - q, q])
    for kappa, factors in zip(INTERACTIONS, _interactions(one[None])[0], strict=True):
        found = one * factors
        assert found.sum(axis=1).tolist() == pytest.approx([1 - p, p], abs=1e-12)
        if abs(kappa) < 1.0:  # a stronger one takes more fittings than are made
            assert found.sum(axis=0).tolist() == pytest.approx([1 - q, q], abs=1e-6)
        odds = found[0, 0] * found[1, 1] / found[0, 1] / found[1, 0]
        # Ranks of a binary noise differ by 1/2, and have half its standard deviation.
        assert math.log(odds) == pytest.approx(kappa / math.sqrt(p * (1 - p) * q * (1 - q)), rel=1e-9)


@pytest.mark.parametrize("p", [1e-3, 1e-6, 1e-13, 1e-200, 1e-310, 0.0])
@pytest.mark.parametrize("q", [0.3, 1e-3, 1e-6, 1e-200, 0.0])
def test_interactions_of_rare_values_are_probabilities(p, q):
    """Ranks of values that are nearly impossible are far from the others: numbers stay finite, and sum to one."""
    for one, two in itertools.product(([1 - p, p], [p, 1 - p]), ([1 - q, q], [0.0, q, 1 - q])):
        both = np.outer(one, two)[None]
        factors = _interactions(both)
        assert np.isfinite(factors).all()
        assert (factors >= 0.0).all()
        assert (both * factors[0]).sum(axis=(1, 2)).tolist() == pytest.approx([1.0] * INTERACTIONS.size, abs=1e-9)


def test_a_noise_that_is_nearly_certain_does_not_end_the_test():
    """The evidence stays a number, so that other noises are still tested, and an agent can be saved."""
    check = added(counter({"x": Bernoulli(1e-6), "y": Bernoulli(1e-4)}, "x + y"), [0, 0, 1, 0, 2], order=True)
    assert all(np.isfinite(logs).all() for logs in check._logs.values())


@pytest.mark.parametrize("order", [True, False])
def test_numerators_are_probabilities(order):
    """Over all sequences of four rounds they sum to one, for every noise and cause."""
    system = counter({"x": Binomial(2, 0.3), "y": Bernoulli(0.6)}, "x + y")
    sums = {}
    for values in itertools.product(range(4), repeat=4):
        for key, logs in added(system, values, order)._logs.items():
            # Without an order, a sequence stands for itself alone: the sum over sequences counts all.
            sums[key] = sums.get(key, 0.0) + np.exp(logs)
    assert set(sums) == {("x", FITS), ("x", DISPERSION), ("y", FITS), ("x", "y")}
    for total in sums.values():
        assert total.tolist() == pytest.approx([1.0] * total.size, abs=1e-9)


@pytest.mark.parametrize("p", [0.3, 0.5])
def test_it_is_reached_as_rarely_as_ville_says(p):
    """All sequences of six rounds of an unknown probability, with looks in between; nothing is simulated."""
    system, bound = counter({"x": Bernoulli(Beta(2, 2))}), 1.3
    reached, mean = 0.0, 0.0
    for values in itertools.product((0, 1), repeat=6):
        check, live, near, largest = joint_check(system), Live(system), 0.5, -np.inf
        for t, value in enumerate(values):
            live.follow(live.round(0, 0, numbered(system, n=value)), ())
            near = (2 + sum(values[: t + 1])) / (4 + t + 1)
            logs = check.evidence(live.seen(), {"x": np.array([near])}, -np.inf)
            largest = max(largest, logs["x"][FITS]) if logs else largest
        probability = p ** sum(values) * (1 - p) ** (6 - sum(values))
        reached += probability * (largest >= math.log(bound))
        mean += probability * math.exp(logs["x"][FITS])
    assert 0.0 < mean <= 1.0
    assert reached <= 1 / bound


def test_noises_that_do_not_always_show_are_tested_with_others():
    assert joint_check(both()).names == ("x", "y")
    assert joint_check(counter({"x": Binomial(3, 0.3)}, "min(x, 1)")).names == ()  # there is no other
    three = {"x": Binomial(2, 0.3), "y": Bernoulli(0.5), "z": Bernoulli(0.5)}
    assert joint_check(counter(three, "x + 3 * y + 0 * z")).names == ("z",)


def test_what_is_tested():
    names = tuple("abx")
    noise = {"a": Binomial(3, 0.3), "b": Bernoulli(0.5), "x": Categorical(range(3), prior=1)}
    check = FluctuationCheck(counter(noise, "a + b + x").structure, names)
    assert {name for name, cause in check._logs if cause == FITS} == set(names)
    assert {name for name, cause in check._logs if cause == DISPERSION} == {"a"}
    assert {key for key in check._logs if key[1] in names} == {("a", "b"), ("a", "x"), ("b", "x")}
    assert check.number == 3 + 1 + 3
    events = FluctuationCheck(line().structure, ("up", "down"))
    assert set(events._logs) == {("up", FITS), ("down", FITS), ("up and down", FITS)}


def test_fits_are_named_only_if_they_explain_much_more_than_a_change():
    system = counter({"x": Bernoulli(Beta())})
    check = StructureCheck(system.structure, system.vocabulary())
    bound = check._bound
    assert check._diagnosis("x", {FITS: 2 * bound, TIME: OF_FITS * 2 * bound + 0.1}) == TIME
    assert check._diagnosis("x", {FITS: 2 * bound, TIME: OF_FITS * 2 * bound - 0.1}) == FITS
    check._causes["x"] = FITS
    assert check._diagnosis("x", {FITS: 2 * bound, TIME: OF_FITS * 2 * bound + 0.1}) == TIME
    check._causes["x"] = "n"
    assert check._diagnosis("x", {FITS: 2 * bound, TIME: bound + 0.1, "n": bound}) == "n"
    del check._causes["x"]
    assert bound * OF_FITS > CONSIDERED
    assert check._diagnosis("x", {FITS: bound - 0.1, TIME: bound - 0.2}) is None
    assert check._diagnosis("x", {FITS: bound, "n": bound - 0.1}) == FITS


# Live.


def play(system, draw, rounds, seed=1, report=(), **start):
    """Play live, with noise that is drawn by ``draw(rng)``; return the agent."""
    rng, state = np.random.default_rng(seed), start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)
        warnings.simplefilter("ignore", AdviceWarning)
        agent = psconrl.PSConRL.of(system, seed=seed)
        for _ in range(rounds):
            action = agent.act(state)
            state, costs, noise = draw(rng, state, action)
            agent.observe(action, state, costs=costs, noise={k: noise[k] for k in report} if report else None)
        agent.finish()
        agent.begin(0)
    return agent


def at_kiosk(demand, spoilt):
    def draw(rng, state, action):
        x, y = demand(rng), spoilt(rng)
        x, y = (min(int(x), 9), int(y)) if not callable(y) else (min(int(x), 9), int(y(x)))
        costs = {"money": action["make"] + 2 * max(x + y - action["make"], 0), "over": x + y}
        return {"day": 1 - state["day"]}, costs, {}

    return draw


def test_costs_alone_show_that_a_noise_varies_too_much():
    draw = at_kiosk(lambda rng: rng.poisson(2.0 * rng.gamma(1.0)), lambda rng: rng.binomial(3, 0.3))
    doubts = play(kiosk(), draw, 300, day=0).doubts()
    assert any("demand varies more than Poisson" in doubt for doubt in doubts)
    assert any("Categorical(range(10), prior=1)" in doubt for doubt in doubts)


def test_costs_alone_show_a_known_probability_that_is_wrong():
    """Demand is reported, and with the costs that shows what was spoilt."""

    def draw(rng, state, action):
        x, y = min(int(rng.poisson(2.0)), 9), int(rng.binomial(3, 0.6))
        costs = {"money": action["make"] + 2 * max(x + y - action["make"], 0), "over": x + y}
        return {"day": 1 - state["day"]}, costs, {"demand": x}

    doubts = play(kiosk(), draw, 200, report=("demand",), day=0).doubts()
    assert [doubt.split(" is not")[0] for doubt in doubts] == ["p of spoilt"]


def test_noises_that_hide_each_other_may_depend_on_each_other():
    """Next states show only x + y and x - y below a bound; y follows x."""
    system = System(
        state={"a": range(5), "b": range(4)}, action={"wait": 1}, minimise="c", costs={"c": "a"},
        noise={"x": Binomial(2, Beta()), "y": Binomial(2, Beta())}, step={"a": "x + y", "b": "min(max(x, y), 3)"},
    )  # fmt: skip

    def draw(rng, state, action):
        x = int(rng.binomial(2, 0.5))
        y = x if rng.random() < 0.7 else int(rng.binomial(2, 0.5))
        return {"a": x + y, "b": max(x, y)}, None, {}

    (doubt,) = play(system, draw, 300, a=0, b=0).doubts()
    assert doubt.startswith("x and y depend on each other, as their joint results show")


@pytest.mark.parametrize("apart", [True, False])
def test_events_that_come_in_fits_are_named(apart):
    """Arrivals are four times as frequent in busy times, which last 20 rounds on average."""
    busy = {"now": True}

    def draw(rng, state, action):
        busy["now"] = busy["now"] != (rng.random() < 0.05)
        n, rate = state["n"], (1.4 if busy["now"] else 0.35) if apart else 0.8
        u = 4.0 * rng.random()
        up = n < 5 and u < rate
        down = n > 0 and rate <= u < rate + 1.0
        return {"n": n + int(up) - int(down)}, None, {}

    doubts = play(line(), draw, 2500, n=0).doubts()
    assert len(doubts) == int(apart)
    assert not apart or doubts[0].startswith("up: higher in some stretches of rounds")


def test_silent_on_costs_that_are_right(full):
    """The probability of an alarm is at most 2/1000 in each run: 4 runs have one with probability 0.008 at most."""
    draw = at_kiosk(lambda rng: rng.poisson(2.0), lambda rng: rng.binomial(3, 0.3))
    for seed in range(20 if full else 4):
        assert play(kiosk(), draw, 300, seed, day=0).doubts() == ()


def test_tests_continue_bit_for_bit_after_loading_in_the_middle_of_an_episode(tmp_path):
    draw = at_kiosk(lambda rng: rng.poisson(2.0), lambda rng: rng.binomial(3, 0.3))
    rng, state = np.random.default_rng(3), {"day": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        agent = psconrl.PSConRL.of(kiosk(), seed=1)
        for _ in range(130):
            action = agent.act(state)
            state, costs, _ = draw(rng, state, action)
            agent.observe(action, state, costs=costs)
        agent.save(tmp_path / "agent.npz")
        states = []
        for each in (agent, psconrl.load_agent(tmp_path / "agent.npz")):
            own, here = np.random.default_rng(4), dict(state)
            for _ in range(200):
                action = each.act(here)
                here, costs, _ = draw(own, here, action)
                each.observe(action, here, costs=costs)
            each.finish()
            each.begin(0)
            states.append(each.belief.state()["check"])
    np.testing.assert_equal(*states)
    assert states[0]["joint"]["change_points"]
    structure, words = kiosk().structure, kiosk().vocabulary()
    variables = varying_variables(structure, words)
    check = JointCheck(structure, variables, DependenceCheck(structure, variables, words))
    check.restore(states[0]["joint"])
    np.testing.assert_equal(check.state(), states[0]["joint"])


def test_the_order_of_rounds_is_known_by_numbers_and_with_interim_episodes():
    system, looks = line(), []
    for background in (False, True):
        agent = psconrl.PSConRL.of(system, seed=1)
        agent.plan_in_background(background, AtOnce())
        results, rng, state = agent.belief._check._joint._results, np.random.default_rng(2), 0
        new = results.new

        def noted(counts, new=new):
            looks.append(new(counts))
            return looks[-1]

        results.new = noted
        for _ in range(200):
            action = agent.act(state)
            following = min(max(state + int(rng.integers(-1, 2)), 0), 5)
            agent.note(action, following, [float(state)])
            state = following
        agent.finish()
        agent.begin(state)
        assert sum(len(look.order) for look in looks if look.order is not None) == 200
        assert all(look.order is not None for look in looks)
        looks.clear()


def test_variables_are_tested_where_only_costs_show_a_noise():
    """More is spoilt on the second day."""
    draws = {0: 0.1, 1: 0.9}

    def draw(rng, state, action):
        x, y = min(int(rng.poisson(2.0)), 9), int(rng.binomial(3, draws[state["day"]]))
        costs = {"money": action["make"] + 2 * max(x + y - action["make"], 0), "over": x + y}
        return {"day": 1 - state["day"]}, costs, {}

    assert [v.name for v in varying_variables(kiosk().structure, kiosk().vocabulary())] == ["day", "make"]
    doubts = play(kiosk(), draw, 300, day=0).doubts()
    assert any("depends on day" in doubt for doubt in doubts)
