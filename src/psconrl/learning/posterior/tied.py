r"""A belief about rows that share a distribution up to relabelling, such as the steps of a walk on a ring.

Every transition (s, a, s') has a label, and rows of a group have the same labels with the same unknown probabilities:

.. math:: P(s' \mid s,a) = \theta_{g(s,a)}(\ell(s,a,s')), \qquad
          \theta_g \sim \mathrm{Dirichlet}(\alpha + N_g), \qquad N_g(\ell) = \sum_{\ell(s,a,s') = \ell} N(s,a,s').

The posterior is conjugate, and every draw is exact.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import read_fields, table_of, text
from psconrl.base.sizes import SMALL_SAMPLE_STATES
from psconrl.errors import AgentError
from psconrl.kernels.arithmetic import special
from psconrl.kernels.draws.gamma import log_gamma_variates
from psconrl.learning.argument_checks import as_number
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.given_weights import LARGEST_WEIGHT
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.model.transition import DenseTransition, SparseTransition, Transition

NO_LABEL = "no label"  # a key of the doubts


class Tied(Belief):
    """Rows of a group share one distribution over labels.

    ``groups``: (S, A), the group of every row, any whole numbers. ``labels``: (S, A, S), the label of every transition,
    a whole number from 0 on, or -1 if the transition is impossible; by default the next state. The labels in a row
    differ, and all rows of a group have the same ones. ``prior``: the weight of all labels together in observations.
    """

    name: ClassVar[str] = "tied"
    stands_alone: ClassVar[bool] = False

    def __init__(self, groups: ArrayLike, labels: ArrayLike | None = None, prior: float = 1.0) -> None:
        self.groups = _whole(groups, 2, "groups")
        self.labels = None if labels is None else _whole(labels, 3, "labels")
        self.prior = as_number(prior, "prior", "a weight above 0", lambda x: 0 < x <= LARGEST_WEIGHT)
        self.doubts: dict[str, str] = {}

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        S, A = n_states, n_actions
        if self.groups.shape != (S, A):
            raise AgentError(f"groups must have shape (S, A) = {(S, A)}; got {self.groups.shape}")
        if self.labels is not None and self.labels.shape != (S, A, S):
            raise AgentError(f"labels must have shape (S, A, S) = {(S, A, S)}; got {self.labels.shape}")
        groups = np.unique(self.groups.ravel(), return_inverse=True)[1].ravel()
        given = np.broadcast_to(np.arange(S), (S * A, S)) if self.labels is None else self.labels.reshape(S * A, S)
        rows, following = np.nonzero(given >= 0)
        numbers = groups[rows] * (int(given.max()) + 1) + given[rows, following]
        own, cells = np.unique(numbers, return_inverse=True)
        self._cells = cells.ravel()  # of every possible transition
        self._group = own // (int(given.max()) + 1)  # of every cell
        self._starts = np.searchsorted(self._group, np.arange(groups.max() + 1))
        sizes = np.bincount(self._group, minlength=int(groups.max()) + 1)
        # Rows are in order: sorted within each row, the cells must be those of its group.
        lengths = np.bincount(rows, minlength=S * A)
        wrong = lengths != sizes[groups]
        if not wrong.any():
            ordered = self._cells[np.lexsort((self._cells, rows))]
            begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
            differs = ordered != self._starts[groups[rows]] + np.arange(rows.size) - begins
            wrong = np.bincount(rows[differs], minlength=S * A) > 0
        if wrong.any():
            state, action = divmod(int(wrong.argmax()), A)
            raise AgentError(
                f"labels: all rows of a group must have the same labels, each once; the row of state {state} and "
                f"action {action} does not have all of them once"
            )
        self._indptr, self._indices = np.searchsorted(rows, np.arange(S * A + 1)), following
        self._alpha = self.prior / sizes[self._group]
        self._numbers = rows * S + following

    def __deepcopy__(self, memo: object) -> "Tied":
        return Tied(self.groups, self.labels, self.prior)

    def entries(self, n_states: int, n_actions: int) -> float:
        """Return the number of possible transitions."""
        return float(self._cells.size)

    def parameters(self, counts: Counts) -> Floats:
        """Return the parameters of the posterior of all groups, one after the other."""
        numbers, times = counts.tally.numbers, counts.tally.times
        place = np.minimum(np.searchsorted(self._numbers, numbers), self._numbers.size - 1)
        known = self._numbers[place] == numbers
        if not known.all():
            self.doubts[NO_LABEL] = "a transition was observed that has no label, and counts as impossible"
        return self._alpha + np.bincount(self._cells[place[known]], weights=times[known], minlength=self._alpha.size)

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw the distributions of all groups."""
        logs = log_gamma_variates(self.parameters(counts), rng)
        drawn = special.exp_array(logs - np.maximum.reduceat(logs, self._starts)[self._group])
        return self._transition(drawn, counts.n_states)

    def mean(self, counts: Counts) -> Floats:
        """Return the posterior mean (S*A, S)."""
        return self._transition(self.parameters(counts), counts.n_states).toarray()

    def _transition(self, weights: Floats, n_states: int) -> Transition:
        shares = weights / np.add.reduceat(weights, self._starts)[self._group]
        shape = (self._indptr.size - 1, n_states)
        rows = csr_array((shares[self._cells], self._indices, self._indptr), shape=shape)
        return DenseTransition(rows.toarray()) if n_states <= SMALL_SAMPLE_STATES else SparseTransition(rows)

    def state(self) -> dict[str, Any]:
        """Return the doubts."""
        return {"doubts": dict(self.doubts)}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.doubts = read_fields(state, {"doubts": table_of(text())})["doubts"]


def _whole(given: ArrayLike, dimensions: int, what: str) -> Ints:
    try:
        array = np.asarray(given)
        whole = array.astype(np.int64)
        same = bool((whole == array).all())
    except (TypeError, ValueError, OverflowError):
        array, whole, same = np.zeros(0), np.zeros(0, dtype=np.int64), False
    if not same or whole.ndim != dimensions or not whole.size:
        shape = "(S, A)" if dimensions == 2 else "(S, A, S)"
        raise AgentError(f"{what} must be whole numbers of shape {shape}; got {quoted(given)}")
    return whole
