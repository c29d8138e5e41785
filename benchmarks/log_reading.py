"""Time and memory of reading ten million rows to counts: ``python benchmarks/log_reading.py [ROWS]``.

A shop of 9 states and 4 actions in 100 runs, with a cost, a column besides, and hourly times. Each table is read in a
process of its own. Seconds are of the processor and of the clock; other jobs change the second.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from psconrl import Log

RUNS = 100
GIVEN = {"state": "shelf", "action": "order", "costs": "lost", "run": "plant"}


def write(folder: Path, rows: int) -> None:
    """Write the tables."""
    import pandas

    rng = np.random.default_rng(0)
    orders, demand, shelf, shelves = rng.integers(0, 4, rows), rng.poisson(2.0, rows), 4, []
    for order, asked in zip(orders.tolist(), demand.tolist(), strict=True):
        shelves.append(shelf)
        shelf = min(max(shelf - asked, 0) + order, 8)
    stock = np.array(shelves)
    frame = pandas.DataFrame({"shelf": stock, "order": orders, "lost": np.maximum(demand - stock, 0), "demand": demand})
    frame["plant"] = np.repeat(np.arange(RUNS), rows // RUNS)
    frame.to_csv(folder / "plain.csv", index=False)
    hours = np.tile(np.arange(rows // RUNS), RUNS).astype("datetime64[h]")
    frame["when"] = hours + np.timedelta64(24 * 365 * 54, "h")
    frame.to_csv(folder / "times.csv", index=False)
    frame.to_parquet(folder / "times.parquet")


def measured(path: str) -> str:
    """Read a table, and return what that took."""
    given = GIVEN | ({"time": "when"} if Path(path).stem == "times" else {})
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    log = Log(path, **given)
    counts = log.counts()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    number = int(counts.tally.times.sum())
    peak = after.ru_maxrss / 1e6 * 1.024
    return f"| {Path(path).name} | {number:,} | {used:.1f} | {seconds:.1f} | {peak:.2f} |"


def main() -> None:
    """Print a table."""
    if len(sys.argv) > 1 and not sys.argv[1].isdigit():
        print(measured(sys.argv[1]))
        return
    print("| table | rounds | seconds of the processor | of the clock | peak, GB |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
        for name in ("plain.csv", "times.csv", "times.parquet"):
            subprocess.run([sys.executable, __file__, str(Path(folder) / name)], check=True)


if __name__ == "__main__":
    main()
