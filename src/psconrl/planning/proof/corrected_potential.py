r"""Correction of a potential for the rounding of the priced costs that it belongs to.

A constraint on a rare event may have a shadow price of 1e12. Where the event happens, the priced cost has no digits
beyond 1e-4, and a price that is rounded once more, in the user's units, is off by as much. A potential h that was found
for the price before proves no bound closer than that. What is left of the equation of an optimal policy,

.. math:: r(s) = c_0(s) - v + \sum_i \lambda_i\, (c_i(s) - \tau_i) + \sum_{s'} P(s'|s)\, h(s') - h(s)

is computed in double-double precision, and its own bias is added to the low part of h.
"""

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.chains.double_double import precise_reduced_costs
from psconrl.markov.chain import chain_of
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.planning.candidate import Dual
from psconrl.planning.proof.certify import EPS
from psconrl.planning.tolerances import SHARE_OF_TOLERANCE


def is_coarse(part: CMDP, dual: Dual, tolerance: float) -> bool:
    """Whether priced costs of a model are so large that their rounding matters for a gap within a tolerance."""
    largest = np.abs(np.where(part.available, part.costs, 0.0)).max(axis=(1, 2))
    return bool(EPS * product(np.append(1.0, dual.multipliers), largest) > SHARE_OF_TOLERANCE * tolerance)


def corrected(part: CMDP, dual: Dual, actions: Ints, value: float) -> Dual | None:
    """Return the dual point with the potential of a policy (S,) at its multipliers; None if the policy has classes.

    ``value``: the objective v of the plan.
    """
    P, bases = part.transition.csr(), np.append(value, part.thresholds)
    reduced, _ = precise_reduced_costs(
        P.indptr, P.indices, P.data, dual.potential, dual.low_potential, part.costs, np.append(1.0, dual.multipliers),
        bases, part.available,
    )  # fmt: skip
    left: Floats = reduced[np.arange(actions.size), actions]
    if not np.isfinite(left).all():
        return None
    chain = chain_of(part.transition, actions).solve(np.ascontiguousarray(left[None, :]))
    return None if chain is None else dual._replace(low_potential=dual.low_potential + chain.biases[0])
