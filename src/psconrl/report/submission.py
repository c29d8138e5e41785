"""Submissions to the leaderboard: the results of one agent under the board's protocol, with all that repeats them.

A submission has, of every run, the totals of all costs at T/16 and at T. From several of them come the ``Experiment``
objects of a results file, so that a board of submissions is calculated as the leaderboard is.
"""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import REFERENCE, Entry, Plays, protocol_digest
from psconrl.experiment.versions import versions
from psconrl.learning.registry import title_of
from psconrl.report.curves import Curves, Experiment
from psconrl.report.growth import early_checkpoint
from psconrl.report.priced_regret import need_score
from psconrl.report.sensitivity import Hyperparameter

FACTS = ("cost_names", "thresholds", "optimum", "prices", "range_prices")  # of an environment, which a submission has
# The relative difference of exact values, or of uniform play, up to which two submissions are of one board.
SAME_BOARD = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class SubmittedRun:
    """What a submission has of a run; costs are in the order of ``cost_names``, the objective first."""

    replicate: int
    rounds: list[int]  # about T/16, and T
    totals: list[list[float]]  # cumulative costs at these rounds
    largest_excess: list[float]  # over the whole run, of every constraint
    strong: list[float] | None  # strong regret and violations; None if policies were not evaluated
    seconds: float
    digest: str  # of all checkpoints, without strong regret and violations


Runs = dict[str, list[SubmittedRun]]  # by the name of the environment, which includes the kind of costs


@dataclass(frozen=True, eq=False, kw_only=True)
class Submission:
    """The results of one agent under the protocol of the leaderboard."""

    name: str  # a label of leaderboard.toml, or module:Class
    title: str
    setting: str
    options: dict[str, Any]
    files: dict[str, str]  # the code by path; empty for an agent of the library
    code: str  # digest of the files
    tuning: dict[str, Any] | None  # option, values, losses, chosen: how the hyperparameter was chosen
    protocol: dict[str, Any]  # digest, seed, quick
    versions: dict[str, str]
    platform: dict[str, str]
    environments: dict[str, dict[str, Any]]
    left_out: dict[str, str]  # environments that the agent refuses, with its messages
    runs: Runs
    reference: Runs  # of uniform play

    def is_same_entry(self, other: "Submission") -> bool:
        """Return True if another submission is of the same agent, code and options."""
        return (self.name, self.code, self.options) == (other.name, other.code, other.options)


def submission(
    entry: Entry, plays: Plays, quick: bool, experiments: Sequence[Experiment], tuned: Hyperparameter | None,
    files: Mapping[str, str],
) -> Submission:  # fmt: skip
    """Return the submission of an entry whose runs are done."""
    for experiment in experiments:
        need_score(experiment)
    return Submission(
        name=entry.name,
        title=entry.title,
        setting=entry.agent.setting,
        options=dict(entry.agent.options),
        files=dict(files),
        code=files_digest(files),
        tuning=None if tuned is None else _tuning(tuned),
        protocol={"digest": protocol_digest(plays.jobs), "seed": plays.jobs[0].seed, "quick": quick},
        versions=versions(),
        platform={"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()},
        environments={e.name: {key: e.facts[key] for key in FACTS} for e in experiments},
        left_out=dict(plays.left_out),
        runs=submitted_runs(experiments, entry.label),
        reference=submitted_runs(experiments, REFERENCE),
    )


def files_digest(files: Mapping[str, str]) -> str:
    """Return the digest of the code of a submission; empty if it has none."""
    parts = [part for path in sorted(files) for part in (path, files[path])]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest() if files else ""


def submitted_runs(experiments: Sequence[Experiment], label: str) -> Runs:
    """Return what a submission has of the runs of an agent."""
    return {
        e.name: [_submitted(e.curves[label], k) for k in range(e.curves[label].runs)]
        for e in experiments
        if label in e.curves
    }


def differences(submitted: SubmittedRun, again: SubmittedRun) -> list[str]:
    """Return what differs between a submitted run and its repetition, one line for every quantity."""
    lines = []
    for name in ("rounds", "totals", "largest_excess", "strong"):
        one, two = getattr(submitted, name), getattr(again, name)
        if one != two and not (name == "strong" and agree(one, two)):
            lines.append(f"{name.replace('_', ' ')} {one}, repeated {two}")
    if not lines and submitted.digest != again.digest:
        lines.append("other checkpoints between T/16 and T, or before")
    return lines


def agree(one: Any, two: Any) -> bool:
    """Return True if values that depend on plans agree: another version may round its plans otherwise."""
    if not (isinstance(one, list) and isinstance(two, list) and all(isinstance(x, float | int) for x in one)):
        return bool(one == two)
    return len(one) == len(two) and bool(np.allclose(one, two, rtol=SAME_BOARD, atol=SAME_BOARD))


def merged_experiments(submissions: Mapping[str, Submission]) -> list[Experiment]:
    """Return the environments with the runs of all submissions, by label, and of the reference."""
    first_label, first = next(iter(submissions.items()))
    for label, other in submissions.items():
        reason = difference_of_boards(first, other)
        if reason:
            raise ConfigError(
                f"{first_label} and {label} are not of the same board: {reason}; submit again with the same version, "
                "both with --quick or both without"
            )
    return [
        Experiment(
            name,
            dict(facts),
            None,
            {
                label: _curves(label, title, runs[name], facts)
                for label, title, runs in (
                    *((label, label, each.runs) for label, each in submissions.items()),
                    (REFERENCE, title_of(REFERENCE), first.reference),
                )
                if name in runs
            },
            title=name,
        )
        for name, facts in first.environments.items()
    ]


def difference_of_boards(one: Submission, two: Submission) -> str:
    """Return why two submissions cannot be compared; empty if they are of the same board."""
    digests = {(each.protocol["digest"], each.protocol["quick"]) for each in (one, two)}
    if len(digests) > 1 or one.environments.keys() != two.environments.keys():
        return "their environments, seeds, horizons or numbers of runs differ"
    differing = [name for name in one.environments if not _near(_numbers_of(one, name), _numbers_of(two, name))]
    return f"their optimum, prices or runs of {REFERENCE} differ in {differing[0]}" if differing else ""


def _tuning(tuned: Hyperparameter) -> dict[str, Any]:
    return {
        "option": tuned.option,
        "values": list(tuned.values),
        "losses": [float(loss.mean) for loss in tuned.losses],
        "chosen": tuned.values[tuned.best],
    }


def _submitted(curves: Curves, k: int) -> SubmittedRun:
    at = [early_checkpoint(curves.rounds), -1]
    strong = curves.strong[k, -1]
    return SubmittedRun(
        replicate=int(curves.replicates[k]),
        rounds=curves.rounds[at].tolist(),
        totals=curves.cumulative[k, at].tolist(),
        largest_excess=curves.largest_excess[k, -1, 1:].tolist(),
        strong=None if np.isnan(strong).any() else strong.tolist(),
        seconds=round(float(curves.seconds[k]), 4),
        digest=_digest_of_run(curves, k),
    )


def _digest_of_run(curves: Curves, k: int) -> str:
    tables = (curves.rounds, curves.cumulative[k], curves.largest_excess[k])
    digest = hashlib.sha256()
    for table in tables:
        digest.update(np.ascontiguousarray(np.nan_to_num(table + 0.0)).tobytes())  # one zero, and one nan
    return digest.hexdigest()[:16]


def _numbers_of(each: Submission, environment: str) -> list[Floats]:
    """Return the numbers of an environment that are the same for all submissions."""
    exact = [np.array(each.environments[environment][key]) for key in FACTS if key != "cost_names"]
    return [*exact, np.array([run.totals for run in each.reference[environment]])]


def _near(one: Sequence[Floats], two: Sequence[Floats]) -> bool:
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=SAME_BOARD, atol=SAME_BOARD)
        for a, b in zip(one, two, strict=True)
    )


def _curves(label: str, title: str, runs: Sequence[SubmittedRun], facts: Mapping[str, Any]) -> Curves:
    n, q = len(runs), len(facts["cost_names"])
    unknown = np.full((n, 1, q), np.nan)

    def at_end(rows: Sequence[Sequence[float]]) -> Floats:
        return np.concatenate([unknown, np.array(rows, dtype=np.float64).reshape(n, 1, q)], axis=1)

    return Curves(
        label=label,
        agent=label,
        rounds=np.array(runs[0].rounds),
        cumulative=np.array([run.totals for run in runs]),
        thresholds=np.tile(np.array(facts["thresholds"], dtype=np.float64), (n, 1)),
        optimum=np.full(n, facts["optimum"][0]),
        replicates=np.array([run.replicate for run in runs]),
        seconds=np.array([run.seconds for run in runs]),
        planning_seconds=np.full(n, np.nan),
        probe=np.empty((n, 0)),
        strong=at_end([run.strong or [np.nan] * q for run in runs]),
        largest_excess=at_end([[np.nan, *run.largest_excess] for run in runs]),
        summaries=({},) * n,
        title=title,
    )
