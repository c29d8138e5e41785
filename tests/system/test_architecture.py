"""The import graph: a layer imports only itself and lower layers, and there are no import cycles."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "psconrl"

# From the bottom up. A package may import itself and lower layers; envs and learning do not import each other.
LAYERS = (
    ("base", "errors", "check_proof", "_version"),
    ("kernels",),
    ("model",),
    ("markov",),
    ("planning",),
    ("systems",),
    ("answers",),
    ("envs", "learning"),
    ("simulation",),
    ("data",),
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


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def imports_of(path):
    """The modules of this library that a file imports, at any place in the file."""
    found = set()
    for node in ast.walk(tree_of(path)):
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


# Folders of one package that import each other, with the reason.
MUTUAL = {
    ("planning.exact", "planning.proof"): "a proof may be checked, and a plan made, in rational arithmetic",
}


def test_folders_of_a_package_import_in_one_direction():
    pairs = {(folder_of(module), folder_of(other)) for module, found in imports().items() for other in found}
    siblings = {
        (a, b) for a, b in pairs if a and b and a < b and a.split(".")[0] == b.split(".")[0] and (b, a) in pairs
    }
    assert {(a, b) for a, b in siblings if not b.startswith(f"{a}.")} == set(MUTUAL)


def folder_of(module):
    """The folder of a module within a package, such as ``planning.mixture``; empty for modules of a package itself."""
    parts = MODULES[module].relative_to(SOURCE).parts[:-1]
    return ".".join(parts) if len(parts) > 1 else ""


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
    assert "psconrl.report.run_figure" in imports()["psconrl.cli.learn"]  # inside a function


FORM = re.compile(
    r"\bissparse\(|\.is_sparse\b|\.array is\b"
    r"|isinstance\([^()]*, (np\.ndarray|csr_array|Dense\w+|Sparse\w+|Restart\w+)\)"
)
# Modules that may ask for the form of a matrix, dense or sparse, with the reason.
MAY_ASK = {
    "psconrl.model.transition": "implements both forms",
    "psconrl.model.matrices": "operations on both forms",
    "psconrl.model.matrix_product": "products of both forms",
    "psconrl.model.cmdp": "says in which form the user gave the model",
    "psconrl.model.validation": "checks a matrix of the user",
    "psconrl.model.io": "writes the form in which the model was given",
    "psconrl.markov.select_solver": "chooses the solver by the form",
    "psconrl.answers.inspection": "reports the form to the user",
    "psconrl.learning.part": "shows and compares the options of a part",
    "psconrl.learning.posterior.given_weights": "reads weights of the user",
    "psconrl.learning.runtime.persistence": "writes options to files",
}


def test_solvers_do_not_ask_whether_transitions_are_dense():
    """Only modules that read, write or show a matrix, and the implementations, may depend on its form."""
    packages = ("model", "markov", "planning", "answers", "learning", "simulation")
    asking = {module for module, path in MODULES.items() if package_of(module) in packages and asks(path)}
    assert asking == set(MAY_ASK)


def asks(path):
    return FORM.search(path.read_text()) is not None


def test_errors_repeat_values_through_quoted():
    """A value of a user may have any length and any characters; the checker of proofs stands alone."""
    plain = set()
    for module, tree in trees().items():
        raised = (part for node in ast.walk(tree) if isinstance(node, ast.Raise) for part in ast.walk(node))
        if package_of(module) != "check_proof":
            plain |= {
                f"{module}, line {part.lineno}"
                for part in raised
                if isinstance(part, ast.FormattedValue) and part.conversion == ord("r")
            }
    assert plain == set()


MOST_LINES = 400


def test_modules_are_short():
    assert {m for m, path in MODULES.items() if len(path.read_text().splitlines()) > MOST_LINES} == set()


def test_names_of_classes_and_functions_are_not_used_twice():
    """Kernels are named after the mathematics; they are imported as members of their modules."""
    found = defaultdict(set)  # overloads have one name
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name].add(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_numbers_of_the_same_name_are_the_same():
    found = defaultdict(dict)
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.Assign):
                for name, number in assigned(node):
                    found[name].setdefault(number, []).append(module)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}
    assert found["MULTIGRID_STATES"] == {"5000": ["psconrl.base.sizes"]}


def trees():
    return {module: tree_of(path) for module, path in MODULES.items() if package_of(module) != "kernels"}


def assigned(node):
    """Yield the names of numbers that an assignment defines, and the numbers as text."""
    for target in node.targets:
        several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        names, values = (target.elts, node.value.elts) if several else ([target], [node.value])
        for name, value in zip(names, values, strict=True):
            numbers = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
            if isinstance(name, ast.Name) and numbers and all(isinstance(x, int | float) for x in numbers):
                yield name.id, ast.unparse(value)


def test_the_map_names_every_file_once():
    """Only packages whose ``__init__`` says what they hold, and nothing else, need no row of their own."""
    text = (
        (SOURCE.parents[1] / "CONTRIBUTING.md").read_text().partition("## Where to find what")[2].partition("\n## ")[0]
    )
    named = [path for section in text.split("\n### ")[1:] for path in files_of_section(section)]
    assert sorted(named) == sorted({*named}), "a file is named twice"
    silent = {path for path in MODULES.values() if path.name == "__init__.py" and len(tree_of(path).body) < 2}
    assert {*named} == {*MODULES.values()} - silent


def files_of_section(section):
    """The files in the last column of a table, below the package in its heading."""
    heading, *lines = section.splitlines()
    package = heading.rpartition(": ")[2].strip("`/")
    rows = [line.strip("| ").rpartition(" | ")[2] for line in lines if line.startswith("| ")]
    folder = SOURCE if package == "psconrl" else SOURCE / package
    return [folder / name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)]
