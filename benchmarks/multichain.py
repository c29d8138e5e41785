"""Models with many end components: planning by components against one linear program on HiGHS, in one run.

    python benchmarks/multichain.py                      # 1,000 and 2,000 states, both ways
    python benchmarks/multichain.py 10000 100000 --no-lp # HiGHS had not ended after 20 minutes at 10,000

Clusters of 1 to 200 states lie in layers between transient states. Inside a cluster every state leads to some others of
it; in every tenth an action leaves it for later layers. Transient states lead on, and a few of them back.
"""

import argparse
import time

import numpy as np
from scipy.sparse import csr_array

from psconrl import CMDP, evaluate, plan
from psconrl.markov.structure import end_components

ACTIONS, SUCCESSORS = 3, 4


def clusters(n_states: int, m: int, seed: int = 0, largest: int = 200) -> CMDP:
    """A model with the given number of states and m constraints, each halfway between its bounds."""
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    while sum(sizes) < n_states:
        sizes.append(int(rng.choice([1, 1, 5, 20, largest])))
    kinds = rng.random(len(sizes)) < 0.4  # transient
    kinds[-3:] = False
    of_state = np.repeat(np.arange(len(sizes)), sizes)[:n_states]
    begin = np.searchsorted(of_state, np.arange(len(sizes) + 1))
    s = np.repeat(np.arange(n_states), ACTIONS)
    action = np.tile(np.arange(ACTIONS), n_states)
    block = of_state[s]
    passing = kinds[block]
    leaves = passing | ((action == ACTIONS - 1) & (rng.random(s.size) < 0.1))
    last = begin[-1]
    onward = np.minimum(begin[block + 1], begin[-4])  # the first state of a later block
    targets = np.empty((s.size, SUCCESSORS), dtype=np.int64)
    for j in range(SUCCESSORS):
        u = rng.random(s.size)
        own = begin[block] + (u * (begin[block + 1] - begin[block])).astype(np.int64)
        ahead = onward + (u**3 * (last - onward)).astype(np.int64)
        back = passing & (rng.random(s.size) < 0.3)
        targets[:, j] = np.where(leaves & ~back, ahead, own)
    targets[leaves, 0] = (onward + (rng.random(s.size) ** 3 * (last - onward)).astype(np.int64))[leaves]
    # A ring through every cluster makes it strongly connected.
    ring = np.where(s + 1 < begin[block + 1], s + 1, begin[block])
    targets[~leaves & (action == 0), 0] = ring[~leaves & (action == 0)]
    p = rng.random(targets.shape) + 0.1
    p /= p.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(s.size), SUCCESSORS)
    P = csr_array((p.ravel(), (rows, targets.ravel())), shape=(s.size, n_states))
    costs = rng.random((m + 1, n_states, ACTIONS))
    model = CMDP(P, costs, np.ones(m))
    if not m:
        return model
    cheap = plan(CMDP(P, costs[:1])).policy  # the spending of the cheapest policy, and the least possible
    spent = np.array([plan(CMDP(P, costs[i : i + 1])).costs[0] for i in range(1, m + 1)])
    return model.with_thresholds(0.5 * (evaluate(model, cheap).costs[1:] + spent) + 0.02 * (m > 1))


def main() -> None:
    """Print one row per model."""
    read = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    read.add_argument("states", type=int, nargs="*", default=[1000, 2000])
    read.add_argument("--limits", type=int, nargs="*", default=[0, 1])
    read.add_argument("--no-lp", action="store_true")
    asked = read.parse_args()
    plan(clusters(300, 1))
    print("states, limits, end components: seconds by components, by HiGHS; ratio; both values")
    for n in asked.states:
        for m in asked.limits:
            model = clusters(n, m)
            began = time.perf_counter()
            ours = plan(model)
            first = time.perf_counter() - began
            line = f"{n}, {m}, {len(end_components(model))}: {first:.2f}"
            print(line, ours, f"holds {ours.certificate.holds}", ours.note, flush=True)
            if not asked.no_lp:
                began = time.perf_counter()
                referee = plan(model, method="lp")
                second = time.perf_counter() - began
                print(f"  HiGHS {second:.2f}, {second / first:.1f} times as long;", referee, flush=True)


if __name__ == "__main__":
    main()
