"""Overhead of evaluating every played policy: ``python benchmarks/evaluation.py [--repeats 5]``.

The same runs with and without ``evaluate_policies``, in turns; CPU seconds, medians.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
from typing import Any

import numpy as np

import psconrl
from psconrl.errors import AgentError
from psconrl.learning.registry import make_agent
from psconrl.simulation.model_run import Simulation

AGENTS = ("psconrl", "cmdp-psrl", "fha", "c-ucrl", "sa-cvi-ucb", "triple-qa")
# Environment, its options, rounds, agents.
ENVIRONMENTS: tuple[tuple[str, dict[str, Any], int, tuple[str, ...]], ...] = (
    ("marsrover-4x4", {}, 20_000, AGENTS),
    ("marsrover-8x8", {}, 20_000, AGENTS),
    ("box", {}, 20_000, AGENTS),
    ("queue", {}, 10_000, AGENTS),
    ("inventory", {}, 10_000, AGENTS),
    ("garnet", {}, 10_000, AGENTS),
    ("ward", {"beds": 16}, 1_000, ("psconrl", "cmdp-psrl", "c-ucrl", "triple-qa")),
    ("network", {"side": 70}, 300, ("psconrl", "cmdp-psrl", "triple-qa")),
)


def run(cmdp: psconrl.CMDP, name: str, rounds: int, evaluate: bool) -> tuple[float, int]:
    """Return the CPU seconds and the number of policies."""
    agent = make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, 1, rounds)
    begin = time.process_time()
    trace = Simulation(cmdp, agent, 1, evaluate_policies=evaluate).run(rounds)
    return time.process_time() - begin, len(trace.policies)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--environments", nargs="*", help="only these")
    given = parser.parse_args()
    print("| environment | S | agent | rounds | policies | s without | s with | more | us a policy |\n|" + "---|" * 9)
    for environment, options, rounds, agents in ENVIRONMENTS:
        if given.environments and environment not in given.environments:
            continue
        cmdp = psconrl.load(environment, **options)
        repeats = given.repeats if cmdp.n_states <= 100 else 2
        for name in agents:
            try:
                run(cmdp, name, min(rounds, 200), True)
            except AgentError:
                continue  # more constraints than it supports
            pairs = [[run(cmdp, name, rounds, on) for on in (False, True)] for _ in range(repeats)]
            without, with_ = (float(np.median([pair[k][0] for pair in pairs])) for k in (0, 1))
            policies = pairs[0][1][1]
            cells = [
                environment, f"{cmdp.n_states:,}", name, f"{rounds:,}", f"{policies:,}",
                f"{without:.3g}", f"{with_:.3g}",
                f"{100 * (with_ / without - 1):.0f}%", f"{1e6 * (with_ - without) / policies:.0f}",
            ]  # fmt: skip
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
