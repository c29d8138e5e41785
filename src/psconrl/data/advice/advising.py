"""From a log to advice: averages, a better policy, where it differs, what limits are worth, what to measure next."""

from collections.abc import Mapping

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.data.advice.advice import Advice
from psconrl.data.advice.advised_policy import AdvisedPolicy
from psconrl.data.advice.averages import AVERAGES_DRAWS, todays_averages
from psconrl.data.advice.decisions import main_decisions
from psconrl.data.advice.described import need_costs, posterior_of, system_for, units_of
from psconrl.data.advice.guarantee import guaranteed_policy
from psconrl.data.advice.improvement import FEW_VERIFYING_DRAWS, improve
from psconrl.data.advice.kept_limits import KeptLimit
from psconrl.data.advice.measuring import Measuring
from psconrl.data.advice.worth import PRICE_DRAWS, LimitPrice, price_interval, prices_on_means
from psconrl.data.checks.report import checked_log
from psconrl.data.posterior.limits import limited
from psconrl.data.posterior.mean_model import MeanModel, mean_model
from psconrl.data.posterior.row_posterior import FEW_DRAWS_STATES
from psconrl.data.rounds.recorded import Recorded
from psconrl.errors import LogError
from psconrl.learning.argument_checks import as_number
from psconrl.model.names import Names
from psconrl.model.units import Units
from psconrl.systems.system import System

DRAWS_OF_THE_MEAN = 200  # of the mean model in which decisions are compared


def advised(
    log: Recorded,
    system: System | None = None,
    confidence: float = 0.95,
    limits: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Advice:
    """Return all that a log supports; see ``Log.improve``."""
    as_share(confidence, "confidence")
    need_costs(log)
    described = system_for(log, system, limits)
    own, thresholds = limited(log, limits) if described is None else (log, np.asarray(described.thresholds))
    found = improve(log, described, confidence=confidence, limits=None if described else limits, seed=seed)
    posterior = posterior_of(own, described)
    models = posterior.draw(
        PRICE_DRAWS if log.n_states > FEW_DRAWS_STATES else DRAWS_OF_THE_MEAN, np.random.default_rng(seed)
    )
    mean = mean_model(posterior, models)
    prices = prices_on_means(mean, thresholds) if thresholds.size else None
    between = None if prices is None else price_interval(mean, models, thresholds, confidence)
    units, names, signs = units_of(described), own.cost_names, own.signs
    goal = found.policy if found.target is None else found.target
    return Advice(
        log,
        checked_log(log, None if described is not None else limits),
        todays_averages(log, posterior_of(log, described), confidence, draws_of_averages(log), seed),
        found,
        _played(log, described, mean, found.policy, units),
        tuple(
            KeptLimit.of(i, name, float(signs[i]), found.compared, confidence, units.average(name))
            for i, name in enumerate(names)
            if i
        ),
        main_decisions(log, mean, goal, prices, names, signs),
        _prices(names, prices, between, units),
        None if found.needed is None else Measuring.of(log, found.needed, names),
        guaranteed_policy(posterior, thresholds, found.policy, names, signs, 1.0 - confidence),
        names[0],
        bool(signs[0] < 0.0),
        units,
    )


def draws_of_averages(log: Recorded) -> int:
    """Return in how many draws today's averages are computed."""
    return FEW_VERIFYING_DRAWS if log.n_states > FEW_DRAWS_STATES else AVERAGES_DRAWS


def as_share(value: float, what: str) -> float:
    """Return a probability strictly between 0 and 1; raise an error if it is none."""
    number = as_number(value, what)
    if not 0.0 < number < 1.0:
        raise LogError(f"{what} must lie strictly between 0 and 1, such as 0.95; got {number:g}")
    return number


def _played(log: Recorded, system: System | None, mean: MeanModel, policy: Floats, units: Units) -> AdvisedPolicy:
    evaluation = mean.evaluate(policy)
    occupancy = np.zeros_like(policy) if evaluation is None else evaluation.occupancy
    names = Names(log.state_labels, log.action_labels, log.cost_names, bool(log.signs[0] < 0.0), units)
    return AdvisedPolicy.of(log, system, policy, occupancy, names)


def _prices(
    names: tuple[str, ...], prices: Floats | None, between: tuple[Floats, Floats] | None, units: Units
) -> tuple[LimitPrice, ...]:
    if prices is None:
        return ()
    # Prices change in steps as a model changes, so that the plan on means may have one that no draw has.
    low, high = (None, None) if between is None else (np.minimum(between[0], prices), np.maximum(between[1], prices))
    return tuple(
        LimitPrice(
            name,
            float(prices[i]),
            None if low is None else float(low[i]),
            None if high is None else float(high[i]),
            units.price(name, names[0]),
        )
        for i, name in enumerate(names[1:])
    )
