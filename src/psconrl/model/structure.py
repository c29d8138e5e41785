"""The graph of a CMDP: what is reachable, and what communicates.

A set of states with a choice of actions that never leave it, strongly connected under them, is an *end component*.
Whatever the policy, a path ends in one of them (de Alfaro 1997). The model is weakly communicating exactly when
there is a single maximal one, and communicating when that one holds every state.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from psconrl.arrays import Bools, Ints, Matrix
from psconrl.model.cmdp import CMDP
from psconrl.model.unichain import closed_classes, strong_components

# Recognising unichain models is NP-hard (Tsitsiklis 2007); up to so many policies we settle it by trying them all.
MAX_POLICIES = 20_000


@dataclass(frozen=True)
class EndComponent:
    """States, and the pairs ``s * A + a`` that keep the path inside."""

    states: Ints
    pairs: Ints


def pair_graph(cmdp: CMDP) -> csr_array:
    """The support of the transitions, (S*A, S), as a sparse matrix."""
    graph = csr_array(cmdp.transition != 0)
    graph.eliminate_zeros()
    return graph


def state_graph(pairs: csr_array, keep: Bools | None = None) -> csr_array:
    """Edges s -> s' under any action, or any of the pairs to keep."""
    S = pairs.shape[1]
    A = pairs.shape[0] // S
    coo = pairs.tocoo()
    rows, columns = coo.coords
    if keep is not None:
        inside = keep[rows]
        rows, columns = rows[inside], columns[inside]
    graph = csr_array((np.ones(rows.size, dtype=bool), (rows // A, columns)), shape=(S, S))
    graph.sum_duplicates()  # which not every version of SciPy does by itself, and its components rely on it
    return graph


def reachable(cmdp: CMDP) -> Ints:
    """The states that some policy visits from the initial law, sorted."""
    graph = state_graph(pair_graph(cmdp))
    seen = np.zeros(cmdp.n_states, dtype=bool)
    for s in np.flatnonzero(cmdp.initial):
        if not seen[s]:
            seen[breadth_first_order(graph, int(s), return_predecessors=False)] = True
    return np.flatnonzero(seen)


def end_components(cmdp: CMDP, without: Ints | None = None) -> list[EndComponent]:
    """The maximal end components by their first states, optionally of the model without some states."""
    graph = pair_graph(cmdp)
    S, A = cmdp.n_states, cmdp.n_actions
    coo = graph.tocoo()
    rows, columns = coo.coords
    keep = cmdp.available.ravel().copy()
    if without is not None:
        banned = np.zeros(S, dtype=bool)
        banned[without] = True
        keep &= ~np.repeat(banned, A)
        keep[rows[banned[columns]]] = False
    while True:
        _, labels = strong_components(state_graph(graph, keep))
        leaving = labels[rows // A] != labels[columns]
        before = keep.sum()
        keep[rows[leaving]] = False
        if keep.sum() == before:
            break
    alive = np.flatnonzero(keep.reshape(S, A).any(axis=1))
    components = []
    _, first = np.unique(labels[alive], return_index=True)
    for label in labels[alive[np.sort(first)]]:  # the numbers that SciPy gives to components may change
        states = alive[labels[alive] == label]
        pairs = np.flatnonzero(keep & np.repeat(np.isin(np.arange(S), states), A))
        components.append(EndComponent(states, pairs))
    return components


def approach(P: Matrix, available: Bools, reached: Bools, policy: Ints) -> Ints:
    """The policy changed outside a set of states so that everything surely moves into it, as far as it can be.

    The action of the given policy is kept where it has a chance to come closer, else the likeliest one is taken.
    """
    S, A = available.shape
    reached, policy = reached.copy(), policy.copy()
    states = np.arange(S)
    while not reached.all():
        chance = np.where(available, (P @ reached.astype(np.float64)).reshape(S, A), 0.0)
        new = ~reached & (chance > 0).any(axis=1)
        if not new.any():
            break
        change = new & ~(chance[states, policy] > 0)
        policy[change] = chance[change].argmax(axis=1)
        reached |= new
    return policy


def is_communicating(cmdp: CMDP) -> bool:
    """Can every state be reached from every other under some policy?

    >>> import psconrl
    >>> is_communicating(psconrl.load("box"))
    True
    """
    return strong_components(state_graph(pair_graph(cmdp)))[0] == 1


def is_weakly_communicating(cmdp: CMDP) -> bool:
    """Is there one communicating class, all other states being transient under every policy?"""
    return len(end_components(cmdp)) == 1


def is_unichain(cmdp: CMDP) -> bool | None:
    """Has every deterministic policy a single closed class? None if that could not be settled.

    Two end components that share no state refute it; a state that no end component avoids proves it. In between the
    question is NP-hard, and small models are settled by trying all policies.
    """
    if len(end_components(cmdp)) > 1:
        return False
    for r in range(cmdp.n_states):
        rest = end_components(cmdp, without=np.array([r]))
        if not rest:
            return True
        if len(rest) > 1 or end_components(cmdp, without=rest[0].states):
            return False
    choices = [np.flatnonzero(mask) for mask in cmdp.available]
    if math.prod(c.size for c in choices) > MAX_POLICIES:
        return None
    A = cmdp.n_actions
    P = cmdp.transition
    first = np.arange(cmdp.n_states) * A
    return all(len(closed_classes(P[first + np.array(actions)])) == 1 for actions in itertools.product(*choices))
