"""Cells of a table in CSV: where they are, which label they hold, and which number.

A cell is a slice of a buffer of bytes. Quoted cells may hold separators, line ends and doubled quotes; blanks around
cells that are not quoted are left out.
"""

import cython
import numpy as np
from cython.cimports.psconrl.kernels._types import ConstFlags, ConstInts, ConstVector, Flags, IntMatrix, Ints, Vector

_QUOTE = cython.declare(cython.uchar, 34)
_BLANK = cython.declare(cython.uchar, 32)
_LINE_FEED = cython.declare(cython.uchar, 10)
_RETURN = cython.declare(cython.uchar, 13)
# A mantissa up to 2^53 times or divided by a power of ten up to 10^22: both are exact, so the result is rounded once.
_LARGEST_MANTISSA = cython.declare(cython.ulonglong, 1 << 53)
_LARGEST_POWER = cython.declare(cython.Py_ssize_t, 22)
# Of the hash function FNV-1a.
_OFFSET = cython.declare(cython.ulonglong, 2166136261)
_PRIME = cython.declare(cython.ulonglong, 16777619)
_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_MOST_DIGITS = cython.declare(cython.Py_ssize_t, 18)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _end_of_quoted(
    buffer: ConstFlags,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    lines: Ints,
) -> cython.Py_ssize_t:
    """Return where the quote is that closes a cell, -1 if there is none; ``lines`` (1,): the line ends in the cell."""
    at: cython.Py_ssize_t = begin
    lines[0] = 0
    while at < end:
        if buffer[at] == _QUOTE:
            if at + 1 >= end or buffer[at + 1] != _QUOTE:
                return at
            at += 1
        lines[0] += buffer[at] == _LINE_FEED
        at += 1
    return -1


def split(
    buffer: ConstFlags,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    separator: cython.int,
    place: cython.const[cython.int][::1],
    starts: IntMatrix,
    lengths: cython.int[:, ::1],
    lines: Ints,
    widths: cython.int[::1],
    line: cython.Py_ssize_t,
    is_last: cython.bint,
):
    """Split the rows in ``buffer[begin:end]``; return their number, where the rest begins, and the next line.

    ``place``: for every column of the table its row in ``starts`` and ``lengths`` (columns, rows), or -1. A cell that
    is not there has the length -1. ``lines``: the line of every row; ``widths``: its number of cells. ``is_last``:
    whether the table ends with this buffer, so that the last row needs no line end; the number of rows is then -1 if a
    quote is not closed. Blank lines are left out.
    """
    columns: cython.Py_ssize_t = place.shape[0]
    wanted: cython.Py_ssize_t = starts.shape[0]
    most: cython.Py_ssize_t = starts.shape[1]
    if not 0 <= begin <= end <= buffer.shape[0]:
        raise ValueError("the rows must be in the buffer")
    if lengths.shape[0] != wanted or lengths.shape[1] != most or lines.shape[0] != most or widths.shape[0] != most:
        raise ValueError("starts and lengths (columns, rows), lines and widths (rows,) are needed")
    for j in range(columns):
        if place[j] >= wanted:
            raise ValueError("there is no room for a column")
    inside: Ints = np.zeros(1, np.int64)
    row: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = begin
    rest: cython.Py_ssize_t = begin
    after: cython.Py_ssize_t = line
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t = 0
    column: cython.Py_ssize_t = 0
    filled: cython.bint = False
    whole: cython.bint = True
    with cython.nogil:
        while row < most and rest < end and whole:
            lines[row] = line
            for k in range(wanted):
                starts[k, row] = rest
                lengths[k, row] = -1
            column = 0
            filled = False
            while True:
                while at < end and buffer[at] == _BLANK:
                    at += 1
                if at < end and buffer[at] == _QUOTE:
                    filled = True
                    first = at + 1
                    last = _end_of_quoted(buffer, first, end, inside)
                    if last < 0:
                        at = end
                        whole = False
                        if is_last:
                            row = -1
                        break
                    after += inside[0]
                    at = last + 1
                    while at < end and buffer[at] != separator and buffer[at] != _LINE_FEED:
                        at += 1  # what follows a closing quote does not belong to the cell
                else:
                    first = at
                    while at < end and buffer[at] != separator and buffer[at] != _LINE_FEED:
                        at += 1
                    last = at
                    while last > first and (buffer[last - 1] == _BLANK or buffer[last - 1] == _RETURN):
                        last -= 1
                    filled |= last > first
                if column < columns and place[column] >= 0:
                    starts[place[column], row] = first
                    lengths[place[column], row] = cython.cast(cython.int, last - first)
                column += 1
                if at == end:
                    whole = is_last
                    break
                at += 1
                if buffer[at - 1] == _LINE_FEED:
                    after += 1
                    break
                filled = True
            if whole:
                widths[row] = cython.cast(cython.int, column)
                row += filled
                rest = at
                line = after
    return row, rest, line


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hash(buffer: ConstFlags, start: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.ulonglong:
    """Return the FNV-1a hash of some bytes, of 32 bits, mixed once more so that its last bits depend on all of them."""
    value: cython.ulonglong = _OFFSET
    for i in range(start, start + length):
        value = ((value ^ buffer[i]) * _PRIME) & _BITS
    return value ^ (value >> 15)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _found(
    buffer: ConstFlags,
    start: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    slots: cython.const[cython.int][::1],
    labels: ConstFlags,
    ends: ConstInts,
) -> cython.Py_ssize_t:
    """Return the slot of a label: the one that holds its code, or the free one that would."""
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    slot: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, _hash(buffer, start, length)) & mask
    while slots[slot] >= 0:
        code: cython.Py_ssize_t = slots[slot]
        begin: cython.Py_ssize_t = ends[code - 1] if code > 0 else 0
        if ends[code] - begin == length:
            i: cython.Py_ssize_t = 0
            while i < length and labels[begin + i] == buffer[start + i]:
                i += 1
            if i == length:
                return slot
        slot = (slot + 1) & mask
    return slot


def _check_labels(labels: ConstFlags, ends: ConstInts):
    """Raise a ValueError unless ``ends`` are those of labels, one after the other."""
    before: cython.Py_ssize_t = 0
    for i in range(ends.shape[0]):
        if not before <= ends[i] <= labels.shape[0]:
            raise ValueError("labels must lie one after the other")
        before = ends[i]


def label_slots(labels: ConstFlags, ends: ConstInts):
    """Return the table (a power of 2, at most half full) by which ``codes`` finds labels, which lie end to end."""
    _check_labels(labels, ends)
    n: cython.Py_ssize_t = ends.shape[0]
    size: cython.Py_ssize_t = 64
    while size < 2 * n + 2:
        size *= 2
    slots = np.full(size, -1, np.int32)
    s: cython.int[::1] = slots
    for code in range(n):
        begin: cython.Py_ssize_t = ends[code - 1] if code > 0 else 0
        slot = _found(labels, begin, ends[code] - begin, s, labels, ends)
        s[slot] = cython.cast(cython.int, code)
    return slots


def codes(
    buffer: ConstFlags,
    starts: ConstInts,
    lengths: cython.const[cython.int][::1],
    slots: cython.const[cython.int][::1],
    labels: ConstFlags,
    ends: ConstInts,
    into: cython.int[::1],
    begin: cython.Py_ssize_t,
):
    """Write the codes of labels to ``into``, from row ``begin`` on; return the first row with another label.

    ``slots``: as of ``label_slots``. A cell that is not there has the code -1.
    """
    _check_labels(labels, ends)
    n: cython.Py_ssize_t = starts.shape[0]
    size: cython.Py_ssize_t = slots.shape[0]
    if lengths.shape[0] != n or into.shape[0] != n or begin < 0:
        raise ValueError("every cell needs a start, a length and room for its code")
    if size < 2 or size & (size - 1) or size <= ends.shape[0]:
        raise ValueError("the slots must be a power of 2, and more than the labels")
    for i in range(size):
        if slots[i] >= ends.shape[0]:
            raise ValueError("a slot has the code of no label")
    for i in range(begin, n):
        if lengths[i] >= 0 and not 0 <= starts[i] <= buffer.shape[0] - lengths[i]:
            raise ValueError("a cell is outside of the buffer")
    row: cython.Py_ssize_t = begin
    with cython.nogil:
        while row < n:
            if lengths[row] < 0:
                into[row] = -1
            else:
                into[row] = slots[_found(buffer, starts[row], lengths[row], slots, labels, ends)]
                if into[row] < 0:
                    break
            row += 1
    return row


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number(
    buffer: ConstFlags,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    powers: ConstVector,
    value: Vector,
) -> cython.bint:
    """Write the number in a cell, correctly rounded; return False if that is not a simple matter."""
    at: cython.Py_ssize_t = start
    negative: cython.bint = buffer[at] == 45
    if negative or buffer[at] == 43:
        at += 1
    mantissa: cython.ulonglong = 0
    digits: cython.Py_ssize_t = 0
    power: cython.Py_ssize_t = 0
    while at < end and 48 <= buffer[at] <= 57:
        mantissa = mantissa * 10 + (buffer[at] - 48)
        digits += 1
        at += 1
    if at < end and buffer[at] == 46:
        at += 1
        while at < end and 48 <= buffer[at] <= 57:
            mantissa = mantissa * 10 + (buffer[at] - 48)
            digits += 1
            power -= 1
            at += 1
    if digits == 0 or digits > _MOST_DIGITS or mantissa > _LARGEST_MANTISSA:
        return False
    if at < end and (buffer[at] == 101 or buffer[at] == 69):
        at += 1
        down: cython.bint = at < end and buffer[at] == 45
        if at < end and (down or buffer[at] == 43):
            at += 1
        exponent: cython.Py_ssize_t = 0
        if at == end or end - at > 3:
            return False
        while at < end and 48 <= buffer[at] <= 57:
            exponent = exponent * 10 + (buffer[at] - 48)
            at += 1
        power += -exponent if down else exponent
    if at != end or power > _LARGEST_POWER or power < -_LARGEST_POWER:
        return False
    x: cython.double = cython.cast(cython.double, mantissa)
    x = x * powers[power] if power >= 0 else x / powers[-power]
    value[0] = -x if negative else x
    return True


def numbers(
    buffer: ConstFlags,
    starts: ConstInts,
    lengths: cython.const[cython.int][::1],
    into: Vector,
):
    """Write the numbers in some cells to ``into``, nan for an empty one; return the rows of all that are hard to read.

    These are more than 18 digits, exponents beyond 22, "inf", and what is no number.
    """
    n: cython.Py_ssize_t = starts.shape[0]
    if lengths.shape[0] != n or into.shape[0] != n:
        raise ValueError("every cell needs a start, a length and room for its number")
    for i in range(n):
        if lengths[i] >= 0 and not 0 <= starts[i] <= buffer.shape[0] - lengths[i]:
            raise ValueError("a cell is outside of the buffer")
    powers: Vector = np.array([float(f"1e{k}") for k in range(_LARGEST_POWER + 1)])
    hard = np.zeros(n, np.uint8)
    h: Flags = hard
    value: Vector = np.zeros(1)
    nan: cython.double = float("nan")
    with cython.nogil:
        for i in range(n):
            if lengths[i] <= 0:
                into[i] = nan
            elif _number(buffer, starts[i], starts[i] + lengths[i], powers, value):
                into[i] = value[0]
            else:
                h[i] = 1
    return np.flatnonzero(hard)
