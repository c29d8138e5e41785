"""The report page as text: user-supplied names cannot break out of it, and nothing is fetched."""

import base64
import html.parser
import json
import math
import re

import numpy as np
import pytest

from psconrl.errors import ConfigError
from psconrl.report import page
from psconrl.report.board_page import SCRIPTS_OF_BOARD
from reports import EVIL, QUOTED, SVG, experiment, one_panel, report


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)[1])


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_names_cannot_break_out_of_the_data():
    text = page.render_report(report())
    tags = [tag for tag, _ in Tags(text).found]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert "\u2028" not in text
    data = data_of(text)
    assert data["title"] == f"Report {EVIL}"
    assert data["experiments"][1]["name"] == QUOTED  # {{css}} in a name is not a place to fill in
    assert data["provenance"][0] == ["seed", str(2**70)]


def test_a_lone_surrogate_of_a_file_name_can_be_written(tmp_path):
    page.write_report(report(title="odd \udcff"), tmp_path / "r.html")
    assert data_of((tmp_path / "r.html").read_text(encoding="utf-8"))["title"] == "odd \udcff"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_nothing_is_fetched():
    text = page.render_report(report())
    assert set(re.findall(r"https?://[^\"'\s)]*", text)) == {"http://www.w3.org/2000/svg"}
    for _, attributes in Tags(text).found:
        assert all(attributes[key].startswith("data:") for key in ("src", "href") if key in attributes)
    assert (
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"" in text
    )


def test_every_script_is_in_a_page():
    assets = page.resources.files("psconrl.report").joinpath("assets")
    scripts = {asset.name for asset in assets.iterdir() if asset.name.endswith(".js")}
    assert scripts == {*page.SCRIPTS, *SCRIPTS_OF_BOARD}


def test_a_map_is_a_picture_in_which_nothing_runs():
    source = data_of(page.render_report(report()))["experiments"][0]["maps"][0]["src"]
    kind, _, code = source.partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(code).decode() == SVG


def test_numbers_are_rounded_and_what_is_not_finite_is_unknown():
    x = [1, 2, 1234567, 4]
    mean = [1 / 3, math.nan, math.inf, None]
    series = {"agent": "a", "runs": 3, "x": x, "mean": mean, "low": [0.1, 0, math.inf, 0], "high": [0.9, 1, None, 1]}
    again = series | {"agent": "b", "low": None, "high": None}
    table = {"title": "t", "note": "", "header": ["v"], "rows": [[np.float64(0.123456789)], [-math.inf], [np.int64(7)]]}
    data = data_of(page.render_report({"experiments": [one_panel(series, again)], "tables": [table]}))
    panel = data["experiments"][0]["panels"][0]
    assert panel["lines"] == [["l", None]]
    first, second = panel["series"]
    assert data["grids"] == [x]  # stored once, exactly
    assert first["x"] == second["x"] == 0
    assert first["mean"] == [0.333333, None, None, None]
    assert first["below"] == [0.233, None, None, None]
    assert first["above"] == [0.567, None, None, None]
    assert "below" not in second
    assert data["tables"][0]["rows"] == [[0.123457], [None], [7]]


def test_symmetric_intervals_are_stored_once():
    series = data_of(page.render_report(report()))["experiments"][0]["panels"][0]["series"][0]
    assert "below" in series
    assert "above" not in series


def test_a_large_report_stays_small():
    agents = [f"agent-{k}" for k in range(8)]
    large = report(experiments=[experiment(f"e{k}", agents, points=300, seed=k) for k in range(4)])
    for e in large["experiments"]:
        for p in e["panels"]:
            for s in p["series"]:
                s |= {key: s[key][-200:] for key in ("x", "mean", "low", "high")}
                assert len(s["x"]) == 200
    assert len(page.render_report(large).encode()) < 300_000


def test_an_unwritable_path_is_the_users_error(tmp_path):
    with pytest.raises(ConfigError, match=r"no/r\.html: cannot be written"):
        page.write_report(report(), tmp_path / "no" / "r.html")
