"""A call centre in continuous time: two kinds of calls, an agent who can take both, and one for the second only."""

from psconrl.systems import Event, Gamma, System
from trades.distributions import next_event
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong

ROOM, CLOCK = 5, 4.0


def describe() -> System:
    """Return the description."""
    return System(
        state={"sales": range(ROOM), "support": range(ROOM)},
        action={"first": ["sales", "support"]},
        events={
            "order": Event(Gamma(20, 40), step={"sales": "min(sales + 1, 4)"}, costs={"refused": "sales == 4"}),
            "problem": Event(Gamma(14, 20), step={"support": "min(support + 1, 4)"}, costs={"refused": "support == 4"}),
            "sold": Event(0.9, when="sales > 0 and first == 'sales'", step={"sales": "sales - 1"}),
            "solved": Event(
                0.6,
                times="(support > 0) + (support > 1 and first == 'support')",
                step={"support": "support - 1"},
            ),
        },
        clock=CLOCK,
        costs={"waiting": "sales + 3 * support", "refused": 0},
        start={"sales": 0, "support": 0},
        minimise="waiting",
        limits=["P(sales >= 3) <= 20%"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"first": "sales"}, {"first": "support"}]


def _rates(state: Values, action: Values, numbers: Numbers) -> dict[str, float]:
    on_support = (state["support"] > 0) + (state["support"] > 1 and action["first"] == "support")
    return {
        "order": numbers["order"],
        "problem": numbers["problem"],
        "sold": numbers["sold"] if state["sales"] > 0 and action["first"] == "sales" else 0.0,
        "solved": numbers["solved"] * on_support,
    }


def _step(state: Values, action: Values, noise: Values) -> Values:
    sales, support = state["sales"], state["support"]
    sales = min(sales + (noise["event"] == "order"), ROOM - 1) - (noise["event"] == "sold")
    support = min(support + (noise["event"] == "problem"), ROOM - 1) - (noise["event"] == "solved")
    return {"sales": sales, "support": support}


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    return {"waiting": state["sales"] + 3 * state["support"], "many": state["sales"] >= 3}


def _impatient(state: Values, numbers: Numbers) -> Numbers:
    return {"problem": numbers["problem"] * (0.4 if state["support"] >= 2 else 1.0)}


TRADE = Trade(
    name="call centre",
    describe=describe,
    start={"sales": 0, "support": 0},
    actions=_actions,
    draws={"event": lambda s, a, n: next_event(_rates(s, a, n), CLOCK)},
    step=_step,
    amounts=_amounts,
    aim="waiting",
    limits={"P(sales >= 3)": Limit("many", high=0.2)},
    truth={"sold": 0.9, "solved": 0.6},
    priors={"order": Prior("gamma", (20, 40)), "problem": Prior("gamma", (14, 20))},
    wrong=Wrong(_impatient, {"problem": 1.7}, "order", ("order", "problem"), {"solved": 0.35}),
    timed=True,
)
