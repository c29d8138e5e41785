"""Callbacks for ``agent.watch``: a CSV file with a row per episode, or curves in TensorBoard."""

import csv
import importlib
import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.base.escaping import csv_cell, quoted
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.learning.runtime.events import EpisodeEvent, EventNames
from psconrl.learning.runtime.policy_cell import Names, policy_cell

# The costs follow, then the policy, which comes last because it is long.
COLUMNS = ("round", "episode", "kind", "length", "explored", "value", "planning_time", "changed")


DOUBTS = "doubts"  # a column after the policy, of an agent that was given the structure of a system
ESTIMATE = "estimate of "  # before the names of a system's unknown parameters; these columns follow
RATIO = "ratio of limit "  # before the number of a limit and the name of the ratio in it; these columns come last
PERCENT = " [%]"  # appended to the name of a ratio that is stated in percent
RATIO_PARTS = ("", " so far", " limit", " per round")  # columns of a ratio; the last is the average of its denominator
DIGITS = 6  # of an estimate
MOST_STATES = 10  # states of a policy shown in a log
ROUND, EPISODE, KIND, LENGTH, VALUE = map(COLUMNS.index, ("round", "episode", "kind", "length", "value"))
LOGGED_SUM_TOL = 1e-9  # relative error of averages times rounds, against sums of costs over about 1e6 rounds at most
REWARD = " [reward]"  # appended to the name of an objective that is maximised
FLOOR = " [at least]"  # appended to the name of a quantity that has a lower limit


class CSVLog:
    """Callback for ``agent.watch`` that writes one line per episode to a CSV file.

    ``path``: the file. ``cost_names``: names of all costs, the objective first. Every line is written at once, so that
    a killed process loses nothing.

    A file of the same run is continued, and holds every episode once. A run that resumes from an agent saved earlier
    repeats the episodes since then; their lines are dropped when the first of them has ended again. A run that is
    repeated from the beginning finds its episodes in the file, and continues it after the last of them. A file of
    another run is refused and left unchanged.

    For every cost there are the average of the episode, the average so far and the limit. ``policy`` holds the actions
    taken in the ``most_states`` most visited states, as JSON; an agent of a system adds its doubts, and the posterior
    mean of every unknown parameter. A limit on a ratio adds the ratio in the episode, so far and at its limit, and the
    average of what it is divided by. The average of a cost that is unknown in some rounds is nan. ``states`` and
    ``actions`` are their names, lists or ``psconrl.Labels``; without names, numbers are written. With ``maximise`` the
    objective is written as a reward; quantities named in ``at_least``, which have lower limits, are written as they
    are, not negated. An agent made for a system by ``of`` knows all of this. ``psconrl monitor`` shows the file as it
    grows.

    >>> agent.watch(CSVLog("run.csv", cost_names=["steps", "risk"]))  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        cost_names: Sequence[str] | None = None,
        *,
        states: Names = None,
        actions: Names = None,
        most_states: int = MOST_STATES,
        maximise: bool = False,
        at_least: Sequence[str] = (),
    ) -> None:
        self.path = Path(path)
        self._names = cost_names
        self._maximise, self._at_least = maximise, frozenset(at_least)
        self._states, self._actions, self._most_states = states, actions, most_states
        self._begun = False
        self._expected: list[bytes] = []  # lines of an old file that a run repeated from the beginning must match
        self._refused = False

    def __call__(self, event: EpisodeEvent) -> None:
        """Write the line of an episode."""
        self._check(True)
        self._take_names(event.names)
        names = _names(self._names, event)
        facts = [getattr(event, column) for column in COLUMNS]
        facts[KIND] = " ".join(str(facts[KIND]).split())
        signs = np.array([self._maximise, *(name in self._at_least for name in names[1:])]) * -2.0 + 1.0
        facts[VALUE] = float(signs[0] * facts[VALUE])
        names = [name + mark for name, mark in zip(names, np.where(signs < 0, _marks(len(names)), ""), strict=True)]
        numbers = np.concatenate([signs * event.costs, signs * event.averages, signs[1:] * event.thresholds]).tolist()
        policy = self._policy(event)
        doubts = [] if event.doubts is None else ["; ".join(event.doubts)]
        estimates = {name: float(f"{mean:.{DIGITS}g}") for name, mean in (event.estimates or {}).items()}
        try:
            if not self._begun:
                columns = header(names, event.doubts is not None, tuple(estimates), ratio_names(event))
                self._begin(columns, facts, numbers)
                self._begun = True
            if self._expected:
                self._check(_repeats(self._expected.pop(0), facts, numbers))
                return
            with self.path.open("ab") as f:
                f.write(_line([*facts, *numbers, policy, *doubts, *estimates.values(), *_ratio_numbers(event)]))
        except OSError as error:
            self._begun = False  # half a line may have been written: check the file before the next
            raise ConfigError(f"{self.path}: cannot be written ({error.strerror or error})") from None

    def _take_names(self, names: EventNames | None) -> None:
        """Use the names of the agent's system for all that were not given."""
        if names is None:
            return
        if self._names is None:
            self._names, self._maximise, self._at_least = names.costs, names.maximise, frozenset(names.at_least)
        self._states = names.states if self._states is None else self._states
        self._actions = names.actions if self._actions is None else self._actions

    def _policy(self, event: EpisodeEvent) -> str:
        if event.policy is None or event.visits is None:
            return ""
        return policy_cell(event.policy, event.visits, self._states, self._actions, self._most_states)

    def _begin(self, columns: Sequence[str], facts: Sequence[Any], numbers: Sequence[float]) -> None:
        """Keep the complete lines of earlier episodes in an old file, if it has the same columns and the same run.

        If there are no earlier episodes, keep all lines: the run has to repeat them.
        """
        old = self.path.read_bytes() if self.path.exists() else b""
        lines = [line for line in old.splitlines(keepends=True) if line.endswith(b"\n")]
        first = _line(columns)
        if lines and lines[0] != first:
            raise ConfigError(f"{self.path}: holds other columns; delete it or give another name")
        kept = [line for line in lines[1:] if _episode(line) < facts[EPISODE]]
        if kept:
            self._check(_follows(kept[-1], facts, numbers))
        else:
            kept = lines[1:]
            self._check(not kept or _repeats(kept[0], facts, numbers))
            self._expected = list(kept)
        new = b"".join([first, *kept])
        if new != old:
            write_atomically(self.path, lambda f: f.write(new), ConfigError)

    def _check(self, same_run: bool) -> None:
        """Refuse the file of another run, in this call and all later ones."""
        self._refused = self._refused or not same_run
        if self._refused:
            raise ConfigError(
                f"{self.path}: holds the log of another run; give another name, or delete the file. A run is continued "
                "by the agent that was saved in it (load_agent, Simulation.resume)"
            )


def _marks(n: int) -> list[str]:
    return [REWARD, *[FLOOR] * (n - 1)]


def ratio_names(event: EpisodeEvent) -> list[str]:
    """Return the names of the ratios in a log, each after the number of its limit."""
    return [f"{one.row}: {one.name}{PERCENT if one.percent else ''}" for one in event.ratios]


def _ratio_numbers(event: EpisodeEvent) -> list[float]:
    return [x for one in event.ratios for x in (one.episode, one.so_far, one.limit, one.per_round)]


def header(
    names: Sequence[str], doubts: bool = False, estimates: Sequence[str] = (), ratios: Sequence[str] = ()
) -> list[str]:
    """Return the first line of a log, for costs with these names.

    ``doubts``: whether there is a column for doubts about a structure; ``estimates``: names of its unknown parameters;
    ``ratios``: those of ``ratio_names``.
    """
    columns = [*COLUMNS, *names, *(f"{n} so far" for n in names), *(f"{n} limit" for n in names[1:]), "policy"]
    columns += [*([DOUBTS] if doubts else []), *(ESTIMATE + name for name in estimates)]
    return [*columns, *(RATIO + name + part for name in ratios for part in RATIO_PARTS)]


def _follows(line: bytes, facts: Sequence[Any], numbers: Sequence[float]) -> bool:
    """Return True if the episode may belong to the same run, after the episode of the line.

    If nothing was played between the two, the sums of costs up to the line and in the episode add up to those at its
    end. Otherwise there were episodes between them that were not logged.
    """
    cells = cells_of(line.decode(errors="replace"))
    rounds, length = facts[ROUND], facts[LENGTH]
    q = (len(numbers) + 1) // 3  # averages of the episode, averages so far, and thresholds of all but the objective
    try:
        before = int(cells[ROUND])
        so_far = [float(cell) for cell in cells[len(COLUMNS) + q : len(COLUMNS) + 2 * q]]
    except (IndexError, ValueError):
        return False
    if before != rounds - length or len(so_far) != q:
        return before < rounds - length and _episode(line) < facts[EPISODE] - 1
    for mean, now, total in zip(so_far, numbers[:q], numbers[q : 2 * q], strict=True):
        parts = before * mean, length * now, rounds * total
        if abs(parts[0] + parts[1] - parts[2]) > LOGGED_SUM_TOL * sum(map(abs, parts)):
            return False
    return True


def _repeats(line: bytes, facts: Sequence[Any], numbers: Sequence[float]) -> bool:
    """Return True if the line is that of this episode, ignoring planning time, change of policy and what follows."""
    own, cells = (cells_of(one.decode(errors="replace")) for one in (_line([*facts, *numbers]), line))
    timed = {COLUMNS.index("planning_time"), COLUMNS.index("changed")}
    compared = [k for k in range(len(own)) if k not in timed]
    return len(cells) > len(own) and all(own[k] == cells[k] for k in compared)


class TensorBoardLog:
    """Callback for ``agent.watch`` that writes every episode to a directory for ``tensorboard --logdir``.

    ``directory``: where to write. ``cost_names``: names of all costs, the objective first. The steps of the curves are
    rounds. Needs ``pip install psconrl[tensorboard]``.

    >>> agent.watch(TensorBoardLog("curves", cost_names=["steps", "risk"]))  # doctest: +SKIP
    """

    def __init__(self, directory: str | os.PathLike[str], cost_names: Sequence[str] | None = None) -> None:
        try:
            writer: Any = importlib.import_module("tensorboardX").SummaryWriter
        except ImportError:
            raise ConfigError("TensorBoardLog needs tensorboardX: pip install 'psconrl[tensorboard]'") from None
        self._names = cost_names
        self._writer = writer(os.fspath(directory))

    def __call__(self, event: EpisodeEvent) -> None:
        """Write the points of an episode."""
        names = _names(self._names, event)
        points = {
            "episode/length": event.length,
            "episode/explored so far": event.explored,
            "episode/seconds planning": event.planning_time,
            "episode/policy changed": event.changed,
            f"expected/{names[0]}": event.value,
        }
        for group, values in (("in the episode", event.costs), ("so far", event.averages)):
            points |= {f"{group}/{name}": value for name, value in zip(names, values, strict=True)}
        points |= {f"estimate/{name}": mean for name, mean in (event.estimates or {}).items()}
        points |= {f"in the episode/{ratio.name}": ratio.episode for ratio in event.ratios}
        points |= {f"so far/{ratio.name}": ratio.so_far for ratio in event.ratios}
        points |= {f"limit/{name}": value for name, value in zip(names[1:], event.thresholds, strict=True)}
        for tag, value in points.items():
            if value == value:  # unknown values, as that of an exploring episode, are nan and not written
                self._writer.add_scalar(tag.replace(" ", "_"), float(value), event.round)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


def _names(given: Sequence[str] | None, event: EpisodeEvent) -> list[str]:
    if given is None:
        return ["objective", *(f"cost {i}" for i in range(1, event.costs.size))]
    if isinstance(given, str) or len(given) != event.costs.size:
        raise ConfigError(f"cost_names must be {event.costs.size} names, the objective first; got {quoted(given)}")
    broken = [name for name in given if len(str(name).splitlines()) > 1]
    if broken:
        raise ConfigError(f"cost_names must be single lines; got {quoted(broken[0])}")
    return list(given)


def _line(values: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(csv_cell, values))
    return text.getvalue().encode()


def cells_of(line: str) -> list[str]:
    """Return the cells of one line, parsed alone so that a damaged line does not affect the next."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _episode(line: bytes) -> float:
    """Return the number of a line's episode; infinity if the line is not one of this log."""
    cell = line.split(b",")[EPISODE : EPISODE + 1]
    return float(cell[0]) if cell and cell[0].isdigit() else math.inf
