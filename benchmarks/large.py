"""Planning large models: ``python benchmarks/large.py queues|random|philosophers|multichain|growth``.

    python benchmarks/large.py growth                     # 10^4 to 10^6 states; draws docs/results/large.png
    python benchmarks/large.py philosophers --storm storm/bin/python
    python benchmarks/large.py queues --small --repeat 1  # seconds, to see that it runs

Every run is a separate process, with BLAS on one core, which first plans a smaller model of the same kind to load the
kernels. Models are built once, by another process, and read from a file. Our runs and the peers' runs alternate; the
table has medians, as rows for benchmarks/RESULTS.md. A run that fails or takes longer than ``--limit`` gets a row that
says so, and is not repeated.

``--storm PYTHON`` names the Python of an environment that has stormpy (``python -m venv storm && storm/bin/pip install
-e '.[storm]'``); Storm then solves the same problem on the same model, also for queues and random models. HiGHS plans
the multichain models. ``growth`` includes the runs of ``queues``.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import psconrl

HERE = Path(__file__).parent
PICTURE = HERE.parent / "docs" / "results" / "large.png"
OURS, HIGHS = "psconrl", "HiGHS"
TIGHT = "1e-8"
TELLING = 50_000  # states; below this, kernels and libraries dominate the memory
STORM = {
    "Storm": [],
    "Storm, sound": ["sound"],
    f"Storm, {TIGHT}": ["--multiobjective:precision", TIGHT, "--lra:precision", TIGHT],
}
HEADER = (
    "| model | by | reading, s | seconds | times ours | memory, GB | status | gap / value | value | to reach |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Case:
    """A model to plan: how to build it and a small one, the goal, and the targets to reach."""

    title: str
    build: tuple[Any, ...]  # a builder's name and its arguments
    small: tuple[Any, ...]
    formula: str = ""  # the formula for Storm
    goal: dict[str, str] = field(default_factory=dict)  # the goal, for a file without one
    most: dict[str, float] = field(default_factory=dict)  # upper bounds of seconds, GB and gap
    faster: dict[str, float] = field(default_factory=dict)  # least speed-up over each peer


def built(kind: str, *arguments: int) -> psconrl.CMDP:
    """Build a model by name."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]
    if kind == "philosophers":
        from known_models import philosophers

        return philosophers(*arguments)
    if kind == "clusters":
        from multichain import clusters

        return clusters(*arguments)
    from models import sparse_random, two_queues

    return {"queues": two_queues, "random": sparse_random}[kind](*arguments)


def queues(sides: list[int], warm: int) -> list[Case]:
    """Two queues, with side x side states."""
    most = {316: {"seconds": 15.0}, 1000: {"seconds": 300.0, "GB": 6.0, "gap": 1e-6}}
    formula = 'multi(R{"power"}min=? [LRA], R{"waiting"}<=LIMIT [LRA])'
    return [
        Case(f"two queues, S = {n * n:,}", ("queues", n), ("queues", warm), formula, most=most.get(n, {}))
        for n in sides
    ]


def random(sizes: list[int], warm: int) -> list[Case]:
    """Ten successors, four actions, one constraint."""
    most = {100_000: {"seconds": 10.0}, 1_000_000: {"seconds": 240.0, "GB": 8.0}}
    formula = 'multi(R{"objective"}min=? [LRA], R{"cost_1"}<=LIMIT [LRA])'
    return [
        Case(f"sparse random, S = {S:,}", ("random", S), ("random", warm), formula, most=most.get(S, {})) for S in sizes
    ]


def philosophers(sizes: list[int], warm: int) -> list[Case]:
    """Dining philosophers, with and without the constraint."""
    limited = {"Storm": 1.0, f"Storm, {TIGHT}": 3.0}
    asked: list[tuple[str, str, dict[str, str], dict[str, float]]] = [
        (
            "least hungry, eat >= 0.5",
            'multi(R{"hungry"}min=? [LRA], R{"eat"}>=0.5 [LRA])',
            {"minimise": "hungry", "limits": "eat >= 0.5"},
            limited,
        ),
        ("least hungry", 'R{"hungry"}min=? [LRA]', {"minimise": "hungry"}, {}),
        ("most eat", 'R{"eat"}max=? [LRA]', {"maximise": "eat"}, {}),
    ]
    return [
        Case(f"phil-nofair{n}, {what}", ("philosophers", n), ("philosophers", warm), formula, goal, faster=faster)
        for n in sizes
        for what, formula, goal, faster in asked
    ]


def multichain(sizes: list[int], warm: int) -> list[Case]:
    """Hundreds of end components, without and with a constraint."""
    return [
        Case(
            f"multichain, S = {S:,}, {m or 'no'} limit", ("clusters", S, m), ("clusters", warm, m), faster={HIGHS: 10.0}
        )
        for S in sizes
        for m in (0, 1)
    ]


# Builders of cases; their sizes and that of the model that loads the kernels; the same with --small.
ROWS = {
    "queues": (queues, [316, 1000], 100, [20, 30], 12),
    "random": (random, [100_000, 1_000_000], 10_000, [300, 1000], 100),
    "philosophers": (philosophers, [4, 5], 3, [3], 3),
    "multichain": (multichain, [10_000, 30_000, 100_000], 2_000, [600], 600),
    "growth": (queues, [100, 173, 316, 548, 1000], 100, [8, 12, 16, 20], 8),
}


def gigabytes(what: str) -> float:
    """Return ``VmHWM``, the peak memory of this process, or ``VmRSS``, its current memory.

    ``getrusage``, used where there is no /proc, also counts the memory of the parent process.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith(what))


def one(path: str, small: str, goal: str, method: str) -> None:
    """Read and plan a model, and print time and memory."""
    asked, way = json.loads(goal), {} if method == OURS else {"method": "lp"}
    psconrl.plan(psconrl.load(small, **asked), **way)
    base, began = gigabytes("VmRSS"), time.perf_counter()
    model = psconrl.load(path, **asked)
    ready = time.perf_counter()
    plan = psconrl.plan(model, **way)
    done = time.perf_counter()
    print(json.dumps({
        "reading": ready - began, "seconds": done - ready, "GB": gigabytes("VmHWM"), "base": base,
        "states": model.n_states, "entries": int(model.transition.csr().nnz), "status": plan.status.value,
        "gap": plan.gap / max(abs(plan.value), 1e-300), "value": plan.value,
    }))  # fmt: skip


def answer(call: list[str], limit: float) -> dict[str, Any]:
    """Return the last line that a process prints as a dictionary, or the error."""
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"trouble": f"not within {limit:,.0f} s", "seconds": limit}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or ["no word"]
        why = ([line for line in said if "Error" in line or "Exception" in line] or said)[-1]
        return {"trouble": f"failed ({done.returncode}): {why[:120].replace('|', '/')}"}
    return dict(json.loads(lines[-1]))


def files(case: Case, folder: Path, storm: bool, limit: float) -> dict[str, Any]:
    """Write the model and the small one in a separate process; return their paths, or the error."""
    ending = ".umb" if case.goal else ".npz"
    paths = {}
    for which, built_of in (("model", case.build), ("small", case.small)):
        stem = folder / "-".join(map(str, built_of))
        wanted = {stem.with_suffix(ending), *([stem.with_suffix(".umb")] if storm else [])}
        if not all(path.exists() for path in wanted):
            call = [sys.executable, __file__, "build", json.dumps(built_of), *map(str, wanted)]
            found = answer(call, limit)
            if "trouble" in found:
                return found
            stem.with_suffix(".limit").write_text(str(found["limit"]))
        paths |= {which: str(stem.with_suffix(ending)), f"{which}, Storm": str(stem.with_suffix(".umb"))}
        if which == "model":
            paths["limit"] = stem.with_suffix(".limit").read_text()
    return paths


def calls(case: Case, paths: dict[str, Any], storm: str | None) -> dict[str, list[str]]:
    """Return the processes to start, by planner."""
    ours = [sys.executable, __file__, "one", paths["model"], paths["small"], json.dumps(case.goal)]
    found = {OURS: [*ours, OURS]}
    if HIGHS in case.faster:
        found[HIGHS] = [*ours, HIGHS]
    if storm and case.formula:
        formula = case.formula.replace("LIMIT", paths["limit"])
        for name, settings in STORM.items():
            peer = [storm, str(HERE / "storm_peer.py"), paths["model, Storm"], paths["small, Storm"], formula]
            found[name] = [*peer, *settings]
    return found


def measured(case: Case, given: argparse.Namespace, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return all runs of a case by planner, alternating; a planner that fails once is not run again."""
    paths = files(case, folder, bool(given.storm), given.limit)
    if "trouble" in paths:
        return {OURS: [{"trouble": "building " + paths["trouble"]}]}
    todo = calls(case, paths, given.storm)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in todo}
    for _ in range(given.repeat):
        for name, call in todo.items():
            if not any("trouble" in run for run in runs[name]):
                runs[name].append(answer(call, given.limit))
    return runs


def middle(runs: Iterable[dict[str, Any]], key: str) -> float:
    """Return the median of one number over runs, nan if it is missing."""
    found = [float(run[key]) for run in runs if run.get(key) is not None]
    return median(found) if found else float("nan")


def verdict(case: Case, name: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    """Return the targets and whether they are reached."""
    words = []
    units = {"seconds": "{:g} s", "GB": "{:g} GB", "gap": "gap {:g}"}
    failed = any("trouble" in run for run in runs[OURS])
    for key, most in case.most.items() if name == OURS else ():
        reached = not failed and middle(runs[OURS], key) <= most
        words.append(f"{units[key].format(most)}: {'yes' if reached else 'NO'}")
    if name in case.faster:
        times = middle(runs[name], "seconds") / middle(runs[OURS], "seconds")
        reached = not failed and times >= case.faster[name]
        wanted = f"{case.faster[name]:g} times" if case.faster[name] != 1 else "as fast"
        words.append(f"{wanted}: {'cannot say' if np.isnan(times) else 'yes' if reached else 'NO'}")
    return ", ".join(words)


def row(case: Case, name: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    """Return a row of the table."""
    mine = runs[name]
    times = middle(mine, "seconds") / middle(runs[OURS], "seconds")
    ratio = "" if name == OURS or np.isnan(times) else f"{times:.2g}" if times < 10 else f"{times:,.0f}"
    trouble = next((run["trouble"] for run in mine if "trouble" in run), "")
    if trouble:
        more = f"more than {ratio}" if ratio else ""
        cells = ["", trouble, more, "", "", "", ""]
    else:
        gap = middle(mine, "gap")
        cells = [
            f"{middle(mine, 'reading'):.3g}", f"{middle(mine, 'seconds'):.3g}", ratio, f"{middle(mine, 'GB'):.2f}",
            "/".join(sorted({run["status"] for run in mine})), "" if np.isnan(gap) else f"{gap:.0e}",
            f"{middle(mine, 'value'):.9g}",
        ]  # fmt: skip
    return "| " + " | ".join([case.title, name, *cells, verdict(case, name, runs)]) + " |"


def table(cases: list[Case], given: argparse.Namespace) -> list[dict[str, list[dict[str, Any]]]]:
    """Make all runs of some cases, and print each row as soon as it is complete."""
    print(f"\n{machine()}; medians of {given.repeat}\n\n{HEADER}", flush=True)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            runs = measured(case, given, Path(folder))
            for name in runs:
                print(row(case, name, runs), flush=True)
            found.append(runs)
    print(seconds_side_by_side(cases, found), end="")
    versions = {str(run["version"]) for runs in found for peer in runs.values() for run in peer if "version" in run}
    if versions:
        print(f"\nStorm {', '.join(sorted(versions))}")
    for case, runs in zip(cases, found, strict=True):
        print(memory_line(case, runs[OURS]), end="", flush=True)
    return found


def seconds_side_by_side(cases: list[Case], found: list[dict[str, list[dict[str, Any]]]]) -> str:
    """Return the table of seconds, a row per model and a column per planner; empty if there are no peers."""
    names = list(dict.fromkeys(name for runs in found for name in runs))
    if len(names) < 2:
        return ""
    lines = [f"\n| seconds | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for case, runs in zip(cases, found, strict=True):
        cells = [_seconds(runs[name]) if name in runs else "" for name in names]
        lines.append(f"| {' | '.join([case.title, *cells])} |")
    return "\n".join(lines) + "\n"


def _seconds(runs: list[dict[str, Any]]) -> str:
    if any("trouble" in run for run in runs):
        return "failed" if np.isnan(middle(runs, "seconds")) else f"> {middle(runs, 'seconds'):,.0f}"
    return f"{middle(runs, 'seconds'):.2g}" if middle(runs, "seconds") < 10 else f"{middle(runs, 'seconds'):,.0f}"


def memory_line(case: Case, runs: list[dict[str, Any]]) -> str:
    """Return the peak memory of reading and planning, without that of the process before, if it is substantial."""
    if any("trouble" in run for run in runs) or middle(runs, "states") < TELLING:
        return ""
    used = 1e9 * (middle(runs, "GB") - middle(runs, "base"))
    states, entries = middle(runs, "states"), middle(runs, "entries")
    return (
        f"- {case.title}: {entries:,.0f} entries; {used / states:,.0f} bytes a state, {used / entries:,.0f} an entry\n"
    )


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Return the power of x with which y grows: least squares of the logarithms."""
    return float(np.polyfit(np.log(list(x)), np.log(list(y)), 1)[0])


def growth(found: list[dict[str, list[dict[str, Any]]]], draw: bool) -> None:
    """Print the slopes and draw the figure."""
    kept = [runs[OURS] for runs in found if not any("trouble" in run for run in runs[OURS])]
    if len(kept) < 2:
        print("\nno slope: fewer than two sizes were planned")
        return
    states = [middle(runs, "states") for runs in kept]
    seconds = [middle(runs, "seconds") for runs in kept]
    power = slope(states, seconds)
    verdict = "yes" if power <= 1.2 else "NO"
    print(f"\nseconds grow with the power {power:.2f} of the states; to reach: at most 1.2: {verdict}")
    if draw:
        picture(states, seconds, [middle(runs, "GB") for runs in kept], power)
        print(f"drawn: {PICTURE.relative_to(HERE.parent)}")


def picture(states: list[float], seconds: list[float], memory: list[float], power: float, path: Path = PICTURE) -> None:
    """Draw seconds and memory against states."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    from psconrl.report.style import nth_look

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.loglog(states, seconds, marker="o", label=f"plan with its proof (slope {power:.2f})", **nth_look(0).line)
    line = np.exp(np.mean(np.log(seconds) - np.log(states))) * np.array(states)
    left.loglog(states, line, label="slope 1", **nth_look(1).line)
    left.set(xlabel="states", ylabel="seconds, median", title="Two queues, one limit")
    left.legend(loc="upper left")
    right.loglog(states, memory, marker="o", **nth_look(0).line)
    right.set(xlabel="states", ylabel="GB", title="Memory of the process, at most")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    figure.savefig(path, dpi=150)


def machine() -> str:
    """Describe the machine."""
    return (
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, {platform.system()}, BLAS on one; load before "
        f"{os.getloadavg()[0]:.1f}; Python {platform.python_version()}, NumPy {np.__version__}"
    )


def build(what: str, *paths: str) -> None:
    """Write a model to files, and print its threshold."""
    model = built(*json.loads(what))
    for path in paths:
        psconrl.save(model, path)
    print(json.dumps({"limit": repr(float(model.thresholds[0])) if model.thresholds.size else ""}))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=(*ROWS, "one", "build"), metavar="|".join(ROWS))
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the medians are printed")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which a run is ended")
    parser.add_argument("--storm", metavar="PYTHON", help="of an environment that has stormpy")
    parser.add_argument("--small", action="store_true", help="models of seconds, to see that it runs")
    parser.add_argument("--sizes", type=int, nargs="+", help="other ones: sides of queues, states, philosophers")
    given = parser.parse_args(arguments)
    if given.row in ("one", "build"):
        {"one": one, "build": build}[given.row](*given.rest)
        return
    cases, usual, warm, small, small_warm = ROWS[given.row]
    sizes = given.sizes or (small if given.small else usual)
    found = table(cases(sizes, small_warm if given.small else warm), given)
    if given.row == "growth":
        growth(found, draw=not (given.small or given.sizes))


if __name__ == "__main__":
    main()
