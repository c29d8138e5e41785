"""Faults of a table: what is wrong, how often, and in which lines.

A fault has one of these kinds.

==============  ====================================================================================================
missing         a cell that is needed is empty, or a row has fewer cells than the header
wrong           a cost that is no finite number, a time that is none, a row with more cells than the header
unknown         a state or an action that the system, the model or the caller does not have
duplicate       a time that occurs twice in a run
unsorted        a time before that of the row above
glued           several runs one after the other, without a column that tells them apart
gap             a time that is several usual steps after the row before, where many are, so that rows may be missing
impossible      a transition that the system or the model calls impossible
action          a transition that is impossible under the action recorded, and possible under another one
cost            a cost that is not what its formula says
censored        sales recorded as demand: what was sold when the stock ran out, and not what was asked for
==============  ====================================================================================================
"""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Bools
from psconrl.data.tables.rows import Indices

LINES_KEPT = 10  # that are kept for every fault
LINES_SHOWN = 3


@dataclass(frozen=True)
class Fault:
    """One kind of fault: its rows, of which the first are given by line, and a message for the user."""

    kind: str
    count: int
    lines: tuple[int, ...]  # of the first rows; line 2 is the first row, after the header
    message: str

    @classmethod
    def of(cls, kind: str, lines: Indices, what: str) -> "Fault":
        """Return the fault of some lines.

        >>> print(Fault.of("missing", np.array([7, 3]), "the state is missing; fill it in"))
        2 rows (lines 3, 7): the state is missing; fill it in
        """
        first = np.sort(lines)[:LINES_KEPT].tolist()
        return cls(kind, int(lines.size), tuple(first), f"{_where(first, int(lines.size))}: {what}")

    def __str__(self) -> str:
        return self.message


class Faults:
    """Collects the faults of a table."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, kind: str, lines: Indices, marked: Bools, what: str) -> None:
        """Add a fault of the rows that are marked, if any is."""
        if marked.any():
            self.found.append(Fault.of(kind, lines[marked], what))


def _where(first: list[int], count: int) -> str:
    shown = ", ".join(f"{line:,}" for line in first[:LINES_SHOWN]) + (", …" if count > LINES_SHOWN else "")
    return f"{count:,} row{'' if count == 1 else 's'} (line{'' if count == 1 else 's'} {shown})"
