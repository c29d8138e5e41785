"""Fewest coin tosses: of all optimal mixtures under one constraint, one that randomises in a single state.

Any policy between two optimal ones, taking each state's action from one or the other, is optimal for the same
multiplier. So switch half of the states in which they differ and keep the pair that still straddles the threshold:
after log2(S) evaluations the two differ in one state (Beutler and Ross 1985 prove that one suffices).
"""

import numpy as np

from psconrl.arrays import Floats
from psconrl.planning.mixture import Mixture
from psconrl.planning.oracle import Column, Howard

# How far from the optimal line, in scaled cost, a policy in between may lie.
LINE_TOL = 1e-11


def fewest_coins(oracle: Howard, mixture: Mixture[Column]) -> tuple[tuple[Column, ...], Floats]:
    """Columns and shares of an equally good mixture whose two policies differ in as few states as possible."""
    columns, shares, w = mixture.answers, mixture.shares, mixture.weights
    if len(columns) != 2 or w.size != 2:
        return columns, shares
    level = float(shares @ [column.costs[1] for column in columns])
    low, high = sorted(columns, key=lambda column: float(column.costs[1]))
    while True:
        differing = np.flatnonzero(low.policy != high.policy)
        if differing.size <= 1:
            break
        policy = low.policy.copy()
        half = differing[: differing.size // 2]
        policy[half] = high.policy[half]
        between = oracle.evaluate(policy, w)
        if not np.array_equal(between.policy, policy) or abs(w @ (between.costs - low.costs)) > LINE_TOL:
            break
        low, high = (between, high) if between.costs[1] <= level else (low, between)
    width = float(high.costs[1] - low.costs[1])
    if width <= 0.0:
        return (low,), np.ones(1)
    share = min(max((level - float(low.costs[1])) / width, 0.0), 1.0)
    if share in (0.0, 1.0):
        return ((high,) if share else (low,)), np.ones(1)
    return (low, high), np.array([1.0 - share, share])
