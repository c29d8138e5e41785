"""The time to write, read and continue a results file of many runs: run it at two commits to compare them.

    python benchmarks/results_file.py --runs 10000

Every run has 200 checkpoints of two costs. Runs are not played: the results of two are stored again and again. Times
are seconds of processor time.
"""

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from psconrl.experiment.job import execute
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec import Jobs
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import read_experiments
from psconrl.report.export import export_tables
from psconrl.report.monitor.results_contents import results_contents

SPEC = """
replicates = {replicates}
[experiments.marsrover-4x4]
agents = ["psconrl", "uniform"]
horizon = 4_000
grid = {{ slip = [0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18] }}
"""


def write(jobs: Jobs, path: Path) -> None:
    results = {label: execute(next(job for job in jobs if job.label == label)) for label in ("psconrl", "uniform")}
    first = [next(job for job in jobs if job.experiment == name) for name in dict.fromkeys(j.experiment for j in jobs)]
    run_sweep(first, path, workers=1)  # stores the experiments
    with Store.writer(path) as store:
        seconds(
            "write",
            lambda: [store.add(dataclasses.replace(results[job.label], job=job)) for job in jobs if job not in first],
        )
        store.select([job.experiment for job in first], {job.hash for job in jobs})


def read(use: Callable[[Store], object], path: Path) -> None:
    with Store(path) as store:
        use(store)


def seconds(name: str, action: Callable[[], object]) -> None:
    began = time.process_time()
    action()
    print(f"{name:10} {time.process_time() - began:6.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    jobs = parse_spec(SPEC.format(replicates=parser.parse_args().runs // 20)).jobs()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.db")
        write(jobs, path)
        seconds("table", lambda: read(read_experiments, path))
        seconds("export", lambda: read(lambda store: export_tables(store, Path(folder, "tables"), "csv"), path))
        seconds("monitor", lambda: read(results_contents, path))
        seconds("continue", lambda: run_sweep(jobs, path, workers=1))
        print(f"{'size':10} {path.stat().st_size / 1e6:6.1f} MB")


if __name__ == "__main__":
    main()
