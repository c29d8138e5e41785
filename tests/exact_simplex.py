"""The simplex method in rational arithmetic: no tolerance anywhere, Bland's rule, two phases."""

from fractions import Fraction

ZERO, ONE = Fraction(0), Fraction(1)


def least(costs, rows, sides):
    """Return the minimum of costs.x subject to rows.x = sides, x >= 0; None if infeasible. It must be bounded."""
    n, k = len(costs), len(rows)
    table = []
    for i, (row, side) in enumerate(zip(rows, sides, strict=True)):
        sign = -ONE if side < 0 else ONE
        artificial = [Fraction(int(i == j)) for j in range(k)]
        table.append([*(sign * x for x in row), *artificial, sign * side])
    basis = list(range(n, n + k))
    _descend(table, basis, [ZERO] * n + [ONE] * k, n + k)
    if any(table[i][-1] > 0 for i in range(k) if basis[i] >= n):
        return None
    for i in reversed(range(k)):  # an artificial variable at zero leaves, or its row is redundant
        if basis[i] >= n:
            entering = next((j for j in range(n) if table[i][j]), None)
            if entering is None:
                del table[i], basis[i]
            else:
                _pivot(table, basis, i, entering)
    prices = [*costs, *([ZERO] * k)]
    _descend(table, basis, prices, n)
    return sum((prices[j] * row[-1] for j, row in zip(basis, table, strict=True)), ZERO)


def least_within(costs, rows, sides):
    """Return the minimum of costs.x subject to rows.x <= sides and x >= 0 of sum one; None if infeasible."""
    k = len(rows)
    slack = [[Fraction(int(i == j)) for j in range(k)] for i in range(k)]
    equalities = [[*row, *more] for row, more in zip(rows, slack, strict=True)]
    return least([*costs, *([ZERO] * k)], [*equalities, [*([ONE] * len(costs)), *([ZERO] * k)]], [*sides, ONE])


def _descend(table, basis, prices, last):
    """Pivot until no column before ``last`` improves; Bland's rule prevents cycles."""
    reduced = [*prices, ZERO]
    for j, row in zip(basis, table, strict=True):
        if prices[j]:
            reduced = [x - prices[j] * y for x, y in zip(reduced, row, strict=True)]
    while True:
        entering = next((j for j in range(last) if reduced[j] < 0), None)
        if entering is None:
            return
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(table) if row[entering] > 0]
        if not ratios:
            raise ArithmeticError("the linear program is unbounded")
        leaving = min(ratios)[2]
        _pivot(table, basis, leaving, entering)
        factor = reduced[entering]
        reduced = [x - factor * y for x, y in zip(reduced, table[leaving], strict=True)]


def _pivot(table, basis, leaving, entering):
    pivot = table[leaving][entering]
    row = table[leaving] = [x / pivot if x else x for x in table[leaving]]
    for i, other in enumerate(table):
        factor = other[entering]
        if i != leaving and factor:
            table[i] = [x - factor * y if y else x for x, y in zip(other, row, strict=True)]
    basis[leaving] = entering
