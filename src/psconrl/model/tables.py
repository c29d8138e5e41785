"""A CMDP laid out for playing it: successors, cumulative probabilities, and the cost of every transition."""

from dataclasses import dataclass

import numpy as np

from psconrl.arrays import Floats, Places
from psconrl.errors import ConfigError, ModelError, unknown_name
from psconrl.kernels import csr
from psconrl.model.cmdp import CMDP

EMISSIONS = ("deterministic", "bernoulli")


@dataclass(frozen=True, eq=False)
class Tables:
    """The rows ``s * A + a`` of a model in CSR form."""

    indptr: Places
    successors: Places
    cdf: Floats
    outcomes: Floats  # (m+1, entries) the cost of each transition, or its probability if Bernoulli
    bernoulli: bool

    @classmethod
    def of(cls, cmdp: CMDP, emission: str) -> "Tables":
        """Costs are emitted as they are, or as 0/1 with their value as probability."""
        if emission not in EMISSIONS:
            raise ConfigError(unknown_name("emission", emission, EMISSIONS))
        P = cmdp.transition.csr()
        P.sort_indices()
        pairs = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
        outcomes = np.empty((len(cmdp.costs), P.nnz))
        for i, by_successor in enumerate(cmdp.outcome_costs):
            if by_successor is None:
                outcomes[i] = cmdp.costs[i].ravel()[pairs]
            else:
                outcomes[i] = np.asarray(by_successor[pairs, P.indices]).ravel()
        if emission == "bernoulli" and (outcomes.min() < 0 or outcomes.max() > 1):
            raise ModelError("Bernoulli costs must lie in [0, 1]; simulate this model with emission='deterministic'")
        cdf = csr.row_cdf(P.indptr, P.data.astype(np.float64))
        return cls(P.indptr, P.indices, cdf, outcomes, emission == "bernoulli")
