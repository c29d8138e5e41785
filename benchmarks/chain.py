"""Figure 1 of Yu, Bae and Lee (2026) with every agent: ``python benchmarks/chain.py [--runs 10] [--jobs 1]``.

Their chain for 32,000 rounds, known costs, the same random numbers for all. Agents get what they must know: SA-CVI-UCB
the Slater gap and the spans of the optimal policy, FHA the span (a second row: none, as the paper does not state it).
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, ClassVar

import numpy as np

import psconrl
from psconrl.agents import Radius
from psconrl.base.arrays import Floats, Ints

T = 32_000
SLATER = {
    "gap": 0.1378948896,
    "span_objective": 1.0,
    "span_limited": 0.84708,
}  # see tests/envs/test_environment_models.py


class Plain(Radius):
    r""":math:`\sqrt{\bar p / N} + 1 / N`, as in that paper's runs of FHA."""

    name: ClassVar[str] = "plain"
    each_transition: ClassVar[bool] = True

    def __call__(self, visits: Ints, p_bar: Floats, log_term: Any) -> Floats:
        n = np.maximum(visits, 1)[:, None]
        return np.where(visits[:, None] > 0, np.minimum(1.0, np.sqrt(p_bar / n) + 1.0 / n), 1.0)


ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "sa-cvi-ucb": ("sa-cvi-ucb", SLATER),
    "sa-cvi-ucb, constants of the theory": ("sa-cvi-ucb", {**SLATER, "constants": "theory"}),
    "sa-cvi-ucb, defaults (gap 0.1, spans 1)": ("sa-cvi-ucb", {}),
    "fha, H = 7, span 0.847": ("fha", {"H": 7, "span": 0.84708, "radius": Plain()}),
    "fha, H = 7, no slack": ("fha", {"H": 7, "span": 0.0, "radius": Plain()}),
    "psconrl": ("psconrl", {}),
    "psconrl-paper": ("psconrl-paper", {}),
    "cmdp-psrl": ("cmdp-psrl", {}),
    "c-ucrl": ("c-ucrl", {}),
    "ucrl-cmdp": ("ucrl-cmdp", {}),
    "lagrangian": ("lagrangian", {}),
    "ps-curl": ("ps-curl", {}),
    "uc-curl": ("uc-curl", {}),
    "triple-qa": ("triple-qa", {}),
    "triple-qa, kappa 0.1, hats each": ("triple-qa", {"kappa": 0.1, "together": False}),
    "safe, from the safest policy": ("safe", {}),
    "uniform": ("uniform", {}),
}


def run(row: str, seed: int) -> tuple[float, float, float, float]:
    """Regret, violation, the largest violation so far at 400 checkpoints, seconds."""
    cmdp = psconrl.load("chain")
    name, options = ROWS[row]
    given = psconrl.agents.known_baseline(cmdp) if name == "safe" else {}
    agent = psconrl.agents.make(name, 8, 2, cmdp.thresholds, cmdp.costs, seed, T, **given, **options)
    begin = time.perf_counter()
    trace = psconrl.simulate(cmdp, agent, T, seed=seed, checkpoints=400)
    seconds = time.perf_counter() - begin
    excess = trace.cumulative - np.outer(trace.rounds, [psconrl.plan(cmdp).costs[0], cmdp.thresholds[0]])
    return excess[-1, 0], excess[-1, 1], excess[:, 1].max(), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    price = float(psconrl.plan(psconrl.load("chain")).multipliers[0])
    print(f"| agent | regret | violation | largest violation | regret at the shadow price {price:.3f} | s a run |")
    print("|---|---|---|---|---|---|")
    with ProcessPoolExecutor(given.jobs) as pool:
        for row in ROWS:
            found = np.array(list(pool.map(partial(run, row), range(given.runs))))
            priced = found[:, 0] + price * found[:, 1]
            cells = [f"{x.mean():,.0f} ± {x.std(ddof=1):,.0f}" for x in (*found[:, :3].T, priced)]
            print(f"| {row} | {' | '.join(cells)} | {np.median(found[:, 3]):.1f} |", flush=True)


if __name__ == "__main__":
    main()
