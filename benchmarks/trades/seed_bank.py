"""The cold store of a seed bank: a compressor that wears, hot days, and a warmth that is allowed only rarely."""

from psconrl.systems import Bernoulli, Beta, Binomial, System
from trades.distributions import bernoulli, binomial
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong


def describe() -> System:
    """Return the description."""
    return System(
        state={"warmth": range(7), "compressor": ["good", "worn"], "time": ["day", "night"]},
        action={"mode": ["off", "low", "high", "service"]},
        noise={
            "heat": Binomial(3, Beta(8, 12)),
            "wears": Bernoulli(0.1, when="mode == 'high' and compressor == 'good'"),
            "stalls": Bernoulli(Beta(6, 14), when="compressor == 'worn' and mode != 'service'"),
        },
        step={
            "warmth": "min(max(warmth + heat - (1 - stalls) * ((mode == 'low') + 3 * (mode == 'high')), 0), 6)",
            "compressor": "'worn' if wears else 'good' if mode == 'service' else compressor",
            "time": "'night' if time == 'day' else 'day'",
        },
        costs={
            "power": "((mode == 'low') + 2.5 * (mode == 'high') + 6 * (mode == 'service')) * (1 + (time == 'day'))",
            "warm": "warmth >= 4",
        },
        start={"warmth": 0, "compressor": "good", "time": "day"},
        minimise="power",
        limits=["warm <= 10%", "P(warmth == 6) <= 2%"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"mode": mode} for mode in ("off", "low", "high", "service")]


def _step(state: Values, action: Values, noise: Values) -> Values:
    cooled = 0 if noise["stalls"] else {"low": 1, "high": 3}.get(action["mode"], 0)
    after = "worn" if noise["wears"] else "good" if action["mode"] == "service" else state["compressor"]
    later = "night" if state["time"] == "day" else "day"
    return {"warmth": min(max(state["warmth"] + noise["heat"] - cooled, 0), 6), "compressor": after, "time": later}


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    tariff = 2.0 if state["time"] == "day" else 1.0
    return {
        "power": tariff * {"off": 0.0, "low": 1.0, "high": 2.5, "service": 6.0}[action["mode"]],
        "warm": state["warmth"] >= 4,
        "hot": state["warmth"] == 6,
    }


def _wears(state: Values, action: Values, numbers: Numbers) -> dict[int, float]:
    strained = action["mode"] == "high" and state["compressor"] == "good"
    return bernoulli(numbers["wears"] if strained else 0.0)


def _stalls(state: Values, action: Values, numbers: Numbers) -> dict[int, float]:
    return bernoulli(numbers["stalls"] if state["compressor"] == "worn" and action["mode"] != "service" else 0.0)


def _sun(state: Values, numbers: Numbers) -> Numbers:
    return {"heat": numbers["heat"] * (1.4 if state["time"] == "day" else 0.6)}


TRADE = Trade(
    name="seed bank",
    describe=describe,
    start={"warmth": 0, "compressor": "good", "time": "day"},
    actions=_actions,
    draws={"heat": lambda s, a, n: binomial(3, n["heat"]), "wears": _wears, "stalls": _stalls},
    step=_step,
    amounts=_amounts,
    aim="power",
    limits={"warm": Limit("warm", high=0.1), "P(warmth == 6)": Limit("hot", high=0.02)},
    truth={"wears": 0.1},
    priors={"heat": Prior("beta", (8, 12)), "stalls": Prior("beta", (6, 14))},
    wrong=Wrong(_sun, {"heat": 1.4}, "heat", ("heat", "wears"), {"wears": 0.25}),
)
