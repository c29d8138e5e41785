"""A dairy: milk comes from six farms, cheese is made and sold; the cost per cheese sold is minimised."""

from psconrl.systems import Bernoulli, Beta, Binomial, Gamma, Poisson, System
from trades.distributions import bernoulli, binomial, poisson
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong


def describe() -> System:
    """Return the description."""
    return System(
        state={"milk": range(7), "cheese": range(9)},
        action={"make": range(5)},
        noise={
            "delivered": Binomial(4, Beta(12, 12)),
            "orders": Poisson(Gamma(32, 16), most=9),
            "mould": Bernoulli(0.1),
        },
        step={
            "milk": "min(milk - make + delivered, 6)",
            "cheese": "min(max(cheese - mould - orders, 0) + make, 8)",
        },
        costs={
            "money": "1 + 0.3 * milk + 0.2 * cheese + 0.5 * (make > 0)",
            "spilt": "max(milk - make + delivered - 6, 0)",
            "sold": "min(max(cheese - mould, 0), orders)",
        },
        available="make <= milk and (make > 0 or milk == 0 or cheese > 1)",
        start={"milk": 2, "cheese": 3},
        minimise="money / sold",
        limits=["spilt / delivered <= 8%", "2 <= cheese <= 4"],
    )


def _actions(state: Values) -> list[Values]:
    must = state["milk"] > 0 and state["cheese"] <= 1
    return [{"make": k} for k in range(must, min(state["milk"], 4) + 1)]


def _step(state: Values, action: Values, noise: Values) -> Values:
    return {
        "milk": min(state["milk"] - action["make"] + noise["delivered"], 6),
        "cheese": min(max(state["cheese"] - noise["mould"] - noise["orders"], 0) + action["make"], 8),
    }


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    return {
        "money": 1.0 + 0.3 * state["milk"] + 0.2 * state["cheese"] + 0.5 * (action["make"] > 0),
        "spilt": max(state["milk"] - action["make"] + noise["delivered"] - 6, 0),
        "sold": min(max(state["cheese"] - noise["mould"], 0), noise["orders"]),
        "delivered": noise["delivered"],
        "cheese": state["cheese"],
    }


def _spoilt_stock(state: Values, numbers: Numbers) -> Numbers:
    return {"orders": numbers["orders"] * (0.5 if state["cheese"] >= 4 else 1.0)}


TRADE = Trade(
    name="dairy",
    describe=describe,
    start={"milk": 2, "cheese": 3},
    actions=_actions,
    draws={
        "delivered": lambda s, a, n: binomial(4, n["delivered"]),
        "orders": lambda s, a, n: poisson(n["orders"], 9),
        "mould": lambda s, a, n: bernoulli(n["mould"]),
    },
    step=_step,
    amounts=_amounts,
    aim="money",
    aim_over="sold",
    limits={
        "spilt / delivered": Limit("spilt", high=0.08, over="delivered"),
        "cheese": Limit("cheese", low=2.0, high=4.0),
    },
    truth={"mould": 0.1},
    priors={"delivered": Prior("beta", (12, 12)), "orders": Prior("gamma", (32, 16))},
    wrong=Wrong(_spoilt_stock, {"orders": 0.6}, "delivered", ("delivered", "orders"), {"mould": 0.3}),
    seen=("mould",),
)
