r"""The counterexample to Theorem 4.1 of the PSConRL paper, played: ``python benchmarks/leaky_runs.py``.

The leak is 1/T, or drawn from the prior P(leak <= x) = 1 / (1 + ln(.1 / x)). The paper's agent plays "stay, stay" for
ever: ``played_regret`` runs it, with 64 equally likely leaks as its prior, whose posterior is exact. The regret of
"stay, stay" is half the difference of the rounds in the two states, and is drawn by ``sojourn_regret`` from the
sojourns, which are geometric. Means are compared with closed forms, and these with the bound of the theorem, with all
constants of its proof, for longer runs too.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

import psconrl
from lemmas import LARGEST_LEAK, bayesian_regret, leaky_regret, theorem_bound
from psconrl.agents import Candidates

RUNS = 2000
PLAYED = (10**4, 10**5, 10**6)
LONG = (10**8, 10**9, 10**12)  # by the closed form alone
AGENT_ROUNDS = 10**4


def prior_leaks(cells: int) -> np.ndarray:
    """Return the leaks in the middle of equally likely intervals of the prior."""
    share = (np.arange(cells) + 0.5) / cells
    return np.maximum(LARGEST_LEAK * np.exp(1.0 - 1.0 / share), 1e-30)


def played_regret(leak: float, leaks: np.ndarray, rounds: int, seed: int) -> float:
    """Return the regret of the paper's agent, whose prior gives the same probability to each of the leaks."""
    model = psconrl.load("leaky-islands", leak=leak)
    belief = Candidates([psconrl.load("leaky-islands", leak=each).transition.toarray().reshape(2, 2, 2)
                         for each in leaks])  # fmt: skip
    agent = psconrl.agents.make("psconrl-paper", 2, 2, model.thresholds, model.costs, belief=belief, seed=seed)
    trace = psconrl.simulate(model, agent, rounds, seed=seed)
    return float(psconrl.regret(trace, psconrl.plan(model)).final[0])


def sojourn_regret(leak: float, rounds: int, rng: np.random.Generator) -> float:
    """Return the regret of "stay, stay" from the second state: its rounds there, less half of all rounds."""
    ends = np.zeros(1)
    while ends[-1] < rounds:
        more = rng.geometric(leak, size=int(2 * rounds * leak) + 16).astype(float)
        ends = np.concatenate([ends, ends[-1] + np.cumsum(more)])
    lengths = np.diff(np.minimum(ends, rounds))
    return float(lengths[::2].sum()) - 0.5 * rounds


def prior_leak(rng: np.random.Generator) -> float:
    """Return a leak drawn from the prior."""
    return max(LARGEST_LEAK * float(np.exp(1.0 - 1.0 / (1.0 - rng.random()))), 1e-15)


def row(name: str, rounds: int, drawn: list[float], expected: float) -> str:
    """Return a row of the table: the mean of the runs with its standard error, the closed form, and the bound."""
    played = f"{np.mean(drawn):,.0f} ± {np.std(drawn, ddof=1) / len(drawn) ** 0.5:,.0f}" if drawn else ""
    return f"| {name} | {rounds:,} | {played} | {expected:,.0f} | {theorem_bound(1, 2, 2, rounds):,.0f} |"


def main() -> None:
    """Print the tables."""
    rng = np.random.default_rng(0)
    print("| leak | T | regret drawn | closed form | bound of Theorem 4.1 |\n|---|---|---|---|---|")
    for T in (*PLAYED, *LONG):
        drawn = [sojourn_regret(1 / T, T, rng) for _ in range(RUNS)] if T in PLAYED else []
        print(row("1/T", T, drawn, leaky_regret(1 / T, T)), flush=True)
    for T in (*PLAYED, *LONG):
        drawn = [sojourn_regret(prior_leak(rng), T, rng) for _ in range(RUNS)] if T in PLAYED else []
        print(row("from the prior", T, drawn, bayesian_regret(T)), flush=True)
    agent = [played_regret(1 / AGENT_ROUNDS, np.array([1 / AGENT_ROUNDS]), AGENT_ROUNDS, seed) for seed in range(80)]
    print("\n" + row("1/T, the agent", AGENT_ROUNDS, agent, leaky_regret(1 / AGENT_ROUNDS, AGENT_ROUNDS)))


if __name__ == "__main__":
    main()
