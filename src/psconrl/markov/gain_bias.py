r"""Gains, biases and stationary distribution of a chain with one closed class, and its dense solver.

.. math:: g_i + h_i(s) = c_i(s) + \sum_{s'} P(s'|s)\, h_i(s'), \qquad \mu P = \mu,\ \sum_s \mu(s) = 1

(Puterman 1994, section 8.2). Dense chains are solved by GTH elimination (``kernels.linear.elimination``); for sparse
ones see ``sparse_solver``.
"""

from collections.abc import Callable

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.errors import SolverError
from psconrl.kernels.chains import dense_transient, policy_chain
from psconrl.kernels.linear import elimination

FALLS_APART = "some states are left too rarely for floating point: with probabilities below 1e-300"


class Unichain:
    """Solution of a chain with one closed class, for q costs."""

    __slots__ = (
        "_distribution", "_log_masses", "biases", "gains", "low_biases", "off", "reference", "rough", "slowest",
    )  # fmt: skip

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
        log_masses: Callable[[], Floats] | None = None,
    ) -> None:
        self.gains = gains  # (q,)
        self.biases = biases  # (q, S); zero at the reference state
        self._distribution = stationary
        self.reference = reference  # a recurrent state
        self.slowest = slowest  # tiny if a set of states is nearly closed; dense chains only
        self.low_biases = low_biases  # (q, S) low parts of the biases in double-double precision
        self.off = off  # error bound of the gains, beyond rounding
        self.rough = rough  # True if solved to a loose tolerance
        self._log_masses = log_masses  # if the chain was eliminated, also where masses are below 1e-300

    @property
    def stationary(self) -> Floats:
        """Stationary distribution (S,), computed on first access if it was not computed with the rest."""
        if callable(self._distribution):
            self._distribution = self._distribution()
        return self._distribution

    @property
    def exact(self) -> bool:
        """Whether a sparse chain was eliminated: each mass is exact to its last digits, or below 1e-300."""
        return self._log_masses is not None

    @property
    def log_masses(self) -> Floats:
        """Logarithms of the stationary masses (S,), up to a constant; -inf for transient states."""
        if self._log_masses is not None and not self.stationary.all():
            found = self._log_masses()
            self._log_masses = lambda: found
            return found
        with np.errstate(divide="ignore"):
            return np.log(self.stationary)

    def centred_biases(self) -> Floats:
        """Return the biases (q, S) with stationary mean zero; NaN beyond the range of doubles."""
        centred: Floats = policy_chain.centred(self.biases, self.stationary)
        return centred


def solve_dense(P: Floats, rows: Ints, costs: Floats, reference: int = 0) -> Unichain | None:
    """Solve the chain that uses row ``rows[s]`` of P in state s, with costs ``(q, n_rows)``; None if not unichain."""
    chain, cost = policy_chain.gathered(P, rows, costs)
    return solve_chain(chain, cost, reference)


def solve_chain(chain: Floats, costs: Floats, reference: int = 0) -> Unichain | None:
    """Solve a dense chain (S, S) with costs (q, S); None if it has several closed classes."""
    reference, gains, biases, stationary, slowest = elimination.unichain(chain, costs, reference)
    return None if reference < 0 else Unichain(gains, biases, stationary, reference, slowest)


def collect_dense(W: Floats, C: Floats, exits: Floats) -> Floats:
    """Return the solution (n, q) of x = C + W x for transient states, given the probabilities of leaving each."""
    collected = np.array(C, order="C")
    try:
        dense_transient.transient(np.array(W, order="C"), collected, exits.copy())
    except ZeroDivisionError:
        raise SolverError(FALLS_APART) from None
    return collected
