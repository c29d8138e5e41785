"""Rounds that revealed more of a system's noise than their transition does: how often each set of outcomes was seen."""

from collections.abc import Iterable, Iterator
from typing import Any

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import Kind, integers, listed, need_that, read_fields, reals

MOST_FOLLOWED = 5_000  # rounds whose order is kept
KEY_LENGTHS = {"noise": 2, "costs": 1, "named": 2, "ends": 2, "ticks": 1}  # at least, by kind of round
Key = tuple[int, ...]  # the number (s * A + a) * S + s' of a transition, then the cells of the outcomes that agree


class SeenNoise:
    """Numbers of rounds, by transition and cells, of several kinds.

    ``times``: some noises were reported, and ``named``: some costs were; bits between transition and cells say which.
    ``paid``: all costs were, in a pair where they may reveal something. ``ends``: of sojourns that were measured.
    ``sojourns``: their total time and number, by pair, where changes of state were seen (0) or all events (1).
    ``ticks``: transitions that only stand for their time in the count of rounds. ``followed``: transition and cells of
    the last rounds of live use, in their order; the number -1 stands for rounds in which no transition was seen.
    """

    def __init__(self) -> None:
        self.times: dict[Key, int] = {}
        self.paid: dict[Key, int] = {}
        self.named: dict[Key, int] = {}
        self.ends: dict[Key, int] = {}
        self.ticks: dict[Key, int] = {}
        self.sojourns: dict[Key, tuple[float, int]] = {}
        self.followed: list[Key] = []

    @property
    def kinds(self) -> dict[str, dict[Key, int]]:
        """How often each round was seen, by kind."""
        return dict(zip(KEY_LENGTHS, (self.times, self.paid, self.named, self.ends, self.ticks), strict=True))

    def __bool__(self) -> bool:
        return any(self.kinds.values()) or bool(self.sojourns or self.followed)

    def items(self) -> Iterator[tuple[Key, int]]:
        """Return transition and cells of all kinds of rounds, with how often each was seen."""
        yield from self.paid.items()
        for seen in (self.times, self.named):
            for (number, _, *cells), times in seen.items():
                yield (number, *cells), times

    def note(self, number: int, reported: int, cells: Key) -> None:
        """Add a round in which some noises were reported: bit k of ``reported`` is that of the k-th noise."""
        _add(self.times, [((number, reported, *cells), 1)])

    def note_paid(self, number: int, cells: Key, times: int = 1) -> None:
        """Add rounds whose costs were seen."""
        _add(self.paid, [((number, *cells), times)])

    def note_named(self, number: int, named: int, cells: Key) -> None:
        """Add a round some of whose costs were seen: bit k of ``named`` is that of the k-th name of a cost."""
        _add(self.named, [((number, named, *cells), 1)])

    def note_sojourn(self, pair: int, time: float, sees_all: bool, cells: Key) -> None:
        """Add a sojourn, and the outcomes one of which ended it, if any did."""
        self._add_time((pair, int(sees_all)), time, 1)
        if cells:
            _add(self.ends, [((pair, *cells), 1)])

    def _add_time(self, key: Key, time: float, number: int) -> None:
        before, times = self.sojourns.get(key, (0.0, 0))
        self.sojourns[key] = before + time, times + number

    def note_ticks(self, number: int, times: int) -> None:
        """Add transitions that only stand for the time of a sojourn."""
        _add(self.ticks, [((number,), times)])

    def follow(self, number: int, cells: Key, times: int = 1) -> None:
        """Note rounds that follow those before; without cells, only the transition was seen."""
        self.followed.extend([(number, *cells)] * min(times, MOST_FOLLOWED))
        del self.followed[:-MOST_FOLLOWED]

    def add(self, other: "SeenNoise") -> None:
        """Add all rounds of another, which follow."""
        self.followed.extend(other.followed)
        del self.followed[:-MOST_FOLLOWED]
        for key, (time, number) in other.sojourns.items():
            self._add_time(key, time, number)
        for kind, seen in self.kinds.items():
            _add(seen, other.kinds[kind].items())

    def clear(self) -> None:
        """Forget everything."""
        self.followed.clear()
        self.sojourns.clear()
        for seen in self.kinds.values():
            seen.clear()

    def copy(self) -> "SeenNoise":
        """Return a copy."""
        other = SeenNoise()
        other.add(self)
        return other

    def state(self) -> dict[str, Any]:
        """Return what to save: for every kind of round how often it was seen, its number, and the cells."""
        rounds = {kind: [[times, *key] for key, times in seen.items()] for kind, seen in self.kinds.items() if seen}
        followed = {"followed": [list(key) for key in self.followed]} if self.followed else {}
        return rounds | followed | {"sojourns": [[*both, *key] for key, both in self.sojourns.items()]}

    def restore(self, state: Any) -> None:
        """Put back what ``state`` returned."""
        described: dict[str, Kind] = {kind: listed(_times_and_key(least)) for kind, least in KEY_LENGTHS.items()}
        described |= {"followed": listed(integers((None,), -1)), "sojourns": listed(_sojourn)}
        self.clear()
        saved = read_fields(state, described, may_be_missing=described)
        for kind, seen in self.kinds.items():
            for times, key in saved.get(kind, ()):
                seen[key] = times
            need_that(len(seen) == len(saved.get(kind, ())), f"{kind} must not repeat a round")
        self.sojourns.update(saved.get("sojourns", ()))
        self.followed.extend(tuple(key.tolist()) for key in saved.get("followed", ())[-MOST_FOLLOWED:])
        need_that(all(self.followed), "followed must hold a number for every round")


def _times_and_key(least: int) -> Kind:
    """Return the kind of a round: how often it was seen, and then its key."""

    def read(value: Any) -> tuple[int, Key]:
        times, *key = integers((None,))(value).tolist() or [0]
        need_that(times >= 1 and len(key) >= least, f"must be a number from 1 on, and {least} others at least")
        return times, tuple(key)

    return read


def _sojourn(value: Any) -> tuple[Key, tuple[float, int]]:
    """Read time and number of sojourns, their pair, and 1 if all events were seen."""
    numbers: Floats = reals((4,), 0.0)(value)
    need_that(numbers[0] > 0.0, "must have a time above 0")
    times, pair, sees_all = integers((3,))(numbers[1:]).tolist()
    need_that(times >= 1 and sees_all <= 1, "must have a number from 1 on, and 0 or 1 at the end")
    return (pair, sees_all), (float(numbers[0]), times)


def _add(to: dict[Key, int], rounds: Iterable[tuple[Key, int]]) -> None:
    for key, times in rounds:
        to[key] = to.get(key, 0) + times
