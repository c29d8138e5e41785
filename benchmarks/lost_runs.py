"""Lost runs of every agent on a zoo of small random environments.

    python benchmarks/lost_runs.py [--set development|held-out|all] [--agents psconrl,lagrangian|all] [--each 17]
                                   [--runs 1] [--rounds 10000] [--out lost_runs.csv] [--processes 2]
                                   [--variant "{'fallback': 'least-excess'}" --label mine]
                                   [--only family/number/run,...]

The families are in ``zoo_development`` and ``zoo_held_out``. Both were written from a list of families alone. **The
held-out set was not used for any tuning:** no agent, part or default was chosen by its results.

The environments of a family rotate between costs that are known, learned (the agent observes the means), and noisy
(learned from Bernoulli costs). The score of a run is the regret of the objective plus overspending at twice its shadow
price. It is compared with what uniform play loses in as many rounds, which is computed, not simulated. A run is over
the bounds if

- its score at the end exceeds half of the loss of uniform play, or
- in its last quarter it loses more than a fifth of what uniform play loses in a quarter.

It is *lost* if, beside this, some agent in the file has no run over the bounds in the same environment. So the number
of lost runs depends on which agents are in the file, and is 0 if there is only one agent with one run each.

Every run is a line of a CSV file; the same command continues it. All agents share the seeds of a run. An agent that
cannot play an environment has a line with the reason. ``--agents all`` leaves out uniform play and SpanFHA, which does
not finish 500 rounds with four states within a minute. ``--variant``: options of the agent psconrl, as in a spec.
``--only``: these runs alone; they are printed, and go to a file only if ``--out`` names it.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import ast
import csv
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import psconrl
import zoo_development
import zoo_held_out
from psconrl.learning.registry import RECIPES, with_hints
from psconrl.simulation.trace import Trace
from zoo import LAST_SHARE, Family, Reference, member

END_SHARE = 0.5
NOT_IN_ALL = ("uniform", "span-fha")  # the reference is computed; the other is too slow
SETS: dict[str, dict[str, int]] = {  # families and their indices
    "development": {name: zoo_development.FIRST_INDEX + k for k, name in enumerate(zoo_development.DEVELOPMENT)},
    "held-out": {name: zoo_held_out.FIRST_INDEX + k for k, name in enumerate(zoo_held_out.HELD_OUT)},
}
SETS["all"] = SETS["development"] | SETS["held-out"]
FAMILIES: dict[str, Family] = zoo_development.DEVELOPMENT | zoo_held_out.HELD_OUT
COLUMNS = (
    "label", "family", "number", "kind", "run", "rounds", "states", "actions", "constraints",
    "late", "score", "uniform", "episodes", "seconds", "reason",
)  # fmt: skip


class Job(NamedTuple):
    """A run to be played."""

    label: str
    agent: str
    options: dict[str, Any]
    family: str
    number: int
    run: int
    rounds: int

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the line of the run."""
        return self.label, self.family, str(self.number), str(self.run), str(self.rounds)


class Line(NamedTuple):
    """A run that was played."""

    label: str
    family: str
    number: int
    kind: str
    run: int
    rounds: int
    late: float  # score after three quarters
    score: float
    uniform: float  # loss of uniform play in all rounds
    seconds: float

    @property
    def is_over(self) -> bool:
        """Whether the run is over one of the bounds."""
        return over_bounds(self.late, self.score, self.uniform)

    @property
    def share(self) -> float:
        """Score in % of uniform play."""
        return 100.0 * self.score / self.uniform

    @property
    def last_share(self) -> float:
        """Loss of the last quarter in % of uniform play's."""
        return 400.0 * (self.score - self.late) / self.uniform


def over_bounds(late: float, score: float, uniform: float) -> bool:
    """Whether a score exceeds half of uniform play, or its last quarter a fifth of a quarter of uniform play.

    >>> over_bounds(40.0, 49.0, 100.0), over_bounds(0.0, 51.0, 100.0), over_bounds(10.0, 16.0, 100.0)
    (True, True, True)
    >>> over_bounds(45.0, 49.0, 100.0)
    False
    """
    return score > END_SHARE * uniform or score - late > LAST_SHARE * uniform / 4.0


def lost_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the lost runs: over the bounds, in an environment where some agent has no such run."""
    together: dict[tuple[str, int, str, int], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        together[line.family, line.number, line.kind, line.rounds][line.label].append(line)
    return [
        line
        for agents in together.values()
        if any(not any(one.is_over for one in runs) for runs in agents.values())
        for runs in agents.values()
        for line in runs
        if line.is_over
    ]


@cache
def environment(family: str, number: int) -> tuple[psconrl.CMDP, Reference, str]:
    """Return an environment of the zoo."""
    return member(FAMILIES[family], SETS["all"][family], number)


def scores(trace: Trace, cmdp: psconrl.CMDP, known: Reference) -> list[float]:
    """Return the regret plus overspending at twice its price, at every checkpoint of a trace."""
    rounds = trace.rounds[:, None]
    lost = trace.cumulative[:, 0] - rounds[:, 0] * known.value
    over = np.maximum(trace.cumulative[:, 1:] - rounds * cmdp.thresholds, 0.0)
    return [float(x) for x in lost + 2.0 * over @ known.prices]


def play(job: Job) -> list[Any]:
    """Play a run, and return its line."""
    cmdp, known, kind = environment(job.family, job.number)
    line = [job.label, job.family, job.number, kind, job.run, job.rounds]
    line += [cmdp.n_states, cmdp.n_actions, cmdp.n_constraints]
    entropy = [SETS["all"][job.family], job.number, job.run]
    uniform = known.uniform * job.rounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice to the user, for instance that an agent is slow
        try:
            agent = _made(job, cmdp, kind, [1, *entropy])
        except psconrl.AgentError as error:
            return [*line, "", "", uniform, "", "", str(error)]
        began = time.perf_counter()
        emission = "bernoulli" if kind == "noisy" else "deterministic"
        at = [3 * job.rounds // 4, job.rounds]
        try:
            trace = psconrl.simulate(cmdp, agent, job.rounds, [2, *entropy], checkpoints=at, emission=emission)
        except psconrl.PsconrlError as error:
            return [*line, "", "", uniform, "", "", f"failed: {type(error).__name__}: {error}"]
    seconds = round(time.perf_counter() - began, 3)
    return [*line, *scores(trace, cmdp, known), uniform, len(trace.episodes), seconds, ""]


def _made(job: Job, cmdp: psconrl.CMDP, kind: str, seed: list[int]) -> Any:
    options = dict(job.options)
    if job.agent == "safe":
        options = psconrl.agents.known_baseline(cmdp) | options
    costs = cmdp.costs if kind == "known" else None
    if costs is None:
        options = with_hints(job.agent, cmdp, options)
    sizes = (cmdp.n_states, cmdp.n_actions, cmdp.thresholds, costs)
    return psconrl.agents.make(job.agent, *sizes, seed=seed, horizon=job.rounds, **options)


def run(jobs: list[Job], path: Path, processes: int) -> None:
    """Play everything that is not in the file yet."""
    done = set()
    if path.exists():
        with path.open() as f:
            rows = csv.DictReader(f)
            done = {tuple(row[key] for key in ("label", "family", "number", "run", "rounds")) for row in rows}
    left = [job for job in jobs if job.key not in done]
    with path.open("a", newline="") as f, ProcessPoolExecutor(processes) as pool:
        lines = csv.writer(f, lineterminator="\n")
        if not path.stat().st_size:
            lines.writerow(COLUMNS)
        for line in pool.map(play, left, chunksize=1):
            lines.writerow(line)
            f.flush()


def read(path: Path, families: Iterable[str], rounds: int) -> tuple[list[Line], Counter[tuple[str, str]]]:
    """Return the runs in a file, and how often an agent was left out for which reason."""
    known, lines, reasons = set(families), [], Counter[tuple[str, str]]()
    with path.open() as f:
        for row in csv.DictReader(f):
            if row["family"] not in known or int(row["rounds"]) != rounds:
                continue
            if row["reason"]:
                reasons[row["label"], row["reason"].partition(";")[0]] += 1
                continue
            numbers = (float(row[key]) for key in ("late", "score", "uniform", "seconds"))
            where = row["label"], row["family"], int(row["number"]), row["kind"], int(row["run"]), int(row["rounds"])
            lines.append(Line(*where, *numbers))
    return lines, reasons


def show(lines: Sequence[Line], reasons: Counter[tuple[str, str]], main_label: str) -> None:
    """Print the table of agents, that of families for one agent, and the runs over the bounds."""
    lost = set(lost_lines(lines))
    labels = list(dict.fromkeys(line.label for line in lines))
    print("| agent | runs | over the bounds | lost | lost per 1,000 | lost families | score, % of uniform | worst |"
          " s a run |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for label in labels:
        mine = [line for line in lines if line.label == label]
        n = sum(line in lost for line in mine)
        families = _lost_families(mine, lost)
        cells = [label, f"{len(mine):,}", sum(line.is_over for line in mine), n, f"{1000 * n / len(mine):.1f}"]
        cells += [f"{len(families)}" + (f" ({', '.join(families)})" if families else "")]
        cells += [f"{np.mean([line.share for line in mine]):.1f}", f"{max(line.share for line in mine):.0f}"]
        cells += [f"{np.mean([line.seconds for line in mine]):.2f}"]
        print("| " + " | ".join(str(cell) for cell in cells) + " |")
    if main_label not in labels:
        main_label = labels[0]
    print(f"\n**{main_label}, by family**\n\n| family | runs | over the bounds | lost | score, % | last quarter, % |"
          " worst |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for family in dict.fromkeys(line.family for line in lines):
        mine = [line for line in lines if (line.label, line.family) == (main_label, family)]
        if mine:
            means = f"{np.mean([x.share for x in mine]):.1f} | {np.mean([x.last_share for x in mine]):.1f}"
            counts = f"{len(mine)} | {sum(x.is_over for x in mine)} | {sum(x in lost for x in mine)}"
            print(f"| {family} | {counts} | {means} | {max(x.share for x in mine):.0f} |")
    print("\n**Runs over the bounds** (repeat one with `--only family/number/run`)\n\n| agent | family/number/run |"
          " costs | score, % | last quarter, % | lost |\n|---|---|---|---|---|---|")  # fmt: skip
    for line in sorted((line for line in lines if line.is_over), key=lambda x: (labels.index(x.label), -x.share)):
        where = f"{line.family}/{line.number}/{line.run}"
        yes = "yes" if line in lost else "no agent is within"
        print(f"| {line.label} | {where} | {line.kind} | {line.share:.1f} | {line.last_share:.1f} | {yes} |")
    for (label, reason), count in reasons.items():
        print(f"\nLeft out: {label}, {count} runs: {reason}")


def _lost_families(mine: list[Line], lost: set[Line]) -> list[str]:
    runs, gone = Counter(x.family for x in mine), Counter(x.family for x in mine if x in lost)
    return [family for family, n in runs.items() if 2 * gone[family] > n]


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the runs that are missing in the file, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", choices=SETS, default="all")
    parser.add_argument("--agents", default="psconrl", help="names, or all")
    parser.add_argument("--each", type=int, default=17, help="environments of a family")
    parser.add_argument("--runs", type=int, default=1, help="runs in an environment")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--out", type=Path, help="by default lost_runs.csv")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--variant", type=ast.literal_eval, default={}, help="options of the agent psconrl")
    parser.add_argument("--label", default="", help="name of the variant in the file")
    parser.add_argument("--only", default="", help="family/number/run,...")
    given = parser.parse_args(arguments)
    if bool(given.variant) != bool(given.label):
        parser.error("--variant and --label need each other")
    agents = [name for name in RECIPES if name not in NOT_IN_ALL] if given.agents == "all" else given.agents.split(",")
    kinds = [
        (given.label, name, given.variant) if given.label and name == "psconrl" else (name, name, {}) for name in agents
    ]
    families = list(SETS[given.set])
    places = [(f, i, r) for f in families for i in range(given.each) for r in range(given.runs)]
    if given.only:
        parts = [place.split("/") for place in given.only.split(",")]
        places = [(family, int(number), int(replicate)) for family, number, replicate in parts]
    jobs = [Job(*kind, *place, given.rounds) for place in places for kind in kinds]
    if given.only and given.out is None:
        for job in jobs:
            print(", ".join(f"{key} {cell}" for key, cell in zip(COLUMNS, play(job), strict=True) if cell != ""))
        return
    path = given.out or Path("lost_runs.csv")
    run(jobs, path, given.processes)
    lines, reasons = read(path, families, given.rounds)
    show(lines, reasons, given.label or "psconrl")


if __name__ == "__main__":
    main()
