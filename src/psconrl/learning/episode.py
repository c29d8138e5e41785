"""An episode: what to play and until when, and what has come of it so far."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import AgentError
from psconrl.learning.checks import is_index, saved_floats
from psconrl.learning.counts import Counts, Record

NO_CAP = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Episode:
    """What to play, and until when: the episode ends with the step after which a limit is reached."""

    policy: Floats  # (S, A), or (H, S, A) for a policy that changes from step to step
    max_steps: int = NO_CAP
    visit_caps: Ints | None = None  # (S, A): how often a pair may be visited before the episode ends
    kind: str = "optimal"  # or "explore", "uniform", "baseline", ...
    value: float = math.nan  # what the agent expects of the objective, in costs

    @classmethod
    def uniform(
        cls, n_states: int, n_actions: int, max_steps: int = NO_CAP, visit_caps: Ints | None = None,
        kind: str = "uniform",
    ) -> "Episode":  # fmt: skip
        """Every action with equal probability: also what to play where no plan could be settled ("unsettled")."""
        return cls(np.full((n_states, n_actions), 1.0 / n_actions), max_steps, visit_caps, kind)

    def row(self, step: int, state: int) -> Floats:
        """The distribution of the action in a state, ``step`` steps into the episode."""
        if self.policy.ndim == 2:
            return np.asarray(self.policy[state])
        return np.asarray(self.policy[min(step, len(self.policy) - 1), state])


@dataclass(eq=False)
class Play:
    """An episode in progress: what to play, and what has come of it so far."""

    episode: Episode
    record: Record
    state: int | None = None  # where an action was asked for and its outcome is awaited
    action: int | None = None

    def is_full(self) -> bool:
        """Has a limit of the episode been reached?"""
        return self.record.is_full(self.episode.max_steps, self.episode.visit_caps)

    def end_with_next_step(self) -> None:
        """Let the outcome that is awaited be the last of the episode."""
        self.episode = replace(self.episode, max_steps=self.record.steps + 1)

    def as_saved(self) -> dict[str, Any]:
        """For saving."""
        return {
            "policy": self.episode.policy,
            "max_steps": self.episode.max_steps,
            "visit_caps": self.episode.visit_caps,
            "kind": self.episode.kind,
            "value": self.episode.value,
            "record": self.record.state(),
            "state": self.state,
            "action": self.action,
        }

    @classmethod
    def restored(cls, saved: dict[str, Any], counts: Counts) -> "Play":
        """The episode that was saved, of an agent with these counts."""
        shape = (counts.n_states, counts.n_actions)
        given, caps = np.asarray(saved["policy"]), saved["visit_caps"]
        policy = saved_floats(given, given.shape[:-2] + shape, "policy")
        if policy.ndim > 3 or not policy.size or (policy < 0).any() or not (policy.sum(axis=-1) > 0).all():
            raise AgentError("policy must hold distributions over actions")
        episode = Episode(
            policy,
            int(saved["max_steps"]),
            None if caps is None else saved_floats(caps, shape, "visit_caps").astype(np.int64),
            str(saved["kind"]),
            float(saved["value"]),
        )
        record = Record.empty(counts)
        record.restore(saved["record"])
        state, action = saved["state"], saved["action"]
        asked = state is not None and action is not None
        if asked and not (is_index(state, counts.n_states) and is_index(action, counts.n_actions)):
            raise AgentError("state and action must be those of the agent")
        return cls(episode, record, *((state, action) if asked else (None, None)))
