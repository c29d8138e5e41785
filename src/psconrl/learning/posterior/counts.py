"""Sufficient statistics of an agent's experience: visits, transitions and costs."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psconrl.arrays import Floats, Ints
from psconrl.caps import need
from psconrl.errors import AgentError
from psconrl.kernels.counts import add_pairs, add_to_table
from psconrl.learning.posterior.seen_noise import SeenNoise
from psconrl.learning.posterior.sparse_counts import Tally


class Seen:
    """Sufficient statistics: visits N(s,a), transitions N(s,a,s'), and the sum of every cost in every pair."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.tally = Tally(n_states * n_actions, n_states)
        self.cost_sums: Floats = np.zeros((n_costs, n_states * n_actions))  # (m+1, S*A)
        self.visits: Ints = np.zeros(n_states * n_actions, dtype=np.int64)  # (S*A,)
        self.noise = SeenNoise()  # of a system, where the caller saw it

    @property
    def pairs(self) -> Ints:
        """Visits N(s,a), (S, A)."""
        return self.visits.reshape(self.n_states, self.n_actions)

    @property
    def transitions(self) -> Ints:
        """Visits N(s,a,s') as a read-only dense array (S*A, S). The sparse ``moves`` takes less memory."""
        need_table(self.n_states, self.n_actions)
        table = self.tally.toarray()
        table.flags.writeable = False
        return table

    @property
    def moves(self) -> csr_array:
        """Visits N(s,a,s') as a sparse matrix (S*A, S)."""
        return self.tally.csr()

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        seen = {"noise": self.noise.state()} if self.noise else {}
        return {"transitions": self.tally.state(), "cost_sums": self.cost_sums, "visits": self.visits} | seen

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned, after a check: with inconsistent counts a planner may never terminate."""
        self.tally.restore(state["transitions"])
        self.cost_sums[...] = state["cost_sums"]
        self.visits[...] = state["visits"]
        self.noise.restore(state.get("noise", ()))
        if (self.tally.visits() != self.visits).any() or not np.isfinite(self.cost_sums).all():
            raise ValueError("inconsistent counts")


class Record(Seen):
    """Statistics of one episode."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        super().__init__(n_states, n_actions, n_costs)
        self.steps = 0

    @classmethod
    def empty(cls, like: "Counts") -> "Record":
        """Return an empty record for an agent with these counts."""
        return cls(like.n_states, like.n_actions, len(like.cost_sums))

    def copy(self) -> "Record":
        """Return a copy; the record itself is cleared and used again for the next episode."""
        other = Record(self.n_states, self.n_actions, len(self.cost_sums))
        other.tally, other.cost_sums = self.tally.copy(), self.cost_sums.copy()
        other.visits, other.steps, other.noise = self.visits.copy(), self.steps, self.noise.copy()
        return other

    def clear(self) -> None:
        """Reset all counts to 0."""
        self.tally.clear()
        self.cost_sums.fill(0.0)
        self.visits.fill(0)
        self.noise.clear()
        self.steps = 0

    def step(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Add one transition."""
        pair = state * self.n_actions + action
        self.tally.note(pair, next_state)
        self.cost_sums[:, pair] += costs
        self.visits[pair] += 1
        self.steps += 1

    def is_full(self, max_steps: int, visit_caps: Ints | None) -> bool:
        """Return True if a cap of the episode has been reached."""
        return self.steps >= max_steps or (visit_caps is not None and bool((self.visits >= visit_caps.ravel()).any()))

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return super().state() | {"steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self.steps = int(state["steps"])
        if self.steps != self.visits.sum():
            raise ValueError("number of steps differs from the counts")


class Counts(Seen):
    """Statistics of everything that an agent has seen."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        super().__init__(n_states, n_actions, n_costs)
        self._table: Ints | None = None  # the dense table, once it has been asked for

    def add(self, record: Record) -> None:
        """Add an episode."""
        self.tally.add(record.tally)
        self.noise.add(record.noise)
        if self._table is not None:
            add_to_table(self._table, record.tally.numbers, record.tally.times)
        add_pairs(self.visits, self.cost_sums, record.visits, record.cost_sums)

    @property
    def transitions(self) -> Ints:
        """Visits N(s,a,s') as a read-only dense array (S*A, S), created at first use and kept up to date."""
        if self._table is None:
            need_table(self.n_states, self.n_actions)
            self._table = self.tally.toarray()
        table = self._table.view()
        table.flags.writeable = False
        return table

    def mean_costs(
        self, optimistic: float | None = None, guess: Floats | None = None, weight: Floats | float = 0.0
    ) -> Floats:
        """Return empirical means (m+1, S, A); an untried pair counts as free.

        ``optimistic`` counts as one more observation of the objective in every pair. A ``guess`` (m+1, S, A) counts as
        ``weight`` observations of all costs, a number or (S, A).
        """
        sums, visits = self.cost_sums, self.visits.astype(np.float64)
        if guess is not None:
            worth = np.broadcast_to(weight, self.pairs.shape).ravel()
            sums, visits = sums + worth * guess.reshape(sums.shape), visits + worth
        means = sums / np.where(visits > 0.0, visits, 1.0)
        if optimistic is not None:
            means[0] = (sums[0] + optimistic) / (visits + 1)
        return means.reshape(-1, self.n_states, self.n_actions)

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self._table = None


def need_table(n_states: int, n_actions: int) -> None:
    """Raise an error if a dense table of counts would take more memory than allowed."""
    need(8.0 * n_states**2 * n_actions, f"a table of {n_states:,} x {n_actions:,} x {n_states:,} counts", AgentError)
