"""Quick submissions of the agents of the leaderboard, which the package ships, and comparisons with them.

All are in one compressed file. What they have in common is stored once: the protocol, the environments, uniform play,
and the versions and platform of the runs. Quick submissions are compared with them at once; full ones never are.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.report.submission import Runs, Submission, SubmittedRun, difference_of_boards

QUICK_BOARD = Path(__file__).with_name("quick_board.json.gz")
IN_COMMON = ("files", "code", "protocol", "versions", "platform", "environments", "reference")


class ComparedSubmissions(NamedTuple):
    """Submissions to rank together, the user's first, and what to say about the comparison."""

    submissions: dict[str, Submission]
    own: tuple[str, ...]  # labels of the user's submissions; empty if there are no others
    remark: str


def write_quick_board(submissions: Sequence[Submission], path: Path) -> None:
    """Write quick submissions of built-in agents to one file; an error if they are not of one board."""
    shared, *others = map(asdict, submissions)
    for each, one in zip(submissions[1:], others, strict=True):
        reason = difference_of_boards(submissions[0], each)
        different = [key for key in ("files", "code", "versions", "platform") if one[key] != shared[key]]
        if reason or different:
            raise ConfigError(f"{each.title} and {submissions[0].title}: {reason or f'{different[0]} differ'}")
    record = {
        "shared": {key: shared[key] for key in IN_COMMON},
        "agents": [{key: value for key, value in one.items() if key not in IN_COMMON} for one in (shared, *others)],
    }
    text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    content = gzip.compress(text.encode(), mtime=0)  # the same bytes for the same submissions
    write_atomically(path, lambda f: f.write(content), ConfigError)


def read_quick_board() -> dict[str, Submission]:
    """Return the quick submissions that the package ships, by title."""
    record = json.loads(gzip.decompress(QUICK_BOARD.read_bytes()))
    read = [_submission(record["shared"] | agent) for agent in record["agents"]]
    return {each.title: each for each in read}


def with_built_in(own: Mapping[str, Submission]) -> ComparedSubmissions:
    """Return quick submissions with those of the built-in agents, if they are of the same board.

    A built-in agent is left out if it was submitted again with the same options. Full submissions are returned as they
    are.
    """
    if not all(each.protocol["quick"] for each in own.values()):
        return ComparedSubmissions(dict(own), (), "")
    shipped = read_quick_board()
    reason = difference_of_boards(next(iter(own.values())), next(iter(shipped.values())))
    if reason:
        remark = (
            f"Not compared with the built-in agents, whose quick runs are part of psconrl: {reason}. Submit again with "
            "this version of psconrl; in a clone of the repository, `make quick-board` makes their runs again."
        )
        return ComparedSubmissions(dict(own), (), remark)
    others = {title: each for title, each in shipped.items() if not any(map(each.is_same_entry, own.values()))}
    named = {f"{label} (yours)" if label in others else label: each for label, each in own.items()}
    remark = (
        f"Compared with the quick runs of {len(others)} built-in agents, which are part of psconrl. Their times per "
        "run are those of another computer."
    )
    return ComparedSubmissions(named | others, tuple(named), remark)


def _submission(record: dict[str, Any]) -> Submission:
    return Submission(**record | {key: _runs(record[key]) for key in ("runs", "reference")})


def _runs(record: Mapping[str, Sequence[Mapping[str, Any]]]) -> Runs:
    return {name: [SubmittedRun(**run) for run in runs] for name, runs in record.items()}
