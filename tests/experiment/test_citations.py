"""BibTeX of the library and of its agents."""

import re
from pathlib import Path

import pytest

import psconrl
from psconrl.cli import main
from psconrl.experiment.citations import AGENT_REFERENCES, LIBRARY, agents_cited, bibliography, citations
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.learning.registry import TABLE
from sweeps import AtOnce

ROOT = Path(__file__).parents[2]
NEEDED = {"article": ("journal",), "inproceedings": ("booktitle",), "misc": (), "software": ("version", "year")}


def test_every_agent_has_an_entry_and_every_entry_an_agent():
    assert list(AGENT_REFERENCES) == [recipe.name for recipe in TABLE]
    assert all(AGENT_REFERENCES.values())
    used = {*LIBRARY, *(key for keys in AGENT_REFERENCES.values() for key in keys)}
    assert used == set(bibliography())


def test_every_entry_parses_whole():
    text = (ROOT / "src/psconrl/experiment/references.bib").read_text(encoding="utf-8")
    assert "\n\n".join(reference.text for reference in bibliography().values()) + "\n" == text
    assert len(bibliography()) == text.count("@")
    for reference in bibliography().values():
        lines = reference.text.splitlines()[1:-1]
        assert len(reference.fields) == len(lines), reference.key
        assert reference.text.count("{") == reference.text.count("}")
        assert all(reference.fields[name] for name in NEEDED[reference.kind])
        assert reference.fields["author"]
        assert re.fullmatch(r"\d{4}", reference.fields.get("year", "2024"))
        assert ("title" in reference.fields) or reference.fields["archivePrefix"] == "arXiv"


def test_the_entry_of_the_library_is_that_of_the_citation_file():
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    entry, paper = (bibliography()[key].fields for key in LIBRARY)
    assert f'title: "{_plain(entry["title"])}"' in cff
    assert f"version: {entry['version']}\nlicense: {entry['license']}" in cff
    assert entry["version"] == psconrl.__version__
    assert f"(c) {entry['year']} The psconrl developers" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert f'title: "{paper["title"]}"' in cff
    assert f'collection-title: "{paper["booktitle"]}"' in cff
    names = re.findall(r"family-names: (\w+)\n\s+given-names: (\w+)", cff)
    assert paper["author"] == " and ".join(f"{family}, {given}" for family, given in names)


def test_entries_agree_with_the_documentation():
    """Titles, authors, years and identifiers are those of the pages."""
    pages = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    pages = " ".join(pages.split())
    for key, reference in bibliography().items():
        if key == "psconrl":
            continue
        fields = reference.fields
        if "eprint" in fields:
            assert fields["eprint"] in pages, key
        if "title" in fields:
            assert f"*{_plain(fields['title'])}*".lower() in pages.lower(), key
        authors = [name.partition(",")[0] for name in fields["author"].split(" and ") if name != "others"]
        others = " et al." if fields["author"].endswith(" and others") else ""
        listed = ", ".join(authors[:-1]) + f" and {authors[-1]}" if authors[1:] else authors[0] + others
        around = [pages[m.start() : m.start() + 300] for m in re.finditer(re.escape(listed), pages)]
        assert any(fields["year"] in text for text in around), key


def test_identifiers_of_an_agents_page_are_those_of_its_entries():
    named = {}
    for page in sorted((ROOT / "docs/agents").glob("*.md")):
        head = page.read_text(encoding="utf-8")
        for agent in re.findall(r'psconrl\.agents\.make\("([\w-]+)"', head):
            before = head.partition(f'`psconrl.agents.make("{agent}"')[0].rpartition("*,")[2] or head
            found = re.search(r"arXiv\s(\d{4}\.\d{5})", before[-200:])
            if found:
                named[agent] = found[1]
    known = {
        agent: {bibliography()[key].fields.get("eprint") for key in keys} for agent, keys in AGENT_REFERENCES.items()
    }
    assert {"ucrl-cmdp", "pdnac", "pmevi-dt", "sa-cvi-ucb", "pd-lscvi-ucb"} <= named.keys()
    assert {agent for agent, eprint in named.items() if eprint not in known[agent]} == set()


def _plain(text):
    return text.replace("{", "").replace("}", "")


def test_agents_are_named_by_name_or_title_or_a_results_file(tmp_path):
    spec = '[experiments.a]\nenv = "counterexample"\nagents = ["fha", "ucrl2"]\nreplicates = 1\nhorizon = 20\n'
    path = tmp_path / "r.db"
    run_sweep(parse_spec(spec).jobs(), path, executor=AtOnce())
    assert agents_cited(["C-UCRL", "fha", str(path)]) == ["c-ucrl", "fha", "ucrl2"]
    run_sweep(parse_spec(spec.replace('"fha", ', "")).jobs(), path, executor=AtOnce())
    assert agents_cited([str(path)]) == ["ucrl2"]  # current runs alone


def test_each_entry_is_printed_once_and_own_agents_are_named():
    text = citations(["fha", "span-fha", "mine:My\nAgent", "packaged"])
    assert re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE) == [*LIBRARY, "chen2022learning"]
    assert text.splitlines()[-3:] == [
        "% mine:My Agent: no entry, since it is of another package", "", "% packaged: no entry, since it is of another "
        "package",
    ]  # fmt: skip
    assert citations(["mine:Agent"]).endswith("% mine:Agent: no entry, since it is your own")


def test_the_command(capsys):
    for arguments, number in (([], 2), (["psconrl", "c-ucrl"], 3)):
        with pytest.raises(SystemExit) as end:
            main(["cite", *arguments])
        assert end.value.code in (0, None)
        assert capsys.readouterr().out.count("@") == number
    with pytest.raises(SystemExit) as end:
        main(["cite", "c-ucr"])
    assert end.value.code == 2
    assert "did you mean 'c-ucrl'? (or the name of a results file)" in capsys.readouterr().err
