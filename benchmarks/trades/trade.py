"""What is written down about a trade: its ``System``, and the same rules in plain Python."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from psconrl.systems import System
from trades.distributions import Table

Values = dict[str, Any]  # of the variables of a state, an action or the noise
Numbers = dict[str, Any]  # parameters by name: of each noise or event
Drawn = Callable[[Values, Values, Numbers], Table]  # the distribution of a noise in a state, under an action


class Limit(NamedTuple):
    """``low * E[over] <= E[amount] <= high * E[over]``, or the same of an expected shortfall of an amount."""

    amount: str
    high: float | None = None
    low: float | None = None
    over: str | None = None  # 1, unless named
    worst: float | None = None  # the share of worst rounds of which the mean is limited
    percentile: tuple[str, float] | None = None  # of another amount, which limits this share: ("queue", 0.95)


class Prior(NamedTuple):
    """What is known about an unknown number: ``gamma``, ``beta`` or ``dirichlet``, with its arguments."""

    family: str
    arguments: tuple[float, ...]


class Wrong(NamedTuple):
    """The five ways in which the real system differs from its description."""

    by_state: Callable[[Values, Numbers], Numbers]  # a parameter depends on the state
    in_time: Mapping[str, float]  # factors of parameters from a quarter of the run on
    overdispersed: str  # the parameter of this noise is drawn in every round, or, of events, changes by fits
    correlated: tuple[str, str]  # two noises, or the rates of two events, which change together
    known: Mapping[str, float]  # a known parameter has another value


class Trade(NamedTuple):
    """A system of some trade.

    ``draws``: the distribution of every noise, or of ``event`` in continuous time. ``step`` and ``amounts``: the next
    state, and everything that is counted in a round, given state, action, noise (and next state). ``truth``: the
    parameters that are known. ``priors``: those of the others. ``seen``: the noise that is observed beside the state;
    ``costs_seen``: the costs that are reported as they
    occurred, by the names in the description.
    """

    name: str
    describe: Callable[[], System]
    start: Values
    actions: Callable[[Values], list[Values]]
    draws: Mapping[str, Drawn]
    step: Callable[[Values, Values, Values], Values]
    amounts: Callable[[Values, Values, Values, Values], dict[str, float]]
    aim: str
    limits: Mapping[str, Limit]
    truth: Numbers
    priors: Mapping[str, Prior]
    wrong: Wrong
    seen: tuple[str, ...] = ()
    costs_seen: tuple[str, ...] = ()
    aim_over: str | None = None
    maximise: bool = False
    timed: bool = False  # events in continuous time
