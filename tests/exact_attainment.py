"""Whether some stationary policy attains the optimum of a tiny model, in rational arithmetic.

Which states are recurrent depends only on the set of actions that a stationary policy uses in each state. Given these
sets, the expected visits of transient pairs and the frequencies of recurrent pairs satisfy linear equations, and every
positive solution belongs to a policy. So one linear program for each choice of sets decides.
"""

import itertools
from fractions import Fraction

import numpy as np

from exact import closed_classes, distribution, exact_rows, rationals
from exact_simplex import ONE, ZERO, least

MOST_SUPPORTS = 81  # choices of sets of actions; a linear program in rational arithmetic for each


def is_attained(cmdp, best):
    """Whether a stationary policy has the optimal value ``best`` within the thresholds; None if too many to try."""
    A = cmdp.n_actions
    P = exact_rows(cmdp)
    for tried, used in enumerate(_supports(cmdp, P)):
        if tried == MOST_SUPPORTS:
            return None
        if _attains(cmdp, P, A, used, best):
            return True
    return False


def _supports(cmdp, P):
    """Yield the sets of actions used in each state that is reached with them: {state: actions}."""
    A = cmdp.n_actions
    available = [np.flatnonzero(mask).tolist() for mask in cmdp.available]

    def extended(used, reached):
        s = min(reached - used.keys(), default=None)
        if s is None:
            yield used
            return
        for size in range(1, len(available[s]) + 1):
            for some in itertools.combinations(available[s], size):
                further = {j for a in some for j, p in enumerate(P[s * A + a]) if p > 0}
                yield from extended({**used, s: some}, reached | further)

    return extended({}, set(np.flatnonzero(cmdp.initial > 0).tolist()))


def _attains(cmdp, P, A, used, best):
    """Whether a policy that uses exactly these actions attains the optimum: the largest least entry is positive."""
    S, m = cmdp.n_states, cmdp.n_constraints
    graph = [[ZERO] * S for _ in range(S)]
    for s, some in used.items():
        for a in some:
            graph[s] = [x + y for x, y in zip(graph[s], P[s * A + a], strict=True)]
    classes = [states for states in closed_classes(graph) if states <= used.keys()]
    recurrent = set().union(*classes)
    pairs = [(s, a) for s, some in used.items() for a in some]
    start = distribution(cmdp.initial)
    # Columns: the least entry t, what each pair has beyond t, the slack of each threshold.
    n = len(pairs)
    rows, sides = [], []

    def add(entries, slack, side):
        total = sum(entries, ZERO)
        rows.append([total, *entries, *(Fraction(int(k == slack)) for k in range(m))])
        sides.append(side)

    def inflow(j, s, a):
        return P[s * A + a][j] if j != s else ZERO

    def outflow(s, a):
        return sum((p for j, p in enumerate(P[s * A + a]) if j != s), ZERO)

    for j in sorted(used):
        balance = [
            (outflow(s, a) if s == j else ZERO) - (inflow(j, s, a) if (s in recurrent) == (j in recurrent) else ZERO)
            for s, a in pairs
        ]
        add(balance, None, ZERO if j in recurrent else start[j])
    for states in classes:
        mass = [
            ONE if s in states else ZERO if s in recurrent else -sum((inflow(j, s, a) for j in states), ZERO)
            for s, a in pairs
        ]
        add(mass, None, sum((start[s] for s in states), ZERO))
    for i, limit in enumerate([best, *rationals(cmdp.thresholds)]):
        paid = [Fraction(float(cmdp.costs[i, s, a])) if s in recurrent else ZERO for s, a in pairs]
        add(paid, i - 1 if i else None, limit)
    largest = least([-ONE, *([ZERO] * (n + m))], rows, sides)
    return largest is not None and largest < 0
