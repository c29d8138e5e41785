"""Runs of an agent that knows the description of a trade, on a system that follows it or is wrong in some way."""

import time
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import psconrl
from psconrl.agents import SafeStart, known_baseline
from psconrl.systems import System
from trades.simulator import Simulator, truth
from trades.trade import Numbers, Trade, Values

LEVEL = 0.9  # of the intervals that ``estimates`` returns


class Run(NamedTuple):
    """A run that was played."""

    trade: str
    agent: str
    kind: str
    run: int
    rounds: int  # played: a run of a wrong system ends when this is noticed
    found: int | None  # the round in which the agent doubted its description
    says: str  # what it said
    objective: float  # the average in this run
    covered: dict[str, bool]  # by unknown parameter: whether the interval has the true number
    seconds: float


def played(trade: Trade, agent: str, kind: str, run: int, rounds: int) -> Run:
    """Play one run. Its true parameters are drawn from the priors, so that exact intervals cover with their level."""
    numbers = truth(trade, np.random.default_rng([run, 1]))
    real = Simulator(trade, kind, numbers, rounds, [run, 2])
    began = time.perf_counter()
    with warnings.catch_warnings():
        learner = _made(trade, agent, numbers, run)
    found, says, total, t = None, "", 0.0, 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while t < rounds and (found is None or kind == "right"):
            t += 1
            state = real.state
            action = learner.act(state)
            noise, amounts = real.play(action)
            total += amounts[trade.aim]
            learner.observe(action, real.state, **_reported(trade, agent, noise, amounts))
            for warning in caught:
                if found is None and issubclass(warning.category, psconrl.StructureWarning):
                    found, says = t, str(warning.message)
            caught.clear()
    covered = _covered(learner, trade, numbers) if kind == "right" and agent == "psconrl" else {}
    return Run(trade.name, agent, kind, run, t, found, says, total / t, covered, time.perf_counter() - began)


def _made(trade: Trade, agent: str, numbers: Numbers, seed: int) -> Any:
    system = psconrl.linear(trade.describe())
    warnings.simplefilter("ignore", psconrl.AdviceWarning)  # that costs or noise must be reported, which they are
    if agent == "psconrl":
        return psconrl.PSConRL.of(system, seed=seed)
    given = known_baseline(_true(system, trade, numbers).model_for_learning(), by_state=True)
    return SafeStart.of(system, baseline=given["baseline"], slack=given["slack"], span=given["span"], seed=seed)


def _true(system: System, trade: Trade, numbers: Numbers) -> System:
    return system.with_noise(**{name: numbers[name] for name in trade.priors})


def _reported(trade: Trade, agent: str, noise: Values, amounts: Mapping[str, float]) -> dict[str, Any]:
    """Return what the user reports beside the next state."""
    reported: dict[str, Any] = {}
    if trade.seen and agent == "psconrl":
        reported["noise"] = {name: noise[name] for name in trade.seen}
    if trade.costs_seen:
        reported["costs"] = {name: amounts[name] for name in trade.costs_seen}
    return reported


def _covered(learner: Any, trade: Trade, numbers: Numbers) -> dict[str, bool]:
    """Return for every unknown parameter, or every probability of it, whether its interval has the true number."""
    covered = {}
    for shown, estimate in learner.estimates().items():
        name, _, value = shown.partition("=")
        number = numbers[name]
        if value:
            table = trade.draws[name](trade.start, trade.actions(trade.start)[0], numbers)
            number = {str(own): probability for own, probability in table.items()}[value]
        covered[shown] = estimate.low <= number <= estimate.high
    return covered
