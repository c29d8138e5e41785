"""What doubts gain and cost: ``python benchmarks/doubt.py SET [RUNS] [VARIANT,...] [FACTOR]``.

Sets: ``doubt``, the development environments written for it; ``board``, those of ``benchmarks/study.py`` on which the
default was chosen; ``stay``, those of ``benchmarks/convergence.py``. Seeds are paired: every variant has the same
random numbers. Every run is a line of a CSV file; the same command continues it, and prints a table of the mean score,
its standard error, and the worst run. The score is the regret plus overspending at twice its shadow price. ``FACTOR``:
of the number of rounds.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import csv
import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import psconrl
from convergence import ENVIRONMENTS as STAY
from environments_rare_doors import DOUBT, LEARNED, NOISY
from environments_rare_doors import DRAWN as DOUBT_DRAWN
from psconrl.agents import Budget, Explore, LeastExcess
from study import DEVELOPMENT

HORIZON = 20_000
SETS = {"doubt": list(DOUBT), "board": list(DEVELOPMENT), "stay": list(STAY)}
BEFORE: dict[str, Any] = {"doubt": None, "fallback": Explore()}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "before": ("psconrl", BEFORE),  # with the commitment as it is now
    "default": ("psconrl", {}),
    "no doubt": ("psconrl", {"doubt": None}),
    "least excess": ("psconrl", {"fallback": LeastExcess()}),
    "more shortcuts": ("psconrl", {"doubt": Budget(shortcuts=0.03)}),
    "no shortcuts": ("psconrl", {"doubt": Budget(shortcuts=0.0)}),
    "walls only": ("psconrl", {"doubt": Budget(unknown=0.0, shortcuts=0.0)}),
    "lagrangian": ("lagrangian", {}),
    "ps-curl": ("ps-curl", {}),
    "psconrl-paper": ("psconrl-paper", {}),
}
COLUMNS = ("environment", "variant", "seed", "rounds", "score", "late", "episodes", "seconds")


def model_of(environment: str, seed: int) -> tuple[psconrl.CMDP, int]:
    """Return the model of an environment, drawn by the seed if it is random, and the rounds to play."""
    if environment in DOUBT:
        return DOUBT[environment](*([seed] if environment in DOUBT_DRAWN else [])), HORIZON
    if environment in STAY:
        return STAY[environment](), HORIZON
    name, options, horizon = DEVELOPMENT[environment]
    return psconrl.load(name, **{key: seed if value is None else value for key, value in options.items()}), horizon


def one(job: tuple[str, str, int, int]) -> list[Any]:
    """Play one run, and return its row."""
    environment, variant, seed, factor = job
    model, horizon = model_of(environment, seed)
    horizon *= factor
    best = psconrl.plan(model)
    learned = environment in LEARNED or environment in NOISY
    name, options = VARIANTS[variant]
    costs = None if learned else model.costs
    agent = psconrl.agents.make(
        name, model.n_states, model.n_actions, model.thresholds, costs, seed=seed, horizon=horizon, **options
    )
    noise = {"emission": "bernoulli"} if environment in NOISY else {}
    at = [horizon * 3 // 4, horizon]
    trace = psconrl.simulate(model, agent, horizon, seed=1_000 + seed, checkpoints=at, **noise)
    ends = np.array(at)[:, None]
    lost = trace.cumulative[:, 0] - ends[:, 0] * best.certificate.lower
    over = np.maximum(trace.cumulative[:, 1:] - ends * model.thresholds, 0.0)
    score = lost + 2.0 * (over * best.multipliers).sum(axis=1)
    late = (score[1] - score[0]) / (horizon - at[0])
    seconds = trace.provenance["seconds"]
    return [environment, variant, seed, horizon, float(score[1]), float(late), len(trace.episodes), seconds]


def run(environments: list[str], variants: list[str], runs: int, factor: int, path: Path) -> None:
    """Play everything that is not in the file yet."""
    done = set()
    if path.exists():
        with path.open() as f:
            done = {(row[0], row[1], int(row[2])) for row in list(csv.reader(f))[1:]}
    jobs = [(e, v, seed, factor) for e, seed, v in itertools.product(environments, range(runs), variants)]
    jobs = [job for job in jobs if job[:3] not in done]
    path.parent.mkdir(exist_ok=True)
    with path.open("a", newline="") as f, ProcessPoolExecutor(int(os.environ.get("PROCESSES", "2"))) as pool:
        lines = csv.writer(f, lineterminator="\n")
        if not done:
            lines.writerow(COLUMNS)
        for row in pool.map(one, jobs, chunksize=1):
            lines.writerow(row)
            f.flush()


@cache
def uniform(environment: str, seed: int, horizon: int) -> float:
    """Return the expected score of uniform play, from its stationary averages."""
    model, _ = model_of(environment, seed)
    best = psconrl.plan(model)
    costs = psconrl.evaluate(model, np.full((model.n_states, model.n_actions), 1.0 / model.n_actions)).costs
    over = np.maximum(costs[1:] - model.thresholds, 0.0)
    return horizon * float(costs[0] - best.certificate.lower + 2.0 * (over * best.multipliers).sum())


def show(environments: list[str], variants: list[str], path: Path) -> None:
    """Print mean, standard error and worst run of every variant, and the score of uniform play."""
    with path.open() as f:
        rows = list(csv.DictReader(f))
    print("| environment | uniform | " + " | ".join(variants) + " |\n|" + "---|" * (len(variants) + 2))
    for environment in environments:
        cells, reference = [], 0.0
        for variant in variants:
            mine = [row for row in rows if (row["environment"], row["variant"]) == (environment, variant)]
            if not mine:
                cells.append("")
                continue
            scores = np.array([float(row["score"]) for row in mine])
            reference = np.mean([uniform(environment, int(row["seed"]), int(row["rounds"])) for row in mine])
            error = scores.std(ddof=1) / np.sqrt(scores.size) if scores.size > 1 else np.nan
            cells.append(f"{scores.mean():,.0f} ± {error:,.0f} ({scores.max():,.0f})")
        print(f"| {environment} | {reference:,.0f} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run the study and print the table."""
    which, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
    variants = sys.argv[3].split(",") if len(sys.argv) > 3 else list(VARIANTS)
    factor = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    path = Path(__file__).parent / "study" / f"{which}{factor if factor > 1 else ''}.csv"
    path = path.with_name(f"doubt-{path.name}")
    run(SETS[which], variants, runs, factor, path)
    show(SETS[which], variants, path)


if __name__ == "__main__":
    main()
