"""What an agent remembers of its experience: how often, where to, and at what cost."""

from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.learning._kernels import add_pairs


class Record:
    """What was gathered while one episode was played. The same layout as ``Counts``."""

    def __init__(self, transitions: Ints, cost_sums: Floats) -> None:
        self.transitions = transitions  # (S*A, S)
        self.cost_sums = cost_sums  # (m+1, S*A)
        self.visits = np.zeros(transitions.shape[0], dtype=np.int64)  # (S*A,)
        self.steps = 0

    @classmethod
    def empty(cls, like: "Counts") -> "Record":
        """A record for an agent with these counts."""
        return cls(np.zeros_like(like.transitions), np.zeros_like(like.cost_sums))

    def copy(self) -> "Record":
        """As it is now; it is cleared and used again for the next episode."""
        other = Record(self.transitions.copy(), self.cost_sums.copy())
        other.visits, other.steps = self.visits.copy(), self.steps
        return other

    def clear(self) -> None:
        """Begin anew."""
        self.transitions.fill(0)
        self.cost_sums.fill(0.0)
        self.visits.fill(0)
        self.steps = 0

    def step(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """One more transition."""
        A = self.transitions.shape[0] // self.transitions.shape[1]
        pair = state * A + action
        self.transitions[pair, next_state] += 1
        self.cost_sums[:, pair] += costs
        self.visits[pair] += 1
        self.steps += 1

    def is_full(self, max_steps: int, visit_caps: Ints | None) -> bool:
        """Has a limit of the episode been reached?"""
        return self.steps >= max_steps or (visit_caps is not None and bool((self.visits >= visit_caps.ravel()).any()))

    def state(self) -> dict[str, Any]:
        """For saving."""
        return {
            "transitions": self.transitions,
            "cost_sums": self.cost_sums,
            "visits": self.visits,
            "steps": self.steps,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.transitions[...] = state["transitions"]
        self.cost_sums[...] = state["cost_sums"]
        self.visits[...] = state["visits"]
        self.steps = int(state["steps"])
        _check(self.transitions, self.cost_sums, self.visits)
        if self.steps != self.visits.sum():
            raise ValueError("steps that were not counted")


class Counts:
    """Sufficient statistics: visits N(s,a), transitions N(s,a,s'), and the sum of every cost in every pair."""

    def __init__(self, n_states: int, n_actions: int, n_costs: int) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self.transitions = np.zeros((n_states * n_actions, n_states), dtype=np.int64)
        self.cost_sums = np.zeros((n_costs, n_states * n_actions))
        self.visits = np.zeros(n_states * n_actions, dtype=np.int64)

    def add(self, record: Record) -> None:
        """Take in an episode."""
        add_pairs(self.visits, self.cost_sums, self.transitions, record.visits, record.cost_sums, record.transitions)

    @property
    def pairs(self) -> Ints:
        """Visits N(s,a), (S, A)."""
        return self.visits.reshape(self.n_states, self.n_actions)

    def mean_costs(self, optimistic: float | None = None) -> Floats:
        """Empirical means (m+1, S, A); an untried pair counts as free.

        ``optimistic`` counts as one more observation of the objective in every pair.
        """
        sums, visits = self.cost_sums, np.maximum(self.visits, 1)
        means = sums / visits
        if optimistic is not None:
            means[0] = (sums[0] + optimistic) / (self.visits + 1)
        return means.reshape(-1, self.n_states, self.n_actions)

    def state(self) -> dict[str, Any]:
        """For saving."""
        return {"transitions": self.transitions, "cost_sums": self.cost_sums, "visits": self.visits}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        self.transitions[...] = state["transitions"]
        self.cost_sums[...] = state["cost_sums"]
        self.visits[...] = state["visits"]
        _check(self.transitions, self.cost_sums, self.visits)


def _check(transitions: Ints, cost_sums: Floats, visits: Ints) -> None:
    """What no experience can have led to came from a damaged file; a planner may never come to an end with it."""
    if (transitions < 0).any() or (transitions.sum(axis=1) != visits).any() or not np.isfinite(cost_sums).all():
        raise ValueError("counts that cannot be")
