"""Fewer randomised states: two optimal policies on either side of a threshold that differ in as few states as possible.

With one constraint, policies between two optimal ones may be optimal too. Half of the states in which the two differ
are switched, and the half that still straddles the threshold is kept, as long as the policies in between are optimal.
"""

from fractions import Fraction

from psconrl.planning.exact.policy_iteration import RationalColumn, RationalOracle, priced_column


def fewer_randomised(
    oracle: RationalOracle, columns: list[RationalColumn], shares: list[Fraction], weights: list[Fraction]
) -> tuple[list[RationalColumn], list[Fraction]]:
    """Return policies and shares with the same averages as these; unchanged unless there are two, of one constraint."""
    if len(columns) != 2 or len(weights) != 2 or weights[0] == 0:
        return columns, shares
    level = sum(share * column.averages[1] for share, column in zip(shares, columns, strict=True))
    low, high = sorted(columns, key=lambda column: column.averages[1])
    price = priced_column(weights, low)
    while True:
        differing = [s for s, (a, b) in enumerate(zip(low.actions, high.actions, strict=True)) if a != b]
        if len(differing) <= 1:
            break
        half = set(differing[: len(differing) // 2])
        between = oracle.column([(high if s in half else low).actions[s] for s in range(len(low.actions))])
        if priced_column(weights, between) != price:
            break
        low, high = (between, high) if between.averages[1] <= level else (low, between)
    share = (level - low.averages[1]) / (high.averages[1] - low.averages[1])
    return ([low, high], [1 - share, share]) if share else ([low], [Fraction(1)])
