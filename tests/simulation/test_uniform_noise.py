"""Uniform noise of costs: its distribution, what agents are given of it, and its effect on the board."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import CMDP
from psconrl.agents import FixedPolicy, known_baseline
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.kernels.play.play_loop import UNIFORM, emit
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.registry import RECIPES, with_hints
from psconrl.learning.safe.confidence_intervals import highest_means
from psconrl.model.simulation_tables import Tables

SCALING = {"triple-qa", "pdnac", "pd-lsvi-ucb", "po-cmdp"}
BOUNDING = {"safe", "ucrl2", "pmevi-dt", "tilted"}


@pytest.mark.parametrize(("mean", "low", "high"), [(0.25, 0.0, 1.0), (-3.0, -7.0, 5.0), (4.0, 4.0, 4.0)])
def test_the_mean_the_variance_and_the_ends(mean, low, high):
    """Midpoints of n equal intervals have the exact mean, and the variance u^2/12 times 1 - 1/n^2."""
    n, width = 1000, high - low
    drawn = np.array([emit(mean, UNIFORM, low, high, (k + 0.5) / n) for k in range(n)])
    assert drawn.mean() == pytest.approx(mean, abs=1e-13)
    assert drawn.var() == pytest.approx(width**2 / 12 * (1 - 1 / n**2), rel=1e-12, abs=1e-30)
    assert emit(mean, UNIFORM, low, high, 0.0) == mean - width / 2
    assert emit(mean, UNIFORM, low, high, np.nextafter(1.0, 0.0)) == pytest.approx(mean + width / 2, rel=1e-15)


def test_a_cost_that_is_the_same_everywhere_is_exact():
    rng = np.random.default_rng(0)
    assert {emit(0.1, UNIFORM, 0.1, 0.1, u) for u in rng.random(1000)} == {0.1}


def test_the_range_is_that_of_all_outcomes_and_costs_have_the_bits_of_the_formula():
    outcomes = np.zeros((3, 2, 1, 2))
    outcomes[0, :, 0] = [[0.0, 1.0], [1.0, 0.0]]
    outcomes[1, :, 0] = [[-4.0, 2.0], [0.3, 0.7]]
    outcomes[2] = 0.3
    model = CMDP(np.full((2, 1, 2), 0.5), outcomes, [1.0, 1.0])
    tables, rng = Tables.of(model, "uniform"), np.random.default_rng(1)
    assert tables.ranges.tolist() == [[0.0, -4.0, 0.3], [1.0, 2.0, 0.3]]
    for entry in range(4):
        for uniforms in rng.random((100, 3)):
            means = outcomes[:, entry // 2, 0, entry % 2]
            expected = means + (uniforms - 0.5) * np.array([1.0, 6.0, 0.0])
            np.testing.assert_array_equal(tables.emitted(entry, uniforms), expected)


def test_ranges_hold_the_noise_for_agents_with_confidence_bounds():
    """Costs within [0, 1] may come out of all of it; 0 to 1 with noise is -1/2 to 3/2, and -4 to 2 is -7 to 5."""
    costs = np.array([[[-4.0, 2.0]], [[0.0, 1.0]], [[0.2, 0.4]], [[3.0, 3.0]]])
    model = CMDP(np.ones((1, 2, 1)), costs, [1.0, 1.0, 4.0])
    exact, noisy = [[-4, 2], [0, 1], [0, 1], [3, 4]], [[-7, 5], [-0.5, 1.5], [0, 1], [3, 4]]
    given = {name for name, recipe in RECIPES.items() if "ranges" in recipe.option_names()}
    assert given == SCALING | BOUNDING
    for name in given:
        assert with_hints(name, model, {}, "two-point")["ranges"] == exact
        assert with_hints(name, model, {}, "uniform")["ranges"] == (noisy if name in BOUNDING else exact)
    assert known_baseline(model, emission="uniform")["ranges"].tolist() == noisy
    assert known_baseline(model)["ranges"].tolist() == exact


def test_a_safe_agent_of_a_spec_is_given_the_range_of_the_noise():
    text = """
        [agents.safe]
        baseline = "safest"
        [experiments.one]
        env = "marsrover-4x4"
        costs = ["learned", "noisy"]
        horizon = 100
        replicates = 1
    """
    learned, noisy = (job.make_agent(job.environment()).ranges.tolist() for job in parse_spec(text).jobs())
    assert learned == [[0.0, 1.0], [0.0, 1.0]]
    assert noisy == [[-0.5, 1.5], [-0.5, 1.5]]


@pytest.mark.statistical
def test_bounds_on_mean_costs_hold_for_noise_up_to_half_of_the_range():
    """A mean of 1, the largest: at some time the bound is below it with probability delta = 0.05 at most.

    Of 200 sequences at most 26 fail, with a false-alarm rate below 1e-5. With the range of the means, 188 fail.
    """
    model = CMDP(np.ones((1, 2, 1)), np.array([[[0.0, 0.0]], [[0.0, 1.0]]]), [0.5])
    ranges = known_baseline(model, emission="uniform")["ranges"][1:]
    rng, failed = np.random.default_rng(2), 0
    for _ in range(200):
        drawn = np.cumsum([emit(1.0, UNIFORM, 0.0, 1.0, u) for u in rng.random(300)])
        counts = Counts(300, 1, 2)  # one pair for every number of visits
        counts.visits[:], counts.cost_sums[1] = np.arange(1, 301), drawn
        bounds = highest_means(counts, ranges, math.log(1 / 0.05))[0]
        failed += bool((bounds < 1.0).any())
    assert failed <= 26


@pytest.mark.statistical
def test_the_noise_of_a_run_is_uniform():
    """The Kolmogorov-Smirnov distance of 10,000 numbers exceeds 0.0275 with probability 5e-7."""
    model = CMDP(np.ones((1, 2, 1)), np.array([[[0.0, 2.0]], [[0.0, 1.0]]]), [0.5])
    agent = FixedPolicy(1, 2, model.thresholds, policy=[[1.0, 0.0]], seed=0)
    trace = psconrl.simulate(model, agent, 10_000, seed=3, checkpoints=10_000, emission="uniform")
    drawn = np.sort(np.diff(trace.cumulative[:, 0], prepend=0.0))
    assert drawn[0] >= -1.0 - 1e-9
    assert drawn[-1] <= 1.0 + 1e-9
    assert np.abs((drawn + 1.0) / 2.0 - (np.arange(10_000) + 0.5) / 10_000).max() < 0.0275


def test_noise_changes_every_cost_that_varies_in_every_environment_of_the_board():
    """And what a model-free agent does with what it learns from them."""
    kinds = {" (costs learned)": {}, " (costs noisy)": {}}
    for job in shipped_spec("leaderboard").jobs():
        suffix = next((suffix for suffix in kinds if job.experiment.endswith(suffix)), None)
        if job.label == "triple-qa" and job.replicate == 0 and suffix:
            kinds[suffix][job.experiment.removesuffix(suffix)] = job
    learned, noisy = kinds.values()
    assert learned.keys() == noisy.keys()
    assert len(noisy) >= 17
    for name, job in noisy.items():
        environment, totals = job.environment(), []
        for each in (learned[name], job):
            agent = each.make_agent(environment)
            trace = psconrl.simulate(environment, agent, 200, each.environment_seed(), emission=each.emission)
            totals.append(trace.cumulative[-1])
        varies = np.ptp(Tables.of(environment, "deterministic").outcomes, axis=1) > 0.0
        assert varies[0], name
        assert varies[1:].any(), name
        np.testing.assert_array_equal(totals[0] != totals[1], varies, err_msg=name)
