"""The monitor page in a real browser: it draws, refreshes itself, keeps the reader's place, executes no names."""

import csv
import dataclasses
import functools
import time

import matplotlib.image
import pytest

from psconrl import CSVLog
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.report.monitor import page
from psconrl.report.monitor.source import Source
from reports import EVIL
from sweeps import AtOnce
from test_monitor import EVENTS, QUEUE, SPEC, serving, write_log
from test_page_browser import Page, colours_in, saved

pytestmark = pytest.mark.browser

SOON = 20.0  # seconds; the page asks every two


class LivePage(Page):
    """Queried in one call: between two calls elements may be replaced."""

    def texts(self, selector):
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return self.browser.execute_script(script, selector)


@pytest.fixture
def shown(browser, tmp_path):
    shown = LivePage(browser, tmp_path)
    shown.resize(1200, 1600)
    browser.get("about:blank")
    browser.get_log("browser")
    return shown


def becomes(what, wanted):
    """Wait until the condition holds."""
    until = time.monotonic() + SOON
    while (found := what()) != wanted and time.monotonic() < until:
        time.sleep(0.1)
    assert found == wanted


def fact(shown, name):
    both = shown.texts(".facts dt, .facts dd")
    return dict(zip(both[::2], both[1::2], strict=True)).get(name)


def test_it_waits_and_draws_and_follows_the_file_by_itself(shown, tmp_path):
    path = tmp_path / "learning.csv"
    with serving(path) as server:
        shown.browser.get(server.url)
        assert shown.texts("#message") == ["The file does not exist yet. It is shown as soon as it appears."]
        assert shown.texts("h1") == ["learning.csv"]
        write_log(path, EVENTS[:60])
        becomes(lambda: fact(shown, "rounds"), f"{EVENTS[59].round:,}")
        assert shown.texts(".panel h3") == [
            "throughput", "delay", "power", "Exploring", "Planning time", "Change of policy",
        ]  # fmt: skip
        assert len(shown.all(".panel .line[data-agent]")) == 12  # two each of five, what is expected, change
        assert "limit 2" in "".join(shown.texts(".reference-label"))
        assert 5 < len(shown.all(".policy tbody tr")) <= 10  # those of the ten states that were visited
        assert len(shown.all(".policy .strip rect")) > 10
        colours = "new Set([...document.querySelectorAll('.strip rect')].map((r) => getComputedStyle(r).fill)).size"
        assert shown.js(colours) > 2
        before = shown.js("document.querySelector('.plot .line').getAttribute('d')")
        shown.js("window.scrollTo(0, 300)")
        shown.js("document.body.dataset.same = 'yes'")
        write_log(path, EVENTS[60:])
        becomes(lambda: fact(shown, "rounds"), f"{EVENTS[-1].round:,}")
        assert shown.js("document.querySelector('.plot .line').getAttribute('d')") != before
        assert shown.js("document.body.dataset.same") == "yes"  # nothing was reloaded
        assert shown.js("window.scrollY") == 300
        assert "fresh" in shown.all(".status")[0].get_attribute("class")
        fetched = shown.js("performance.getEntriesByType('resource').map((e) => e.name)")
        assert {name for name in fetched if not name.startswith("data:")} == {f"{server.url}data.json"}
        assert shown.errors() == []
    becomes(lambda: shown.texts(".status"), ["The monitor does not answer; this is its last state"])
    assert fact(shown, "rounds") == f"{EVENTS[-1].round:,}"


def test_the_reader_of_a_chart_keeps_the_place_while_it_grows(shown, tmp_path):
    from selenium.webdriver.common.keys import Keys

    path = write_log(tmp_path / "learning.csv", EVENTS[:60])
    with serving(path) as server:
        shown.browser.get(server.url)
        shown.all(".plot")[1].send_keys(Keys.HOME)
        shown.all(".plot")[1].send_keys(Keys.ARROW_RIGHT)
        place = shown.texts(".tip:not([hidden]) .where")
        assert place == [f"round {EVENTS[1].round}"]
        write_log(path, EVENTS[60:])
        becomes(lambda: fact(shown, "rounds"), f"{EVENTS[-1].round:,}")
        assert shown.texts(".tip:not([hidden]) .where") == place
        assert shown.js("document.activeElement === document.querySelectorAll('.plot')[1]")
        assert shown.errors() == []


def test_after_a_crash_the_page_goes_back_and_has_no_round_twice(shown, tmp_path):
    path = write_log(tmp_path / "learning.csv", EVENTS[:60])
    with serving(path) as server:
        shown.browser.get(server.url)
        assert fact(shown, "episodes") == "60"
        write_log(path, EVENTS[40:50])  # a new process that resumes from a file saved after 40 episodes
        becomes(lambda: fact(shown, "episodes"), "50")
        curves = "document.querySelectorAll(\".plot .line[data-agent='since the start']\")"
        lines = shown.js(f"[...{curves}].map((line) => line.getAttribute('d'))")
        assert len(lines) == 4
        for line in lines:
            places = [float(point.split(",")[0]) for point in line[1:].split("L")]
            assert len(set(places)) == len(places) == 50
        assert shown.errors() == []


def test_a_chart_is_saved_from_the_page(shown, tmp_path):
    with serving(write_log(tmp_path / "learning.csv")) as server:
        shown.browser.get(server.url)
        (tmp_path / "saved").mkdir()
        rows = list(csv.reader(saved(shown, tmp_path / "saved", "CSV").read_text().splitlines()))
        assert len(rows) == 1 + 3 * len(EVENTS)  # the first chart: two averages, and what is expected
        picture = matplotlib.image.imread(saved(shown, tmp_path / "saved", "PNG"))
        assert colours_in(picture) > 10
        assert shown.errors() == []


@pytest.mark.full
def test_a_file_of_another_kind_is_said_on_the_page(shown, tmp_path):
    path = tmp_path / "learning.csv"
    with serving(path) as server:
        shown.browser.get(server.url)
        path.write_text("a,b\n1,2\n")
        becomes(
            lambda: shown.texts("#message"),
            [f"{path}: neither a log of episodes (learn --log, psconrl.CSVLog) nor a results file (sweep --out)"],
        )
        path.unlink()
        write_log(path)
        becomes(lambda: fact(shown, "episodes"), str(len(EVENTS)))


@pytest.mark.full
def test_a_sweep_is_followed_too(shown, tmp_path):
    path = tmp_path / "results.db"
    jobs = parse_spec(SPEC).jobs()
    with serving(path) as server:
        shown.browser.get(server.url)
        run_sweep(jobs[:3], path, executor=AtOnce(), title="Half of it")
        becomes(lambda: fact(shown, "runs"), "3 of 3")
        run_sweep(jobs, path, executor=AtOnce(), title="All of it")
        becomes(lambda: fact(shown, "runs"), "5 of 5")
        assert shown.texts("h1") == ["All of it"]
        assert shown.texts("h2") == ["rover", "none"]
        cells = shown.texts(".experiment:first-child tbody td")
        assert [cells[:4], cells[5:9]] == [["uniform", "2", "2", "0"], ["PSConRL", "2", "2", "0"]]
        assert len(shown.all(".experiment:first-child .panel .line[data-agent]")) == 6
        assert shown.errors() == []


def test_names_are_shown_as_text_and_nothing_runs(shown, tmp_path):
    log = CSVLog(
        tmp_path / f"{EVIL[:8].replace('/', '')}.csv",
        [EVIL, "b", "c"],
        states=[f"{EVIL}{s}" for s in range(QUEUE.n_states)],
        actions=[f"{EVIL}{a}" for a in range(QUEUE.n_actions)],
    )
    for event in EVENTS[:30]:
        log(event)
    with serving(log.path) as server:
        shown.browser.get(server.url)  # an alert would make every call below fail
        assert shown.texts(".panel h3")[0] == EVIL
        assert shown.texts(".policy tbody td")[0].startswith(EVIL)
        assert shown.all("img") == []
        assert shown.errors() == []


def test_a_spike_is_marked_at_the_edge_of_the_axis_and_named_above_it(shown, tmp_path):
    rise = 0.0002 / (len(EVENTS) - 1)  # to 0.0012, however many episodes the run has
    times = [dataclasses.replace(e, planning_time=0.001 + rise * k) for k, e in enumerate(EVENTS)]
    times[100] = dataclasses.replace(times[100], planning_time=8.0)
    page.write_monitor(Source(write_log(tmp_path / "run.csv", times)).report(), tmp_path / "page.html")
    shown.browser.get((tmp_path / "page.html").as_uri())
    plot = "document.querySelectorAll('.plot')[4]"
    marked = shown.js(f"[...{plot}.querySelectorAll('.excursion')].map((e) => e.dataset.agent)")
    assert marked == ["running average", "longest of them"]
    notes = shown.js(f"[...{plot}.querySelectorAll('.beyond')].map((e) => e.textContent)")
    assert notes[1] == "↑ longest of them ends at 0.0012, from 8"
    lowest, highest = shown.js(
        f"[Math.max(...[...{plot}.querySelectorAll('.beyond')].map((e) => e.getBoundingClientRect().bottom)),"
        f" Math.min(...[...{plot}.querySelectorAll('.grid line')].map((e) => e.getBoundingClientRect().top))]"
    )
    assert lowest <= highest  # above the axes, where no curve is
    assert len(shown.all(".excursion")) == 2  # no other chart is cut off
    assert shown.errors() == []


def test_charts_shrink_with_the_window(shown, tmp_path):
    page.write_monitor(Source(write_log(tmp_path / "run.csv")).report(), tmp_path / "page.html")
    shown.browser.get((tmp_path / "page.html").as_uri())
    lines = len(shown.all(".plot .line"))
    for width in (1200, 360, 150, 700):
        shown.resize(width, 900)
        drawn = "[...document.querySelectorAll('.plot')].every((p) => {"
        drawn += " const wide = Math.max(240, p.parentNode.clientWidth);"
        drawn += " return p.getBoundingClientRect().right <= window.innerWidth && p.viewBox.baseVal.width === wide; })"
        becomes(functools.partial(shown.js, drawn), True)
        assert shown.js("Math.min(...[...document.querySelectorAll('.plot .line')].map((l) => l.getBBox().width))") > 60
        assert len(shown.all(".plot .line")) == lines
    assert shown.errors() == []


@pytest.mark.full
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_fits_its_window(shown, tmp_path, width):
    shown.resize(width, 900)
    page.write_monitor(Source(write_log(tmp_path / "run.csv")).report(), tmp_path / "page.html")
    shown.browser.get((tmp_path / "page.html").as_uri())
    assert shown.js("document.documentElement.scrollWidth <= window.innerWidth")
    assert shown.texts(".status") == ["A snapshot"]
    assert len(shown.all(".panel .line")) > 5
    time.sleep(2.5)
    assert shown.errors() == []  # a snapshot makes no requests
