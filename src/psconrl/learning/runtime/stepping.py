"""Agents that learn at every round instead of once per episode.

Their episodes are blocks of rounds during which the policy array is updated in place. The loop that plays a block
informs the agent of every round. ``observe`` calls ``learn``. So does a simulation on a model, unless the agent has a
``learner``, a compiled class that the play loop calls directly. Both compute the same function, so results agree bit
for bit. A loop of another library, which uses ``begin`` and ``end`` only, gets episodes of one round.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats
from psconrl.base.caps import MOST_ROUNDS
from psconrl.base.saved_fields import distributions, integer, need_that, read_fields
from psconrl.kernels.play.rounds import RoundLearner
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_costs
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.background import Executor
from psconrl.learning.runtime.contract import Episode


class Stepping(Agent):
    """Base class of agents that learn at every round.

    A subclass keeps ``policy`` (S, A) up to date in ``_learn``; its ``_open_block`` returns how many rounds the next
    block may last. If it also has a ``learner``, simulations on a model run at the speed of compiled code.
    """

    policy: Floats  # (S, A) at present
    _unbooked: int = 0  # rounds that were learned from but not yet counted

    @property
    def learner(self) -> RoundLearner | None:
        """Compiled learner that the play loop calls after every round; if None, it calls ``learn``."""
        return None

    @abstractmethod
    def _learn(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Learn from one round exactly as the ``learner`` does."""

    def _need_within_block(self, rounds: int) -> None:
        """Raise an error if an episode from a file may last longer than its block, which has some rounds left."""
        left = 0 if self._play is None else self._play.episode.max_steps - self._play.record.steps
        need_that(left <= rounds, f"max_steps must leave {rounds:,} rounds at most, the rest of the block")

    @abstractmethod
    def _open_block(self) -> int:
        """Prepare the next round, and return the number of rounds in this block."""

    def learned(self, rounds: int) -> None:
        """Note that a number of rounds of a block have been learned from, by ``learn`` or by a compiled loop."""
        self._unbooked += rounds

    def begin(self, state: int) -> Episode:
        """Return an episode of one round of the present policy, for loops that do not call ``learn``."""
        self._open_block()
        return Episode(self.policy.copy(), max_steps=1, kind="learning")

    def _planned(self, state: int) -> Episode:
        """Return a block of rounds with a new copy of the policy, since an event may keep that of the last block."""
        rounds = self._open_block()
        self.policy = self.policy.copy()
        return Episode(self.policy, max_steps=rounds, kind="learning")

    def note(self, action: int, next_state: int, costs: ArrayLike) -> bool:
        """Note the outcome of the last action, and learn from it."""
        state = None if self._play is None else self._play.asked_in
        over = super().note(action, next_state, costs)
        assert state is not None  # else there was an error
        self.learn(state, int(action), int(next_state), np.atleast_1d(as_costs(costs, "costs")))
        return over

    def learn(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Learn from one round."""
        self._learn(state, action, next_state, costs)
        self.learned(1)

    def end(self, record: Record) -> None:
        """Count the rounds; learn from them, transition by transition, if the loop did not call ``learn``."""
        if not self._unbooked:
            for number, times in zip(record.tally.numbers, record.tally.times, strict=True):
                pair, successor = divmod(int(number), self.n_states)
                costs = record.cost_sums[:, pair] / record.visits[pair]
                for _ in range(times):
                    self.learn(*divmod(pair, self.n_actions), successor, costs)
        self._unbooked = 0
        super().end(record)

    def plan_in_background(self, on: bool = True, executor: Executor | None = None) -> None:
        """Do nothing: there is no plan to wait for, and ``act`` answers at once."""

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        return super().state() | {"live_policy": self.policy, "unbooked": self._unbooked}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned; the block in progress shares the live policy array again."""
        super().restore(state)
        saved = read_fields(
            state, {"live_policy": distributions(self.policy.shape), "unbooked": integer(0, MOST_ROUNDS)}
        )
        self.policy, self._unbooked = saved["live_policy"], saved["unbooked"]
        need_that(self._play is None or not self._play.interim, "an episode must not be interim, as there are no plans")
        played = 0 if self._play is None else self._play.record.steps
        need_that(self._unbooked in (0, played), "unbooked must be the rounds of the episode in progress")
        if self._play is not None:
            self._play.episode = replace(self._play.episode, policy=self.policy)
