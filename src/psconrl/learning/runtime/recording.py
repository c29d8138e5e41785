"""Agents that learn from trajectories: they play one policy for a block of rounds, then update it from their record.

An episode's record has counts, but neither the order of the rounds nor the cost of each. These agents need both.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import LARGEST_COST, need
from psconrl.base.saved_fields import integer, integers, read_fields, reals
from psconrl.errors import AgentError
from psconrl.kernels.play.rounds import Recorder
from psconrl.learning.runtime.stepping import Stepping


class Trajectory(NamedTuple):
    """The rounds of a block in their order."""

    pairs: Ints  # (n,), s * A + a
    successors: Ints  # (n,)
    costs: Floats  # (n, m+1)


class Recording(Stepping):
    """Base class of agents that learn from trajectories.

    A subclass begins each block with ``_record(rounds)``; when the rounds have been played, ``_improve`` updates the
    policy from them and begins the next block.
    """

    _pairs: Ints
    _successors: Ints
    _costs: Floats
    _length: Ints  # (1,), the number of rounds recorded

    @abstractmethod
    def _improve(self, played: Trajectory) -> None:
        """Learn from the rounds of a block, update ``policy``, and begin the next block."""

    @property
    def _most_block_rounds(self) -> int:
        """The most rounds that a block may have: by default those of the present one."""
        return int(self._pairs.size)

    @property
    def learner(self) -> Recorder:
        """The compiled recorder, bound to the present arrays."""
        arrays = (self._pairs, self._successors, self._costs, self._length)
        return Recorder(*arrays, self.n_states, self.n_actions)

    def _record(self, rounds: int) -> None:
        """Begin a block of ``rounds`` rounds."""
        need(8.0 * rounds * (2 + self.n_costs), f"a record of {rounds:,} rounds", AgentError)
        self._pairs, self._successors = np.zeros(rounds, dtype=np.int64), np.zeros(rounds, dtype=np.int64)
        self._costs, self._length = np.zeros((rounds, self.n_costs)), np.zeros(1, dtype=np.int64)

    def _learn(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Record one round, by the compiled recorder."""
        self.learner.learn(state, action, next_state, np.ascontiguousarray(costs))

    def _open_block(self) -> int:
        """Return the rounds left in the block. If it is over, learn from it and begin the next one."""
        if self._length[0] >= self._pairs.size:
            self._improve(Trajectory(self._pairs, self._successors, self._costs))
        return int(self._pairs.size - self._length[0])

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        n = int(self._length[0])
        return super().state() | {
            "block_rounds": self._pairs.size,
            "pairs_played": self._pairs[:n],
            "successors_met": self._successors[:n],
            "costs_met": self._costs[:n],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned."""
        super().restore(state)
        pairs = read_fields(state, {"pairs_played": integers((None,), 0, self.n_states * self.n_actions - 1)})
        n = pairs["pairs_played"].size
        saved = read_fields(
            state,
            {
                "block_rounds": integer(max(n, 1), self._most_block_rounds),
                "successors_met": integers((n,), 0, self.n_states - 1),
                "costs_met": reals((n, self.n_costs), -LARGEST_COST, LARGEST_COST),
            },
        )
        self._record(saved["block_rounds"])
        self._pairs[:n], self._length[0] = pairs["pairs_played"], n
        self._successors[:n], self._costs[:n] = saved["successors_met"], saved["costs_met"]
        self._need_within_block(self._pairs.size - n)
