"""An episode in progress: the policy to play, and the record so far."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.saved_fields import (
    Kind,
    distributions,
    flag,
    integer,
    integers,
    maybe,
    need_that,
    read_fields,
    real,
    text,
)
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.runtime.contract import NO_CAP, Episode
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
        S, A = counts.n_states, counts.n_actions
        saved = read_fields(
            state,
            {
                "policy": saved_policy(S, A),
                "max_steps": integer(1, NO_CAP),
                "visit_caps": maybe(integers((S, A), 1, NO_CAP)),
                "kind": text(),
                "value": real(infinite=True, unknown=True),
                "state": maybe(integer(0, S - 1)),
                "action": maybe(integer(0, A - 1)),
                "planning_time": real(0.0, unknown=True),
                "interim": flag,
            },
        )
        episode = Episode(*(saved[name] for name in ("policy", "max_steps", "visit_caps", "kind", "value")))
        record = Record.empty(counts)
        read_fields(state, {"record": record.restore})
        asked_in, action = saved["state"], saved["action"]
        need_that((asked_in is None) == (action is None), "state and action must both be missing, or none")
        play = cls(episode, record, asked_in, action, saved["planning_time"], saved["interim"])
        need_that(play.interim or not play.is_full(), "max_steps and visit_caps must not have been reached")
        need_that(not play.interim or episode.visit_caps is None, "an interim episode must have no visit_caps")
        return play


def saved_policy(n_states: int, n_actions: int) -> Kind:
    """Return the kind of a saved policy, (S, A), or (H, S, A) for an episode of H rounds."""

    def read(value: Any) -> Floats:
        steps = (None,) * (np.ndim(value) == 3)
        policy: Floats = distributions((*steps, n_states, n_actions))(value)
        need_that(policy.size, "must not be empty")
        return policy

    return read
