"""Learning with known structure: a belief over the parameters of the noise, against nothing known.

    python benchmarks/structure.py [--systems inventory,queue] [--runs 10] [--rounds 10000] [--agents default,structure]

Every round pays what happened. Scores are regret plus overspending at twice its price.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import psconrl
from psconrl.agents import LearnedMass
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Categorical
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

Known = dict[str, object]


def inventory() -> tuple[System, Known]:
    """Order up to eight units for a day with six possible demands, censored by the shelf."""
    system = System(
        state={"stock": range(9)},
        action={"order": range(9)},
        noise={"demand": Categorical(range(6), prior=1.0)},
        step={"stock": "max(min(stock + order, 8) - demand, 0)"},
        costs={
            "holding": "next_stock",
            "lost": "max(demand - min(stock + order, 8), 0)",
            "orders": "min(stock + order, 8) > stock",
        },
        start={"stock": 8},
        minimise="holding",
        limits=["lost <= 0.3", "orders <= 0.4"],
    )
    return system, {"demand": np.array([1, 5, 10, 10, 5, 1]) / 32}


def network(side: int = 6, limit: float | None = None) -> tuple[System, Known]:
    """Two stations with routing: seven unknown rates."""
    last = side - 1
    to_first = "to == 'first' or (to == 'fast' and first <= second)"
    to_second = "to == 'second' or (to == 'fast' and first > second)"
    usual, fast = "to != 'fast'", "to == 'fast'"
    leave, go_on = {"first": "first - 1"}, {"first": "first - 1", "second": f"min(second + 1, {last})"}
    arrival = Gamma(1, 1)
    events = {
        "arrival": Event(arrival, {"first": f"min(first + 1, {last})"}, when=to_first),
        "arrival2": Event(arrival, {"second": f"min(second + 1, {last})"}, when=to_second),
        "leave": Event(Gamma(1, 1), leave, when=f"first > 0 and {usual}", costs={"earned": 1}),
        "leave_fast": Event(Gamma(1, 1), leave, when=f"first > 0 and {fast}", costs={"earned": 1}),
        "onward": Event(Gamma(1, 1), go_on, when=f"first > 0 and {usual}"),
        "onward_fast": Event(Gamma(1, 1), go_on, when=f"first > 0 and {fast}"),
        "served": Event(Gamma(1, 1), {"second": "second - 1"}, when=f"second > 0 and {usual}", costs={"earned": 1}),
        "served_fast": Event(Gamma(1, 1), {"second": "second - 1"}, when=f"second > 0 and {fast}", costs={"earned": 1}),
    }
    system = System(
        state={"first": range(side), "second": range(side)},
        action={"to": ["first", "second", "refuse", "fast"]},
        events=events,
        clock=2.5,
        costs={"earned": "-0.15 if to == 'fast' else 0", "waiting": "first + second"},
        maximise="earned",
        limits=[f"waiting <= {12.0 if limit is None else limit}"],
    )
    rates = {"arrival": 1.2, "arrival2": 1.2, "leave": 0.6 * 0.8, "onward": 0.6 * 0.2, "served": 0.5}
    return system, rates | {"leave_fast": 0.7 * 0.8, "onward_fast": 0.7 * 0.2, "served_fast": 0.6}


def stock() -> tuple[System, Known]:
    """Two items on shelves of five, and one truck: who asks is censored by an empty shelf."""
    system = System(
        state={"a": range(6), "b": range(6)},
        action={"send": ["none", "a", "b"]},
        noise={"asks": Categorical(["none", "a", "b"], prior=1.0), "arrives": Bernoulli(Beta(1, 1))},
        step={
            "a": "min(max(a - (asks == 'a'), 0) + (3 if send == 'a' and arrives == 1 else 0), 5)",
            "b": "min(max(b - (asks == 'b'), 0) + (3 if send == 'b' and arrives == 1 else 0), 5)",
        },
        costs={"cost": "a + b + 2 * (send != 'none')", "lost_a": "a == 0", "lost_b": "b == 0"},
        start={"a": 5, "b": 5},
        minimise="cost",
        limits=["lost_a <= 0.1", "lost_b <= 0.1"],
    )
    return system, {"asks": [0.4, 0.4, 0.2], "arrives": 0.2}


def ward() -> tuple[System, Known]:
    """A ward of three beds and three classes: six unknown rates, three staff levels."""
    kinds = ("urgent", "elective", "transfer")
    arrivals, discharges, values = (0.16, 0.2, 0.1), (0.02, 0.03, 0.025), (5.0, 2.0, 3.0)
    events, known = {}, {}
    total = " + ".join(kinds)
    for kind, come, leave, value in zip(kinds, arrivals, discharges, values, strict=True):
        admits = "True" if kind == "urgent" else f"admit_{kind} == 1"
        events[f"{kind}_comes"] = Event(
            Gamma(1, 5), {kind: f"{kind} + 1"}, when=f"{total} < 3 and {admits}", costs={"value": value}
        )
        events[f"{kind}_goes"] = Event(
            Gamma(1, 20), {kind: f"{kind} - 1"}, times=f"{kind} * (0.6 + 0.2 * staff)", when=f"{kind} > 0"
        )
        known |= {f"{kind}_comes": come, f"{kind}_goes": leave}
    system = System(
        state={kind: range(4) for kind in kinds},
        action={"staff": range(3), "admit_elective": 2, "admit_transfer": 2},
        events=events,
        clock=0.6,
        costs={
            "value": 0,
            "nurses": "3 if staff == 0 else (4 if staff == 1 else 6)",
            "refused": f"{total} == 3",
            "occupied": total,
        },
        maximise="value",
        limits=["nurses <= 4.5", "refused <= 0.35", "occupied <= 2.4"],
    )
    return system, known


SYSTEMS = {"inventory": inventory, "network": network, "stock": stock, "ward": ward}


def score(name: str, agent: str, rounds: int, run: int) -> tuple[float, float]:
    """Return the score of a run, and its seconds."""
    system, known = SYSTEMS[name]()
    true = system.with_noise(**known)
    model = true.model_for_learning()
    best = psconrl.plan(true.model())
    sizes = (model.n_states, model.n_actions, model.thresholds)
    if agent == "structure":
        made = psconrl.PSConRL.of(system, seed=run)
    elif agent == "uniform":
        made = psconrl.agents.make("uniform", *sizes, seed=run)
    else:
        support = (model.transition.toarray() > 0).reshape(model.n_states, model.n_actions, -1)
        belief = LearnedMass(support=support) if agent == "support" else None
        made = psconrl.PSConRL(*sizes, model.costs, belief=belief, seed=run)
    begun = time.perf_counter()
    total = psconrl.simulate(true, made, rounds, seed=10_000 + run).cumulative[-1]
    seconds = time.perf_counter() - begun
    lost = total[0] - rounds * best.certificate.lower
    return float(lost + 2.0 * np.maximum(total[1:] - rounds * model.thresholds, 0.0) @ best.multipliers), seconds


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--agents", default="uniform,default,support,structure")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    agents = options.agents.split(",")
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.systems.split(","):
            system, known = SYSTEMS[name]()
            model = system.model(**known)
            print(name, model, psconrl.plan(model), flush=True)
            for agent in agents:
                runs = [(name, agent, options.rounds, run) for run in range(options.runs)]
                found = np.array(list(pool.map(score, *zip(*runs, strict=True))))
                error = found[:, 0].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
                print(f"  {agent:10} {found[:, 0].mean():8.0f} ± {error:.0f}, worst {found[:, 0].max():.0f}, "
                      f"{found[:, 1].mean():.1f} s a run", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
