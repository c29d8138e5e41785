"""Seconds and regret of PSConRL at the paper's horizons: ``python benchmarks/learning.py [--quick]``.

The run is split into sampling, planning and playing, and compared, in one process, with the same agent whose planner is
the occupancy LP on HiGHS, warm-started from the basis before. Playing is also measured alone, with a fixed policy.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import psconrl
from psconrl.agents import FixedPolicy
from psconrl.learning.episode_planner import Choice, EpisodePlanner
from psconrl.learning.registry import make_agent
from psconrl.planning.linear_programs.highs import new_highs, status
from psconrl.planning.linear_programs.lp import occupancy_program

# Environment, horizon, runs of the paper's figures, and the authors' code as measured on a similar machine.
PAPER = [
    ("marsrover-4x4", 11_000, 50, "39 ± 21 / 36 ± 40"),
    ("marsrover-8x8", 20_000, 50, "576 ± 55 / -287 ± 129"),
    ("box", 500_000, 30, "7346 / 88 (1 run)"),
]
AGENTS = ("psconrl", "psconrl-plain", "psconrl-paper", "psconrl-published")


class HighsPlanner(EpisodePlanner):
    """The occupancy LP in place of oracle and master; everything else the same."""

    basis: Any = None

    def optimal(self, P: Any, costs: Any, thresholds: Any, state: int) -> Choice | None:
        problem = self._scaled(P, costs, thresholds)
        highs = new_highs(primal_feasibility_tolerance=1e-7, dual_feasibility_tolerance=1e-7, small_matrix_value=1e-9)
        highs.passModel(occupancy_program(problem).columns().highs())
        if self.basis is not None:
            highs.setBasis(self.basis)
        highs.run()
        if status(highs) != "kOptimal":
            return None
        self.basis = highs.getBasis()
        mu = np.maximum(np.array(highs.getSolution().col_value), 0.0).reshape(problem.available.shape)
        mass = mu.sum(axis=1, keepdims=True)
        uniform = np.full_like(mu, 1.0 / mu.shape[1])
        return Choice(np.where(mass > 1e-9, mu / np.maximum(mass, 1e-300), uniform), 0.0)


class Stopwatch:
    """Sum the seconds spent in a method."""

    def __init__(self, owner: Any, method: str) -> None:
        self.seconds = 0.0
        self._inner = getattr(owner, method)
        setattr(owner, method, self._timed)

    def _timed(self, *args: Any) -> Any:
        start = time.perf_counter()
        try:
            return self._inner(*args)
        finally:
            self.seconds += time.perf_counter() - start


def timed_run(
    cmdp: psconrl.CMDP, name: str, horizon: int, seed: int, with_highs: bool
) -> tuple[float, float, float, int]:
    agent = make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed)
    if with_highs:
        agent.planner = HighsPlanner(cmdp.n_states, cmdp.n_actions)
    sampling, planning = Stopwatch(agent.belief, "sample"), Stopwatch(agent.planner, "optimal")
    start = time.perf_counter()
    trace = psconrl.simulate(cmdp, agent, horizon, seed=seed)
    return time.perf_counter() - start, sampling.seconds, planning.seconds, len(trace.episodes)


def timing(quick: bool) -> None:
    print("\n| one run of psconrl-paper | rounds | episodes | seconds | sampling | planning | playing and the rest | "
          "with HiGHS | planning ratio, per plan |\n|" + "---|" * 9)  # fmt: skip
    for (name, horizon, _, _), repeats in zip(PAPER, (31, 5, 3), strict=True):
        cmdp = psconrl.load(name)
        rounds = min(horizon, 11_000) if quick else horizon
        lp_rounds = min(rounds, 20_000)
        timed_run(cmdp, "psconrl-paper", 500, 0, with_highs=False)
        seeds = range(1 if quick else repeats)
        runs = [timed_run(cmdp, "psconrl-paper", rounds, seed, with_highs=False) for seed in seeds]
        total, sampling, planning, episodes = sorted(runs)[len(runs) // 2]
        slow = timed_run(cmdp, "psconrl-paper", lp_rounds, 0, with_highs=True)
        ratio = (slow[2] / slow[3]) / (planning / episodes)
        cells = [
            name, f"{rounds:,}", f"{episodes:,}", f"{total:.3g}", f"{sampling:.3g}", f"{planning:.3g}",
            f"{total - sampling - planning:.3g}", f"{slow[0]:.3g} ({lp_rounds:,} rounds)", f"{ratio:.0f}x",
        ]  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


def playing() -> None:
    print("\n| playing alone | million rounds a second |\n|---|---|")
    for name in ("marsrover-4x4", "marsrover-8x8", "box", "queue", "garnet"):
        cmdp = psconrl.load(name)
        best = psconrl.plan(cmdp)
        agent = FixedPolicy(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, policy=best.policy, seed=0)
        psconrl.simulate(cmdp, agent, 10_000, seed=0)
        rounds = 5_000_000
        start = time.perf_counter()
        psconrl.simulate(cmdp, agent, rounds, seed=0)
        print(f"| {name} | {rounds / (time.perf_counter() - start) / 1e6:.1f} |", flush=True)


def one(job: tuple[str, str, int, int]) -> tuple[float, float, float, int]:
    name, agent_name, horizon, seed = job
    cmdp = psconrl.load(name)
    agent = make_agent(agent_name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, (2024, seed))
    start = time.perf_counter()
    trace = psconrl.simulate(cmdp, agent, horizon, seed=(2025, seed))
    seconds = time.perf_counter() - start
    lost, over = psconrl.regret(trace, psconrl.plan(cmdp)).final
    return lost, float(over[0]), seconds, trace.count("explore")


def interval(x: np.ndarray) -> str:
    half = 1.96 * x.std(ddof=1) / np.sqrt(x.size)
    return f"{x.mean():.0f} ± {half:.0f}"


def regrets(quick: bool) -> None:
    print(
        "\n| regret, violation (mean ± 95%), positive violation, s/run | " + " | ".join(AGENTS) + " | authors' code |"
    )
    print("|" + "---|" * (len(AGENTS) + 2))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, horizon, runs, authors in PAPER:
            n = 4 if quick else runs
            rounds = min(horizon, 20_000) if quick else horizon
            cells = []
            for agent in AGENTS:
                jobs = [(name, agent, rounds, seed) for seed in range(n)]
                lost, over, seconds, _ = np.array(list(pool.map(one, jobs))).T
                positive = np.maximum(over, 0.0).mean()
                cells.append(f"{interval(lost)}, {interval(over)}, {positive:.0f}, {seconds.mean():.2g}")
            print(f"| {name}, {rounds:,} rounds, {n} runs | " + " | ".join(cells) + f" | {authors} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short horizons, few runs")
    quick = parser.parse_args().quick
    timing(quick)
    playing()
    regrets(quick)


if __name__ == "__main__":
    main()
