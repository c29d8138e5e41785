"""Parts of a saved proof in rational numbers, as text: for plans whose proof doubles cannot hold."""

from fractions import Fraction
from typing import Any

import numpy as np

from psconrl.arrays import Bools, Floats
from psconrl.model.cmdp import CMDP
from psconrl.planning.exact.evaluation import RationalChain
from psconrl.planning.exact.exact_plan import ExactPlan, fraction_as_text
from psconrl.planning.exact.rational_model import ZERO, RationalModel, fractions_of


def dual_record(cmdp: CMDP, exact: ExactPlan, reached: Bools) -> dict[str, Any]:
    """Return multipliers, potential and gains, which are None if they are equal in all reachable states."""
    priced = sum((w * tau for w, tau in zip(exact.multipliers, fractions_of(cmdp.thresholds), strict=True)), ZERO)
    gains = [g - priced for g in exact.gains]
    several = len({gains[s] for s in np.flatnonzero(reached)}) > 1
    return {
        "multipliers": fractions_as_text(exact.multipliers),
        "potential": fractions_as_text(exact.potential),
        "low_potential": [0.0] * cmdp.n_states,
        "gains": fractions_as_text(gains) if several else None,
    }


def bias_record(model: RationalModel, policy: Floats, several: bool) -> dict[str, Any]:
    """Return the biases of a policy in doubles, and its gains if it may end in several classes."""
    chain = RationalChain.of_doubles(model, policy)
    return {
        "biases": [[fractions_as_text(row) for row in chain.biases]],
        "gains": [fractions_as_text(row) for row in chain.gains] if several else None,
    }


def fractions_as_text(values: Any) -> list[str]:
    """Return fractions as texts."""
    return [fraction_as_text(Fraction(x)) for x in values]
