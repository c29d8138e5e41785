"""Where a run is interrupted: by times that are missing, or by rows whose place in the order is not known."""

from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.data.tables.rows import Indices

SAME_STEP = 0.01  # steps that differ by this share from the usual one are the same
MOSTLY = 0.9  # share of equal steps from which on times are regular, so that longer ones are gaps
HALF = 0.5  # the same share, if the others are multiples of that step, from which on rows may be missing
GAP = 1.5  # of the usual step
DAY = 86400.0  # seconds


class Broken(NamedTuple):
    """Rows after which rows of the same run are missing: their states, and how many rounds are before each."""

    states: Ints
    places: Ints


NOT_BROKEN = Broken(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


class LostRows(NamedTuple):
    """Rows whose place in the order is not known, since their time or their run is missing."""

    before: Ints | None  # (rows of the table + 1,) how many rows of unknown runs are above each; None if there are none
    keys: Ints  # of rows of known runs, increasing

    @classmethod
    def of(cls, run: Indices, kept: Bools) -> "LostRows":
        """Return the rows that are not kept. ``run``: negative where it is missing."""
        rows = np.flatnonzero(~kept)
        known = rows[run[rows] >= 0]
        before = np.cumsum(np.append(0, ~kept & (run < 0))) if known.size < rows.size else None
        return cls(before, np.sort(run[known].astype(np.int64) * run.size + known))

    def between(self, rows: Indices, run: Indices) -> Bools:
        """Return which rows have such a row between themselves and the one before, by their places in the table."""
        found = np.zeros(rows.size, dtype=bool)
        if rows.size < 2:
            return found
        if self.before is not None:
            found[1:] |= np.diff(self.before[rows]) != 0
        if self.keys.size:
            own = run[rows].astype(np.int64) * run.size
            above = np.searchsorted(self.keys, own[1:] + rows[:-1])
            found[1:] |= np.searchsorted(self.keys, own[1:] + rows[1:]) != above
        return found


class Gaps(NamedTuple):
    """The usual step, None if times are irregular; which rows follow a longer one; whether these are clearly gaps."""

    step: float | None
    found: Bools
    is_clear: bool = True


def find_gaps(seconds: Floats, local: Floats | None, linked: Bools, step: float | None) -> Gaps:
    """Return where rows are missing by their times, which are regular in seconds or in months.

    ``local``: the same times by the clock on the wall, unless they are numbers. ``step``: the usual step, if given.
    """
    if step is not None:
        return Gaps(step, linked & (np.diff(seconds, prepend=seconds[:1]) > GAP * step))
    tried = [_in_steps(seconds, linked)]
    if tried[0].step is None or not tried[0].is_clear:
        tried += [_in_steps(_months(local), linked)] if local is not None else []
    regular = [one for one in tried if one.step is not None]
    return next((one for one in regular if one.is_clear), regular[0] if regular else tried[0])


def _months(local: Floats) -> Floats:
    """Return times in months, of which calendars make steps of different lengths."""
    days = np.floor(local / DAY).astype(np.int64).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    within = local / DAY - months.astype("datetime64[D]").astype(np.int64)
    longest = (months + 1).astype("datetime64[D]").astype(np.int64) - months.astype("datetime64[D]").astype(np.int64)
    return np.asarray(months.astype(np.int64) + within / longest)


def _in_steps(seconds: Floats, linked: Bools) -> Gaps:
    """Return gaps by the usual step: clear if nearly all steps are equal, unclear if others are multiples of it."""
    none = np.zeros(seconds.size, dtype=bool)
    steps = np.diff(seconds, prepend=seconds[:1])
    away = steps[linked]
    if away.size == 0:
        return Gaps(None, none)
    usual = float(np.median(away, overwrite_input=True))
    away -= usual
    equal = float((np.abs(away, out=away) <= SAME_STEP * usual).mean())
    if equal >= MOSTLY:
        return Gaps(usual, linked & (steps > GAP * usual))
    own = steps[linked]
    if equal < HALF or float((np.abs(own - usual * np.round(own / usual)) <= SAME_STEP * own).mean()) < MOSTLY:
        return Gaps(None, none)
    return Gaps(usual, linked & (steps > GAP * usual), False)
