"""Parts of a saved proof in rational numbers: for plans whose proof doubles cannot hold.

A vector is written as hexadecimal whole numbers over one denominator, which are read in linear time.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.policy_iteration import RationalOracle
from psconrl.planning.exact.rational_model import UNITY, ZERO, RationalModel, fractions_of, over_one_denominator
from psconrl.planning.exact.solve import RationalDual, dual_of
from psconrl.planning.proof.certificate import Status


def dual_record(model: RationalModel, plan: Any, reached: Bools) -> dict[str, Any]:
    """Return multipliers, potential and gains, which are None if they are equal in all reachable states."""
    dual = _dual_of(model, plan)
    prices = dual.weights[1:]
    priced = sum((w * tau for w, tau in zip(prices, model.thresholds, strict=True)), ZERO)
    gains = [g - priced for g in dual.gains]
    several = len({gains[s] for s in np.flatnonzero(reached)}) > 1
    return {
        "multipliers": vector_record(prices),
        "potential": vector_record(dual.potential),
        "low_potential": [0.0] * model.n_states,
        "gains": vector_record(gains) if several else None,
    }


def _dual_of(model: RationalModel, plan: Any) -> RationalDual:
    """Return the dual point of a plan in rational numbers; one in doubles with the best potential for its prices."""
    weights = [ZERO if plan.status is Status.INFEASIBLE else UNITY]
    if plan.exact is not None:
        return RationalDual(weights + list(plan.exact.multipliers), list(plan.exact.potential), list(plan.exact.gains))
    weights += fractions_of(plan.multipliers)
    oracle = RationalOracle(model)
    return dual_of(oracle.cheapest(oracle.column(plan.policy.argmax(axis=1)), weights), weights)


def bias_record(model: RationalModel, policy: Floats, several: bool) -> dict[str, Any]:
    """Return the biases of a policy in doubles, and its gains if it may end in several classes."""
    chain = RationalChain.of_doubles(model, policy)
    return {
        "biases": [[vector_record(row) for row in chain.biases]],
        "gains": [vector_record(row) for row in chain.gains] if several else None,
    }


def vector_record(values: Any) -> dict[str, Any]:
    """Return fractions as whole numbers over one denominator, in text.

    >>> vector_record([Fraction(1, 2), Fraction(-2, 3)])
    {'over': '0x6', 'numbers': ['0x3', '-0x4']}
    """
    numerators, denominator = over_one_denominator(Fraction(x) for x in values)
    return {"over": hex(denominator), "numbers": [hex(n) for n in numerators]}
