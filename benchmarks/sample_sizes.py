"""How many samples a plan needs: ``python benchmarks/sample_sizes.py [--replicates N] [--quick]``.

A generative model gives n successors of every pair. The empirical model is planned, and the policy is evaluated exactly
in the true model. Costs are known and scaled to [0, 1], and errors are in % of that. The tables have means over the
replicates: *loss*, the objective minus its optimum; *above*, the positive part of the loss; *excess*, the positive part
of the excess over the worst constraint; *violated*, the share of plans with one; *infeasible*, the share of empirical
models without a feasible policy, of which ``plan`` returns the policy of least excess. The exponents of *above* and
*excess* in n are fitted by least squares.

With a margin, the model is planned twice: every threshold is lowered by STANDARD_ERRORS standard errors of the average
of its cost under the first plan. If the lowered thresholds cannot be met, the policy of least excess is played, too.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
from typing import Any

import numpy as np

import psconrl
from psconrl.answers.inspection import spans_of
from psconrl.base.arrays import Floats

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
FITTED_FROM = 100  # the rate is asymptotic: smaller samples are left out of the fit
STANDARD_ERRORS = 2.0
VIOLATED = 1e-9
# Environments with their options. The grid slips: one draw determines a model without noise.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "marsrover-4x4, slip 0.1": ("marsrover-4x4", {"slip": 0.1}),
    "queue": ("queue", {}),
    "inventory": ("inventory", {}),
    "riverswim": ("riverswim", {}),
    "garnet": ("garnet", {"seed": 101}),
}
ROWS = ("loss", "above", "excess", "violated", "infeasible")


def scaled(cmdp: psconrl.CMDP) -> psconrl.CMDP:
    """Return the model with all costs scaled to [0, 1], which is what the bound assumes."""
    least, most = cmdp.costs.min(axis=(1, 2)), cmdp.costs.max(axis=(1, 2))
    costs = (cmdp.costs - least[:, None, None]) / (most - least)[:, None, None]
    thresholds = (cmdp.thresholds - least[1:]) / (most - least)[1:]
    return psconrl.CMDP(table(cmdp), costs, thresholds, available=cmdp.available, initial=cmdp.initial)


def table(cmdp: psconrl.CMDP) -> Floats:
    """Return the transition probabilities (S, A, S)."""
    return cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, cmdp.n_states)


def empirical(cmdp: psconrl.CMDP, n: int, rng: np.random.Generator) -> psconrl.CMDP:
    """Return the model of the frequencies of n draws of every pair."""
    P = table(cmdp)
    counts = rng.multinomial(n, P / P.sum(axis=2, keepdims=True))
    return psconrl.CMDP.from_counts(counts, cmdp.costs, cmdp.thresholds, available=cmdp.available, initial=cmdp.initial)


def averages(cmdp: psconrl.CMDP, plan: psconrl.Plan) -> Floats:
    """Return the exact averages (m+1,) of a plan in a model; of a mixture policy, those before the draw."""
    if plan.mixture is None:
        return psconrl.evaluate(cmdp, plan.policy).costs
    return plan.mixture.shares @ [psconrl.evaluate(cmdp, policy).costs for policy in plan.mixture.policies]


def standard_errors(cmdp: psconrl.CMDP, plan: psconrl.Plan, n: int) -> Floats:
    """Return the standard errors (m,) of the averages of the constrained costs, to first order in 1 / sqrt(n).

    The average of a cost with bias h changes by mu(s, a) (P' - P)(s, a) h, summed over pairs, where mu is the
    occupancy; the n draws of each pair are independent.
    """
    policy = psconrl.evaluate(cmdp, plan.policy)
    P, h = table(cmdp), policy.biases[1:]
    variance = np.einsum("sat,it->isa", P, h**2) - np.einsum("sat,it->isa", P, h) ** 2
    return np.sqrt(np.maximum((policy.occupancy**2 * variance).sum(axis=(1, 2)), 0.0) / n)


def slater_constant(cmdp: psconrl.CMDP) -> float:
    """Return the largest slack that one policy has in all constraints at once, to 0.1%."""
    low, high = 0.0, float(np.min(cmdp.thresholds))
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        feasible = psconrl.plan(cmdp.with_thresholds(cmdp.thresholds - middle)).feasible
        low, high = (middle, high) if feasible else (low, middle)
    return low


def errors(cmdp: psconrl.CMDP, n: int, margin: bool, replicates: int) -> Floats:
    """Return the means of ROWS over the plans of n draws."""
    optimum, found = float(psconrl.plan(cmdp).costs[0]), np.empty((replicates, len(ROWS)))
    for k in range(replicates):
        model = empirical(cmdp, n, np.random.default_rng([2026, n, k]))  # the same draws with and without a margin
        plan = psconrl.plan(model)
        feasible = plan.feasible
        if margin:
            lowered = cmdp.thresholds - STANDARD_ERRORS * standard_errors(model, plan, n)
            plan = psconrl.plan(model.with_thresholds(lowered))
            feasible = plan.feasible
        costs = averages(cmdp, plan)
        loss, excess = costs[0] - optimum, (costs[1:] - cmdp.thresholds).max()
        found[k] = loss, max(loss, 0.0), max(excess, 0.0), excess > VIOLATED, not feasible
    return 100.0 * found.mean(axis=0)


def exponent(sizes: Floats, values: Floats) -> str:
    """Return the slope of log(value) in log(n) by least squares with its standard error, if all values are positive."""
    if len(sizes) < 3 or (values <= 0).any():
        return "none"
    x, y = np.log(sizes) - np.log(sizes).mean(), np.log(values)
    slope = x @ y / (x @ x)
    residual = y - y.mean() - slope * x
    return f"{slope:.2f} ± {np.sqrt(residual @ residual / (len(x) - 2) / (x @ x)):.2f}"


def show(name: str, cmdp: psconrl.CMDP, sizes: tuple[int, ...], margin: bool, replicates: int) -> None:
    """Print the rows of an environment."""
    found = np.array([errors(cmdp, n, margin, replicates) for n in sizes])
    at = np.array(sizes, float)
    fitted = at >= FITTED_FROM
    for k, what in enumerate(ROWS):
        slope = exponent(at[fitted], found[fitted, k]) if what in ("above", "excess") else ""
        cells = (f"{value:.2g}" if abs(value) < 99.5 else f"{value:.0f}" for value in found[:, k])
        print(f"| {name} | {what} | " + " | ".join(cells) + f" | {slope} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 samples, 5 replicates")
    options = parser.parse_args()
    sizes, replicates = (SIZES[:5], 5) if options.quick else (SIZES, options.replicates)
    models = {name: scaled(psconrl.load(env, **settings)) for name, (env, settings) in MODELS.items()}
    print("| environment | S A | span H | Slater constant | standard errors times sqrt(n) |\n|---|---|---|---|---|")
    for name, cmdp in models.items():
        best = psconrl.plan(cmdp)
        span, units = max(spans_of(cmdp, best)), standard_errors(cmdp, best, 1)
        shown = ", ".join(f"{unit:.2g}" for unit in units)
        print(f"| {name} | {cmdp.n_states * cmdp.n_actions} | {span:.2g} | {slater_constant(cmdp):.2g} | {shown} |")
    for margin in (False, True):
        print(f"\n**{'With a margin' if margin else 'Thresholds as given'}**\n")
        print("| environment | mean | " + " | ".join(f"{n:,}" for n in sizes) + " | exponent |")
        print("|---" * (len(sizes) + 3) + "|")
        for name, cmdp in models.items():
            show(name, cmdp, sizes, margin, replicates)


if __name__ == "__main__":
    main()
