"""Styles of agents: the same in figures and on the page, independent of the other agents shown."""

import itertools
import json
import re

import numpy as np
import pytest

from psconrl.experiment.spec_file import shipped_spec
from psconrl.learning.registry import RECIPES, VARIANTS, title_of, titles_of
from psconrl.report import page
from psconrl.report.number_format import format_number
from psconrl.report.style import BLUE, LOOKS, OTHER_MARKERS, OTHERS, PALETTE, SKY, looks_of, nth_look
from psconrl.report.theory_growth import TITLES
from reports import curve, one_panel

# Labels of runs of several lengths have titles and looks of their own: test_theory_growth.py.
SHIPPED = {job.label for name in ("paper", "theory") for job in shipped_spec(name).jobs(quick=True)} - set(TITLES)


def test_every_agent_of_the_library_has_a_look_of_its_own():
    assert set(LOOKS) == set(RECIPES) | SHIPPED
    assert len(set(LOOKS.values())) == len(LOOKS)
    assert all(look.colour in PALETTE for look in LOOKS.values())


def test_the_style_of_an_agent_does_not_depend_on_the_others_shown():
    alone, together = looks_of(["c-ucrl"]), looks_of(["mine", "psconrl", "c-ucrl", "yours"])
    assert alone["c-ucrl"] == together["c-ucrl"] == LOOKS["c-ucrl"]
    assert looks_of(["mine", "yours"]) == {label: together[label] for label in ("mine", "yours")}
    assert together["mine"] == nth_look(0, OTHERS, OTHER_MARKERS)


def test_every_pair_of_agents_differs_in_dash_or_marker():
    """In greyscale, colours do not distinguish. 30 agents of one's own, beside all those of the library."""
    looks = looks_of([*LOOKS, *(f"mine {k}" for k in range(30))]).values()
    assert len({(look.dash, look.marker) for look in looks}) == len(looks) == len(LOOKS) + 30


@pytest.mark.parametrize("name", ["paper", "leaderboard"])
def test_markers_differ_among_the_first_eight_agents_of_an_experiment(name):
    """In greyscale and in the width of a column, dashes are harder to see than markers."""
    shown = {}
    for job in shipped_spec(name).jobs():
        shown.setdefault(job.experiment, {})[job.label] = None
    for labels in shown.values():
        markers = [LOOKS[label].marker for label in [*labels][:8] if label in LOOKS and LOOKS[label].marker]
        assert len(set(markers)) == len(markers), labels


def test_many_unknown_agents_have_distinct_styles():
    """In colour and dash: the page has no markers."""
    assert len({(look.colour, look.dash) for look in looks_of(f"agent {k}" for k in range(25)).values()}) == 25
    looks = [nth_look(k) for k in range(50)]
    assert len({(look.colour, look.dash) for look in looks}) == 50
    assert not set(OTHERS) & set(PALETTE)


def lab(colour):
    """A colour in CIELAB, where distances are about those that the eye sees."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    fx, fy, fz = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x / 0.9505, y, z / 1.089))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


@pytest.mark.parametrize("looks", [list(LOOKS.values()), [nth_look(k) for k in range(len(PALETTE))]])
def test_similar_colours_have_different_dashes(looks):
    assert np.linalg.norm(lab(BLUE) - lab(SKY)) < 30
    for one, other in itertools.combinations(looks, 2):
        assert one.dash != other.dash or np.linalg.norm(lab(one.colour) - lab(other.colour)) > 40


def test_the_page_has_the_looks_of_the_figures():
    series = [curve(agent, [1, 2], [1.0, 2.0]) for agent in ("mine", "c-ucrl", "psconrl")]
    text = page.render_report({"experiments": [one_panel(*series)]})
    data = json.loads(re.search(r'id="report">(.*?)</script>', text, re.DOTALL)[1])
    assert data["looks"] == [["mine", OTHERS[0], ""], ["c-ucrl", "#000000", "12 4"], ["psconrl", "#0072B2", ""]]


def test_looks_are_lines_of_matplotlib():
    assert LOOKS["psconrl"].line == {"color": "#0072B2", "ls": "-"}
    assert LOOKS["c-ucrl"].line == {"color": "#000000", "ls": (0, (6, 2))}
    marked = LOOKS["pdnac"].marked_line
    assert {key: marked[key] for key in ("color", "ls", "marker")} == {"color": "#D55E00", "ls": "-", "marker": "v"}


def test_names_in_pictures():
    assert [title_of(x) for x in ("fha", "psconrl-covered", "mine")] == ["FHA", "PSConRL, closest to the proof", "mine"]


def test_titles_are_unique_and_every_variant_of_a_shipped_spec_has_one():
    labels = {*RECIPES, *VARIANTS}
    assert len({title_of(label) for label in labels}) == len(labels)
    boards = (shipped_spec(name).jobs(quick=True) for name in ("leaderboard", "sensitivity"))
    named = SHIPPED | {label for jobs in boards for job in jobs if (label := job.label.partition(" ")[0])}
    assert set(VARIANTS) <= named
    assert {label for label in SHIPPED if title_of(label) == label} <= {"uniform"}


def test_an_agent_may_be_looked_up_by_its_title():
    looks = looks_of(["C-UCRL", "mine"])
    assert looks["C-UCRL"] == LOOKS["c-ucrl"]
    assert looks["mine"] == looks_of(["c-ucrl", "mine"])["mine"]
    assert titles_of(["FHA", "c-ucrl", "fha"]) == {"FHA": "FHA", "c-ucrl": "C-UCRL", "fha": "fha"}


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0.0, 3, "0"), (-0.0, 1, "0"), (5380.0, 3, "5,380"), (-270733.8, 3, "-270,734"), (0.5275, 4, "0.5275"),
        (14.93, 3, "14.9"), (99.96, 3, "100"), (999.6, 3, "1,000"), (0.00012, 2, "0.00012"), (2.2e-16, 1, "2e-16"),
        (float("nan"), 3, "nan"), (-1.0, 3, "-1"), (1e6, 3, "1,000,000"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_people_write_them(number, digits, text):
    assert format_number(number, digits) == text
