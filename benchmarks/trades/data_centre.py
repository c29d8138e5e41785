"""A data centre: batch jobs queue for hours of cheap power or of sun; nineteen of twenty queues must be short."""

from psconrl.systems import Categorical, Gamma, Poisson, System
from trades.distributions import poisson
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong

TARIFF = (1.0, 3.0, 2.0, 4.0)


def describe() -> System:
    """Return the description."""
    return System(
        state={"hour": range(4), "sun": [0, 1, 2], "jobs": range(13)},
        action={"run": range(5)},
        noise={
            "arriving": Poisson(Gamma(30, 20), most=8),
            "sky": Categorical({0: 0.5, 1: 0.3, 2: 0.2}),
        },
        step={
            "hour": "(hour + 1) % 4",
            "sun": "sky if hour < 2 else 0",
            "jobs": "min(jobs - run + arriving, 12)",
        },
        costs={
            "bill": "max(run - sun, 0) * (1 if hour == 0 else 3 if hour == 1 else 2 if hour == 2 else 4)",
            "dropped": "max(jobs - run + arriving - 12, 0)",
        },
        available="run <= jobs",
        start={"hour": 0, "sun": 0, "jobs": 0},
        minimise="bill",
        limits=["p95(jobs) <= 8", "dropped / arriving <= 1%"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"run": k} for k in range(5) if k <= state["jobs"]]


def _step(state: Values, action: Values, noise: Values) -> Values:
    return {
        "hour": (state["hour"] + 1) % 4,
        "sun": noise["sky"] if state["hour"] < 2 else 0,
        "jobs": min(state["jobs"] - action["run"] + noise["arriving"], 12),
    }


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    return {
        "bill": max(action["run"] - state["sun"], 0) * TARIFF[state["hour"]],
        "dropped": max(state["jobs"] - action["run"] + noise["arriving"] - 12, 0),
        "arriving": noise["arriving"],
        "jobs": state["jobs"],
        "long": state["jobs"] > 8,
    }


def _night(state: Values, numbers: Numbers) -> Numbers:
    return {"arriving": numbers["arriving"] * (0.5 if state["hour"] == 3 else 1.2)}


TRADE = Trade(
    name="data centre",
    describe=describe,
    start={"hour": 0, "sun": 0, "jobs": 0},
    actions=_actions,
    draws={
        "arriving": lambda s, a, n: poisson(n["arriving"], 8),
        "sky": lambda s, a, n: dict(enumerate(n["sky"])),
    },
    step=_step,
    amounts=_amounts,
    aim="bill",
    limits={
        "p95(jobs)": Limit("long", high=0.05, percentile=("jobs", 0.95)),
        "dropped / arriving": Limit("dropped", high=0.01, over="arriving"),
    },
    truth={"sky": [0.5, 0.3, 0.2]},
    priors={"arriving": Prior("gamma", (30, 20))},
    wrong=Wrong(_night, {"arriving": 1.5}, "arriving", ("arriving", "sky"), {"sky": [0.7, 0.2, 0.1]}),
    seen=("arriving", "sky"),
)
