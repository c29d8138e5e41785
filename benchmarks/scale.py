"""Learning at thousands of states: ``python benchmarks/scale.py times|picture|learning``.

``times [--old SRC]``: milliseconds per episode and memory, each case in a separate process, on one core, medians. With
``--old``, the sources of another commit alternate on the same cases. ``picture``: milliseconds against states for each
kind of knowledge, with slopes; draws docs/results/scale.png. ``learning [RUNS]``: regret against prior knowledge and
against states, with 95% intervals.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import psconrl
from psconrl.agents import PSConRL
from psconrl.simulation.model_run import Simulation

OUT = Path(__file__).parents[1] / "docs" / "results" / "scale.png"
SECONDS = 40.0  # for every case
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "garnet, S = 100": ("garnet", {"states": 100, "seed": 1}, "nothing"),
    "garnet, S = 200": ("garnet", {"states": 200, "seed": 1}, "nothing"),
    "garnet, S = 400": ("garnet", {"states": 400, "seed": 1}, "nothing"),
    "garnet, S = 1,000": ("garnet", {"states": 1000, "seed": 1}, "nothing"),
    "queue, S = 11, two limits": ("queue", {"capacity": 10}, "nothing"),
    "ward, 1,330 x 12, three limits": ("ward", {}, "support"),
    "network, 2,500 x 4": ("network", {"side": 50}, "support"),
    "network, 10,000 x 4": ("network", {"side": 100}, "support"),
    "stock, 1,728 x 4, three limits": ("stock", {}, "support"),
}
GRIDS = {"marsrover-4x4": 11_000, "marsrover-8x8": 20_000, "box": 500_000}
KNOWN = ("nothing", "support", "rough model, worth 20", "rough model")
TRUST = 20.0


def support_of(cmdp: psconrl.CMDP) -> Any:
    """Return the support as a sparse matrix of ones."""
    matrix = cmdp.transition.csr().copy()
    matrix.data[:] = 1.0
    return matrix


def peak_megabytes() -> float:
    """Return the peak memory of this process; ``getrusage`` would include that of its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e3
    return float("nan")


def one(path: str, known: str) -> None:
    """Play a model from a file for a while, and print the time per episode. Also runs on older commits."""
    cmdp = psconrl.load(path)
    options: dict[str, Any] = {}
    if known == "support":
        support = support_of(cmdp)
        try:
            options["belief"] = psconrl.agents.LearnedMass(support=support)
        except psconrl.PsconrlError:  # a commit without sparse beliefs
            dense = support.toarray().reshape(cmdp.n_states, cmdp.n_actions, -1)
            options["belief"] = psconrl.agents.LearnedMass(support=dense)
    agent = PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=1, **options)
    run = Simulation(cmdp, agent, seed=2)
    run.run(5)
    warm = len(run.log.seconds)
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until and run.round < 2_000:
        run.run(run.round + 5)
    seconds = np.array(run.log.seconds[warm:])
    print(
        json.dumps(
            {
                "ms": 1e3 * float(np.median(seconds)),
                "p90": 1e3 * float(np.quantile(seconds, 0.9)),
                "episodes": seconds.size,
                "rounds": run.round,
                "MB": peak_megabytes(),
            }
        )
    )


def measured(source: Path, path: str, known: str) -> dict[str, Any]:
    """Return the output of ``one`` with the sources of a commit."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    call = [sys.executable, __file__, "one", path, known]
    try:
        done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=6 * SECONDS, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return {"ms": np.nan, "p90": np.nan, "episodes": 0, "rounds": 0, "MB": np.nan}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def grid_seconds(source: Path, name: str, horizon: int) -> float:
    """Return the seconds of a run of the default agent, the median of three."""
    text = (
        "import psconrl, time, numpy as np\n"
        f"cmdp = psconrl.load({name!r}); seconds = []\n"
        "for seed in range(4):\n"
        "    agent = psconrl.PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed)\n"
        f"    began = time.perf_counter(); psconrl.simulate(cmdp, agent, {horizon}, seed=seed)\n"
        "    seconds.append(time.perf_counter() - began)\n"
        "print(np.median(seconds[1:]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def times(old: Path | None) -> None:
    """Print the table."""
    new = Path(psconrl.__file__).parents[1]
    print("| | known | old | new, ms an episode (90%) | memory | episodes |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for title, (name, options, known) in CASES.items():
            path = str(Path(folder) / "model.npz")
            psconrl.save(psconrl.load(name, **options), path)
            before = measured(old, path, known) if old is not None else {"ms": np.nan}
            now = measured(new, path, known)
            print(
                f"| {title} | {known} | {before['ms']:.1f} | {now['ms']:.2f} ({now['p90']:.1f}) | {now['MB']:.0f} MB | "
                f"{now['episodes']} |",
                flush=True,
            )
    for name, horizon in GRIDS.items():
        before = grid_seconds(old, name, horizon) if old is not None else np.nan
        now = grid_seconds(new, name, horizon)
        print(f"| {name}, a run | nothing | {before:.2f} s | {now:.2f} s | | |", flush=True)


def network(side: int, **options: Any) -> psconrl.CMDP:
    """The network with a constraint that binds at every size."""
    return psconrl.load("network", side=side, waiting=min(12.0, 0.5 * side), **options)


def rough(side: int) -> psconrl.CMDP:
    """An approximate simulator of the network: rates off by a tenth to a fifth."""
    return network(side, arrival=1.35, service=(0.66, 0.44), fast=(0.8, 0.55), onward=0.3)


def ward(beds: int, arrivals: tuple[float, ...] = (0.16, 0.2, 0.1), **options: Any) -> psconrl.CMDP:
    """A smaller ward with fewer arrivals."""
    come = tuple(rate * beds / 18 for rate in arrivals)
    return psconrl.load("ward", beds=beds, arrivals=come, refused=0.12, occupied=0.75 * beds, **options)


def learner(cmdp: psconrl.CMDP, simulator: psconrl.CMDP, known: str, seed: int) -> PSConRL:
    """PSConRL with some knowledge of the transitions; costs are known."""
    if known == "nothing":
        return PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed)
    if known == "support":
        belief = psconrl.agents.LearnedMass(support=support_of(cmdp))
        return PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, belief=belief, seed=seed)
    worth = TRUST if known.endswith("20") else None  # None: it is learned
    return PSConRL.trusting(simulator, worth, costs=cmdp.costs, thresholds=cmdp.thresholds, seed=seed)


def picture(sides: tuple[int, ...] = (5, 10, 20, 32, 50, 71, 100)) -> None:
    """Draw milliseconds per episode against states."""
    from matplotlib.figure import Figure

    from psconrl.report.style import nth_look

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    styles = {known: nth_look(k).line for k, known in enumerate(KNOWN)}
    for known in KNOWN:
        states, found = [], []
        for side in sides:
            cmdp = network(side)
            run = Simulation(cmdp, learner(cmdp, rough(side), known, 1), seed=2)
            run.run(5)
            warm, until = len(run.log.seconds), time.perf_counter() + SECONDS / 2
            while time.perf_counter() < until and run.round < 1_000:
                run.run(run.round + 5)
            states.append(side * side)
            found.append(1e3 * float(np.median(run.log.seconds[warm:])))
            print(f"| {known} | {side * side} | {found[-1]:.2f} |", flush=True)
        slope = np.polyfit(np.log(states[2:]), np.log(found[2:]), 1)[0]
        axes.loglog(states, found, marker="o", label=f"{known} (slope {slope:.1f})", **styles[known])
        print(f"| {known} | slope | {slope:.2f} |", flush=True)
    axes.set(xlabel="states", ylabel="milliseconds an episode, median", title="PSConRL on a network of two stations")
    axes.legend(title="what is known")
    axes.grid(alpha=0.3)
    figure.savefig(OUT, dpi=150)


def played(job: tuple[str, int, str, int, int]) -> tuple[float, ...]:
    """Return regret; at shadow prices, in total and per late round; worst violation per round; planning time.

    Late rounds are those of the last fifth.
    """
    name, size, known, horizon, seed = job
    if name == "network":
        cmdp, simulator = network(size), rough(size)
    else:
        cmdp = ward(size)
        simulator = ward(size, (0.19, 0.17, 0.12), discharges=(0.024, 0.026, 0.025), speeds=(0.5, 0.85, 1.0))
    agent, best = learner(cmdp, simulator, known, 100 + seed), psconrl.plan(cmdp)
    trace = psconrl.simulate(cmdp, agent, horizon, seed=seed, checkpoints=[4 * horizon // 5, horizon])
    measures = psconrl.regret(trace, best)
    priced = measures.regret + measures.violation @ best.multipliers
    late = (priced[-1] - priced[-2]) / (horizon / 5)
    worst = measures.violation[-1].max() / horizon
    return measures.regret[-1], priced[-1], late, worst, trace.provenance["planning_seconds"]


def learning(runs: int) -> None:
    """Print regret against prior knowledge, and against states."""
    jobs = [("network", side, 5_000) for side in (5, 10, 20)] + [("ward", beds, 20_000) for beds in (5, 8)]
    print(
        "| environment | states | rounds | known | regret | at shadow prices | a round of the last fifth | "
        "worst violation a round | planning, s |\n|---|---|---|---|---|---|---|---|---|"
    )
    with ProcessPoolExecutor(max_workers=2) as pool:
        for name, size, horizon in jobs:
            states = (network if name == "network" else ward)(size).n_states
            for known in KNOWN:
                found = np.array(list(pool.map(played, [(name, size, known, horizon, seed) for seed in range(runs)])))
                middle, spread = found.mean(axis=0), 1.96 * found.std(axis=0, ddof=1) / np.sqrt(runs)
                print(
                    f"| {name} | {states} | {horizon:,} | {known} | {middle[0]:.0f} ± {spread[0]:.0f} | "
                    f"{middle[1]:.0f} ± {spread[1]:.0f} | {middle[2]:.4f} ± {spread[2]:.4f} | "
                    f"{middle[3]:.3f} ± {spread[3]:.3f} | {middle[4]:.1f} |",
                    flush=True,
                )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("times", "picture", "learning", "one"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--old", type=Path)
    given = parser.parse_args()
    if given.what == "one":
        one(*given.rest)
    elif given.what == "times":
        times(given.old)
    elif given.what == "picture":
        picture()
    else:
        learning(int(given.rest[0]) if given.rest else 10)


if __name__ == "__main__":
    main()
