"""Faults of a table: what is wrong, how often, and in which lines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One kind of fault: its rows, of which the first are given by line, and a message for the user."""

    kind: str
    count: int
    lines: tuple[int, ...]  # of the first rows; line 2 is the first row, after the header
    message: str

    def __str__(self) -> str:
        return self.message
