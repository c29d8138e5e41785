"""Figures of policies: the box on its map, and the rule of a policy of many states."""

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb

import psconrl
from psconrl.cli import main
from psconrl.model.cmdp import CMDP
from psconrl.model.coordinates import Coordinates, axis_name, coordinates, with_total
from psconrl.report.policy_figure import BOX, MOST_ROWS, policy_figure
from psconrl.report.policy_rule_figure import deciding_pair
from psconrl.report.style import PALETTE


@pytest.fixture(scope="module")
def network():
    cmdp = psconrl.load("network", side=12)
    return cmdp, psconrl.plan(cmdp)


def words_in(figure):
    texts = [t for axes in figure.axes for t in axes.texts] + [t for legend in figure.legends for t in legend.texts]
    return [t.get_text() for t in texts]


def chain(names):
    """A model with one state per name."""
    n = len(names)
    return CMDP(np.full((n, 1, n), 1 / n), [np.ones((n, 1))], state_names=names)


def test_the_box_stands_on_its_map_where_the_layer_says():
    box = psconrl.load("box")
    figure = policy_figure(box, psconrl.plan(box))
    assert len(figure.axes) == 3
    for axes in figure.axes:
        i, j = (int(x) for x in axes.get_title()[len("box at (") :].split(")")[0].split(","))
        (crate,) = [p for p in axes.patches if p.get_facecolor()[:3] == pytest.approx(to_rgb(BOX))]
        centre = (crate.get_xy().min(axis=0) + crate.get_xy().max(axis=0)) / 2
        assert centre == pytest.approx([j + 0.5, i + 0.5])
        (letter,) = [t for t in axes.texts if t.get_text() == "B"]
        assert letter.get_position() == (j + 0.5, i + 0.5)
    rover = psconrl.load("marsrover-4x4")
    assert "B" not in words_in(policy_figure(rover, psconrl.plan(rover)))


def test_the_box_is_on_the_map_of_the_terminal(capsys):
    with pytest.raises(SystemExit):
        main(["solve", "box"])
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("box at (2,1)")
    assert [line.split() for line in lines[start + 1 : start + 5]] == [
        [".", "S", "#", "#"], [".", "→.", "↓.", "."], ["#", "B", "↓.", "."], ["#", "#", "→.", "G"],
    ]  # fmt: skip
    assert "  arrows: the way taken in the long run; S start, G goal, # wall, B box" in lines
    with pytest.raises(SystemExit):
        main(["solve", "marsrover-4x4"])
    assert "S start, G goal, R risky\n" in capsys.readouterr().out


def test_states_are_placed_by_the_numbers_in_their_names():
    ward = coordinates(chain([f"{a} urgent, {b} elective" for a in range(3) for b in range(2)]))
    assert ward.names == ("urgent", "elective")
    assert ward.values.tolist() == [[a, b] for a in range(3) for b in range(2)]
    signed = coordinates(chain(["at -1.5, bed 7", "at 2, bed 7"]))
    assert signed.names == ("at",)  # the other number is always the same
    assert signed.values.tolist() == [[-1.5], [2.0]]
    assert coordinates(chain(["1 up", "1 down"])) is None  # words differ
    assert coordinates(chain(["idle", "idle "])) is None  # indistinguishable
    unnamed = coordinates(CMDP(np.full((3, 1, 3), 1 / 3), [np.ones((3, 1))]))
    assert (unnamed.names, unnamed.values.ravel().tolist()) == (("state",), [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("form", "k", "name"),
    [
        ("# and # waiting", 0, "n and · waiting"), ("# # # in stock", 2, "· · n in stock"), ("(#, #)", 1, "(·, n)"),
        ("agent (#,#)", 0, "agent (n,·)"), ("# urgent, # transfer", 1, "transfer"), ("position #", 0, "position"),
        ("#", 0, "n"),
    ],
)  # fmt: skip
def test_axes_are_named_by_the_words_around_a_number(form, k, name):
    assert axis_name(form, k) == name


def test_the_pair_that_tells_the_action_is_found():
    """The action is 1 where the first and the third number are equal: no other pair determines it."""
    space = np.array([(a, b, c) for a in range(3) for b in range(4) for c in range(3)])
    action = (space[:, 0] == space[:, 2]).astype(int)
    flow = np.eye(2)[action] / len(space)
    levels = [np.unique(column, return_inverse=True) for column in space.T]
    pair, decided = deciding_pair(flow, levels)
    assert pair == (0, 2)
    assert decided == pytest.approx(1.0)
    _, guessed = deciding_pair(flow, levels[:2])
    assert guessed == pytest.approx(2 / 3)  # without the third number: always 0


def test_a_large_policy_is_drawn_as_its_rule(network):
    cmdp, best = network
    mass = best.occupancy.sum(axis=1)
    assert (mass > 1e-9).sum() > MOST_ROWS
    figure = policy_figure(cmdp, best, "network")
    (mesh,) = [c for c in figure.axes[0].collections if isinstance(c, QuadMesh)]
    paint = np.asarray(mesh.get_array())  # (second, first, rgb)
    used = [a for a in np.argsort(-best.occupancy.sum(axis=0), kind="stable") if best.occupancy[:, a].sum() > 1e-9]
    for s in range(cmdp.n_states):
        first, second = (int(x) for x in cmdp.state_name(s).split(" waiting")[0].split(" and "))
        colour = paint[second, first, :3]
        if mass[s] <= 1e-9:
            assert colour == pytest.approx([1, 1, 1])
        elif s not in best.randomised_states:
            assert colour == pytest.approx(to_rgb(PALETTE[used.index(int(best.policy[s].argmax()))]))
    assert figure.axes[0].get_xlabel() == "n and · waiting"
    assert figure.axes[0].get_ylabel() == "· and n waiting"
    shares = {a: 100 * best.occupancy[:, a].sum() for a in used}
    named = [text for text in words_in(figure) if "%" in text]
    assert [text.rpartition(" (")[0] for text in named] == [cmdp.action_name(a) for a in used]
    for text, share in zip(named, shares.values(), strict=True):
        assert float(text.rpartition(" (")[2].rstrip("%)")) == pytest.approx(share, rel=0.01)


def test_shares_along_a_number_are_those_of_the_plan(network):
    cmdp, best = network
    figure = policy_figure(cmdp, best)
    first = np.array([int(cmdp.state_name(s).split()[0]) for s in range(cmdp.n_states)])
    top = int(best.occupancy.sum(axis=0).argmax())
    (steps,) = [p for p in figure.axes[1].patches if p.get_facecolor()[:3] == pytest.approx(to_rgb(PALETTE[0]))]
    tops, edges, base = steps.get_data()
    assert edges.tolist() == (np.arange(13) - 0.5).tolist()
    for n in range(12):
        here = best.occupancy[first == n]
        share = here[:, top].sum() / here.sum() if here.sum() > 1e-9 else 0.0
        assert tops[n] - base[n] == pytest.approx(share)


def test_where_numbers_count_the_action_is_looked_for_along_their_sum():
    """Admit while fewer than four of nine beds are taken, by patients of either kind."""
    space = np.array([(a, b, c) for a in range(4) for b in range(4) for c in range(4)], dtype=float)
    places = with_total(Coordinates(("a", "b", "c"), space))
    assert places.names == ("a", "b", "c", "in all")
    flow = np.eye(2)[(space.sum(axis=1) < 4).astype(int)] / len(space)
    pair, decided = deciding_pair(flow, [np.unique(column, return_inverse=True) for column in places.values.T])
    assert 3 in pair
    assert decided == pytest.approx(1.0)
    assert with_total(Coordinates(("a", "b"), space[:, :2])).names == ("a", "b")
    assert with_total(Coordinates(("a", "b", "c"), space - 0.5)).names == ("a", "b", "c")
    huge = [(np.arange(2000.0), np.zeros(2, dtype=int))] * 2
    assert deciding_pair(np.ones((2, 1)), huge) == ((), 0.0)  # no map of four million cells


def test_one_number_has_one_panel_and_words_a_table():
    cmdp = _long_queue()
    best = psconrl.plan(cmdp)
    figure = policy_figure(cmdp, best)
    assert [axes.get_xlabel() for axes in figure.axes] == ["waiting"]
    words = CMDP(
        cmdp.transition.toarray().reshape(60, 2, 60),
        cmdp.costs,
        cmdp.thresholds,
        state_names=[chr(97 + k // 8) + chr(97 + k % 8) for k in range(60)],
    )
    table = policy_figure(words, psconrl.plan(words))
    assert table.axes[0].get_ylabel() == "state"
    assert len(table.axes[0].get_yticks()) == MOST_ROWS
    mass = np.sort(best.occupancy.sum(axis=1))[::-1]
    shown = f"the {MOST_ROWS} most visited of 60 states, {100 * mass[:MOST_ROWS].sum():.3g}% of the time"
    assert shown in table.get_suptitle()


def _long_queue():
    """Customers come with probability .4 and go with .3 or, at a price, .5: sixty states, all visited."""
    P = np.zeros((60, 2, 60))
    for s in range(60):
        for a, go in enumerate((0.38, 0.42)):
            up, down = 0.4 * (s < 59), go * (s > 0)
            P[s, a, min(s + 1, 59)] += up
            P[s, a, max(s - 1, 0)] += down
            P[s, a, s] += 1 - up - down
    cost = np.zeros((2, 60, 2))
    cost[0, :, 1] = 1.0
    cost[1] = np.arange(60)[:, None]
    return CMDP(P, cost, [25.0], state_names=[f"{s} waiting" for s in range(60)])
