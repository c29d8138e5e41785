"""The dense Markov chain of a policy, its costs, and biases relative to its stationary distribution."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstInts, ConstMatrix, ConstTables, ConstVector, Matrix, Vector
from cython.cimports.psconrl.kernels.graphs.successors import check_numbers


def gather_rows(P, rows, costs, chain, cost):
    """Write the given rows of P to the chain (S, S), and their costs to cost (q, S)."""
    n, q = rows.shape[0], costs.shape[0]
    for s in range(n):
        row = rows[s]
        for j in range(n):
            chain[s, j] = P[row, j]
        for i in range(q):
            cost[i, s] = costs[i, row]


def gathered(P: ConstMatrix, rows: ConstInts, costs: ConstMatrix):
    """Return the chain (S, S) made of the given rows of P, and its costs (q, S) out of those of all rows."""
    n, q = rows.shape[0], costs.shape[0]
    if P.shape[1] != n or costs.shape[1] != P.shape[0]:
        raise ValueError("transitions (rows, S), one row for each of S states, and costs (q, rows) are needed")
    check_numbers(rows, P.shape[0], "there is no such row")
    chain, cost = np.empty((n, n)), np.empty((q, n))
    to: Matrix = chain
    c: Matrix = cost
    with cython.nogil:
        gather_rows(P, rows, costs, to, c)
    return chain, cost


def centred(biases: ConstMatrix, stationary: ConstVector):
    """Return biases (q, S) minus their means under the stationary distribution."""
    q, n = biases.shape[0], biases.shape[1]
    if stationary.shape[0] != n:
        raise ValueError("biases (q, S) and a distribution (S,) are needed")
    result = np.empty((q, n))
    r: Matrix = result
    for i in range(q):
        mean: cython.double = 0.0
        for s in range(n):
            mean += stationary[s] * biases[i, s]
        for s in range(n):
            r[i, s] = biases[i, s] - mean
    return result


def mix_rows(P, policy, chain):
    """Compute ``mixed_rows`` in a given array."""
    n, A = policy.shape[0], policy.shape[1]
    for s in range(n):
        for j in range(n):
            chain[s, j] = 0.0
        for a in range(A):
            p: cython.double = policy[s, a]
            if p > 0.0:
                for j in range(n):
                    chain[s, j] += p * P[s * A + a, j]


def mixed_rows(P: ConstMatrix, policy: ConstMatrix):
    """Return the chain (S, S) of a policy (S, A) under dense transitions (S*A, S)."""
    n = policy.shape[0]
    if P.shape[0] != n * policy.shape[1] or P.shape[1] != n:
        raise ValueError("transitions (S*A, S) and a policy (S, A) are needed")
    chain = np.empty((n, n))
    to: Matrix = chain
    mix_rows(P, policy, to)
    return chain


def mix_costs(costs, policy, mixed, base):
    """Compute ``mixed_costs`` in given arrays."""
    for i in range(costs.shape[0]):
        for s in range(policy.shape[0]):
            total: cython.double = 0.0
            for a in range(policy.shape[1]):
                total += policy[s, a] * costs[i, s, a]
            mixed[i, s] = total
            if s == 0 or abs(total) < abs(base[i]):
                base[i] = total
        for s in range(policy.shape[0]):
            mixed[i, s] -= base[i]


def mixed_costs(costs: ConstTables, policy: ConstMatrix):
    """Return the costs (q, S) of a policy (S, A), relative to the smallest in absolute value, and that base (q,)."""
    q, n, A = costs.shape[0], costs.shape[1], costs.shape[2]
    if policy.shape[0] != n or policy.shape[1] != A:
        raise ValueError("costs (q, S, A) and a policy (S, A) are needed")
    result, smallest = np.empty((q, n)), np.empty(q)
    mixed: Matrix = result
    base: Vector = smallest
    mix_costs(costs, policy, mixed, base)
    return result, smallest
