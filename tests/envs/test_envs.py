"""The built-in environments: their sizes, their known optima, and the maps they are made from."""

import numpy as np
import pytest

from psconrl import CMDP, Status, evaluate, load, plan, save
from psconrl.envs.box import box
from psconrl.envs.counterexample import counterexample
from psconrl.envs.gridworld import ACTIONS, gridworld
from psconrl.errors import ConfigError, ModelError
from psconrl.markov.structure import is_communicating, reachable

TABLE = {  # states, limit, optimum, fastest, safest
    "marsrover-4x4": (16, 0.2, 0.775, 0.75, 0.875),
    "marsrover-8x8": (64, 0.1, 0.9380952381, 0.9230769231, 0.9523809524),
    "box": (60, 0.6, 0.845, 0.8333333333, 0.875),
}


@pytest.mark.parametrize("method", ["mixture", "lp"])
@pytest.mark.parametrize("name", TABLE)
def test_the_optima_of_the_paper(name, method):
    n_states, limit, optimum, fastest, safest = TABLE[name]
    cmdp = load(name)
    assert (cmdp.n_states, cmdp.n_actions, cmdp.thresholds.tolist()) == (n_states, 4, [limit])
    for threshold, value in ((limit, optimum), (1.0, fastest), (0.0, safest)):
        best = plan(cmdp.with_thresholds(threshold), method)
        assert best.status is Status.OPTIMAL
        assert best.value == pytest.approx(value, abs=1e-10)
        assert best.costs[1] <= threshold + 1e-9


@pytest.mark.parametrize("name", [*TABLE, "counterexample"])
def test_the_environments_of_the_paper_communicate_and_are_named(name):
    cmdp = load(name)
    assert is_communicating(cmdp)
    assert reachable(cmdp).size == cmdp.n_states
    assert cmdp.initial.max() == 1.0
    assert None not in (cmdp.state_names, cmdp.action_names)


@pytest.mark.parametrize("name", TABLE)
def test_no_slip_is_deterministic_and_slip_keeps_it_communicating(name):
    assert set(np.unique(load(name).transition)) == {0.0, 1.0}
    assert is_communicating(load(name, slip=0.3))


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("slip", [0.1, 1.0])
def test_slip_spreads_evenly_over_the_actions(name, slip):
    sure = load(name).transition.toarray().reshape(-1, 4, load(name).n_states)
    slippery = load(name, slip=slip).transition.toarray().reshape(sure.shape)
    np.testing.assert_allclose(slippery, (1 - slip) * sure + slip * sure.mean(axis=1, keepdims=True), atol=1e-15)


def test_options_reach_the_environment():
    assert load("box", threshold=0.25).thresholds.tolist() == [0.25]
    assert load("counterexample", theta=0.5).transition.toarray()[1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("theta", [0.9, 0.5, 1.0])
def test_the_counterexample_costs_at_least_one_over_one_plus_theta(theta):
    cmdp = counterexample(theta=theta)
    least = 1 / (1 + theta)
    assert plan(CMDP(cmdp.transition, cmdp.costs[1:])).value == pytest.approx(least, abs=1e-12)
    below = plan(cmdp.with_thresholds(least - 1e-3))
    assert below.status is Status.INFEASIBLE
    assert below.infeasibility.alone[0] == pytest.approx(least)


def test_the_counterexample_earns_what_its_limit_allows():
    assert plan(load("counterexample")).value == pytest.approx(0.5275)
    assert evaluate(load("counterexample"), [0, 0]).value == 1.0


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_corridor_takes_its_length(n):
    corridor = gridworld("S" + "." * (n - 2) + "G")
    assert corridor.n_states == n
    assert plan(corridor).value == pytest.approx(1 - 1 / n)


@pytest.mark.parametrize("slip", [0.0, 0.2, 1.0])
def test_a_slippery_step(slip):
    steps = 1 / (1 - slip + slip / 4)  # expected, until the one right way is taken
    assert plan(gridworld("S G", slip=slip)).value == pytest.approx(steps / (steps + 1))


def test_moves_walls_goal_and_risk():
    cmdp = gridworld(["S R", "# G"])
    names = dict(zip(cmdp.state_names, range(3), strict=True))
    up, down, left, right = range(4)
    assert cmdp.action_names == ACTIONS == ("up", "down", "left", "right")
    follows = cmdp.transition.toarray().reshape(3, 4, 3).argmax(axis=2)
    s, r, g = names["(0,0)"], names["(0,1)"], names["(1,1)"]
    assert follows[s, [up, down, left, right]].tolist() == [s, s, s, r]
    assert follows[r, [up, down, left, right]].tolist() == [r, g, s, r]
    assert follows[g].tolist() == [s] * 4
    steps, risk = cmdp.costs
    assert steps.sum(axis=1).tolist() == [4.0, 4.0, 0.0]
    assert risk.tolist() == (follows == r).astype(float).tolist()  # paid on entering, and on staying


def test_cells_that_cannot_be_reached_are_left_out():
    cmdp = gridworld(
        """
        S . G
        # # #
        . R .
        """
    )
    assert cmdp.state_names == ("(0,0)", "(0,1)", "(0,2)")
    assert cmdp.layout.rows == ("S.G", "###", ".R.")
    assert cmdp.layout.cells == ((0, 0), (0, 1), (0, 2))


def test_the_box_is_pushed_and_stops_at_walls():
    cmdp = box("S B .\n. . G")
    names = dict(zip(cmdp.state_names, range(cmdp.n_states), strict=True))
    follows = cmdp.transition.toarray().reshape(-1, 4, cmdp.n_states).argmax(axis=2)
    start = names["agent (0,0) box (0,1)"]
    pushed = names["agent (0,1) box (0,2)"]
    right = ACTIONS.index("right")
    assert follows[start, right] == pushed
    assert follows[pushed, right] == pushed  # the box is at the wall
    corner = cmdp.costs[1]
    assert corner[start, right] == 1.0
    assert corner[start, ACTIONS.index("up")] == 0.0  # one wall is no corner


SMALL = "S . G"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gridworld(""), "map is empty"),
        (lambda: gridworld([]), "map is empty"),
        (lambda: gridworld("S . G\n. ."), "map row 1 must have 3 cells like the first; got 2"),
        (lambda: gridworld("S ? G"), r"map cell \(0, 1\) must be one of . S G R #; got '\?'"),
        (lambda: gridworld("S B G"), r"map cell \(0, 1\) must be one of .*; got 'B'"),
        (lambda: gridworld(". . G"), "map must have exactly one start 'S'; got 0"),
        (lambda: gridworld("S S G"), "map must have exactly one start 'S'; got 2"),
        (lambda: gridworld("S . ."), "map must have exactly one goal 'G'; got 0"),
        (lambda: gridworld("S # G"), r"the goal at \(0, 2\) cannot be reached from the start at \(0, 0\)"),
        (lambda: gridworld(SMALL, slip=1.5), r"slip must lie in \[0, 1\]; got 1.5"),
        (lambda: gridworld(SMALL, slip=float("nan")), r"slip must lie in \[0, 1\]; got nan"),
        (lambda: gridworld(SMALL, threshold=float("inf")), "thresholds must be finite; got inf"),
        (lambda: box(SMALL), "map must have exactly one box 'B'; got 0"),
        (lambda: box("S B G\n. B ."), "map must have exactly one box 'B'; got 2"),
        (lambda: box("S B . G"), r"the goal at \(0, 3\) cannot be reached from the start at \(0, 0\)"),
        (lambda: counterexample(theta=2), r"transition\[0, 1, 0\] must be a probability; got -1"),
        (lambda: load("bx"), "unknown environment 'bx'; did you mean 'box'"),
        (
            lambda: load("chess"),
            "unknown environment 'chess'; known: marsrover-4x4, marsrover-8x8, box",
        ),
    ],
)
def test_bad_maps_and_options_are_refused_in_one_clear_line(build, message):
    with pytest.raises(ModelError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slp": 0.1}, "box: unknown option 'slp'; did you mean 'slip'"),
        ({"theta": 0.1}, "box: unknown option 'theta'; known: slip, threshold"),
        ({"slip": "much"}, "box: option 'slip' must be a number; got 'much'"),
    ],
)
def test_unknown_options_are_refused_in_one_clear_line(options, message):
    with pytest.raises(ConfigError, match=message) as refusal:
        load("box", **options)
    assert "\n" not in str(refusal.value)


def test_a_model_file_takes_no_options(tmp_path):
    save(load("box"), tmp_path / "box.npz")
    with pytest.raises(ConfigError, match="a model file takes no options; got slip"):
        load(tmp_path / "box.npz", slip=0.1)


def test_box_with_all_placements_has_the_same_optimum():
    """121 placements of agent and box on 11 cells, of which 60 can be reached."""
    every, met = load("box", unreachable=True), load("box")
    assert (every.n_states, reachable(every).size) == (121, met.n_states)
    assert plan(every).value == pytest.approx(plan(met).value, abs=1e-12)
    assert [every.state_name(s) for s in reachable(every)] == [met.state_name(s) for s in range(met.n_states)]
    np.testing.assert_array_equal(every.restricted(reachable(every)).transition.toarray(), met.transition.toarray())
