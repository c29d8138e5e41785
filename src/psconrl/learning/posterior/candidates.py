r"""Beliefs about finitely many models: some candidates, one of which is true, or draws from a posterior made elsewhere.

Candidate k has the weight

.. math:: w_k \propto w_k^0 \prod_{s,a,s'} P_k(s' \mid s,a)^{N(s,a,s')},

which is exact. Costs belong to the models: those of the model drawn are planned with.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.base.saved_fields import integer, maybe, read_fields, table_of, text
from psconrl.base.sizes import SMALL_SAMPLE_STATES
from psconrl.errors import AgentError
from psconrl.learning.argument_checks import as_costs, as_flag, as_numbers
from psconrl.learning.posterior.counts import Counts
from psconrl.learning.posterior.transition_beliefs import Belief
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.model.transition import DenseTransition, SparseTransition, Transition

NEVER = 1e-12  # probability at which a transition counts that a model calls impossible
NO_CANDIDATE = "no candidate"  # a key of the doubts


class Candidates(Belief):
    """One of several models is true; its probability is exact.

    ``models``: CMDPs of the same sizes, or their transitions, as arrays (S, A, S) or sparse matrices (S*A, S).
    ``weights``: their prior probabilities, up to a factor; equal by default. ``costs``: the costs (K, m+1, S, A) of all
    models, taken from CMDPs; None if they are known to the agent or learned.

    >>> import psconrl
    >>> Candidates([psconrl.load("queue", arrival=p) for p in (0.2, 0.3, 0.4)])
    Candidates(3 models)
    """

    name: ClassVar[str] = "candidates"
    stands_alone: ClassVar[bool] = False

    def __init__(self, models: Any, weights: ArrayLike | None = None, costs: ArrayLike | None = None) -> None:
        given = list(models) if isinstance(models, list | tuple) or np.ndim(models) == 4 else []
        if not given:
            raise AgentError(f"models must be a list of CMDPs, or of transitions; got {quoted(models)}")
        if costs is None and all(isinstance(model, CMDP) for model in given):
            costs = np.array([model.costs for model in given])
        self.model_costs = None if costs is None else as_costs(costs, "costs")
        self.models: list[csr_array] = [_as_rows(model) for model in given]
        self.weights = np.ones(len(given)) if weights is None else np.array(as_numbers(weights, "weights"))
        if self.weights.shape != (len(given),) or not (self.weights >= 0).all() or not self.weights.sum() > 0:
            raise AgentError(f"weights must be {len(given)} numbers from 0 on, not all 0; got {quoted(weights)}")
        self.doubts: dict[str, str] = {}
        self._drawn: int | None = None
        self._observed = np.empty(0, dtype=np.int64)  # the transitions that the following is about
        self._logs = np.empty((len(given), 0))  # of their probabilities in every model
        self._impossible = 0  # how many of them the best model calls impossible

    def _prepare(self, n_states: int, n_actions: int, n_constraints: int) -> None:
        for model in self.models:
            if model.shape != (n_states * n_actions, n_states):
                raise AgentError(f"a model has (S*A, S) = {model.shape}, the agent {(n_states * n_actions, n_states)}")
        shape = (len(self.models), n_constraints + 1, n_states, n_actions)
        if self.model_costs is not None and self.model_costs.shape != shape:
            raise AgentError(f"costs must have shape (K, m+1, S, A) = {shape}; got {self.model_costs.shape}")

    def to_dict(self) -> dict[str, Any]:
        """Return name and options as plain data."""
        return {"name": self.name, "models": self.models, "weights": self.weights, "costs": self.model_costs}

    def entries(self, n_states: int, n_actions: int) -> float:
        """Return the number of transitions of the largest model."""
        return float(max(model.nnz for model in self.models))

    def probabilities(self, counts: Counts) -> Floats:
        """Return the posterior probabilities (K,) of the models."""
        if not np.array_equal(counts.tally.numbers, self._observed):
            self._look_up(counts)
        if self._impossible:
            self.doubts[NO_CANDIDATE] = "no candidate explains all transitions that were observed"
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) + product(self._logs, counts.tally.times.astype(np.float64))
        shares = np.exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    def _look_up(self, counts: Counts) -> None:
        """Look up the probabilities of the transitions that were observed, which is needed when there are new ones."""
        self._observed = counts.tally.numbers.copy()
        rows, following = np.divmod(self._observed, counts.n_states)
        found = np.array([_entries(model, rows, following) for model in self.models])
        self._logs, self._impossible = np.log(np.maximum(found, NEVER)), int((found <= 0.0).sum(axis=1).min())

    def sample(self, counts: Counts, rng: np.random.Generator) -> Transition:
        """Draw one of the models."""
        self._drawn = int(rng.choice(len(self.models), p=self.probabilities(counts)))
        model = self.models[self._drawn]
        return DenseTransition(model.toarray()) if counts.n_states <= SMALL_SAMPLE_STATES else SparseTransition(model)

    def mean(self, counts: Counts) -> Floats:
        """Return the mean of the models under their probabilities."""
        pairs = zip(self.probabilities(counts), self.models, strict=True)
        return np.asarray(sum(share * model.toarray() for share, model in pairs))

    def costs(self) -> Floats | None:
        """Return the costs of the model last drawn, if the models have costs."""
        return None if self.model_costs is None or self._drawn is None else self.model_costs[self._drawn]

    @property
    def determines_costs(self) -> bool:
        """True if the models have costs."""
        return self.model_costs is not None

    def state(self) -> dict[str, Any]:
        """Return which model was drawn last, and the doubts."""
        return {"drawn": self._drawn, "doubts": dict(self.doubts)}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        described = {"drawn": maybe(integer(0, len(self.models) - 1)), "doubts": table_of(text())}
        self._drawn, self.doubts = read_fields(state, described).values()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.models)} models)"


class Draws(Candidates):
    """Draws of the model from a posterior that was computed elsewhere, as by PyMC or Stan; every episode uses one.

    ``models``: the draws, as ``Candidates`` takes them. ``weigh``: whether to weigh the draws by the likelihood of what
    the agent observes since. Few of many draws remain once it has observed much (``Candidates`` says so exactly);
    without weights the agent learns nothing, and goes on sampling from the posterior that it was given.
    """

    name: ClassVar[str] = "draws"

    def __init__(self, models: Any, weigh: bool = False, costs: ArrayLike | None = None) -> None:
        super().__init__(models, None, costs)
        self.weigh = as_flag(weigh, "weigh")

    def to_dict(self) -> dict[str, Any]:
        """Return name and options as plain data."""
        return {"name": self.name, "models": self.models, "weigh": self.weigh, "costs": self.model_costs}

    def probabilities(self, counts: Counts) -> Floats:
        """Return the probabilities (K,) of the draws."""
        return super().probabilities(counts) if self.weigh else np.full(len(self.models), 1.0 / len(self.models))


def _entries(model: csr_array, rows: Ints, columns: Ints) -> Floats:
    """Return entries of a sparse matrix; SciPy returns a sparse array where there are none."""
    return np.asarray(model[rows, columns]).ravel() if rows.size else np.empty(0)


def _as_rows(model: Any) -> csr_array:
    """Return the transitions of a model as a sparse matrix (S*A, S) of distributions."""
    if isinstance(model, CMDP):
        return model.transition.csr()
    try:
        rows = csr_array(model) if np.ndim(model) != 3 else csr_array(np.reshape(model, (-1, np.shape(model)[-1])))
        rows = rows.astype(np.float64)
    except (TypeError, ValueError):
        raise AgentError(f"a model must be a CMDP, or transitions (S, A, S); got {quoted(model)}") from None
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if not np.isfinite(rows.data).all() or (rows.data < 0).any() or np.abs(sums - 1.0).max() > 1e-9:
        raise AgentError("the transitions of a model must be distributions: numbers from 0 on that sum to 1")
    return rows
