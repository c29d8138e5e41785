"""The planner against HiGHS, as ratios measured in one run: ``python benchmarks/planner.py [--quick]``.

HiGHS gets its best case: the program is built beforehand and not timed, its default tolerances (ours are tighter), one
redundant row left out, and in the learning loop the optimal basis of the sample before.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import multiprocessing
import platform
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import models
import psconrl
from psconrl.planning.linear_programs.highs import new_highs, run, status
from psconrl.planning.linear_programs.lp import occupancy_program
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem

LEARNED = ("marsrover-4x4", "marsrover-8x8", "box")
DEFAULTS = {"primal_feasibility_tolerance": 1e-7, "dual_feasibility_tolerance": 1e-7, "small_matrix_value": 1e-9}
AGREE = 1e-7


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def highs_run(program: Any, basis: Any = None, limit: float = 1e9) -> tuple[float, Any]:
    highs = new_highs(**DEFAULTS, time_limit=limit)
    highs.passModel(program)
    if basis is not None:
        highs.setBasis(basis)
    seconds, _ = timed(highs.run)
    return seconds, highs


def objective(problem: Problem, solution: Any) -> float:
    return float(solution.occupancy.ravel() @ problem.costs[0])


def learning_loop(name: str, samples: int) -> list[str]:
    """Posterior samples while counts grow, each planner in a separate pass, warm-started from the previous sample."""
    problems = list(models.posterior_samples(name, samples, seed=1))
    programs = [occupancy_program(p).columns().highs() for p in problems]
    solve(problems[0])
    cold, warm, highs_cold, highs_warm, gaps, errors, failed = [], [], [], [], [], [], 0
    for p in problems:
        cold.append(timed(lambda p=p: solve(p))[0])
    previous, answers = (), []
    for p in problems:
        seconds, solution = timed(lambda p=p, start=previous: solve(p, start))
        warm.append(seconds)
        previous = solution.policies
        answers.append(solution)
        gaps.append(solution.mixture.gap if solution.feasible else 0.0)
    cmdp = psconrl.load(name)
    sampled = [psconrl.CMDP(p.transition, cmdp.costs, cmdp.thresholds) for p in problems]
    proven = []
    for model in sampled:
        seconds, result = timed(lambda model=model: psconrl.plan(model))
        assert result.certificate.holds
        proven.append(seconds)
    basis = None
    for p, program, solution in zip(problems, programs, answers, strict=True):
        seconds, highs = highs_run(program)
        highs_cold.append(seconds)
        if basis is not None:
            highs_warm.append(highs_run(program, basis)[0])
        basis = highs.getBasis()
        failed += status(highs) not in ("kOptimal", "kInfeasible")
        referee = run(program)  # tight tolerances, not timed
        if status(referee) == "kOptimal" and solution.feasible:
            errors.append(abs(referee.getObjectiveValue() - objective(p, solution)))
        else:
            assert solution.feasible != (status(referee) == "kInfeasible"), (name, status(referee))
    assert max(errors) <= AGREE, (name, max(errors))
    medians = map(statistics.median, (warm, cold, proven, highs_cold, highs_warm))
    ours, ours_cold, ours_proven, theirs, theirs_warm = medians
    return [
        name, micro(ours), micro(ours_cold), micro(ours_proven), micro(theirs), micro(theirs_warm),
        f"{theirs / ours:.0f}x", f"{theirs_warm / ours:.1f}x", f"{theirs / ours_cold:.0f}x",
        f"{theirs / ours_proven:.1f}x",
        f"{max(gaps):.0e}", f"{max(errors):.0e}", str(failed),
    ]  # fmt: skip


def single(name: str, cmdp: psconrl.CMDP, repeats: int, highs_limit: float) -> list[str]:
    """One model from a cold start: ``solve`` alone, the whole ``plan`` with its certificate, and HiGHS."""
    problem = Problem.of(cmdp)
    runs = [timed(lambda: solve(problem)) for _ in range(repeats)]
    ours = statistics.median(seconds for seconds, _ in runs)
    solution = runs[-1][1]
    whole = statistics.median(timed(lambda: psconrl.plan(cmdp))[0] for _ in range(repeats))
    result = psconrl.plan(cmdp)
    assert result.certificate.holds, name
    theirs, highs = highs_run(occupancy_program(problem).columns().highs(), limit=highs_limit)
    finished = status(highs) == "kOptimal"
    error = f"{abs(highs.getObjectiveValue() - objective(problem, solution)):.0e}" if finished else "-"
    prefix = "" if finished else ">"
    return [
        name, f"{ours:.3g}", f"{whole:.3g}", f"{prefix}{theirs:.3g}", f"{prefix}{theirs / ours:.0f}x",
        f"{prefix}{theirs / whole:.0f}x", f"{abs(result.gap):.0e}", error, str(solution.mixture.evaluated),
    ]  # fmt: skip


def memory(build: str, size: int) -> list[str]:
    """Plan a large sparse model in a separate process and report its peak memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, value, gap, peak = pool.apply(_large, (build, size))
    return [f"{build}({size})", f"{seconds:.1f}", f"{value:.6g}", f"{gap:.0e}", f"{peak:.2f}"]


def _large(build: str, size: int) -> tuple[float, float, float, float]:
    cmdp = getattr(models, build)(size)
    seconds, result = timed(lambda: psconrl.plan(cmdp))
    assert result.certificate.holds, result
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return seconds, result.value, abs(result.gap), peak


def micro(seconds: float) -> str:
    return f"{1e6 * seconds:.0f}"


def table(header: list[str], rows: list[list[str]]) -> None:
    print("\n| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models only")
    quick = parser.parse_args().quick
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    table(
        ["posterior samples", "ours warm µs", "ours cold µs", "plan with proof µs", "HiGHS cold µs",
         "HiGHS warm µs", "warm/HiGHS cold", "warm/HiGHS warm", "cold/HiGHS cold", "plan/HiGHS cold",
         "largest gap", "largest difference", "HiGHS failed"],
        [learning_loop(name, 40 if quick else 120) for name in LEARNED],
    )  # fmt: skip
    sizes = (100,) if quick else (100, 200, 400)
    cases = [(f"dense random {S}", models.dense_random(S)) for S in sizes]
    cases += [(f"sparse random {S}", models.sparse_random(S)) for S in ((1000,) if quick else (1000, 5000))]
    cases += [(f"two queues {n * n}", models.two_queues(n)) for n in ((20,) if quick else (20, 50, 100))]
    cases += [(f"dense random 100, m = {m}", models.dense_random(100, m=m)) for m in (3, 5)]
    header = ["model", "solve s", "plan s", "HiGHS s", "HiGHS/solve", "HiGHS/plan", "gap", "difference", "policies"]
    table(header, [single(name, cmdp, 3, highs_limit=120.0) for name, cmdp in cases])
    if not quick:
        rows = [memory("sparse_random", 100_000), memory("two_queues", 316)]
        table(["large model", "plan s", "value", "gap", "peak GB"], rows)


if __name__ == "__main__":
    main()
