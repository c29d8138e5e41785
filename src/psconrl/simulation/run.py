"""Base class of runs of an agent: rounds, checkpoints, episodes, interruption."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psconrl._version import __version__
from psconrl.base.arrays import Floats, Ints
from psconrl.errors import ConfigError
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.player import Player
from psconrl.model.names import Names
from psconrl.simulation.interrupt import Interrupted, deferred_interrupts
from psconrl.simulation.run_trajectory import TrajectoryRecorder
from psconrl.simulation.trace import EpisodeLog, PolicyLog, Trace, checkpoint_rounds

Progress = Callable[[Any], None]


class Snapshots(NamedTuple):
    """Values recorded at each of n checkpoints."""

    cumulative: Floats  # (n, m+1)
    largest_excess: Floats  # (n, m)


class Run(ABC):
    """Run of an agent up to a horizon, which can be extended. A subclass implements ``_advance``."""

    state: int  # current state

    def __init__(
        self,
        agent: Player,
        thresholds: Floats,
        cost_names: tuple[str, ...],
        provenance: dict[str, Any],
        resumed: bool = False,
    ) -> None:
        if not resumed:
            agent.finish()  # an episode begun elsewhere cannot be continued here; the agent learns from it
        self.agent = agent
        self.thresholds = thresholds
        self.cost_names = cost_names
        sizes = {"states": agent.n_states, "actions": agent.n_actions}
        self.provenance = {"psconrl": __version__, "agent": agent.recipe} | sizes | provenance
        self.round = 0
        self.cumulative = np.zeros(agent.n_costs)
        self.largest_excess = np.zeros(agent.n_costs - 1)  # over all rounds so far, not only checkpoints
        self.log = EpisodeLog()
        self.seconds = 0.0
        self.horizon = 0  # of the last call, so that an interrupted run can be finished
        self._rounds: list[int] = []
        self._costs: list[Floats] = []
        self._excesses: list[Floats] = []
        self._recorder: TrajectoryRecorder | None = None

    @abstractmethod
    def _advance(self, horizon: int, grid: Ints, reached: int, at: Snapshots) -> tuple[int, bool]:
        """Play on, at most to the horizon and to the end of the episode.

        Returns the index of the next checkpoint, and True if the episode is over.
        """

    def record_trajectory(self) -> None:
        """Record the rounds from now on, for ``Trace.trajectory``. They are not saved with the run.

        A round takes 8 bytes for each of state, action and costs; agents that learn at every round play more slowly.
        """
        if self._recorder is None:
            sizes = self.agent.n_states, self.agent.n_actions
            self._recorder = TrajectoryRecorder(*sizes, self._names(), self.round)

    @abstractmethod
    def _names(self) -> Names:
        """Return the names of states, actions and costs."""

    def run(
        self,
        horizon: int,
        checkpoints: int | str | ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        """Play until ``horizon`` rounds have been played in total.

        Ctrl-C raises ``Interrupted``, a KeyboardInterrupt with the run so far in its ``trace``; the run may continue.
        """
        grid = checkpoint_rounds(horizon, checkpoints)
        if horizon < self.round:
            raise ConfigError(f"the run has already played {self.round} rounds; horizon must be at least that")
        self.horizon = int(horizon)
        if self._recorder is not None:
            self._recorder.make_room(self.horizon)
        grid = grid[grid > self.round]
        at = Snapshots(np.zeros((grid.size, self.cumulative.size)), np.zeros((grid.size, self.largest_excess.size)))
        reached = 0
        began = time.perf_counter() - self.seconds
        asked = False
        try:
            with deferred_interrupts() as stop:
                while self.round < horizon and not stop.asked:
                    before = reached
                    reached, over = self._advance(horizon, grid, reached, at)
                    self._rounds += grid[before:reached].tolist()
                    self._costs += list(at.cumulative[before:reached])
                    self._excesses += list(at.largest_excess[before:reached])
                    if over:  # after updating the run's own records, since the agent's watchers may raise
                        self.agent.finish()
                    self.seconds = time.perf_counter() - began
                    if progress is not None:
                        progress(self)
                asked = stop.asked
        except KeyboardInterrupt:
            asked = True
        self.seconds = time.perf_counter() - began
        trace = self.trace(interrupted=self.round < horizon)
        if asked:
            raise Interrupted(trace=trace)
        return trace

    def _note_beginning(self, episode: Episode, seconds: float) -> None:
        self.log.start.append(self.round)
        self.log.length.append(0)
        self.log.kind.append(episode.kind)
        self.log.seconds.append(seconds)
        self.log.value.append(episode.value)

    def trace(self, interrupted: bool = False) -> Trace:
        """Return the trace of the run so far."""
        seconds = {"seconds": self.seconds, "planning_seconds": float(sum(self.log.seconds))}
        reached, gathered, excesses = list(self._rounds), list(self._costs), list(self._excesses)
        if interrupted and self.round > (reached[-1] if reached else 0):  # the last round counts as a checkpoint
            reached.append(self.round)
            gathered.append(self.cumulative)
            excesses.append(self.largest_excess)
        return Trace(
            np.array(reached, dtype=np.int64),
            np.array(gathered).reshape(len(reached), self.cumulative.size),
            np.array(excesses).reshape(len(reached), self.largest_excess.size),
            self.log.copy(),
            self.thresholds,
            self.cost_names,
            self.provenance | seconds,
            interrupted,
            self._policies(),
            None if self._recorder is None else self._recorder.so_far(self.state),
        )

    def _policies(self) -> PolicyLog:
        """Return the evaluated policies; empty unless a subclass evaluates them."""
        return PolicyLog()
