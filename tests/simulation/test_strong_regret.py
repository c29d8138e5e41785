"""Strong regret counts the exact cost of an episode's policy over the rounds played, no more."""

import numpy as np
import pytest

from psconrl import CMDP, Episode, plan, regret
from psconrl.learning.agent import Agent
from psconrl.learning.registry import make_agent
from psconrl.simulation.model_run import Simulation
from psconrl.simulation.regret import (
    moving_average,
    paper_curve,
    positive_sums,
    signed_regret,
    strong_regret,
    targets,
)


class Alternating(Agent):
    """Blocks of four rounds: twice the action that costs 1, twice the one that costs nothing."""

    name = "alternating"

    def begin(self, state):
        return Episode(np.array([[[0.0, 1.0]], [[0.0, 1.0]], [[1.0, 0.0]], [[1.0, 0.0]]]), max_steps=4)


CHOICE = CMDP(np.ones((2, 1)), [[[0.0, 1.0]]])


@pytest.mark.parametrize(("rounds", "strong"), [(4, 2), (5, 3), (6, 4), (7, 4), (8, 4), (11, 6)])
def test_a_block_that_was_cut_short_counts_for_what_was_played(rounds, strong):
    run = Simulation(CHOICE, Alternating(1, 2, [], None, 0), seed=0, evaluate_policies=True)
    trace = run.run(rounds)
    assert regret(trace, plan(CHOICE)).strong == pytest.approx([strong])
    assert trace.cumulative[-1] == pytest.approx([strong])


def test_a_block_that_was_cut_short_and_goes_on_counts_in_full():
    run = Simulation(CHOICE, Alternating(1, 2, [], None, 0), seed=0, evaluate_policies=True)
    assert [regret(run.run(rounds), plan(CHOICE)).strong[0] for rounds in (1, 3, 4)] == pytest.approx([1, 2, 2])


def test_also_if_it_was_saved_in_between(tmp_path):
    cmdp = CMDP(np.ones((2, 1)), [[[0.0, 1.0]], [[1.0, 0.0]]], [0.6])
    agents = [make_agent("fha", 1, 2, [0.6], cmdp.costs, 3, 20, H=7, span=0.0) for _ in range(2)]
    whole = Simulation(cmdp, agents[0], seed=1, evaluate_policies=True).run(20)
    first = Simulation(cmdp, agents[1], seed=1, evaluate_policies=True)
    first.run(17)
    first.save(tmp_path / "run.npz")
    rest = Simulation.resume(cmdp, tmp_path / "run.npz").run(20)
    assert rest.episodes.length == whole.episodes.length == [7, 7, 6]
    np.testing.assert_array_equal(rest.policies.costs, whole.policies.costs)


def test_the_arithmetic_of_one_run_is_that_of_many():
    """Arrays of several runs give what each gives on its own; strong regret grows evenly within an episode."""
    rng = np.random.default_rng(0)
    rounds, many = np.array([2, 5, 6]), rng.random((4, 3, 2)).cumsum(axis=1)
    optimum, limits = rng.random(4), rng.random((4, 1))
    all_runs = signed_regret(many, rounds, targets(optimum, limits))
    for k in range(4):
        one = signed_regret(many[k], rounds, targets(optimum[k], limits[k]))
        assert one.tolist() == all_runs[k].tolist()
        assert one[1, 1] == many[k, 1, 1] - 5 * limits[k, 0]
        moved = moving_average(many[:, :, 0], rounds, 3)[k]
        assert moved.tolist() == moving_average(many[k, :, 0], rounds, 3).tolist()
    strong = strong_regret([[1.5, 0.0], [0.5, 2.0]], [4, 2], np.array([0.5, 1.0]), np.array([1, 4, 5, 6]))
    assert strong.tolist() == [[1, 0], [4, 0], [4, 1], [4, 2]]


def slow_paper_curve(costs, window, aim):
    """The paper's curve of one run, round by round, from its costs."""
    curve, total = [], 0.0
    for t in range(1, len(costs) + 1):
        if t >= window:
            total += max(sum(costs[t - window : t]) / window - aim, 0.0)
        curve.append(total)
    return curve


@pytest.mark.parametrize("window", [1, 3, 7, 40, 41])
def test_the_papers_curve_is_that_of_a_loop_over_rounds(window):
    """Exact if every round is a checkpoint; otherwise as if the costs between two checkpoints were their mean."""
    rng = np.random.default_rng(0)
    costs, aims = rng.integers(0, 3, size=(4, 40)).astype(float), np.array([0.8, 1.0, 1.2, 5.0])
    every = np.arange(1, 41)
    expected = [slow_paper_curve(run, window, aim) for run, aim in zip(costs.tolist(), aims, strict=True)]
    np.testing.assert_allclose(paper_curve(costs.cumsum(axis=1), every, window, aims), expected, atol=1e-12)
    for rounds in (np.array([5, 10, 15, 20, 25, 30, 35, 40]), np.array([2, 3, 11, 12, 29, 40]), np.array([40])):
        lengths = np.diff(rounds, prepend=0)
        means = np.add.reduceat(costs, rounds - lengths, axis=1) / lengths
        smooth = np.repeat(means, lengths, axis=1)
        found = paper_curve(costs.cumsum(axis=1)[:, rounds - 1], rounds, window, aims)
        expected = np.array([slow_paper_curve(run, window, aim) for run, aim in zip(smooth, aims, strict=True)])
        np.testing.assert_allclose(found, expected[:, rounds - 1], atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_the_papers_curve_without_runs_or_rounds_is_empty(shape):
    rounds = np.arange(1, 1 + shape[1])
    assert paper_curve(np.zeros(shape), rounds, 2, np.zeros(shape[0])).shape == shape


def test_the_positive_part_of_a_line_is_summed_over_whole_rounds():
    rng = np.random.default_rng(1)
    first, last, n = rng.normal(size=300), rng.normal(size=300), rng.integers(1, 12, size=300)
    first[:20], last[10:30] = 0.0, 0.0
    expected = [
        sum(max(a + (b - a) * j / k, 0.0) for j in range(1, k + 1)) for a, b, k in zip(first, last, n, strict=True)
    ]
    np.testing.assert_allclose(positive_sums(first, last, n), expected, atol=1e-12)
