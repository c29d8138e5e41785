"""Noises that depend on a variable or change are found and named; the formulas of the tests, by hand."""

import itertools
import math
import warnings

import numpy as np
import pytest

import psconrl
from psconrl.errors import StructureWarning
from psconrl.learning.posterior.checks.cost_check import CostCheck
from psconrl.learning.posterior.checks.dependence import changes, log_sum_exp, of_parts
from psconrl.learning.posterior.checks.dependence_check import DependenceCheck
from psconrl.learning.posterior.checks.distribution_check import FALSE_ALARMS
from psconrl.learning.posterior.checks.joint_check import JointCheck
from psconrl.learning.posterior.checks.structure_advice import dependence_text, hidden_correlation_text
from psconrl.learning.posterior.checks.structure_check import DISTRIBUTION, StructureCheck
from psconrl.learning.posterior.checks.variables import TIME, VALUE, varying_variables
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_families import FreeFamily, family_of, tilted_family
from psconrl.learning.posterior.noise_sightings import NoiseSightings, SightedRow
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Categorical, Geometric, Poisson, noise_from_dict
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def lamp(p, hours=2, **changes_):
    """A lamp that shows its noise in every round, by the hour."""
    given = {
        "state": {"hour": range(hours), "on": 2}, "action": {"wait": 1}, "noise": {"flip": Bernoulli(p)},
        "step": {"hour": f"(hour + 1) % {hours}", "on": "flip"}, "costs": {"heat": "on"}, "minimise": "heat",
    }  # fmt: skip
    return System(**given | changes_)


def queue(arrival, done):
    """From a length of 1 or 2 the next state shows only arrivals less departures."""
    return System(
        state={"hour": 2, "n": range(4)}, action={"wait": 1}, noise={"arrival": arrival, "done": done},
        step={"hour": "1 - hour", "n": "min(max(n - done, 0) + arrival, 3)"}, costs={"delay": "n"}, minimise="delay",
    )  # fmt: skip


def kt(k, n):
    """The probability of a sequence with k of n under Jeffreys' prior, by gamma functions."""
    return math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - 2 * math.lgamma(0.5) - math.lgamma(n + 1)


def most(k, n):
    """The largest log-likelihood of k of n."""
    return sum(x * math.log(x / n) for x in (k, n - k) if x)


def bernoulli_family():
    family = family_of(lamp(Beta()).structure.randomness, 0, "flip")
    family.add([SightedRow(0, (0, 1), (0,)), SightedRow(0, (0, 1), (1,))])
    return family


@pytest.mark.parametrize(("k", "n"), [(0, 1), (3, 5), (40, 50), (100, 127)])
def test_a_grid_of_128_points_is_the_mixture_of_krichevsky_and_trofimov(k, n):
    found = bernoulli_family().log_mixture(np.array([[n - k, k]], dtype=float))
    assert found[0] == pytest.approx(kt(k, n), abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (7, 7), (3, 5), (999, 1000)])
def test_the_largest_likelihood_of_a_probability(k, n):
    assert bernoulli_family().largest(np.array([n - k, k], dtype=float)) == pytest.approx(most(k, n), abs=1e-6)


@pytest.mark.parametrize("share", [0.45, 0.5, 0.55, 0.58, 0.6])
def test_the_largest_likelihood_between_the_points_of_a_grid_with_two_local_maxima(share):
    """Of four trials one or two succeeded in a share of 10^6 rounds, which has two roots p; 12 more tell them."""
    randomness = System(
        state={"n": range(5)}, action={"wait": 1}, noise={"x": Binomial(4, Beta(1, 1))}, step={"n": "x"},
        costs={"c": "n"}, minimise="c",
    ).structure.randomness  # fmt: skip
    family = family_of(randomness, 0, "x")
    view = (0, 1, 1, 0, 0)
    family.add([SightedRow(0, view, (1, 2)), SightedRow(0, view, (0, 3, 4)), SightedRow(0, (), (3,))])
    p = np.linspace(1e-5, 1 - 1e-5, 1_000_001)
    some, three = 4 * p * (1 - p) ** 3 + 6 * p**2 * (1 - p) ** 2, 4 * p**3 * (1 - p)
    for times in (0, 12):
        counts = np.array([1e6 * share, 1e6 * (1 - share), times])
        logs = counts[0] * np.log(some) + counts[1] * np.log1p(-some) + times * np.log(three)
        assert family.largest(counts) == pytest.approx(logs.max(), abs=1e-3)


def test_the_largest_likelihood_of_a_rate():
    noise = System(
        state={"n": range(9)}, action={"wait": 1}, noise={"x": Poisson(Gamma(2, 1), most=8)}, step={"n": "x"},
        costs={"c": "n"}, minimise="c",
    ).structure.randomness  # fmt: skip
    family, counts = family_of(noise, 0, "x"), np.array([10.0, 25.0, 5.0])
    family.add([SightedRow(0, (), (k,)) for k in range(3)])
    rate = (25 + 10) / 40
    exact = 35 * math.log(rate) - 40 * rate - 5 * math.log(2)
    assert family.largest(counts) == pytest.approx(exact, abs=1e-6)
    assert family.largest(counts, search=False) <= family.largest(counts)


def test_evidence_of_variables_by_hand():
    family, parts = bernoulli_family(), np.array([[4.0, 1.0], [1.0, 6.0], [3.0, 3.0]])
    every = kt(1, 5) + kt(6, 7) + kt(3, 6)
    cuts = [kt(1, 5) + kt(9, 13), kt(7, 12) + kt(3, 6)]
    splits = [kt(1, 5) + kt(9, 13), kt(6, 7) + kt(4, 11), kt(3, 6) + kt(7, 12)]
    for ordered, some in ((True, cuts), (False, splits)):
        mean = sum(math.exp(x) for x in some) / len(some)
        exact = math.log(math.exp(every) / 2 + mean / 2) - most(10, 18)
        assert of_parts(parts, family.log_mixture, most(10, 18), ordered=ordered) == pytest.approx(exact, abs=1e-9)
    two = of_parts(parts[:2], family.log_mixture, most(7, 12), ordered=True)
    assert two == pytest.approx(kt(1, 5) + kt(6, 7) - most(7, 12), abs=1e-9)


def test_evidence_of_changes_by_hand():
    family, before = bernoulli_family(), np.array([[4.0, 1.0], [5.0, 7.0]])
    terms = changes(before, np.array([8.0, 10.0]), family.log_mixture, most(10, 18))
    exact = [math.log(1 / 2) + kt(1, 5) + kt(9, 13), math.log(1 / 6) + kt(7, 12) + kt(3, 6)]
    assert (terms + most(10, 18)).tolist() == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_an_e_value_is_reached_as_rarely_as_ville_says(p):
    """All sequences of eight rounds, of three hours in turn, with their probabilities: no simulation."""
    family, bound = bernoulli_family(), 1.5
    reached = {"variable": 0.0, "time": 0.0}
    means = {"variable": 0.0, "time": 0.0}
    for xs in itertools.product((0, 1), repeat=8):
        k = np.cumsum(xs)
        by_hour, largest = np.zeros((3, 2)), {"variable": -np.inf, "time": -np.inf}
        before = np.zeros((0, 2))
        for t, x in enumerate(xs):
            by_hour[t % 3, x] += 1
            total, top = by_hour.sum(axis=0), most(int(k[t]), t + 1)
            logs = {
                "variable": of_parts(by_hour, family.log_mixture, top, ordered=True),
                "time": log_sum_exp(changes(before, total, family.log_mixture, top)) if t else -np.inf,
            }
            largest = {key: max(largest[key], logs[key]) for key in logs}
            before = np.concatenate([before, total[None, :]])
        probability = p ** k[-1] * (1 - p) ** (8 - k[-1])
        for key in reached:
            reached[key] += probability * (largest[key] >= math.log(bound))
            means[key] += probability * math.exp(logs[key])
    assert all(0.0 < mean <= 1.0 for mean in means.values())
    assert all(share <= 1 / bound for share in reached.values())


def test_values_of_free_probability():
    family = FreeFamily(3)
    family.add([SightedRow(0, (), (0,)), SightedRow(0, (), (1,)), SightedRow(0, (), (2,))])
    counts = np.array([2.0, 3.0, 5.0])
    dirichlet = math.lgamma(1.5) - math.lgamma(11.5) + sum(math.lgamma(n + 0.5) - math.lgamma(0.5) for n in counts)
    assert family.log_mixture(counts[None, :])[0] == pytest.approx(dirichlet, abs=1e-9)
    exact = float(counts @ np.log(counts / 10))
    assert exact <= family.largest(counts) <= exact + 2e-3


def test_an_upper_bound_of_the_likelihood_of_sets():
    """4 times 0, 6 times 1 or 2 and 10 times 2: p = (.2, 0, .8) has the largest likelihood."""
    family = FreeFamily(3)
    family.add([SightedRow(0, (), (0,)), SightedRow(0, (), (1, 2)), SightedRow(0, (), (2,))])
    exact = 4 * math.log(0.2) + 16 * math.log(0.8)
    assert exact <= family.largest(np.array([4.0, 6.0, 10.0])) <= exact + 2e-3


def record_of(system, moves, noise=()):
    structure = system.structure
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record = Record.empty(counts)
    for (s, a, t), times in moves.items():
        for _ in range(times):
            record.step(s, a, t, structure.costs(structure.randomness.initial())[:, s, a])
    for number, reported, cells in noise:
        record.noise.note(number, reported, cells)
    counts.add(record)
    return counts


def test_a_censored_set_counts_as_what_it_is():
    shelf = System(
        state={"shelf": range(3)}, action={"order": range(3)}, noise={"demand": Poisson(Gamma(2, 1), most=4)},
        step={"shelf": "min(max(shelf - demand, 0) + order, 2)"}, costs={"c": "shelf"}, minimise="c",
    )  # fmt: skip
    sightings = NoiseSightings(shelf.structure)
    seen = sightings.of(record_of(shelf, {(1, 0, 0): 7, (1, 0, 1): 3, (0, 1, 1): 5}))["demand"]
    assert {sightings.rows["demand"][r].values: n for r, n in zip(seen.rows, seen.times, strict=True)} == {
        (0,): 3.0,
        (1, 2, 3, 4): 7.0,
    }
    again = NoiseSightings(shelf.structure)
    again.restore(sightings.state())
    assert again.rows == sightings.rows


def test_noises_that_were_reported_count_in_full_and_others_not():
    """x + y is 1: if y is reported, x is certain, but only since the values are what they are."""
    system = System(
        state={"sum": 5}, action={"wait": 1}, minimise="c", costs={"c": "x"}, step={"sum": "x + y"},
        noise={"x": Categorical(range(3), prior=1), "y": Categorical(range(3), prior=1)},
    )  # fmt: skip
    one = system.state_number({"sum": 1})
    cell, moves = 0 * 3 + 1, {(one, 0, one): 4}
    number = one * system.structure.n_states + one
    counts = record_of(system, moves, [(number, 0b10, (cell,)), (number, 0b10, (cell,)), (number, 0b11, (cell,))])
    sightings = NoiseSightings(system.structure)
    seen = sightings.of(counts)
    rows = {name: [sightings.rows[name][r].values for r in seen[name].rows] for name in "xy"}
    assert rows == {"x": [(0,)], "y": [(1,), (1,)]}
    assert (seen["x"].times.tolist(), seen["y"].times.tolist()) == ([1.0], [2.0, 1.0])


def test_the_likelihood_of_joint_results():
    """From 1: up with a(1-d), down with d(1-a), else as before; the rounds before the first test are left out."""
    system = queue(Bernoulli(Beta()), Bernoulli(0.6))
    structure, words = system.structure, system.vocabulary()
    families = DependenceCheck(structure, [], words)
    check = JointCheck(structure, varying_variables(structure, words), families)
    assert check.names == ("arrival", "done")
    near = {"arrival": np.array([0.3])}
    first = {(1, 0, 6): 2, (5, 0, 1): 3}
    check.evidence(record_of(system, first), near, 1e9)
    later = {(1, 0, 4): 4, (1, 0, 5): 5, (1, 0, 6): 8, (5, 0, 1): 3 + 1}
    found = check.evidence(record_of(system, later), near, -1e9)["arrival"]
    grid = np.sin(np.pi * (np.arange(128) + 0.5) / 256) ** 2
    up, down = grid * 0.4, 0.6 * (1 - grid)
    logs = [4 * np.log(down) + 5 * np.log(1 - up - down) + 6 * np.log(up), np.log(1 - up - down)]
    top = max(4 * math.log(0.6 - 0.6 * p) + 6 * math.log(0.4 * p) + 6 * math.log(0.4 + 0.2 * p)
              for p in np.linspace(1e-6, 1 - 1e-6, 100_001))  # fmt: skip
    exact = sum(math.log(np.exp(log).mean()) for log in logs) - top - 0.1
    assert found["hour"] == pytest.approx(exact, abs=1e-3)


def run(system, true, rounds, seed=1, **options):
    agent = psconrl.PSConRL.of(system, seed=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)
        psconrl.simulate(true, agent, rounds, seed=seed + 1)
        agent.begin(0)
    return agent


def test_a_pattern_by_the_hour_is_named():
    system = lamp(Beta(), 3)
    true = system.with_noise(flip=Bernoulli("0.05 if hour == 0 else 0.85 if hour == 1 else 0.3"))
    (doubt,) = run(system, true, 400).doubts()
    assert doubt.startswith("flip depends on hour (")
    assert 'Bernoulli(..., when="hour == 0"), and use their sum' in doubt


def test_a_known_probability_that_is_wrong_is_named():
    (doubt,) = run(lamp(0.3), lamp(0.5), 600).doubts()
    assert doubt.startswith("p of flip is not as given, but about 0.")


def test_a_hidden_noise_that_depends_on_the_hour_is_named():
    """Departures are seen only together with arrivals, except from a queue that is empty."""
    system = queue(Bernoulli(Beta()), Bernoulli(Beta()))
    true = system.with_noise(done=Bernoulli("0.8 if hour else 0.2"), arrival=0.4)
    doubts = run(system, true, 2000).doubts()
    assert [doubt.split(" (")[0] for doubt in doubts] == ["done depends on hour"]


def test_an_event_whose_rate_depends_on_the_state_is_named():
    def line(when):
        return System(
            state={"n": range(6)}, action={"wait": 1}, clock=4.0, costs={"queue": "n"}, minimise="queue",
            events={"up": Event(Gamma(2, 2), {"n": "n + 1"}, when="n < 5"),
                    "down": Event(Gamma(2, 2), {"n": "n - 1"}, when="n > 0", times=when)},
        )  # fmt: skip

    true = line("3 if n > 2 else 1").with_noise(up=1.0, down=0.6)
    (doubt,) = run(line("1"), true, 2000).doubts()
    assert doubt.startswith("down depends on n (")
    assert 'as one event for each, with when="n == ' in doubt


def changing(at, rounds, seed, system, before=0.3, after=0.7):
    """Play live; the environment is not the system."""
    rng, agent, state = np.random.default_rng(seed), psconrl.PSConRL.of(system, seed=seed), {"hour": 0, "on": 0}
    for t in range(rounds):
        agent.act(state)
        state = {"hour": (state["hour"] + 1) % 2, "on": int(rng.random() < (before if t < at else after))}
        agent.observe({"wait": 0}, state)
    agent.finish()
    return agent, state


@pytest.mark.parametrize("at", [100, 900])
def test_a_change_is_found_early_and_late(at):
    with pytest.warns(StructureWarning, match="flip changed over time, at about round"):
        agent, _ = changing(at, at + 400, 3, lamp(Beta()))
    (doubt,) = agent.doubts()
    found = int(doubt.split("round ")[1].split(" ")[0].replace(",", ""))
    assert abs(found - at) <= 60 + 0.1 * at


def test_tests_continue_bit_for_bit_after_loading(tmp_path):
    system = queue(Bernoulli(Beta()), Bernoulli(Beta()))
    true, agent = system.with_noise(arrival=0.4, done=0.5), psconrl.PSConRL.of(system, seed=1)
    psconrl.simulate(true, agent, 700, seed=2)
    agent.finish()
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    states = []
    for each in (agent, again):
        psconrl.simulate(true, each, 700, seed=3)
        each.begin(0)
        states.append(each.belief.state()["check"])
    np.testing.assert_equal(*states)
    assert states[0]["joint"]["change_points"]


RIGHT = {
    "lamp": (lamp(Beta(), 3), {"flip": 0.3}),
    "queue": (queue(Bernoulli(Beta()), Bernoulli(0.5)), {"arrival": 0.4}),
    "hidden": (queue(Binomial(1, Beta()), Geometric(Beta(), most=3)), {"arrival": 0.5, "done": 0.6}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_silent_on_runs_that_are_right(name, full):
    """The probability of an alarm is at most 2/1000 in each run: 12 runs have one with probability 0.024 at most."""
    system, known = RIGHT[name]
    true = system.with_noise(**known)
    for seed in range(40 if full else 4):
        assert run(system, true, 300, seed).doubts() == ()


def test_the_number_of_tests_is_that_of_noises_and_causes():
    """Two noises: one family each; hour, n, time and value, alone and in joint results; fits; a pair, seen or not."""
    system = queue(Bernoulli(Beta()), Bernoulli(0.5))
    assert StructureCheck(system.structure, system.vocabulary()).number == 2 + 2 * 4 + 2 * 4 + 2 + 2
    assert StructureCheck(system.structure).number == 2 + 2 * 2 + 2 * 2 + 2 + 2


def test_without_names_of_variables_time_is_tested():
    structure = lamp(0.5).structure
    found = DependenceCheck(structure, [], None).evidence(record_of(lamp(0.5), {(0, 0, 3): 9, (3, 0, 0): 1}), 1e9)
    assert set(found["flip"]) == {TIME, VALUE}
    assert found["flip"][VALUE] == pytest.approx(kt(9, 10) - 10 * math.log(0.5), abs=1e-9)


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        (Bernoulli(Beta()), 'Bernoulli(..., when="hour == 6"), and use their sum'),
        (Binomial(3, Beta()), 'Binomial("... if hour == 6 else 0", ...), and use their sum'),
        (Poisson(Gamma(2, 1), most=5), 'Poisson(..., times="hour == 6"), and use their sum'),
        (Geometric(Beta(), most=5), "as one noise for each, of which the rules use the one that applies"),
        (Bernoulli(0.5), "as an expression of hour"),
        (None, 'as one event for each, with when="hour == 6"'),
        (Bernoulli(0.5, times="hours / 12"), "as an expression of hour"),
    ],
)
def test_advice_is_in_the_notation_of_a_system(noise, said):
    text = dependence_text("x", noise, "hour", [6, 7], np.array([3.0, 4.0]), np.array([0.25, 0.5]))
    assert text.startswith("x depends on hour (0.25 at 6, 0.5 at 7): give it one parameter for each hour, ")
    assert said in text


@pytest.mark.parametrize(
    "noise", [Bernoulli(Beta(), times="hour / 12"), Categorical({"a": "0.1 * hour", "b": "1 - 0.1 * hour"})]
)
def test_arguments_that_name_the_variable_are_to_be_corrected(noise):
    for each in (noise, noise_from_dict(noise.to_dict())):
        text = dependence_text("x", each, "hour", [6, 7], np.array([3.0, 4.0]), None)
        assert text.startswith("x depends on hour in another way than its arguments say: correct them, or give it one ")


def test_noise_that_depends_on_another_as_its_arguments_do_not_say():
    said = "needed depends on sky in another way than its arguments say, as their joint results show: correct them, or "
    for one, two in (("needed", "sky"), ("sky", "needed")):
        assert hidden_correlation_text(one, two, {"needed": ("hour", "sky")}).startswith(said)
    assert hidden_correlation_text("needed", "sky", {"needed": ("hour",)}).startswith("needed and sky depend on each ")


# Costs.


def freedman(beyond, variance, squares, width):
    """The mean over 20 scales, by hand."""
    spread = (math.e - 2) * variance + squares / 2
    return math.log(sum(math.exp(beyond / (2**j * width) - spread / (2**j * width) ** 2) for j in range(20)) / 40)


def test_the_evidence_against_a_cost_by_hand():
    """A cost of 2 with p = .25, else 0: 10 rounds that cost 12 where 5 are expected; its variance is .75."""
    system = lamp(0.25, costs={"heat": "2 * flip"})
    counts = record_of(system, {(0, 0, 2): 10})
    counts.cost_sums[:, 0] = 12.0
    logs, expected = CostCheck(system.structure, system.vocabulary()).evidence(counts, {}, lambda log: {})
    assert expected.tolist() == pytest.approx([5.0])
    assert logs[0] == pytest.approx(freedman(7.0, 10 * 0.75, 7.0**2, 2.0), abs=1e-9)


def test_an_error_of_learning_is_no_evidence():
    """Of 30 paid and 5 expected, up to 10 may be an error of learning; the test before left no new square."""
    system = lamp(Beta(), costs={"heat": "2 * flip"})
    counts = record_of(system, {(0, 0, 2): 10})
    counts.cost_sums[:, 0] = 30.0
    check = CostCheck(system.structure, None)
    check.restore({"beyond": np.array([25.0]), "squares": np.array([0.0])})
    ends = {"flip": [np.array([0.1]), np.array([0.75])]}
    logs, _ = check.evidence(counts, {"flip": np.array([0.25])}, lambda log: ends)
    assert logs[0] == pytest.approx(freedman(15.0, 10 * 0.75, 0.0, 2.0), abs=1e-9)


def test_the_interval_of_a_parameter_holds_what_is_likely_enough():
    """All points of the grid that are not less likely than the mixture by 1/alpha, and the next ones."""
    family, counts = bernoulli_family(), np.array([60.0, 40.0])
    low, high = (float(end[0]) for end in family.ends(counts, math.log(100)))
    grid = np.sin(np.pi * (np.arange(128) + 0.5) / 256) ** 2
    inside = [p for p in grid if 40 * math.log(p) + 60 * math.log(1 - p) >= kt(40, 100) - math.log(100)]
    assert low == max(p for p in grid if p < inside[0])
    assert high == min(p for p in grid if p > inside[-1])


@pytest.mark.parametrize("wrong", [True, False])
def test_a_cost_that_is_not_as_its_rule_says_is_named(wrong):
    """Reports are 30% above what the rule says, or have an error without bias."""
    system, rng = lamp(Beta(), costs={"heat": "1 + on"}), np.random.default_rng(1)
    agent, state = psconrl.PSConRL.of(system, seed=1), {"hour": 0, "on": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)
        for _ in range(1700 if wrong else 1000):
            agent.act(state)
            cost = (1 + state["on"]) * 1.3 if wrong else 1 + state["on"] + rng.normal(0, 0.5)
            state = {"hour": 1 - state["hour"], "on": int(rng.random() < 0.4)}
            agent.observe({"wait": 0}, state, costs=[cost])
        agent.finish()
    doubts = agent.doubts()
    assert len(doubts) == wrong
    assert not wrong or doubts[0].startswith("heat was 1.8")


def test_a_doubt_is_revised_by_much_more_evidence():
    system = lamp(Beta())
    check = StructureCheck(system.structure, system.vocabulary())
    bound = math.log(check.number / FALSE_ALARMS)
    assert check._diagnosis("flip", {"on": bound - 0.01}) is None
    check._causes["flip"] = "on"
    assert check._diagnosis("flip", {"on": bound, "hour": bound + math.log(99)}) == "on"
    assert check._diagnosis("flip", {"on": bound, "hour": bound + math.log(101)}) == "hour"


def test_a_doubt_about_the_family_is_revised_by_evidence_of_the_same_rounds():
    """Tests against families are made less often than others, whose evidence grows in between."""
    system = lamp(Beta())
    check = StructureCheck(system.structure, system.vocabulary())
    check._causes["flip"] = DISTRIBUTION
    logs = {DISTRIBUTION: 100.0, "hour": 120.0}
    assert check._diagnosis("flip", logs, fresh=False) == DISTRIBUTION
    assert check._diagnosis("flip", logs, fresh=True) == "hour"


@pytest.mark.parametrize("table", [[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.3, 0.7, 0.0]]])
def test_tilts_of_distributions_with_impossible_values_are_distributions(table):
    grid = tilted_family(np.array(table)).grid
    assert np.allclose(grid.sum(axis=2), 1.0, rtol=0, atol=1e-12)
    assert (grid[:, np.array(table) == 0.0] == 0.0).all()
