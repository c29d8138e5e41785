"""Sparse transitions from events: in every state, under every action, one of a few events happens, or none."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

EVENT_SUM_TOL = 1e-12  # rounding error of probabilities that should sum to one


def transitions(n_states: int, n_actions: int, events: Iterable[tuple[ArrayLike, ArrayLike]]) -> csr_array:
    """Return transitions (S*A, S) of mutually exclusive events; with the remaining probability, the state stays.

    An event is a probability and its next state, both (S, A) or broadcastable to that.

    >>> transitions(2, 1, [(0.25, [[1], [0]])]).toarray().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    shape = (n_states, n_actions)
    given = [(np.broadcast_to(p, shape), np.broadcast_to(to, shape)) for p, to in events]
    rest = 1.0 - sum(p for p, _ in given)
    stays = np.where(rest > EVENT_SUM_TOL, rest, 0.0)
    here = np.broadcast_to(np.arange(n_states)[:, None], shape)
    probability = np.concatenate([stays.ravel(), *(p.ravel() for p, _ in given)])
    successor = np.concatenate([here.ravel(), *(to.ravel() for _, to in given)])
    pair = np.tile(np.arange(n_states * n_actions), len(given) + 1)
    return csr_array((probability, (pair, successor)), shape=(n_states * n_actions, n_states))
