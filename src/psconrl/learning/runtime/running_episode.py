"""An episode in progress: the policy to play, and the record so far."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.arrays import Floats
from psconrl.errors import AgentError
from psconrl.learning.checks import as_flag, is_index, saved_floats
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.random_numbers import UniformStream


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

    def draw(self, state: int, uniforms: UniformStream) -> int:
        """Draw the action to take in a state, and await its outcome."""
        cdf = np.cumsum(self.distribution(state))
        u = uniforms.next() * cdf[-1]
        self.asked_in = int(state)
        self.action = min(int(np.searchsorted(cdf, u, side="right")), cdf.size - 1)
        return self.action

    def enter(self, action: int, next_state: int, costs: Floats) -> None:
        """Enter the outcome that is awaited, of the action that was taken."""
        assert self.asked_in is not None
        self.record.step(self.asked_in, action, next_state, costs)
        self.asked_in = self.action = None

    @property
    def is_awaiting(self) -> bool:
        """True if the outcome of an action is awaited."""
        return self.action is not None

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

    @classmethod
    def restored(cls, state: dict[str, Any], counts: Counts) -> "Play":
        """Return the episode whose ``state`` was saved, for an agent of the same sizes."""
        shape, caps = (counts.n_states, counts.n_actions), state["visit_caps"]
        episode = Episode(
            checked_policy(state["policy"], shape),
            int(state["max_steps"]),
            None if caps is None else saved_floats(caps, shape, "visit_caps").astype(np.int64),
            str(state["kind"]),
            float(state["value"]),
        )
        record = Record.empty(counts)
        record.restore(state["record"])
        asked_in, action = state["state"], state["action"]
        if asked_in is None or action is None:
            asked_in = action = None
        elif not (is_index(asked_in, shape[0]) and is_index(action, shape[1])):
            raise AgentError("state and action must be those of the agent")
        return cls(
            episode, record, asked_in, action, float(state["planning_time"]), as_flag(state["interim"], "interim")
        )


def checked_policy(saved: Any, shape: tuple[int, ...]) -> Floats:
    """Return a policy from a file after checking it, for an agent with (S, A) = ``shape``."""
    given = np.asarray(saved)
    policy = saved_floats(given, given.shape[:-2] + shape, "policy")
    if policy.ndim > 3 or not policy.size or (policy < 0).any() or not (policy.sum(axis=-1) > 0).all():
        raise AgentError("policy must hold distributions over actions")
    return policy
