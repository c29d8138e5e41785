"""The next state of every joint outcome of the noise, which a belief about the noise needs."""

import numpy as np

from psconrl.base.arrays import Bools, Ints, Places
from psconrl.base.caps import need
from psconrl.errors import ModelError
from psconrl.systems.reachable_states import Reachable
from psconrl.systems.reports import Report
from psconrl.systems.sources import RandomSource

POINTS_AT_ONCE = 1_000_000  # points (s, a, w) that are evaluated at once


def blocks_of_states(source: RandomSource, states: Ints) -> list[Ints]:
    """Return states in blocks, whose points are evaluated at once."""
    n = max(1, POINTS_AT_ONCE // (source.actions.size * source.outcomes.size))
    return [states[k : k + n] for k in range(0, states.size, n)]


def possible_at(source: RandomSource, states: Ints) -> Bools:
    """Return which joint outcomes are possible in some states, (len, A, W)."""
    randomness, contexts = source.randomness_at(states)
    return randomness.possible()[contexts].reshape(states.size, source.actions.size, -1)


def all_successors(source: RandomSource, reachable: Reachable, report: Report) -> Places:
    """Return the places of next states (S, A, W); that of the state itself for an impossible outcome."""
    states, mask = reachable.states, reachable.available
    W = source.outcomes.size
    need(4.0 * mask.size * W, f"a system of {mask.size * W:,} states, actions and outcomes", ModelError)
    found = np.empty((*mask.shape, W), dtype=np.int32)
    done = 0
    for some in blocks_of_states(source, states):
        here = slice(done, done + some.size)
        numbers = source.next_numbers(some)[0].reshape(some.size, -1, W)
        possible = possible_at(source, some) & mask[here, :, None]
        own = np.arange(done, done + some.size)[:, None, None]
        found[here] = np.where(possible, np.searchsorted(states, np.where(possible, numbers, states[0])), own)
        done += some.size
        report(f"outcomes in {done:,} of {states.size:,} states")
    return found
