"""A real system in the place of a trade: it draws noise by its own rules, as described or wrong in one of five ways."""

import math
from bisect import bisect_right
from itertools import accumulate
from typing import Any

import numpy as np

from trades.trade import Numbers, Prior, Trade, Values

KINDS = ("right", "by state", "in time", "overdispersed", "correlated", "known")
CHANGE = 0.25  # parameters change after this share of a run
SHAPE = 1.5  # a gamma factor with this shape and mean 1 is drawn for every round: variance 1 / SHAPE
WEIGHT = 3.0  # a probability p becomes a draw of Beta(WEIGHT * p, WEIGHT * (1 - p)) in every round
CORRELATION = 0.8  # of the normal variables behind two noises
LARGEST = 0.98  # probabilities that are multiplied by a factor
FIT, CALM, STAY = 2.5, 0.4, 0.95  # in continuous time: factors of a rate by fits, and how long these last


class Simulator:
    """The system of a trade, played round by round; it knows nothing of ``System``."""

    def __init__(self, trade: Trade, kind: str, numbers: Numbers, rounds: int, seed: Any) -> None:
        self.trade, self.kind, self.numbers = trade, kind, dict(numbers)
        self.rng = np.random.default_rng(seed)
        self.change, self.round, self.fit = int(CHANGE * rounds), 0, False
        self.state = trade.start
        if kind == "known":
            self.numbers |= trade.wrong.known

    def play(self, action: Values) -> tuple[Values, dict[str, float]]:
        """Return the noise and the amounts of a round, and go to the next state."""
        now = self._numbers_now()
        noise = {
            name: _drawn(draw(self.state, action, now), uniform)
            for (name, draw), uniform in zip(self.trade.draws.items(), self._uniforms(), strict=True)
        }
        then = self.trade.step(self.state, action, noise)
        amounts = self.trade.amounts(self.state, action, noise, then)
        self.state, self.round = then, self.round + 1
        return noise, amounts

    def _numbers_now(self) -> Numbers:
        now = self._as_wrong()
        probabilities = (name for name, prior in self.trade.priors.items() if prior.family == "beta")
        return now | {name: min(now[name], LARGEST) for name in probabilities}

    def _as_wrong(self) -> Numbers:
        wrong, numbers = self.trade.wrong, self.numbers
        if self.kind == "by state":
            return numbers | wrong.by_state(self.state, numbers)
        if self.kind == "in time" and self.round >= self.change:
            return numbers | {name: numbers[name] * factor for name, factor in wrong.in_time.items()}
        if self.kind == "overdispersed":
            return numbers | {wrong.overdispersed: self._dispersed(wrong.overdispersed)}
        if self.kind == "correlated" and self.trade.timed:
            factor = self._by_fits()
            first, second = wrong.correlated
            return numbers | {first: numbers[first] * factor, second: numbers[second] * factor}
        return numbers

    def _dispersed(self, name: str) -> float:
        number = self.numbers[name]
        if self.trade.timed:
            return float(number * self._by_fits())
        if name in self.trade.priors and self.trade.priors[name].family == "gamma":
            return float(number * self.rng.gamma(SHAPE, 1.0 / SHAPE))
        return float(self.rng.beta(WEIGHT * number, WEIGHT * (1.0 - number)))

    def _by_fits(self) -> float:
        if self.rng.random() > STAY:
            self.fit = not self.fit
        return FIT if self.fit else CALM

    def _uniforms(self) -> list[float]:
        names = list(self.trade.draws)
        normals = self.rng.standard_normal(len(names))
        if self.kind == "correlated" and not self.trade.timed:
            first, second = (names.index(name) for name in self.trade.wrong.correlated)
            normals[second] = CORRELATION * normals[first] + math.sqrt(1.0 - CORRELATION**2) * normals[second]
        return [0.5 * math.erfc(-x / math.sqrt(2.0)) for x in normals]


def truth(trade: Trade, rng: np.random.Generator) -> Numbers:
    """Return all parameters of a trade; those that are unknown are drawn from their priors."""
    return trade.truth | {name: _from(prior, rng) for name, prior in trade.priors.items()}


def middle(trade: Trade) -> Numbers:
    """Return all parameters of a trade; those that are unknown at the means of their priors."""
    return trade.truth | {name: _mean(prior) for name, prior in trade.priors.items()}


def _from(prior: Prior, rng: np.random.Generator) -> Any:
    if prior.family == "gamma":
        return float(rng.gamma(prior.arguments[0]) / prior.arguments[1])
    if prior.family == "beta":
        return float(rng.beta(*prior.arguments))
    return [float(p) for p in rng.dirichlet(prior.arguments)]


def _mean(prior: Prior) -> Any:
    first, *rest = prior.arguments
    if prior.family == "gamma":
        return first / rest[0]
    if prior.family == "beta":
        return first / (first + rest[0])
    return [weight / sum(prior.arguments) for weight in prior.arguments]


def _drawn(table: dict[Any, float], uniform: float) -> Any:
    values = list(table)
    return values[min(bisect_right(list(accumulate(table.values())), uniform), len(values) - 1)]
