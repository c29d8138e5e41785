r"""Gains, biases and stationary law of a chain with one closed class: what every method yields, and the dense one.

.. math:: g_i + h_i(s) = c_i(s) + \sum_{s'} P(s'|s)\, h_i(s'), \qquad \mu P = \mu,\ \sum_s \mu(s) = 1

(Puterman 1994, section 8.2). Dense chains are eliminated without subtractions (``kernels.elimination``); for sparse
ones see ``sparse_solver``.
"""

from collections.abc import Callable

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels import dense_transient, elimination, policy_chain

FALLS_APART = "some states are left too rarely for floating point: with probabilities below 1e-300"


class Unichain:
    """What one chain with one closed class yields, for q costs."""

    __slots__ = ("_distribution", "biases", "gains", "low_biases", "off", "reference", "rough", "slowest")

    def __init__(
        self,
        gains: Floats,
        biases: Floats,
        stationary: Floats | Callable[[], Floats],
        reference: int,
        slowest: float = 1.0,
        low_biases: Floats | None = None,
        off: float = 0.0,
        rough: bool = False,
    ) -> None:
        self.gains = gains  # (q,)
        self.biases = biases  # (q, S); zero at the reference state
        self._distribution = stationary
        self.reference = reference  # a recurrent state
        self.slowest = slowest  # if tiny, a set of states is nearly closed; dense chains only
        self.low_biases = low_biases  # (q, S) what one double a state cannot hold of the biases
        self.off = off  # by how much a gain may be wrong, beyond rounding
        self.rough = rough  # could it be known better?

    @property
    def stationary(self) -> Floats:
        """The stationary law (S,), solved for when first asked for if it does not come with the rest."""
        if callable(self._distribution):
            self._distribution = self._distribution()
        return self._distribution

    def centred_biases(self) -> Floats:
        """The biases (q, S) with stationary mean zero; beyond the range of doubles, no numbers."""
        centred: Floats = policy_chain.centred(self.biases, self.stationary)
        return centred


def solve_dense(P: Floats, rows: Ints, costs: Floats, reference: int = 0) -> Unichain | None:
    """The chain that takes ``rows[s]`` of P in state s, with costs ``(q, number of rows)``; None if not unichain."""
    chain, cost = policy_chain.gathered(P, rows, costs)
    return solve_chain(chain, cost, reference)


def solve_chain(chain: Floats, costs: Floats, reference: int = 0) -> Unichain | None:
    """The same for a chain (S, S) with costs (q, S)."""
    reference, gains, biases, stationary, slowest = elimination.unichain(chain, costs, reference)
    return None if reference < 0 else Unichain(gains, biases, stationary, reference, slowest)


def collect_dense(W: Floats, C: Floats, exits: Floats) -> Floats:
    """The solution (n, q) of x = C + W x for states that are surely left, with the probabilities of leaving each."""
    collected = np.array(C, order="C")
    try:
        dense_transient.transient(np.array(W, order="C"), collected, exits.copy())
    except ZeroDivisionError:
        raise SolverError(FALLS_APART) from None
    return collected
