"""A reservoir: rain by season, turbines, a level that must be kept between two limits and seldom be low."""

import math

from psconrl.systems import Bernoulli, Beta, Geometric, System
from trades.distributions import bernoulli, geometric
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong


def describe() -> System:
    """Return the description."""
    return System(
        state={"level": range(11), "season": ["dry", "wet"]},
        action={"release": range(4)},
        noise={"rain": Geometric(Beta(8, 16), most=6), "turns": Bernoulli(0.1)},
        step={
            "level": "min(level - release + (rain if season == 'wet' else floor(rain / 2)), 10)",
            "season": "('dry' if season == 'wet' else 'wet') if turns else season",
        },
        costs={"power": "release * sqrt(level)"},
        available="release <= level",
        start={"level": 5, "season": "dry"},
        maximise="power",
        limits=["3 <= level <= 6", "p10(level) >= 5"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"release": k} for k in range(4) if k <= state["level"]]


def _step(state: Values, action: Values, noise: Values) -> Values:
    is_wet = state["season"] == "wet"
    level = state["level"] - action["release"] + (noise["rain"] if is_wet else noise["rain"] // 2)
    return {"level": min(level, 10), "season": "wet" if is_wet != bool(noise["turns"]) else "dry"}


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    return {
        "power": action["release"] * math.sqrt(state["level"]),
        "level": state["level"],
        "low": state["level"] < 5,
    }


def _dry_rain(state: Values, numbers: Numbers) -> Numbers:
    return {"rain": numbers["rain"] * (1.6 if state["season"] == "wet" else 1.0)}


TRADE = Trade(
    name="reservoir",
    describe=describe,
    start={"level": 5, "season": "dry"},
    actions=_actions,
    draws={
        "rain": lambda s, a, n: geometric(n["rain"], 6),
        "turns": lambda s, a, n: bernoulli(n["turns"]),
    },
    step=_step,
    amounts=_amounts,
    aim="power",
    maximise=True,
    limits={
        "level": Limit("level", low=3.0, high=6.0),
        "p10(level)": Limit("low", high=0.1, percentile=("level", 0.1)),
    },
    truth={"turns": 0.1},
    priors={"rain": Prior("beta", (8, 16))},
    wrong=Wrong(_dry_rain, {"rain": 1.6}, "rain", ("rain", "turns"), {"turns": 0.2}),
)
