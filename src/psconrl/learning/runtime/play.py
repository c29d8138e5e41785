"""An episode in progress: the policy to play, and the record so far."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import AgentError
from psconrl.learning.checks import is_index, saved_floats
from psconrl.learning.posterior.counts import Record
from psconrl.learning.runtime.contract import Episode


@dataclass(eq=False)
class Play:
    """An episode in progress."""

    episode: Episode
    record: Record
    asked_in: int | None = None  # the state of the last action, while its outcome is awaited
    action: int | None = None
    planning_time: float = 0.0  # seconds spent planning; nan if unknown
    interim: bool = False  # True if it is played only until a plan is ready

    def distribution(self, state: int) -> Floats:
        """Return the action distribution in a state. An interim episode repeats a policy of finite length."""
        step, policy = self.record.steps, self.episode.policy
        return self.episode.row(step % len(policy) if self.interim and policy.ndim == 3 else step, state)

    def is_full(self) -> bool:
        """Return True if a cap of the episode has been reached."""
        return self.record.is_full(self.episode.max_steps, self.episode.visit_caps)

    def end_with_next_step(self) -> None:
        """End the episode with the outcome that is awaited."""
        self.episode = replace(self.episode, max_steps=self.record.steps + 1)

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return {
            "policy": self.episode.policy,
            "max_steps": self.episode.max_steps,
            "visit_caps": self.episode.visit_caps,
            "kind": self.episode.kind,
            "value": self.episode.value,
            "record": self.record.state(),
            "state": self.asked_in,
            "action": self.action,
            "planning_time": self.planning_time,
            "interim": self.interim,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned, for an agent of the same sizes."""
        shape, caps = self.record.pairs.shape, state["visit_caps"]
        self.episode = Episode(
            checked_policy(state["policy"], shape),
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
        self.planning_time, self.interim = float(state.get("planning_time", math.nan)), state.get("interim", False)
        if not isinstance(self.interim, bool):
            raise AgentError("interim must be True or False")


def checked_policy(saved: Any, shape: tuple[int, ...]) -> Floats:
    """Return a policy from a file after checking it, for an agent with (S, A) = ``shape``."""
    given = np.asarray(saved)
    policy = saved_floats(given, given.shape[:-2] + shape, "policy")
    if policy.ndim > 3 or not policy.size or (policy < 0).any() or not (policy.sum(axis=-1) > 0).all():
        raise AgentError("policy must hold distributions over actions")
    return policy
