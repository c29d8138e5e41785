"""A log: what the state was, what was done, and what followed, from a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psconrl.arrays import Bools, Floats, Ints, Places
from psconrl.data.building import Columns, Rounds, cost_table, make_rounds, number_rows
from psconrl.data.faults import Fault, Faults
from psconrl.data.records import Records
from psconrl.data.request import Request
from psconrl.data.support import note_impossible
from psconrl.data.system_faults import right_rounds
from psconrl.data.system_rounds import SystemRounds
from psconrl.data.tables import open_table
from psconrl.errors import LogError
from psconrl.escaping import quoted
from psconrl.learning.posterior.counts import Counts, Seen
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System

if TYPE_CHECKING:
    from psconrl.data.checks.report import Report

ROUNDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, init=False, eq=False)
class Log:
    """Rounds of one or several runs.

    A *round* has a state, an action and a next state that are known. Rounds are in the order of the table, run by run.

    ``table``: the path of a file in CSV, Parquet or Arrow, a data frame of pandas or Polars, an Arrow table, a DuckDB
    relation, or arrays by name. It has one row a round; the next state is that of the next row, or in ``next_state``.
    ``state``, ``action``, ``next_state``: the name of a column, a list of names whose values together are the state, or
    a table of names and of the values that there are, ``{"shelf": range(9)}``. ``costs``: the names of columns, the
    objective first, or a table of columns by the name of the cost. ``run``: the column that tells runs or plants apart.
    ``time``: the column with times, by which rows are in order; where times are regular, a longer step is a gap, over
    which no round leads. ``system``: a ``System``, whose variables are the columns unless others are given, and by
    whose rules rounds are checked. ``support``: a ``CMDP`` with the names of states and actions, whose transitions are
    the possible ones. ``skip_bad``: leave out rows that are at fault; by default they are an error.

    >>> log = Log({"shelf": [2, 1, 0, 2], "order": [0, 0, 2, 0], "lost": [0, 0, 1, 0]}, state="shelf", action="order",
    ...     costs="lost")
    >>> log
    Log(3 rounds, 3 states, 2 actions)
    >>> log.next_states.tolist(), log.costs.tolist()
    ([1, 0, 2], [[0.0], [0.0], [1.0]])
    """

    n_states: int
    n_actions: int
    state_labels: tuple[str, ...]
    action_labels: tuple[str, ...]
    cost_names: tuple[str, ...]  # of the objective, then of the limits; as the system or the caller names them
    signs: Floats  # (m+1,) by which ``costs`` are multiplied to be small when good, as in a model: -1 for a reward
    states: Ints | Places  # (n,)
    actions: Ints | Places  # (n,)
    next_states: Ints | Places  # (n,)
    costs: Floats | None  # (n, m+1), nan where a cost is unknown
    run: Ints | Places  # (n,) number of the run
    follows: Bools  # (n,) whether a round directly follows the one before it
    lines: Ints  # (n,) of the table; line 2 is the first row, after the header
    times: Floats | None  # (n,) seconds since 1970 in UTC, or the numbers of the table
    local_times: Floats | None  # (n,) seconds since 1970 by the clock on the wall; None if times are numbers
    gaps: int  # how often a run of regular times was interrupted
    records: Mapping[str, NDArray[Any]]  # (n,) arrays by name: of noise, and of columns that are not in the state
    faults: tuple[Fault, ...]
    system: System | None
    system_rounds: SystemRounds | None  # what rounds revealed of the system's noise

    def __init__(
        self,
        table: Any,
        *,
        state: Any = None,
        action: Any = None,
        costs: Any = None,
        run: str | None = None,
        time: str | None = None,
        next_state: Any = None,
        system: System | None = None,
        support: CMDP | None = None,
        skip_bad: bool = False,
    ) -> None:
        if system is not None and not isinstance(system, System):
            raise LogError(f"system must be a System; got {quoted(system)}")
        if support is not None and not isinstance(support, CMDP):
            raise LogError(f"support must be a CMDP; got {quoted(support)}")
        if system is not None and support is not None:
            raise LogError("give a system or a support, not both: a system says which transitions are possible")
        try:
            opened = open_table(table)
            request = Request.of(opened.columns, state, action, costs, run, time, next_state, system)
            self._fill(Columns.read(opened, request), request, system, support, skip_bad)
        except LogError as error:
            where = f"{table}: " if isinstance(table, str | Path) and not str(error).startswith(str(table)) else ""
            raise LogError(f"{where}{error}") from None

    def _fill(
        self, columns: Columns, request: Request, system: System | None, support: CMDP | None, skip_bad: bool
    ) -> None:
        faults = Faults()
        words = None if system is None else _linear(system).vocabulary()
        numbered = number_rows(columns, request, words, support)
        rounds = make_rounds(columns, request, numbered, faults)
        lines = columns.rows.lines
        records = Records(columns.others, rounds.rows)
        if not rounds.rows.size and not faults.found:
            raise LogError(
                f"no round: the table has {lines.size:,} row{'' if lines.size == 1 else 's'}, and a round needs a row "
                "after it in the same run, or next_state"
            )
        revealed = None
        if rounds.rows.size and system is not None:
            rounds, records, revealed = right_rounds(_linear(system), rounds, records, columns, request, faults)
        if rounds.rows.size and support is not None:
            rounds = rounds.some(note_impossible(support, rounds, lines, bool(request.next_state), numbered, faults))
            records = Records(columns.others, rounds.rows)
        found = tuple(faults.found)
        if found and not skip_bad:
            raise LogError("; ".join(map(str, found)) + ". With skip_bad=True such rows are left out")
        if not rounds.rows.size:
            raise LogError("no round is left: " + "; ".join(map(str, found)))
        times = columns.times
        known: dict[str, Any] = {
            "n_states": len(numbered.state_labels),
            "n_actions": len(numbered.action_labels),
            "state_labels": numbered.state_labels,
            "action_labels": numbered.action_labels,
            "lines": lines[rounds.rows],
            "times": None if times is None else times.seconds[rounds.rows],
            "local_times": times.local[rounds.rows] if times is not None and times.on_calendar else None,
            "records": records,
            "faults": found,
            "system": system,
            "system_rounds": revealed,
        } | _arrays(rounds)
        if revealed is not None:
            known |= {"cost_names": revealed.words.costs, "signs": np.array(revealed.words.signs)}
            known["costs"] = revealed.costs[revealed.kinds.of_round]
        elif columns.costs:
            known |= {"cost_names": tuple(columns.costs), "costs": cost_table(columns, rounds.rows)}
        self._set(known)

    def _set(self, fields: Mapping[str, Any]) -> None:
        """Set all fields; what is missing has a default."""
        n = len(fields["states"])
        known: dict[str, Any] = {
            "state_labels": tuple(str(k) for k in range(fields["n_states"])),
            "action_labels": tuple(str(k) for k in range(fields["n_actions"])),
            "cost_names": (),
            "costs": None,
            "run": np.zeros(n, dtype=np.int32),
            "follows": np.arange(n) > 0,
            "lines": np.arange(n) + 2,
            "times": None,
            "local_times": None,
            "gaps": 0,
            "records": {},
            "faults": (),
            "system": None,
            "system_rounds": None,
        }
        known |= fields
        known.setdefault("signs", np.ones(len(known["cost_names"])))
        if not isinstance(known["records"], Records):
            known["records"] = Records.of_arrays(known["records"])
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_arrays(cls, **fields: Any) -> "Log":
        """Return a log of arrays that are known to be right: fields by name; what is missing has a default."""
        self = object.__new__(cls)
        self._set(fields)
        return self

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return int(self.states.size)

    def counts(self) -> Counts:
        """Return the sufficient statistics: visits, transitions, sums of costs as in a model, and what noise was seen.

        Where a cost is unknown, the round is counted as one with an unknown cost.
        """
        found = Counts(self.n_states, self.n_actions, len(self.cost_names))
        for k in range(0, self.n_rounds, ROUNDS_AT_ONCE):
            found.add(self.seen_in(slice(k, k + ROUNDS_AT_ONCE)))
        if self.system_rounds is not None:
            self.system_rounds.add_to(found)
        return found

    def seen_in(self, rounds: slice) -> Seen:
        """Return the statistics of some rounds, without what they revealed of the noise."""
        S, A, n_costs = self.n_states, self.n_actions, len(self.cost_names)
        found = Seen(S, A, n_costs)
        pairs = self.states[rounds].astype(np.int64) * A + self.actions[rounds]
        numbers, times = np.unique(pairs * S + self.next_states[rounds], return_counts=True)
        found.tally.restore({"numbers": numbers, "times": times})
        found.visits += np.bincount(pairs, minlength=S * A)
        for i in range(n_costs):
            assert self.costs is not None
            costs = self.signs[i] * self.costs[rounds, i]
            unknown = np.isnan(costs)
            found.cost_sums[i] = np.bincount(pairs, np.where(unknown, 0.0, costs), minlength=S * A)
            found.unknown_costs[i] = int(unknown.sum())
        return found

    def behaviour(self) -> Floats:
        """Return the frequencies (S, A) of the actions in every state; zeros in a state that was never left."""
        visits = np.zeros(self.n_states * self.n_actions, dtype=np.int64)
        for k in range(0, self.n_rounds, ROUNDS_AT_ONCE):
            some = slice(k, k + ROUNDS_AT_ONCE)
            visits += np.bincount(
                self.states[some].astype(np.int64) * self.n_actions + self.actions[some], minlength=visits.size
            )
        table = visits.reshape(self.n_states, self.n_actions)
        return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1))

    def check(self, limits: Mapping[str, float] | None = None) -> "Report":
        """Return whether the state, and the description of the system, are good enough, and what was never tried.

        ``limits``: thresholds of costs by name, as they are in the table; by default those of the system.
        """
        from psconrl.data.checks.report import check

        return check(self, limits)

    def __repr__(self) -> str:
        def shown(number: int, what: str) -> str:
            return f"{number:,} {what}{'' if number == 1 else 's'}"

        runs = int(self.run.max(initial=-1)) + 1
        parts = [shown(self.n_rounds, "round"), *([shown(runs, "run")] if runs > 1 else [])]
        parts += [shown(self.n_states, "state"), shown(self.n_actions, "action")]
        return f"Log({', '.join(parts)}{', ' + shown(len(self.faults), 'kind') + ' of faults' if self.faults else ''})"


def _linear(system: System) -> System:
    return system if system.statement.is_linear else system.linear()


def _arrays(rounds: Rounds) -> dict[str, Any]:
    """Return the fields of a log that are arrays of its rounds."""
    return {
        "states": rounds.states,
        "actions": rounds.actions,
        "next_states": rounds.next_states,
        "run": rounds.run,
        "follows": rounds.follows,
        "gaps": rounds.gaps,
    }
