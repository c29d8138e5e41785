"""Random models of many difficult kinds, built from a seed so that a failure is reproducible."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from psconrl import CMDP

KINDS = ("dense", "sparse", "near_deterministic", "periodic", "tied", "degenerate", "near_reducible", "masked")


def examples(number: int) -> settings:
    """Number of examples of a test: the profile of Hypothesis in use says which percentage of it (``conftest``)."""
    return settings(max_examples=max(1, number * settings().max_examples // 100))


def transitions(kind: str, S: int, A: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "sparse":
        P = np.zeros((S * A, S))
        for row in P:
            successors = rng.choice(S, size=min(2, S), replace=False)
            row[successors] = rng.dirichlet(np.ones(successors.size))
    elif kind == "near_deterministic":
        P = rng.dirichlet(np.full(S, 0.05), size=S * A)
    elif kind == "periodic":  # every action steps round a ring, one way or the other
        P = np.zeros((S * A, S))
        P[np.arange(S * A), (np.arange(S * A) // A + rng.choice((1, -1), size=S * A)) % S] = 1.0
    elif kind == "degenerate":  # deterministic, many policies with the same averages
        P = np.eye(S)[rng.integers(0, S, size=S * A)]
    elif kind == "near_reducible":  # two halves joined by rare transitions
        half = np.arange(S) < S // 2
        together = np.repeat(half, A)[:, None] == half[None, :]
        leak = 10.0 ** rng.uniform(-6, -3)
        P = rng.dirichlet(np.ones(S), size=S * A) * np.where(together, 1.0, leak)
        P /= P.sum(axis=1, keepdims=True)
    else:
        P = rng.dirichlet(np.ones(S), size=S * A)
    return P


def random_cmdp(kind: str, S: int, A: int, m: int, seed: int, slack: float = 0.3) -> CMDP:
    """Thresholds lie ``slack`` of the way from a random policy's averages to the largest cost."""
    rng = np.random.default_rng(seed)
    P = transitions(kind, S, A, rng)
    costs = rng.random((m + 1, S, A))
    if kind == "tied":
        costs = costs.round()
    available = None
    if kind == "masked":
        available = rng.random((S, A)) < 0.6
        available[np.arange(S), rng.integers(0, A, size=S)] = True
    initial = rng.dirichlet(np.ones(S))
    model = CMDP(csr_array(P) if kind == "sparse" else P, costs, np.full(m, 2.0), initial=initial, available=available)
    if m == 0:
        return model
    from psconrl import evaluate

    policy = rng.random((S, A)) * model.available
    averages = evaluate(model, policy / policy.sum(axis=1, keepdims=True)).costs[1:]
    return model.with_thresholds(averages + slack * (costs[1:].max(axis=(1, 2)) - averages))


@st.composite
def cmdps(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, max_constraints: int = 5) -> CMDP:
    """Hypothesis strategy over all kinds, feasible and infeasible."""
    return random_cmdp(
        draw(st.sampled_from(kinds)),
        S=draw(st.integers(1, 9)),
        A=draw(st.integers(1, 4)),
        m=draw(st.integers(0, max_constraints)),
        seed=draw(st.integers(0, 2**32 - 1)),
        slack=draw(st.sampled_from((-0.5, -0.1, 0.0, 0.02, 0.3, 1.0))),
    )


def tandem(side=9, limit=5.0):
    """Two queues in tandem, each slow or fast: some hundred states, sparse."""
    S, A = side * side, 4
    first, second = np.divmod(np.arange(S), side)
    rows, columns, data = [], [], []
    power = np.zeros((S, A))
    for a in range(A):
        rates = 0.25, 0.375 if a & 1 else 0.28, 0.375 if a & 2 else 0.28
        power[:, a] = (a & 1) + (a >> 1)
        stay = np.ones(S)
        for to, possible, rate in (
            (np.arange(S) + side, first < side - 1, rates[0]),
            (np.arange(S) - side + 1, (first > 0) & (second < side - 1), rates[1]),
            (np.arange(S) - 1, second > 0, rates[2]),
        ):
            p = np.where(possible, rate, 0.0)
            rows.append(np.arange(S) * A + a), columns.append(np.where(possible, to, 0)), data.append(p)
            stay -= p
        rows.append(np.arange(S) * A + a), columns.append(np.arange(S)), data.append(stay)
    P = csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(S * A, S))
    P.eliminate_zeros()
    waiting = np.repeat((first + second)[:, None], A, axis=1).astype(float)
    return CMDP(P, [power, waiting], [limit])
