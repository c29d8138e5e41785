"""Checks of the structure where noise depends on noise, has a factor, or is a joint table."""

import warnings

import numpy as np
import pytest
from scipy.stats import beta, gamma

import psconrl
from noise_rounds import simulated
from psconrl.errors import StructureWarning
from psconrl.learning.posterior.checks.correlation_check import CorrelationCheck
from psconrl.learning.posterior.checks.structure_check import StructureCheck
from psconrl.learning.posterior.collapsed_moves import log_prior
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_families import FreeFamily, GridFamily, family_of
from psconrl.learning.posterior.noise_views import NoiseViews, reported_variables
from psconrl.learning.posterior.outcome_sets import OutcomeSets
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.noise import Bernoulli, Binomial, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System
from random_systems import random_system


def clinic(step, **noise):
    return System(
        state={"n": range(4)}, action={"fast": [0, 1]}, minimise="cost", costs={"cost": "n + fast"},
        noise={"come": Binomial(2, Beta()), "stay": Binomial("come", Beta(1, 1)), **noise}, step={"n": step},
    )  # fmt: skip


def views_of(system, name, pair=0):
    views = NoiseViews(system.structure, list(system.structure.randomness.noises))
    return views._views[int(views.classes[pair])][name]


def test_a_noise_has_a_view_where_its_parents_are_revealed_whatever_it_is():
    """Of 2, 1 or 0 that come some stay; contexts of ``stay`` are numbered by the n of its trials, 0, 1 and 2."""
    seen = views_of(clinic("come + stay * 0"), "stay")
    assert [(k, view.context, view.blocks) for k, view in seen.items()] == [
        (0, 0, (0, -1, -1)), (1, 1, (0, 0, -1)), (2, 2, (0, 0, 0)),
    ]  # fmt: skip
    # A next state of 2 is one who comes and stays, or two of whom none does: only that none came is always revealed.
    assert views_of(clinic("min(come + stay, 3)"), "stay").keys() == {0}
    only_two = views_of(clinic("3 if come == 2 and stay == 2 else 2 if come == 2 else 0"), "stay")
    assert [(code, view.context, view.blocks) for code, view in only_two.items()] == [(2, 2, (0, 0, 2))]
    assert views_of(clinic("stay"), "stay") == {}
    assert [view.blocks for view in views_of(clinic("stay"), "come").values()] == [(0, 0, 0)]


def test_reports_are_read_by_variable():
    assert reported_variables(["a", "b, c", "d"], 0b1101) == {"a": ("a",), "b, c": ("c",), "d": ("d",)}


SETS = {
    "come is known, stay is not": ([(1, 0), (1, 1)], (True, False), False),
    "all is open": ([(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)], (False, False), False),
    "none stays": ([(0, 0), (1, 0), (2, 0)], (True, True), True),
    "one or none comes": ([(0, 0), (1, 0), (1, 1)], (True, False), True),
    "both are known": ([(2, 1)], (True, True), False),
    "none comes": ([(0, 0)], (True, False), False),
    "not all of two": ([(1, 0), (1, 1), (2, 0), (2, 1)], (True, True), True),
}


@pytest.mark.parametrize("case", SETS)
def test_what_a_set_of_outcomes_reveals_of_noise_that_depends_on_noise(case):
    """A noise counts as revealed if its values matter, or those of a noise that depends on it."""
    outcomes, reveals, doubtful = SETS[case]
    noise = clinic("min(come + stay, 3)").structure.randomness
    cells = tuple(int(np.ravel_multi_index(one, noise.sizes)) for one in outcomes)
    sets = OutcomeSets.of(noise, [cells])
    assert tuple(sets.reveals[0].tolist()) == reveals
    assert [one.size for one in sets.split(np.array([1]))] == (
        [0, 0] if not any(reveals) else [0, 1] if doubtful else [1, 0]
    )


def test_the_families_of_the_new_noises():
    system = System(
        state={"n": range(3)}, action={"fast": [0, 1]}, minimise="cost", costs={"cost": "n + w + x + y"},
        noise={
            "come": Binomial(2, Beta()), "stay": Binomial("come", Beta(1, 1)), "x, y": Joint([(0, 1), (1, 0)], prior=1),
            "w": Categorical({0: "0.2 + 0.1 * come", 1: "0.8 - 0.1 * come"}),
        },
        step={"n": "stay"},
    )  # fmt: skip
    noise = system.structure.randomness
    kinds = {name: type(family_of(noise, k, name)) for k, name in enumerate(noise.noises)}
    assert kinds == {"come": GridFamily, "stay": GridFamily, "x, y": FreeFamily, "w": GridFamily}
    grid = family_of(noise, 1, "stay").grid
    assert grid.shape[1:] == (3, 3)
    np.testing.assert_allclose(grid[:, 1, 1] ** 2, grid[:, 2, 2], rtol=1e-12)  # of one who comes, and of two
    factor = clinic("stay", stay=Binomial("come", Beta(), times="0.5 if fast else 1")).structure.randomness
    table = family_of(factor, 1, "stay").grid
    contexts = list(zip(*(factor.arguments["stay"][key].tolist() for key in ("n", "times")), strict=True))
    half, whole = contexts.index((1.0, 0.5)), contexts.index((1.0, 1.0))
    np.testing.assert_allclose(table[:, half, 1], 0.5 * table[:, whole, 1], rtol=1e-12)


def live(system, draw, rounds, seed, report, step):
    agent = psconrl.PSConRL.of(system, seed=seed)
    rng, state = np.random.default_rng(seed), {"n": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructureWarning)
        for _ in range(rounds):
            action = agent.act(state)
            noise = draw(rng, state, action)
            state = {"n": step(noise)}
            agent.observe(action, state, noise={name: noise[name] for name in report} or None)
        agent.finish()
        agent.begin(0)
    return agent


def thinned(p=0.5, q=0.4):
    def draw(rng, state, action):
        come = int(rng.binomial(2, p))
        return {"come": come, "stay": int(rng.binomial(come, q(state, action, come) if callable(q) else q))}

    return draw


def shown(noise):
    return min(noise["come"] + noise["stay"], 3)


@pytest.mark.parametrize("report", [(), ("come",), ("stay",), ("come", "stay")])
def test_silent_where_noise_depends_on_noise_as_described(report, full):
    """A right system is doubted with a probability of 2/1000 at most in each run."""
    for seed in range(20 if full else 1):
        agent = live(clinic("min(come + stay, 3)"), thinned(), 400, seed, report, shown)
        assert agent.doubts() == ()


@pytest.mark.parametrize(
    ("q", "report", "found"),
    [
        (lambda state, action, come: 0.2 if state["n"] < 2 else 0.8, ("come", "stay"), "stay depends on n"),
        (lambda state, action, come: 0.2 if state["n"] < 2 else 0.8, (), "depends on n"),
        (lambda state, action, come: 0.9 if come == 1 else 0.1, ("come", "stay"), "stay"),
    ],
)
def test_wrong_noise_that_depends_on_noise_is_named(q, report, found):
    agent = live(clinic("min(come + stay, 3)"), thinned(q=q), 1200, 1, report, shown)
    assert any(found in doubt for doubt in agent.doubts())


def test_a_known_probability_of_a_child_that_is_wrong_is_named():
    system = clinic("min(come + stay, 3)", stay=Binomial("come", 0.8))
    agent = live(system, thinned(q=0.4), 600, 1, ("come", "stay"), shown)
    (doubt,) = agent.doubts()
    assert doubt.startswith("p of stay is not as given, but about 0.3")


def test_noises_that_should_depend_on_each_other_are_named():
    """Both depend on the noise that a third one describes; their own dependence is found given that one."""
    system = System(
        state={"n": range(4)}, action={"fast": [0, 1]}, minimise="cost", costs={"cost": "n + storm"},
        noise={"storm": Bernoulli(Beta()), "a": Bernoulli(Beta(), times="1 if storm else 0.5"), "b": Bernoulli(Beta())},
        step={"n": "a + b"},
    )  # fmt: skip

    def draw(rng, state, action):
        storm = int(rng.random() < 0.5)
        a = int(rng.random() < (0.8 if storm else 0.4))
        return {"storm": storm, "a": a, "b": int(rng.random() < (0.9 if a else 0.2))}

    agent = live(system, draw, 600, 1, ("storm", "a", "b"), lambda noise: noise["a"] + noise["b"])
    assert any("a and b depend on each other" in doubt or "b and a depend" in doubt for doubt in agent.doubts())


def test_a_rate_of_noise_that_depends_on_noise_is_tested_against_time():
    system = System(
        state={"n": range(4)}, action={"fast": [0, 1]}, minimise="cost", costs={"cost": "n + storm"},
        noise={"storm": Bernoulli(0.5), "come": Poisson(Gamma(1, 1), most=3, times="2 if storm else 1")},
        step={"n": "come"},
    )  # fmt: skip
    rounds = []

    def draw(rng, state, action):
        rounds.append(1)
        storm, rate = int(rng.random() < 0.5), 0.3 if len(rounds) < 600 else 1.2
        return {"storm": storm, "come": min(int(rng.poisson(rate * (2 if storm else 1))), 3)}

    agent = live(system, draw, 1200, 1, ("storm",), lambda noise: noise["come"])
    assert any(doubt.startswith("come changed over time") for doubt in agent.doubts())


def test_counts_without_reports_are_counted_once():
    structure = clinic("min(come + stay, 3)").structure
    counts = Counts(structure.n_states, structure.n_actions, 1)
    record = Record.empty(counts)
    for s, a, t in [(0, 0, 0)] * 3 + [(0, 0, 3)] * 2:
        record.step(s, a, t, np.zeros(1))
    counts.add(record)
    seen = NoiseViews(structure, ["come", "stay"]).observed(counts)
    assert sum(float(times.sum()) for times in seen["come"].values()) == 5.0
    assert sum(float(times.sum()) for times in seen["stay"].values()) == 3.0  # only where none came, for sure


@pytest.mark.statistical
def test_right_random_systems_are_not_doubted(full):
    """A right system is doubted with a probability of 1/1000 at most: 15 systems one by one, fixed seeds."""
    tested = 0
    for seed in range(300 if full else 33):
        system, _ = random_system(seed)
        if "events" in system.to_dict():
            continue
        structure, words, rng = system.structure, system.vocabulary(), np.random.default_rng(seed)
        report = [name for name in words.outcomes if rng.random() < seed % 3 / 2]
        truth = structure.randomness.initial()
        check, doubts = StructureCheck(structure, words), {}
        counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
        for part in range(5):
            simulated(system, truth, 80, 100 * seed + part, report, counts)
            check.update(doubts, counts, truth)
        assert not set(doubts) & set(structure.randomness.noises), seed
        tested += 1
    assert tested >= (100 if full else 15)


def test_reports_count_if_what_the_noise_depends_on_is_reported():
    structure = clinic("min(come + stay, 3)").structure
    views = NoiseViews(structure, ["come", "stay"])
    cell = int(np.ravel_multi_index((2, 1), structure.randomness.sizes))
    assert list(views.reported(0, 0b10, [cell])) == []
    seen = list(views.reported(0, 0b11, [cell]))
    assert [(name, view.context, view.blocks, value) for name, view, value in seen] == [
        ("come", 0, (0, 1, 2), 2), ("stay", 2, (0, 1, 2), 1),
    ]  # fmt: skip
    check = CorrelationCheck(structure)
    assert check.pairs == [("stay", "come")]
    assert [check._whole(bits) for bits in range(4)] == [[False, False], [True, False], [False, False], [True, True]]


def test_a_joint_table_is_seen_as_far_as_it_is_reported():
    system = System(
        state={"n": range(2)}, action={"fast": [0, 1]}, minimise="cost", costs={"cost": "n"}, step={"n": "x * y"},
        noise={"x, y": Joint([(0, 0), (0, 1), (1, 0)], prior=1)},
    )  # fmt: skip
    views = NoiseViews(system.structure, ["x, y"])
    by_bits = {bits: next(views.reported(0, bits, [1])) for bits in (0b01, 0b10, 0b11)}
    assert {bits: (view.blocks, value) for bits, (_, view, value) in by_bits.items()} == {
        0b01: ((0, 0, 2), 0), 0b10: ((0, 1, 0), 1), 0b11: ((0, 1, 2), 1),
    }  # fmt: skip
    assert views.number == {"x, y": 4}  # these three, and nothing at all


@pytest.mark.parametrize(
    ("prior", "density"), [(Beta(2.5, 0.7), beta(2.5, 0.7)), (Gamma(1.5, 2.0), gamma(1.5, scale=0.5))]
)
def test_the_density_of_the_logarithm_of_a_parameter(prior, density):
    x = np.array([0.1, 0.5, 0.9])
    found = [log_prior(prior, value) for value in x.tolist()]
    np.testing.assert_allclose(np.diff(found), np.diff(density.logpdf(x) + np.log(x)), rtol=1e-12)
    assert log_prior(prior, 0.0) == -np.inf
    assert log_prior(Beta(1, 1), 1.0) == -np.inf
