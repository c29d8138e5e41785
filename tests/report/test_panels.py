"""Figures for print: no text is clipped or on another, and no curve leaves the axes without a mark."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from psconrl.cli.paper import NARROWEST_FIGURE
from psconrl.errors import ConfigError
from psconrl.report.curves import Curves, Experiment
from psconrl.report.cut_curves import MINUS, cut_curves
from psconrl.report.grid_curves import grid_over
from psconrl.report.metrics import measures
from psconrl.report.panel_axes import LOG_FACTOR, linear_part
from psconrl.report.panel_contents import PlottedCurve, rows_of
from psconrl.report.panels import Print, panel_figure
from psconrl.report.paper_figures import figure2, figure3
from psconrl.report.statistics import MeanInterval
from psconrl.report.style import LOOKS, UNKNOWN
from psconrl.report.typeface import LEAST_SIZE, MOST_SIZE, Typeface, typeface_for

ROUNDS = np.linspace(100, 10_000, 40).round().astype(int)
RUNS = 3
T_OF_THREE = 4.302652729911275 / np.sqrt(3)  # half an interval, in standard deviations of three runs


def agent(label, regret, violation, optimum=0.5):
    """Runs whose regret and violation grow to these numbers."""
    share = ROUNDS / ROUNDS[-1]
    noise = 1.0 + 0.05 * np.arange(RUNS)[:, None]
    aims = np.nan_to_num(optimum, nan=0.5), 0.2
    totals = [ROUNDS * aim + noise * end * share for aim, end in zip(aims, (regret, violation), strict=True)]
    cumulative = np.stack(totals, axis=2)
    nothing = np.zeros((RUNS, ROUNDS.size, 2))
    return Curves(
        label=label, agent=label, rounds=ROUNDS, cumulative=cumulative, thresholds=np.full((RUNS, 1), 0.2),
        optimum=np.full(RUNS, optimum), replicates=np.arange(RUNS), seconds=np.ones(RUNS),
        planning_seconds=np.zeros(RUNS), probe=np.empty((RUNS, 0)), strong=nothing, largest_excess=nothing,
        summaries=({},) * RUNS, title=label, look=LOOKS.get(label, UNKNOWN),
    )  # fmt: skip


def experiment(name, *agents, **facts):
    given = {"cost_names": ["length", "risk"], "thresholds": [0.2], "optimum": [0.5, 0.2], "prices": [2.0]}
    return Experiment(name, given | facts, None, {c.label: c for c in agents}, title=name)


LONG = "an agent with $dollars_ and a name that is longer than the column of any paper is wide"
LABELS = [label for label in LOOKS if not label.startswith("resampling")][:23]
ENDS = {"psconrl": (40.0, 3.0), "c-ucrl": (1253.0, -433.0), "safe": (-270_734.0, 31_963.0), LONG: (90.0, -91_000.0)}
CROWD = [agent(x, 50.0 + k, 7.0 - k) for k, x in enumerate(LABELS)]
MANY = experiment("an environment with a long name (costs learned)", *CROWD)
FEW = experiment("short", *(agent(x, *ends) for x, ends in ENDS.items()))
HOPELESS = experiment("hopeless", *(agent(x, 1.0, 2.0, np.nan) for x in ENDS), optimum=[], prices=[], thresholds=[0.2])
del HOPELESS.facts["optimum"], HOPELESS.facts["prices"]


def visible_texts(figure):
    """All texts that are drawn, with their boxes in pixels, after layout."""
    figure.draw_without_rendering()
    kept = set(figure.findobj(Text))
    for axes in figure.axes:
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            span = 1e-6 * (max(ends) - min(ends))
            shown = [t for t in axis.get_major_ticks() if min(ends) - span <= t.get_loc() <= max(ends) + span]
            kept -= set(axis.findobj(Text)) - {axis.label} - {tick.label1 for tick in shown if axes.axison}
    visible = [text for text in kept if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in visible]


def assert_texts_are_whole(figure, overlaps=True):
    """All texts are inside the figure, and no two overlap by more than the rounding of pixels."""
    texts, slack = visible_texts(figure), 1.0
    width, height = figure.get_size_inches() * figure.dpi
    for text, box in texts:
        inside = box.x0 >= -slack and box.y0 >= -slack and box.x1 <= width + slack and box.y1 <= height + slack
        assert inside, (text, box, (width, height))
    for (one, a), (other, b) in itertools.combinations(texts if overlaps else [], 2):
        wide, tall = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= slack or tall <= slack, (one, other, a, b)


def drawn(shown, metrics=("regret", "violation"), **form):
    return panel_figure(shown, rows_of(measures(shown, metrics)), Print(**form))


ALL = ("regret", "violation", "objective", "cost")


@pytest.mark.parametrize(
    "width", [3.25, 7.0, *(pytest.param(width, marks=pytest.mark.full) for width in (NARROWEST_FIGURE, 2.0, 12.0))]
)
@pytest.mark.parametrize("shown", [[FEW], [HOPELESS, FEW, MANY]], ids=["one", "three"])
def test_no_text_is_clipped_or_on_another(shown, width):
    figure = drawn(shown, ALL, width=width)
    assert figure.get_figwidth() == width
    assert_texts_are_whole(figure)


@pytest.mark.parametrize(("family", "size"), [("serif", 6.0), ("cmr10", 10.0), (None, 14.0)])
def test_no_text_is_clipped_in_any_font(family, size):
    figure = drawn([FEW, HOPELESS], width=3.25, family=family, size=size)
    assert_texts_are_whole(figure)
    expected = {"serif": "STIXGeneral", None: "DejaVu Sans"}.get(family, family)
    assert {text.get_fontfamily()[0] for text in figure.findobj(Text) if text.get_text()} == {expected}
    numbers = [label.get_text() for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert any(number.endswith("k") for number in numbers)
    assert not [number for number in numbers if "$" in number]  # formulas have digits of another font
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_text()}
    assert sizes <= {size, 0.875 * size, 0.75 * size}


@pytest.mark.parametrize("height", [3.6, 7.0])
def test_a_figure_is_as_high_as_was_asked(height):
    figure = drawn([FEW, HOPELESS], width=7.0, height=height)
    assert_texts_are_whole(figure)
    np.testing.assert_array_equal(figure.get_size_inches(), [7.0, height])
    inches = [axes.get_window_extent().height / figure.dpi for axes in figure.axes]
    assert max(inches) - min(inches) < 0.05
    labels = [axes.yaxis.label.get_window_extent().height / figure.dpi for axes in figure.axes]
    assert max(labels) < 1.1 * min(inches)  # wrapped to the height of the axes
    used = max(box.y1 for _, box in visible_texts(figure)) - min(box.y0 for _, box in visible_texts(figure))
    assert used / figure.dpi > height - 0.2  # no empty space


def test_a_figure_that_is_too_low_names_a_height_that_is_not():
    with pytest.raises(
        ConfigError, match=r"the texts do not fit a figure 1\.5in high; set --height to [0-9.]+in"
    ) as low:
        drawn([FEW], width=3.25, height=1.5)
    drawn([FEW], width=3.25, height=float(str(low.value).split("--height to ")[1].split("in")[0]))


def test_letters_that_do_not_fit_are_an_error():
    with pytest.raises(ConfigError, match=r"the texts do not fit a figure 1\.5in wide; set a larger --width"):
        drawn([FEW, HOPELESS], width=1.5, size=MOST_SIZE)


@pytest.mark.parametrize(("log", "width"), [("y", 3.25), ("xy", 7.0), ("x", 3.25)])
def test_no_text_is_clipped_on_logarithmic_axes(log, width):
    assert_texts_are_whole(drawn([FEW, HOPELESS], ALL, width=width, log=log))


@pytest.mark.parametrize("draw", [figure2, figure3])
def test_the_papers_figures_have_whole_texts(draw):
    near = experiment("near", *FEW.curves.values(), safest=0.5005, fastest=0.4995)  # lines that touch one another
    assert_texts_are_whole(draw([near, replace(near, name="b"), replace(near, name="c"), replace(near, name="d")]))


def notes_of(axes):
    return " ".join(" ".join(text.get_text() for text in axes.texts).split())


def triangles_of(axes):
    marks = [line for line in axes.lines if not line.get_clip_on()]
    return [line.get_marker() for line in marks]


def test_a_note_has_the_whole_number_in_a_column():
    near = [agent(f"near {k}", 50.0 + k, 3.0 + k) for k in range(3)]
    shown = [experiment("short", *near, agent("c-ucrl", 1253.0, -433.0)), MANY]
    regret, _, violation, _ = drawn(shown, width=3.25).axes
    assert notes_of(regret) == "↑ c-ucrl ends at 1,316"  # with the noise of the runs
    assert notes_of(violation) == f"↓ c-ucrl ends at {MINUS}455"
    assert triangles_of(regret) == ["^"]
    assert triangles_of(violation) == ["v"]


def test_given_ends_of_an_axis_hold_and_what_leaves_it_is_marked():
    near = agent("near", 10.0, 5.0)
    shown = [experiment("a", near, agent("far", 80.0, 5.0), agent("low", -50.0, 5.0))]
    (measure,) = measures(shown, ["regret"])
    (axes,) = panel_figure(shown, rows_of([measure], (-20.0, 30.0)), Print(3.25)).axes
    assert axes.get_ylim() == (-20.0, 30.0)
    assert notes_of(axes) == f"↑ far ends at 84 ↓ low ends at {MINUS}52.5"
    (average,) = measures(shown, ["cost"])
    (axes,) = panel_figure(shown, rows_of([average], (0.25, 0.3)), Print(3.25)).axes
    assert "limit at 0.2" in notes_of(axes)
    assert not [line for line in axes.lines if list(line.get_ydata()) == [0.2, 0.2]]
    names = ("near", "far", "low")
    assert all(f"{name} ends at" in notes_of(axes) for name in names)


def curve(mean, **changes):
    mean = np.array(mean, dtype=float)
    return PlottedCurve("A", UNKNOWN, np.arange(mean.size, dtype=float), MeanInterval(mean, mean, mean), **changes)


def test_a_curve_is_marked_where_it_leaves_the_axes():
    reach = (-1.0, 1.0)
    (cut,) = cut_curves([curve([0, 2, 0, 2, 3])], reach)
    assert (cut.over, cut.x, cut.value) == (True, 3.0, "ends at 3")
    (cut,) = cut_curves([curve([0, 2, 5, 2, 0])], reach)
    assert (cut.over, cut.x, cut.value) == (True, 2.0, "up to 5")
    over, under = cut_curves([curve([0, 4, 0, -2, -3])], reach)
    assert (over.over, over.x, over.value) == (True, 1.0, "up to 4")
    assert (under.over, under.x, under.value) == (False, 3.0, f"ends at {MINUS}3")
    (cut,) = cut_curves([curve([7, 8, 9])], reach)
    assert cut.x == 0.0
    (cut,) = cut_curves([curve([7, 8, 9], every_point=True)], reach)
    assert (cut.x, cut.value) == (2.0, "up to 9")
    assert cut_curves([curve([np.nan, 0.5, 1.0]), curve([np.nan, np.nan])], reach) == []


def banded(mean, low, high, **changes):
    return curve(mean)._replace(
        estimate=MeanInterval(*(np.array(x, dtype=float) for x in (mean, low, high))), **changes
    )


def test_a_band_is_marked_where_it_goes_farthest_beyond_the_axes():
    both = banded([0, 0.5, 0], [-1, -4, -2], [1, 2, 3])
    over, under = cut_curves([both], (-1.0, 1.0))
    assert (over.over, over.x, over.value, over.band) == (True, 2.0, "up to 3", True)
    assert (under.over, under.x, under.value, under.band) == (False, 1.0, f"down to {MINUS}4", True)
    assert cut_curves([both], (-4.0, 3.0 - 1e-12)) == []  # up to rounding
    (cut,) = cut_curves([banded([0, 2, 3], [0, 1, 1], [1, 5, 7])], (-1.0, 1.0))
    assert (cut.value, cut.band) == ("ends at 3", False)  # its band is not named, too
    none = [np.nan] * 3
    assert cut_curves([banded([0, 0, 0], none, none)], (-1.0, 1.0)) == []


def spread(label, ends):
    """Runs whose regret grows in a straight line to these numbers, without violation."""
    one = agent(label, 0.0, 0.0)
    return replace(one, cumulative=one.cumulative + np.outer(ends, ROUNDS / ROUNDS[-1])[:, :, None] * [1.0, 0.0])


def test_the_axes_reach_as_far_as_bands_up_to_four_times_the_median_curve():
    half = 30.0 * T_OF_THREE
    wide = spread("wide", (70.0, 100.0, 130.0))
    (axes,) = drawn([experiment("a", wide, spread("near", (80.0, 80.0, 80.0)))], ["regret"]).axes
    np.testing.assert_allclose(axes.get_ylim(), [-0.05 * (100 + half), 1.05 * (100 + half)])
    assert (notes_of(axes), triangles_of(axes)) == ("", [])
    low = spread("low", (20.0, 20.0, 20.0))  # the median curve, of two the smaller
    (axes,) = drawn([experiment("a", spread("wide", (30.0, 60.0, 90.0)), low)], ["regret"]).axes
    np.testing.assert_allclose(
        axes.get_ylim(), np.array([60 - half, 80]) + 0.05 * (80 - (60 - half)) * np.array([-1, 1])
    )
    assert notes_of(axes) == "↑ band of wide up to 135"
    assert triangles_of(axes) == ["^"]
    hollow = next(line for line in axes.lines if not line.get_clip_on())
    assert hollow.get_markerfacecolor() == "white"


def test_a_band_below_a_logarithmic_axis_is_noted():
    wide = spread("wide", (70.0, 100.0, 130.0))
    wide = replace(wide, cumulative=wide.cumulative + np.array([200.0, 0.0]))  # positive at all checkpoints
    wider = spread("wider", (100.0, 600.0, 1100.0))
    wider = replace(wider, cumulative=wider.cumulative + np.array([200.0, 0.0]))
    (axes,) = drawn([experiment("a", wide, wider)], ["regret"], log="y").axes
    low, high = (wider.regret.mean(axis=0) + sign * T_OF_THREE * wider.regret.std(axis=0, ddof=1)
                 for sign in (-1, 1))  # fmt: skip
    least = wide.regret.mean(axis=0).min()
    assert low.min() < 0
    np.testing.assert_allclose(axes.get_ylim(), [least / 4 / LOG_FACTOR, high.max() * LOG_FACTOR])
    assert notes_of(axes) == f"↓ band of wider down to {MINUS}442"
    assert triangles_of(axes) == ["v"]


def test_one_environment_without_an_optimum_does_not_abort_the_others():
    figure = drawn([HOPELESS, FEW], width=7.0)
    regret, _, violation, _ = figure.axes
    assert notes_of(regret) == "no optimum to compare with"
    assert not regret.lines
    assert len(violation.lines) > len(ENDS)
    with pytest.raises(ConfigError, match="regret: experiment 'hopeless' has no optimum to compare with"):
        drawn([HOPELESS])


def test_logarithmic_axes():
    positive = [experiment("a", agent("b", 10.0, 0.1), agent("c", 9000.0, 0.1))]
    (axes,) = drawn(positive, ["regret"], log="xy").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert triangles_of(axes) == []  # the far curve is not cut off
    assert axes.get_ylim()[1] > 9000
    (axes,) = drawn([experiment("a", agent("b", -10.0, 0.0), agent("c", 9000.0, 0.0))], ["regret"], log="y").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "symlog")
    assert axes.yaxis.get_transform().linthresh == linear_part(9000.0) == 10.0


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (3.0, 4000.0, ["10", "100", "1,000"]),
        (30.0, 400.0, ["50", "100", "200"]),
        (110.0, 900.0, ["200", "500"]),
        (210.0, 450.0, ["300", "400"]),
        (0.011, 0.06, ["0.02", "0.05"]),
    ],
)
def test_a_logarithmic_axis_within_a_decade_has_more_labels(low, high, labels):
    shown = [experiment("a", agent("b", 10.0, 0.1))]
    (axes,) = panel_figure(shown, rows_of(measures(shown, ["regret"]), (low, high)), Print(log="y")).axes
    shown_labels = [x.get_text() for x in axes.get_yticklabels() if low <= x.get_position()[1] <= high]
    assert shown_labels == labels


def test_a_logarithmic_axis_ends_above_zero():
    shown = [experiment("a", agent("b", 10.0, 0.1))]
    with pytest.raises(ConfigError, match="--ylim: LOW must be positive on a logarithmic axis; got 0"):
        panel_figure(shown, rows_of(measures(shown, ["regret"]), (0.0, 5.0)), Print(log="y"))


@pytest.mark.parametrize("wide", [0.2, 0.5, 1.0, 4.0])
def test_lines_fit_and_numbers_are_not_broken(wide):
    letters = Typeface()
    numbers = {f"{MINUS}10,972;", f"{MINUS}433,000,000"}
    text = f"↓ SA-CVI-UCB-with-a-long-name ends at {MINUS}10,972; another at {MINUS}433,000,000"
    lines = letters.wrapped(text, 6.0, wide).split("\n")
    assert "".join("".join(lines).split()) == "".join(text.split())
    words = [word for line in lines for word in line.split()]
    assert numbers <= set(words)
    for line in lines:
        assert letters.width(line, 6.0) <= wide or not any(letter.isalpha() for letter in line)


def test_measured_widths_are_those_of_drawn_texts():
    letters = Typeface("STIXGeneral", 9.0)
    for text in ("PSConRL (prior 1/S)", "a $x$ with _ and ↑"):
        figure = Figure(dpi=300)
        shown = figure.text(0, 0, text, fontsize=9.0, family=letters.families, parse_math=False)
        exact = shown.get_window_extent().width / figure.dpi
        assert exact <= letters.width(text, 9.0) <= 1.1 * exact


@pytest.mark.parametrize(
    ("family", "size", "message"),
    [
        ("Helvetika Neue Wide", None, "--font: unknown font 'Helvetika Neue Wide'"),
        (None, LEAST_SIZE - 1, "--fontsize: must be from 4 to 24 points; got 3"),
        (None, MOST_SIZE + 1, "--fontsize: must be from 4 to 24 points; got 25"),
        (None, float("nan"), "--fontsize: must be from 4 to 24 points; got nan"),
    ],
)
def test_fonts_that_there_are_not(family, size, message):
    with pytest.raises(ConfigError, match=message):
        typeface_for(3.25, family, size)
    assert (typeface_for(3.25).label, typeface_for(9.0).label) == (8.0, 10.0)


def grid(*values, name="rover", look="psconrl", regret=10.0):
    agents = [agent(f"{look} share={x}", regret * (k + 1), 1.0) for k, x in enumerate(values)]
    return experiment(name, *agents, agent("c-ucrl", 25.0, 1.0))


def test_a_measure_against_an_option_of_agents():
    found = grid_over([grid(0.01, 1.0, 0.1)], "share")
    (shown,) = found.experiments
    assert [(c.label, c.title, c.look) for c in shown.curves.values()] == [
        ("psconrl", "PSConRL", LOOKS["psconrl"]),
        ("c-ucrl", "C-UCRL", LOOKS["c-ucrl"]),
    ]
    (row,) = found.rows(measures([shown], ["regret"]))
    ours, other = row.curves(shown)
    np.testing.assert_array_equal(ours.x, [0.01, 0.1, 1.0])
    np.testing.assert_allclose(ours.estimate.mean, 1.05 * np.array([10.0, 30.0, 20.0]))  # with the noise of the runs
    np.testing.assert_array_equal(other.x, [0.01, 1.0])  # it has no such option: a horizontal line
    np.testing.assert_allclose(other.estimate.mean, 1.05 * 25.0)
    figure = panel_figure([shown], [row], Print(3.25))
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == ("log", "share", "final regret")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.01", "0.1", "1.0"]
    assert_texts_are_whole(figure)


def test_a_measure_against_an_option_of_environments():
    members = [experiment(f"rover slip={x} (costs learned)", agent("psconrl", 10 * x, 1.0)) for x in (0.2, 0.1)]
    found = grid_over([*members, FEW], "slip")
    (shown,) = found.experiments  # the other environment has no such option
    assert (shown.name, shown.title) == ("rover (costs learned)", "rover (costs learned)")
    (row,) = found.rows(measures(found.environments(shown), ["regret"]))
    (line,) = row.curves(shown)
    np.testing.assert_allclose(line.x, [0.1, 0.2])
    np.testing.assert_allclose(line.estimate.mean, [1.05, 2.1])


def test_values_that_are_words_stand_side_by_side_and_zero_has_a_place():
    found = grid_over([grid("doubling", "every-round")], "share")
    assert found.places == {"doubling": 0.0, "every-round": 1.0}
    (shown,) = found.experiments
    assert_texts_are_whole(panel_figure([shown], found.rows(measures([shown], ["regret", "cost"])), Print(2.0)))
    zero = grid_over([grid(0, 0.01, 0.1, 1.0)], "share")
    (axes,) = panel_figure(zero.experiments, zero.rows(measures(zero.experiments, ["regret"])), Print(3.25)).axes
    assert axes.get_xscale() == "symlog"
    ours, level = axes.lines[:2]
    np.testing.assert_array_equal(ours.get_xdata(), [0.0, np.nan, 0.01, 0.1, 1.0])  # zero is not joined with the next
    assert np.isnan(ours.get_ydata()).tolist() == [False, True, False, False, False]
    np.testing.assert_array_equal(level.get_xdata(), [0.0, 1.0])
    alone = [part.get_segments() for part in axes.collections if hasattr(part, "get_segments")]
    np.testing.assert_allclose(alone, [[[[0.0, 10.5 - 0.5 * T_OF_THREE], [0.0, 10.5 + 0.5 * T_OF_THREE]]]])
    few = grid_over([grid(0, 1, 2)], "share")  # linear
    (axes,) = panel_figure(few.experiments, few.rows(measures(few.experiments, ["regret"])), Print(3.25)).axes
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [0.0, 1.0, 2.0])


def test_an_option_that_no_grid_has_is_named():
    with pytest.raises(ConfigError, match="--against: unknown option of a grid 'shar'; did you mean 'share'"):
        grid_over([grid(0.1, 1.0)], "shar")


def test_a_point_that_leaves_the_axes_is_marked():
    found = grid_over([grid(0.01, 0.1, 1.0, regret=10.0), grid(0.1, 1.0, name="other")], "share")
    rows = found.rows(measures(found.experiments, ["regret"]), (0.0, 20.0))
    axes = panel_figure(found.experiments, rows, Print(7.0)).axes[0]
    assert notes_of(axes) == "↑ PSConRL up to 31.5; C-UCRL up to 26.2"
