"""Seeded models designed to break a planner, small enough for the reference solver in rational arithmetic."""

import numpy as np

from psconrl import CMDP
from psconrl.learning.posterior.sampled_rows import dirichlet_rows

KINDS = ("leak", "offset", "one_hot", "big_m", "zero_limit", "ordinary", "mostly_huge", "both_signs")

HUGE = ("big_m", "mostly_huge", "both_signs")


def adversarial(kind: str, seed: int) -> CMDP:
    rng = np.random.default_rng([KINDS.index(kind), seed])
    S, A, m = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.choice([0, 1, 1, 1, 2]))
    if kind in (*HUGE, "zero_limit"):
        m = max(m, 1)
    if A**S > 250:
        A = 2
    P = rng.dirichlet(np.full(S, rng.choice([0.3, 1.0])), size=S * A)
    costs = rng.random((m + 1, S, A))
    if rng.random() < 0.3:
        costs = costs.round()
    if kind == "leak":  # blocks that every action leaves with tiny probability only
        block = rng.integers(0, rng.integers(2, 4), size=S)
        leak = 10.0 ** rng.uniform(-15, -6)
        together = block[np.repeat(np.arange(S), A)][:, None] == block[None, :]
        P = np.where(together, P, leak * rng.random((S * A, S)))
        P /= P.sum(axis=1, keepdims=True)
    elif kind == "offset":
        costs += 10.0 ** rng.uniform(3, 6, size=(m + 1, 1, 1)) * rng.choice([-1, 1], size=(m + 1, 1, 1))
    elif kind == "one_hot":
        P = dirichlet_rows(np.full((S * A, S), 10.0 ** rng.uniform(-3, -1) / S), rng)
    elif kind == "big_m":
        huge = rng.random(costs.shape) < 0.25
        huge[rng.integers(0, m + 1)] &= rng.random() < 0.7
        huge &= ~huge.all(axis=2, keepdims=True)  # every state has an affordable action
        costs[huge] = 10.0 ** rng.uniform(6, 11, size=int(huge.sum()))
    elif kind == "mostly_huge":  # many actions, of which two are affordable
        S, A = int(rng.integers(1, 3)), int(rng.integers(8, 15))
        P = rng.dirichlet(np.ones(S), size=S * A)
        costs = 10.0 ** rng.uniform(6, 11, size=(m + 1, S, A))
        costs[:, :, :2] = rng.random((m + 1, S, 2))
    elif kind == "both_signs":  # a state that is hardly visited, where costs are huge and of either sign
        rare = 10.0 ** rng.uniform(-12, -6)
        P[:, -1] *= rare
        P /= P.sum(axis=1, keepdims=True)
        costs[:, -1] = rng.choice([-1, 1], size=(m + 1, A)) * 10.0 ** rng.uniform(3, 11, size=(m + 1, A))
    elif kind == "zero_limit":
        costs[1:] *= rng.random(costs[1:].shape) < 0.5
    P = np.maximum(P, 0.0)
    model = CMDP(P, costs, np.full(m, 1e30), initial=int(rng.integers(S)))
    return model.with_thresholds(_limits(kind, model, rng)) if m else model


def _limits(kind: str, model: CMDP, rng: np.random.Generator) -> np.ndarray:
    if kind == "zero_limit":
        return np.zeros(model.n_constraints)
    ordinary = np.where(np.abs(model.costs[1:]) <= 1.0, model.costs[1:], np.nan) if kind in HUGE else model.costs[1:]
    low, high = np.nanmin(ordinary, axis=(1, 2)), np.nanmax(ordinary, axis=(1, 2))
    return low + (high - low) * rng.uniform(0.05, 0.9, size=model.n_constraints)
