"""Parts of a saved proof in rational numbers: for plans whose proof doubles cannot hold.

A vector is written as hexadecimal whole numbers over one denominator, which are read in linear time.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from psconrl.arrays import Bools, Floats
from psconrl.model.cmdp import CMDP
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.exact_plan import ExactPlan
from psconrl.planning.exact.rational_model import ZERO, RationalModel, fractions_of, over_one_denominator


def dual_record(cmdp: CMDP, exact: ExactPlan, reached: Bools) -> dict[str, Any]:
    """Return multipliers, potential and gains, which are None if they are equal in all reachable states."""
    priced = sum((w * tau for w, tau in zip(exact.multipliers, fractions_of(cmdp.thresholds), strict=True)), ZERO)
    gains = [g - priced for g in exact.gains]
    several = len({gains[s] for s in np.flatnonzero(reached)}) > 1
    return {
        "multipliers": vector_record(exact.multipliers),
        "potential": vector_record(exact.potential),
        "low_potential": [0.0] * cmdp.n_states,
        "gains": vector_record(gains) if several else None,
    }


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
