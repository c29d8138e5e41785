"""Time of what is asked of logs: policies in thousands of draws, recommendations, robust plans of large models.

    python benchmarks/log_speed.py

Processor time, one thread. The rows are those of ``benchmarks/RESULTS.md``.
"""

import argparse
import time

import numpy as np
from scipy.sparse import csr_array

import psconrl
from log_systems import written_log
from psconrl.data.advice.improvement import improve
from psconrl.data.advice.robust import robust_plan, set_of_rows
from psconrl.data.posterior.row_posterior import RowPosterior
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.transition_beliefs import Dirichlet


def draws() -> str:
    """A policy in 10,000 draws of a model of 64 states."""
    model = psconrl.load("garnet", states=64, actions=4, branching=4, seed=1)
    log = written_log(model, np.full((64, 4), 0.25), 20_000, 0)
    policy = psconrl.plan(model).policy
    found = []
    for belief in (None, Dirichlet()):
        posterior = RowPosterior(log, belief, model.costs)
        began = time.process_time()
        posterior.averages_of(policy, 10_000, np.random.default_rng(0))
        found.append(f"{posterior.name} {time.process_time() - began:.2f} s")
    return "10,000 draws of 64 states and 4 actions, a policy drawn for and evaluated: " + ", ".join(found)


def ward() -> str:
    """A recommendation for the ward, of 1,330 states, with its system."""
    system = psconrl.load_system("ward")
    model = psconrl.load_system("ward", known=True).model_for_learning()
    careful = psconrl.plan(model.with_thresholds(model.thresholds * 0.9)).policy
    uniform = model.available / model.available.sum(axis=1, keepdims=True)
    log = written_log(model, 0.8 * careful + 0.2 * uniform, 5_000, 0, system)
    began = time.process_time()
    found = improve(log, system)
    return f"ward, {model.n_states:,} states, with its system: {time.process_time() - began:.1f} s, {found}"


def large(states: int) -> str:
    """A robust constrained plan of a large model whose possible transitions are known."""
    rng = np.random.default_rng(0)
    pairs = 3 * states
    successors = np.sort(rng.integers(states, size=(pairs, 4)), axis=1)
    while (same := (np.diff(successors, axis=1) == 0).any(axis=1)).any():
        successors[same] = np.sort(rng.integers(states, size=(int(same.sum()), 4)), axis=1)
    shares = rng.dirichlet(np.ones(4), size=pairs)
    indptr = np.arange(0, 4 * pairs + 1, 4)
    P = csr_array((shares.ravel(), successors.ravel(), indptr), shape=(pairs, states))
    costs = rng.random((2, states, 3))
    model = psconrl.CMDP(P, costs, [0.45])
    counts = Counts(states, 3, 2)
    times = rng.multinomial(2_000, shares).ravel()
    numbers = np.repeat(np.arange(pairs), 4) * states + successors.ravel()
    counts.tally.restore({"numbers": numbers[times > 0], "times": times[times > 0]})
    counts.visits += 2_000
    support = csr_array((np.ones(P.nnz), P.indices, P.indptr), shape=P.shape)
    began = time.process_time()
    sets = set_of_rows(counts, model.thresholds, model.initial, costs=model.costs, support=support)
    found = robust_plan(sets, model.thresholds, np.full((states, 3), 1 / 3))
    seconds = time.process_time() - began
    verdict = "limits proven" if found.policy is not None else "no proof"
    return f"robust plan of {states:,} states: {seconds:.1f} s, {verdict}, bounds {found.bounds.round(4)}"


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=100_000)
    options = parser.parse_args()
    print(draws(), flush=True)
    print(large(options.states), flush=True)
    print(ward(), flush=True)


if __name__ == "__main__":
    main()
