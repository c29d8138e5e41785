"""A log: what the state was, what was done, and what followed, from a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from psconrl.answers.asking import linear
from psconrl.base.escaping import quoted
from psconrl.data.advice.advice import Advice
from psconrl.data.advice.advising import advised, as_share, draws_of_averages
from psconrl.data.advice.averages import Average, todays_averages
from psconrl.data.advice.described import need_costs, posterior_of, system_for
from psconrl.data.advice.fit import Fit, fitted
from psconrl.data.checks.report import LogReport, checked_log
from psconrl.data.rounds.building import Columns, LogRounds, make_rounds, number_rows, recorded_costs
from psconrl.data.rounds.faults import Faults
from psconrl.data.rounds.recorded import Recorded
from psconrl.data.rounds.request import Request
from psconrl.data.rounds.support import note_impossible
from psconrl.data.rounds.system_faults import right_rounds
from psconrl.data.tables.opening import open_table
from psconrl.data.tables.records import Records
from psconrl.errors import LogError
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Log(Recorded):
    """Rounds of one or several runs.

    A *round* has a state, an action and a next state that are known. Rounds are in the order of the table, run by run.

    ``table``: the path of a file in CSV, Parquet or Arrow, a data frame of pandas or Polars, an Arrow table, a DuckDB
    relation, or arrays by name. It has one row a round; the next state is that of the next row, or in ``next_state``.
    ``state``, ``action``, ``next_state``: the name of a column, a list of names whose values together are the state, or
    a table of names and of the values that there are, ``{"shelf": range(9)}``. ``costs``: the names of columns, the
    objective first, or a table of columns by the name of the cost. ``run``: the column that tells runs or plants apart.
    ``time``: the column with times, by which rows are in order; where times are regular, a longer step is a gap, over
    which no round leads. ``step``: the usual time from row to row, in seconds if times are dates; ``inf`` if no row is
    missing, whatever the times are. ``system``: a ``System``, whose variables are the columns unless others are given,
    and by whose rules rounds are checked. ``support``: a ``CMDP`` with the names of states and actions, whose
    transitions are the possible ones. ``skip_bad``: leave out rows that are at fault; by default they are an error.

    >>> log = Log({"shelf": [2, 1, 0, 2], "order": [0, 0, 2, 0], "lost": [0, 0, 1, 0]}, state="shelf", action="order",
    ...     costs="lost")
    >>> log
    Log(3 rounds, 3 states, 2 actions)
    >>> log.next_states.tolist(), log.costs.tolist()
    ([1, 0, 2], [[0.0], [0.0], [1.0]])
    """

    def __init__(
        self,
        table: Any,
        *,
        state: Any = None,
        action: Any = None,
        costs: Any = None,
        run: str | None = None,
        time: str | None = None,
        step: float | timedelta | None = None,
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
            request = Request.of(opened.columns, state, action, costs, run, time, step, next_state, system)
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
        seconds = None if times is None else times.seconds[rounds.rows]
        local = seconds if times is None or times.local is times.seconds else times.local[rounds.rows]
        known: dict[str, Any] = {
            "n_states": len(numbered.state_labels),
            "n_actions": len(numbered.action_labels),
            "state_labels": numbered.state_labels,
            "action_labels": numbered.action_labels,
            "state_columns": request.state,
            "action_columns": request.action,
            "lines": lines[rounds.rows],
            "times": seconds,
            "local_times": local if times is not None and times.on_calendar else None,
            "records": records,
            "faults": found,
            "system": system,
            "system_rounds": revealed,
        } | _arrays(rounds)
        if revealed is not None:
            known |= {"cost_names": revealed.words.costs, "signs": np.array(revealed.words.signs)}
            known["costs"] = revealed.costs[revealed.kinds.of_round]
        elif columns.costs:
            known |= {"cost_names": tuple(columns.costs), "costs": recorded_costs(columns, rounds.rows)}
        self._set(known)

    def check(self, limits: Mapping[str, float] | None = None) -> LogReport:
        """Return whether the state, and the description of the system, are good enough, and what was never tried.

        ``limits``: thresholds of costs by name, as they are in the table; by default those of the system.

        >>> log = Log({"shelf": [2, 1, 0] * 40, "order": [0] * 120}, state="shelf", action="order")
        >>> print(log.check())
        Log(119 rounds, 3 states, 1 action): no test doubts the state or the description (7 tests at level 0.03)
          coverage: the action is always 0: the log tells nothing about other actions
        """
        return checked_log(self, limits)

    def averages(self, system: System | None = None, level: float = 0.95) -> tuple[Average, ...]:
        """Return the long-run averages of the policy that wrote the log, by cost, with intervals.

        Each has a credible interval under the posterior and, beside it, the mean of the log with an interval from
        batches of rounds; ``disagreement`` says if both contradict each other. ``system``: by default the one that the
        log was read with. ``level``: probability of an interval.

        >>> log = Log({"on": [0, 1] * 50, "do": [0] * 100, "heat": [0, 2] * 50}, state="on", action="do", costs="heat")
        >>> for average in log.averages():
        ...     print(average.name, round(average.mean, 2), average.low < 1.0 < average.high)
        heat 1.0 True
        """
        as_share(level, "level")
        need_costs(self)
        return todays_averages(self, posterior_of(self, system_for(self, system)), level, draws_of_averages(self))

    def fit(self, system: System | None = None) -> Fit:
        """Return the posterior of the unknown parameters of a system: means, intervals, and the system to plan.

        ``system``: by default the one that the log was read with. It is a method of the log, since what is known of the
        noise is what the log recorded of it: a demand that exceeded the stock counts as at least the stock.

        >>> from psconrl.systems import Bernoulli, Beta
        >>> lamp = System(state={"on": 2}, action={"wait": 1}, noise={"switch": Bernoulli(Beta())},
        ...     step={"on": "switch"}, costs={"heat": "on"}, minimise="heat")
        >>> found = Log({"on": [0, 1, 1, 0, 1], "wait": [0] * 5}, system=lamp).fit()
        >>> print(found)
        switch: 0.6667 (90%: 0.3426 to 0.9236; 4 observations)
        >>> found.system.source.unknown()
        {}
        """
        chosen = system_for(self, system)
        if chosen is None:
            raise LogError("fit needs a system; read the log with Log(table, system=...)")
        return fitted(self, chosen)

    def improve(
        self, system: System | None = None, confidence: float = 0.95, limits: Mapping[str, float] | None = None
    ) -> Advice:
        """Return what to do instead, and how sure it is that limits hold and that it is no worse than today's policy.

        A policy is recommended only if both hold with probability ``confidence``. ``system``: by default the one that
        the log was read with; without one, every state is learned by itself. ``limits``: numbers of limits by name, as
        they are in the table; by default those of the system.

        >>> rng = np.random.default_rng(0)
        >>> pump = rng.integers(2, size=500)
        >>> log = Log({"tank": [0] * 500, "pump": pump, "power": 2 - pump}, state="tank", action="pump", costs="power")
        >>> print(log.improve().decisions[0].proposed)
        (('pump=1', 1.0),)
        """
        return advised(self, system, confidence, limits)


def _linear(system: System) -> System:
    return linear(system)


def _arrays(rounds: LogRounds) -> dict[str, Any]:
    """Return the fields of a log that are arrays of its rounds."""
    return {
        "states": rounds.states,
        "actions": rounds.actions,
        "next_states": rounds.next_states,
        "run": rounds.run,
        "follows": rounds.follows,
        "gaps": rounds.gaps,
        "broken": rounds.broken,
    }
