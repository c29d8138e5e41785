"""The least average that a limited cost can have, by all that is known: is a limit within reach at all?"""

import numpy as np

from psconrl.data.posterior.mean_model import MeanModel
from psconrl.errors import SolverError
from psconrl.model.cmdp import CMDP
from psconrl.planning.drafts import Drafts


def least_in_reach(mean: MeanModel, cost: int) -> float:
    """Return the least average of a cost, as in a model, of all policies that play pairs that may be proposed.

    It is that of the mean model; nan if it cannot be planned.
    """
    available = mean.allowed | ~mean.allowed.any(axis=1, keepdims=True)
    costs = mean.costs[[cost]].reshape(1, *available.shape)
    try:
        model = CMDP(mean.transition, costs, initial=mean.start, available=available)
        policy = Drafts(model).plan(costs, np.zeros(0)).policy
    except SolverError:
        return np.nan
    found = mean.evaluate(policy)
    return np.nan if found is None else float(found.costs[cost])
