"""The code in the documentation runs as shown, page by page, and prints what the page says.

The blocks of a page run in order, in one namespace and one empty folder. ``python``: executed; a ``text`` block
directly below must equal what was printed, or, if its title is "one path", all but its numbers, which depend on the
bits of a path that another processor may leave. ``toml`` or ``python`` that begins with ``# file: NAME``: written to
that file, and not executed.
``console``: lines ``$ psconrl ...`` are run, and must end with exit code 0 or the one in a trailing ``# exit code N``;
lines below a command must be what it printed, ``...`` standing for anything. Other commands (make, pip, kill) and
other blocks are not run.
"""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex
import shutil
import subprocess
import sys
import types
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

import psconrl
from psconrl.cli import main
from psconrl.experiment.true_constants import SPAN_CONSTANTS, true_constants
from psconrl.experiment.user_metrics import RecordedRun
from psconrl.learning.part import Part, argument_names
from psconrl.learning.registry import RECIPES, with_hints
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.runtime.events import EpisodeEvent
from psconrl.learning.safe.baseline import known_baseline
from psconrl.learning.sampler import trusted
from psconrl.learning.user_agents import ARGUMENTS

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# Slow pages: `make test-all` runs them.
LONG = tuple(
    f"docs/{page}.md"
    for page in (
        "tutorials/paper",
        "tutorials/thousands",
        "tutorials/gymnasium",
        "tutorials/system",
        "from-deep-rl",
        "experiments",
        "system-files",
        "agents/pd-lsvi-ucb",
        "agents/safe",
        "extending/one-file",
    )
)
# What a page takes for granted: the user's system.
GIVEN = {"README.md": {"my_system": lambda state, action: ((state + 1) % 10, [1.0, 2.0, 0.3])}}

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w+)(?P<title>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
FILE = re.compile(r"# file: (\S+)\n")
NUMBER = re.compile(r"-?\d+\.?\d*")
PROGRESS = re.compile(r"^\d+ of \d+ runs[^\n]*\n", re.MULTILINE)  # every few seconds: a slow machine prints more
EXIT_CODE = re.compile(r"\s+# exit code (\d+)$")


class Block(NamedTuple):
    kind: str
    body: str
    line: int
    output: str | None  # of a python block: the text block directly below
    one_path: bool  # whether its numbers depend on a path


class Command(NamedTuple):
    arguments: list[str]
    exit_code: int
    output: str


def blocks_of(text: str) -> list[Block]:
    found = list(FENCE.finditer(text))
    result = []
    for fence, following in zip_longest(found, found[1:]):
        directly = following is not None and not text[fence.end() : following.start()].strip()
        output = body_of(following) if directly and following["kind"] == "text" else None
        one_path = output is not None and following["title"] == ' title="one path"'
        result.append(Block(fence["kind"], body_of(fence), text[: fence.start()].count("\n") + 2, output, one_path))
    return result


def body_of(fence: re.Match[str]) -> str:
    indent = fence["indent"]
    return "".join(line.removeprefix(indent) for line in fence["body"].splitlines(keepends=True))


def commands_of(body: str) -> list[Command]:
    result = []
    for shown in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, output = shown.partition("\n")
        if line.startswith("psconrl "):
            code = EXIT_CODE.search(line)
            arguments = shlex.split(line, comments=True)[1:]
            result.append(Command(arguments, int(code[1]) if code else 0, output))
    return result


def printed_by_python(block: Block, page: str, names: dict[str, object]) -> str:
    # Leading blank lines make a traceback show the line of the page.
    code = compile("\n" * (block.line - 1) + block.body, page, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue()


def words_of(text: str) -> list[str]:
    return NUMBER.sub("#", text).replace("[ ", "[").split()


def run_command(command: Command) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as both, contextlib.redirect_stderr(both):
        try:
            main(command.arguments)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return code, PROGRESS.sub("", both.getvalue())


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.full if name_of(p) in LONG else ()) for p in PAGES], ids=name_of
)
def test_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", [*sys.path])  # code that a page names is found in its folder
    name = name_of(page)
    names = {"__name__": "__main__", **GIVEN.get(name, {})}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.kind in ("toml", "python") and (file := FILE.match(block.body)):
            Path(file[1]).write_text(block.body, encoding="utf-8")
        elif block.kind == "python":
            printed = printed_by_python(block, name, names)
            if block.one_path:
                assert words_of(printed) == words_of(block.output), f"{name}, line {block.line}"
            elif block.output is not None:
                assert printed == block.output, f"{name}, line {block.line}"
        elif block.kind == "console":
            for command in commands_of(block.body):
                code, printed = run_command(command)
                where = f"{name}, line {block.line}: psconrl {shlex.join(command.arguments)}"
                assert code == command.exit_code, f"{where}\n{printed}"
                if command.output.strip():
                    matches = doctest.OutputChecker().check_output(command.output, printed, doctest.ELLIPSIS)
                    assert matches, f"{where}\n--- shown:\n{command.output}--- printed:\n{printed}"


@pytest.mark.full  # .ci/run builds it as well
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    pytest.importorskip("zensical")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)  # it builds beside this file
    for folder in ("docs", "src"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(PAGES)  # and one for addresses that lead nowhere, in place of the README
    for page in pages:
        loaded = re.findall(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"(\w+:|//)", page.read_text("utf-8"))
        assert set(loaded) <= {"data:"}, page.name
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:|//)", style.read_text("utf-8")), style.name


def test_formulas_are_typeset_by_a_copy_of_katex_that_is_complete():
    folder = ROOT / "docs/assets/katex"
    fonts = re.findall(r"url\(([^)]+)\)", (folder / "katex.min.css").read_text("utf-8"))
    assert {folder / name for name in fonts} == set((folder / "fonts").iterdir())
    assert "MIT License" in (folder / "LICENSE").read_text("utf-8")
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 1_500_000
    version = re.search(r'version:"([\d.]+)"', (folder / "katex.min.js").read_text("utf-8"))
    assert f"# KaTeX {version[1]}," in (ROOT / "mkdocs.yml").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_formulas_are_closed(page):
    """Dollars of formulas come in pairs, and braces within them match; code does not count."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    for block in re.split(r"\n\n", text):
        assert block.count("$") % 2 == 0, block
        for formula in re.findall(r"\${1,2}([^$]+)\${1,2}", block):
            assert formula.count("{") == formula.count("}"), formula


GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|chi|omega|Phi|Lambda"
)


def symbols_of(text):
    """The letters of all formulas in a text, Greek ones by name, without words."""
    found = set()
    for formula in re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, re.DOTALL):
        formula = re.sub(r"\\(text|mathrm|mathbb|texttt|mathtt|begin|end)\{[^}]*\}", " ", "".join(formula))
        names = re.findall(r"\\([a-zA-Z]+)|([a-zA-Z])", formula)
        found |= {letter or name for name, letter in names if letter or GREEK.fullmatch(name)}
    return found


@pytest.mark.parametrize("page", ["theory", "theorems", "theorems-further", "proofs", "algorithms"])
def test_the_symbols_of_theorems_are_in_the_notation(page):
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    statements = re.findall(
        r"^\*\*(?:The t|T|P|L)(?:heorem|roposition|emma).+?(?=^\*Proof|^#|^\*\*What)", text, re.DOTALL | re.M
    )
    assert statements
    assert symbols_of("".join(statements)) <= symbols_of((ROOT / "docs/notation.md").read_text("utf-8"))


def test_the_reference_holds_every_public_name():
    shown = re.findall(r"^::: (psconrl\.\S+)", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {f"psconrl.{name}" for name in psconrl.__all__} - set(shown) == {"psconrl.__version__"}
    agents = {f"psconrl.agents.{name}" for name in psconrl.agents.__all__ if name != "PSConRL"}
    assert agents <= set(shown)


def test_the_table_of_agents_is_that_of_the_registry():
    """A row for every name and its title, in the order of `psconrl agents`, and one for each class that has none."""
    text = (ROOT / "docs/agents/index.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (`[\w-]+`)? ?\| .+ \| .+ \| .+ \| .+ \|$", text, re.MULTILINE)
    assert [name.strip("`") for _, name in rows if name] == list(RECIPES)
    titles = [re.sub(r"\[(.+)\]\(.+\)", r"\1", agent) for agent, name in rows if name]
    assert titles == [recipe.title for recipe in RECIPES.values()]
    assert any("FixedPolicy" in agent for agent, _ in rows)


def test_the_parts_of_the_documentation_are_those_there_are():
    text = (ROOT / "docs/agents/index.md").read_text("utf-8")
    for kind in Part.kinds.values():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{kind.kind}` |"))
        for part in kind.known.values():
            assert f"`{part.__name__}`: `{part.name}`" in row
            assert all(f"`{option}`" in row for option in argument_names(part))


def names_in_table(page, heading):
    """The names in the first column of the first table below a heading, or a text, of a page."""
    rows = (ROOT / page).read_text("utf-8").partition(heading)[2].partition("\n| ")[2].partition("\n\n")[0]
    return [name for row in rows.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_the_table_of_what_an_agent_is_given_is_what_it_is_given():
    model = psconrl.load("riverswim")

    class Taking:
        theory_constants = ("gap", *SPAN_CONSTANTS)

        def __init__(self, *, optimistic_cost, ranges, slack, **rest): ...

    sys.modules["taking"] = types.SimpleNamespace(Taking=Taking)
    try:
        given = [*ARGUMENTS, *with_hints("taking:Taking", model, {}), *trusted(model), *trusted(model, 5)]
        given += [*known_baseline(model), *true_constants(model, "taking:Taking")]
    finally:
        del sys.modules["taking"]
    assert set(names_in_table("docs/extending/agent.md", "## What an agent is given")) == set(given)


@pytest.mark.parametrize(
    ("text", "cls"),
    [
        ("watching.md: An event has these attributes", EpisodeEvent),
        ("watching.md: `plan` is a `psconrl.agents.EpisodePlan`", EpisodePlan),
        ("extending/agent.md: ### The plan of an episode", EpisodePlan),
        ("experiments.md: The argument has these attributes", RecordedRun),
    ],
)
def test_the_attributes_are_documented(text, cls):
    page, _, heading = text.partition(": ")
    assert set(names_in_table(f"docs/{page}", heading)) == {field.name for field in fields(cls)}


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    path = ROOT / "docs/_site/docstrings.py"
    spec = importlib.util.spec_from_file_location("docstrings", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    failed, attempted = doctest.testmod(module)
    assert (failed, attempted) == (0, 2)


def test_the_harness_notices_what_is_wrong():
    text = "```python\nprint(1)\n```\n\n```text\n2\n```\nand\n```python\nprint(3)\n```\nthen\n```text\nno\n```\n"
    one, shown, two, _ = blocks_of(text)
    assert (one.output, shown.kind, two.output) == ("2\n", "text", None)
    assert printed_by_python(one, "page", {}) == "1\n"
    path, _ = blocks_of('```python\nprint(1)\n```\n\n```text title="one path"\n2\n```\n')
    assert (path.output, path.one_path, one.one_path) == ("2\n", True, False)
    assert words_of("regret -629, [3706.   91.]\n") == words_of("regret 9.5, [ 10. -91.]\n") != words_of("regret 9.5\n")
    commands = commands_of("$ make it\n$ psconrl solve no-such  # exit code 2\nModelError: ...\n$ psconrl envs # all\n")
    assert commands == [Command(["solve", "no-such"], 2, "ModelError: ...\n"), Command(["envs"], 0, "")]
    code, printed = run_command(commands[0])
    assert code == 2
    assert printed.startswith("ModelError: unknown environment 'no-such'")
