r"""The best policy under a certificate that bounds the costs of a round in every state.

Let h be a function of the states, and let every pair have a bound :math:`v_i(s,a)` on :math:`c_i + P h_i - h_i`. Every
policy with :math:`\sum_a \pi(a|s)\, v_i(s,a) \le \tau_i` in all states keeps the limits, whatever it does elsewhere:
h is a Lyapunov function (Chow et al. 2018, for discounted costs). The inequalities are linear in the occupancy,

.. math:: \sum_a \mu(s,a)\, (v_i(s,a) - \tau_i) \le 0 \quad\text{for all } s, i,

so that the best such policy solves a linear program. A policy that satisfies them is given; it is one more action in
every state, so that the program is feasible even if the certificate proves more for it than for its actions.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from psconrl.arrays import Floats
from psconrl.model.transition import Transition
from psconrl.planning.lp import Program, optimum
from psconrl.planning.tolerances import LP_MASS


class Share(NamedTuple):
    """The best policy, as a mixture of the given one with another in every state."""

    other: Floats  # (S, A)
    share: Floats  # (S,) of the other policy


def best_within(
    transition: Transition, costs: Floats, bounds: Floats, thresholds: Floats, policy: Floats, played: Floats
) -> Share:
    """Return the policy of least average cost (S, A) among those that ``bounds`` (m, S, A) certify.

    ``policy`` (S, A): one that is certified, with bounds ``played`` (m, S). Raise ``SolverError`` if HiGHS fails.
    """
    S, A = costs.shape
    m, columns = len(thresholds), S * A + S  # the pairs, and the given policy in every state
    of_column = np.concatenate([np.arange(S * A) // A, np.arange(S)])
    over = np.concatenate([bounds.reshape(m, S * A), played], axis=1) - thresholds[:, None]
    flows = csr_array(vstack([transition.csr(), csr_array(transition.under(policy))])).tocoo()
    entries = [
        (over.ravel(), (np.arange(m)[:, None] * S + of_column).ravel(), np.tile(np.arange(columns), m)),
        (np.ones(columns), m * S + of_column, np.arange(columns)),
        (-flows.data, m * S + flows.coords[1], flows.coords[0]),
        (np.ones(columns), np.full(columns, m * S + S), np.arange(columns)),
    ]
    data, row, column = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    matrix = csr_array((data, (row, column)), shape=(m * S + S + 1, columns))
    cost = np.concatenate([costs.ravel(), (policy * costs).sum(axis=1)])
    right = np.append(np.zeros(matrix.shape[0] - 1), 1.0)
    found = optimum(Program(matrix, cost, right, m * S), "the certified policy is kept")
    mass, kept = np.maximum(found.x[: S * A].reshape(S, A), 0.0), np.maximum(found.x[S * A :], 0.0)
    new = mass.sum(axis=1)
    used = new > LP_MASS
    other = np.where(used[:, None], mass / np.where(used, new, 1.0)[:, None], policy)
    return Share(other, np.where(used, new / np.where(used, new + kept, 1.0), 0.0))
