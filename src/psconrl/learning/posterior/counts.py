"""Sufficient statistics of an agent's experience: visits, transitions and costs."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psconrl.base.arrays import Bools, Floats, Ints
from psconrl.base.caps import LARGEST_COST, MOST_ROUNDS, need
from psconrl.base.saved_fields import integer, integers, need_that, read_fields, reals
from psconrl.errors import AgentError
from psconrl.kernels.draws.counts import add_pairs, add_to_table
from psconrl.kernels.graphs import successors
from psconrl.learning.posterior.seen_noise import SeenNoise
from psconrl.learning.posterior.sparse_counts import Tally
from psconrl.learning.posterior.untried_costs import best_objective, favouring_rarely_tried

LARGEST_SUM = LARGEST_COST * MOST_ROUNDS  # of the costs of all rounds


class Seen:
    """Sufficient statistics: visits N(s,a), transitions N(s,a,s'), and the sum of every cost in every pair."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.tally = Tally(n_states * n_actions, n_states)
        self.cost_sums: Floats = np.zeros((n_costs, n_states * n_actions))  # (m+1, S*A)
        self.visits: Ints = np.zeros(n_states * n_actions, dtype=np.int64)  # (S*A,)
        self.noise = SeenNoise()  # of a system, where the caller saw more than the transition
        self.unknown_costs: Ints = np.zeros(n_costs, dtype=np.int64)  # rounds in which each cost was only expected

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

    def reached_from(self, state: int) -> Bools:
        """Return a mask (S,) of the states that the transitions seen so far reach from a state.

        >>> seen = Seen(3, 1, 1)
        >>> seen.tally.note(0, 1)
        >>> seen.reached_from(0).tolist(), seen.reached_from(1).tolist()
        ([True, True, False], [False, True, False])
        """
        S, A = self.n_states, self.n_actions
        pairs, following = np.divmod(self.tally.numbers, S)
        indptr = np.searchsorted(pairs // A, np.arange(S + 1))
        mask: Bools = successors.reached(indptr.astype(np.int32), following.astype(np.int32), np.arange(S) == state)
        return mask

    def averages(self) -> Floats:
        """Return the averages (m+1,) of all costs; nan of a cost that is unknown in some rounds.

        >>> seen = Seen(1, 1, 2)
        >>> seen.visits[0], seen.cost_sums[:, 0], seen.unknown_costs[1] = 4, [6.0, 2.0], 1
        >>> seen.averages().tolist()
        [1.5, nan]
        """
        means = self.cost_sums.sum(axis=1) / max(int(self.visits.sum()), 1)
        return np.where(self.unknown_costs > 0, np.nan, means)

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        seen: dict[str, Any] = {"noise": self.noise.state()} if self.noise else {}
        if self.unknown_costs.any():
            seen["unknown_costs"] = self.unknown_costs
        return {"transitions": self.tally.state(), "cost_sums": self.cost_sums, "visits": self.visits} | seen

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned, after a check: with inconsistent counts a planner may never terminate."""
        described = {
            "transitions": self.tally.restore,
            "cost_sums": reals(self.cost_sums.shape, -LARGEST_SUM, LARGEST_SUM),
            "visits": integers(self.visits.shape),
            "noise": self.noise.restore,
            "unknown_costs": integers(self.unknown_costs.shape),
        }
        self.noise.clear()
        saved = read_fields(state, described, may_be_missing=("noise", "unknown_costs"))
        self.cost_sums[...], self.visits[...] = saved["cost_sums"], saved["visits"]
        self.unknown_costs[...] = saved.get("unknown_costs", 0)
        need_that((self.tally.visits() == self.visits).all(), "visits must be those of the transitions")
        need_that((self.unknown_costs <= self.visits.sum()).all(), "unknown_costs must be at most the rounds")
        need_that(not self.cost_sums[:, self.visits == 0].any(), "cost_sums must be 0 where there are no visits")


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
        other.unknown_costs = self.unknown_costs.copy()
        return other

    def clear(self) -> None:
        """Reset all counts to 0."""
        self.tally.clear()
        self.cost_sums.fill(0.0)
        self.visits.fill(0)
        self.noise.clear()
        self.unknown_costs.fill(0)
        self.steps = 0

    def step(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Add one transition."""
        pair = state * self.n_actions + action
        self.tally.note(pair, next_state)
        self.cost_sums[:, pair] += costs
        self.visits[pair] += 1
        self.steps += 1

    def stay(self, state: int, action: int, rounds: int) -> None:
        """Add rounds that stay in a state, without costs."""
        pair = state * self.n_actions + action
        if rounds:
            self.tally.note_times(pair, state, rounds)
        self.visits[pair] += rounds
        self.steps += rounds

    def is_full(self, max_steps: int, visit_caps: Ints | None) -> bool:
        """Return True if a cap of the episode has been reached."""
        return self.steps >= max_steps or (visit_caps is not None and bool((self.visits >= visit_caps.ravel()).any()))

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return super().state() | {"steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self.steps = read_fields(state, {"steps": integer()})["steps"]
        need_that(self.steps == self.visits.sum(), "steps must be the sum of visits")


class Counts(Seen):
    """Statistics of everything that an agent has seen."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        super().__init__(n_states, n_actions, n_costs)
        self._table: Ints | None = None  # the dense table, once it has been asked for

    def add(self, record: Seen) -> None:
        """Add an episode, or several."""
        self.tally.add(record.tally)
        self.noise.add(record.noise)
        self.unknown_costs += record.unknown_costs
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

    def imagining(self, pairs: Ints, target: int | Ints) -> "Counts":
        """Return the counts as if each of these pairs had led to a target once more; for drawing a sample only.

        ``target``: a state, or one for every pair.

        >>> counts = Counts(2, 1, 1)
        >>> counts.imagining(np.array([1]), 0).transitions.tolist()
        [[0, 0], [1, 0]]
        """
        other = Counts(self.n_states, self.n_actions, len(self.cost_sums))
        other.tally, other.visits = self.tally.copy(), self.visits.copy()
        other.tally.add_numbers(np.asarray(pairs, dtype=np.int64) * self.n_states + target)
        other.visits[pairs] += 1
        return other

    def mean_costs(
        self, optimistic: float | None = None, guess: Floats | None = None, weight: Floats | float = 0.0
    ) -> Floats:
        """Return empirical means (m+1, S, A), and 0 for an untried pair.

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

    def hopeful_costs(
        self, optimistic: float | None = None, guess: Floats | None = None, weight: Floats | float = 0.0
    ) -> Floats:
        """Return the costs (m+1, S, A) to plan with: the means, with a better objective for pairs that were not tried.

        See ``untried_costs``; the arguments are those of ``mean_costs``. Constrained costs of an untried pair are 0.
        """
        means = self.mean_costs(optimistic, guess, weight)
        tried = self.pairs > 0
        if guess is not None:
            tried = tried | (np.broadcast_to(weight, tried.shape) > 0.0)
        if optimistic is not None or not tried.any():
            return means
        if not tried.all():
            means[0][~tried] = best_objective(means[0][tried])
        elif guess is None and np.ptp(means[0]) == 0.0:
            means[0] = favouring_rarely_tried(means[0], self.pairs.astype(np.float64))
        return means

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        super().restore(state)
        self._table = None


def need_table(n_states: int, n_actions: int) -> None:
    """Raise an error if a dense table of counts would take more memory than allowed."""
    need(8.0 * n_states**2 * n_actions, f"a table of {n_states:,} x {n_actions:,} x {n_states:,} counts", AgentError)
