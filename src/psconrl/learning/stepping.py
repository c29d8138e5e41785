"""Agents that learn at every round, in place of once an episode.

Their episodes are blocks of rounds in which the policy is alive: an array that changes with what is learned. Whoever
plays a block tells the agent of every round: ``observe`` calls ``learn``; the compiled loop of a simulation on a model
calls ``learn_round`` with the agent's ``memory``, a named tuple of arrays whose class ``learns_with`` it. Both are the
same compiled function, so the bits are the same. Somebody else's loop, which knows ``begin`` and ``end`` only, gets
episodes of one round.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import ArrayLike

from psconrl.arrays import Floats
from psconrl.learning.agent import Agent
from psconrl.learning.background import Executor
from psconrl.learning.checks import as_costs
from psconrl.learning.contract import Episode
from psconrl.learning.counts import Record
from psconrl.learning.play import checked_policy

NOTHING = ()  # the memory of an agent that learns once an episode


def learn_round(memory: Any, state: int, action: int, successor: int, costs: Floats) -> None:
    """What a compiled loop calls after every round; overloaded by the type of the memory."""
    raise NotImplementedError("for compiled loops; call agent.learn")


def learns_with(memory_class: type, learn: Any) -> None:
    """Let compiled loops call ``learn(memory, state, action, successor, costs)``, compiled, for memories of a class."""

    @overload(learn_round, strict=False)
    def chosen(memory: Any, state: Any, action: Any, successor: Any, costs: Any) -> Any:
        if getattr(memory, "instance_class", None) is not memory_class:
            return None
        return lambda memory, state, action, successor, costs: learn(memory, state, action, successor, costs)


@overload(learn_round, strict=False)
def _learn_nothing(memory: Any, state: Any, action: Any, successor: Any, costs: Any) -> Any:
    if not isinstance(memory, types.BaseTuple) or len(memory):
        return None
    return lambda memory, state, action, successor, costs: None


class Stepping(Agent):
    """Base of agents that learn at every round.

    A subclass keeps ``policy`` (S, A) up to date in ``learn``, has its ``memory`` for the compiled loop, of which
    ``policy`` is one array, and says in ``_open_block`` how many rounds the next block may last.
    """

    policy: Floats  # (S, A) as it is now
    _unbooked: int = 0  # rounds that were learned from and not yet counted

    @property
    @abstractmethod
    def memory(self) -> Any:
        """The arrays that ``learn_round`` changes, as a named tuple."""

    @abstractmethod
    def _learn(self, state: int, action: int, next_state: int, costs: Floats) -> None:
        """Learn from one round, as ``learn_round`` does."""

    @abstractmethod
    def _open_block(self) -> int:
        """Make ready for the next round, and say how many there are in this block."""

    def learned(self, rounds: int) -> None:
        """So many rounds of a block have been learned from, by ``learn`` or by a compiled loop."""
        self._unbooked += rounds

    def begin(self, state: int) -> Episode:
        """One round of the present policy, for whoever does not call ``learn``."""
        self._open_block()
        return Episode(self.policy.copy(), max_steps=1, kind="learning")

    def _planned(self, state: int) -> Episode:
        """A block of rounds, in which the policy is alive; an event may keep the one of the block before."""
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
        """Count the rounds; learn from them, transition by transition, if whoever played them did not say."""
        if not self._unbooked:
            for number, times in zip(record.tally.numbers, record.tally.times, strict=True):
                pair, successor = divmod(int(number), self.n_states)
                costs = record.cost_sums[:, pair] / record.visits[pair]
                for _ in range(times):
                    self.learn(*divmod(pair, self.n_actions), successor, costs)
        self._unbooked = 0
        super().end(record)

    def think_in_background(self, on: bool = True, executor: Executor | None = None) -> None:
        """Nothing changes: there is no plan to wait for, ``act`` answers at once."""

    def state(self) -> dict[str, Any]:
        """All that has changed since it was made."""
        return super().state() | {"live_policy": self.policy, "unbooked": self._unbooked}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned; the block in progress gets the live policy again."""
        super().restore(state)
        self.policy = np.ascontiguousarray(checked_policy(state["live_policy"], self.policy.shape))
        self._unbooked = int(state["unbooked"])
        if self._play is not None:
            self._play.episode = replace(self._play.episode, policy=self.policy)
