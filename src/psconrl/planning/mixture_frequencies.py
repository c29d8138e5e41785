"""Long-run frequencies of a mixture; ``kernels.chains.occupancy`` computes a stationary policy that has them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.chains.occupancy import add_frequencies


class Played(Protocol):
    """A deterministic policy and its stationary distribution."""

    @property
    def policy(self) -> Ints: ...  # noqa: D102
    @property
    def stationary(self) -> Floats: ...  # noqa: D102


def mixed_occupancy(columns: Sequence[Played], shares: Floats, n_actions: int) -> Floats:
    """Return the long-run frequencies (S, A) of a mixture."""
    occupancy = np.zeros((columns[0].policy.size, n_actions))
    for column, share in zip(columns, shares, strict=True):
        add_frequencies(column.policy, column.stationary, share, occupancy)
    return occupancy
