"""The time to plan an episode with known structure: ``python benchmarks/safe_speed.py [--rounds 3000]``.

``SafeStart.of(system)``, given the safest policy with its span by state, against the default ``PSConRL.of(system)``, in
processor time of ``begin``: mean and median over the episodes of one run each, and the whole runs.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from ledgers import line
from psconrl.agents import SafeStart, known_baseline
from psconrl.systems import System
from structure import BUILT_IN, systems
from trades import TRADES
from trades.simulator import truth

NO_BASELINE = ("dairy",)  # no policy keeps its limits under every action that the model offers
NAMES = ("queue", "inventory", "small ward", "line", *(name for name in TRADES if name not in NO_BASELINE))


def described(name: str) -> tuple[System, System]:
    """Return a system as its owner knows it, and as it is."""
    if name in BUILT_IN:
        return systems(name)
    if name == "line":
        system, known = line()
        return system, system.with_noise(**known)
    trade = TRADES[name]
    system, numbers = psconrl.linear(trade.describe()), truth(trade, np.random.default_rng([0, 1]))
    return system, system.with_noise(**{noise: numbers[noise] for noise in trade.priors})


def played(agent: psconrl.learning.agent.Agent, model: psconrl.CMDP, rounds: int) -> tuple[np.ndarray, float]:
    """Return the processor seconds of every plan, and of the run."""
    plan, seconds = agent.begin, []

    def timed(state: int) -> psconrl.learning.runtime.contract.Episode:
        begun = time.process_time()
        episode = plan(state)
        seconds.append(time.process_time() - begun)
        return episode

    agent.begin = timed
    begun = time.process_time()
    psconrl.simulate(model, agent, rounds, seed=0)
    return np.array(seconds), time.process_time() - begun


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default=",".join(NAMES))
    parser.add_argument("--rounds", type=int, default=3_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # what must be reported besides the state, which simulations report
    print("| system | states | default, ms | safe, ms | mean | median | run |\n|---|---|---|---|---|---|---|")
    for name in options.systems.split(","):
        system, true = described(name)
        model = true.model_for_learning()
        given = known_baseline(model, by_state=True)
        del given["ranges"]
        plain, whole = played(psconrl.PSConRL.of(system, seed=0), model, options.rounds)
        safe, its = played(SafeStart.of(system, seed=0, **given), model, options.rounds)
        print(
            f"| {name} | {model.n_states} | {1e3 * plain.mean():.1f} | {1e3 * safe.mean():.1f} | "
            f"{safe.mean() / plain.mean():.1f} | {np.median(safe) / np.median(plain):.1f} | {its / whole:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
