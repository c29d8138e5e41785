"""Ten systems from ten trades, written from the documentation: planned, saved, and learned, be they right or wrong.

    python benchmarks/ten_trades.py [--runs 20] [--first-run 0] [--rounds 5000] [--only bakery,lifts]
                                    [--kinds right,known] [--agents psconrl,safe] [--processes 2]
                                    [--out ten_trades.csv] [--plans]

Each trade is a ``System``, and once more in plain Python that shares no code with it (``benchmarks/trades``). Tables:

- **Plans.** An own linear program on the enumerated plain rules, solved by HiGHS, beside ``system.plan``: the optimum,
  and all limited quantities (averages, ratios, percentiles, expected shortfalls) of the plan's policy. The system is
  saved as .toml and .json and read; the plan must be the same, bit for bit.
- **Lines** of the description, and of what a user would have to write without it: the plain rules, their enumeration
  and the linear program.
- **Learning.** ``PSConRL.of(system)`` in live use (``act``, ``observe``) on a simulator of the plain rules, which is
  right, or wrong in one of five ways: a parameter depends on a variable of the state; a parameter changes after a
  quarter of the run; a noise is overdispersed; two noises are correlated; a known parameter has another value. Counted:
  wrong systems that are noticed within the rounds, right ones that are doubted, and how often intervals of 90% have
  the true number, which is drawn from the prior for every run.

Every run is a line of a CSV file; the same command continues it. ``--agents safe``: the same counts for
``SafeStart.of``. ``--plans``: no runs.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import csv
import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from trades import TRADES, learning, own_model
from trades.distributions import __file__ as distributions_file
from trades.planning import agreement
from trades.simulator import KINDS, middle
from trades.trade import Trade

COLUMNS = (
    "trade", "agent", "kind", "run", "of", "rounds", "found", "says", "objective", "covered", "missed", "seconds",
)  # fmt: skip


FAILED = "failed:"


class Job(NamedTuple):
    """A run to be played."""

    trade: str
    agent: str
    kind: str
    run: int
    of: int  # rounds

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the line of the run."""
        return tuple(str(part) for part in self)


class Line(NamedTuple):
    """A run in the file, as far as the tables need it."""

    trade: str
    agent: str
    kind: str
    found: int | None
    failed: bool
    covered: tuple[str, ...]
    missed: tuple[str, ...]


def play(job: Job) -> list[object]:
    """Play a run, and return its line; a run that raises an error is a line with the error."""
    try:
        run = learning.played(TRADES[job.trade], job.agent, job.kind, job.run, job.of)
    except Exception as error:  # any error is a finding, and must not end the other runs
        return [*job, "", "", f"{FAILED} {type(error).__name__}: {error}", "", "", "", ""]
    covered = " ".join(name for name, is_in in run.covered.items() if is_in)
    missed = " ".join(name for name, is_in in run.covered.items() if not is_in)
    found = "" if run.found is None else run.found
    seconds = round(run.seconds, 2)
    return [*job, run.rounds, found, run.says, f"{run.objective:.6g}", covered, missed, seconds]


def main() -> None:
    """Plan, play what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-run", type=int, default=0, help="number of the first run")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--only", default=",".join(TRADES), help="trades")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--agents", default="psconrl")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("ten_trades.csv"))
    parser.add_argument("--plans", action="store_true", help="plans and lines alone")
    options = parser.parse_args()
    names = options.only.split(",")
    _print_plans([TRADES[name] for name in names])
    if options.plans:
        return
    jobs = [
        Job(name, agent, kind, run, options.rounds)
        for run in range(options.first_run, options.first_run + options.runs)
        for agent in options.agents.split(",")
        for kind in options.kinds.split(",")
        for name in names
    ]
    _play_missing(jobs, options.out, options.processes)
    wanted = {job.key for job in jobs}
    with options.out.open(newline="") as file:
        lines = [_line(row) for row in csv.DictReader(file) if _key(row) in wanted]
    for agent in options.agents.split(","):
        _print_learning(agent, names, [line for line in lines if line.agent == agent])


def _print_plans(trades: Iterable[Trade]) -> None:
    shared = _code_lines(Path(own_model.__file__).read_text()) + _code_lines(Path(distributions_file).read_text())
    print("| trade | states | own program | plan | largest difference | same after saving | lines: system | by hand |")
    print("|---|---|---|---|---|---|---|---|")
    for trade in trades:
        found = agreement(trade, middle(trade))
        described, by_hand = lines_of(trade)
        same = "yes" if found.files_agree else "**no**"
        print(
            f"| {trade.name} | {found.states} | {found.own:.6g} | {found.value:.6g} | {found.difference:.0e} | {same} "
            f"| {described} | {by_hand} + {shared} |"
        )


def lines_of(trade: Trade) -> tuple[int, int]:
    """Return the lines of a description, and those of the plain rules that stand for it."""
    module = inspect.getmodule(trade.describe)
    assert module is not None
    described = _code_lines(inspect.getsource(trade.describe)) - 2  # the line "def", and the docstring
    record = inspect.getsource(module).split("TRADE = ")[1]
    rules = _code_lines(record.split("truth=")[0])  # what remains is for the simulator only
    functions: set[Callable[..., object]] = {trade.actions, trade.step, trade.amounts}
    functions |= {draw for draw in trade.draws.values() if draw.__name__ != "<lambda>"}
    if "_rates" in vars(module):
        functions.add(vars(module)["_rates"])
    return described, rules + sum(_code_lines(inspect.getsource(function)) for function in functions)


def _code_lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def _play_missing(jobs: Sequence[Job], path: Path, processes: int) -> None:
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {_key(row) for row in csv.DictReader(file)}
    missing = [job for job in jobs if job.key not in done]
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done and not path.stat().st_size:
            writer.writerow(COLUMNS)
        with ProcessPoolExecutor(processes) as pool:
            for future in as_completed([pool.submit(play, job) for job in missing]):
                writer.writerow(future.result())
                file.flush()


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in Job._fields)


def _line(row: dict[str, str]) -> Line:
    found = int(row["found"]) if row["found"] else None
    failed, covered, missed = row["says"].startswith(FAILED), row["covered"].split(), row["missed"].split()
    return Line(row["trade"], row["agent"], row["kind"], found, failed, tuple(covered), tuple(missed))


def _print_learning(agent: str, names: Sequence[str], lines: Sequence[Line]) -> None:
    kinds = [kind for kind in KINDS if any(line.kind == kind for line in lines)]
    print(f"\n{agent}: runs that were doubted, of all runs; in brackets the median round\n")
    print(f"| trade | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for name in names:
        print(f"| {name} | {' | '.join(_doubted(lines, name, kind) for kind in kinds)} |")
    print(f"| **all** | {' | '.join(_doubted(lines, None, kind) for kind in kinds)} |")
    wrong = [line for line in lines if line.kind != "right"]
    if wrong:
        print(f"\nWrong systems noticed: {100 * np.mean([line.found is not None for line in wrong]):.1f}%")
    print(f"Runs that raised an error: {sum(line.failed for line in lines)}")
    _print_coverage([line for line in lines if line.kind == "right" and not line.failed])


def _doubted(lines: Iterable[Line], name: str | None, kind: str) -> str:
    runs = [line for line in lines if line.kind == kind and name in (line.trade, None)]
    found = [line.found for line in runs if line.found is not None]
    return f"{len(found)} of {len(runs)}" + (f" ({median(found):,.0f})" if found else "")


def _print_coverage(lines: Sequence[Line]) -> None:
    reported = sorted({(line.trade, name) for line in lines for name in (*line.covered, *line.missed)})
    if not reported:
        return
    print(
        f"\n| trade | unknown | runs | intervals of {learning.LEVEL:.0%} that have the true number |\n|---|---|---|---|"
    )
    for trade, name in reported:
        runs = [line for line in lines if line.trade == trade]
        share = np.mean([name in line.covered for line in runs])
        print(f"| {trade} | {name} | {len(runs)} | {share:.0%} |")


if __name__ == "__main__":
    main()
