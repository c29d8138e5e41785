"""Cars at a station: customers who find none go away unseen; cars come back; a driver fetches some at a cost."""

from psconrl.systems import Bernoulli, Beta, Binomial, Gamma, Poisson, System
from trades.distributions import bernoulli, binomial, poisson
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong


def describe() -> System:
    """Return the description."""
    return System(
        state={"hour": range(4), "here": range(9)},
        action={"fetch": range(3)},
        noise={
            "wanted": Poisson(Gamma(30, 20), most=8, times="2 if hour == 1 else 1"),
            "returned": Binomial("8 - here", Beta(6, 14)),
            "driver": Bernoulli(0.9),
        },
        step={"hour": "(hour + 1) % 4", "here": "min(max(here - wanted, 0) + returned + fetch * driver, 8)"},
        costs={"effort": "fetch", "turned": "max(wanted - here, 0)"},
        start={"hour": 0, "here": 4},
        minimise="effort",
        limits=["turned / wanted <= 15%", "P(here == 0, given=hour == 2) <= 10%"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"fetch": k} for k in range(3)]


def _step(state: Values, action: Values, noise: Values) -> Values:
    left = max(state["here"] - noise["wanted"], 0)
    return {
        "hour": (state["hour"] + 1) % 4,
        "here": min(left + noise["returned"] + action["fetch"] * noise["driver"], 8),
    }


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    after = state["hour"] == 2
    return {
        "effort": action["fetch"],
        "turned": max(noise["wanted"] - state["here"], 0),
        "wanted": noise["wanted"],
        "after": after,
        "empty after the rush": after and state["here"] == 0,
    }


def _evening(state: Values, numbers: Numbers) -> Numbers:
    return {"wanted": numbers["wanted"] * (1.8 if state["hour"] == 3 else 1.0)}


TRADE = Trade(
    name="car sharing",
    describe=describe,
    start={"hour": 0, "here": 4},
    actions=_actions,
    draws={
        "wanted": lambda s, a, n: poisson(n["wanted"] * (2.0 if s["hour"] == 1 else 1.0), 8),
        "returned": lambda s, a, n: binomial(8 - s["here"], n["returned"]),
        "driver": lambda s, a, n: bernoulli(n["driver"]),
    },
    step=_step,
    amounts=_amounts,
    aim="effort",
    limits={
        "turned / wanted": Limit("turned", high=0.15, over="wanted"),
        "P(here == 0, given=hour == 2)": Limit("empty after the rush", high=0.1, over="after"),
    },
    truth={"driver": 0.9},
    priors={"wanted": Prior("gamma", (30, 20)), "returned": Prior("beta", (6, 14))},
    wrong=Wrong(_evening, {"wanted": 1.6}, "returned", ("wanted", "returned"), {"driver": 0.6}),
    seen=("driver",),
)
