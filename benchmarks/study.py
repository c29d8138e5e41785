"""Which belief, schedule and ledger should be the default? ``python benchmarks/study.py development|held-out [RUNS]``.

Variants are compared on the development worlds; the held-out ones are played once the choice is made. Seeds are paired:
every variant meets the same luck. Regret at shadow prices adds to the regret what the violations were worth. Every run
is a line of a CSV file; the same command continues it, and shows tables.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import csv
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

import psconrl
from held_out import HELD_OUT
from psconrl.agents import Balance, Dirichlet, Doubling, LearnedMass, PSConRL, Repay, Steady

DEVELOPMENT: dict[str, tuple[str, dict[str, Any], int]] = {
    "4x4": ("marsrover-4x4", {}, 11_000),
    "4x4 slip .1": ("marsrover-4x4", {"slip": 0.1}, 11_000),
    "8x8": ("marsrover-8x8", {}, 20_000),
    "8x8 slip .1": ("marsrover-8x8", {"slip": 0.1}, 20_000),
    "box": ("box", {}, 50_000),
    "box slip .1": ("box", {"slip": 0.1}, 50_000),
    "queue": ("queue", {}, 10_000),
    "inventory": ("inventory", {}, 10_000),
    "garnet": ("garnet", {"seed": None}, 10_000),
    "dirichlet": ("dirichlet", {"seed": None}, 10_000),
    "riverswim": ("riverswim", {}, 20_000),
    "counterexample": ("counterexample", {}, 1_500),
}
HORIZON = 20_000  # of the held-out worlds

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "repay": {"ledger": Repay(0.1)},
    "balance": {"ledger": Balance(0.1)},
    "1/S steady balance": {"schedule": Steady(), "ledger": Balance(0.1)},
    ".3/S doubling repay": {"belief": 0.3, "schedule": Doubling(), "ledger": Repay(0.1)},
    "gibbs steady": {"belief": LearnedMass(), "schedule": Steady()},
    "gibbs steady repay": {"belief": LearnedMass(), "schedule": Steady(), "ledger": Repay(0.1)},
    "gibbs steady balance": {"belief": LearnedMass(), "schedule": Steady(), "ledger": Balance(0.1)},
    "gibbs steady balance .3": {"belief": LearnedMass(), "schedule": Steady(), "ledger": Balance(0.3)},
    "gibbs doubling balance": {"belief": LearnedMass(), "schedule": Doubling(), "ledger": Balance(0.1)},
    "exact steady": {"belief": LearnedMass(exact=True), "schedule": Steady()},
    "exact steady balance": {"belief": LearnedMass(exact=True), "schedule": Steady(), "ledger": Balance(0.1)},
    "exact steady repay": {"belief": LearnedMass(exact=True), "schedule": Steady(), "ledger": Repay(0.1)},
    "world steady balance": {"belief": LearnedMass(pool="world"), "schedule": Steady(), "ledger": Balance(0.1)},
}
COLUMNS = ("world", "variant", "seed", "regret", "violation", "priced", "late", "episodes", "seconds")


def model_of(world: str, seed: int) -> tuple[psconrl.CMDP, int]:
    """The model of a world, of its own for every seed where it is drawn, and the rounds to play."""
    if world in HELD_OUT:
        return HELD_OUT[world](), HORIZON
    name, options, horizon = DEVELOPMENT[world]
    drawn = {key: seed if value is None else value for key, value in options.items()}
    return psconrl.load(name, **drawn), horizon


def one(job: tuple[str, str, int]) -> list[Any]:
    """A line of the table: among others the violation of the worst limit, and what the last fifth lost a round."""
    world, variant, seed = job
    cmdp, horizon = model_of(world, seed)
    best = psconrl.plan(cmdp)
    parts = dict(VARIANTS[variant])
    if isinstance(parts.get("belief"), float):
        parts["belief"] = Dirichlet(parts["belief"] / cmdp.n_states)
    agent = PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed, **parts)
    trace = psconrl.simulate(cmdp, agent, horizon, seed=1_000 + seed, checkpoints=5)
    found = psconrl.regret(trace, best)
    priced = found.regret + found.violation @ best.multipliers
    late = float(priced[-1] - priced[-2]) / float(trace.rounds[-1] - trace.rounds[-2])
    lost, over = found.final
    worst = float(over.max()) if over.size else 0.0
    return [
        world,
        variant,
        seed,
        lost,
        worst,
        float(priced[-1]),
        late,
        len(trace.episodes),
        trace.provenance["seconds"],
    ]


def run(worlds: list[str], variants: list[str], runs: int, path: Path) -> None:
    """Play everything that is not in the file yet."""
    done = set()
    if path.exists():
        with path.open() as f:
            done = {(row[0], row[1], int(row[2])) for row in list(csv.reader(f))[1:]}
    jobs = [job for job in itertools.product(worlds, variants, range(runs)) if job not in done]
    with path.open("a", newline="") as f, ProcessPoolExecutor(2) as pool:
        lines = csv.writer(f, lineterminator="\n")
        if not done:
            lines.writerow(COLUMNS)
        for row in pool.map(one, jobs, chunksize=1):
            lines.writerow(row)
            f.flush()


def show(worlds: list[str], variants: list[str], path: Path) -> None:
    """Regret; violation; regret at shadow prices with its error, and p of the paired difference to the first one."""
    with path.open() as f:
        rows = list(csv.DictReader(f))

    def values(world: str, variant: str, column: str) -> np.ndarray:
        found = sorted(
            (int(r["seed"]), float(r[column])) for r in rows if (r["world"], r["variant"]) == (world, variant)
        )
        return np.array([value for _, value in found])

    print("| | " + " | ".join(variants) + " |\n|" + "---|" * (len(variants) + 1))
    for world in worlds:
        cells, base = [], values(world, variants[0], "priced")
        for variant in variants:
            lost, over, priced = (values(world, variant, column) for column in ("regret", "violation", "priced"))
            if not lost.size:
                cells.append("")
                continue
            n = min(base.size, priced.size)
            p = "" if variant == variants[0] or n < 2 else f"; p {ttest_rel(base[:n], priced[:n]).pvalue:.1g}"
            error = priced.std(ddof=1) / np.sqrt(priced.size) if priced.size > 1 else np.nan
            cells.append(f"{lost.mean():.0f}; {over.mean():.0f}; {priced.mean():.0f} ± {error:.0f}{p}")
        print(f"| {world} | " + " | ".join(cells) + " |")


def main() -> None:
    """Play and show."""
    which, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
    worlds = list(DEVELOPMENT) if which == "development" else list(HELD_OUT)
    variants = sys.argv[3].split(",") if len(sys.argv) > 3 else list(VARIANTS)
    path = Path(__file__).parent / "study" / f"{which}.csv"
    run(worlds, variants, runs, path)
    show(worlds, variants, path)


if __name__ == "__main__":
    main()
