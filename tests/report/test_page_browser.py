"""The report page in a real browser: it draws, responds to mouse, keyboard and links, and executes no input."""

import csv
import io
import itertools
import time
from urllib.parse import urlencode
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest

from psconrl.report import page
from psconrl.report.style import OTHERS, looks_of, nth_look
from reports import EVIL, ODD, QUOTED, curve, experiment, one_panel, report

pytestmark = pytest.mark.browser

UNKNOWN = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"


class Page:
    """A page in the browser, queried with CSS selectors."""

    def __init__(self, browser, folder):
        self.browser = browser
        self.path = folder / "report.html"

    def open(self, content, hash=""):
        page.write_report(content, self.path)
        self.browser.get("about:blank")  # otherwise a change of the hash alone loads nothing
        self.browser.get_log("browser")
        self.browser.get(self.path.as_uri() + hash)
        return self

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def texts(self, selector):
        return [element.get_property("textContent") for element in self.all(selector)]

    def click(self, selector, index=0):
        self.browser.execute_script("arguments[0].click()", self.all(selector)[index])

    def js(self, expression):
        return self.browser.execute_script(f"return {expression}")

    def errors(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def agents(self, mark=".line"):
        """The agents whose curves are drawn in the visible experiment."""
        lines = self.all(f".experiment:not([hidden]) .plot {mark}[data-agent]")
        return {line.get_attribute("data-agent") for line in lines}

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.fixture
def shown(browser, tmp_path):
    shown = Page(browser, tmp_path)
    shown.resize(1200, 1600)
    return shown


def test_it_loads_from_a_file_without_an_error_or_a_request(shown):
    shown.open(report())
    assert shown.errors() == []
    fetched = shown.js("performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []
    assert len(shown.all(".experiment:not([hidden]) .plot .band")) == 6


def test_a_tick_hides_an_agent_in_every_chart_and_brings_it_back(shown):
    shown.open(report())
    assert shown.agents() == shown.agents(".band") == {"ps", "ucrl", EVIL}
    shown.click(".chip input", 1)
    assert shown.agents() == shown.agents(".band") == {"ps", EVIL}
    assert "ucrl" in shown.texts(".experiment:not([hidden]) .scroll td")  # tables keep their rows
    shown.click(".chip input", 1)
    assert shown.agents() == {"ps", "ucrl", EVIL}
    shown.click(".chip .name", 1)
    assert shown.agents() == {"ucrl"}
    shown.click(".pick button", 1)
    assert shown.agents() == set()
    assert "No agent is selected." in shown.texts(".empty")
    shown.click(".pick button", 0)
    shown.click("#switch-bands")
    assert shown.agents(".band") == set()
    assert shown.agents() == {"ps", "ucrl", EVIL}


def test_log_axes_change_the_ticks_and_say_what_becomes_of_negative_values(shown):
    shown.open(report())
    linear = shown.texts(".tick-x"), shown.texts(".tick-y")
    shown.click("#switch-logX")
    assert shown.texts(".tick-x")[:6] == ["1", "10", "100", "1,000", "10k", "100k"]
    assert shown.texts(".tick-y") == linear[1]
    shown.click("#switch-logY")
    assert shown.texts(".tick-y") != linear[1]
    notes = shown.texts(".experiment:not([hidden]) .panel .note")
    assert "about linear within" in notes[1]
    shown.click(".tools button")
    assert (shown.texts(".tick-x"), shown.texts(".tick-y")) == linear


def overlaps(boxes):
    def apart(p, q):
        return p["right"] <= q["left"] or q["right"] <= p["left"] or p["bottom"] <= q["top"] or q["bottom"] <= p["top"]

    return [pair for pair in itertools.combinations(boxes, 2) if not apart(*pair)]


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("hash", ["", "#logx=1&logy=1"])
def test_no_label_overlaps_and_the_page_fits_its_window(shown, width, hash):
    shown.resize(width, 900)
    crowded = experiment("walk")
    crowded["panels"][0]["lines"] = [["optimum", 400.0], ["safe policy", 402.0], ["a policy of a long name", 398.0]]
    shown.open(report(experiments=[crowded]), hash)
    boxes = shown.js(
        "[...document.querySelectorAll('.plot')].map((plot) => [...plot.querySelectorAll('text')]"
        ".map((t) => ({words: t.lastChild.data, ...t.getBoundingClientRect().toJSON()})))"
    )
    for plot in boxes:
        assert overlaps(plot) == []
    assert shown.js("document.documentElement.scrollWidth <= window.innerWidth")
    edge = shown.js("Math.min(...[...document.querySelectorAll('.plot')].map((p) => p.getBoundingClientRect().right))")
    assert max(box["right"] for box in boxes[0]) <= edge + 1


def test_pointing_at_a_chart_lists_the_agents_from_high_to_low(shown):
    from selenium.webdriver import ActionChains

    shown.open(report())
    plot = shown.all(".plot")[0]
    ActionChains(shown.browser).move_to_element(plot).perform()
    tip = shown.all(".tip:not([hidden])")[0]
    values = [float(cell.text.replace(",", "")) for cell in tip.find_elements("css selector", ".value")]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)
    assert "5 runs each" in tip.text
    assert "threshold 20" in tip.text
    assert len(shown.all(".experiment:not([hidden]) .cursor")) == 2  # the neighbour marks the same checkpoint


def test_a_chart_can_be_read_with_the_keyboard(shown):
    from selenium.webdriver.common.keys import Keys

    shown.open(report())
    plot = shown.all(".plot")[0]
    plot.send_keys(Keys.END)
    assert shown.texts(".tip:not([hidden]) .where")[0].startswith("round 100,000")
    plot.send_keys(Keys.HOME)
    assert shown.texts(".tip:not([hidden]) .where")[0].startswith("round 1")
    plot.send_keys(Keys.ESCAPE)
    assert shown.all(".tip:not([hidden])") == []


def test_names_are_shown_as_text_and_nothing_runs(shown):
    shown.open(report())  # an alert would make every call below fail
    assert shown.browser.title == f"Report {EVIL}"
    assert shown.texts("h1") == [f"Report {EVIL}"]
    assert EVIL in shown.texts(".chip .name")
    assert QUOTED in shown.texts(".tab")
    assert shown.all("img[src='x']") == shown.all("b") == []
    assert all(
        src.startswith("data:image/svg+xml;base64,") for src in shown.js("[...document.images].map((i) => i.src)")
    )
    assert shown.js("[...document.images].every((i) => i.naturalWidth > 0)")
    assert shown.errors() == []


def test_a_link_keeps_the_view(shown):
    shown.open(report())
    shown.click(".tab", 1)
    shown.click(".chip input", 2)
    shown.click("#switch-logX")
    hash = shown.js("location.hash")
    assert hash == "#" + urlencode([("show", QUOTED), ("hide", EVIL), ("logx", "1")]).replace("%2A", "*")
    shown.open(report(), hash)
    assert shown.texts(".tab[aria-selected=true]") == [QUOTED]
    assert shown.agents() == {"ps", "ucrl"}
    assert shown.js("document.getElementById('switch-logX').checked")
    shown.open(report(), "#show=missing&hide=missing&logx=maybe")
    assert shown.texts(".tab[aria-selected=true]") == ["walk"]
    assert shown.errors() == []


def test_tables_sort_by_a_click_with_unknown_values_last(shown):
    shown.open(report())
    column = ".experiment:not([hidden]) .scroll td:nth-child(2)"
    assert shown.texts(column) == ["10.50", "9.25", UNKNOWN]
    shown.click(".experiment:not([hidden]) .scroll th button", 1)
    assert shown.texts(column) == ["9.25", "10.50", UNKNOWN]
    shown.click(".experiment:not([hidden]) .scroll th button", 1)
    assert shown.texts(column) == ["10.50", "9.25", UNKNOWN]


@pytest.mark.parametrize("hash", ["", "#logx=1&logy=1"])
@pytest.mark.parametrize("name", ODD)
def test_odd_reports_do_not_break_it(shown, name, hash):
    shown.open(ODD[name], hash)
    assert shown.errors() == []
    drawn = shown.js("['head', 'main', 'foot'].map((id) => document.getElementById(id).innerHTML).join()")
    assert drawn.strip()
    assert not [word for word in ("NaN", "undefined", "Infinity", "null") if word in drawn]


def test_the_picture_is_not_blank(shown):
    shown.open(report())
    pixels = matplotlib.image.imread(io.BytesIO(shown.browser.get_screenshot_as_png()))
    assert pixels.shape[:2] == (1600, 1200)
    assert colours_in(pixels) > 100


def colours_in(picture):
    """Number of elements."""
    levels = np.rint(picture[..., :3] * 255).astype(np.int64)
    return np.unique(levels @ [1, 256, 65536]).size


def clipped(points=40):
    """A panel where zero means no loss: two curves far beyond three others, and one that returns."""
    x = np.arange(1, points + 1)
    ends = {"near": 10.0, "nearer": 8.0, "mild": 9.0, "nice": 7.0, "far": 900.0, "low": -5380.0}
    series = [curve(agent, x, np.linspace(0, end, points), 0.1) for agent, end in ends.items()]
    series.append(curve("back", x, np.concatenate([np.linspace(0, 300, points - 1), [5.0]]), 0.1))
    found = experiment("walk", panels=1)
    return found | {
        "panels": [{"title": "Regret", "x": "round", "y": "y", "lines": [], "clip": True, "series": series}]
    }


def test_curves_far_beyond_the_others_are_cut_off_and_named(shown):
    shown.open(report(experiments=[clipped()]))
    assert shown.texts(".beyond") == ["↑ far ends at 900", "↑ back ends at 5, from 300", f"↓ low ends at {MINUS}5,380"]
    heights = [float(t.replace(MINUS, "-")) for t in shown.texts(".tick-y")]
    assert (min(heights), max(heights)) == (-40, 40)  # four times the middle one of seven
    shown.click(".chip .name", 4)
    assert shown.texts(".beyond") == []  # alone it has the axis for itself
    shown.open(report(experiments=[clipped()]), "#logy=1")
    assert shown.texts(".beyond") == []


def test_the_page_opens_where_the_report_says(shown):
    shown.open(report(opens=QUOTED))
    assert shown.texts(".tab[aria-selected=true]") == [QUOTED]
    assert shown.js("location.hash") == ""
    shown.click(".tab", 0)
    assert shown.js("location.hash") == "#show=walk"
    shown.open(report(opens=QUOTED), "#show=walk")
    assert shown.texts(".tab[aria-selected=true]") == ["walk"]
    shown.open(report(opens="nowhere"))
    assert shown.texts(".tab[aria-selected=true]") == ["walk"]


@pytest.mark.parametrize("width", [1200, 390])
def test_all_tabs_and_agents_are_in_sight(shown, width):
    shown.resize(width, 1400)
    names = [f"a long name of an experiment, number {k}" for k in range(20)]
    agents = [f"agent number {k}" for k in range(12)]
    shown.open(report(experiments=[experiment(name, agents) for name in names]))
    hidden = shown.js(
        "[...document.querySelectorAll('.tab, .tabs, .bar, .legend, .chip .name')]"
        ".filter((e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)"
        ".map((e) => e.textContent)"
    )
    assert hidden == []
    edges = shown.js("[...document.querySelectorAll('.tab, .chip')].map((e) => e.getBoundingClientRect().right)")
    assert max(edges) <= width
    assert len(shown.all(".tab")) == 21


@pytest.mark.parametrize("width", [1200, 360])
def test_tabs_are_in_groups_and_the_keyboard_reaches_all_of_them(shown, width):
    from selenium.webdriver.common.keys import Keys

    shown.resize(width, 900)
    groups = {"walk": "Theory", "run": "Yours", "swim": "Theory"}
    shown.open(report(experiments=[experiment(name) | {"group": group} for name, group in groups.items()]))
    assert shown.texts(".group-heading") == ["Theory", "Yours", ""]
    assert [row.text.split() for row in shown.all(".group-tabs")] == [["walk", "swim"], ["run"], ["all", "together"]]
    described = "[...document.querySelectorAll('.tab')].map((t) => document.getElementById(t.getAttribute("
    described += "'aria-describedby'))?.textContent ?? null)"
    assert shown.js(described) == ["Theory", "Theory", "Yours", None]
    shown.js("document.querySelector('.tab[aria-selected=true]').focus()")
    seen = []
    for _ in range(4):
        seen += shown.texts(".tab[aria-selected=true]")
        assert shown.texts(".experiment:not([hidden]) h2") == (seen[-1:] if seen[-1] in groups else list(groups))
        shown.browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert seen == ["walk", "swim", "run", "all together"]
    assert shown.texts(".tab[aria-selected=true]") == ["walk"]
    assert shown.js("document.documentElement.scrollWidth <= window.innerWidth")
    shown.open(report(experiments=[experiment(name) | {"group": "Yours"} for name in groups]))
    assert shown.all(".group") == []  # one group needs no heading
    assert shown.errors() == []


def test_the_legend_has_the_agents_of_the_experiment(shown):
    shown.open(report(experiments=[experiment("walk", ["a", "b"]), experiment("run", ["b", "c"])]))
    shown_names = "[...document.querySelectorAll('.chip:not([hidden]) .name')].map((e) => e.textContent)"
    assert shown.js(shown_names) == ["a", "b"]
    shown.click(".tab", 1)
    assert shown.js(shown_names) == ["b", "c"]
    shown.click(".tab", 2)
    assert shown.js(shown_names) == ["a", "b", "c"]


def test_agents_have_the_colours_of_the_figures(shown):
    shown.open(report(experiments=[experiment("walk", ["mine", "c-ucrl", "psconrl"])]))
    drawn = shown.js(
        "[...document.querySelectorAll('.plot')[0].querySelectorAll('.line')].map((line) =>"
        " [line.dataset.agent, getComputedStyle(line).stroke, line.getAttribute('stroke-dasharray')])"
    )

    def rgb(colour):
        return "rgb({}, {}, {})".format(*(int(colour[k : k + 2], 16) for k in (1, 3, 5)))

    looks = looks_of(["mine", "c-ucrl", "psconrl"])
    assert drawn == [
        [agent, rgb(look.colour), " ".join(f"{2 * x:g}" for x in look.dash) or None] for agent, look in looks.items()
    ]


def saved(shown, folder, kind, index=0):
    """What a click on a button below a chart writes."""
    shown.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    buttons = [b for b in shown.all(".experiment:not([hidden]) .save button") if b.text == kind]
    shown.browser.execute_script("arguments[0].click()", buttons[index])
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = [path for path in folder.glob(f"*.{kind.lower()}") if path.stat().st_size]
        if found and not list(folder.glob("*.crdownload")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"no {kind} was written")


def test_a_chart_is_saved_with_its_legend_and_without_a_request(shown, tmp_path):
    shown.open(report())
    shown.click(".chip input", 1)  # ucrl is hidden, and stays out
    rows = list(csv.reader(saved(shown, tmp_path, "CSV").read_text().splitlines()))
    assert rows[0] == ["agent", "runs", "round", "mean", "low", "high"]
    series = report()["experiments"][0]["panels"][0]["series"]
    assert {row[0] for row in rows[1:]} == {"ps", EVIL}
    assert len(rows) == 1 + 2 * len(series[0]["x"])
    first = [float(value) for value in rows[1][2:]]
    wanted = [series[0][key][0] for key in ("x", "mean", "low", "high")]
    assert first == pytest.approx(wanted, rel=2e-3)
    picture = saved(shown, tmp_path, "SVG")
    assert picture.name == "walk-Panel-0.svg"
    tree = ElementTree.parse(picture)
    words = [text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"walk: Panel 0", "regret", "ps (5 runs)", f"{EVIL} (5 runs)", "round"} <= set(words)
    assert not any("ucrl" in (word or "") for word in words)
    assert not list(tree.iter("{http://www.w3.org/2000/svg}script"))
    pixels = matplotlib.image.imread(saved(shown, tmp_path, "PNG"))
    assert pixels.shape[0] > 900
    assert pixels.shape[1] > 900
    blue = nth_look(0, OTHERS).colour
    colour = [int(blue[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    assert (np.abs(pixels[..., :3] - colour).max(axis=2) < 0.02).sum() > 500
    assert np.all(pixels[0, 0, :3] == 1)  # white paper, whatever the screen
    assert shown.errors() == []
    fetched = shown.js("performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_names_that_a_spreadsheet_would_run_are_saved_as_text(shown, tmp_path):
    named = [curve("=1+1", [1, 2], [1.0, 2.0]), curve('a "b", c', [1, 2], [1.0, 2.0])]
    shown.open(report(experiments=[one_panel(*named)]))
    rows = list(csv.reader(saved(shown, tmp_path, "CSV").read_text().splitlines()))
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'=1+1", 'a "b", c', 'a "b", c']


def test_a_chart_saved_on_a_dark_screen_is_on_white_paper(shown, tmp_path):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    shown.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        shown.open(report(experiments=[experiment("walk", ["c-ucrl", "psconrl"])]))
        lines = "[...document.querySelectorAll('.plot')[0].querySelectorAll('.line')]"
        strokes = shown.js(f"{lines}.map((line) => getComputedStyle(line).stroke)")
        assert strokes[0] == "rgb(231, 234, 238)"  # black would be invisible
        text = saved(shown, tmp_path, "SVG").read_text()
        assert 'stroke="rgb(0, 0, 0)"' in text
        assert "rgb(231, 234, 238)" not in text
        assert not shown.js("document.documentElement.classList.contains('light')")
    finally:
        shown.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
