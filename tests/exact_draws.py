"""Parts of random models: sizes, costs, transitions and initial distributions."""

import numpy as np

from psconrl import CMDP

MOST_POLICIES = 260  # of models that are compared with all their deterministic policies


def later(P, costs, **options):
    """Return a model whose thresholds are still to be set."""
    costs = np.asarray(costs, dtype=float)
    open_ended = CMDP(P, costs, np.full(len(costs) - 1, 1e99), **options)
    object.__setattr__(open_ended, "thresholds", np.full(len(costs) - 1, np.nan))
    return open_ended


def sizes(rng, states=(2, 6), actions=(2, 3)):
    S, A = int(rng.integers(states[0], states[1] + 1)), int(rng.integers(actions[0], actions[1] + 1))
    return S, (2 if A**S > MOST_POLICIES else A)


def some_costs(rng, m, S, A):
    """Draw costs that are plain, whole, of a few values, or equal in all actions of a state."""
    kind = rng.integers(4)
    costs = rng.random((m + 1, S, A))
    if kind == 1:
        costs = rng.integers(0, 3, size=costs.shape).astype(float)
    elif kind == 2:
        costs = rng.choice([0.0, 0.25, 0.5, 1.0], size=costs.shape)
    elif kind == 3:
        costs[:] = costs[:, :, :1].round(2)
    return costs


def some_rows(rng, S, A, kind=None):
    """Draw transitions: full, of two successors, or deterministic."""
    kind = rng.integers(3) if kind is None else kind
    if kind == 0:
        return rng.dirichlet(np.ones(S), size=S * A)
    P = np.zeros((S * A, S))
    for row in P:
        targets = rng.choice(S, size=1 if kind == 2 else min(2, S), replace=False)
        row[targets] = rng.choice([0.5, 0.25]) if targets.size == 2 else 1.0
        row[targets[0]] += 1.0 - row.sum()
    return P


def start_of(rng, S):
    """Draw an initial state or an initial distribution."""
    if rng.random() < 0.6:
        return int(rng.integers(S))
    start = rng.dirichlet(np.ones(S)).round(3)
    return start / start.sum()
