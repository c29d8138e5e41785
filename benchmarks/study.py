"""The choice of the default belief, schedule and ledger: ``python benchmarks/study.py SET [RUNS] [VARIANT,...]``.

Sets: ``development``, on which variants are compared freely; ``seen``, on which earlier candidates were played, but
nothing was chosen; ``held-out``, played once the choice was made. Seeds are paired: every variant has the same random
numbers. Every run is a line of a CSV file; the same command continues it, and prints tables. Regret at shadow prices
adds the value of the violations to the regret.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import csv
import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

import psconrl
from environments_keys_and_dams import DRAWN as SECOND_DRAWN
from environments_keys_and_dams import KEYS_AND_DAMS
from environments_mazes_and_wards import MAZES_AND_WARDS
from environments_warehouses_and_tides import DRAWN as THIRD_DRAWN
from environments_warehouses_and_tides import WAREHOUSES_AND_TIDES
from psconrl.agents import (
    Balance,
    Dirichlet,
    Doubling,
    Endless,
    LearnedMass,
    Ouyang,
    Proportional,
    PSConRL,
    Repay,
    SquareRoot,
    Steady,
    make,
)

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
OWN: dict[str, Callable[..., psconrl.CMDP]] = {**MAZES_AND_WARDS, **KEYS_AND_DAMS, **WAREHOUSES_AND_TIDES}
DRAWN = (*SECOND_DRAWN, *THIRD_DRAWN)
HORIZON = 20_000  # of our own environments
LOOKED_AT = ("ward", "battery", "dam", "polling")  # held out at first, then used for diagnosis
SETS = {
    "development": [*DEVELOPMENT, *LOOKED_AT],
    "seen": [environment for environment in (*MAZES_AND_WARDS, *KEYS_AND_DAMS) if environment not in LOOKED_AT],
    "held-out": list(WAREHOUSES_AND_TIDES),
}

WIDE = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
PLAIN: dict[str, Any] = {"belief": Dirichlet(), "schedule": Ouyang(), "ledger": None, "planning_horizon": Endless()}
LEARNED: dict[str, Any] = {
    "belief": LearnedMass(),
    "schedule": SquareRoot(),
    "ledger": None,
    "planning_horizon": Proportional(),
}
BALANCED = LEARNED | {"ledger": Balance(0.1)}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,  # the previous default
    "plain repay": PLAIN | {"ledger": Repay(0.1)},
    "learned": LEARNED,
    "learned repay": LEARNED | {"ledger": Repay(0.1)},
    "default": BALANCED,
    # The default with one part changed, and the best of the first candidates.
    "prior 1/S": BALANCED | {"belief": Dirichlet()},
    "masses up to 10": BALANCED | {"belief": LearnedMass(WIDE)},
    "masses from .001": BALANCED | {"belief": LearnedMass([0.001, 0.01, 0.1, 1.0])},
    "gibbs": BALANCED | {"belief": LearnedMass(exact=False)},
    "one mass for the environment": BALANCED | {"belief": LearnedMass(pool="all")},
    "ouyang": BALANCED | {"schedule": Ouyang()},
    "steady": BALANCED | {"schedule": Steady()},
    "doubling": BALANCED | {"schedule": Doubling()},
    "balance .03": BALANCED | {"ledger": Balance(0.03)},
    "balance .3": BALANCED | {"ledger": Balance(0.3)},
    "endless": BALANCED | {"planning_horizon": Endless()},
    "horizon .1": BALANCED | {"planning_horizon": Proportional(0.1)},
    "horizon 1": BALANCED | {"planning_horizon": Proportional(1.0)},
    "first candidate": PLAIN | {"belief": LearnedMass(WIDE, exact=False), "schedule": Steady(), "ledger": Balance(0.1)},
}
HEADS = (
    "runs",
    "regret",
    "violation",
    "its positive part",
    "at shadow prices",
    "at the dear ones",
    "worst run",
    "stuck",
    "episodes",
    "s",
    "p, plain",
    "p, plain repay",
)
BRIEF = ("plain", "plain repay", "learned", "default")
REFERENCES = ("plain", "plain repay")  # the previous default, without and with its ledger
COLUMNS = ("environment", "variant", "seed", "regret", "violation", "priced", "late", "episodes", "seconds")


def model_of(environment: str, seed: int) -> tuple[psconrl.CMDP, int]:
    """Return the model of an environment, redrawn for every seed if it is random, and the rounds to play."""
    if environment in OWN:
        return OWN[environment](*([seed] if environment in DRAWN else [])), HORIZON
    name, options, horizon = DEVELOPMENT[environment]
    drawn = {key: seed if value is None else value for key, value in options.items()}
    return psconrl.load(name, **drawn), horizon


def one(job: tuple[str, str, int]) -> list[Any]:
    """Return a row of the table, with the violation of every constraint and the loss per round of the last fifth."""
    environment, variant, seed = job
    cmdp, horizon = model_of(environment, seed)
    best = psconrl.plan(cmdp)
    agent = PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=seed, **VARIANTS[variant])
    trace = psconrl.simulate(cmdp, agent, horizon, seed=1_000 + seed, checkpoints=5)
    found = psconrl.regret(trace, best)
    priced = found.regret + found.violation @ best.multipliers
    late = float(priced[-1] - priced[-2]) / float(trace.rounds[-1] - trace.rounds[-2])
    lost, over = found.final
    return [
        environment,
        variant,
        seed,
        lost,
        " ".join(str(float(v)) for v in over),
        float(priced[-1]),
        late,
        len(trace.episodes),
        trace.provenance["seconds"],
    ]


def run(environments: list[str], variants: list[str], runs: int, path: Path) -> None:
    """Play everything that is not in the file yet."""
    done = set()
    if path.exists():
        with path.open() as f:
            done = {(row[0], row[1], int(row[2])) for row in list(csv.reader(f))[1:]}
    jobs = [job for job in itertools.product(environments, variants, range(runs)) if job not in done]
    with path.open("a", newline="") as f, ProcessPoolExecutor(2) as pool:
        lines = csv.writer(f, lineterminator="\n")
        if not done:
            lines.writerow(COLUMNS)
        for row in pool.map(one, jobs, chunksize=1):
            lines.writerow(row)
            f.flush()


@cache
def references(environment: str, seed: int) -> tuple[float, np.ndarray]:
    """Return the uniform policy's loss per round at shadow prices, and the prices at slightly lower thresholds.

    At a kink of the optimal value, one unit more is worth less than one unit less costs; any price between is valid.
    """
    cmdp, horizon = model_of(environment, seed)
    best = psconrl.plan(cmdp)
    agent = make("uniform", cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=0)
    found = psconrl.regret(psconrl.simulate(cmdp, agent, horizon, seed=0, checkpoints=1), best)
    lost, over = found.final
    tighter = psconrl.plan(cmdp.with_thresholds(cmdp.thresholds - 1e-6 * np.ptp(cmdp.costs[1:], axis=(1, 2))))
    dear = np.maximum(tighter.multipliers, best.multipliers) if tighter.value is not None else best.multipliers
    return float(lost + over @ best.multipliers) / horizon, dear


def show(environments: list[str], variants: list[str], path: Path) -> None:
    """Print one table per environment. p: test whether the regret at shadow prices exceeds that of a reference, paired
    and one-sided; in brackets corrected (Holm) for the number of environments."""
    with path.open() as f:
        rows = list(csv.DictReader(f))
    runs = {
        (environment, variant): sorted(
            (row for row in rows if (row["environment"], row["variant"]) == (environment, variant)),
            key=lambda r: int(r["seed"]),
        )
        for environment in environments
        for variant in variants
    }
    tests = {
        (variant, reference): _holm(
            {
                environment: _p_value(runs[environment, variant], runs[environment, reference])
                for environment in environments
            }
        )
        for variant in variants
        for reference in REFERENCES
        if reference in variants and variant != reference
    }
    _brief(environments, [v for v in BRIEF if v in variants], runs, tests)
    head = "| | " + " | ".join(HEADS) + " |"
    for environment in environments:
        print(f"\n**{environment}**\n\n{head}\n|{'---|' * (len(HEADS) + 1)}")
        for variant in variants:
            if runs[environment, variant]:
                p = [tests[variant, r].get(environment, "") if (variant, r) in tests else "" for r in REFERENCES]
                print("| " + " | ".join([variant, *_cells(environment, runs[environment, variant]), *p]) + " |")


def _brief(environments: list[str], variants: list[str], runs: dict[Any, Any], tests: dict[Any, Any]) -> None:
    """Print regret, violation, regret at shadow prices, and the corrected p of the default against both references."""
    print("| | " + " | ".join(variants) + " | p, plain | p, plain repay |\n|" + "---|" * (len(variants) + 3))
    for environment in environments:
        cells = []
        for variant in variants:
            _, lost, over, _, priced, *_ = _cells(environment, runs[environment, variant])
            cells.append(f"{lost}; {over}; {priced}")
        p = [tests.get(("default", reference), {}).get(environment, "") for reference in REFERENCES]
        print(f"| {environment} | " + " | ".join([*cells, *p]) + " |")


def _cells(environment: str, mine: list[dict[str, str]]) -> list[str]:
    lost, priced = (np.array([float(row[key]) for row in mine]) for key in ("regret", "priced"))
    overs = [np.array(row["violation"].split(), dtype=float) for row in mine]
    worst = np.array([over.max(initial=-np.inf) for over in overs])
    known = [references(environment, int(row["seed"]) if _is_drawn(environment) else 0) for row in mine]
    stuck = np.mean([float(row["late"]) > 0.5 * uniform for row, (uniform, _) in zip(mine, known, strict=True)])
    dear = lost + [over @ price for over, (_, price) in zip(overs, known, strict=True)]
    return [
        str(lost.size),
        f"{lost.mean():.0f}",
        f"{worst.mean():.0f}",
        f"{worst.clip(min=0).mean():.0f}",
        f"{priced.mean():.0f} ± {_error(priced):.0f}",
        f"{dear.mean():.0f} ± {_error(dear):.0f}",
        f"{priced.max():.0f}",
        f"{stuck:.0%}",
        f"{np.mean([int(row['episodes']) for row in mine]):.0f}",
        f"{np.mean([float(row['seconds']) for row in mine]):.2f}",
    ]


def _p_value(mine: list[dict[str, str]], base: list[dict[str, str]]) -> float:
    """Return the p-value of the hypothesis that the first is no worse, on common runs; nan if all are equal."""
    one, two = ({int(row["seed"]): float(row["priced"]) for row in rows} for rows in (mine, base))
    pairs = np.array([(one[seed], two[seed]) for seed in sorted(one.keys() & two.keys())])
    if len(pairs) < 2 or np.allclose(pairs[:, 0], pairs[:, 1]):
        return np.nan
    return float(ttest_rel(pairs[:, 0], pairs[:, 1], alternative="greater").pvalue)


def _holm(p_values: dict[str, float]) -> dict[str, str]:
    """Format each p-value with its correction."""
    finite = sorted((p, environment) for environment, p in p_values.items() if not np.isnan(p))
    adjusted, shown = 0.0, {}
    for rank, (p, environment) in enumerate(finite):
        adjusted = max(adjusted, min(1.0, p * (len(finite) - rank)))
        shown[environment] = f"{p:.2g} ({adjusted:.2g})"
    return shown


def _is_drawn(environment: str) -> bool:
    return environment in DRAWN or None in DEVELOPMENT.get(environment, ("", {}, 0))[1].values()


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.nan


def main() -> None:
    """Run the study and print the tables."""
    which, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6
    variants = sys.argv[3].split(",") if len(sys.argv) > 3 else list(VARIANTS)
    path = Path(__file__).parent / "study" / f"{which}.csv"
    run(SETS[which], variants, runs, path)
    show(SETS[which], variants, path)


if __name__ == "__main__":
    main()
