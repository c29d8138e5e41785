"""A chemotherapy ward: patients come for treatment, stay for some days, and Fridays must not be crowded."""

from psconrl.systems import Bernoulli, Beta, Binomial, System
from trades.distributions import bernoulli, binomial
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong


def describe() -> System:
    """Return the description."""
    return System(
        state={"weekday": range(5), "treated": range(7), "waiting": range(4)},
        action={"admit": range(4)},
        noise={
            "leaving": Binomial("treated", Beta(8, 12)),
            "referred": Binomial(3, Beta(7, 14)),
            "urgent": Bernoulli(0.2),
        },
        step={
            "weekday": "(weekday + 1) % 5",
            "treated": "min(treated - leaving + admit + urgent, 6)",
            "waiting": "min(waiting - admit + referred, 3)",
        },
        costs={"wait": "waiting", "away": "max(waiting - admit + referred - 3, 0)"},
        available="admit <= waiting and treated + admit <= 6",
        start={"weekday": 0, "treated": 2, "waiting": 0},
        minimise="wait + 5 * away",
        limits=["p90(treated, given=weekday == 4) <= 3", "mean(treated, given=weekday < 2) <= 3.1"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"admit": k} for k in range(4) if k <= state["waiting"] and state["treated"] + k <= 6]


def _step(state: Values, action: Values, noise: Values) -> Values:
    return {
        "weekday": (state["weekday"] + 1) % 5,
        "treated": min(state["treated"] - noise["leaving"] + action["admit"] + noise["urgent"], 6),
        "waiting": min(state["waiting"] - action["admit"] + noise["referred"], 3),
    }


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    friday, early = state["weekday"] == 4, state["weekday"] < 2
    away = max(state["waiting"] - action["admit"] + noise["referred"] - 3, 0)
    return {
        "burden": state["waiting"] + 5 * away,
        "friday": friday,
        "treated": state["treated"],
        "crowded friday": friday and state["treated"] > 3,
        "early": early,
        "treated early": state["treated"] if early else 0,
    }


def _weekend(state: Values, numbers: Numbers) -> Numbers:
    return {"referred": numbers["referred"] * (1.9 if state["weekday"] == 0 else 1.0)}


TRADE = Trade(
    name="chemotherapy",
    describe=describe,
    start={"weekday": 0, "treated": 2, "waiting": 0},
    actions=_actions,
    draws={
        "leaving": lambda s, a, n: binomial(s["treated"], n["leaving"]),
        "referred": lambda s, a, n: binomial(3, n["referred"]),
        "urgent": lambda s, a, n: bernoulli(n["urgent"]),
    },
    step=_step,
    amounts=_amounts,
    aim="burden",
    limits={
        "p90(treated, given=weekday == 4)": Limit(
            "crowded friday", high=0.1, over="friday", percentile=("treated", 0.9)
        ),
        "mean(treated, given=weekday < 2)": Limit("treated early", high=3.1, over="early"),
    },
    truth={"urgent": 0.2},
    priors={"leaving": Prior("beta", (8, 12)), "referred": Prior("beta", (7, 14))},
    wrong=Wrong(_weekend, {"referred": 1.6}, "referred", ("leaving", "referred"), {"urgent": 0.4}),
    seen=("leaving", "referred", "urgent"),
)
