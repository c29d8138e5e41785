r"""The best policy under a certificate that bounds the costs of a round in every state.

Let h be a function of the states, and let every pair have a bound :math:`v_i(s,a)` on :math:`c_i + P h_i - h_i`. Every
policy with :math:`\sum_a \pi(a|s)\, v_i(s,a) \le \tau_i` in all states keeps the limits, whatever it does elsewhere:
h is a Lyapunov function (Chow et al. 2018, for discounted costs). The inequalities are linear in the occupancy,

.. math:: \sum_a \mu(s,a)\, (v_i(s,a) - \tau_i) \le 0 \quad\text{for all } s, i,

so that the best such policy solves a linear program. A policy that satisfies them is given; it is one more action in
every state, so that the program is feasible even if the certificate proves more for it than for its actions.

In a state the inequalities leave a polytope of action probabilities. Its vertices mix at most m + 1 actions: k actions
with k - 1 inequalities that are equations. With up to three constraints these are few and have a closed form, so that
policy iteration over vertices takes a few solves of a chain. The linear program remains for the rest: more constraints,
too many vertices, and policies with several closed classes.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from psconrl.base.arrays import Floats
from psconrl.markov.elimination_order import Order
from psconrl.markov.policy_chains import PolicyChains
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition
from psconrl.planning.linear_programs.lp import Program, optimum
from psconrl.planning.robust.polytopes import MOST_CONSTRAINTS, number_of_vertices, vertices_of
from psconrl.planning.tolerances import LP_MASS, LYAPUNOV_GAIN

MOST_VERTICES = 2_000_000  # numbers of all vertices of all states; beyond, the linear program is faster,
MOST_PER_PAIR = 250  # and so it is beyond this many for every pair
VERTEX_STEPS = 50  # of policy iteration, at most


class Share(NamedTuple):
    """The best policy, as a mixture of the given one with another in every state."""

    other: Floats  # (S, A)
    share: Floats  # (S,) of the other policy


def best_within(
    transition: Transition,
    costs: Floats,
    bounds: Floats,
    thresholds: Floats,
    policy: Floats,
    played: Floats,
    order: Order | None = None,
) -> Share:
    """Return the policy of least average cost (S, A) among those that ``bounds`` (m, S, A) certify.

    ``policy`` (S, A): one that is certified, with bounds ``played`` (m, S). ``order``: of elimination, for the chains
    of all policies, if it is known. Raise ``SolverError`` if HiGHS fails.
    """
    over = np.concatenate([bounds, played[:, :, None]], axis=2) - thresholds[:, None, None]
    found = None
    if len(thresholds) <= MOST_CONSTRAINTS and number_of_vertices(*over.shape) <= _most_vertices(costs.size):
        found = _by_vertices(PolicyChains(transition, order), transition, costs, over, policy)
    return _by_program(transition, costs, over, policy) if found is None else found


def _most_vertices(pairs: int) -> int:
    """Return with how many numbers of all vertices policy iteration is faster than the linear program."""
    return min(MOST_VERTICES, MOST_PER_PAIR * pairs)


def _by_vertices(
    chains: PolicyChains, transition: Transition, costs: Floats, over: Floats, policy: Floats
) -> Share | None:
    """Return the best policy by policy iteration over vertices; None if a policy has several closed classes."""
    S, A = costs.shape
    kinds, everywhere = [kind for kind in vertices_of(over) if kind.allowed.size], np.arange(S)
    unit = float(np.ptp(costs)) or 1.0
    mixed = np.zeros((S, A + 1))
    mixed[:, A] = 1.0
    for _ in range(VERTEX_STEPS):
        whole = mixed[:, :A] + mixed[:, A:] * policy
        chain = chains.solved(whole, (whole * costs).sum(axis=1))
        if chain is None:
            return None
        values = costs + product(transition.matrix, chain.biases[0]).reshape(S, A)
        values = np.column_stack([values, (policy * values).sum(axis=1)])
        best, new = (mixed * values).sum(axis=1) - LYAPUNOV_GAIN * unit, mixed.copy()
        for kind in kinds:
            all_values = (np.moveaxis(values[:, kind.columns], 0, 1) * kind.shares).sum(axis=2)
            all_values[~kind.allowed] = np.inf
            first = all_values.argmin(axis=0)
            better = np.flatnonzero(all_values[first, everywhere] < best)
            best[better] = all_values[first[better], better]
            new[better] = 0.0
            new[better[:, None], kind.columns[first[better]]] = kind.shares[first[better], better]
        if np.array_equal(new, mixed):
            break
        mixed = new
    mass = mixed[:, :A].sum(axis=1)
    used = mass > 0.0
    return Share(np.where(used[:, None], mixed[:, :A] / np.where(used, mass, 1.0)[:, None], policy), mass)


def _by_program(transition: Transition, costs: Floats, over: Floats, policy: Floats) -> Share:
    """Return the best policy by a linear program. Raise ``SolverError`` if HiGHS fails."""
    S, A = costs.shape
    m, columns = len(over), S * A + S  # the pairs, and the given policy in every state
    of_column = np.concatenate([np.arange(S * A) // A, np.arange(S)])
    flat = np.concatenate([over[:, :, :A].reshape(m, S * A), over[:, :, A]], axis=1)
    flows = csr_array(vstack([transition.csr(), csr_array(transition.under(policy))])).tocoo()
    entries = [
        (flat.ravel(), (np.arange(m)[:, None] * S + of_column).ravel(), np.tile(np.arange(columns), m)),
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
