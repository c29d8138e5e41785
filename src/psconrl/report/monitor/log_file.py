"""Incremental reading of a log of episodes, as ``psconrl.CSVLog`` writes it; each episode counts once.

A run that resumes after a crash repeats the episodes since its last save, and the newer line counts. A line that is
still being written is read the next time.
"""

import math
import os
import re
from array import array
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import MOST_ROUNDS
from psconrl.errors import ConfigError
from psconrl.learning.runtime.events import EXPLORING, EpisodeEvent
from psconrl.learning.runtime.logs import (
    COLUMNS,
    DOUBTS,
    ESTIMATE,
    FLOOR,
    PERCENT,
    RATIO,
    RATIO_PARTS,
    cells_of,
    header,
)
from psconrl.learning.watchdog import Alarm, Watchdog

READ_BYTES = 1 << 22  # bytes read at once
MOST_POLICIES = 512  # policies kept of a long log, evenly spread; up to twice as many
BEGINNING = ",".join(COLUMNS).encode()  # start of the first line
FACTS = tuple(column for column in COLUMNS if column != "kind")
RATIO_NAME = re.compile(r"(\d+): (.*)", re.DOTALL)  # the number of its limit, and the ratio


class LoggedRatio(NamedTuple):
    """A ratio that has a limit, after every episode (K,); nan where its denominator is zero or unknown."""

    name: str
    percent: bool
    episode: Floats
    so_far: Floats
    limit: Floats
    per_round: Floats  # averages of its denominator


class LogFile:
    """The episodes of a log so far. ``refresh`` reads new lines, or the whole file again if it was replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self.cost_names: list[str] = []
        self.kinds: list[str] = []
        self.unread = 0  # lines that are not episodes
        self.doubts = ""  # of the last episode, about the structure of a system
        self._has_doubts = False
        self.parameters: list[str] = []  # unknown ones of a system
        self._estimates = array("d")  # their posterior means, one row per episode
        self._ratio_names: list[str] = []
        self._ratios = array("d")  # their numbers, one row per episode
        self._watchdog: Watchdog | None = None
        self._watched = 0  # episodes that the watchdog has seen
        self._numbers = array("d")  # one row per episode
        self._policies: list[tuple[float, float, str]] = []  # (episode, its last round, cell)
        self._last_policy = ""
        self._every = 1
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._tail = b""  # the end of what was read; if it has changed, the file was replaced

    def refresh(self) -> None:
        """Read the lines added since the last call."""
        with self.path.open("rb") as f:
            status = os.fstat(f.fileno())
            if (status.st_dev, status.st_ino) != self._identity or not self._continues(f):
                self._forget()
                self._identity = (status.st_dev, status.st_ino)
            f.seek(self._offset)
            rest = b""
            while block := f.read(READ_BYTES):
                whole, newline, rest = (rest + block).rpartition(b"\n")
                if newline:
                    self._take(whole + newline)
                elif not self.cost_names and rest[: len(BEGINNING)] != BEGINNING[: len(rest)]:
                    raise self._foreign()

    def _continues(self, f: IO[bytes]) -> bool:
        f.seek(self._offset - len(self._tail))
        return f.read(len(self._tail)) == self._tail

    def _take(self, lines: bytes) -> None:
        """Add complete lines."""
        self._offset += len(lines)
        self._tail = lines[-200:]
        rows = map(cells_of, filter(None, lines.decode("utf-8", "replace").split("\n")))
        if not self.cost_names:
            self.cost_names = self._read_header(next(rows, []))
        for row in rows:
            self._add(row)

    def _read_header(self, cells: list[str]) -> list[str]:
        """Return the names of the costs."""
        own = list(cells)
        while own and own[-1].startswith(RATIO):
            own.pop()
        ratios = cells[len(own) :: len(RATIO_PARTS)]
        self._ratio_names = [cell.removeprefix(RATIO) for cell in ratios]
        end = len(own)
        while own and own[-1].startswith(ESTIMATE):
            own.pop()
        self.parameters = [cell.removeprefix(ESTIMATE) for cell in cells[len(own) : end]]
        self._has_doubts = own[-1:] == [DOUBTS]
        costs = own[len(COLUMNS) : -2 if self._has_doubts else -1]
        names = costs[: (len(costs) + 1) // 3]
        readable = all(RATIO_NAME.fullmatch(name) for name in self._ratio_names)
        if not names or not readable or header(names, self._has_doubts, self.parameters, self._ratio_names) != cells:
            raise self._foreign()
        return names

    def _foreign(self) -> ConfigError:
        return ConfigError(
            f"{self.path}: neither a log of episodes (learn --log, psconrl.CSVLog) nor a results file (sweep --out)"
        )

    def _add(self, row: list[str]) -> None:
        n_ratios = len(RATIO_PARTS) * len(self._ratio_names)
        ratios = [row.pop() for _ in range(n_ratios) if row][::-1]
        estimates = [row.pop() for _ in self.parameters if row][::-1]
        doubts = row.pop() if self._has_doubts and row else ""
        if len(row) != len(COLUMNS) + 3 * len(self.cost_names) or (len(estimates), len(ratios)) != (
            len(self.parameters),
            n_ratios,
        ):
            self.unread += 1
            return
        facts = dict(zip(COLUMNS, row, strict=False))
        kind = facts.pop("kind")
        try:
            numbers = [float(facts[column]) for column in FACTS]
            numbers += map(float, row[len(COLUMNS) : -1])
            known, divided = [float(estimate) for estimate in estimates], [float(x) for x in ratios]
        except ValueError:
            self.unread += 1
            return
        end, episode, length = numbers[:3]
        if not all(map(math.isfinite, numbers[:4])) or not 1 <= length <= end <= MOST_ROUNDS:
            self.unread += 1
            return
        self._drop_from(episode, end)
        self._numbers.extend(numbers)
        self.kinds.append(kind)
        self.doubts = doubts
        self._estimates.extend(known)
        self._ratios.extend(divided)
        self._last_policy = row[-1]
        if len(self.kinds) % self._every == 0:
            self._policies.append((episode, end, row[-1]))
            if len(self._policies) > 2 * MOST_POLICIES:
                self._policies, self._every = self._policies[1::2], 2 * self._every

    def _drop_from(self, episode: float, end: float) -> None:
        """Drop the lines that a repeated episode replaces."""
        width = len(FACTS) + 3 * len(self.cost_names) - 1
        while self.kinds and (self._numbers[1 - width] >= episode or self._numbers[-width] >= end):
            del self._numbers[-width:]
            del self._estimates[len(self._estimates) - len(self.parameters) :]
            del self._ratios[len(self._ratios) - len(RATIO_PARTS) * len(self._ratio_names) :]
            self.kinds.pop()
            self._watchdog = None  # it has seen lines that are dropped now
        while self._policies and (self._policies[-1][0] >= episode or self._policies[-1][1] >= end):
            self._policies.pop()

    @property
    def estimates(self) -> dict[str, Floats]:
        """The posterior means of the unknown parameters of a system after every episode, by name."""
        table = np.array(self._estimates).reshape(len(self), len(self.parameters))
        return dict(zip(self.parameters, table.T, strict=True))

    @property
    def ratios(self) -> dict[int, LoggedRatio]:
        """The ratios that have limits, by the number of the limit."""
        table = np.array(self._ratios).reshape(len(self), len(self._ratio_names), len(RATIO_PARTS))
        found = {}
        for k, text in enumerate(self._ratio_names):
            matched = RATIO_NAME.fullmatch(text)
            assert matched is not None
            name = matched[2].removesuffix(PERCENT)
            found[int(matched[1])] = LoggedRatio(name, name != matched[2], *table[:, k].T)
        return found

    def is_floor(self, i: int) -> bool:
        """Whether a cost is a quantity with a lower limit."""
        return self.cost_names[i].endswith(FLOOR)

    def alarms(self) -> list[Alarm]:
        """Return the alarms of a watchdog on the run so far."""
        names = [name.removesuffix(FLOOR) for name in self.cost_names[1:]]
        signs = np.array([1.0, *(-1.0 if self.is_floor(i) else 1.0 for i in range(1, len(self.cost_names)))])
        if self._watchdog is None:
            floors = [name for name, sign in zip(names, signs[1:], strict=True) if sign < 0]
            self._watchdog, self._watched = Watchdog(names, lambda alarm: None, floors), 0
        q, first = len(self.cost_names), len(FACTS)
        width = first + 3 * q - 1
        for k in range(self._watched, len(self)):
            row = np.array(self._numbers[k * width : (k + 1) * width])
            facts = dict(zip(FACTS, row.tolist(), strict=False))
            costs, averages, limits = np.split(row[first:], [q, 2 * q])
            self._watchdog(
                EpisodeEvent(
                    int(facts["round"]),
                    int(facts["episode"]),
                    self.kinds[k],
                    int(facts["length"]),
                    signs * costs,
                    signs * averages,
                    signs[1:] * limits,
                    facts["value"],
                    int(facts["explored"]),
                )
            )
        self._watched = len(self)
        return self._watchdog.alarms

    def __len__(self) -> int:
        return len(self.kinds)

    def episodes(self) -> "Episodes":
        """Return all episodes so far."""
        table = np.array(self._numbers, dtype=np.float64).reshape(len(self), -1)
        facts = dict(zip(FACTS, table.T, strict=False))
        q, first = len(self.cost_names), len(FACTS)
        return Episodes(
            facts,
            np.isin(np.array(self.kinds), EXPLORING),
            table[:, first : first + q],
            table[:, first + q : first + 2 * q],
            table[:, first + 2 * q :],
            self._shown_policies(),
        )

    def _shown_policies(self) -> list[tuple[float, str]]:
        """Return (last round, cell) of some episodes, including the last."""
        if not self._last_policy:
            return []
        width = len(FACTS) + 3 * len(self.cost_names) - 1
        return [*((end, cell) for _, end, cell in self._policies), (self._numbers[-width], self._last_policy)]


class Episodes:
    """A log as arrays: K episodes, q = m+1 costs."""

    def __init__(
        self,
        facts: dict[str, Floats],
        exploring: np.ndarray[tuple[int], np.dtype[np.bool_]],
        costs: Floats,
        averages: Floats,
        limits: Floats,
        policies: list[tuple[float, str]],
    ) -> None:
        self.ends: Ints = facts["round"].astype(np.int64)
        self.length: Ints = facts["length"].astype(np.int64)
        self.explored, self.value, self.planning_time, self.changed = (
            facts[column] for column in ("explored", "value", "planning_time", "changed")
        )
        self.number: Ints = facts["episode"].astype(np.int64)
        self.exploring = exploring  # (K,)
        self.costs, self.averages = costs, averages  # (K, q) averages over the episode, and over all rounds so far
        self.limits = limits  # (K, m)
        self.policies = policies  # (last round, cell) of some episodes, including the last
