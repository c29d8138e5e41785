"""Bounds on the probabilities of a system's noise: of the values of each noise, and of blocks of joint outcomes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.markov.elimination_order import Order


class BlockBounds(NamedTuple):
    """Bounds on the probabilities of blocks of joint outcomes, by class of pairs."""

    classes: Ints  # (S*A,) of every pair, -1 if it has no bounds
    blocks: Ints  # (C, W) the first outcome of each outcome's block, -1 if it is impossible
    low: Floats  # (C, W) of every block, at its first outcome
    high: Floats  # (C, W)


@dataclass(frozen=True, eq=False)
class NoiseBox:
    """Bounds on the probabilities of independent noise, and what its joint outcomes do in every pair."""

    successors: Places  # (S*A, W)
    contexts: Ints  # (S*A,)
    sizes: Ints  # (K,) numbers of values of the noises, whose product is W
    low: Floats  # (G, V) of the values of the first noise, then of the second, and so on
    high: Floats  # (G, V)
    together: BlockBounds | None = None  # on joint outcomes
    order: Order | None = None  # of elimination, for the chains of all policies; None: found for each

    def possible(self, pairs: Ints) -> Bools:
        """Return which joint outcomes are possible in some pairs (n,), as an array (n, W)."""
        high, found, start = self.high[self.contexts[pairs]] > 0.0, np.ones((len(pairs), 1), dtype=np.bool_), 0
        for size in self.sizes.tolist():
            found = (found[:, :, None] & high[:, None, start : start + size]).reshape(len(pairs), -1)
            start += size
        return found

    def arrays(self, paid: Floats | None) -> tuple[Places | Floats | Ints, ...]:
        """Return the arguments of the kernels."""
        pairs, outcomes = self.successors.shape
        costs = np.zeros((pairs, outcomes)) if paid is None else paid
        blocks = self.together
        if blocks is None:
            nothing = np.zeros((0, outcomes))
            blocks = BlockBounds(np.full(pairs, -1, np.int64), np.zeros((0, outcomes), np.int64), nothing, nothing)
        return self.successors, costs, self.contexts, self.sizes, self.low, self.high, *blocks
