"""Slow chains with loose and tight limits: ``python benchmarks/slow_chains.py [--most STATES] [--storm PYTHON]``.

Seconds are those of the processor. HiGHS solves the occupancy program at its default tolerances: all models of up to
1,000 states, and every fourth of the larger ones up to 10,001 states, each for at most 20 s of the clock.
``refuted``: the policy that follows from its frequencies misses a limit or its own value by more than 1e-6 of it.

With ``--storm``, the Python of an environment that has stormpy, Storm checks every fourth model, for at most 60 s of
the clock. A group is left out if Storm finished no model of the next smaller size.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import psconrl
import slow_models as models
from large import answer
from psconrl.kernels.chains.occupancy import policy_from_occupancy
from psconrl.planning.linear_programs.highs import new_highs, status
from psconrl.planning.linear_programs.lp import occupancy_program
from psconrl.planning.problem import Problem

HIGHS_ALL, HIGHS_STATES, HIGHS_SECONDS = 1000, 10_001, 20.0
STORM_SECONDS = 60.0
EVERY = 4  # the slower planners are given one of four larger models
DEFAULTS = {"primal_feasibility_tolerance": 1e-7, "dual_feasibility_tolerance": 1e-7, "small_matrix_value": 1e-9}
GATED = (0.8, 1.0, 1.25)
PROVEN = ("optimal", "infeasible")


@dataclass
class Group:
    """Models of one kind and size: seconds of each planner, and what became of its answer."""

    ours: list[tuple[float, str]] = field(default_factory=list)
    highs: list[tuple[float, str]] = field(default_factory=list)
    storm: list[tuple[float, str]] = field(default_factory=list)

    def finished_by_storm(self) -> bool:
        return any(np.isfinite(seconds) for seconds, _ in self.storm)

    def row(self) -> str:
        """Return the cells of the table."""
        ours = [seconds for seconds, _ in self.ours]
        proven = sum(outcome in PROVEN for _, outcome in self.ours)
        cells = [f"{proven} of {len(ours)}", f"{np.median(ours):.2g}", f"{max(ours):.2g}", "-", "-", "-"]
        if self.highs:
            refuted = sum(fate not in ("", "kInfeasible") for _, fate in self.highs)
            cells[3:5] = f"{np.median([seconds for seconds, _ in self.highs]):.2g}", f"{refuted} of {len(self.highs)}"
        if self.storm:
            cells[5] = "; ".join(fate if np.isinf(s) else f"{s:.2g} s, {fate}" for s, fate in self.storm)
        return " | ".join(cells)


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
    solver.passModel(occupancy_program(problem).columns().highs())
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


def storm(python: str, cmdp: psconrl.CMDP, value: float) -> tuple[float, str]:
    """Seconds of Storm, and the relative error of its value or why there is none."""
    first, *others = cmdp.cost_names
    limits = [f'R{{"{name}"}}<={limit!r} [LRA]' for name, limit in zip(others, cmdp.thresholds.tolist(), strict=True)]
    formula = f'multi(R{{"{first}"}}min=? [LRA], {", ".join(limits)})'
    with tempfile.TemporaryDirectory() as folder:
        model, small = Path(folder) / "model.umb", Path(folder) / "small.umb"
        psconrl.save(cmdp, model)
        tiny = models.one_queue(4, 0.8, 2.0) if len(others) == 1 else models.two_queues(2, 0.8, (1.0, 1.0))
        psconrl.save(tiny, small)
        peer = str(Path(__file__).parent / "storm_peer.py")
        found = answer([python, peer, str(model), str(small), formula], STORM_SECONDS)
    if "trouble" in found:
        return float("inf"), found["trouble"]
    if found["value"] is None or np.isnan(value):
        return found["seconds"], "infeasible" if found["value"] is None and np.isnan(value) else "another verdict"
    return found["seconds"], f"off by {abs(found['value'] - value) / abs(value):.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, help="largest number of states")
    parser.add_argument("--verbose", action="store_true", help="print every model")
    parser.add_argument("--storm", help="Python of an environment with stormpy")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    groups: dict[str, dict[int, Group]] = {}
    for name, size, build in family():
        if size > options.most + 1:
            continue
        sizes = groups.setdefault(name, {})
        group = sizes.setdefault(size, Group())
        smaller = [other for other in sizes.values() if other is not group][-1:]
        cmdp = build()
        start = time.process_time()
        plan = psconrl.plan(cmdp)
        group.ours.append((time.process_time() - start, plan.status.value))
        value = float("nan") if plan.status is psconrl.Status.INFEASIBLE else plan.value
        sampled = len(group.ours) % EVERY == 2
        if size <= HIGHS_ALL or (sampled and size <= HIGHS_STATES):
            group.highs.append(highs(cmdp))
        if options.storm and sampled and all(other.finished_by_storm() for other in smaller):
            group.storm.append(storm(options.storm, cmdp, value))
        if options.verbose or group.ours[-1][1] not in PROVEN:
            print(name, size, group.ours[-1], f"gap {plan.gap:.1e}", group.highs[-1:], group.storm[-1:], flush=True)
    columns = "median CPU s | slowest CPU s | HiGHS median CPU s | HiGHS failed or refuted | Storm"
    print(f"| model | states | proven | {columns} |")
    print("|---|---|---|---|---|---|---|---|")
    for name, sizes in sorted(groups.items()):
        for size, group in sizes.items():
            print(f"| {name} | {size:,} | {group.row()} |")


if __name__ == "__main__":
    main()
