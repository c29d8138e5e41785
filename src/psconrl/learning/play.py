"""An episode in progress: what to play, and what has come of it so far."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.errors import AgentError
from psconrl.learning.checks import is_index, saved_floats
from psconrl.learning.contract import Episode
from psconrl.learning.counts import Record


@dataclass(eq=False)
class Play:
    """An episode in progress."""

    episode: Episode
    record: Record
    asked_in: int | None = None  # the state in which an action was asked for and its outcome is awaited
    action: int | None = None

    def is_full(self) -> bool:
        """Has a limit of the episode been reached?"""
        return self.record.is_full(self.episode.max_steps, self.episode.visit_caps)

    def end_with_next_step(self) -> None:
        """Let the outcome that is awaited be the last of the episode."""
        self.episode = replace(self.episode, max_steps=self.record.steps + 1)

    def state(self) -> dict[str, Any]:
        """For saving."""
        return {
            "policy": self.episode.policy,
            "max_steps": self.episode.max_steps,
            "visit_caps": self.episode.visit_caps,
            "kind": self.episode.kind,
            "value": self.episode.value,
            "record": self.record.state(),
            "state": self.asked_in,
            "action": self.action,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned, for an agent of the same sizes."""
        shape = self.record.pairs.shape
        given, caps = np.asarray(state["policy"]), state["visit_caps"]
        policy = saved_floats(given, given.shape[:-2] + shape, "policy")
        if policy.ndim > 3 or not policy.size or (policy < 0).any() or not (policy.sum(axis=-1) > 0).all():
            raise AgentError("policy must hold distributions over actions")
        self.episode = Episode(
            policy,
            int(state["max_steps"]),
            None if caps is None else saved_floats(caps, shape, "visit_caps").astype(np.int64),
            str(state["kind"]),
            float(state["value"]),
        )
        self.record.restore(state["record"])
        self.asked_in, self.action = state["state"], state["action"]
        if self.asked_in is None or self.action is None:
            self.asked_in = self.action = None
        elif not (is_index(self.asked_in, shape[0]) and is_index(self.action, shape[1])):
            raise AgentError("state and action must be those of the agent")
