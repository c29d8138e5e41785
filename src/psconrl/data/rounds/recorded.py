"""The rounds of a log: arrays, what they count, and what was done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools, Floats, Ints, Places
from psconrl.data.rounds.faults import Fault
from psconrl.data.rounds.gaps import NOT_BROKEN, Broken
from psconrl.data.rounds.system_rounds import SystemRounds
from psconrl.data.tables.records import Records
from psconrl.learning.posterior.counts import Counts, Seen
from psconrl.systems.system import System

ROUNDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Recorded:
    """Rounds of one or several runs, run by run. A *round* has a state, an action and a next state that are known."""

    n_states: int
    n_actions: int
    state_labels: tuple[str, ...]
    action_labels: tuple[str, ...]
    state_columns: tuple[str, ...]  # of the table; empty if there was none
    action_columns: tuple[str, ...]
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
    gaps: int  # how often a run was interrupted: by missing times, if they are regular, or by rows without time or run
    broken: Broken  # states after which the next one is missing
    records: Mapping[str, NDArray[Any]]  # (n,) arrays by name: of noise, and of columns that are not in the state
    faults: tuple[Fault, ...]
    system: System | None
    system_rounds: SystemRounds | None  # what rounds revealed of the system's noise

    def _set(self, fields: Mapping[str, Any]) -> None:
        """Set all fields; what is missing has a default."""
        n = len(fields["states"])
        known: dict[str, Any] = {
            "state_labels": tuple(str(k) for k in range(fields["n_states"])),
            "action_labels": tuple(str(k) for k in range(fields["n_actions"])),
            "state_columns": (),
            "action_columns": (),
            "cost_names": (),
            "costs": None,
            "run": np.zeros(n, dtype=np.int32),
            "follows": np.arange(n) > 0,
            "lines": np.arange(n) + 2,
            "times": None,
            "local_times": None,
            "gaps": 0,
            "broken": NOT_BROKEN,
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
    def of_arrays(cls, **fields: Any) -> Self:
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

    def __repr__(self) -> str:
        def shown(number: int, what: str) -> str:
            return f"{number:,} {what}{'' if number == 1 else 's'}"

        runs = int(self.run.max(initial=-1)) + 1
        parts = [shown(self.n_rounds, "round"), *([shown(runs, "run")] if runs > 1 else [])]
        parts += [shown(self.n_states, "state"), shown(self.n_actions, "action")]
        return f"Log({', '.join(parts)}{', ' + shown(len(self.faults), 'kind') + ' of faults' if self.faults else ''})"
