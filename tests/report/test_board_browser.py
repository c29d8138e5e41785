"""The board of submissions in a real browser: it sorts, filters, shows one environment, and executes no input."""

import dataclasses

import pytest

from psconrl.experiment.spec import EnvironmentGroup
from psconrl.report.board_page import board_contents, write_board
from psconrl.report.quick_board import write_quick_board
from reports import EVIL, made_up_submission

pytestmark = pytest.mark.browser

NOISY = "chain (costs noisy)"
AGENTS = {
    "careful": made_up_submission({"chain": (29.0, 0.0), "queue": (20.0, 0.0), NOISY: (5.0, 0.0)}),
    "bold": made_up_submission({"chain": (10.0, 10.0), "queue": (30.0, 0.0), NOISY: (6.0, 0.0)}),
    EVIL: made_up_submission({"chain": None, "queue": (40.0, 0.0), NOISY: (7.0, 0.0)}),
}


GROUPS = tuple(EnvironmentGroup(f"only {name}", EVIL, (name,)) for name in ("chain", "queue"))


@pytest.fixture
def page(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("psconrl.report.board_page.board_groups", lambda: GROUPS)
    write_board(board_contents(AGENTS), tmp_path / "board.html")
    browser.get_log("browser")
    browser.get((tmp_path / "board.html").as_uri())
    assert browser.get_log("browser") == []
    return browser


def texts(page, selector):
    return [element.get_property("textContent") for element in page.find_elements("css selector", selector)]


def agents(page, which="standings"):
    return texts(page, f"table.{which} tbody td:first-child")


def press(page, key, which="standings"):
    page.execute_script(f"document.querySelector('table.{which} button[data-key=\\'{key}\\']').click()")


def choose(page, name, value):
    script = "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('%s'))"
    event = "input" if name == "agent" else "change"
    page.execute_script(script % event, f"[name='{name}']", value)


def test_a_click_on_a_heading_sorts_and_another_reverses(page):
    assert agents(page) == ["careful", "bold", EVIL, "uniform"]  # mean ranks 1, 2, 3, 3.5
    press(page, "overspent")
    assert agents(page)[-2:] == ["bold", "uniform"]
    press(page, "overspent")
    assert agents(page)[:2] == ["uniform", "bold"]
    assert texts(page, "table.standings th[aria-sort='descending']") == ["overspent ↓"]
    press(page, "agent")
    assert agents(page) == sorted(["careful", "bold", EVIL, "uniform"], key=str.casefold)


def test_agents_without_a_number_come_last(page):
    press(page, "chain", "matrix")
    assert agents(page, "matrix")[-1] == EVIL
    press(page, "chain", "matrix")
    assert agents(page, "matrix")[-1] == EVIL


def test_costs_environments_charges_and_names_can_be_chosen(page):
    choose(page, "environment", "chain")
    assert agents(page) == ["careful", "bold", "uniform"]
    assert texts(page, "table.standings td:nth-child(2)") == ["29", "30", "108"]
    choose(page, "charge", "1")
    assert agents(page) == ["bold", "careful", "uniform"]
    assert "at 1.5 times its shadow price, but at least at 1 times its range price" in texts(page, ".board-note")[0]
    choose(page, "agent", "CARE")
    assert agents(page) == agents(page, "matrix") == ["careful"]
    choose(page, "agent", "")
    choose(page, "costs", "Costs noisy")
    assert agents(page) == ["careful", "bold", EVIL, "uniform"]
    assert texts(page, "table.matrix thead button") == ["agent", "chain"]


def test_a_part_of_the_environments_can_be_chosen(page):
    assert texts(page, "[name='environment'] option") == [
        "all, averaged", "only chain, averaged", "only queue, averaged", "chain", "queue",
    ]  # fmt: skip
    choose(page, "environment", "part: only queue")
    assert agents(page) == ["careful", "bold", EVIL, "uniform"]
    assert texts(page, "table.standings td:nth-child(3)") == ["1"] * 4
    assert texts(page, "table.matrix thead button") == ["agent", "queue"]
    choose(page, "environment", "part: only chain")
    assert agents(page) == ["careful", "bold", "uniform"]
    choose(page, "environment", "")
    assert texts(page, "table.matrix thead button") == ["agent", "chain", "queue"]


def test_it_says_whether_the_ranking_depends_on_the_charge(page):
    lines = texts(page, ".robust p")
    assert lines[0].startswith("Costs known: the ranking changes with the price factor (1.5 instead of 2: ")
    assert lines[0].endswith("Within environments it changes in chain (1.5).")
    assert lines[1].startswith("Costs known: the ranking is the same at every floor of 0, 0.5, 1, 2.")
    assert lines[2].startswith("Costs noisy: the ranking is the same at every price factor of 1.5, 2, 4.")
    assert texts(page, ".origin summary") == list(AGENTS)
    assert texts(page, ".origin pre") == ["class Mine: ..."] * 3


def test_submitted_rows_are_marked_among_those_of_built_in_agents(browser, tmp_path, monkeypatch):
    path = tmp_path / "shipped.json.gz"
    monkeypatch.setattr("psconrl.report.quick_board.QUICK_BOARD", path)
    submitted = made_up_submission({"chain": (29.0, 0.0)})
    quick = dataclasses.replace(submitted, protocol=submitted.protocol | {"quick": True})
    write_quick_board([dataclasses.replace(quick, name="psconrl", title=EVIL)], path)
    write_board(board_contents({"Mine": quick}), tmp_path / "board.html")
    browser.get((tmp_path / "board.html").as_uri())
    assert set(agents(browser)) == {"Mine", EVIL, "uniform"}
    assert texts(browser, "tr.own td:first-child") == ["Mine", "Mine"]
    assert texts(browser, ".meta") == ["Submissions: 1, and uniform play; short runs (--quick), which do not count"]
    (remark,) = texts(browser, ".remark")
    assert remark.startswith("Compared with the quick runs of 1 built-in agents")
    assert remark.endswith("Submitted rows are shaded.")
