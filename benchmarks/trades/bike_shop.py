"""A bike shop: repairs of three kinds come in, of unknown frequency; overtime costs; long queues must be rare."""

from psconrl.systems import Bernoulli, Beta, Binomial, Categorical, System
from trades.distributions import bernoulli, binomial
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong

KINDS = ("nothing", "tube", "frame")
WORK = {"nothing": 0, "tube": 1, "frame": 4}


def describe() -> System:
    """Return the description."""
    return System(
        state={"work": range(24)},
        action={"hours": ["short", "normal", "long"]},
        noise={
            "job": Categorical(["nothing", "tube", "frame"], prior=[6, 8, 5]),
            "ill": Bernoulli(Beta(2, 18)),
            "luck": Binomial(2, 0.4),
        },
        step={
            "work": "min(max(work - (0 if ill else 1 if hours == 'short' else 2 if hours == 'normal' else 3) - luck, 0)"
            " + (0 if job == 'nothing' else 1 if job == 'tube' else 4), 23)"
        },
        costs={"wages": "1 if hours == 'short' else 1.8 if hours == 'normal' else 3.1", "queue": "work"},
        start={"work": 0},
        minimise="wages",
        limits=["cvar80(queue) <= 8"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"hours": hours} for hours in ("short", "normal", "long")]


def _step(state: Values, action: Values, noise: Values) -> Values:
    done = 0 if noise["ill"] else {"short": 1, "normal": 2, "long": 3}[action["hours"]]
    return {"work": min(max(state["work"] - done - noise["luck"], 0) + WORK[noise["job"]], 23)}


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    return {"wages": {"short": 1.0, "normal": 1.8, "long": 3.1}[action["hours"]], "queue": state["work"]}


def _ill_of_work(state: Values, numbers: Numbers) -> Numbers:
    return {"ill": numbers["ill"] * (4.0 if state["work"] >= 6 else 1.0)}


TRADE = Trade(
    name="bike shop",
    describe=describe,
    start={"work": 0},
    actions=_actions,
    draws={
        "job": lambda s, a, n: dict(zip(KINDS, n["job"], strict=True)),
        "ill": lambda s, a, n: bernoulli(n["ill"]),
        "luck": lambda s, a, n: binomial(2, n["luck"]),
    },
    step=_step,
    amounts=_amounts,
    aim="wages",
    limits={"cvar80(queue)": Limit("queue", high=8.0, worst=0.2)},
    truth={"luck": 0.4},
    priors={"job": Prior("dirichlet", (6, 8, 5)), "ill": Prior("beta", (2, 18))},
    wrong=Wrong(_ill_of_work, {"ill": 3.0}, "luck", ("ill", "luck"), {"luck": 0.6}),
    seen=("job", "ill"),
)
