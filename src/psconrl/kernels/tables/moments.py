"""Dates and times of day in the cells of a table: slices of a buffer of bytes, in ISO 8601."""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstFlags, ConstInts, Flags, Vector

_BLANK = cython.declare(cython.uchar, 32)
# In place of a number, or a day, that there is not.
_NONE = cython.declare(cython.Py_ssize_t, -1000000)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _digits(buffer: ConstFlags, start: cython.Py_ssize_t, number: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the number that some digits stand for; ``_NONE`` if they are not all digits."""
    value: cython.Py_ssize_t = 0
    for i in range(start, start + number):
        if not 48 <= buffer[i] <= 57:
            return _NONE
        value = value * 10 + (buffer[i] - 48)
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _days(year: cython.Py_ssize_t, month: cython.Py_ssize_t, day: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the days since 1970 of a date (the civil calendar, years from 1 on), ``_NONE`` if there is no such day."""
    leap: cython.bint = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    most: cython.Py_ssize_t = 31
    if month == 2:
        most = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        most = 30
    if year < 1 or month < 1 or month > 12 or day < 1 or day > most:
        return _NONE
    y: cython.Py_ssize_t = year - 1 if month <= 2 else year  # years that begin in March
    m: cython.Py_ssize_t = month + 9 if month <= 2 else month - 3
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 719469


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _moment(buffer: ConstFlags, start: cython.Py_ssize_t, end: cython.Py_ssize_t, found: Vector) -> cython.int:
    """Write the seconds since 1970 by UTC and by the clock; return 0 if it is no such time, 2 with a zone, 1 without.

    The text is 2024-03-31, 2024-03-31 02:30, 2024-03-31T02:30:15.25, and these with Z, +01, +0100 or +01:00.
    """
    if end - start < 10 or buffer[start + 4] != 45 or buffer[start + 7] != 45:
        return 0
    days: cython.Py_ssize_t = _days(
        _digits(buffer, start, 4), _digits(buffer, start + 5, 2), _digits(buffer, start + 8, 2)
    )
    if days == _NONE:
        return 0
    local: cython.double = 86400.0 * days
    at: cython.Py_ssize_t = start + 10
    found[0] = local
    found[1] = local
    if at == end:
        return 1
    if end - at < 6 or (buffer[at] != 84 and buffer[at] != _BLANK) or buffer[at + 3] != 58:
        return 0
    hour: cython.Py_ssize_t = _digits(buffer, at + 1, 2)
    minute: cython.Py_ssize_t = _digits(buffer, at + 4, 2)
    second: cython.Py_ssize_t = 0
    fraction: cython.double = 0.0
    at += 6
    if at < end and buffer[at] == 58:
        if end - at < 3:
            return 0
        second = _digits(buffer, at + 1, 2)
        at += 3
        if at < end and buffer[at] == 46:
            first: cython.Py_ssize_t = at + 1
            scale: cython.double = 1.0
            at += 1
            while at < end and at - first < 9 and 48 <= buffer[at] <= 57:
                scale *= 10.0
                at += 1
            if at == first:
                return 0
            fraction = _digits(buffer, first, at - first) / scale
    if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        return 0
    local += 3600.0 * hour + 60.0 * minute + second + fraction
    found[0] = local
    found[1] = local
    if at == end:
        return 1
    sign: cython.uchar = buffer[at]
    at += 1
    if sign == 90:
        return 2 if at == end else 0
    if (sign != 43 and sign != 45) or end - at < 2:
        return 0
    hour = _digits(buffer, at, 2)
    minute = 0
    at += 2
    if at < end:
        at += buffer[at] == 58
        if end - at != 2:
            return 0
        minute = _digits(buffer, at, 2)
    if not (0 <= hour <= 23 and 0 <= minute <= 59):
        return 0
    apart: cython.double = 3600.0 * hour + 60.0 * minute
    found[0] = local - apart if sign == 43 else local + apart
    return 2


def read(
    buffer: ConstFlags,
    starts: ConstInts,
    lengths: cython.const[cython.int][::1],
    utc: Vector,
    local: Vector,
):
    """Write the seconds since 1970, by UTC and by the clock, of dates and times of day in ISO 8601; nan for others.

    Return how each was written (n,): 1 without a time zone, 2 with one, 0 if it is empty or something else.
    """
    n: cython.Py_ssize_t = starts.shape[0]
    if lengths.shape[0] != n or utc.shape[0] != n or local.shape[0] != n:
        raise ValueError("every cell needs a start, a length and room for its time")
    for i in range(n):
        if lengths[i] >= 0 and not 0 <= starts[i] <= buffer.shape[0] - lengths[i]:
            raise ValueError("a cell is outside of the buffer")
    kinds = np.zeros(n, np.uint8)
    k: Flags = kinds
    found: Vector = np.zeros(2)
    nan: cython.double = float("nan")
    with cython.nogil:
        for i in range(n):
            utc[i] = nan
            local[i] = nan
            if lengths[i] > 0:
                k[i] = cython.cast(cython.uchar, _moment(buffer, starts[i], starts[i] + lengths[i], found))
                if k[i] > 0:
                    utc[i] = found[0]
                    local[i] = found[1]
    return kinds
