"""The board of submissions as one HTML page that works offline: sorted, filtered and by environment in the browser.

Scores depend on what a positive violation costs: a multiple of its shadow price, the price factor, and at least a
multiple of its range price, the floor. The page has the standings at several of both, and says whether the ranking
depends on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import REFERENCE, board_groups
from psconrl.learning.registry import title_of
from psconrl.report.leaderboard import Board, BoardPart, Losses, Standing, leaderboards, positions_by_label, short
from psconrl.report.page import as_json, fill_page
from psconrl.report.priced_regret import USUAL_CHARGE, Charge
from psconrl.report.quick_board import with_built_in
from psconrl.report.statistics import MeanInterval
from psconrl.report.submission import Submission, merged_experiments
from psconrl.report.submission_file import read_submission

CHARGES = (USUAL_CHARGE, *(Charge(factor=x) for x in (1.5, 4.0)), *(Charge(floor=x) for x in (0.0, 0.5, 2.0)))
STYLES_OF_BOARD, SCRIPTS_OF_BOARD = ("page.css", "board.css"), ("dom.js", "board.js")
COLUMNS = ("loss", "tail", "worst_run", "overspent", "worst", "strong", "growth", "seconds")


def submissions_in(path: Path) -> list[Path]:
    """Return a submission, or those of a folder, its .json files."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ConfigError(f"{path}: no such file or folder")
    paths = sorted(path.glob("*.json"))
    if not paths:
        raise ConfigError(f"{path}: has no submissions, which are .json files")
    return paths


def submissions_by_title(path: Path) -> dict[str, Submission]:
    """Read a submission, or all of a folder, by titles that differ."""
    read = {file: read_submission(file) for file in submissions_in(path)}
    titles = [title_of(REFERENCE), *(each.title for each in read.values())]
    return {
        each.title if titles.count(each.title) == 1 else f"{each.title} ({file.stem})": each
        for file, each in read.items()
    }


def ranking_changes(boards: Mapping[Charge, Mapping[str, Board]]) -> list[str]:
    """Return two lines for every kind of costs: whether rankings depend on the price factor and the floor, and where.

    A line is left out if there are no boards at another factor or floor.
    """
    usual = boards[USUAL_CHARGE]
    factors = {charge.factor: found for charge, found in boards.items() if charge.floor == USUAL_CHARGE.floor}
    floors = {charge.floor: found for charge, found in boards.items() if charge.factor == USUAL_CHARGE.factor}
    lines = []
    for kind in usual:
        if len(factors) > 1:
            lines.append(_dependence(kind, "price factor", USUAL_CHARGE.factor, factors))
        if len(floors) > 1:
            lines.append(_dependence(kind, "floor", USUAL_CHARGE.floor, floors))
    return lines


def _dependence(kind: str, what: str, usual_value: float, boards: Mapping[float, Mapping[str, Board]]) -> str:
    """Return whether the ranking at the usual value differs from that at others, and where."""
    usual = boards[usual_value][kind]
    others = {x: boards[x][kind] for x in sorted(boards) if x != usual_value}
    moved = [
        f"{x:g} instead of {usual_value:g}: {', '.join(moves)}"
        for x, board in others.items()
        if (moves := _moves(usual, board))
    ]
    within = {
        short(name): [f"{x:g}" for x, board in others.items() if _order(usual, name) != _order(board, name)]
        for name in usual.environments
    }
    changed = [f"{name} ({', '.join(at)})" for name, at in within.items() if at]
    values = ", ".join(f"{x:g}" for x in sorted(boards))
    overall = f"changes with the {what} ({'; '.join(moved)})" if moved else f"is the same at every {what} of {values}"
    inside = f"changes in {', '.join(changed)}" if changed else "is the same as well"
    return f"{kind}: the ranking {overall}. Within environments it {inside}."


def board_contents(submissions: Mapping[str, Submission]) -> dict[str, Any]:
    """Return all that the page shows, as plain data; quick submissions are compared with the built-in agents."""
    submissions, own, remark = with_built_in(submissions)
    experiments = merged_experiments(submissions)
    boards = {charge: leaderboards(experiments, charge, board_groups()) for charge in CHARGES}
    return {
        "title": "Leaderboard",
        "quick": any(each.protocol["quick"] for each in submissions.values()),
        "own": own,
        "remark": remark,
        "charges": [asdict(charge) for charge in CHARGES],  # the usual one first
        "changes": ranking_changes(boards),
        "boards": [{kind: _board(board) for kind, board in found.items()} for found in boards.values()],
        "submissions": [_origin(label, each) for label, each in submissions.items()],
    }


def render_board(contents: Mapping[str, Any]) -> str:
    """Return the page of a board's contents as text."""
    return fill_page("Leaderboard", STYLES_OF_BOARD, SCRIPTS_OF_BOARD, as_json(contents))


def write_board(contents: Mapping[str, Any], path: Path) -> None:
    """Write the page of a board's contents to a file atomically."""
    page = render_board(contents).encode()
    write_atomically(path, lambda f: f.write(page), ConfigError)


def _moves(usual: Board, other: Board) -> list[str]:
    """Return the agents whose position differs, with both positions."""
    expected, positions = positions_by_label(usual), positions_by_label(other)
    moved = [standing for standing in other.standings if positions[standing.label] != expected[standing.label]]
    return [f"{standing.title} {expected[standing.label]} → {positions[standing.label]}" for standing in moved]


def _order(board: Board, environment: str) -> list[str]:
    """Return the labels in an environment by mean score."""
    places = board.places[environment]
    return sorted(places, key=lambda label: (float(places[label].score.mean), label))


def _board(board: Board) -> dict[str, Any]:
    return {
        "environments": [{"name": name, "short": short(name)} for name in board.environments],
        "standings": _standings(board),
        "parts": [
            {
                "title": part.title,
                "description": part.description,
                "environments": list(part.environments),
                "standings": _standings(part),
            }
            for part in board.parts
        ],
        "places": {
            name: {
                standing.title: {"score": _estimate(place.score), "not_worse": place.not_worse, **_losses(place)}
                for standing in board.standings
                if (place := board.places[name].get(standing.label)) is not None
            }
            for name in board.environments
        },
    }


def _standings(board: Board | BoardPart) -> list[dict[str, Any]]:
    positions = positions_by_label(board)
    return [_standing(standing, positions[standing.label]) for standing in board.standings]


def _standing(standing: Standing, position: int) -> dict[str, Any]:
    return {
        "agent": standing.title,
        "position": position,
        "environments": standing.environments,
        "rank": _estimate(standing.rank),
        **_losses(standing),
    }


def _losses(losses: Losses) -> dict[str, float]:
    return {name: getattr(losses, name) for name in COLUMNS}


def _estimate(estimate: MeanInterval) -> list[float]:
    return [float(x) for x in (estimate.mean, estimate.low, estimate.high)]


def _origin(label: str, each: Submission) -> dict[str, Any]:
    """Return what the page says about a submission: its code, its settings, its versions."""
    return {
        "agent": label,
        "name": each.name,
        "setting": each.setting,
        "tuning": each.tuning,
        "code": each.code,
        "files": [{"path": path, "text": text} for path, text in each.files.items()],
        "versions": _pairs(each.versions),
        "platform": _pairs(each.platform),
        "left_out": _reasons(each.left_out),
    }


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def _reasons(left_out: Mapping[str, str]) -> Sequence[str]:
    return [f"{name}: {reason}" for name, reason in left_out.items()]
