"""The order of rows: run by run and by time; where a run is interrupted; and faults of times."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Places
from psconrl.data.rounds.faults import Faults
from psconrl.data.rounds.gaps import LostRows, find_gaps
from psconrl.data.tables.rows import Indices
from psconrl.data.tables.timestamps import NAIVE, Timestamps

MOSTLY_UNSORTED = 0.02  # share of backward steps from which on rows are unsorted, and not runs one after the other
DAY, HOUR = 86400.0, 3600.0  # in seconds
CLOCK_BACK = "; if the clocks were put back an hour there, write times with a zone, such as 2024-10-27T02:30:00+01:00"
MOSTLY_TWICE = 0.2  # share of times that occur twice, from which on several runs seem to be mixed


@dataclass(frozen=True, eq=False)
class RowOrder:
    """Rows by run and time. ``linked``: whether a row directly follows the one before it in the same run."""

    rows: Indices  # places in the table
    run: Places  # (rows,) numbers of the runs, which increase
    linked: Bools  # (rows,)
    gaps: Bools  # (rows,) before which rows of the same run are missing, by their times or because they are unusable
    step: float | None  # the usual time between rows, if it is regular


def order_rows(
    run: Indices,
    times: Timestamps | None,
    step: float | None,
    kept: Bools,
    lines: Indices,
    after: Bools,
    faults: Faults,
) -> RowOrder:
    """Return the order of the rows that are kept.

    ``run``: the number of the run of every row. ``step``: the usual time between rows, if it is given. ``after``: rows
    before which the header is repeated, so that another run begins.
    """
    rows: Indices = np.flatnonzero(kept).astype(np.int32)
    own = _of(run, rows)
    if (own[1:] < own[:-1]).any():
        rows = rows[np.argsort(own, kind="stable")]
        own = run[rows]
    begins = np.append(True, own[1:] != own[:-1])[: rows.size] | _of(after, rows)
    lost = LostRows.of(run, kept)
    if times is None:
        holes = ~begins & lost.between(rows, run)
        return RowOrder(rows, _numbers(begins), ~begins & ~holes, holes, None)
    is_naive = NAIVE in times.kinds
    begins, rows = _sorted(rows, begins, _of(times.seconds, rows), lines, faults, is_naive)
    seconds = _of(times.seconds, rows)
    same = ~begins & np.append(False, seconds[1:] == seconds[:-1])[: rows.size]
    hint = CLOCK_BACK if is_naive and same.any() and (seconds[same] % DAY).any() else ""
    if same.sum() > MOSTLY_TWICE * rows.size:
        hint = "; if they are of several plants, name the column that tells them apart, run=..."
    faults.add("duplicate", lines[rows], same, f"the time is that of another row of the same run{hint}")
    number = _numbers(begins)
    if same.any():
        rows, number, seconds = rows[~same], number[~same], seconds[~same]
    linked = np.append(False, number[1:] == number[:-1])[: rows.size]
    found = find_gaps(seconds, _of(times.local, rows) if times.on_calendar else None, linked, step)
    if not found.is_clear:
        text = (
            f"the time from the row before is a multiple of the usual one, {found.step:g}, as if rows were missing; "
            "write step=... with the usual time from row to row, or step=inf if no row is missing"
        )
        faults.add("gap", lines[rows], found.found, text)
    gaps = found.found
    if found.step is None:  # otherwise the time between two rows says whether one is missing
        gaps = gaps | (linked & lost.between(rows, run))
    return RowOrder(rows, number, linked & ~gaps, gaps, found.step)


def _sorted(
    rows: Indices, begins: Bools, seconds: Floats, lines: Indices, faults: Faults, is_naive: bool
) -> tuple[Bools, Indices]:
    """Return which rows begin a run, and rows by time; note backward steps."""
    back = ~begins & np.append(False, seconds[1:] < seconds[:-1])[: rows.size]
    if not back.any():
        return begins, rows
    restart = np.zeros(rows.size, dtype=bool)
    if back.sum() <= max(MOSTLY_UNSORTED * rows.size, 1):
        start = np.inf  # of the run that a row belongs to
        for row in np.flatnonzero(begins | back).tolist():
            restart[row] = back[row] and seconds[row] <= start
            if begins[row] or restart[row]:
                start = seconds[row]
    faults.add(
        "glued",
        lines[rows],
        restart,
        "time begins again, as if several runs were put one after the other; name the column that tells them apart, "
        "run=...",
    )
    unsorted = back & ~restart
    near = is_naive and unsorted.any() and (np.diff(seconds, prepend=0.0)[unsorted] >= -HOUR).all()
    text = "the time is before that of the row above; sort the table"
    faults.add("unsorted", lines[rows], unsorted, text + (CLOCK_BACK if near else ""))
    begins = begins | restart
    number = _numbers(begins)
    order = np.lexsort((np.arange(rows.size), seconds, number))
    return np.append(True, number[1:] != number[:-1])[: rows.size], rows[order]


def _of(values: NDArray[Any], rows: Indices) -> NDArray[Any]:
    """Return the values of some rows; those of all rows in the order of the table are not copied."""
    return values if rows.size == values.size and (rows[1:] > rows[:-1]).all() else values[rows]


def _numbers(begins: Bools) -> Places:
    """Return the number of the run of every row, given which rows begin one."""
    return (np.cumsum(begins, dtype=np.int32) - 1).astype(np.int32)
