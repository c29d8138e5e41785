"""docs/paper.md has a verdict and something that shows it for every statement, and its counts are right.

The checks against the text of the paper are skipped where it is absent. Its folder is given by the environment
variable PSCONRL_PAPER.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from psconrl.cli import app
from psconrl.learning.registry import RECIPES

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/paper.md").read_text("utf-8")
VERDICTS = ("reproduced", "differs", "not checkable", "not run yet")
ROW = re.compile(
    r"^\| ([0-9AB]-\d+) \| (.+?) \| \*\*(.+?)\*\*(?: <!-- ([\w-]+) -->)? \| (.*?) \| (.+) \|$", re.MULTILINE
)
ROWS = [match.groups() for match in ROW.finditer(PAGE)]
PAPER = Path(os.environ.get("PSCONRL_PAPER", ROOT / "paper"))
LABEL = re.compile(r"\\label\{([^}]+)\}")
SECTION = re.compile(r"(sub)?sec:|apx:|app:")


def test_every_row_is_read():
    assert len(ROWS) == len(re.findall(r"^\| (?!id |-)", PAGE, re.MULTILINE))
    assert len(ROWS) > 200


def test_ids_are_unique_and_in_order():
    ids = [row[0] for row in ROWS]
    sections = list(dict.fromkeys(name.partition("-")[0] for name in ids))
    assert sections == [*"01234567", "A", "B"]
    for section in sections:
        numbers = [int(name.partition("-")[2]) for name in ids if name.startswith(f"{section}-")]
        assert numbers == list(range(1, len(numbers) + 1))


def test_every_row_has_a_verdict_and_what_differs_a_reason():
    for name, _, verdict, _, why, _ in ROWS:
        assert verdict in VERDICTS, name
        assert why or verdict in ("reproduced", "not run yet"), name


def test_what_is_not_run_yet_has_a_name_of_its_own():
    pending = [tag for _, _, verdict, tag, _, _ in ROWS if verdict == "not run yet"]
    assert None not in pending
    assert len(set(pending)) == len(pending)
    assert all(tag is None for _, _, verdict, tag, _, _ in ROWS if verdict != "not run yet")


def test_the_counts_of_the_introduction():
    intro = PAGE.partition("\n## ")[0]
    assert f"Of {len(ROWS)} statements" in " ".join(intro.split())
    for verdict in VERDICTS:
        number = sum(row[2] == verdict for row in ROWS)
        line = next((line for line in intro.splitlines() if line.startswith("- ") and f"**{verdict}**" in line), None)
        if number:
            assert line.split()[1] == str(number), verdict
        else:
            assert line is None, verdict


@pytest.mark.parametrize("shown", sorted({row[5] for row in ROWS}))
def test_what_shows_it_exists(shown):
    if shown == "none":
        assert {row[2] for row in ROWS if row[5] == shown} == {"not checkable"}
        return
    if link := re.fullmatch(r"\[\w+\]\((\S+)\)", shown):
        assert link[1].startswith(("https://arxiv.org/abs/", "https://github.com/"))
        return
    command = re.fullmatch(r"`([^`]+)`", shown)[1]
    if "::" in command:
        file, _, name = command.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), command
        return
    program, what, *rest = shlex.split(command)
    if program == "python":
        assert (ROOT / what).is_file()
        return
    assert program == "psconrl"
    known = app.get_command(None, what)
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= options
    if what == "learn":
        assert rest[rest.index("--agent") + 1] in RECIPES
    if "--agents" in rest:
        assert set(rest[rest.index("--agents") + 1].split(",")) <= set(RECIPES)


def test_references_between_rows_exist():
    ids = {row[0] for row in ROWS}
    assert set(re.findall(r"[( ]([0-9AB]-\d+)[)., ]", PAGE)) - {"1-2"} <= ids


def paper_text():
    files = sorted(path for path in PAPER.glob("*") if path.suffix in (".tex", ".txt")) if PAPER.is_dir() else []
    if not files:
        pytest.skip("the paper's text is not here")
    return "\n".join(path.read_text("utf-8") for path in files)


def test_every_label_of_the_paper_is_mentioned():
    labels = {label for label in LABEL.findall(paper_text()) if not SECTION.match(label)}
    assert len(labels) > 30
    mentioned = set(re.findall(r"<!-- label: (\S+) -->", PAGE))
    assert mentioned == labels


def test_every_environment_of_the_paper_is_numbered_as_on_the_page():
    text = paper_text()
    numbered = re.findall(r"\\begin\{(theorem|lemma|assumption|remark|example)\}|\\(section)\{|\\(appendix)", text)
    section, count, expected = 0, 0, []
    for kind, begins, appendix in numbered:
        if appendix:
            section = ord("A") - 1
        elif begins:
            section, count = section + 1, 0
        else:
            count += 1
            expected.append(f"{kind.capitalize()} {chr(section) if section >= ord('A') else section}.{count}")
    assert len(expected) > 10
    assert [name for name in expected if name not in PAGE] == []
