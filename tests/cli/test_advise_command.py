"""The command ``advise``: memo, policy and JSON from a table, and bad input in one line."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from log_samples import shop, shop_rows
from psconrl.cli import main


def run(capsys, *args):
    with pytest.raises(SystemExit) as leaving:
        main(["advise", *map(str, args)])
    out = capsys.readouterr()
    return leaving.value.code or 0, out.out, out.err


def written(path, rows):
    lines = [
        ",".join(f'"{name}"' for name in rows),
        *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def two_shifts(rounds=1500):
    """Short shifts cost 1 and are late in three of ten rounds; long ones cost 2 and are seldom late."""
    rng = np.random.default_rng(0)
    long = rng.integers(2, size=rounds)
    late = (rng.random(rounds) < np.where(long, 0.05, 0.3)).astype(int)
    return {"line": ["on"] * rounds, "shift": np.where(long, "long", "short"), "cost": 1 + long, "late": late}


@pytest.fixture
def table(tmp_path):
    return written(tmp_path / "log.csv", two_shifts())


COLUMNS = ("--state", "line", "--action", "shift", "--costs", "cost,late")


class Tags(HTMLParser):
    """The tags of a page, its links, and the identifiers that these may point to."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.names, self.attributes = set(), set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src"):
                self.links.add(value)
            if name == "id":
                self.names.add(f"#{value}")


def test_a_log_of_a_system_becomes_a_memo(capsys, tmp_path):
    table = written(tmp_path / "log.csv", shop_rows(1200))
    shop().save(tmp_path / "shop.toml")
    memo, policy = tmp_path / "memo.html", tmp_path / "policy.csv"
    code, out, _ = run(
        capsys, table, "--system", tmp_path / "shop.toml", "--limit", "lost <= 0.35", "-o", memo, "--policy", policy
    )
    assert code == 0
    assert f"Memo: {memo}" in out.replace("\n", "")
    assert policy.read_text().startswith("state,action,probability,long_run_share\nshelf=0,")
    page = Tags(memo.read_text())
    assert not page.tags & {"script", "img", "link", "iframe", "object"}
    assert page.links <= page.names  # nothing is fetched, and links lead somewhere
    assert "limit: at most 0.35" in memo.read_text()


def test_without_a_system_as_json(capsys, table):
    code, out, _ = run(capsys, table, *COLUMNS, "--limit", "late <= 12%", "--confidence", "0.9", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["verdict"] == "pay"
    assert record["confidence"] == 0.9
    assert record["limits"][0]["threshold"] == 0.12


def test_what_stands_in_the_table_is_harmless_in_the_page(capsys, tmp_path):
    """Markup, a formula, control characters and very long texts, as names of columns and as labels."""
    rows = two_shifts(600)
    evil, formula = "<script>alert(1)</script>", "=cmd|'/C calc'!A0"
    odd = "\u202e&"
    rows = {
        evil: ["<img src=x onerror=alert(1)>"] * 600,
        "shift": np.where(rows["shift"] == "long", "x" * 500, odd),
        formula: rows["cost"],
        "</style>": rows["late"],
    }
    memo, policy = tmp_path / "memo.html", tmp_path / "policy.csv"
    columns = ("--state", evil, "--action", "shift", "--costs", f"{formula},</style>", "--limit", "'</style>' <= 0.25")
    code, _, err = run(capsys, written(tmp_path / "log.csv", rows), *columns, "-o", memo, "--policy", policy)
    assert (code, err) == (0, "")
    text = memo.read_text()
    page = Tags(text)
    assert not page.tags & {"script", "img"}
    assert "onerror" not in page.attributes
    assert text.count("</style>") == 1
    assert "x" * 200 not in text
    assert text.isascii()
    assert not re.search(r"^[=+@-]", policy.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--state", "line"), "--action: name its columns"),
        ((*COLUMNS[:4],), "the log has no costs"),
        ((*COLUMNS, "--limit", "late"), "--limit: must be 'NAME <= VALUE'"),
        ((*COLUMNS, "--limit", "late >= 1"), "without a --system, a limit is 'NAME <= VALUE'"),
        ((*COLUMNS, "--limit", "later <= 1"), "unknown cost 'later'; did you mean 'late'?"),
        ((*COLUMNS, "--confidence", "95"), "confidence must lie strictly between 0 and 1"),
        ((*COLUMNS, "-o", "memo.pdf"), "--output: 'memo.pdf' must end in .html"),
        ((*COLUMNS, "-o", "nowhere/memo.html"), "folder 'nowhere' does not exist"),
        ((*COLUMNS, "--system", "shop.toml"), "shop.toml: no such file"),
    ],
)
def test_bad_input_is_one_line(capsys, table, args, message):
    code, out, err = run(capsys, table, *args)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_faults_are_refused_or_left_out(capsys, tmp_path):
    rows = two_shifts()
    rows["cost"] = [*rows["cost"][:40], "nan", *rows["cost"][41:]]
    table, memo = written(tmp_path / "log.csv", rows), tmp_path / "memo.html"
    code, _, err = run(capsys, table, *COLUMNS, "-o", memo)
    assert code == 2
    assert "line 42" in err
    assert err.count("\n") == 1
    assert not memo.exists()
    code, _, _ = run(capsys, table, *COLUMNS, "--skip-bad", "-o", memo)
    assert code == 0
    assert "line 42" in memo.read_text()
