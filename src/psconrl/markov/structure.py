"""Graph structure of a CMDP: reachability and communication.

A set of states with a choice of actions that never leave it, strongly connected under them, is an *end component*.
Under every policy a path ends in one of them (de Alfaro 1997). The model is weakly communicating exactly when there is
a single maximal one, and communicating when that one contains every state.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Ints
from psconrl.kernels.graphs import successors
from psconrl.kernels.graphs.end_components import end_component_pairs
from psconrl.model.cmdp import CMDP
from psconrl.model.transition import Transition


@dataclass(frozen=True)
class EndComponent:
    """States, and the pairs ``s * A + a`` that keep the path inside."""

    states: Ints
    pairs: Ints


class EndComponents(NamedTuple):
    """All maximal end components as arrays, numbered by their first states: there may be as many as states."""

    number: int
    of_state: Ints  # (S,) index of the component, or -1
    inside: Bools  # (S, A) pairs that keep the path in the component of their state

    def listed(self) -> list[EndComponent]:
        """Return the end components as a list."""
        start, states = successors.grouped(self.of_state, self.number)
        pairs = np.where(self.inside, self.of_state[:, None], -1).ravel()
        first, inside = successors.grouped(pairs, self.number)
        return [
            EndComponent(states[start[k] : start[k + 1]], inside[first[k] : first[k + 1]]) for k in range(self.number)
        ]


def reachable(cmdp: CMDP) -> Ints:
    """Return the states that some policy visits from the initial distribution, sorted."""
    if cmdp.transition.communicates:
        return np.arange(cmdp.n_states)
    return np.flatnonzero(cmdp.transition.reachable_from(cmdp.initial > 0))


def end_components(cmdp: CMDP, without: Ints | None = None) -> list[EndComponent]:
    """Return the maximal end components, ordered by their first states, optionally of the model without some states."""
    return find_end_components(cmdp.transition, cmdp.available, without).listed()


def find_end_components(P: Transition, available: Bools, without: Ints | None = None) -> EndComponents:
    """Return the maximal end components as arrays, optionally of the model without some states."""
    S, A = available.shape
    indptr, indices = P.support
    keep = available.ravel().copy()
    if without is not None:
        banned = np.zeros(S, dtype=bool)
        banned[without] = True
        keep &= ~np.repeat(banned, A)
        keep[np.repeat(np.arange(S * A), np.diff(indptr))[banned[indices]]] = False
    count, component, inside = end_component_pairs(indptr, indices, S, keep)
    return EndComponents(count, component, inside.reshape(S, A))


def attractor_policy(P: Transition, available: Bools, reached: Bools, policy: Ints, least: float = 0.0) -> Ints:
    """Return the policy, changed outside a set of states so that it reaches the set with probability one if possible.

    The action of the given policy is kept if its probability of moving closer is positive; otherwise the likeliest such
    action is taken. Probabilities of at most ``least`` count as zero.
    """
    return P.attract(available, reached, policy, least)[0]


def is_communicating(cmdp: CMDP) -> bool:
    """True if every state can be reached from every other under some policy.

    >>> import psconrl
    >>> is_communicating(psconrl.load("box"))
    True
    """
    return cmdp.transition.communicates


def is_weakly_communicating(cmdp: CMDP) -> bool:
    """True if there is one communicating class and all other states are transient under every policy."""
    return len(end_components(cmdp)) == 1
