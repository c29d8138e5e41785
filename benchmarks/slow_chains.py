"""Slow chains with loose and tight limits, beside HiGHS: ``python benchmarks/slow_chains.py [--most STATES]``.

Seconds are those of the processor. HiGHS solves the occupancy program at its default tolerances, for models of up to
1,000 states and at most 20 s of the clock.
``refuted``: the policy that follows from its frequencies misses a limit or its own value by more than 1e-6 of it.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import platform
import time
from collections.abc import Callable, Iterator

import numpy as np

import psconrl
import slow_models as models
from psconrl.kernels.occupancy import policy_from_occupancy
from psconrl.planning.highs import new_highs, status
from psconrl.planning.lp import occupancy_program
from psconrl.planning.problem import Problem

HIGHS_STATES, HIGHS_SECONDS = 1000, 20.0
DEFAULTS = {"primal_feasibility_tolerance": 1e-7, "dual_feasibility_tolerance": 1e-7, "small_matrix_value": 1e-9}
GATED = (0.8, 1.0, 1.25)


def family() -> Iterator[tuple[str, int, Callable[[], psconrl.CMDP]]]:
    """Groups of models, each with its number of states."""
    for places in (100, 500, 2000, 10_000, 100_000):
        for load in (0.8, 0.95, 1.02, 1.1):
            for share in (0.02, 0.45, 0.9):  # tight, loose, hardly binding
                K, at = places, share * places
                yield "one queue", K, lambda K=K, load=load, at=at: models.one_queue(K, load, at)
                yield (
                    "one queue, admission",
                    K,
                    lambda K=K, load=load, at=at: models.one_queue(K, load, at, GATED, admission=True),
                )
    for side in (10, 30, 100, 316):
        for load in (0.8, 0.95, 1.05):
            for limits in ((0.1, 0.4), (0.2, 0.5)):
                at = (limits[0] * side, limits[1] * side)
                for tandem in (False, True):
                    name = "tandem" if tandem else "two queues"
                    yield (
                        name,
                        side * side,
                        lambda side=side, load=load, at=at, tandem=tandem: models.two_queues(side, load, at, tandem),
                    )
    for size in (100, 2000, 10_000, 100_000):
        for share in (0.1, 0.45, 0.8):
            yield "machine repair", size + 1, lambda size=size, share=share: models.machine_repair(size, share * size)
            yield (
                "walk with reset",
                size,
                lambda size=size, share=share: models.walk_with_reset(size, 0.02, share * size),
            )


def highs(cmdp: psconrl.CMDP) -> tuple[float, str]:
    """Seconds of HiGHS, and what became of its policy."""
    problem = Problem.of(cmdp)
    solver = new_highs(**DEFAULTS, time_limit=HIGHS_SECONDS)
    solver.passModel(occupancy_program(problem).highs())
    start = time.process_time()
    solver.run()
    seconds = time.process_time() - start
    if status(solver) != "kOptimal":
        return seconds, status(solver)
    S, A = problem.available.shape
    found = np.maximum(np.array(solver.getSolution().col_value)[: S * A].reshape(S, A), 0.0)
    policy = policy_from_occupancy(found, np.full((S, A), 1.0 / A), 1e-10)
    costs, exact = problem.scaling.invert(problem.costs @ found.ravel()), psconrl.evaluate(cmdp, policy).costs
    within = (exact[1:] <= cmdp.thresholds * (1 + 1e-6)).all() and abs(exact[0] - costs[0]) <= 1e-6 * abs(costs[0])
    return seconds, "" if within else "refuted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, help="largest number of states")
    parser.add_argument("--verbose", action="store_true", help="print every model")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    groups: dict[tuple[str, int], list[tuple[float, str, float, str]]] = {}
    for name, size, build in family():
        if size > options.most + 1:
            continue
        cmdp = build()
        start = time.process_time()
        plan = psconrl.plan(cmdp)
        seconds = time.process_time() - start
        theirs, fate = highs(cmdp) if size <= HIGHS_STATES else (float("nan"), "")
        outcome = plan.status.value
        groups.setdefault((name, size), []).append((seconds, outcome, theirs, fate))
        if options.verbose or outcome not in ("optimal", "infeasible"):
            print(name, size, outcome, f"{plan.gap:.1e} {seconds:.2f} s; HiGHS {theirs:.2f} s {fate}", flush=True)
    print("| model | states | proven | median CPU s | slowest CPU s | HiGHS median CPU s | HiGHS failed or refuted |")
    print("|---|---|---|---|---|---|---|")
    for (name, size), rows in sorted(groups.items()):
        ours, outcomes, theirs, fates = zip(*rows, strict=True)
        proven = sum(outcome in ("optimal", "infeasible") for outcome in outcomes)
        refuted = sum(fate not in ("", "kInfeasible") for fate in fates)
        beside = f"{np.median(theirs):.2g} | {refuted}" if size <= HIGHS_STATES else "- | -"
        print(f"| {name} | {size:,} | {proven} of {len(rows)} | {np.median(ours):.2g} | {max(ours):.2g} | {beside} |")


if __name__ == "__main__":
    main()
