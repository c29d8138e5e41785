"""A bakery: dough is made on the day before; demand, of unknown rate, changes only what is sold and what is wasted."""

from psconrl.systems import Binomial, Gamma, Poisson, System
from trades.distributions import binomial, poisson
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong


def describe() -> System:
    """Return the description."""
    return System(
        state={"weekday": range(7), "dough": range(8)},
        action={"prepare": range(8)},
        noise={
            "demand": Poisson(Gamma(24, 8), most=12, times="1.5 if weekday >= 5 else 1"),
            "burnt": Binomial("dough", 0.08),
        },
        step={"weekday": "(weekday + 1) % 7", "dough": "prepare"},
        costs={
            "money": "prepare + 0.5 * max(dough - burnt - demand, 0)",
            "lost": "max(demand - dough + burnt, 0)",
        },
        start={"weekday": 0, "dough": 3},
        minimise="money",
        limits=["lost / demand <= 20%"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"prepare": k} for k in range(8)]


def _step(state: Values, action: Values, noise: Values) -> Values:
    return {"weekday": (state["weekday"] + 1) % 7, "dough": action["prepare"]}


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    good = state["dough"] - noise["burnt"]
    return {
        "money": action["prepare"] + 0.5 * max(good - noise["demand"], 0),
        "lost": max(noise["demand"] - good, 0),
        "demand": noise["demand"],
    }


def _monday_is_slack(state: Values, numbers: Numbers) -> Numbers:
    return {"demand": numbers["demand"] * (0.4 if state["weekday"] < 2 else 1.0)}


TRADE = Trade(
    name="bakery",
    describe=describe,
    start={"weekday": 0, "dough": 3},
    actions=_actions,
    draws={
        "demand": lambda s, a, n: poisson(n["demand"] * (1.5 if s["weekday"] >= 5 else 1.0), 12),
        "burnt": lambda s, a, n: binomial(s["dough"], n["burnt"]),
    },
    step=_step,
    amounts=_amounts,
    aim="money",
    limits={"lost / demand": Limit("lost", high=0.2, over="demand")},
    truth={"burnt": 0.08},
    priors={"demand": Prior("gamma", (24, 8))},
    wrong=Wrong(_monday_is_slack, {"demand": 1.6}, "demand", ("demand", "burnt"), {"burnt": 0.2}),
    costs_seen=("money", "lost"),
)
