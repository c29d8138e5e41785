"""Moves files of psconrl to the packages whose names say what they hold, and rewrites whatever names them.

``python moves.py [CHECKOUT]``: applies every move that has not been made (``git mv``), then rewrites imports, dotted
names and paths in all text files of the checkout, and formats what was rewritten (ruff). It may be run again, for
example after a merge that brings files with the old names. ``--dry`` only says what would change.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(next((a for a in sys.argv[1:] if not a.startswith("-")), ".")).resolve()
DRY = "--dry" in sys.argv
RUFF = Path("ruff")
SRC = "src/psconrl/"

# Old name or names, below a package: where they go. ``a>b`` renames.
MOVES: list[tuple[str, str, str]] = [
    ("", "base", "arrays caps escaping extras file_lock files named_code saved_fields sizes toml_text"),
    ("", "model", "products>matrix_product"),
    ("kernels", "kernels/graphs", "successors graph end_components attractor moves nested_dissection"),
    ("kernels", "kernels/arithmetic", "lanes products sorting special"),
    (
        "kernels",
        "kernels/linear",
        "aggregation csr elimination elimination_workspace krylov lu multigrid_steps sparse_elimination sweeps "
        "wide_elimination",
    ),
    (
        "kernels",
        "kernels/chains",
        "closed_classes costs dense_transient double_double finite_occupancy occupancy policy_chain policy_evaluation "
        "transient visits",
    ),
    (
        "kernels",
        "kernels/search",
        "certificates columns drive_to_best improvement master outward_improvement search>mixture_search "
        "small_components sparse_improvement transitions",
    ),
    ("kernels", "kernels/sets", "balls best_rows boxes confidence_sets intervals optimism pessimism"),
    ("kernels", "kernels/draws", "cost_effects counts dirichlet gamma rates"),
    ("kernels", "kernels/agents", "least_squares_values sa_cvi sa_cvi_blocks trips"),
    ("kernels", "kernels/play", "play>play_loop rounds"),
    (
        "planning",
        "planning/proof",
        "proof>certificate certificate>certify certificate_units certification>candidate_to_plan corrected_potential "
        "proof_files proven>sentences shortfall",
    ),
    ("planning", "planning/linear_programs", "highs highs_process lp multichain"),
    ("planning", "planning/robust", "lyapunov noise_box pessimism polytopes worst_noise"),
    ("planning", "planning", "policy_from_occupancy>mixture_frequencies"),
    ("planning/analysis", "planning", "plan_time slater"),
    (
        "planning/analysis",
        "answers",
        "__init__ continuation deterministic explanation inspection pareto threshold_rule windows",
    ),
    (
        "systems",
        "answers",
        "answer boundary bounds>level_bounds denominators heat_map infeasible least_ratio measures reasons rule_parts "
        "search>nonlinear short_rule",
    ),
    ("systems", "systems", "exploration>reachable_states prices>quantity_units"),
    ("learning", "learning", "checks>argument_checks foreign>user_agents"),
    ("learning/agents", "learning/agents", "fixed>fixed_policy"),
    (
        "learning/agents",
        "learning/rivals",
        "c_ucrl fha lagrangian lagrangian_published lagrangian_theorem pd_lscvi_ucb pd_lsvi_ucb pdnac pmevi_dt po_cmdp "
        "sa_cvi_ucb span_fha triple_qa tsde uc_curl ucrl2 ucrl_cmdp",
    ),
    ("learning", "learning/rivals", "lagrangian_sampler"),
    ("learning/runtime", "learning", "watchdog"),
    ("learning/agents", "learning/safe", "safe>safe_start"),
    (
        "learning",
        "learning/safe",
        "baseline certified_plans observed_baseline rare_moves safety_certificates>certificates "
        "safety_views>confidence_sets",
    ),
    ("learning/posterior", "learning/safe", "confidence_intervals noise_bounds outcome_blocks"),
    ("learning/posterior", "learning/posterior", "structured>noise_posterior"),
    (
        "learning/posterior",
        "learning/posterior/checks",
        "correlation_check cost_check dependence dependence_check distribution_check fluctuation_check joint_check "
        "result_likelihood round_results structure_advice structure_check variables",
    ),
    ("envs", "envs", "foreign>user_environments own_systems>user_systems"),
    ("experiment", "experiment", "own_metrics>user_metrics own_titles>user_titles"),
]
# Other files, as whole paths.
FILES = {
    "src/psconrl/envs/event_transitions.py": "tests/event_transitions.py",
    "benchmarks/environments_first.py": "benchmarks/environments_mazes_and_wards.py",
    "benchmarks/environments_second.py": "benchmarks/environments_keys_and_dams.py",
    "benchmarks/environments_third.py": "benchmarks/environments_warehouses_and_tides.py",
    "benchmarks/environments_doubt.py": "benchmarks/environments_rare_doors.py",
    "tests/damage/foreign.py": "tests/damage/user_agents.py",
    "tests/learning/test_foreign_agents.py": "tests/learning/test_user_agents.py",
    "tests/experiment/test_own_metrics.py": "tests/experiment/test_user_metrics.py",
    "tests/planning/test_explanation.py": "tests/answers/test_explanation.py",
    "tests/planning/test_simple_policies.py": "tests/answers/test_simple_policies.py",
    "tests/planning/test_windows.py": "tests/answers/test_windows.py",
    "tests/systems/test_bounds.py": "tests/answers/test_level_bounds.py",
    "tests/systems/test_search.py": "tests/answers/test_nonlinear.py",
    **{
        f"tests/systems/test_{name}.py": f"tests/answers/test_{name}.py"
        for name in ("answer boundaries least_ratio reasons short_rule stated_limits").split()
    },
}
# Modules that are not in src, by the name under which tests and benchmarks import them.
LOCAL = {
    "psconrl.envs.event_transitions": "event_transitions",
    "environments_first": "environments_mazes_and_wards",
    "environments_second": "environments_keys_and_dams",
    "environments_third": "environments_warehouses_and_tides",
    "environments_doubt": "environments_rare_doors",
    "damage.foreign": "damage.user_agents",
}
# Names of classes, functions and lists in those files.
WORDS = {
    "*.py": {
        "is_foreign": "is_user_environment",
        "open_foreign": "open_user_environment",
        "Foreign": "UserRecipe",
    },
    "benchmarks/*.py": {"FIRST": "MAZES_AND_WARDS", "SECOND": "KEYS_AND_DAMS", "THIRD": "WAREHOUSES_AND_TIDES"},
}
NEW_PACKAGES = {
    "base": "What every package uses: array types, limits on sizes, files, texts, and code that users name.",
    "kernels/graphs": "Graphs: successors, components, end components, attractors, and orders of elimination.",
    "kernels/arithmetic": "Arithmetic with the same bits on every machine: sums in lanes, products, logarithms, sorting.",
    "kernels/linear": "Linear systems of Markov chains: elimination, Krylov methods, multigrid, sparse matrices.",
    "kernels/chains": "The chain of a policy: averages, biases, stationary distributions, visits and costs.",
    "kernels/search": "The search for the best mixture of policies: improvement, the master problem, certificates.",
    "kernels/sets": "Confidence sets: intervals, boxes and balls, and the best and the worst of them.",
    "kernels/draws": "Random variates and Gibbs steps: gamma, Dirichlet, rates, costs; and the counts behind them.",
    "kernels/agents": "Inner loops of single agents.",
    "kernels/play": "The play loop, and agents that learn at every round of it.",
    "planning/proof": "What is proven of a plan: its certificate, how it is found and checked, and files of proofs.",
    "planning/linear_programs": "The occupancy linear program on HiGHS, for one end component and for several.",
    "planning/robust": "The highest cost of a policy in a confidence set, and policies that keep it low.",
    "answers": "",  # has the file of the folder that it was
    "learning/rivals": "Agents of other papers, with which this library's are compared.",
    "learning/safe": "The safe agent: its baseline, confidence sets, certificates and plans.",
    "learning/posterior/checks": "Tests of a system's structure against the rounds that were observed.",
}


def all_files() -> dict[str, str]:
    """Old path: new path, below the checkout."""
    found = dict(FILES)
    for old, new, names in MOVES:
        for name in names.split():
            before, _, after = name.partition(">")
            for suffix in (".py", ".pxd"):
                if suffix == ".py" or old == "kernels":
                    found["/".join(x for x in (SRC[:-1], old, before + suffix) if x)] = "/".join(
                        (SRC[:-1], new, (after or before) + suffix)
                    )
    return found


PATHS = all_files()


def module_of(path: str) -> str:
    return (
        path.removeprefix("src/").removesuffix(".pxd").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )


MODULES = {
    module_of(old): module_of(new)
    for old, new in PATHS.items()
    if old.startswith(SRC) and new.startswith(SRC) and old.endswith(".py")
} | LOCAL
# New packages that bear the name of an old module: what they hold.
HELD: dict[str, set[str]] = {}
for new in MODULES.values():
    HELD.setdefault(new.rpartition(".")[0], set()).add(new.rpartition(".")[2])
for old in MODULES:
    HELD.setdefault(old, set())


def git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def move() -> None:
    for package, text in NEW_PACKAGES.items():
        init = ROOT / SRC / package / "__init__.py"
        if text and not init.exists() and not DRY:
            init.parent.mkdir(parents=True, exist_ok=True)
            init.write_text(f'"""{text}"""\n')
            git("add", str(init))
    known = set(git("ls-files").splitlines())
    for old, new in PATHS.items():
        if old in known and old not in PATHS.values():
            print(f"{old} -> {new}")
            if not DRY:
                (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
                git("mv", old, new)


FROM = re.compile(
    r"^(?P<indent>[ \t>]*(?:>>> |\.\.\. )?)from (?P<prefix>cython\.cimports\.)?(?P<package>[a-z_][\w.]*) import "
    r"(?P<names>\([^)]*\)|[^\n#(]*?)(?P<rest>[ \t]*(?:#[^\n]*)?)$",
    re.MULTILINE,
)


def new_name(package: str, name: str) -> tuple[str, str]:
    """The package and the name under which a name is imported now."""
    full = f"{package}.{name}"
    if name in HELD.get(package, ()) and full in MODULES.values():
        return package, name
    if full in MODULES:
        return tuple(MODULES[full].rpartition(".")[::2])
    return MODULES.get(package, package), name


def rewrite_imports(text: str) -> str:
    """Rewrite from-imports, each name for itself, and names of modules that are used under another name now."""
    renamed: dict[str, str] = {}

    def statement(match: re.Match[str]) -> str:
        package, prefix = match["package"], match["prefix"] or ""
        inside = re.sub(r"#[^\n]*", "", match["names"].strip().strip("()"))
        names = [part.strip() for part in inside.replace("\n", " ").split(",") if part.strip()]
        found: dict[str, list[str]] = {}
        for part in names:
            name, _, alias = part.partition(" as ")
            where, now = new_name(package, name)
            if now != name and not alias:
                renamed[name] = now
            found.setdefault(where, []).append(now + (f" as {alias}" if alias else ""))
        if list(found) == [package] and found[package] == names:
            return match[0]
        lines = [f"{prefix}{where} import {', '.join(parts)}" for where, parts in found.items()]
        return "\n".join(f"{match['indent']}from {line}{match['rest']}" for line in lines)

    text = FROM.sub(statement, text)
    for name, now in renamed.items():
        text = re.sub(rf"(?<![\w.\"'/`]){name}(?=\.[a-z_]|, \"|, \')", now, text)
    return text


def dotted_pattern(names: dict[str, str], lead: str = "") -> re.Pattern[str]:
    parts = []
    for old in sorted(names, key=len, reverse=True):
        held = sorted(HELD.get(lead + old, ()))
        own = "|".join(held)
        parts.append(re.escape(old) + (rf"(?!\.(?:{own})\b| import \(?\s*(?:{own})\b)" if held else ""))
    return re.compile(rf"(?:(?<=cimports\.)|(?<![\w./-]))({'|'.join(parts)})(?![\w/]|-\w)")


DOTTED = dotted_pattern(MODULES)
SHORT = {
    old.removeprefix("psconrl."): new.removeprefix("psconrl.")
    for old, new in MODULES.items()
    if old.startswith("psconrl.") and old.count(".") > 1 and new.startswith("psconrl.")
}


def rewrite_dotted(text: str) -> str:
    text = DOTTED.sub(lambda m: MODULES[m[1]], text)
    # ``planning.certificate`` in a docstring
    short = dotted_pattern(SHORT, "psconrl.")
    return re.sub(r"(?<=`)[a-z_]+\.[a-z_.]+[a-zA-Z_.]*(?=`)", lambda m: short.sub(lambda n: SHORT[n[1]], m[0]), text)


PATH_NAMES: dict[str, str] = {}
for old, new in PATHS.items():
    PATH_NAMES[old] = new
    for lead in (SRC, "tests/"):
        if old.startswith(lead) and new.startswith(lead) and "/" in old.removeprefix(lead):
            PATH_NAMES[old.removeprefix(lead)] = new.removeprefix(lead)
WHOLE = [path for path in PATH_NAMES if path in PATHS]
SHORTER = [path for path in PATH_NAMES if path not in PATHS]


def path_pattern(paths: list[str], lead: str) -> re.Pattern[str]:
    return re.compile(rf"{lead}({'|'.join(re.escape(p) for p in sorted(paths, key=len, reverse=True))})(?!\w)")


PATH_PATTERNS = path_pattern(WHOLE, r"(?<![\w.-])"), path_pattern(SHORTER, r"(?<![\w-])(?<![\w-]/)")
AT_ROOT = {
    old.removeprefix(SRC): new.removeprefix(SRC)
    for old, new in PATHS.items()
    if old.startswith(SRC) and "/" not in old.removeprefix(SRC)
}


def rewrite_paths(text: str, path: str) -> str:
    for pattern in PATH_PATTERNS:
        text = pattern.sub(lambda m: PATH_NAMES[m[1]], text)
    # The map had paths from the package on; now it has them from the folder of each table on.
    if path == "tests/mutants.toml" or (path == "CONTRIBUTING.md" and "### Models and Markov chains" in text):
        for old, new in AT_ROOT.items():
            text = re.sub(rf'(?<=["`]){re.escape(old)}(?=["`])', new, text)
    return text


SKIPPED = ("docs/submissions/", "docs/results/", "tests/data/", "docs/assets/", "benchmarks/study/")
TEXTS = (".py", ".pxd", ".md", ".toml", ".yml", ".yaml", ".cfg", ".sh", ".ipynb", ".txt", ".in", ".tex", ".h", ".c", "")


def rewrite() -> list[str]:
    changed = []
    for path in git("ls-files").splitlines():
        file = ROOT / path
        if path.startswith(SKIPPED) or file.suffix not in TEXTS or not file.is_file():
            continue
        try:
            before = file.read_text()
        except UnicodeDecodeError:
            continue
        after = rewrite_imports(before) if file.suffix in (".py", ".md") else before
        after = rewrite_paths(rewrite_dotted(after), path)
        for pattern, words in WORDS.items():
            if Path(path).match(pattern):
                for old, new in words.items():
                    after = re.sub(rf"\b{old}\b", new, after)
        if after != before:
            changed.append(path)
            if not DRY:
                file.write_text(after)
    return changed


def main() -> None:
    move()
    changed = rewrite()
    print(f"{len(changed)} files rewritten")
    if DRY:
        print(*changed, sep="\n")
        return
    python = [str(ROOT / path) for path in changed if path.endswith(".py")]
    if python:
        subprocess.run([RUFF, "check", "--quiet", "--select", "I", "--fix", *python], cwd=ROOT, check=False)
        subprocess.run([RUFF, "format", "--quiet", *python], cwd=ROOT, check=False)


main()
