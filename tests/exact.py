"""Reference solver in rational arithmetic: evaluates every deterministic policy of a tiny model without rounding.

In a weakly communicating model the reachable averages are the convex hull of those of the closed classes of all
deterministic policies. The numbers of a model are taken as the doubles they are; the diagonal entry of a row is one
minus the rest.
"""

import itertools
from fractions import Fraction

import numpy as np

from psconrl import CMDP

ZERO, ONE = Fraction(0), Fraction(1)


def rationals(values):
    return [Fraction(float(x)) for x in values]


def closed_classes(rows):
    """The closed classes of a chain given as rows of Fractions."""
    n = len(rows)
    reach = [{s} for s in range(n)]
    for s in range(n):
        stack = [s]
        while stack:
            for j, p in enumerate(rows[stack.pop()]):
                if p > 0 and j not in reach[s]:
                    reach[s].add(j)
                    stack.append(j)
    return {frozenset(reach[s]) for s in range(n) if all(reach[j] == reach[s] for j in reach[s])}


def stationary(rows, states):
    """The stationary distribution of a closed class, by censoring one state after the other."""
    states = sorted(states)
    W = [[rows[i][j] for j in states] for i in states]
    n = len(states)
    for k in range(n - 1, 0, -1):
        out = sum(W[k][:k], ZERO)
        for i in range(k):
            W[i][k] /= out
            for j in range(k):
                W[i][j] += W[i][k] * W[k][j]
    mass = [ONE]
    for k in range(1, n):
        mass.append(sum((mass[i] * W[i][k] for i in range(k)), ZERO))
    total = sum(mass, ZERO)
    return {s: x / total for s, x in zip(states, mass, strict=True)}


def chain_of(P, policy):
    """The chain (S, S) of a policy (S, A) of Fractions; the diagonal is what is left."""
    S, A = len(policy), len(policy[0])
    rows = []
    for s in range(S):
        row = [sum((policy[s][a] * P[s * A + a][j] for a in range(A)), ZERO) for j in range(S)]
        row[s] = ONE - sum((x for j, x in enumerate(row) if j != s), ZERO)
        rows.append(row)
    return rows


def points(cmdp: CMDP):
    """The averages (m+1,) of every closed class of every deterministic policy, and its states."""
    A = cmdp.n_actions
    P = [rationals(row) for row in np.asarray(cmdp.transition)]
    C = [[rationals(row) for row in table] for table in cmdp.costs]
    found = set()
    for actions in itertools.product(*(np.flatnonzero(mask).tolist() for mask in cmdp.available)):
        rows = chain_of(P, [[Fraction(int(a == b)) for b in range(A)] for a in actions])
        for states in closed_classes(rows):
            mu = stationary(rows, states)
            found.add(tuple(sum((x * c[s][actions[s]] for s, x in mu.items()), ZERO) for c in C))
    return sorted(found)


def optimum(cmdp: CMDP):
    """The exact optimal value, as a cost, or None if infeasible; and the least that the largest excess can be."""
    reached = points(cmdp)
    tau = rationals(cmdp.thresholds)
    if not tau:
        return min(p[0] for p in reached), ZERO
    if len(tau) == 1:
        least = min(p[1] for p in reached) - tau[0]
        if least > 0:
            return None, least
        safe = [p for p in reached if p[1] <= tau[0]]
        rest = [p for p in reached if p[1] > tau[0]]
        best = min(p[0] for p in safe)
        for p in safe:
            for q in rest:
                share = (tau[0] - p[1]) / (q[1] - p[1])
                best = min(best, p[0] + share * (q[0] - p[0]))
        return best, least
    excess = simplex(
        [ONE] + [ZERO] * len(reached),
        [[-ONE, *(p[i + 1] - tau[i] for p in reached)] for i in range(len(tau))],
        phase_one=True,
    )
    if excess > 0:
        return None, excess
    return simplex([p[0] for p in reached], [[p[i + 1] - tau[i] for p in reached] for i in range(len(tau))]), excess


def simplex(costs, rows, phase_one=False):
    """min costs.w subject to rows.w <= 0, the weights of sum one; Bland's rule.

    In phase one the first column is the excess over all limits, and no part of the sum.
    """
    m, n = len(rows), len(costs)
    big = [ZERO if phase_one and j == 0 else ONE for j in range(n)]
    # Columns: given ones, slacks, then one artificial for the sum. Two-phase with artificials in all rows.
    A = [[*row, *(Fraction(int(i == k)) for k in range(m)), ZERO] for i, row in enumerate(rows)]
    A.append([*big, *([ZERO] * m), ONE])
    b = [ZERO] * m + [ONE]
    basis = [n + i for i in range(m)] + [n + m]
    for objective in ([ZERO] * (n + m) + [ONE], [*costs, *([ZERO] * (m + 1))]):
        last = n + m + 1 if objective[-1] else n + m
        while True:
            prices = [objective[basis[i]] for i in range(m + 1)]
            entering = next(
                (
                    j
                    for j in range(last)
                    if j not in basis and objective[j] - sum((prices[i] * A[i][j] for i in range(m + 1)), ZERO) < 0
                ),
                None,
            )
            if entering is None:
                break
            ratios = [(b[i] / A[i][entering], basis[i], i) for i in range(m + 1) if A[i][entering] > 0]
            leave = min(ratios)[2]
            pivot = A[leave][entering]
            A[leave] = [x / pivot for x in A[leave]]
            b[leave] /= pivot
            for i in range(m + 1):
                if i != leave and A[i][entering]:
                    factor = A[i][entering]
                    A[i] = [x - factor * y for x, y in zip(A[i], A[leave], strict=True)]
                    b[i] -= factor * b[leave]
            basis[leave] = entering
    return sum((objective[basis[i]] * b[i] for i in range(m + 1)), ZERO)


def averages(cmdp: CMDP, policy):
    """The exact averages (m+1,) of a stationary policy from the initial distribution."""
    P = [rationals(row) for row in np.asarray(cmdp.transition)]
    pi = []
    for row in policy:
        exact = rationals(row)
        pi.append([x / sum(exact, ZERO) for x in exact])
    rows = chain_of(P, pi)
    classes = [sorted(states) for states in closed_classes(rows)]
    recurrent = {s for states in classes for s in states}
    result = [ZERO] * len(cmdp.costs)
    start = rationals(cmdp.initial)
    start = [x / sum(start, ZERO) for x in start]
    for states in classes:
        share = sum((start[s] for s in states), ZERO) + absorbed(rows, recurrent, set(states), start)
        mu = stationary(rows, states)
        for i, table in enumerate(cmdp.costs):
            cost = [sum((p * Fraction(float(c)) for p, c in zip(pi[s], table[s], strict=True)), ZERO) for s in states]
            result[i] += share * sum((mu[s] * c for s, c in zip(states, cost, strict=True)), ZERO)
    return result


def absorbed(rows, recurrent, states, start):
    """The probability of being absorbed in a class from the transient part of the initial distribution."""
    transient = [s for s in range(len(rows)) if s not in recurrent]
    W = [[rows[i][j] for j in transient] for i in transient]
    x = [sum((rows[i][j] for j in states), ZERO) for i in transient]
    n = len(transient)
    for k in range(n - 1, -1, -1):
        stay = ONE - W[k][k]
        for i in range(n):
            if i != k and W[i][k]:
                factor = W[i][k] / stay
                x[i] += factor * x[k]
                for j in range(n):
                    W[i][j] += factor * W[k][j] if j != k else ZERO
                W[i][k] = ZERO
    x = [x[k] / (ONE - W[k][k]) for k in range(n)]
    return sum((start[s] * p for s, p in zip(transient, x, strict=True)), ZERO)


def rational_bound(cmdp: CMDP, plan):
    """The lower bound of a plan's certificate, min of c0 + lam (c - tau) + P h - h, without rounding."""
    h = [Fraction(float(x)) + Fraction(float(y)) for x, y in zip(plan.potential, plan.low_potential, strict=True)]
    lam = rationals(plan.multipliers)
    tau = rationals(cmdp.thresholds)
    A = cmdp.n_actions
    P = np.asarray(cmdp.transition)
    least = None
    for s, a in np.argwhere(cmdp.available):
        value = Fraction(float(cmdp.costs[0, s, a]))
        for i, price in enumerate(lam):
            value += price * (Fraction(float(cmdp.costs[i + 1, s, a])) - tau[i])
        for j in np.flatnonzero(P[s * A + a]):
            if j != s:
                value += Fraction(float(P[s * A + a, j])) * (h[j] - h[s])
        least = value if least is None else min(least, value)
    return least
