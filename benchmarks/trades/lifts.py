"""Maintenance of four lifts in continuous time: they break, a technician repairs or waits, and few may stand still."""

from psconrl.systems import Event, Gamma, System
from trades.distributions import next_event
from trades.trade import Limit, Numbers, Prior, Trade, Values, Wrong

CLOCK = 6.0


def describe() -> System:
    """Return the description."""
    return System(
        state={"broken": range(5), "crowd": [0, 1], "stuck": [0, 1]},
        action={"crew": ["home", "one", "two"]},
        events={
            "breaks": Event(
                Gamma(10, 50),
                times="4 - broken",
                step={"broken": "broken + 1"},
            ),
            "jams": Event(Gamma(6, 30), when="stuck == 0 and broken < 4", step={"stuck": 1}),
            "mended": Event(
                0.8,
                times="min(broken, 0 if crew == 'home' else 1 if crew == 'one' else 2)",
                step={"broken": "broken - 1"},
            ),
            "freed": Event(1.5, when="stuck == 1", step={"stuck": 0}, costs={"fees": 2}),
            "rush": Event(0.3, step={"crowd": "1 - crowd"}),
        },
        clock=CLOCK,
        costs={
            "fees": "0 if crew == 'home' else 1 if crew == 'one' else 2.6",
            "standing": "broken * (1 + crowd)",
        },
        start={"broken": 0, "crowd": 0, "stuck": 0},
        minimise="fees",
        limits=["standing <= 1.6", "P(broken >= 3, given=crowd == 1) <= 5%"],
    )


def _actions(state: Values) -> list[Values]:
    return [{"crew": crew} for crew in ("home", "one", "two")]


def _rates(state: Values, action: Values, numbers: Numbers) -> dict[str, float]:
    return {
        "breaks": numbers["breaks"] * (4 - state["broken"]),
        "jams": numbers["jams"] if state["stuck"] == 0 and state["broken"] < 4 else 0.0,
        "mended": numbers["mended"] * min(state["broken"], {"home": 0, "one": 1, "two": 2}[action["crew"]]),
        "freed": numbers["freed"] if state["stuck"] else 0.0,
        "rush": numbers["rush"],
    }


def _step(state: Values, action: Values, noise: Values) -> Values:
    event = noise["event"]
    return {
        "broken": state["broken"] + (event == "breaks") - (event == "mended"),
        "crowd": 1 - state["crowd"] if event == "rush" else state["crowd"],
        "stuck": state["stuck"] + (event == "jams") - (event == "freed"),
    }


def _amounts(state: Values, action: Values, noise: Values, then: Values) -> dict[str, float]:
    return {
        "fees": {"home": 0.0, "one": 1.0, "two": 2.6}[action["crew"]] + 2.0 * CLOCK * (noise["event"] == "freed"),
        "standing": state["broken"] * (1 + state["crowd"]),
        "crowd": state["crowd"],
        "many in the crowd": state["crowd"] and state["broken"] >= 3,
    }


def _strain(state: Values, numbers: Numbers) -> Numbers:
    return {"breaks": numbers["breaks"] * (2.0 if state["crowd"] else 0.8)}


TRADE = Trade(
    name="lifts",
    describe=describe,
    start={"broken": 0, "crowd": 0, "stuck": 0},
    actions=_actions,
    draws={"event": lambda s, a, n: next_event(_rates(s, a, n), CLOCK)},
    step=_step,
    amounts=_amounts,
    aim="fees",
    limits={
        "standing": Limit("standing", high=1.6),
        "P(broken >= 3, given=crowd == 1)": Limit("many in the crowd", high=0.05, over="crowd"),
    },
    truth={"mended": 0.8, "freed": 1.5, "rush": 0.3},
    priors={"breaks": Prior("gamma", (10, 50)), "jams": Prior("gamma", (6, 30))},
    wrong=Wrong(_strain, {"breaks": 1.7}, "breaks", ("breaks", "jams"), {"mended": 0.45}),
    timed=True,
)
