"""Names that would be harmful where they are shown: on a terminal, in messages, tables, spreadsheets and pictures."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import markdown_it
import numpy as np
import pytest

import psconrl
from psconrl import CMDP, CSVLog, PSConRL, save
from psconrl.base.escaping import FORMULA, LATEX, MOST_QUOTED, csv_cell, latex_text, markdown_text, printable, quoted
from psconrl.cli import main
from psconrl.errors import MOST_MESSAGE, ConfigError, InfeasibleError, StoreError, unknown_name
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report.export import export_tables
from psconrl.report.print_table import Bold, markdown_table
from sweeps import AtOnce

ESC = "\x1b]0;owned\x07\x1b[2J"
CONTROLS = [chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)] if chr(code) != "\n"]
STEERING = [*CONTROLS, "\u202e", "\u2066", "\u200f", "\u2028", "\ud800", "\ufeff"]


@pytest.mark.parametrize("character", STEERING, ids=ascii)
def test_every_character_that_steers_is_shown_as_one_that_does_not(character):
    shown = printable(f"a{character}b")
    assert len(shown) == 3
    assert character not in shown
    assert shown.encode()


def test_ordinary_text_stays_as_it_is():
    for text in ("plain", "two\nlines", "größer ≤ 日本 ±", "a\u00a0b", "→ ↑ │ ┌", ""):
        assert printable(text) == text


FORMULAS = [
    "=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x", "=cmd|' /C calc'!A0",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_is_a_formula_is_text_in_a_spreadsheet(text):
    assert csv_cell(text) == "'" + text


def test_numbers_and_other_text_stay_as_they_are():
    for value in (-1, -1.5, None, "a=1", "", "'x", True):
        assert csv_cell(value) is value


NASTY = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a|b", "a\\|b", "`x`", "```", "[x](javascript:f())",
    "![x](http://y.z/p)", "[x]: http://y.z", "<http://y.z>", "two\nlines", "two\r\nlines", "\x1b[2J\x07", "\u202eabc",
    "$x$", "$$x$$", r"\(x\)", r"\[x\]", "\\", r"\input{x}", "*b* **c**", "_i_ __init__ own_agent _", "~~s~~ a~b",
    "&lt;b&gt; &amp; R&D", "=1+1", "+1", "-1", "@x", "\uff1d1+1", "{x} {{ y }} {% z %}", "%s 50%", "# 1", "- x", "> x",
    "1. x", "x^2", "'q' \"q\"", "größer ≤ 日本", "",
]  # fmt: skip


class Cells(HTMLParser):
    """The text of every cell of a table, and all elements."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        if tag == "td":
            self.texts.append("")

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data.rstrip("\n")


def rendered(text):
    """Yield the pages that several renderers make of a Markdown text."""
    yield markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    markdown = pytest.importorskip("markdown")
    yield markdown.markdown(text, extensions=["tables"])
    yield markdown.markdown(
        text,
        extensions=["tables", "pymdownx.arithmatex", "pymdownx.betterem", "pymdownx.tilde"],
        extension_configs={"pymdownx.arithmatex": {"generic": True}},
    )


def test_names_in_a_markdown_table_are_text():
    for page in rendered(markdown_table(["name", "n"], [[name, k] for k, name in enumerate(NASTY)])):
        cells = Cells(page)
        assert cells.elements == {"table", "thead", "tbody", "tr", "th", "td"}
        assert cells.texts[0::2] == [printable(" ".join(name.split())) for name in NASTY]
        assert cells.texts[1::2] == [str(k) for k in range(len(NASTY))]


def test_what_is_bold_in_a_markdown_table_is_no_name():
    for page in rendered(markdown_table(["x"], [[Bold(name)] for name in NASTY if name.strip()])):
        assert Cells(page).elements == {"table", "thead", "tbody", "tr", "th", "td", "strong"}
        assert Cells(page).texts == [printable(" ".join(name.split())) for name in NASTY if name]


def test_underscores_within_words_stay_readable():
    assert markdown_text("own_agent_2 größer_als") == "own_agent_2 größer_als"
    assert "_" not in markdown_text("_a a_ _ a-_b")


def test_names_in_a_latex_table_are_text():
    tokens = {escape: character for character, escape in LATEX.items()}
    escapes = re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True))))
    for name in NASTY:
        text = latex_text(name)
        assert not set(escapes.sub("", text.removeprefix("{}"))) & set(LATEX)
        assert text.startswith(("[", "*")) is False
        back = escapes.sub(lambda found: tokens[found[0]], text.removeprefix("{}"))
        assert back == printable(" ".join(name.split()))


def test_names_in_a_csv_table_are_text_and_come_back():
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([csv_cell(name), k] for k, name in enumerate(NASTY))
    rows = list(csv.reader(io.StringIO(table.getvalue(), newline="")))
    assert not any(row[0].startswith(FORMULA) for row in rows)
    back = [row[0].removeprefix("'" * name.startswith(FORMULA)) for row, name in zip(rows, NASTY, strict=True)]
    assert back == NASTY


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_in_a_picture_are_text(tmp_path):
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from psconrl.report.figure_files import write_figure

    with rc_context({"text.parse_math": False}):
        figure = Figure()
        for k, name in enumerate(NASTY):
            figure.text(0.5, k / len(NASTY), name.replace("\r", "").replace("\n", " "))
        write_figure(figure, tmp_path / "names.svg")
    tree = ElementTree.parse(tmp_path / "names.svg")
    shown = ["".join(element.itertext()) for element in tree.iter() if element.tag.endswith("}text")]
    assert sorted(shown) == sorted(printable(name.replace("\r", "").replace("\n", " ")) for name in NASTY if name)
    assert not any(element.tag.endswith(("}script", "}image", "}a")) for element in tree.iter())


def test_a_value_in_a_message_is_short_and_on_one_line():
    cases = [
        "x" * 10**6, ["x" * 10**6], list(range(10**5)), 10**5000, [10**5000], np.arange(10**4), np.zeros((40, 40)),
        {"a": "\x1b" * 500}, "\u202e" * 500, object(), b"\0" * 1000,
    ]  # fmt: skip
    endless = []
    endless.append(endless)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in [*cases, endless, deep]:
        assert len(quoted(value)) <= MOST_QUOTED
        assert quoted(value).isprintable()
    assert quoted("x" * 500) == f"'{'x' * 158}…{'x' * 39}'"
    assert quoted("x" * (MOST_QUOTED - 2)) == repr("x" * (MOST_QUOTED - 2))
    assert quoted(10**5000) == "a value of type int"
    assert quoted(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
    assert quoted("a  b") == "'a  b'"


def test_a_message_is_short_whatever_names_it_holds():
    for kind in (ConfigError, StoreError, InfeasibleError):
        error = kind("before " + "\x1b" * 10**6 + " after")
        assert len(str(error)) == MOST_MESSAGE
        assert str(error).startswith("before \u241b")
        assert str(error).endswith("\u241b after")
        assert str(kind("x" * MOST_MESSAGE)) == "x" * MOST_MESSAGE
        assert error.args == (str(error),)
    message = unknown_name("cost", "\x1b" * 10**6, ["delay"])
    assert len(message) < 2 * MOST_QUOTED
    assert message.endswith("'; known: delay")


@pytest.fixture
def evil(tmp_path):
    """A model with such names, in a file with such a name."""
    model = CMDP(
        np.full((2, 2, 2), 0.5),
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
        [0.6],
        state_names=[f"one{ESC}", "=two()"],
        action_names=[f"go{ESC}", "-stay"],
        cost_names=[f"=steps(){ESC}", f"@risk{ESC}"],
    )
    path = tmp_path / f"model{ESC.replace('/', '')}.json"
    save(model, path)
    return path


def run(capfd, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return stop.value.code, out, err


def test_no_name_reaches_the_terminal_as_it_is(evil, tmp_path, capfd):
    for arguments in (
        ["solve", evil],
        ["solve", evil, "--threshold", f"@risk{ESC}=-5"],
        ["solve", evil, "--threshold", f"missing{ESC}=1"],
        ["inspect", evil],
        ["pareto", evil, "--points", "3"],
        ["learn", evil, "--horizon", "50"],
        ["learn", f"box{ESC}"],
        ["solve", tmp_path / f"missing{ESC}.json"],
        [f"sol{ESC}"],
        ["report", tmp_path / f"missing{ESC}.db"],
        ["learn", "box", "--option", f"x{ESC}=1"],
    ):
        _, out, err = run(capfd, *arguments)
        assert "\x1b" not in out + err, arguments
        assert "\x07" not in out + err
        assert "\u241b" in out + err or "\\x1b" in out + err, arguments  # shown, and harmless
    _, out, _ = run(capfd, "solve", evil, "--json")
    assert "\x1b" not in out
    assert json.loads(out)["objective"] == f"=steps(){ESC}"  # data stays data


def test_names_in_a_live_bar_are_text(tmp_path, monkeypatch, capfd):
    """Neither escape sequences nor the markup of the bar's own library."""
    from psconrl.cli import learn, learn_progress, render

    model = CMDP(np.ones((1, 1, 1)), [[[1.0]], [[1.0]]], [2.0], cost_names=["[red]a", f"[/nothing]{ESC}"])
    save(model, tmp_path / "m.json")
    monkeypatch.setattr(learn_progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(learn_progress, "REFRESH_SECONDS", 0.0)
    for module in (learn, learn_progress):
        monkeypatch.setattr(
            module, "console", lambda stderr=False: render._SafeConsole(stderr=stderr, force_terminal=False, width=200)
        )
    code, out, err = run(capfd, "learn", tmp_path / "m.json", "--horizon", "2000")
    assert code in (0, None), err
    assert "[/nothing]" in out
    assert "\x07" not in out + err


def test_tables_for_spreadsheets_hold_no_formulas(evil, tmp_path):
    text = (
        "replicates = 2\n[agents.'=HYPERLINK(1)']\nagent = 'uniform'\n"
        "[experiments.'@sum']\nenv = 'counterexample'\nhorizon = 50\n"
    )
    run_sweep(parse_spec(text).jobs(), tmp_path / "r.db", executor=AtOnce())
    with Store(tmp_path / "r.db") as store:
        files = export_tables(store, tmp_path / "out", "csv")
    for path in files[:2]:  # there are no probes
        with path.open(newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        assert {row["experiment"] for row in rows} == {"'@sum"}
        assert {row["label"] for row in rows} == {"'=HYPERLINK(1)"}
    with files[1].open() as f:
        assert any(float(row["total"]) < 0 for row in csv.DictReader(f))  # numbers are not touched
    agent = PSConRL(2, 2, [0.6], seed=0)
    agent.watch(CSVLog(tmp_path / "log.csv", cost_names=psconrl.load(evil).cost_names))
    psconrl.simulate(psconrl.load(evil), agent, 50, seed=0)
    with (tmp_path / "log.csv").open() as f:
        header = next(csv.reader(f))
    assert not any(cell.startswith(("=", "@", "+", "-")) for cell in header)
    CSVLog(tmp_path / "log.csv", cost_names=psconrl.load(evil).cost_names)(event(evil))  # it recognises its own file


def event(path):
    found = []
    agent = PSConRL(2, 2, [0.6], seed=0)
    agent.watch(found.append)
    psconrl.simulate(psconrl.load(path), agent, 50, seed=0)
    return found[-1]
