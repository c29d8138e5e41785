"""The policy with a guarantee that needs no prior, beside the recommendation, and its price."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psconrl.answers.answer import or_none
from psconrl.base.arrays import Floats
from psconrl.data.advice.robust import RobustPlan, observed_ranges, robust_plan, set_of_noise, set_of_rows
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.posterior.row_posterior import Posterior
from psconrl.errors import AgentError, SolverError
from psconrl.markov.evaluation import evaluate_policy
from psconrl.model.cmdp import CMDP


@dataclass(frozen=True, eq=False)
class Guarantee:
    """A policy whose limits hold in every model that the log does not exclude, if one was found.

    ``policy`` (S, A) is None if there is none, and ``reason`` then says why. ``bounds``: what is proven of the
    averages, by cost, in the units of the log. ``price``: by how much its objective is expected to be worse than that
    of the recommendation. ``probability``: that the guarantee holds.
    """

    probability: float
    policy: Floats | None
    reason: str = ""
    bounds: dict[str, float] = field(default_factory=dict)
    no_worse: bool = False  # whether the objective is proven to be no worse than today's
    price: float = np.nan

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "found": self.policy is not None,
            "reason": self.reason,
            "probability": self.probability,
            "bounds": {name: or_none(bound) for name, bound in self.bounds.items()},
            "no_worse_than_today": self.no_worse,
            "price": or_none(self.price),
        }

    def __str__(self) -> str:
        if self.policy is None:
            return f"no guarantee without a prior: {self.reason}"
        return f"guaranteed without a prior with probability {self.probability:.0%}, at a price of {self.price:.4g}"


def guaranteed_policy(
    posterior: Posterior, thresholds: Floats, recommended: Floats, names: tuple[str, ...], signs: Floats, delta: float
) -> Guarantee:
    """Return the robust policy of a log, with its price beside a recommended policy (S, A)."""
    today = posterior.behaviour.mean()
    try:
        if isinstance(posterior, NoisePosterior):
            models = set_of_noise(posterior, delta)
        else:
            ranges = observed_ranges(posterior.log)
            models = set_of_rows(posterior.counts, thresholds, posterior.start, delta=delta, ranges=ranges)
        found = robust_plan(models, thresholds, today, delta)
    except (AgentError, SolverError) as error:
        return Guarantee(1.0 - delta, None, str(error))
    bounds = {name: float(sign * bound) for name, sign, bound in zip(names, signs, found.bounds, strict=True)}
    if found.policy is None:
        return Guarantee(1.0 - delta, None, _nearest(found, thresholds, names, signs), bounds)
    robust = models.model.with_thresholds(thresholds)
    price = _objective(robust, found.policy) - _objective(robust, recommended)
    return Guarantee(1.0 - delta, found.policy, "", bounds, found.no_worse, price)


def _objective(model: CMDP, policy: Floats) -> float:
    """Return the objective of a policy in the estimated model, as a cost."""
    try:
        return float(evaluate_policy(model, policy).costs[0])
    except SolverError:
        return float("nan")


def _nearest(found: RobustPlan, thresholds: Floats, names: tuple[str, ...], signs: Floats) -> str:
    """Say which limit could not be proven."""
    over = found.bounds[1:] - thresholds
    if not over.size or not np.isfinite(over).all():
        return "the log leaves too much open to prove any limit"
    i = int(over.argmax()) + 1
    proven, limit = signs[i] * found.bounds[i], signs[i] * thresholds[i - 1]
    side = "at most" if signs[i] > 0.0 else "at least"
    return f"{names[i]} is proven to be {side} {proven:.4g} only, and the limit is {limit:.4g}"
