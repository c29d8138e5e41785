"""All agents on the paper's environments, and optimistic planners against their LPs: ``python benchmarks/rivals.py``.

``--plans`` times one plan of UCRL-CMDP and of FHA (H = 50) against the linear programs on HiGHS, in one run.
``--table RUNS`` prints regret and violation of every agent at the paper's horizons.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import highspy
import numpy as np
from scipy.sparse import block_diag, csr_array, eye_array, kron, vstack

import psconrl
from psconrl.learning.parts.radii import Box, Scaled
from psconrl.learning.registry import make_agent
from psconrl.planning.linear_programs.highs import new_highs
from psconrl.planning.optimism.average import solve_optimistic
from psconrl.planning.optimism.horizon import solve_horizon

PAPER = {"marsrover-4x4": 11_000, "marsrover-8x8": 20_000, "box": 500_000, "counterexample": 1_500}
C_UCRL = {"marsrover-4x4": (50, 0.1), "marsrover-8x8": (120, 0.1), "box": (1000, 0.5), "counterexample": (10, 0.1)}
AGENTS = (
    "psconrl", "psconrl-plain", "psconrl-paper", "psconrl-published", "cmdp-psrl", "c-ucrl", "ucrl-cmdp", "fha",
    "lagrangian", "uniform",
)  # fmt: skip
# Rows without their own recipe. The published rule learns its costs, while all others know them.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "psconrl-published, known costs": ("psconrl-plain", {
        "prior": 0.05, "belief": "floored", "schedule": "published", "fallback": "uniform",
    }),
    "lagrangian, rate 0.1": ("lagrangian", {"rate": 0.1}),
    "lagrangian, rate 1": ("lagrangian", {"rate": 1.0}),
    "lagrangian, rate 3": ("lagrangian", {"rate": 3.0}),
}  # fmt: skip


def options(agent: str, env: str, cmdp: psconrl.CMDP) -> dict[str, Any]:
    h, coef = C_UCRL[env]
    if agent == "c-ucrl":
        return {"h": h, "coef": coef}
    if agent == "ucrl-cmdp":
        return {"coef": coef}
    if agent == "fha":  # it needs the span: here the true one
        best = psconrl.plan(cmdp)
        span = np.ptp(psconrl.evaluate(cmdp, best.policy).biases[1:], axis=1)
        return {"coef": coef, "H": 50, "span": span}
    return {}


def one(job: tuple[str, str, int]) -> tuple[float, float, float]:
    row, env, seed = job
    agent_name, own = OTHERS.get(row, (row, {}))
    cmdp = psconrl.load(env)
    horizon = PAPER[env]
    agent = make_agent(
        agent_name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, (7, seed), horizon,
        **(options(agent_name, env, cmdp) | own),
    )  # fmt: skip
    start = time.perf_counter()
    trace = psconrl.simulate(cmdp, agent, horizon, seed=(8, seed))
    seconds = time.perf_counter() - start
    lost, over = psconrl.regret(trace, psconrl.plan(cmdp)).final
    return lost, float(over[0]), seconds


def interval(x: np.ndarray) -> str:
    return f"{x.mean():.0f} ± {1.96 * x.std(ddof=1) / np.sqrt(x.size):.0f}"


def table(runs: int, agents: Sequence[str], envs: Sequence[str]) -> None:
    print(
        f"\n| regret; violation; s/run ({runs} runs, mean ± 95%) | "
        + " | ".join(envs)
        + " |\n|"
        + "---|" * (len(envs) + 1)
    )
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for agent in agents:
            cells = []
            for env in envs:
                lost, over, seconds = np.array(list(pool.map(one, [(agent, env, seed) for seed in range(runs)]))).T
                cells.append(f"{interval(lost)}; {interval(over)}; {seconds.mean():.2g}")
            print(f"| {agent} | " + " | ".join(cells) + " |", flush=True)


def box_rows(box: Box) -> csr_array:
    """``lo Q <= q <= hi Q`` for the variables q(s,a,s'), Q their sum over s'."""
    n, S = box.low.shape
    total = np.ones((1, S))
    below = block_diag([box.low[pair][:, None] @ total - np.eye(S) for pair in range(n)])
    above = block_diag([np.eye(S) - box.high[pair][:, None] @ total for pair in range(n)])
    return csr_array(vstack([below, above]))


def highs_seconds(matrix: Any, cost: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    lp = highspy.HighsLp()
    columns = csr_array(matrix).tocsc()
    lp.num_row_, lp.num_col_ = columns.shape
    lp.col_cost_, lp.row_lower_, lp.row_upper_ = cost, lower, upper
    lp.col_lower_, lp.col_upper_ = np.zeros(cost.size), np.full(cost.size, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.indptr, columns.indices, columns.data
    highs = new_highs(primal_feasibility_tolerance=1e-7, dual_feasibility_tolerance=1e-7, time_limit=600.0)
    highs.passModel(lp)
    start = time.perf_counter()
    highs.run()
    return time.perf_counter() - start, highs.getObjectiveValue()


def extended_program(box: Box, costs: np.ndarray, tau: np.ndarray) -> tuple[float, float]:
    n, S = box.low.shape
    A = n // S
    leave = kron(eye_array(S), np.ones((1, A * S)))
    enter = kron(np.ones((1, n)), eye_array(S))
    inside = box_rows(box)
    matrix = vstack([csr_array(np.repeat(costs[1:], S, axis=1)), inside, leave - enter, np.ones((1, n * S))])
    m, free = len(tau), np.inf
    lower = np.concatenate([np.full(m + inside.shape[0], -free), np.zeros(S), [1.0]])
    upper = np.concatenate([tau, np.zeros(inside.shape[0]), np.zeros(S), [1.0]])
    return highs_seconds(matrix, np.repeat(costs[0], S), lower, upper)


def horizon_program(box: Box, costs: np.ndarray, tau: np.ndarray, H: int, start: int) -> tuple[float, float]:
    n, S = box.low.shape
    A = n // S
    leave = kron(eye_array(S), np.ones((1, A * S)))
    enter = kron(np.ones((1, n)), eye_array(S))
    flow = kron(eye_array(H), leave) - kron(eye_array(H, k=-1), enter)
    inside = kron(eye_array(H), box_rows(box))
    limits = csr_array(np.tile(np.repeat(costs[1:], S, axis=1), H) / H)
    first = np.zeros(H * S)
    first[start] = 1.0
    lower = np.concatenate([np.full(len(tau) + inside.shape[0], -np.inf), first])
    upper = np.concatenate([tau, np.zeros(inside.shape[0]), first])
    return highs_seconds(vstack([limits, inside, flow]), np.tile(np.repeat(costs[0], S), H) / H, lower, upper)


def plans() -> None:
    print("\n| one plan | ours ms | HiGHS s | ratio | difference |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for env in ("marsrover-4x4", "marsrover-8x8", "box"):
        cmdp = psconrl.load(env)
        visits, P = rng.integers(1, 300, size=cmdp.n_states * cmdp.n_actions), cmdp.transition.toarray()
        box = Box.around(P, Scaled(C_UCRL[env][1])(visits, P, math.log))
        costs, start = cmdp.costs.reshape(2, -1), int(cmdp.initial.argmax())
        tau = cmdp.thresholds
        cases = [
            ("UCRL-CMDP", partial(solve_optimistic, box.low, box.high, costs, tau),
             partial(extended_program, box, costs, tau)),
            ("FHA, H = 50", lambda a=(box.low, box.high, costs, tau, 50, start): solve_horizon(*a)[0],
             partial(horizon_program, box, costs, tau, 50, start)),
        ]  # fmt: skip
        for name, ours, theirs in cases:
            mixture = ours()
            times = []
            for _ in range(5):
                began = time.perf_counter()
                ours()
                times.append(time.perf_counter() - began)
            seconds = statistics.median(times)
            value = float(mixture.shares @ [column.costs[0] for column in mixture.answers])
            if env != "marsrover-4x4" and name != "UCRL-CMDP":
                print(f"| {name} on {env} | {1e3 * seconds:.2f} | - | - | gap {mixture.gap:.0e} |", flush=True)
                continue
            lp_seconds, lp_value = theirs()
            print(f"| {name} on {env} | {1e3 * seconds:.2f} | {lp_seconds:.2f} | {lp_seconds / seconds:.0f}x | "
                  f"{abs(value - lp_value):.0e} |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--table", type=int, metavar="RUNS")
    parser.add_argument("--agents", nargs="+", choices=[*AGENTS, *OTHERS], default=AGENTS)
    parser.add_argument("--envs", nargs="+", choices=list(PAPER), default=list(PAPER))
    arguments = parser.parse_args()
    if arguments.plans or not arguments.table:
        plans()
    if arguments.table:
        table(arguments.table, arguments.agents, arguments.envs)


if __name__ == "__main__":
    main()
