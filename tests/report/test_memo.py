"""The memo: what every verdict says, and the geometry of its pictures."""

import re

import pytest

from psconrl.report.memo.page import render_memo
from psconrl.report.memo.pictures import bars, colours_of, meter, strip
from psconrl.report.memo.summary import gained


def record(verdict="improve", **changed):
    """Return the record of some advice."""
    interval = {"mean": 0.4, "low": 0.3, "high": 0.5}
    limit = {"name": "lost", "at_least": False, "threshold": 0.45, "probability": 0.97, "average": 0.4, "low": 0.35,
             "high": 0.44, "probability_today": 0.01, "unit": "piece a day"}  # fmt: skip
    need = {"about": "lost", "matters": [{"what": "demand", "share": 0.9, "rows": None}], "rounds": None,
            "share_of_proposal": 0.0, "experiment": "Go on.", "value": 0.1, "perfect": 0.2}  # fmt: skip
    decision = {"state": "shelf=1", "today": [["order=10", 0.5], ["order=2", 0.5]], "proposed": [["order=2", 1.0]],
                "share_today": 0.2, "share": 0.4, "changes": {"cost": -0.5, "lost": 0.25}}  # fmt: skip
    found = {
        "data": {"rounds": 100, "runs": 1, "states": 3, "actions": 2, "gaps": 0, "with_system": False, "faults": []},
        "checks": {"is_good": True, "findings": [], "tests": [1, 2], "coverage": {"gaps": []}},
        "objective": {"name": "cost", "sense": "minimise", "unit": "euro a day"},
        "averages": [
            {"name": name, "unit": "", **interval, "level": 0.95, "in_log": None, "disagreement": ""}
            for name in ("cost", "lost")
        ],
        "verdict": verdict,
        "confidence": 0.95,
        "recommended": verdict in ("improve", "pay"),
        "probability": 0.96,
        "gain": {"mean": 0.5, "low": 0.2, "high": 0.8, "average": 0.1, "average_low": 0.0, "average_high": 0.2},
        "limits": [limit],
        "decisions": [decision],
        "prices": [{"limit": "lost", "amount": 3.0, "low": 2.0, "high": 4.0, "unit": ""}],
        "measuring": need if verdict == "not enough data" else None,
        "guarantee": {"found": False, "reason": "too few rows", "probability": 0.95, "bounds": {},
                      "no_worse_than_today": False, "price": None},
    }  # fmt: skip
    return found | changed


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        ("improve", "Change what you do"),
        ("pay", "breaks the limit on <b>lost</b>"),
        ("keep", "Keep doing what you do"),
        ("not enough data", "Not enough data for a change"),
    ],
)
def test_every_verdict_has_its_words(verdict, sentence):
    page = render_memo(record(verdict))
    assert sentence in page
    assert ('id="change"' in page) == (verdict != "keep")
    assert "nan" not in page
    assert "None" not in page


def test_gains_are_said_in_the_direction_of_the_objective():
    assert "lower by 0.5 euro a day</b> on average (95% interval: 0.2 to 0.8)" in gained(record())
    losing = {"mean": -0.5, "low": -0.8, "high": -0.2}
    assert "higher by 0.5 euro a day</b> on average (95% interval: 0.2 to 0.8)" in gained(record(gain=losing))
    rewards = {"name": "sales", "sense": "maximise", "unit": ""}
    assert "higher by 0.5 a round" in gained(record(objective=rewards))


def test_doubts_stand_in_the_first_section():
    checks = record()["checks"] | {"is_good": False}
    first = render_memo(record(checks=checks)).split("</section>")[0]
    assert "First mend the description" in first
    assert "the answer would be: <b>Change what you do</b>" in first
    assert "Careful" not in render_memo(record())


def test_a_strip_is_to_scale():
    """From 0 to 10 with 8% beyond on either side: 5 is in the middle, 10 at 1.08 / 1.16 of the width."""
    picture = strip({"today": (0.0, 5.0, 10.0), "log": None}, 5.0, False, "lost")
    assert "M500.0 0V58" in picture
    assert f"M{round(1000 * 0.8 / 11.6, 1)} 29.0H{round(1000 * 10.8 / 11.6, 1)}" in picture
    assert '<rect class="beyond" x="500.0" y="0" width="500.0"' in picture
    assert strip({"today": None}, None, False, "nothing is known") == ""


def test_bars_fill_the_width_in_the_order_of_the_legend():
    found = record()["decisions"]
    colours = colours_of(found)
    assert list(colours) == ["order=2", "order=10"]
    widths = [float(x) for x in re.findall(r'width="([\d.]+)"', bars(found[0], colours))]
    assert widths == [500.0, 500.0, 1000.0]
    assert 'width="970.0"' in meter(0.97, 0.95)
