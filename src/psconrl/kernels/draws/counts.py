"""Transition counts: sorting into a tally, sums, and their likelihood under the mass of a Dirichlet prior.

A tally holds the numbers of observed transitions, ascending, and the count of each (``posterior/sparse_counts.py``).
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import (
    ConstIntMatrix,
    ConstInts,
    ConstMatrix,
    ConstVector,
    Flags,
    IntMatrix,
    Ints,
    Matrix,
    Vector,
)
from cython.cimports.psconrl.kernels.arithmetic.special import exp, lgamma, log

_INF = cython.declare(cython.double, float("inf"))
# Up to this count, a ratio of gamma functions is faster as a product.
_FEW = cython.declare(cython.Py_ssize_t, 10)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _place(numbers: ConstInts, wanted: cython.Py_ssize_t, low: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the first position from ``low`` on with a number of at least ``wanted``."""
    high: cython.Py_ssize_t = numbers.shape[0]
    while low < high:
        middle: cython.Py_ssize_t = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
def _check_rising(numbers: ConstInts):
    """Raise a ValueError unless the numbers of a tally are strictly ascending."""
    fits: cython.bint = True
    for i in range(1, numbers.shape[0]):
        fits &= numbers[i - 1] < numbers[i]
    if not fits:
        raise ValueError("the numbers of a tally must rise")


def sorted_log(log: ConstInts):
    """Return the distinct numbers of a log, sorted, and the count of each."""
    numbers = np.sort(log)
    times = np.empty_like(numbers)
    x: Ints = numbers
    t: Ints = times
    n: cython.Py_ssize_t = 0
    for i in range(x.shape[0]):
        if n > 0 and x[n - 1] == x[i]:
            t[n - 1] += 1
        else:
            x[n] = x[i]
            t[n] = 1
            n += 1
    return numbers[:n].copy(), times[:n].copy()


def merged(numbers: ConstInts, times: Ints, new_numbers: ConstInts, new_times: ConstInts):
    """Return the sum of two tallies; None if the first has all numbers of the second, and is updated in place."""
    n, new = numbers.shape[0], new_numbers.shape[0]
    if times.shape[0] != n or new_times.shape[0] != new:
        raise ValueError("every number has its times")
    _check_rising(new_numbers)
    missing: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    for i in range(new):
        at = _place(numbers, new_numbers[i], at)
        missing += at == n or numbers[at] != new_numbers[i]
    if missing == 0:
        at = 0
        for i in range(new):
            at = _place(numbers, new_numbers[i], at)
            times[at] += new_times[i]
        return None
    _check_rising(numbers)  # only here: most tallies are much longer than the one added
    all_numbers, all_times = np.empty(n + missing, np.int64), np.empty(n + missing, np.int64)
    x: Ints = all_numbers
    t: Ints = all_times
    old: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for i in range(new):
        at = _place(numbers, new_numbers[i], old)
        while old < at:
            x[k] = numbers[old]
            t[k] = times[old]
            old += 1
            k += 1
        x[k] = new_numbers[i]
        t[k] = new_times[i]
        if old < n and numbers[old] == new_numbers[i]:
            t[k] += times[old]
            old += 1
        k += 1
    while old < n:
        x[k] = numbers[old]
        t[k] = times[old]
        old += 1
        k += 1
    return all_numbers, all_times


def add_to_table(table: IntMatrix, numbers: ConstInts, times: ConstInts):
    """Add a tally to a dense table (S*A, S)."""
    n_states = table.shape[1]
    if times.shape[0] != numbers.shape[0]:
        raise ValueError("every transition has its times")
    for i in range(numbers.shape[0]):
        number: cython.Py_ssize_t = numbers[i]
        if not 0 <= number < table.shape[0] * n_states:
            raise ValueError("there are transitions that the table does not have")
        table[number // n_states, number % n_states] += times[i]


def visits_of(numbers: ConstInts, times: ConstInts, n_pairs: cython.Py_ssize_t, n_states: cython.Py_ssize_t):
    """Return the number of visits to each pair, (S*A,)."""
    if times.shape[0] != numbers.shape[0]:
        raise ValueError("every transition has its times")
    visits = np.zeros(n_pairs, np.int64)
    v: Ints = visits
    for i in range(numbers.shape[0]):
        if not 0 <= numbers[i] < n_pairs * n_states:
            raise ValueError("there are transitions from pairs that there are not")
        v[numbers[i] // n_states] += times[i]
    return visits


def add_pairs(visits: Ints, cost_sums: Matrix, new_visits: ConstInts, new_sums: ConstMatrix):
    """Add new statistics to old ones. A short episode visits few pairs: only these are touched."""
    q, pairs = cost_sums.shape[0], cost_sums.shape[1]
    if new_sums.shape[0] != q or new_sums.shape[1] != pairs:
        raise ValueError("old and new costs must have the same shape")
    if visits.shape[0] != pairs or new_visits.shape[0] != pairs:
        raise ValueError("every pair has its visits")
    with cython.nogil:
        for pair in range(pairs):
            if new_visits[pair] != 0:
                visits[pair] += new_visits[pair]
                for i in range(q):
                    cost_sums[i, pair] += new_sums[i, pair]


def widen(extremes: Matrix, visits: ConstInts, cost_sums: ConstMatrix, thresholds: ConstVector):
    """Update the least and the largest average cost of a pair, minus the thresholds (2, m)."""
    m, pairs = thresholds.shape[0], visits.shape[0]
    if extremes.shape[0] != 2 or extremes.shape[1] != m or cost_sums.shape[0] != m + 1 or cost_sums.shape[1] != pairs:
        raise ValueError("extremes (2, m), visits (S*A,) and costs (m+1, S*A) are needed")
    for i in range(m):
        for pair in range(pairs):
            if visits[pair] != 0:
                over: cython.double = cost_sums[i + 1, pair] / cython.cast(cython.double, visits[pair]) - thresholds[i]
                extremes[0, i] = min(extremes[0, i], over)
                extremes[1, i] = max(extremes[1, i], over)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _likelihood_of_row(
    likelihood: Matrix,
    row: cython.Py_ssize_t,
    times: ConstInts,
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    share: ConstVector,
    total: cython.double,
    n: cython.double,
    grid: ConstVector,
) -> cython.void:
    """Add the log-likelihood of n counts, under every mass shared out by weights."""
    for k in range(grid.shape[0]):
        mass: cython.double = grid[k]
        unit: cython.double = mass / total
        last: cython.double = -1.0
        base: cython.double = 0.0
        value: cython.double = lgamma(mass) - lgamma(mass + n)
        for e in range(low, high):
            if share[e - low] <= 0.0:
                continue
            alpha: cython.double = unit * share[e - low]
            if times[e] <= _FEW:
                product: cython.double = alpha
                for i in range(1, times[e]):
                    product *= alpha + i
                value += log(product)
                continue
            if alpha != last:
                last = alpha
                base = lgamma(alpha)
            value += lgamma(alpha + times[e]) - base
        likelihood[row, k] = value


def update_likelihood(
    likelihood: Matrix,
    seen: Ints,
    visits: ConstInts,
    numbers: ConstInts,
    times: ConstInts,
    stored: ConstInts,
    weights: ConstVector,
    rest: ConstVector,
    total: ConstVector,
    grid: ConstVector,
    n_states: cython.Py_ssize_t,
):
    """Update log-likelihoods (rows, K) of Dirichlet-multinomial counts, for rows with new visits.

    A mass is shared out by weights: the stored ones, and ``rest`` over all states. Observed transitions without a
    weight carry no information about the mass.
    """
    rows = visits.shape[0]
    if likelihood.shape[0] != rows or likelihood.shape[1] != grid.shape[0] or seen.shape[0] != rows:
        raise ValueError("every row has a likelihood for each mass, and visits that it is of")
    if rest.shape[0] != rows or total.shape[0] != rows or n_states < 1:
        raise ValueError("every row has a rest and the total of its weights")
    if times.shape[0] != numbers.shape[0] or weights.shape[0] != stored.shape[0]:
        raise ValueError("every number has its times, every stored one its weight")
    _check_rising(numbers)
    share: Vector = np.empty(n_states)
    with cython.nogil:
        for row in range(rows):
            if visits[row] == seen[row]:
                continue
            seen[row] = visits[row]
            low = _place(numbers, row * n_states, 0)
            high = _place(numbers, (row + 1) * n_states, low)
            k: cython.Py_ssize_t = _place(stored, row * n_states, 0)
            n: cython.Py_ssize_t = 0
            for e in range(low, high):
                while k < stored.shape[0] and stored[k] < numbers[e]:
                    k += 1
                each: cython.double = rest[row] / n_states
                if k < stored.shape[0] and stored[k] == numbers[e]:
                    each += weights[k]
                share[e - low] = each
                if each > 0.0:
                    n += times[e]
            _likelihood_of_row(likelihood, row, times, low, high, share, total[row], n, grid)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _weigh(logs: ConstMatrix, row: cython.Py_ssize_t, weight: Vector) -> cython.double:
    """Write the exponentials of a row, relative to the largest; return their sum."""
    top: cython.double = -_INF
    for k in range(weight.shape[0]):
        top = max(top, logs[row, k])
    total: cython.double = 0.0
    for k in range(weight.shape[0]):
        weight[k] = 1.0 if logs[row, k] == top else exp(logs[row, k] - top)
        total += weight[k]
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _drawn(weight: ConstVector, left: cython.double) -> cython.Py_ssize_t:
    """Return the index at which the cumulative weights exceed a number; the last if they never do."""
    for k in range(weight.shape[0] - 1):
        left -= weight[k]
        if left < 0.0:
            return k
    return weight.shape[0] - 1


def draw_indices(logs: ConstMatrix, uniforms: ConstVector):
    """Draw an index for every row, with probability proportional to the exponentials of its entries."""
    rows, K = logs.shape[0], logs.shape[1]
    if uniforms.shape[0] != rows or K < 1:
        raise ValueError("every row needs entries and a random number")
    drawn = np.empty(rows, np.int64)
    d: Ints = drawn
    weight: Vector = np.empty(K)
    with cython.nogil:
        for row in range(rows):
            total: cython.double = _weigh(logs, row, weight)
            d[row] = _drawn(weight, uniforms[row] * total)
    return drawn


def add_rows(groups: ConstInts, rows: ConstMatrix, n_groups: cython.Py_ssize_t):
    """Return the sums (n_groups, K) of the rows of every group."""
    if groups.shape[0] != rows.shape[0]:
        raise ValueError("every row has a group")
    total = np.zeros((n_groups, rows.shape[1]))
    t: Matrix = total
    for row in range(rows.shape[0]):
        group: cython.Py_ssize_t = groups[row]
        if not 0 <= group < n_groups:
            raise ValueError("a row is in a group that there is not")
        for k in range(rows.shape[1]):
            t[group, k] += rows[row, k]
    return total


def draw_masses(
    likelihood: ConstMatrix,
    groups: ConstInts,
    chosen: ConstInts,
    odds: cython.double,
    uniforms: ConstMatrix,
    exceptional: Flags,
):
    """Draw the index of a mass for every row: that of its group, or one of its own if the row is an exception.

    ``odds``: prior odds of an exception, before the counts of a row; ``uniforms`` (rows, 2). The exceptions are written
    to ``exceptional``. For these, all masses are equally likely.
    """
    rows, K = likelihood.shape[0], likelihood.shape[1]
    if groups.shape[0] != rows or exceptional.shape[0] != rows or K < 1:
        raise ValueError("every row has a group, and may be an exception")
    if uniforms.shape[0] != rows or uniforms.shape[1] != 2:
        raise ValueError("every row needs two random numbers")
    for row in range(rows):
        if not 0 <= groups[row] < chosen.shape[0]:
            raise ValueError("a row is in a group that there is not")
    for g in range(chosen.shape[0]):
        if not 0 <= chosen[g] < K:
            raise ValueError("there is no such mass")
    drawn = np.empty(rows, np.int64)
    d: Ints = drawn
    weight: Vector = np.empty(K)
    with cython.nogil:
        for row in range(rows):
            usual: cython.Py_ssize_t = chosen[groups[row]]
            total: cython.double = _weigh(likelihood, row, weight)
            own_mass: cython.double = odds * total / K
            exceptional[row] = uniforms[row, 0] * (weight[usual] + own_mass) < own_mass
            d[row] = _drawn(weight, uniforms[row, 1] * total) if exceptional[row] else usual
    return drawn


def spread_mass(unit: ConstVector, weights: ConstMatrix, transitions: ConstIntMatrix):
    """Return the posterior parameters (S*A, S): the counts, plus in every row its unit times the weights."""
    n, S = weights.shape[0], weights.shape[1]
    if unit.shape[0] != n or transitions.shape[0] != n or transitions.shape[1] != S:
        raise ValueError("weights and transitions (S*A, S) are needed, and a unit for every row")
    alpha = np.empty((n, S))
    a: Matrix = alpha
    with cython.nogil:
        for row in range(n):
            for j in range(S):
                a[row, j] = transitions[row, j] + unit[row] * weights[row, j]
    return alpha
