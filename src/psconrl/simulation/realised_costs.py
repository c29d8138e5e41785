"""The costs that a simulated system incurred in each round, found again from the random numbers of the rounds.

The compiled loop logs transitions, and sums of costs. Which outcome of the noise a round had follows from its uniform
number, as in ``kernels.play.play_loop``.
"""

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.model.simulation_tables import Tables


def realised(tables: Tables, numbers: Ints, uniforms: Floats, n_states: int) -> tuple[Ints, Floats, Ints]:
    """Return the distinct rounds: numbers of their transitions, their costs (m+1, n), and how often each occurred.

    ``numbers``: (s * A + a) * S + s' of the rounds in their order; ``uniforms``: their uniform numbers.
    """
    pairs = numbers // n_states
    entries = np.empty(pairs.size, dtype=np.int64)
    order = np.argsort(pairs, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1):
        if some.size:
            low, high = (int(place) for place in tables.indptr[pairs[some[0]] : pairs[some[0]] + 2])
            entries[some] = low + np.searchsorted(tables.cdf[low : high - 1], uniforms[some], side="right")
    kinds, first, times = np.unique(entries, return_index=True, return_counts=True)
    return numbers[first], tables.outcomes[:, kinds], times
