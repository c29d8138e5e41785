"""Transitions whose noise was seen, wholly or in part: how often each was observed with each set of outcomes."""

from typing import Any


class SeenNoise:
    """Numbers of transitions, by (s * A + a) * S + s' and cells of the joint outcomes that agree."""

    def __init__(self) -> None:
        self.times: dict[tuple[int, ...], int] = {}  # the number of the transition, then the cells

    def __bool__(self) -> bool:
        return bool(self.times)

    def note(self, number: int, cells: tuple[int, ...]) -> None:
        """Add one transition."""
        key = (number, *cells)
        self.times[key] = self.times.get(key, 0) + 1

    def add(self, other: "SeenNoise") -> None:
        """Add all transitions of another."""
        for key, times in other.times.items():
            self.times[key] = self.times.get(key, 0) + times

    def clear(self) -> None:
        """Forget everything."""
        self.times.clear()

    def copy(self) -> "SeenNoise":
        """Return a copy."""
        other = SeenNoise()
        other.times = dict(self.times)
        return other

    def state(self) -> list[list[int]]:
        """Return what to save: for every kind of transition how often it was seen, its number, and the cells."""
        return [[times, *key] for key, times in self.times.items()]

    def restore(self, state: Any) -> None:
        """Put back what ``state`` returned."""
        self.times = {tuple(int(x) for x in row[1:]): int(row[0]) for row in state}
        if any(times < 1 or not key or min(key) < 0 for key, times in self.times.items()):
            raise ValueError("inconsistent noise")
