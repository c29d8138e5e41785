"""Tables of the leaderboard: plain data for a terminal, and a page of Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psconrl.base.escaping import markdown_text
from psconrl.experiment.spec import WHOLE_TITLE
from psconrl.report.leaderboard import Board, Standing, positions_by_label, short
from psconrl.report.number_format import format_number
from psconrl.report.print_table import Bold, markdown_table
from psconrl.report.statistics import FEW_RUNS

NOTE = (
    "Score of a run: regret plus positive violations, each at twice its shadow price, but at least at its range price. "
    "Loss: the score in % of that of uniform play; 90% and worst run: the loss of the 90th percentile of runs, and of "
    "the worst run. Overspent: positive violations at their shadow prices, but at least at their range prices; at "
    "worst: the same for the largest running excess; strong: for strong violations; all in % of the score of uniform "
    "play. Rank: by mean score among the agents that play an environment, averaged over environments, with a 95% "
    "interval over runs. Not worse: environments where a paired t-test at 5%, corrected for all tests of the table, "
    "finds the agent not significantly worse than the one with the least mean score, because it is as good or because "
    f"its runs differ widely (-: fewer than {FEW_RUNS} runs). Growth: the exponent at which the mean score grows from "
    "T/16 to T, mean over environments. s: seconds per run, mean over environments."
)


def standings_table(board: Board, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the table of overall results, one row per agent."""
    return {
        "title": "Standings",
        "note": NOTE,
        "header": [
            "agent", "setting", "rank", "not worse", "environments", "loss", "90%", "worst run", "overspent",
            "at worst", "strong", "growth", "s",
        ],
        "rows": [
            [
                s.title, settings.get(s.label, ""), s.rank, "-" if s.not_worse is None else s.not_worse,
                s.environments,
                *map(_two_digits, (s.loss, s.tail, s.worst_run, s.overspent, s.worst, s.strong, s.growth)),
                format_number(s.seconds, 2),
            ]
            for s in board.standings
        ],
    }  # fmt: skip


def parts_table(board: Board) -> dict[str, Any]:
    """Return the table of ranks and losses over all environments, and over those of every part."""
    parts = {WHOLE_TITLE: board.standings, **{part.title: part.standings for part in board.parts}}
    rows = []
    for standing in board.standings:
        own = [next((s for s in standings if s.label == standing.label), None) for standings in parts.values()]
        rows.append([standing.title, *(_cell(s, "rank") for s in own), *(_cell(s, "loss") for s in own)])
    described = [
        f"{part.title}: {len(part.environments)} environments. {part.description}".strip() for part in board.parts
    ]
    return {
        "title": "By part",
        "note": " ".join(["Mean rank and mean loss in each part of the environments.", *described]),
        "header": ["agent", *(f"{what}, {title}" for what in ("rank", "loss") for title in parts)],
        "rows": rows,
    }


def _cell(standing: Standing | None, name: str) -> Any:
    """Return a rank or a loss for a table, empty if the agent plays no environment of the part."""
    if standing is None:
        return ""
    return standing.rank if name == "rank" else _two_digits(standing.loss)


def entry_table(label: str, boards: Mapping[str, Board]) -> dict[str, Any]:
    """Return the table of one agent's overall results, one row per board and per part of it."""
    every = {name: board.standings for name, board in boards.items()}
    every |= {f"{name}, {part.title}": part.standings for name, board in boards.items() for part in board.parts}
    standings = {name: s for name, own in every.items() for s in own if s.label == label}
    return {
        "title": next(iter(standings.values())).title,
        "note": "Means over environments, in % of the score of uniform play; growth: exponent of the score after T/16.",
        "header": ["board", "environments", "loss", "90%", "worst run", "overspent", "strong", "growth", "s"],
        "rows": [
            [
                name,
                s.environments,
                *map(_two_digits, (s.loss, s.tail, s.worst_run, s.overspent, s.strong, s.growth, s.seconds)),
            ]
            for name, s in standings.items()
        ],
    }


def positions_of(label: str, boards: Mapping[str, Board]) -> list[str]:
    """Return a line for every board that an agent is on: its position and its loss."""
    lines = []
    for name, board in boards.items():
        positions = positions_by_label(board)
        lines += [
            f"{name}: {s.title} is number {positions[label]} of {len(positions)}, with a loss of {_two_digits(s.loss)}%"
            for s in board.standings
            if s.label == label
        ]
    return lines


def environments_tables(board: Board) -> list[dict[str, Any]]:
    """Return the tables of scores of every agent in every environment, one for each part."""
    if not board.parts:
        return [_environments_table(board, "By environment", board.environments, board.standings)]
    return [
        _environments_table(board, f"By environment, {part.title}", part.environments, part.standings)
        for part in board.parts
    ]


def _environments_table(
    board: Board, title: str, environments: Sequence[str], standings: Sequence[Standing]
) -> dict[str, Any]:
    rows = []
    for standing in standings:
        places = [board.places[environment].get(standing.label) for environment in environments]
        cells = ["" if p is None else Bold(p.score) if p.not_worse else p.score for p in places]
        rows.append([standing.title, *cells])
    return {
        "title": title,
        "note": "Mean score and 95% interval over runs; bold: not significantly worse than the best; empty: no runs.",
        "header": ["agent", *map(short, environments)],
        "rows": rows,
    }


def overall_tables(board: Board, settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the tables of overall results: the standings, and those of the parts if there are any."""
    return [standings_table(board, settings), *([parts_table(board)] if board.parts else [])]


def markdown_page(boards: Mapping[str, Board], settings: Mapping[str, str]) -> str:
    """Return all tables as Markdown, with one chapter per board."""
    parts: list[str] = []
    for name, board in boards.items():
        parts.append(f"## {markdown_text(name)}\n")
        for table in (*overall_tables(board, settings), *environments_tables(board)):
            parts += [
                f"### {markdown_text(table['title'])}\n",
                markdown_table(table["header"], table["rows"]),
                "",
                table["note"],
                "",
            ]
    return "\n".join(parts)


def _two_digits(share: float) -> str:
    return "-" if np.isnan(share) else format_number(share, 2)
