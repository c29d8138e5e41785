"""From the columns of a table to the rounds of a log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.data.rounds.faults import Faults
from psconrl.data.rounds.gaps import NOT_BROKEN, Broken
from psconrl.data.rounds.request import Request
from psconrl.data.rounds.runs import RowOrder, order_rows
from psconrl.data.rounds.spaces import (
    MISSING,
    UNKNOWN,
    DeclaredSpace,
    LabelSpace,
    ListedSpace,
    SeenSpace,
    VariableSpace,
)
from psconrl.data.tables.columns import (
    AnyReader,
    LabelColumn,
    LabelReader,
    NumberColumn,
    NumberReader,
    Reader,
    TimeReader,
)
from psconrl.data.tables.opening import TableSource
from psconrl.data.tables.rows import Indices, TableRows
from psconrl.data.tables.timestamps import Timestamps
from psconrl.errors import LogError
from psconrl.model.cmdp import CMDP
from psconrl.systems.variables import Space
from psconrl.systems.vocabulary import Vocabulary

MOST_DISTINCT = 1_000  # values of a column of states that are not whole numbers


@dataclass(frozen=True, eq=False)
class Columns:
    """All columns that were read, by name. ``unread``: columns with many values that are no numbers."""

    rows: TableRows
    labels: Mapping[str, LabelColumn]
    costs: dict[str, NumberColumn]  # by the name of the cost
    times: Timestamps | None
    others: Mapping[str, LabelColumn | NumberColumn]
    unread: tuple[str, ...]

    @classmethod
    def read(cls, table: TableSource, request: Request) -> "Columns":
        """Read what is asked for, and all other columns."""
        labelled = (*request.state, *request.action, *request.next_state, *([request.run] if request.run else []))
        readers: dict[str, Reader] = {name: LabelReader(name) for name in labelled}
        readers |= {column: NumberReader(column) for column in request.costs.values() if column not in readers}
        if request.time is not None:
            readers[request.time] = TimeReader(request.time)
        own = set(readers)
        readers |= {name: AnyReader(name) for name in table.columns if name not in readers}
        rows = table.read(readers)
        found = {name: reader.column() for name, reader in readers.items()}
        return cls(
            rows,
            {name: found[name] for name in labelled},
            {name: _as_numbers(found[column]) for name, column in request.costs.items()},
            found[request.time] if request.time is not None else None,
            {name: column for name, column in found.items() if name not in own and column is not None},
            tuple(name for name, column in found.items() if column is None),
        )

    def of(self, names: Sequence[str]) -> list[LabelColumn]:
        """Return some columns of labels."""
        return [self.labels[name] for name in names]


def _as_numbers(column: Any) -> NumberColumn:
    """Return a column of costs that is a part of the state or the action, too, as numbers."""
    if isinstance(column, NumberColumn):
        return column
    if not isinstance(column, LabelColumn) or not column.are_numbers:
        raise LogError("a cost must be a column of numbers, and not one of texts or times")
    return NumberColumn(column.numbers(), np.zeros(column.codes.size, dtype=bool))


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """States, actions and next states of all rows of the table, and their labels."""

    states: Places
    actions: Places
    next_states: Places | None
    state_labels: tuple[str, ...]
    action_labels: tuple[str, ...]


def number_rows(columns: Columns, request: Request, words: Vocabulary | None, support: CMDP | None) -> NumberedRows:
    """Return the numbers of states and actions."""
    tables = [columns.of(request.state), *([columns.of(request.next_state)] if request.next_state else [])]
    if words is None and support is None and request.declared_states is None:
        _need_recurring(request.state, tables)
    state_names = None if support is None else _names(support.names.states, support.n_states)
    action_names = None if support is None else _names(support.names.actions, support.n_actions)
    shown, acted = (None, None) if words is None else ((words.states, words.reachable), (words.actions, None))
    states = _numbering("state", request.state, tables, shown, state_names, request.declared_states)
    own = [columns.of(request.action)]
    actions = _numbering("action", request.action, own, acted, action_names, request.declared_actions)
    parts = [states.numbers(table) for table in tables]
    return NumberedRows(
        parts[0], actions.numbers(own[0]), parts[1] if parts[1:] else None, states.labels, actions.labels
    )


def _numbering(
    what: str,
    names: Sequence[str],
    tables: Sequence[Sequence[LabelColumn]],
    space: tuple[Space, Ints | None] | None,
    listed: Sequence[str] | None,
    declared: Mapping[str, Any] | None,
) -> LabelSpace:
    """Return how combinations are numbered: as in a system, in a model, as declared, or as they occur."""
    if space is not None:
        variables, reachable = space
        numbers = np.arange(variables.size) if reachable is None else reachable
        labels = variables.labels(numbers)
        if len(names) == len(variables.names) and (len(names) > 1 or not _are_labels(tables[0][0], labels)):
            return VariableSpace(variables, numbers, labels)
        if len(names) == 1:
            return ListedSpace(labels)
        raise LogError(
            f"{what} needs a column for each of {', '.join(variables.names)}, or one with labels such as "
            f"{quoted(labels[0])}"
        )
    if listed is not None:
        if len(names) != 1:
            raise LogError(f"{what} must be one column, with the names that the model has, such as {quoted(listed[0])}")
        return ListedSpace(listed)
    return SeenSpace(names, tables) if declared is None else DeclaredSpace(declared, what)


def _are_labels(column: LabelColumn, labels: Sequence[str]) -> bool:
    """Whether a column has the labels of a system's only variable, and not its values."""
    return not {str(value) for value in column.values}.isdisjoint(label for label in labels if "=" in label)


def _names(given: Sequence[str] | None, number: int) -> Sequence[str]:
    return [str(k) for k in range(number)] if given is None else given


def _need_recurring(names: Sequence[str], tables: Sequence[Sequence[LabelColumn]]) -> None:
    """Raise an error if a column of the state has too many numbers that are not whole."""
    for name, *columns in zip(names, *tables, strict=True):
        values = {value for column in columns for value in column.values}
        if len(values) > MOST_DISTINCT and any(isinstance(value, float) for value in values):
            raise LogError(
                f"the column {quoted(name)} has {len(values):,} distinct numbers; a state needs values that recur: "
                "round them, or put them into classes"
            )


@dataclass(frozen=True, eq=False)
class LogRounds:
    """The rounds of a log, by the rows of its table."""

    rows: Indices  # places in the table
    states: Places
    actions: Places
    next_states: Places
    run: Places
    follows: Bools
    gaps: int
    step: float | None
    broken: Broken

    def some(self, kept: Bools) -> "LogRounds":
        """Return some of the rounds."""
        if kept.all():
            return self
        before = np.append(False, kept[:-1])[: kept.size]  # whether the round before is still there
        return LogRounds(
            self.rows[kept],
            self.states[kept],
            self.actions[kept],
            self.next_states[kept],
            self.run[kept],
            (self.follows & before)[kept],
            self.gaps,
            self.step,
            Broken(self.broken.states, np.append(0, np.cumsum(kept))[self.broken.places]),
        )


def make_rounds(columns: Columns, request: Request, numbered: NumberedRows, faults: Faults) -> LogRounds:
    """Return the rounds that are whole; note the faults of rows."""
    lines = columns.rows.lines
    usable = numbered.states >= 0
    runs = columns.labels[request.run] if request.run is not None else None
    times = columns.times
    if times is not None:
        usable &= ~np.isnan(times.seconds)
    if runs is not None:
        usable &= runs.codes >= 0
    restarted = np.isin(lines, _first_after(lines, columns.rows.repeated))
    if columns.rows.repeated.size:
        every = np.ones(columns.rows.repeated.size, dtype=bool)
        text = "the header is repeated, as if several files were put one after the other; remove it, and name the "
        faults.add("glued", columns.rows.repeated, every, text + "column that tells the runs apart, run=...")
    run = np.zeros(lines.size, dtype=np.int32) if runs is None else runs.codes
    kept = usable if request.next_state else _with_holes(usable, runs, times)
    order = order_rows(run, times, request.step, kept, lines, restarted, faults)
    last = np.zeros(lines.size, dtype=bool)
    if not request.next_state:  # after the last row of a run nothing is known, and often there is nothing in it
        last[order.rows[~np.append(order.linked[1:], False)[: order.rows.size]]] = True
    return _rounds(numbered, order, usable, _note_cells(columns, request, numbered, last, faults))


def _with_holes(usable: Bools, runs: LabelColumn | None, times: Timestamps | None) -> Bools:
    """Return which rows have a place in the order; those without a state are holes, through which no round leads."""
    kept = np.ones(usable.size, dtype=bool)
    if times is not None:
        kept &= ~np.isnan(times.seconds)
    if runs is not None:
        kept &= runs.codes >= 0
    return kept


def _first_after(lines: Indices, repeated: Indices) -> Indices:
    """Return the first lines after those that repeat the header."""
    at = np.searchsorted(lines, repeated)
    return lines[at[at < lines.size]]


def _note_cells(columns: Columns, request: Request, numbered: NumberedRows, last: Bools, faults: Faults) -> Bools:
    """Note what is wrong with single cells; return which rows cannot be rounds. ``last``: the last rows of runs."""
    lines, ragged = columns.rows.lines, columns.rows.ragged
    faults.add("wrong", lines, ragged, "the row has more or fewer cells than the header; quote cells with separators")
    bad = ragged.copy()
    parts = [("state", request.state, numbered.states), ("action", request.action, numbered.actions)]
    if numbered.next_states is not None:
        parts.append(("next state", request.next_state, numbered.next_states))
    for what, names, codes in parts:
        missing, unknown = (codes == MISSING) & ~ragged, codes == UNKNOWN
        missing &= ~last | (what == "state")
        faults.add("missing", lines, missing, f"the {what} is missing, in {', '.join(map(quoted, names))}")
        if unknown.any():
            at = int(np.flatnonzero(unknown)[0])
            own = columns.of(names)
            shown = ", ".join(str(column.values[column.codes[at]]) for column in own)
            labels = numbered.action_labels if what == "action" else numbered.state_labels
            known = f"{len(labels):,} that there are, such as {quoted(labels[0])}"
            text = f"the {what} {quoted(shown)} is none of the {known}"
            faults.add("unknown", lines, unknown, text)
        if what != "state":
            bad |= codes < 0
    if request.run is not None:
        gone = columns.labels[request.run].codes < 0
        faults.add("missing", lines, gone & ~ragged, f"the run is missing, in {quoted(request.run)}")
    if columns.times is not None:
        wrong, gone = columns.times.wrong, np.isnan(columns.times.seconds)
        faults.add("missing", lines, gone & ~wrong & ~ragged, f"the time is missing, in {quoted(request.time)}")
        faults.add("wrong", lines, wrong, f"{quoted(request.time)} is no time such as 2024-03-31T02:30:00+01:00")
    for name, column in columns.costs.items():
        gone = np.isnan(column.values)
        faults.add("missing", lines, gone & ~column.wrong & ~ragged & ~last, f"the cost {quoted(name)} is missing")
        faults.add("wrong", lines, column.wrong, f"the cost {quoted(name)} is no finite number")
        bad |= gone
    return bad


def _rounds(numbered: NumberedRows, order: RowOrder, usable: Bools, bad: Bools) -> LogRounds:
    rows, linked, acted = order.rows, order.linked, numbered.actions
    states = np.take(numbered.states, rows)
    states[~np.take(usable, rows)] = MISSING
    if numbered.next_states is not None:
        following, linked = np.take(numbered.next_states, rows), linked.copy()
        linked[1:] &= following[:-1] == states[1:]
    else:
        following = np.full(rows.size, MISSING, dtype=np.int32)
        np.copyto(following[:-1], states[1:], where=linked[1:])
    broken = np.zeros(rows.size, dtype=bool)
    if numbered.next_states is None:  # the row above a gap, or above a row without a state
        broken[:-1] = (order.gaps[1:] | (linked[1:] & (states[1:] < 0))) & (states[:-1] >= 0)
    whole = (states >= 0) & (following >= 0) & ~np.take(bad, rows)
    at = np.flatnonzero(broken)
    lost = Broken(states[at].astype(np.int64), np.cumsum(whole)[at] - whole[at]) if at.size else NOT_BROKEN
    before = np.append(False, whole[:-1])[: rows.size]
    states, following, rows = states[whole], following[whole], rows[whole]
    linked, run = (linked & before)[whole], order.run[whole]
    return LogRounds(rows, states, acted[rows], following, run, linked, int(order.gaps.sum()), order.step, lost)


def recorded_costs(columns: Columns, rows: Indices) -> Floats:
    """Return the costs (n, m+1) of some rows; their columns are given up, since they may take much memory."""
    need(8.0 * rows.size * len(columns.costs), f"the costs of {rows.size:,} rounds", LogError)
    names = list(columns.costs)
    table = np.empty((rows.size, len(names)))
    for i, name in enumerate(names):
        table[:, i] = columns.costs.pop(name).values[rows]
    return table
