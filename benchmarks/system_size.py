"""Time and memory of systems with many states and many joint outcomes, each in a process of its own.

    python benchmarks/system_size.py [--only department,trade-off,large]

``department``: an emergency department of 1,728 states, 8 actions and 2,880 joint outcomes of five noises: model and
plan. ``trade-off``: its plans at eleven numbers of a limit. ``large``: model and plan of a store with 10^5 states, 6
actions and 1,000 joint outcomes of four noises.
"""

import argparse
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import psconrl
from psconrl.systems import Bernoulli, Binomial, Categorical, Poisson, System

BY_HOUR = "(0.35 + 0.9 * (hour >= 8) * (hour < 22) + 0.5 * (hour >= 16) * (hour < 20))"


def department() -> System:
    """Return an emergency department by the hour: urgent and other patients, and doctors who treat them."""
    return System(
        state={"hour": range(24), "urgent": range(6), "waiting": range(12)},
        action={"doctors": range(1, 5), "divert": [0, 1]},
        noise={
            "ambulances": Poisson(f"0.5 * {BY_HOUR}", most=4),
            "walk_ins": Poisson(BY_HOUR, most=7),
            "treated": Binomial(5, "0.12 * doctors"),
            "worse": Binomial(3, 0.1),
            "delay": Categorical([0, 1, 2], [0.7, 0.2, 0.1]),
        },
        step={
            "hour": "(hour + 1) % 24",
            "urgent": "min(max(urgent - treated, 0) + (1 - divert) * ambulances + min(worse, waiting), 5)",
            "waiting": "min(max(waiting - min(worse, waiting) - max(treated - urgent, 0), 0) + walk_ins, 11)",
        },
        costs={
            "pay": "doctors + divert * ambulances",
            "queue": "waiting + 2 * urgent",
            "lost": "max(waiting - min(worse, waiting) + walk_ins - 11, 0)",
            "late": "urgent * delay + 0.2 * walk_ins * delay",
        },
        minimise="pay",
        limits={"queue": "queue <= 4", "late": "late <= 0.5", "turned away": "P(lost > 0) <= 2%"},
    )


def large() -> System:
    """Return a store with 10^5 states and 10^3 joint outcomes: stock, what is under way, season and price."""
    return System(
        state={"shelf": range(100), "coming": range(25), "season": range(8), "price": range(5)},
        action={"order": [0, 8, 24], "raise_price": [0, 1]},
        noise={
            "regulars": Poisson("1 + 0.3 * season", most=9),
            "visitors": Poisson("2 - 0.3 * price", most=9),
            "returned": Binomial(4, 0.2),
            "turn": Bernoulli(0.1),
        },
        step={
            "shelf": "min(max(shelf - regulars - visitors, 0) + returned + min(coming, 5), 99)",
            "coming": "min(max(coming - 5, 0) + order, 24)",
            "season": "(season + turn) % 8",
            "price": "(price + raise_price) % 5",
        },
        costs={
            "profit": "(3 + price) * min(shelf, regulars + visitors) - 0.2 * shelf - 2 * order",
            "lost": "max(regulars + visitors - shelf, 0)",
        },
        maximise="profit",
        limits=["lost / (regulars + visitors) <= 5%"],
    )


def measured(name: str) -> None:
    """Print the seconds of the parts of one task, and the largest memory of this process."""
    started = time.perf_counter()

    def done(what: str) -> None:
        nonlocal started
        now = time.perf_counter()
        print(f"  {what}: {now - started:.2f} s", flush=True)
        started = now

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    system = large() if name == "large" else department()
    model = system.model()
    done(f"{model!r}")
    if name == "trade-off":
        found = psconrl.pareto(system, "queue")
        done(f"eleven plans, {found.values[0]:.9g} to {found.values[-1]:.9g}")
    else:
        answer = psconrl.plan(system)
        done(f"plan {answer.value:.9g}, {answer.status.value}")
        print("  " + str(answer).replace("\n", "\n  "))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"  {after / 1024:.0f} MB, of which {before / 1024:.0f} before")


def main() -> None:
    """Measure the tasks one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="department,trade-off,large", help="names of tasks")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measured(options.here)
        return
    for name in options.only.split(","):
        print(name, flush=True)
        subprocess.run([sys.executable, __file__, "--here", name], check=False)


if __name__ == "__main__":
    main()
