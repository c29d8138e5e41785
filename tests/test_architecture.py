"""Imports point down: no floor knows the one above it, and no file leads back to itself."""

import ast
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "psconrl"

# From the ground up. A floor may import those to its left, and itself; envs and learning do not know each other.
FLOORS = (
    ("arrays", "errors", "extras", "caps", "files", "named_code", "text", "_version"),
    ("kernels",),
    ("products",),
    ("model",),
    ("markov",),
    ("planning",),
    ("envs", "learning"),
    ("simulation",),
    ("experiment",),
    ("report",),
    ("cli",),
    ("agents",),
    ("__init__", "__main__"),  # the public face
)
LEVEL = {room: level for level, floor in enumerate(FLOORS) for room in floor}


def module_of(path):
    parts = ("psconrl", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SOURCE.rglob("*.py")}


def imports_of(path):
    """The modules of this library that a file names in an import, wherever it stands in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            name = name.removeprefix("cython.cimports.")
            while name and name not in MODULES:
                name = name.rpartition(".")[0]
            if name:
                found.add(name)
    return found - {module_of(path)}


@cache
def arrows():
    """The modules that each module imports."""
    return {module: imports_of(path) for module, path in MODULES.items()}


def room_of(module):
    return module.split(".")[1] if "." in module else "__init__"


def is_allowed(module, imported):
    room, other = room_of(module), room_of(imported)
    if imported == "psconrl":
        return room in ("__init__", "__main__")  # the public face
    return other == room or LEVEL[other] < LEVEL[room] or LEVEL[room] == 0


def test_no_arrow_points_up():
    every = [(module, imported) for module in sorted(MODULES) for imported in sorted(arrows()[module])]
    assert [arrow for arrow in every if not is_allowed(*arrow)] == []


def test_nothing_leads_back_to_itself():
    done, open_ = set(), []

    def visit(module):
        if module in done:
            return
        assert module not in open_, " -> ".join([*open_[open_.index(module) :], module])
        open_.append(module)
        for imported in sorted(arrows()[module] - {"psconrl"}):
            visit(imported)
        open_.pop()
        done.add(module)

    for module in sorted(MODULES):
        visit(module)


def test_the_arrows_are_seen():
    """The test of the test: some that are surely there."""
    assert "psconrl.planning.problem" in arrows()["psconrl.planning.planner"]
    assert "psconrl.model.transition" in arrows()["psconrl.model.cmdp"]
    assert "psconrl.report.figures" in arrows()["psconrl.cli.learning"]  # inside a function


def test_solvers_do_not_ask_whether_transitions_are_dense():
    """Which form a matrix has is the business of whoever reads, writes or shows it, and of the two implementations."""
    at_home = {
        "psconrl.model.transition", "psconrl.markov.chain", "psconrl.model.validation", "psconrl.model.io",
        "psconrl.model.rates", "psconrl.markov.unichain", "psconrl.learning.checks",
        "psconrl.learning.runtime.persistence", "psconrl.learning.part", "psconrl.learning.posterior.prior_weights",
    }  # fmt: skip
    for module, path in MODULES.items():
        if room_of(module) in ("model", "markov", "planning", "learning", "simulation") and module not in at_home:
            text = path.read_text()
            for question in ("issparse(", "isinstance(P, np.ndarray)", "transition, np.ndarray)"):
                assert question not in text, f"{module} asks {question}"


def test_the_map_of_the_package_names_files_that_exist():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text().partition("| where is |")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 10
    for row in rows:
        folder = ""
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", row.rpartition(" | ")[2]):
            folder = name.rpartition("/")[0] or folder
            place = SOURCE / (name if "/" in name else f"{folder}/{name}")
            assert place.exists(), f"CONTRIBUTING.md names {name}"
