"""Time from Ctrl-C to KeyboardInterrupt: ``python benchmarks/interrupts.py [--trials 8] [CASE ...]``.

Every trial is a process of its own, which receives SIGINT at a random moment of its work. The cases are the longest
native calls that the library makes: HiGHS, factorisations, searches and rational arithmetic.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import random
import signal
import statistics
import subprocess
import sys
import time

# What is prepared, what is interrupted, and up to how many seconds after its beginning.
CASES = {
    "lp, dense, 1,000 states": ("m = models.dense_random(1000)", "psconrl.plan(m, 'lp')", 20.0),
    "lp, 10 successors, 4,000 states": ("m = models.sparse_random(4000)", "psconrl.plan(m, 'lp')", 20.0),
    "lp, network, 10,000 states": ("m = psconrl.load('network', side=100)", "psconrl.plan(m, 'lp')", 20.0),
    "lp, network, 400 states": ("m = psconrl.load('network', side=20)", "psconrl.plan(m, 'lp')", 0.3),
    "plan, dense, 1,000 states": ("m = models.dense_random(1000)", "psconrl.plan(m)", 1.0),
    "plan, 10 successors, 20,000 states": ("m = models.sparse_random(20_000)", "psconrl.plan(m)", 20.0),
    "plan, network, 40,000 states": ("m = psconrl.load('network', side=200)", "psconrl.plan(m)", 8.0),
    "exact plan, 300 states": ("m = models.sparse_random(300)", "psconrl.plan(m, exact=True)", 5.0),
    "model of a system, 40,000 states": (
        "from psconrl.envs.network import network_system", "network_system(200).model()", 1.0,
    ),
}  # fmt: skip
CHILD = """
import sys, time
import psconrl, models
{prepare}
print("ready", flush=True)
try:
    while True:
        {work}
except KeyboardInterrupt:
    print(time.monotonic(), flush=True)
"""


def trial(prepare: str, work: str, most: float) -> float:
    """Return the seconds from the signal to the exception, in one process."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD.format(prepare=prepare, work=work)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.0, most))
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        return float(child.stdout.readline()) - sent


def main() -> None:
    """Print a table: the median and the longest time of every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="words of the cases; all by default")
    parser.add_argument("--trials", type=int, default=8)
    given = parser.parse_args()
    print("| interrupted | trials | median, ms | longest, ms |\n|---|---|---|---|")
    for name, case in CASES.items():
        if given.cases and not any(words in name for words in given.cases):
            continue
        found = [1e3 * trial(*case) for _ in range(given.trials)]
        print(f"| {name} | {len(found)} | {statistics.median(found):.0f} | {max(found):.0f} |", flush=True)


if __name__ == "__main__":
    main()
