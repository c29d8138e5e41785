r"""The terms of the PSConRL paper's proof, measured: ``python benchmarks/regret_terms.py [ROUNDS] [RUNS]``.

The proof of Lemma A.2 writes the regret of an episode as R0 + R1 + R2 + R3, where R0 compares the average of the plan
in the sample with the optimum, R1 is the randomness of the actions, R2 the sum of v(s_t) - v(s_t+1), and R3 the
difference between true and sampled transitions. It bounds R0 by sqrt(2SAT ln T), R2 by D times that, and R3 by
49 D S sqrt(A T ln(A T)).

The agent is the paper's, with Ouyang et al.'s stopping rule, and plain code apart from the planner, so that it also
checks ``psconrl-paper``.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from math import log, sqrt
from typing import NamedTuple

import numpy as np

import psconrl
from psconrl.markov.hitting_times import diameter


class Terms(NamedTuple):
    """The terms of one cost, with its regret, and the bounds of the proof."""

    regret: float
    r0: float
    r1: float
    r2: float
    r3: float
    bounds: tuple[float, float, float]  # of R0, R2, R3
    episodes: int


def proof_bounds(D: float, S: int, A: int, rounds: int) -> tuple[float, float, float]:
    """Return the bounds of Lemmas A.4, A.5 and A.6."""
    episodes = sqrt(2 * S * A * rounds * log(rounds))
    return episodes, D * episodes, 49 * D * S * sqrt(A * rounds * log(A * rounds))


def measured(
    model: psconrl.CMDP, rounds: int, prior: float | None, seed: int, cost: int = 0, state: int | None = None
) -> Terms:
    """Play the paper's agent, and return the terms for one cost; a prior of None means that the model is known.

    ``state``: the initial state, by default the model's. Samples that are infeasible are left out: there are none
    below.
    """
    S, A = model.n_states, model.n_actions
    P, costs = model.transition.toarray().reshape(S, A, S), model.costs
    rng = np.random.default_rng(seed)
    target = psconrl.plan(model).costs[0] if cost == 0 else model.thresholds[cost - 1]
    counts, sums, t, last, episodes = np.zeros((S, A, S)), np.zeros(5), 0, 1, 0
    state = int(model.initial.argmax()) if state is None else state
    known = psconrl.plan(model) if prior is None else None
    while t < rounds:
        drawn = P if prior is None else np.maximum(_dirichlet(prior + counts, rng), 1e-100)
        drawn = drawn / drawn.sum(axis=2, keepdims=True)
        best = known or psconrl.plan(psconrl.CMDP(drawn, costs, model.thresholds))
        found = psconrl.evaluate(psconrl.CMDP(drawn, costs, model.thresholds, initial=state), best.policy)
        v, average = found.biases[cost], found.gains[cost]
        before, length = counts.sum(axis=2), 0
        while t < rounds:
            action = int(rng.choice(A, p=best.policy[state]))
            after = int(rng.choice(S, p=P[state, action]))
            q = costs[cost, state, action] - average[state] + drawn[state, action] @ v
            sums += (
                costs[cost, state, action] - target,
                average[state] - target,
                q - v[state],
                v[state] - v[after],
                v[after] - drawn[state, action] @ v,
            )
            counts[state, action, after] += 1
            doubled = counts[state, action].sum() > 2 * before[state, action]
            state, t, length = after, t + 1, length + 1
            if length > last or doubled:
                break
        last, episodes = length, episodes + 1
    return Terms(*map(float, sums), proof_bounds(diameter(model), S, A, rounds), episodes)


def _dirichlet(parameters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    drawn = np.empty_like(parameters)
    for pair in np.ndindex(parameters.shape[:2]):
        drawn[pair] = rng.dirichlet(parameters[pair])
    return drawn


def main() -> None:
    """Print a table of means over the runs; there are twenty times as many where the model is known."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    models = {
        "drawn from the prior": (lambda seed: psconrl.load("dirichlet", states=5, seed=seed), 0.1, 0),
        "the same, constrained cost": (lambda seed: psconrl.load("dirichlet", states=5, seed=seed), 0.1, 1),
        "Marsrover 4x4": (lambda _: psconrl.load("marsrover-4x4"), 0.1, 0),
        "corridor": (lambda _: psconrl.load("corridor"), 0.1, 0),
        f"leaky islands, known, leak 1/{rounds}": (lambda _: psconrl.load("leaky-islands", leak=1 / rounds), None, 0),
        f"the same, leak 1/{rounds // 100}": (lambda _: psconrl.load("leaky-islands", leak=100 / rounds), None, 0),
    }
    print("| model | regret | R0 | R1 | R2 | R3 | R0, R2, R3 relative to their bounds |\n|---|---|---|---|---|---|---|")
    for name, (load, prior, cost) in models.items():
        found = [measured(load(seed), rounds, prior, seed, cost) for seed in range(runs if prior else 20 * runs)]
        mean = np.mean([terms[:5] for terms in found], axis=0)
        bounds = np.mean([terms.bounds for terms in found], axis=0)
        shares = " ".join(f"{x:.3g}" for x in mean[[1, 3, 4]] / bounds)
        print(f"| {name} | " + " | ".join(f"{x:,.1f}" for x in mean) + f" | {shares} |", flush=True)


if __name__ == "__main__":
    main()
