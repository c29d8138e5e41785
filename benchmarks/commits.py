"""Compare the speed of two commits: ``python benchmarks/commits.py OLD_PYTHON [CASE ...] [--pairs N]``.

``OLD_PYTHON`` is the interpreter of an environment in which the other commit is installed. Each case is prepared and
warmed up once in a process of its own for either commit; then the two take turns, and the table has the medians of the
seconds of processor time and the median of the ratios. The models come from this commit, through files, but for
samples, which each makes by itself.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WORK = Callable[[int], object]  # the timed function, of the number of the turn

LEARNING = {  # environment, its options, rounds of a turn
    "learn 4x4": ("marsrover-4x4", {}, 11_000),
    "learn 8x8": ("marsrover-8x8", {}, 4_000),
    "learn box": ("box", {}, 20_000),
    "learn queue": ("queue", {"capacity": 10}, 10_000),
}
EPISODES = {  # environment, its options, whether the support is known, episodes of a turn
    "garnet 100": ("garnet", {"states": 100, "seed": 1}, False, 100),
    "garnet 200": ("garnet", {"states": 200, "seed": 1}, False, 40),
    "garnet 400": ("garnet", {"states": 400, "seed": 1}, False, 15),
    "garnet 1000": ("garnet", {"states": 1000, "seed": 1}, False, 6),
    "network 10000": ("network", {"side": 100}, True, 4),
}
PLANS = {
    "plan 4x4": ("named", "marsrover-4x4", 200),
    "plan 8x8": ("named", "marsrover-8x8", 50),
    "plan box": ("named", "box", 50),
    "plan queue": ("named", "queue", 100),
    "plan two queues 100000": ("queues", 316, 1),
    "plan random 100000": ("random", 100_000, 1),
    "plan philosophers 5": ("philosophers", 5, 1),
}
GOALS = {"plan philosophers 5": {"minimise": "hungry", "limits": "eat >= 0.5"}}  # for files without a goal
SAMPLES = {"samples 4x4": ("marsrover-4x4", 60), "samples 8x8": ("marsrover-8x8", 40), "samples box": ("box", 40)}


def write(case: str, path: Path) -> None:
    """Return the model of a case, built by this commit."""
    import psconrl

    if case in PLANS:
        kind, size, _ = PLANS[case]
        from large import built

        model = psconrl.load(size) if kind == "named" else built(kind, size)
    else:
        name, options = LEARNING[case][:2] if case in LEARNING else EPISODES[case][:2]
        model = psconrl.load(name, **options)
    psconrl.save(model, str(path))


def prepared(case: str, path: str) -> WORK:
    """Return the work of a turn, in the commit that this process runs."""
    import psconrl

    if case in SAMPLES:
        import models
        from psconrl.planning.mixture.solve import solve

        name, count = SAMPLES[case]
        problems = list(models.posterior_samples(name, count, seed=1))
        return lambda turn: [solve(problem) for problem in problems]
    cmdp = psconrl.load(path, **GOALS.get(case, {}))
    if case in PLANS:
        return lambda turn: [psconrl.plan(cmdp) for _ in range(PLANS[case][2])]
    if case in LEARNING:

        def learn(turn: int) -> None:
            agent = psconrl.PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=turn)
            psconrl.simulate(cmdp, agent, LEARNING[case][2], seed=turn)

        return learn
    return _episodes(cmdp, *EPISODES[case][2:])


def _episodes(cmdp: Any, known: bool, count: int) -> WORK:
    """Return the work of playing ``count`` further episodes of one run."""
    import psconrl
    from psconrl.simulation.model_run import Simulation

    options: dict[str, Any] = {}
    if known:
        support = cmdp.transition.csr().copy()
        support.data[:] = 1.0
        options["belief"] = psconrl.agents.LearnedMass(support=support)
    agent = psconrl.PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=1, **options)
    run = Simulation(cmdp, agent, seed=2)

    def play(turn: int) -> None:
        done = len(run.log.seconds)
        while len(run.log.seconds) < done + count:
            run.run(run.round + 5)

    return play


def take_turns(case: str, path: str) -> None:
    """Prepare and warm up; then a turn for every line of input, and its seconds of processor time as the answer."""
    work = prepared(case, path)
    work(0)
    for turn, _ in enumerate(sys.stdin, 1):
        began = time.process_time()
        work(turn)
        print(time.process_time() - began, flush=True)


def compared(case: str, old: str, pairs: int) -> str:
    """Return a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("model.umb" if case in GOALS else "model.npz")
        if case not in SAMPLES:
            write(case, path)
        call = [str(Path(__file__).resolve()), "--turns", case, "--path", str(path)]
        sides = [
            subprocess.Popen([python, *call], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for python in (old, sys.executable)
        ]
        seconds: list[list[float]] = [[], []]
        for turn in range(pairs):
            for k in (0, 1) if turn % 2 else (1, 0):
                sides[k].stdin.write("\n")
                sides[k].stdin.flush()
                seconds[k].append(float(sides[k].stdout.readline()))
        for side in sides:
            side.stdin.close()
            side.wait()
    ratio = statistics.median(new / before for before, new in zip(*seconds, strict=True))
    return f"| {case} | {statistics.median(seconds[0]):.3f} | {statistics.median(seconds[1]):.3f} | {ratio:.2f} |"


def main() -> None:
    """Print the table, or act as one of its two processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", nargs="?", default="")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--turns", default="", help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args()
    every = [*LEARNING, *EPISODES, *SAMPLES, *PLANS]
    if not given.turns and not given.old:
        parser.error("the interpreter of the other commit is needed")
    if unknown := [case for case in given.cases if case not in every]:
        parser.error(f"unknown cases {', '.join(unknown)}; there are {', '.join(every)}")
    sys.path[:0] = [str(HERE)]
    if given.turns:
        take_turns(given.turns, given.path)
        return
    print("| | old, s | new, s | new / old |\n|---|---|---|---|")
    for case in given.cases or every:
        print(compared(case, given.old, given.pairs), flush=True)


if __name__ == "__main__":
    main()
