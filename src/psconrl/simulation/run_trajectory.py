"""The rounds of a run in their order: states, actions and costs, recorded on request.

A round takes 8 bytes for each of its state, its action and its costs in memory. In a results file it takes 0.1 to 2
bytes if costs have few values, and up to 8 for every cost that has many.
"""

import csv
import hashlib
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from psconrl.base.arrays import Floats, Ints, read_only
from psconrl.base.caps import need
from psconrl.base.escaping import csv_cell
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError, StoreError
from psconrl.kernels.play.rounds import Recorder
from psconrl.model.names import Names

LONGEST_STORED = 400_000_000  # of a trajectory before compression: 16,000,000 rounds with two costs
TABLE_ROWS_AT_ONCE = 10_000  # of a table on its way to a file
STATE, ACTION, COST = np.dtype("<i4"), np.dtype("<i4"), np.dtype("<f8")  # as stored


@dataclass(frozen=True, eq=False)
class RunTrajectory:
    """The T rounds of a run in their order.

    ``states`` (T+1,): the state before every round, and the one after the last. ``actions`` (T,). ``costs`` (T, m+1):
    incurred in every round, the objective first, as a cost (a reward with a minus sign). ``names``: of states, actions
    and costs. ``start``: rounds played before the first, if the run was resumed.
    """

    states: Ints
    actions: Ints
    costs: Floats
    names: Names
    start: int = 0

    @property
    def next_states(self) -> Ints:
        """The state after every round, (T,)."""
        return self.states[1:]

    def __len__(self) -> int:
        return int(self.actions.size)

    def table(self, run: int = 0) -> dict[str, list[Any]]:
        """Return columns with a row for every round: run, time, state, action, and one for every cost.

        The last row has the state after the last round, and None for action and costs. States and actions are given by
        name, if they have names. A reward, and a quantity with a lower limit, are written as they are, not negated.

        >>> import psconrl
        >>> model = psconrl.load("counterexample")
        >>> agent = psconrl.PSConRL(2, 2, model.thresholds, model.costs, seed=0)
        >>> trace = psconrl.simulate(model, agent, horizon=5, seed=0, trajectory=True)
        >>> table = trace.trajectory.table()
        >>> list(table), table["time"]
        (['run', 'time', 'state', 'action', 'reward', 'cost'], [0, 1, 2, 3, 4, 5])
        """
        return self._columns(run, 0, len(self) + 1)

    def _columns(self, run: int, first: int, last: int) -> dict[str, list[Any]]:
        """Return rows ``first`` to ``last - 1`` of the table, by columns."""
        names, n, k = self.names, len(self), self.start
        states, actions = self.states[first:last].tolist(), self.actions[first:last].tolist()
        beyond = [None] * (last - max(first, n)) if last > n else []  # the row after the last round
        columns: dict[str, list[Any]] = {
            "run": [run] * (last - first),
            "time": list(range(k + first, k + last)),
            "state": [names.states[s] for s in states] if names.states else states,
            "action": [*([names.actions[a] for a in actions] if names.actions else actions), *beyond],
        }
        costs = (self.costs[first:last] * names.signs + 0.0).T  # adding 0 turns -0 into 0
        for name, values in zip(names.costs, costs, strict=True):
            columns[name if name not in columns else f"cost {name}"] = [*values.tolist(), *beyond]
        return columns

    def rows(self, run: int = 0) -> Iterator[list[Any]]:
        """Yield the header of the table, then its rows."""
        yield list(self._columns(run, 0, 0))
        n = len(self) + 1
        for first in range(0, n, TABLE_ROWS_AT_ONCE):
            columns = self._columns(run, first, min(first + TABLE_ROWS_AT_ONCE, n))
            yield from map(list, zip(*columns.values(), strict=True))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a CSV file, in which None is an empty cell."""
        write_atomically(Path(path), lambda f: write_rows(f, self.rows()), ConfigError)

    def packed(self) -> bytes:
        """Return states, actions and costs in compressed form, for ``unpacked``."""
        parts = ((self.states, STATE), (self.actions, ACTION), (self.costs, COST))
        return zlib.compress(b"".join(np.ascontiguousarray(part, dtype=kind).tobytes() for part, kind in parts))

    @classmethod
    def unpacked(cls, data: bytes, rounds: int, names: Names) -> "RunTrajectory":
        """Return a packed trajectory of a number of rounds; raise an error if it is another one, or damaged."""
        q = len(names.costs)
        size = stored_bytes(rounds, q)
        need_storable(rounds, q)
        try:
            reader = zlib.decompressobj()
            raw = reader.decompress(data, size + 1)  # bounded: a few bytes can unpack to gigabytes
        except zlib.error:
            raw = b""
        if len(raw) != size:
            raise StoreError("damaged: not a trajectory of this number of rounds and costs")
        cut = STATE.itemsize * (rounds + 1), ACTION.itemsize * rounds
        states = np.frombuffer(raw[: cut[0]], dtype=STATE).astype(np.int64)
        actions = np.frombuffer(raw[cut[0] : sum(cut)], dtype=ACTION).astype(np.int64)
        costs = np.frombuffer(raw[sum(cut) :], dtype=COST).astype(np.float64).reshape(rounds, q)
        known = (states, names.states), (actions, names.actions)
        if any((x < 0).any() or (each and (x >= len(each)).any()) for x, each in known) or not np.isfinite(costs).all():
            raise StoreError("damaged: a trajectory with states, actions or costs that do not exist")
        return cls(states, actions, costs, names)


def write_rows(f: IO[bytes], rows: Iterable[list[Any]]) -> None:
    """Write rows to a CSV file."""
    text = io.TextIOWrapper(f, encoding="utf-8", errors="replace", newline="")
    csv.writer(text, lineterminator="\n").writerows(map(csv_cell, row) for row in rows)
    text.detach()  # flushes, and leaves closing the file to the caller


def stored_bytes(rounds: int, n_costs: int) -> int:
    """Return the size of a trajectory before compression."""
    return STATE.itemsize * (rounds + 1) + (ACTION.itemsize + COST.itemsize * n_costs) * rounds


def need_storable(rounds: int, n_costs: int) -> None:
    """Raise an error if a trajectory is too long to be stored with a run."""
    size = stored_bytes(rounds, n_costs)
    if size > LONGEST_STORED:
        most = LONGEST_STORED * rounds // size
        raise ConfigError(
            f"a trajectory of {rounds:,} rounds with {n_costs} costs takes {size / 1e6:,.0f} MB, and at most "
            f"{LONGEST_STORED / 1e6:,.0f} MB are stored: lower the horizon to {most:,} rounds, or leave out the "
            "trajectories"
        )


def noted_trajectory(packed: bytes, rounds: int) -> dict[str, Any]:
    """Return what the summary of a run says of its packed trajectory: rounds and SHA-256; empty if there is none."""
    return {"trajectory": {"rounds": rounds, "sha256": hashlib.sha256(packed).hexdigest()}} if packed else {}


class TrajectoryRecorder:
    """Records the rounds of a run as they are played, on arrays that grow with its horizon."""

    def __init__(self, n_states: int, n_actions: int, names: Names, start: int) -> None:
        self._sizes, self._names, self._start = (n_states, n_actions), names, start
        self._pairs: Ints = np.zeros(0, dtype=np.int64)
        self._successors: Ints = np.zeros(0, dtype=np.int64)
        self._costs: Floats = np.zeros((0, len(names.costs)))
        self._length: Ints = np.zeros(1, dtype=np.int64)
        self.recorder = self._bound()

    def make_room(self, horizon: int) -> None:
        """Make room for the rounds up to a horizon of the run."""
        rounds = horizon - self._start
        more = rounds - self._pairs.size
        if more <= 0:
            return
        need(8.0 * rounds * (2 + self._costs.shape[1]), f"a trajectory of {rounds:,} rounds", ConfigError)
        self._pairs, self._successors = (
            np.concatenate([part, np.zeros(more, dtype=np.int64)]) for part in (self._pairs, self._successors)
        )
        self._costs = np.concatenate([self._costs, np.zeros((more, self._costs.shape[1]))])
        self.recorder = self._bound()

    def _bound(self) -> Recorder:
        """Return the compiled recorder, bound to the present arrays."""
        return Recorder(self._pairs, self._successors, self._costs, self._length, *self._sizes)

    def note(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Record one round."""
        self.recorder.learn(state, action, next_state, np.ascontiguousarray(costs))

    def so_far(self, state: int) -> RunTrajectory:
        """Return the rounds so far; ``state``: the present state of the run."""
        n = int(self._length[0])
        before, actions = np.divmod(self._pairs[:n], self._sizes[1])
        states = np.append(before, state)
        return RunTrajectory(states, actions, read_only(self._costs[:n]), self._names, self._start)
