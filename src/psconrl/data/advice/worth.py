"""What one unit of every limit is worth: shadow prices of the plan in the mean of the posterior, and in draws."""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.data.posterior.mean_model import MeanModel
from psconrl.data.posterior.row_posterior import Models
from psconrl.errors import SolverError
from psconrl.model.cmdp import CMDP
from psconrl.planning.drafts import Drafts

PRICE_DRAWS, PRICE_STATES = 40, 300  # models that are planned for the intervals, and their most states


@dataclass(frozen=True)
class LimitPrice:
    """By how much the objective improves if a limit is relaxed by one unit; low and high are None without an interval.

    ``unit``: of the price; ``of_one``: what is relaxed by one.
    """

    limit: str
    amount: float
    low: float | None
    high: float | None
    unit: str

    def __str__(self) -> str:
        worth = f"{self.amount:.4g} {self.unit}".rstrip()
        between = "" if self.low is None else f" ({self.low:.4g} to {self.high:.4g})"
        return f"one unit of {self.limit} is worth {worth}{between}"


def prices_on_means(mean: MeanModel, thresholds: Floats) -> Floats | None:
    """Return the shadow prices (m,) of the best policy of the mean model; None if it keeps no limits."""
    return _prices(
        _model(mean, mean.transition.toarray() if _is_small(mean) else mean.transition, mean.costs, thresholds)
    )


def price_interval(mean: MeanModel, models: Models, thresholds: Floats, level: float) -> tuple[Floats, Floats] | None:
    """Return an interval (m,), (m,) of the shadow prices over models drawn.

    None if the model is large, or if limits cannot be kept in more than one of ten draws.
    """
    if not _is_small(mean) or not thresholds.size:
        return None
    found = []
    n = min(PRICE_DRAWS, models.n_draws)
    for k in range(n):
        costs = models.costs[k if len(models.costs) > 1 else 0]
        prices = _prices(_model(mean, models.transition(k).toarray(), costs, thresholds))
        if prices is not None:
            found.append(prices)
    if len(found) < 0.9 * n:
        return None
    low, high = np.quantile(found, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return low, high


def _is_small(mean: MeanModel) -> bool:
    return len(mean.today) <= PRICE_STATES


def _model(mean: MeanModel, transition: object, costs: Floats, thresholds: Floats) -> CMDP:
    available = mean.allowed | ~mean.allowed.any(axis=1, keepdims=True)
    shaped = costs.reshape(len(costs), *mean.today.shape)
    return CMDP(transition, shaped, thresholds, initial=mean.start, available=available)


def _prices(model: CMDP) -> Floats | None:
    try:
        return Drafts(model).plan(model.costs, model.thresholds).prices
    except SolverError:
        return None
