"""Systems that were written before any agent was run on them.

The results of ``call_centre`` led to a change of the default, the fallback of agents with known structure. ``rentals``
was written after that, and before it was tried.
"""

from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Categorical
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

Known = dict[str, object]


def perishable() -> tuple[System, Known]:
    """Goods that last two days and are ordered a day ahead; demand is censored by the shelf. 64 states."""
    left = "max(old - demand, 0)"
    system = System(
        state={"fresh": range(4), "old": range(4), "coming": range(4)},
        action={"order": range(4)},
        noise={"demand": Categorical(range(6), prior=1.0)},
        step={"fresh": "coming", "old": "max(fresh - max(demand - old, 0), 0)", "coming": "order"},
        costs={
            "purchase": "order",
            "spoilt": left,
            "lost": "max(demand - fresh - old, 0)",
        },
        start={"fresh": 0, "old": 0, "coming": 0},
        minimise="purchase",
        limits=["spoilt <= 0.15", "lost <= 0.5"],
    )
    return system, {"demand": [0.1, 0.25, 0.3, 0.2, 0.1, 0.05]}


def repair() -> tuple[System, Known]:
    """Five machines that fail, one mechanic who needs a spare part for each, and deliveries of parts. 48 states."""
    mended = "fixed if broken > 0 and parts > 0 and mend == 1 else 0"
    system = System(
        state={"broken": range(6), "parts": range(4), "ordered": range(2)},
        action={"mend": range(2), "order": range(2)},
        noise={
            "failures": Binomial("5 - broken", Beta(1, 1)),
            "fixed": Bernoulli(Beta(1, 1)),
            "delivered": Bernoulli(Beta(1, 1)),
        },
        step={
            "broken": f"broken + failures - ({mended})",
            "parts": f"min(parts - ({mended}) + (2 if ordered == 1 and delivered == 1 else 0), 3)",
            "ordered": "1 if (ordered == 1 and delivered == 0) or (ordered == 0 and order == 1) else 0",
        },
        costs={"cost": "0.5 * parts + mend + (2 if ordered == 0 and order == 1 else 0)", "idle": "broken"},
        start={"broken": 0, "parts": 3, "ordered": 0},
        minimise="cost",
        limits=["idle <= 1.2"],
    )
    return system, {"failures": 0.06, "fixed": 0.6, "delivered": 0.3}


def call_centre() -> tuple[System, Known]:
    """Calls that wait for one to four agents, or hang up. 21 states."""
    system = System(
        state={"calls": range(21)},
        action={"agents": range(1, 5)},
        events={
            "call": Event(Gamma(1, 1), {"calls": "calls + 1"}, when="calls < 20"),
            "served": Event(Gamma(1, 1), {"calls": "calls - 1"}, times="min(calls, agents)"),
            "hangs_up": Event(
                Gamma(1, 1), {"calls": "calls - 1"}, times="max(calls - agents, 0)", costs={"abandoned": 1}
            ),
        },
        clock=6.5,
        costs={"staff": "agents", "abandoned": 0, "waiting": "max(calls - agents, 0)"},
        minimise="staff",
        limits=["abandoned <= 0.08", "waiting <= 0.6"],
    )
    return system, {"call": 1.5, "served": 0.6, "hangs_up": 0.15}


def rentals() -> tuple[System, Known]:
    """Two classes of customers rent eight cars, some of which need cleaning when they return. 165 states."""
    out, value = "short + long", {"short": 1.0, "long": 3.0}
    events = {}
    for kind in value:
        events[f"{kind}_asks"] = Event(
            Gamma(1, 1),
            {kind: f"{kind} + 1"},
            when=f"{out} + dirty < 8 and rent_{kind} == 1",
            costs={"earned": value[kind]},
        )
        events[f"{kind}_returns"] = Event(Gamma(1, 1), {kind: f"{kind} - 1", "dirty": "dirty + 1"}, times=kind)
    events["cleaned"] = Event(Gamma(1, 1), {"dirty": "dirty - 1"}, times="1 + crew", when="dirty > 0")
    system = System(
        state={"short": range(9), "long": range(9), "dirty": range(9)},
        action={"rent_short": 2, "rent_long": 2, "crew": 2},
        events=events,
        clock=6.0,
        costs={"earned": "-0.4 * crew", "away": out, "dirty_cars": "dirty"},
        maximise="earned",
        limits=["away <= 4", "dirty_cars <= 1"],
    )
    return system, {"short_asks": 1.0, "short_returns": 0.4, "long_asks": 0.5, "long_returns": 0.1, "cleaned": 0.5}


HELD_OUT = {"perishable": perishable, "repair": repair, "call centre": call_centre, "rentals": rentals}
