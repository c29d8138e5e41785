"""The order of rows: run by run and by time; where a run is interrupted; and faults of times."""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Bools, Floats, Places
from psconrl.data.rounds.faults import Faults
from psconrl.data.tables.rows import Indices
from psconrl.data.tables.timestamps import Timestamps

SAME_STEP = 0.01  # steps that differ by this share from the usual one are the same
MOSTLY = 0.9  # share of equal steps from which on times are regular, so that longer ones are gaps
GAP = 1.5  # of the usual step
MOSTLY_UNSORTED = 0.02  # share of backward steps from which on rows are unsorted, and not runs one after the other
MOSTLY_TWICE = 0.2  # share of times that occur twice, from which on several runs seem to be mixed


@dataclass(frozen=True, eq=False)
class RowOrder:
    """Rows by run and time. ``linked``: whether a row directly follows the one before it in the same run."""

    rows: Indices  # places in the table
    run: Places  # (rows,) numbers of the runs, which increase
    linked: Bools  # (rows,)
    gaps: int  # how often a run of regular times was interrupted
    step: float | None  # the usual time between rows, if it is regular


def order_rows(
    run: Indices, times: Timestamps | None, kept: Bools, lines: Indices, after: Bools, faults: Faults
) -> RowOrder:
    """Return the order of the rows that are kept.

    ``run``: the number of the run of every row. ``after``: rows before which the header is repeated, so that another
    run begins.
    """
    rows: Indices = np.flatnonzero(kept).astype(np.int32)
    if (np.diff(run[rows]) < 0).any():
        rows = rows[np.argsort(run[rows], kind="stable")]
    begins = np.append(True, run[rows][1:] != run[rows][:-1])[: rows.size] | after[rows]
    if times is None:
        return RowOrder(rows, _numbers(begins), ~begins, 0, None)
    seconds = times.seconds[rows]
    begins, rows = _sorted(rows, begins, seconds, lines, faults)
    seconds = times.seconds[rows]
    same = ~begins & np.append(False, np.diff(seconds) == 0.0)[: rows.size]
    hint = ""
    if same.sum() > MOSTLY_TWICE * rows.size:
        hint = "; if they are of several plants, name the column that tells them apart, run=..."
    faults.add("duplicate", lines[rows], same, f"the time is that of another row of the same run{hint}")
    number = _numbers(begins)
    rows, number, seconds = rows[~same], number[~same], seconds[~same]
    linked = np.append(False, number[1:] == number[:-1])[: rows.size]
    step, gaps = _gaps(seconds, linked)
    return RowOrder(rows, number, linked & ~gaps, int(gaps.sum()), step)


def _sorted(rows: Indices, begins: Bools, seconds: Floats, lines: Indices, faults: Faults) -> tuple[Bools, Indices]:
    """Return which rows begin a run, and rows by time; note backward steps."""
    back = ~begins & np.append(False, np.diff(seconds) < 0.0)[: rows.size]
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
    faults.add("unsorted", lines[rows], back & ~restart, "the time is before that of the row above; sort the table")
    begins = begins | restart
    number = _numbers(begins)
    order = np.lexsort((np.arange(rows.size), seconds, number))
    return np.append(True, number[1:] != number[:-1])[: rows.size], rows[order]


def _gaps(seconds: Floats, linked: Bools) -> tuple[float | None, Bools]:
    """Return the usual step if times are regular, and which rows follow a longer one."""
    none = np.zeros(seconds.size, dtype=bool)
    steps = np.diff(seconds, prepend=seconds[:1])
    own = steps[linked]
    if own.size == 0:
        return None, none
    usual = float(np.median(own))
    regular = float((np.abs(own - usual) <= SAME_STEP * usual).mean()) >= MOSTLY
    return (usual, linked & (steps > GAP * usual)) if regular else (None, none)


def _numbers(begins: Bools) -> Places:
    """Return the number of the run of every row, given which rows begin one."""
    return (np.cumsum(begins, dtype=np.int32) - 1).astype(np.int32)
