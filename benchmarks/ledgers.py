"""Ledgers compared: how far the run's balance and the policies played deviate from the thresholds.

    python benchmarks/ledgers.py [--environments line,queue] [--ledgers balance,none] [--rounds 192000] [--runs 8]

Environments with a plain name are systems with known structure: ``line``, a production line of 340 states; ``tight
line``, the same with a fifth of the backlog and all but the demand known; or one of benchmarks/structure.py. Those that
begin with ``env:`` are environments of the library, in which costs are known and nothing else, such as
``env:riverswim``. All ledgers have the same seeds.

Columns, at a sixteenth, a quarter and all of the rounds: the *score*, regret plus overspending at twice its price,
with the standard error of the paired difference to the first ledger; the *excess* over the thresholds, the mean and
the mean of its absolute value, weighted by the prices; *strong regret* and *strong violation*, in which policies that
are better than the optimum or the threshold do not make up for others. The first line of an environment has the
standard deviation of the excess that the optimal policy itself would have.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.agents import Balance, Gradual
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.simulation.regret import strong_regret, targets
from psconrl.systems.noise import Bernoulli
from psconrl.systems.priors import Beta
from psconrl.systems.system import System
from structure import systems

LEDGERS = {
    "balance": {"ledger": Balance(0.1)},
    "none": {"ledger": None},
    "gradual 1": {"ledger": Gradual(pace=1.0)},
    "gradual": {"ledger": Gradual()},
    "gradual 10": {"ledger": Gradual(pace=10.0)},
    "balance .01": {"ledger": Balance(0.01)},
    "balance uncommitted": {"ledger": Balance(0.1), "commitment": None},
    "none uncommitted": {"ledger": None, "commitment": None},
    "gradual uncommitted": {"ledger": Gradual(), "commitment": None},
}


def line() -> tuple[System, dict[str, float]]:
    """Two machines that fail and are repaired, parts between them, and stock or backlog behind them. 340 states."""
    first = "(1 if up_one == 1 and run_one == 1 and parts < 4 else 0)"
    second = "(1 if up_two == 1 and run_two == 1 and parts > 0 else 0)"
    system = System(
        state={"up_one": range(2), "up_two": range(2), "parts": range(5), "stock": range(-6, 11)},
        action={"run_one": range(2), "run_two": range(2)},
        noise={
            name: Bernoulli(Beta(1, 1)) for name in ("fails_one", "fails_two", "mended_one", "mended_two", "demand")
        },
        step={
            "up_one": f"(0 if {first} == 1 and fails_one == 1 else 1) if up_one == 1 else mended_one",
            "up_two": f"(0 if {second} == 1 and fails_two == 1 else 1) if up_two == 1 else mended_two",
            "parts": f"parts + {first} - {second}",
            "stock": f"min(max(stock + {second} - demand, -6), 10)",
        },
        costs={
            "cost": "0.1 * parts + 0.2 * max(stock, 0) + 0.5 * run_one + 0.5 * run_two",
            "backlog": "max(-stock, 0)",
        },
        start={"up_one": 1, "up_two": 1, "parts": 2, "stock": 2},
        minimise="cost",
        limits=["backlog <= 0.3"],
    )
    return system, {"fails_one": 0.05, "fails_two": 0.05, "mended_one": 0.25, "mended_two": 0.25, "demand": 0.55}


def environment(name: str) -> tuple[System | None, CMDP]:
    """Return the system as its owner knows it, if its structure is known, and the model as it is."""
    if name.startswith("env:"):
        return None, psconrl.load(name[4:])
    if name in ("line", "tight line"):
        system, known = line()
        if name == "tight line":
            demand = known.pop("demand")
            system, known = system.with_limits(["backlog <= 0.06"]).with_noise(**known), {"demand": demand}
        return system, system.with_noise(**known).model()
    system, true = systems(name)
    return system, true.model()


def deviations(model: CMDP, policy: np.ndarray) -> np.ndarray:
    r"""Return the root of the long-run variance of every constrained cost, (m,): of its sum over T rounds, per T.

    It is :math:`\sqrt{2 \langle \mu, \bar c\, h \rangle - \langle \mu, \bar c^2 \rangle}`, with :math:`\mu` the
    occupancy, :math:`\bar c` the cost less its average, and h the solution of :math:`h = \bar c + P h`.
    """
    n = model.n_states * model.n_actions
    P = (np.asarray(model.transition.csr().todense())[:, :, None] * policy).reshape(n, n)  # of pairs
    mu = np.linalg.lstsq(np.vstack([(P - np.eye(n)).T, np.ones(n)]), np.eye(n + 1)[-1], rcond=None)[0]
    costs = model.costs[1:].reshape(-1, n)
    centred = costs - (costs @ mu)[:, None]
    h = np.linalg.solve(np.eye(n) - P + mu, centred.T).T
    return np.sqrt(np.maximum(2.0 * (centred * h) @ mu - centred**2 @ mu, 0.0))


def measured(system: System | None, model: CMDP, best: Plan, ledger: str, rounds: np.ndarray, run: int) -> np.ndarray:
    """Return the columns of a run, at every number of rounds, (n, 5)."""
    if system is None:
        sizes = model.n_states, model.n_actions, model.thresholds, model.costs
        agent = psconrl.PSConRL(*sizes, seed=run, **LEDGERS[ledger])
    else:
        agent = psconrl.PSConRL.of(system, seed=run, **LEDGERS[ledger])
    trace = psconrl.simulate(
        model, agent, int(rounds[-1]), seed=10_000 + run, evaluate_policies=True, checkpoints=rounds
    )
    over = trace.cumulative[:, 1:] - rounds[:, None] * model.thresholds
    score = trace.cumulative[:, 0] - rounds * best.certificate.lower + 2.0 * np.maximum(over, 0.0) @ best.multipliers
    strong = strong_regret(
        trace.policies.costs, trace.policies.length, targets(best.costs[0], model.thresholds), rounds
    )
    weights = best.multipliers / best.multipliers.sum()
    return np.column_stack([score, over @ weights, np.abs(over) @ weights, strong[:, 0], strong[:, 1:] @ weights])


def main() -> None:
    """Print a table for each environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", default="line")
    parser.add_argument("--ledgers", default="balance,none,gradual 1,gradual,gradual 10")
    parser.add_argument("--rounds", type=int, default=192_000)
    parser.add_argument("--runs", type=int, default=8)
    options = parser.parse_args()
    rounds = options.rounds // np.array([16, 4, 1])
    for name in options.environments.split(","):
        system, model = environment(name)
        best = psconrl.plan(model)
        weights = best.multipliers / best.multipliers.sum()
        noise = np.sqrt(rounds) * (deviations(model, best.policy) @ weights)
        print(
            f"\n{name}, {model.n_states} states, prices {np.round(best.multipliers, 3).tolist()}, {options.runs} runs;"
        )
        print(f"the excess of the optimal policy deviates by {', '.join(f'{x:,.0f}' for x in noise)}\n")
        print("| ledger | score | difference | excess | its size | strong regret | strong violation | s a run |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        first = None
        for ledger in options.ledgers.split(","):
            begun = time.process_time()
            runs = range(options.runs)
            found = np.array([measured(system, model, best, ledger, rounds, run) for run in runs])
            seconds = (time.process_time() - begun) / options.runs
            first = found if first is None else first
            difference = (found - first)[:, :, 0]
            error = difference.std(axis=0, ddof=1) / options.runs**0.5
            mean = found.mean(axis=0).T
            paired = [f"{d:+,.0f} ± {e:,.0f}" for d, e in zip(difference.mean(axis=0), error, strict=True)]
            columns = [[f"{x:,.0f}" for x in column] for column in mean]
            cells = [columns[0], ["-"] if found is first else paired, *columns[1:]]
            print(f"| {ledger} | " + " | ".join("; ".join(cell) for cell in cells) + f" | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
