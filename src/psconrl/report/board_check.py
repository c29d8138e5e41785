"""Checking of submissions: which runs to repeat, and what differs."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psconrl.experiment.board_protocol import REFERENCE, Entry, Plays, find_entry, protocol_digest
from psconrl.experiment.spec import Jobs
from psconrl.experiment.versions import versions
from psconrl.report.curves import Experiment
from psconrl.report.submission import FACTS, Runs, Submission, agree, differences, submitted_runs


@dataclass(frozen=True, eq=False)
class Repetition:
    """The protocol of a submission's agent as it is here, and the runs that were repeated."""

    label: str
    plays: Plays
    experiments: Sequence[Experiment]


def entry_of(found: Submission) -> Entry:
    """Return the entry of a submission, whose code must be importable."""
    entry = find_entry(found.name)
    return replace(entry, agent=replace(entry.agent, options=found.options, setting=found.setting))


def is_same_protocol(found: Submission, plays: Plays) -> bool:
    """Return True if a submission has the environments, seeds and horizons of this version."""
    return bool(found.protocol["digest"] == protocol_digest(plays.jobs))


def repeated_jobs(plays: Plays, label: str, share: float, seed: int) -> Jobs:
    """Return a random share of an agent's runs, at least one, with those of the reference of the same replicates."""
    own = [job for job in plays.jobs if job.label == label]
    chosen = random.Random(f"{seed} {label}").sample(own, max(1, round(share * len(own))))
    places = {(job.experiment, job.replicate) for job in chosen}
    return Jobs(plays.jobs.title, [job for job in plays.jobs if (job.experiment, job.replicate) in places])


def faults(found: Submission, again: Repetition) -> list[str]:
    """Return what is wrong with a submission, one line each; none if all that was repeated is the same."""
    lines = _missing(found, again)
    for experiment in again.experiments:
        facts = found.environments.get(experiment.name, {})
        lines += [
            f"{experiment.name}: {key} {facts.get(key)}, repeated {experiment.facts[key]}"
            for key in FACTS
            if not agree(facts.get(key), experiment.facts[key])
        ]
    for label, runs in ((again.label, found.runs), (REFERENCE, found.reference)):
        lines += _differing(label, runs, submitted_runs(again.experiments, label))
    other = [
        f"{key} {value} (here {versions().get(key)})"
        for key, value in found.versions.items()
        if versions().get(key) != value
    ]
    if lines and other:
        lines.append(f"It was made with other versions, which may be why: {', '.join(other)}")
    return lines


def _missing(found: Submission, again: Repetition) -> list[str]:
    wanted = {(job.experiment, job.replicate) for job in again.plays.jobs if job.label == again.label}
    given = {(name, run.replicate) for name, runs in found.runs.items() for run in runs}
    return [
        *(f"{name}, run {replicate}: is missing" for name, replicate in sorted(wanted - given)),
        *(f"{name}, run {replicate}: is not in the protocol" for name, replicate in sorted(given - wanted)),
    ]


def _differing(label: str, submitted: Runs, repeated: Runs) -> list[str]:
    lines = []
    for name, runs in repeated.items():
        by_replicate = {run.replicate: run for run in submitted.get(name, [])}
        for run in runs:
            if run.replicate in by_replicate:
                of_run = differences(by_replicate[run.replicate], run)
                lines += [f"{name}, {label}, run {run.replicate}: {line}" for line in of_run]
    return lines
