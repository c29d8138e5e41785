"""A log: what the state was, what was done, and what followed, from a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.arrays import Bools, Floats, Ints
from psconrl.data.faults import Fault
from psconrl.learning.posterior.counts import Counts
from psconrl.systems.system import System


@dataclass(frozen=True, init=False, eq=False)
class Log:
    """Rounds of one or several runs.

    A *round* has a state, an action and a next state that are known. Rounds are in the order of the table, run by run.
    """

    n_states: int
    n_actions: int
    state_labels: tuple[str, ...]
    action_labels: tuple[str, ...]
    cost_names: tuple[str, ...]  # of the objective, then of the limits; as the system or the caller names them
    signs: Floats  # (m+1,) by which ``costs`` are multiplied to be small when good, as in a model: -1 for a reward
    states: Ints  # (n,)
    actions: Ints  # (n,)
    next_states: Ints  # (n,)
    costs: Floats | None  # (n, m+1), nan where a cost is unknown
    run: Ints  # (n,) number of the run
    follows: Bools  # (n,) whether a round directly follows the one before it
    lines: Ints  # (n,) of the table; line 2 is the first row, after the header
    times: Floats | None  # (n,) seconds since 1970 in UTC, or the numbers of the table
    records: Mapping[str, Any]  # (n,) arrays by name: of noise, and of columns that are not in the state
    faults: tuple[Fault, ...]
    system: System | None

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
        skip_bad: bool = False,
    ) -> None:
        raise NotImplementedError

    @classmethod
    def of_arrays(cls, **fields: Any) -> "Log":
        """Return a log of arrays that are known to be right: fields by name; what is missing has a default."""
        self = object.__new__(cls)
        n = len(fields["states"])
        known: dict[str, Any] = {
            "state_labels": tuple(str(k) for k in range(fields["n_states"])),
            "action_labels": tuple(str(k) for k in range(fields["n_actions"])),
            "cost_names": (),
            "costs": None,
            "run": np.zeros(n, dtype=np.int64),
            "follows": np.arange(n) > 0,
            "lines": np.arange(n) + 2,
            "times": None,
            "records": {},
            "faults": (),
            "system": None,
        } | fields
        known.setdefault("signs", np.ones(len(known["cost_names"])))
        for name, value in known.items():
            object.__setattr__(self, name, value)
        return self

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return int(self.states.size)

    def counts(self) -> Counts:
        """Return the sufficient statistics: visits, transitions, sums of costs as in a model, and what noise was seen.

        Where a cost is unknown, the round is counted as one with an unknown cost.
        """
        S, A, n_costs = self.n_states, self.n_actions, len(self.cost_names)
        found = Counts(S, A, n_costs)
        pairs = self.states.astype(np.int64) * A + self.actions
        numbers, times = np.unique(pairs * S + self.next_states, return_counts=True)
        found.tally.restore({"numbers": numbers, "times": times})
        found.visits += np.bincount(pairs, minlength=S * A)
        if self.costs is not None:
            for i in range(n_costs):
                known = ~np.isnan(self.costs[:, i])
                weights = self.signs[i] * np.where(known, self.costs[:, i], 0.0)
                found.cost_sums[i] = np.bincount(pairs, weights, minlength=S * A)
                found.unknown_costs[i] = int((~known).sum())
        return found

    def behaviour(self) -> Floats:
        """Return the frequencies (S, A) of the actions in every state; zeros in a state that was never left."""
        pairs = self.states.astype(np.int64) * self.n_actions + self.actions
        visits = np.bincount(pairs, minlength=self.n_states * self.n_actions).reshape(self.n_states, self.n_actions)
        return visits / np.maximum(visits.sum(axis=1, keepdims=True), 1)
