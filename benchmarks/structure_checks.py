"""How soon are wrong structures found, and how often are right ones doubted?

    python benchmarks/structure_checks.py [--only main|wrong|right] [--runs 5] [--right 40]

The systems are described in the library and simulated by plain functions of their own, right or wrong in one way. A
case of the first table is played by the default agent, live; the others with random actions, which is faster: the
tests do not depend on how actions are chosen.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import psconrl
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.systems import Bernoulli, Beta, Binomial, Categorical, Event, Gamma, Geometric, Poisson, System

Values = dict[str, Any]
Simulator = Callable[[int, np.random.Generator, Values, Values], tuple[Values, dict[str, float]]]
EVERY = 25  # rounds between looks at the tests, as if episodes were that long

CLINIC = System(
    state={"hour": range(3), "waiting": range(8)},
    action={"clerks": [1, 2]},
    noise={"arrival": Bernoulli(Beta(1, 1)), "done": Bernoulli("0.45 * clerks", when="waiting > 0")},
    step={"hour": "(hour + 1) % 3", "waiting": "min(waiting - done + arrival, 7)"},
    costs={"pay": "clerks", "full": "waiting == 7"},
    minimise="pay",
    limits=["full <= 5%"],
)
SHOP = System(
    state={"shelf": range(11)},
    action={"order": range(6)},
    noise={"demand": Poisson(Gamma(2, 1), most=12)},
    step={"shelf": "min(max(shelf - demand, 0) + order, 10)"},
    costs={"stock": "shelf", "lost": "max(demand - shelf, 0)"},
    start={"shelf": 10},
    minimise="stock",
    limits=["lost / demand <= 5%"],
)
WARD = System(
    state={"patients": range(7)},
    action={"nurses": [1, 2, 3]},
    noise={"discharged": Binomial("patients", Beta(1, 1)), "admitted": Categorical(range(3), prior=1)},
    step={"patients": "min(patients - discharged + admitted, 6)"},
    costs={"pay": "nurses", "crowded": "patients >= 5"},
    minimise="pay",
    limits=["crowded <= 30%"],
)
MACHINE = System(
    state={"wear": range(6)},
    action={"speed": ["slow", "fast"], "repair": [0, 1]},
    noise={"damage": Geometric(Beta(1, 1), most=4), "fixed": Bernoulli(0.9)},
    step={"wear": "min(wear * (1 - repair * fixed) + (1 - repair) * min(damage, 1), 5)"},
    costs={"loss": "2 * wear + 3 * repair - (1 if speed == 'fast' else 0)", "dear": "repair"},
    minimise="loss",
    limits=["dear <= 40%"],
)
LINE = System(
    state={"jobs": range(6)},
    action={"fast": [0, 1]},
    events={
        "arrival": Event(Gamma(2, 2), {"jobs": "jobs + 1"}, when="jobs < 5"),
        "service": Event(Gamma(2, 2), {"jobs": "jobs - 1"}, when="jobs > 0", times="1 + fast"),
    },
    clock=5.0,
    costs={"power": "fast", "queue": "jobs"},
    minimise="power",
    limits=["queue <= 3"],
)


def clinic(arrivals: Callable[[int, Values], float], clerk: float = 0.45) -> Simulator:
    """A clinic by the hour; ``arrivals``: their probability, given the round and the state."""

    def step(t: int, rng: np.random.Generator, s: Values, a: Values) -> Any:
        arrival, done = rng.random() < arrivals(t, s), s["waiting"] > 0 and rng.random() < clerk * a["clerks"]
        after = {"hour": (s["hour"] + 1) % 3, "waiting": min(s["waiting"] - done + arrival, 7)}
        return after, {"pay": a["clerks"], "full <= 5%": float(s["waiting"] == 7)}

    return step


def shop(rate: Callable[[int, Values], float], lost: float = 1.0) -> Simulator:
    """A shop; ``rate``: that of its demand; ``lost``: what a lost sale is entered as."""

    def step(t: int, rng: np.random.Generator, s: Values, a: Values) -> Any:
        demand = min(int(rng.poisson(rate(t, s))), 12)
        after = {"shelf": min(max(s["shelf"] - demand, 0) + a["order"], 10)}
        missed = max(demand - s["shelf"], 0) * lost
        return after, {"stock": s["shelf"], "lost / demand <= 5%": missed - 0.05 * demand}

    return step


def ward(leave: Callable[[int, Values, Values], float], come: Callable[[int], list[float]]) -> Simulator:
    """A ward; the probabilities of a discharge, and of 0, 1 and 2 admissions."""

    def step(t: int, rng: np.random.Generator, s: Values, a: Values) -> Any:
        gone, new = sum(rng.random() < leave(t, s, a) for _ in range(s["patients"])), int(rng.choice(3, p=come(t)))
        return {"patients": min(s["patients"] - gone + new, 6)}, {
            "pay": a["nurses"], "crowded <= 30%": float(s["patients"] >= 5)
        }  # fmt: skip

    return step


def machine(damage: Callable[[Values], float], fixed: float = 0.9, dearer: float = 0.0) -> Simulator:
    """A machine; the probability of no damage, that of a repair that helps, and what a repair costs beyond 3."""

    def step(t: int, rng: np.random.Generator, s: Values, a: Values) -> Any:
        harm, helped = rng.random() > damage(a), rng.random() < fixed
        after = s["wear"] * (1 - a["repair"] * helped) + (1 - a["repair"]) * harm
        loss = 2 * s["wear"] + (3 + dearer) * a["repair"] - (a["speed"] == "fast")
        return {"wear": int(min(after, 5))}, {"loss": loss, "dear <= 40%": a["repair"]}

    return step


def line(service: Callable[[Values], float], arrival: Callable[[int], float] = lambda t: 1.0) -> Simulator:
    """A line in ticks of a clock of rate 5."""

    def step(t: int, rng: np.random.Generator, s: Values, a: Values) -> Any:
        u, n = 5.0 * rng.random(), s["jobs"]
        up, down = arrival(t) * (n < 5), service(s) * (1 + a["fast"]) * (n > 0)
        after = n + 1 if u < up else n - 1 if u < up + down else n
        return {"jobs": after}, {"power": a["fast"], "queue <= 3": n}

    return step


class Case(NamedTuple):
    """A system as described, as it is, and what should be found."""

    name: str
    system: System
    simulator: Simulator
    first: Values
    expected: str = ""


def later(before: float, after: float, at: int) -> Callable[..., float]:
    """Return a parameter that changes after some rounds."""
    return lambda t, *_: before if t < at else after


HOURS = (0.05, 0.85, 0.3)
EMPTY, FULL, NO_JOBS = {"hour": 0, "waiting": 0}, {"shelf": 10}, {"jobs": 0}
ADMITTED = [0.3, 0.5, 0.2]
RIGHT = [
    Case("clinic", CLINIC, clinic(lambda t, s: 0.4), EMPTY),
    Case("shop, sales seen", SHOP, shop(lambda t, s: 2.3), FULL),
    Case("ward", WARD, ward(lambda t, s, a: 0.3, lambda t: ADMITTED), {"patients": 0}),
    Case("machine", MACHINE, machine(lambda a: 0.7), {"wear": 0}),
    Case("line in continuous time", LINE, line(lambda s: 0.8), NO_JOBS),
]


def main_cases() -> Iterator[Case]:
    """Yield the cases that the default agent plays."""
    yield Case(
        "arrivals .05, .85, .3 by hour", CLINIC, clinic(lambda t, s: HOURS[s["hour"]]), EMPTY, "arrival depends on hour"
    )
    yield Case("demand 2.3, 3.68 from 2,000 on", SHOP, shop(later(2.3, 3.68, 2000)), FULL, "demand changed")


def wrong_cases() -> Iterator[Case]:
    """Yield the cases that are played at random."""
    yield Case(
        "arrivals .25, .55, .4 by hour", CLINIC, clinic(lambda t, s: (0.25, 0.55, 0.4)[s["hour"]]), EMPTY,
        "arrival depends on hour",
    )  # fmt: skip
    yield Case(
        "arrivals .35, .45, .4 by hour", CLINIC, clinic(lambda t, s: (0.35, 0.45, 0.4)[s["hour"]]), EMPTY,
        "arrival depends on hour",
    )  # fmt: skip
    yield Case(
        "arrivals .6 less .08 for each waiting", CLINIC, clinic(lambda t, s: 0.6 - 0.08 * s["waiting"]), EMPTY,
        "arrival depends on waiting",
    )  # fmt: skip
    yield Case("clerks at .35, given as .45", CLINIC, clinic(lambda t, s: 0.4, 0.35), EMPTY, "done")
    yield Case("demand up by 20% at round 500", SHOP, shop(later(2.3, 2.76, 500)), FULL, "demand changed")
    yield Case("demand up by 20% at round 2,000", SHOP, shop(later(2.3, 2.76, 2000)), FULL, "demand changed")
    yield Case("demand from 2 to 4 in 4,000", SHOP, shop(lambda t, s: 2 + t / 2000), FULL, "demand changed")
    yield Case("lost sales count 2, not 1", SHOP, shop(lambda t, s: 2.3, 2.0), FULL, "lost / demand <= 5% was")
    discharge = ward(lambda t, s, a: 0.1 + 0.1 * a["nurses"], lambda t: ADMITTED)
    yield Case("discharge .1 + .1 per nurse", WARD, discharge, {"patients": 0}, "discharged depends on nurses")
    admissions = ward(lambda t, s, a: 0.3, lambda t: ADMITTED if t < 1000 else [0.6, 0.3, 0.1])
    yield Case("admissions .9, .5 from 1,000 on", WARD, admissions, {"patients": 0}, "admitted changed")
    speed = machine(lambda a: 0.8 if a["speed"] == "slow" else 0.65)
    yield Case("damage by speed, .2 and .35", MACHINE, speed, {"wear": 0}, "damage depends on speed")
    yield Case("a repair costs 3.3, not 3", MACHINE, machine(lambda a: 0.7, dearer=0.3), {"wear": 0}, "loss was")
    slow = line(lambda s: 0.8 if s["jobs"] < 3 else 0.4)
    yield Case("service at half the rate from 3 jobs on", LINE, slow, NO_JOBS, "service depends on jobs")
    busy = line(lambda s: 0.8, later(1.0, 1.6, 2000))
    yield Case("arrivals 1, 1.6 from 2,000 on", LINE, busy, NO_JOBS, "arrival changed")


def play_at_random(case: Case, rounds: int, seed: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield rounds and doubts; actions are random among those available."""
    rng, words = np.random.default_rng(seed), case.system.vocabulary()
    structure, belief = case.system.structure, Structured.of(case.system)
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    belief = belief.made_for(structure.n_states, structure.n_actions, len(structure.fixed_costs) - 1)
    record, state = Record.empty(counts), case.first
    labels = [words.actions.label(a) for a in range(structure.n_actions)]
    for t in range(rounds):
        number = words.state(state)
        action = int(rng.choice(np.flatnonzero(words.available[number])))
        state, costs = case.simulator(t, rng, state, labels[action])
        record.step(number, action, words.state(state), np.array(list(costs.values())))
        if (t + 1) % EVERY == 0:
            counts.add(record)
            record.clear()
            belief.sample(counts, rng)
            yield t + 1, belief.doubts


def play_live(case: Case, rounds: int, seed: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield rounds and doubts of the default agent in live use, which is given the next state and the costs."""
    rng, agent, state = np.random.default_rng(seed), psconrl.PSConRL.of(case.system, seed=seed), case.first
    for t in range(rounds):
        action = agent.act(state)
        state, costs = case.simulator(t, rng, state, action)
        agent.observe(action, state, np.array(list(costs.values())))
        yield t + 1, agent.doubts() or ()


def first_doubt(found: Iterator[tuple[int, Any]]) -> tuple[float, str, str]:
    """Return the round of the first doubt, what it says, and what all say in the end."""
    first, said, doubts = np.inf, "", ()
    for t, doubts in found:
        if doubts and not said:
            texts = list(doubts.values()) if isinstance(doubts, dict) else list(doubts)
            first, said = t, texts[0]
    return first, said, "; ".join(doubts.values() if isinstance(doubts, dict) else doubts)


def table_of_wrong(cases: list[Case], play: Any, rounds: int, runs: int) -> None:
    """Print how soon each is found, and how often the expected diagnosis is among the doubts in the end."""
    print("| case | found | named as expected | first doubt: median | 90% | the first run says |")
    print("|---|---|---|---|---|---|")
    for case in cases:
        results = [first_doubt(play(case, rounds, seed)) for seed in range(runs)]
        at = np.array([first for first, _, _ in results])
        named = sum(case.expected in last for _, _, last in results)
        shown = [f"{x:,.0f}" for x in np.quantile(at, [0.5, 0.9], method="higher")]
        said = results[0][1].split(":")[0] or results[0][2]
        print(
            f"| {case.name} | {np.isfinite(at).sum()} of {runs} | {named} | {shown[0]} | {shown[1]} | {said} |",
            flush=True,
        )


def table_of_right(rounds: int, runs: int) -> None:
    """Print how many runs of right systems are doubted."""
    print("| system | runs doubted | seconds per run |")
    print("|---|---|---|")
    for case in RIGHT:
        began = time.perf_counter()
        doubted = [last for seed in range(runs) if (last := first_doubt(play_at_random(case, rounds, 1000 + seed))[2])]
        each = (time.perf_counter() - began) / runs
        print(
            f"| {case.name} | {len(doubted)} of {runs}{': ' + doubted[0] if doubted else ''} | {each:.2f} |", flush=True
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of every wrong case")
    parser.add_argument("--right", type=int, default=40, help="runs of every right case")
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--right-rounds", type=int, default=500)
    parser.add_argument("--only", choices=("main", "wrong", "right"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.only in (None, "main"):
        table_of_wrong(list(main_cases()), play_live, given.rounds, given.runs)
    if given.only in (None, "wrong"):
        table_of_wrong(list(wrong_cases()), play_at_random, given.rounds, given.runs)
    if given.only in (None, "right"):
        table_of_right(given.right_rounds, given.right)


if __name__ == "__main__":
    main()
