"""The import graph: a layer imports only itself and lower layers, and there are no import cycles."""

import ast
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "psconrl"

# From the bottom up. A package may import itself and lower layers; envs and learning do not import each other.
LAYERS = (
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
    ("__init__", "__main__"),  # the public API
)
LEVEL = {package: level for level, layer in enumerate(LAYERS) for package in layer}


def module_of(path):
    parts = ("psconrl", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SOURCE.rglob("*.py")}


def imports_of(path):
    """The modules of this library that a file imports, at any place in the file."""
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
def imports():
    """The modules that each module imports."""
    return {module: imports_of(path) for module, path in MODULES.items()}


def package_of(module):
    return module.split(".")[1] if "." in module else "__init__"


def is_allowed(module, imported):
    package, other = package_of(module), package_of(imported)
    if imported == "psconrl":
        return package in ("__init__", "__main__")  # the public API
    return other == package or LEVEL[other] < LEVEL[package] or LEVEL[package] == 0


def test_no_module_imports_a_higher_layer():
    every = [(module, imported) for module in sorted(MODULES) for imported in sorted(imports()[module])]
    assert [pair for pair in every if not is_allowed(*pair)] == []


def test_there_are_no_import_cycles():
    done, open_ = set(), []

    def visit(module):
        if module in done:
            return
        assert module not in open_, " -> ".join([*open_[open_.index(module) :], module])
        open_.append(module)
        for imported in sorted(imports()[module] - {"psconrl"}):
            visit(imported)
        open_.pop()
        done.add(module)

    for module in sorted(MODULES):
        visit(module)


def test_imports_are_found():
    """Check the test itself on some known imports."""
    assert "psconrl.planning.problem" in imports()["psconrl.planning.planner"]
    assert "psconrl.model.transition" in imports()["psconrl.model.cmdp"]
    assert "psconrl.report.figures" in imports()["psconrl.cli.learning"]  # inside a function


def test_solvers_do_not_ask_whether_transitions_are_dense():
    """Only modules that read, write or show a matrix, and the two implementations, may depend on its form."""
    exempt = {
        "psconrl.model.transition", "psconrl.markov.chain", "psconrl.model.validation", "psconrl.model.io",
        "psconrl.model.rates", "psconrl.markov.unichain", "psconrl.learning.checks",
        "psconrl.learning.runtime.persistence", "psconrl.learning.part", "psconrl.learning.posterior.prior_weights",
    }  # fmt: skip
    for module, path in MODULES.items():
        if package_of(module) in ("model", "markov", "planning", "learning", "simulation") and module not in exempt:
            text = path.read_text()
            for query in ("issparse(", "isinstance(P, np.ndarray)", "transition, np.ndarray)"):
                assert query not in text, f"{module} asks {query}"


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
