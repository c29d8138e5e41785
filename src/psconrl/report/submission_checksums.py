"""Checksums of submissions, in their files: of every run, and of the whole.

Those of runs are short, since a file has thousands of them: they say which runs were changed. That of the whole, which
covers the runs as well, has full length.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from psconrl.experiment.board_protocol import REFERENCE
from psconrl.experiment.checksum import checksum

KEY = "checksum"
DIGITS_OF_RUN = 16  # hexadecimal digits of the checksum of a run: 64 bits
TABLES_OF_RUNS = ("runs", "reference")


def with_checksums(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a submission with the checksums of its runs, and its own."""
    record = dict(record)
    for table in TABLES_OF_RUNS:
        record[table] = {
            name: [{**run, KEY: _checksum_of(run)[:DIGITS_OF_RUN]} for run in runs]
            for name, runs in record[table].items()
        }
    return {**record, KEY: _checksum_of(record)}


def changed_in(record: Mapping[str, Any]) -> list[str]:
    """Return what is not as it was submitted: runs by environment, agent and number, or else all that is no run."""
    found = list(_changed_runs(record))
    if found or record.get(KEY) == _checksum_of(record):
        return found
    return ["what belongs to no run, or which runs there are"]


def _changed_runs(record: Mapping[str, Any]) -> Iterator[str]:
    for table, label in zip(TABLES_OF_RUNS, (record["title"], REFERENCE), strict=True):
        for name, runs in record[table].items():
            changed = (run for run in runs if run.get(KEY) != _checksum_of(run)[:DIGITS_OF_RUN])
            yield from (" ".join(f"{name}, {label}, run {run['replicate']}".split()) for run in changed)


def _checksum_of(part: Mapping[str, Any]) -> str:
    """Return the checksum of the JSON text of a part, with sorted keys; its own checksum is left out."""
    return checksum([json.dumps({key: value for key, value in part.items() if key != KEY}, sort_keys=True)])
