"""Families of tiny models at the ends of the range of doubles, and at the edge of what a proof in doubles can hold.

Costs near the largest that a model may have or near the smallest double, entries that differ by hundreds of orders of
magnitude, probabilities that round to zero or one, chains that mix in 1e12 rounds, limits that leave one point.
``exact_families`` lists them with the others.
"""

import numpy as np

from exact_draws import later, sizes, some_costs, some_rows, start_of
from psconrl.base.caps import LARGEST_COST

RARE = (1e-8, 1e-12, 1e-15, 1.2e-16, 1e-17, 1e-30, 1e-100, 1e-200, 1e-300, 1e-308, 5e-324)  # probabilities of a move
LARGE = (1e12, 1e15, 1e30, 1e60, 1e90, 1e99, LARGEST_COST)  # entries for "never do this"


def shape_of(rng, least=0):
    """Draw a shape (m+1, S, A) of costs."""
    return (int(rng.integers(least, 3)) + 1, *sizes(rng, states=(1, 4)))


def costs_of(rng, shape):
    """Draw ordinary costs (m+1, S, A) of at most one."""
    costs = some_costs(rng, shape[0] - 1, *shape[1:])
    return costs / max(1.0, costs.max())


def of_costs(rng, costs, P=None):
    """Return a model with costs (m+1, S, A), and random transitions unless they are given."""
    S, A = costs.shape[1:]
    return later(some_rows(rng, S, A) if P is None else P, costs, initial=start_of(rng, S))


def huge_costs(rng):
    """Costs of up to the largest size that a model may have, of either sign."""
    costs = costs_of(rng, shape_of(rng))
    for table in costs:
        if rng.random() < 0.7:
            table *= rng.choice([-1.0, 1.0], size=table.shape if rng.random() < 0.5 else ())
            table *= LARGEST_COST * rng.choice([1.0, 1.0, 1e-1, 1e-5])
    return of_costs(rng, costs)


def tiny_costs(rng):
    """Costs so small that their squares are zero; below 1e-300 doubles cannot state the averages of a proof."""
    costs = costs_of(rng, shape_of(rng))
    for table in costs:
        if rng.random() < 0.7:
            table *= rng.choice([1e-300, 1e-290, 1e-200, 1e-100])
    return of_costs(rng, costs)


def all_sizes(rng):
    """Costs of all sizes in one table."""
    costs = costs_of(rng, shape_of(rng))
    for table in costs:
        low, high = sorted(rng.uniform(-300, 100, size=2))
        table[:] = 10.0 ** rng.uniform(low, high, size=table.shape) * rng.choice([-1, 0, 1, 1], size=table.shape)
    return of_costs(rng, costs)


def high_prices(rng):
    """Constrained costs in units so large that shadow prices are 1e12 and more, or so small that they vanish."""
    costs = costs_of(rng, shape_of(rng, least=1))
    costs[1:] *= 10.0 ** rng.choice([-12.0, -15.0, -9.0, 12.0, -60.0, 60.0], size=(len(costs) - 1, 1, 1))
    return of_costs(rng, costs)


def rare_moves(rng):
    """Moves of probabilities down to the smallest double, which leave the entry of staying at 1.0."""
    costs = costs_of(rng, shape_of(rng))
    S, A = costs.shape[1:]
    P = some_rows(rng, S, A)
    for i in np.flatnonzero(rng.random(S * A) < 0.6):
        P[i] *= float(rng.choice(RARE))
        P[i, i // A] = 0.0
        P[i, i // A] = 1.0 - P[i].sum()
    return of_costs(rng, costs, P)


def nearly_apart(rng):
    """Two blocks of states between which a policy moves with tiny probabilities, or not at all."""
    costs = costs_of(rng, shape_of(rng, least=1))
    S, A = costs.shape[1:]
    block = rng.integers(0, 2, size=S)
    together = block[np.repeat(np.arange(S), A)][:, None] == block[None, :]
    leak = rng.choice([0.0, *RARE], size=(S * A, 1))
    P = np.where(together, rng.dirichlet(np.ones(S), size=S * A), 0.0)
    P /= P.sum(axis=1, keepdims=True)
    P = np.where(together, P * (1.0 - leak), leak * rng.random((S * A, S)))
    return of_costs(rng, costs, P / P.sum(axis=1, keepdims=True))


def slow_mixing(rng):
    """Walks along a line with a barrier, which mix in 1e12 rounds or more."""
    S, m = int(rng.integers(3, 7)), int(rng.integers(1, 3))
    P, barrier = np.zeros((S, 2, S)), int(rng.integers(S - 1))
    slow = float(rng.choice([1e-6, 1e-9, 1e-12, 1e-14]))
    for s in range(S):
        for a in range(2):
            up, down = rng.uniform(0.05, 0.45, size=2)
            P[s, a, min(s + 1, S - 1)] += up * (slow if s == barrier else 1.0)
            P[s, a, max(s - 1, 0)] += down * (slow if s == barrier + 1 else 1.0)
            P[s, a, s] = 0.0
            P[s, a, s] = 1.0 - P[s, a].sum()
    costs = costs_of(rng, (m + 1, S, 2))
    if rng.random() < 0.5:
        costs[1] = np.arange(S)[:, None]
    return of_costs(rng, costs, P)


def equalities(rng):
    """Two limits that leave one value of an average: at most and at least the same number."""
    costs = costs_of(rng, (2, *shape_of(rng)[1:]))
    if rng.random() < 0.3:
        costs[1] *= 10.0 ** rng.uniform(-12, 12)
    return of_costs(rng, np.vstack([costs, -costs[1:]]))


def constant_costs(rng):
    """Costs that are the same everywhere or nearly, at any size, with a threshold there or very near."""
    costs = costs_of(rng, shape_of(rng, least=1))
    for table in costs:
        if rng.random() < 0.6:
            size = float(rng.choice([0.0, 0.1, 1.0, -0.3, 1e-300, 1e99, -LARGEST_COST, 1e16]))
            table[:] = size * (1.0 - float(rng.choice([0.0, 0.0, 2.0**-53, 1e-12])) * rng.random(table.shape))
    return of_costs(rng, costs)


def never_do_this(rng):
    """Ordinary costs with a few entries of up to the largest size, of which a state may have no other."""
    costs = costs_of(rng, shape_of(rng, least=1))
    huge = rng.random(costs.shape) < rng.choice([0.1, 0.3])
    costs[huge] = rng.choice(LARGE, size=int(huge.sum())) * (1.0 if rng.random() < 0.7 else -1.0)
    P = some_rows(rng, *costs.shape[1:])
    if rng.random() < 0.3:  # the last state is hardly visited
        P[:, -1] *= float(rng.choice(RARE))
        P /= P.sum(axis=1, keepdims=True)
    return of_costs(rng, costs, P)


def extremes(rng):
    """Tables of a few values, of which most are at an end of the range, and limits at such values."""
    values = [0.0, 0.0, 1.0, -10.0, 1e-300, -1e-300, 1e-200, 1e50, LARGEST_COST, -LARGEST_COST]
    costs = rng.choice(values, size=shape_of(rng))
    model = of_costs(rng, costs)
    return model if rng.random() < 0.5 else model.with_thresholds(rng.choice(values, size=model.n_constraints))


HOSTILE = (
    huge_costs, tiny_costs, all_sizes, high_prices, rare_moves, nearly_apart, slow_mixing, equalities, constant_costs,
    never_do_this, extremes,
)  # fmt: skip
