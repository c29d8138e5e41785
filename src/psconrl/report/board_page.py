"""The board of submissions as one HTML page that works offline: sorted, filtered and by environment in the browser.

Scores depend on the multiple of the shadow prices that overspending costs. The page has the standings at several price
factors, and says whether the ranking depends on them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from psconrl.errors import ConfigError
from psconrl.experiment.board_protocol import REFERENCE, board_groups
from psconrl.files import write_atomically
from psconrl.learning.registry import title_of
from psconrl.report.leaderboard import Board, BoardPart, Losses, Standing, leaderboards, short
from psconrl.report.page import as_json, fill_page
from psconrl.report.priced_regret import OVERSPENDING_FACTOR
from psconrl.report.statistics import MeanInterval
from psconrl.report.submission import Submission, merged_experiments
from psconrl.report.submission_file import read_submission

PRICE_FACTORS = (1.5, OVERSPENDING_FACTOR, 4.0)
STYLES_OF_BOARD, SCRIPTS_OF_BOARD = ("page.css", "board.css"), ("dom.js", "board.js")
COLUMNS = ("loss", "tail", "worst_run", "overspent", "worst", "strong", "growth", "seconds")


def submissions_in(folder: Path) -> list[Path]:
    """Return the submissions of a folder, its .json files."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise ConfigError(f"{folder}: has no submissions, which are .json files")
    return paths


def read_folder(folder: Path) -> dict[str, Submission]:
    """Read all submissions of a folder, the .json files, by titles that differ."""
    paths = submissions_in(folder)
    read = {path: read_submission(path) for path in paths}
    titles = [title_of(REFERENCE), *(each.title for each in read.values())]
    return {
        each.title if titles.count(each.title) == 1 else f"{each.title} ({path.stem})": each
        for path, each in read.items()
    }


def ranking_changes(boards: Mapping[float, Mapping[str, Board]]) -> list[str]:
    """Return one line for every kind of costs: whether rankings depend on the price factor, and where."""
    factors = ", ".join(f"{factor:g}" for factor in boards)
    lines = []
    for kind, usual in boards[OVERSPENDING_FACTOR].items():
        others = {factor: found[kind] for factor, found in boards.items() if factor != OVERSPENDING_FACTOR}
        moved = [
            f"{factor:g} instead of {OVERSPENDING_FACTOR:g}: {', '.join(moves)}"
            for factor, board in others.items()
            if (moves := _moves(usual, board))
        ]
        within = {
            short(name): [
                f"{factor:g}" for factor, board in others.items() if _order(usual, name) != _order(board, name)
            ]
            for name in usual.environments
        }
        changed = [f"{name} ({', '.join(at)})" for name, at in within.items() if at]
        overall = (
            f"changes with the price factor ({'; '.join(moved)})" if moved else f"is the same at factors {factors}"
        )
        inside = f"changes in {', '.join(changed)}" if changed else "is the same as well"
        lines.append(f"{kind}: the ranking {overall}. Within environments it {inside}.")
    return lines


def board_contents(submissions: Mapping[str, Submission]) -> dict[str, Any]:
    """Return all that the page shows, as plain data."""
    experiments = merged_experiments(submissions)
    boards = {factor: leaderboards(experiments, factor, board_groups()) for factor in PRICE_FACTORS}
    return {
        "title": "Leaderboard",
        "quick": any(each.protocol["quick"] for each in submissions.values()),
        "factors": list(PRICE_FACTORS),
        "usual": OVERSPENDING_FACTOR,
        "changes": ranking_changes(boards),
        "boards": [{kind: _board(board) for kind, board in found.items()} for found in boards.values()],
        "submissions": [_origin(label, each) for label, each in submissions.items()],
    }


def render_board(submissions: Mapping[str, Submission]) -> str:
    """Return the page as text."""
    return fill_page("Leaderboard", STYLES_OF_BOARD, SCRIPTS_OF_BOARD, as_json(board_contents(submissions)))


def write_board(submissions: Mapping[str, Submission], path: Path) -> None:
    """Write the page to a file atomically."""
    page = render_board(submissions).encode()
    write_atomically(path, lambda f: f.write(page), ConfigError)


def _positions(board: Board | BoardPart) -> dict[str, int]:
    """Return the position of every agent; agents with the same mean rank share it."""
    ranks = {standing.label: float(standing.rank.mean) for standing in board.standings}
    return {label: 1 + sum(other < rank for other in ranks.values()) for label, rank in ranks.items()}


def _moves(usual: Board, other: Board) -> list[str]:
    """Return the agents whose position differs, with both positions."""
    expected, positions = _positions(usual), _positions(other)
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
    positions = _positions(board)
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
