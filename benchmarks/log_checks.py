"""False alarms and power of the checks of logs: ``python benchmarks/log_checks.py [LOGS] [CASE,...]``.

Every case writes logs by hand-made simulators that share no code with the library, and checks them. A log whose
description is right is to be doubted at most once in twenty; one that violates it is to be found out, and the cause
named. A table shows, of every case, the share of logs in which a finding was made, with its interval of 95% after
Clopper and Pearson, and in which the cause was named first.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from psconrl import Log, System
from psconrl.data.checks.finding import COVERAGE, FAULT
from psconrl.systems import Bernoulli, Beta, Gamma, Poisson

ROUNDS = 20_000
Rng = np.random.Generator
Arrays = dict[str, Any]


def shop(
    rng: Rng,
    rounds: int = ROUNDS,
    *,
    hidden: float = 0.0,
    stay: float = 0.9,
    lead: bool = False,
    drift: float = 0.0,
    weekend: float = 0.0,
    spread: float = 0.0,
    noon: float = 0.0,
    timid: bool = False,
) -> Arrays:
    """A shop whose demand depends on a hidden mood, drifts, is higher at weekends or at noon, or is overdispersed."""
    shelf, mood, coming = 4, 0, 0
    rows = []
    moods = rng.random(rounds) > stay
    orders = rng.integers(0, 4, rounds)
    rates = 2.0 + drift * (np.arange(rounds) / rounds - 0.5) + weekend * (np.arange(rounds) % 7 >= 5)
    rates += noon * (np.arange(rounds) % 12 == 4)
    if spread:
        rates = rng.gamma(1.0 / spread, spread, rounds) * rates
    for t in range(rounds):
        mood ^= int(moods[t])
        order = int(orders[t]) if not timid or rng.random() < 0.1 else (3 if shelf <= 2 else 0)
        demand = int(rng.poisson(max(rates[t] + hidden * (mood - 0.5), 0.01)))
        rows.append((shelf, order, demand, max(demand - shelf, 0), mood))
        arrives, coming = (coming if lead else order), order
        shelf = min(max(shelf - demand, 0) + arrives, 8)
    columns = dict(zip(("shelf", "order", "demand", "lost", "mood"), np.array(rows).T, strict=True))
    start = np.datetime64("2024-01-01T12:00")
    walk = np.cumsum(rng.normal(size=rounds))  # a column that lasts, and matters not
    days = np.arange(rounds) * np.timedelta64(1, "D")
    hours = np.arange(rounds) // 12 * np.timedelta64(24, "h") + np.arange(rounds) % 12 * np.timedelta64(1, "h")
    return columns | {"day": start + (hours if noon else days), "walk": np.round(walk, 2)}


def with_gaps(rng: Rng, given: Arrays, after_empty: float = 0.02, otherwise: float = 0.02) -> Arrays:
    """Leave out rows, with other probabilities after an empty shelf."""
    empty = np.append(False, given["shelf"][:-1] == 0)
    kept = rng.random(empty.size) >= np.where(empty, after_empty, otherwise)
    return {name: values[kept] for name, values in given.items()}


def table_log(given: Arrays, *left_out: str) -> Log:
    """A log without a system."""
    kept = {name: values for name, values in given.items() if name not in left_out}
    return Log(kept, state="shelf", action="order", costs="lost", time="day")


def chain(rng: Rng, states: int = 20, actions: int = 3, hidden: float = 0.0, reports: bool = False) -> Log:
    """Random transitions; with probability ``hidden`` those of the other value of a binary variable that lasts."""
    tables = rng.dirichlet(np.full(6, 1.0), (2, states, actions)).cumsum(axis=-1)
    targets = rng.integers(0, states, (2, states, actions, 6))
    state, mode = 0, 0
    rows = []
    uniform, turns = rng.random((ROUNDS, 2)), rng.random(ROUNDS) > 0.9
    acts = rng.integers(0, actions, ROUNDS)
    for t in range(ROUNDS):
        mode ^= int(turns[t])
        action = int(acts[t])
        own = mode if uniform[t, 1] < hidden else 0
        rows.append((state, action, mode))
        place = min(int(np.searchsorted(tables[own, state, action], uniform[t, 0])), 5)
        state = int(targets[own, state, action, place])
    found = dict(zip(("state", "action", "mode"), np.array(rows).T, strict=True))
    if not reports:
        del found["mode"]
    return Log(found, state="state", action="action")


def described(**noise: Any) -> System:
    """The description of the shop that a practitioner would write."""
    return System(
        state={"shelf": range(9)},
        action={"order": range(4)},
        noise={"demand": Poisson(Gamma(2, 1), most=12)} | noise,
        step={"shelf": "min(max(shelf - demand, 0) + order, 8)"},
        costs={"holding": "shelf", "lost": "max(demand - shelf, 0)"},
        minimise="holding",
        limits=["lost <= 0.3"],
    )


def system_log(given: Arrays, sold_out_unseen: bool = False) -> Log:
    """A log of the described shop."""
    columns = {name: given[name] for name in ("shelf", "order", "demand")}
    if sold_out_unseen:
        demand = given["demand"].astype(float)
        columns["demand"] = np.where(demand >= given["shelf"], np.nan, demand)
    return Log(columns, system=described())


def two_noises(rng: Rng, shared: float) -> Log:
    """Two machines that fail independently by their description, and sometimes for the same reason."""
    system = System(
        state={"up": range(3)},
        action={"repair": range(3)},
        noise={"first": Bernoulli(Beta(1, 1)), "second": Bernoulli(Beta(1, 1))},
        step={"up": "max(min(up + repair, 2) - first - second, 0)"},
        costs={"down": "2 - up", "work": "repair"},
        minimise="work",
        limits=["down <= 1"],
    )
    both = rng.random(ROUNDS) < shared
    first = np.where(both, rng.random(ROUNDS) < 0.2, rng.random(ROUNDS) < 0.2).astype(int)
    second = np.where(both, first, rng.random(ROUNDS) < 0.2).astype(int)
    repair, up, states = rng.integers(0, 3, ROUNDS), 2, []
    for t in range(ROUNDS):
        states.append(up)
        up = max(min(up + int(repair[t]), 2) - int(first[t]) - int(second[t]), 0)
    return Log({"up": states, "repair": repair, "first": first, "second": second}, system=system)


class Case(NamedTuple):
    """A way to write logs. ``cause``: what the first finding is to be about; "" if there is nothing to find."""

    make: Callable[[Rng], Log]
    cause: tuple[str, ...] = ()


PAST = (
    "the results of the last rounds",
    "the results of the last rounds in lost",
    "the result of the round before",
    "the state one round before",
)

CASES = {
    "right: shop, uniform": Case(lambda rng: table_log(shop(rng), "demand", "mood")),
    "right: shop, timid": Case(lambda rng: table_log(shop(rng, timid=True), "demand", "mood")),
    "right: shop, 1,000 rounds": Case(lambda rng: table_log(shop(rng, 1_000), "demand", "mood")),
    "right: shop, 200 rounds": Case(lambda rng: table_log(shop(rng, 200), "demand", "mood")),
    "right: shop, hours": Case(lambda rng: table_log(shop(rng, noon=1e-9), "demand", "mood")),
    "right: shop, random gaps": Case(lambda rng: table_log(with_gaps(rng, shop(rng)), "demand", "mood")),
    "right: chain of 20": Case(lambda rng: chain(rng)),
    "right: chain of 200": Case(lambda rng: chain(rng, 200)),
    "right: system": Case(lambda rng: system_log(shop(rng))),
    "right: system, 1,000 rounds": Case(lambda rng: system_log(shop(rng, 1_000))),
    "right: system, demand unseen when sold out": Case(lambda rng: system_log(shop(rng), True)),
    "right: two noises": Case(lambda rng: two_noises(rng, 0.0)),
    "hidden mood, 1.5 or 2.5": Case(lambda rng: table_log(shop(rng, hidden=1.0), "demand", "mood"), PAST),
    "hidden mood, 1.6 or 2.4": Case(lambda rng: table_log(shop(rng, hidden=0.8), "demand", "mood"), PAST),
    "hidden mood, timid": Case(lambda rng: table_log(shop(rng, hidden=1.0, timid=True), "demand", "mood"), PAST),
    "hidden mood, 1.75 or 2.25": Case(lambda rng: table_log(shop(rng, hidden=0.5), "demand", "mood"), PAST),
    "recorded mood, 1.75 or 2.25": Case(lambda rng: table_log(shop(rng, hidden=0.5), "demand"), ("mood",)),
    "hidden mode, chain of 20, half of rounds": Case(lambda rng: chain(rng, hidden=0.5), PAST),
    "recorded mode, chain of 20, a tenth": Case(lambda rng: chain(rng, hidden=0.1, reports=True), ("mode",)),
    "recorded mode, chain of 200, half": Case(lambda rng: chain(rng, 200, hidden=0.5, reports=True), ("mode",)),
    "orders come a round later": Case(
        lambda rng: table_log(shop(rng, lead=True), "demand", "mood"), ("the action one round before",)
    ),
    "demand drifts from 1.75 to 2.25": Case(
        lambda rng: table_log(shop(rng, drift=0.5), "demand", "mood"), ("the period",)
    ),
    "demand higher by a quarter at weekends": Case(
        lambda rng: table_log(shop(rng, weekend=0.5), "demand", "mood"), ("the weekday",)
    ),
    "demand higher by a half at noon": Case(
        lambda rng: table_log(shop(rng, noon=1.0), "demand", "mood"), ("the hour",)
    ),
    "gaps more often after an empty shelf, 4% or 1%": Case(
        lambda rng: table_log(with_gaps(rng, shop(rng), 0.04, 0.01), "demand", "mood"), ("the gaps",)
    ),
    "system: overdispersed, variance 1.5 means": Case(lambda rng: system_log(shop(rng, spread=0.25)), ("demand",)),
    "system: drifts from 1.75 to 2.25": Case(lambda rng: system_log(shop(rng, drift=0.5)), ("demand",)),
    "system: hidden mood, 1.5 or 2.5": Case(lambda rng: system_log(shop(rng, hidden=1.0)), ("demand",)),
    "system: failures with correlation 0.2": Case(lambda rng: two_noises(rng, 0.2), ("first", "second")),
}


def measured(case: Case, name: str, logs: int) -> tuple[int, int, float]:
    """Return in how many logs anything was found, in how many the cause was named first, and the seconds of a check."""
    found, named, seconds = 0, 0, 0.0
    for k in range(logs):
        log = case.make(np.random.default_rng([sum(map(ord, name)), k]))
        begin = time.process_time()
        report = log.check()
        seconds += time.process_time() - begin
        subjects = [finding.subject for finding in report.findings if finding.check not in (COVERAGE, FAULT)]
        found += bool(subjects)
        named += bool(subjects) and subjects[0] in case.cause
    return found, named, seconds / logs


def interval(found: int, logs: int) -> str:
    """Return an interval of 95% for a probability, after Clopper and Pearson."""
    low = stats.beta.ppf(0.025, found, logs - found + 1) if found else 0.0
    high = stats.beta.ppf(0.975, found + 1, logs - found) if found < logs else 1.0
    return f"{low:.1%} to {high:.1%}"


def main() -> None:
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 else list(CASES)
    print(f"{logs} logs of each case, of {ROUNDS:,} rounds\n")
    print("| case | found | 95% interval | cause named first | seconds |\n|---|---|---|---|---|")
    doubted = right = 0
    for name, case in CASES.items():
        if any(name.startswith(part) for part in wanted):
            found, named, seconds = measured(case, name, logs)
            cause = f"{named / logs:.0%}" if case.cause else ""
            print(f"| {name} | {found / logs:.1%} | {interval(found, logs)} | {cause} | {seconds:.2f} |", flush=True)
            if not case.cause:
                doubted, right = doubted + found, right + logs
    if right:
        print(f"| all that are right | {doubted / right:.1%} | {interval(doubted, right)} | | |")


if __name__ == "__main__":
    main()
