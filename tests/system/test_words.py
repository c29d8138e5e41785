"""The glossary: one word a concept, and it is the field's. The words on the left occur nowhere in the project."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Not this, but that. Patterns ignore case.
GLOSSARY = {
    r"laws?": "distribution",
    r"chances?": "probability",
    r"worlds?": "environment (to play in), model (to plan on)",
    r"told": "given, known to the agent",
    r"think|thinks|thinking|thought": "plan, planning time",
    r"lots?": "mixture policy, initial randomisation",
    r"coins?": "randomised action, deterministic policy",
    r"outlooks?": "planning horizon",
    r"knobs?": "hyperparameter",
    r"twice the (?:working )?precision": "double-double",
    r"surely left|passed through": "transient",
    r"(?:led|leads?|leading) into": "driven to, attractor",
    r"dust": "rounding residue",
    r"anew": "again",
    r"heed(?:s|ed)?": "check",
    r"conducts?": "policy",
    r"bridges?": "interim policy",
    r"unbeaten": "not significantly worse",
    r"way of life": "regime",
    r"miracles?": "event of negligible probability",
    r"whoever|somebody|nobody|everybody": "the user, the caller, no agent",
    r"so many": "n",
    r"house": "package, module, layer",
    r"levels of aggregation": "aggregation multigrid",
}
PATTERN = re.compile(rf"(?<![\w])(?:{'|'.join(GLOSSARY)})(?![\w])", re.IGNORECASE)
PLACES = ("src", "docs", "tests", "benchmarks", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")
SUFFIXES = {".py", ".pxd", ".md", ".toml", ".js", ".html", ".css", ".sh", ".yml", ".ipynb", ""}
# Literals that must keep their bits, and this file.
ALLOWED = {
    "src/psconrl/experiment/job.py": ['_entropy("world", None)'],
}


def texts():
    for place in PLACES:
        root = ROOT / place
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            generated = any(part == "__pycache__" or part.endswith(".egg-info") for part in path.parts)
            if path.is_file() and path.suffix in SUFFIXES and not generated and path != Path(__file__):
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="ignore")


def test_words_of_the_field():
    found = []
    for name, text in texts():
        for allowed in ALLOWED.get(name, ()):
            text = text.replace(allowed, "")
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{name}:{number}: {match}" for match in PATTERN.findall(line)]
    assert not found, f"{len(found)} words of the glossary's left column:\n" + "\n".join(found[:40])


@pytest.mark.parametrize("text", ["the law of the next state", "Nobody knows", "a coin toss", "by lot", "thinking"])
def test_the_test_sees_them(text):
    assert PATTERN.search(text)


@pytest.mark.parametrize("text", ["flawless", "allow", "worldwide_web", "plot", "slot", "rethink", "coincide", "bold"])
def test_parts_of_other_words_are_fine(text):
    assert not PATTERN.search(text)
