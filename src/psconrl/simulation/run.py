"""A run of an agent, whatever it is played on: rounds, checkpoints, episodes, interruption."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl._version import __version__
from psconrl.arrays import Floats, Ints
from psconrl.errors import ConfigError
from psconrl.learning.contract import Episode
from psconrl.learning.player import Player
from psconrl.simulation.interrupt import Interrupted, deferred_interrupts
from psconrl.simulation.trace import EpisodeLog, Trace, checkpoint_rounds

Progress = Callable[[Any], None]


class Run(ABC):
    """Plays to a horizon, and on from there when asked again. A subclass knows how to advance."""

    def __init__(
        self,
        agent: Player,
        thresholds: Floats,
        cost_names: tuple[str, ...],
        provenance: dict[str, Any],
        resumed: bool = False,
    ) -> None:
        if not resumed:
            agent.finish()  # an episode begun elsewhere cannot be continued here; what came of it is learned
        self.agent = agent
        self.thresholds = thresholds
        self.cost_names = cost_names
        self.provenance = {"psconrl": __version__, "agent": agent.recipe} | provenance
        self.round = 0
        self.cumulative = np.zeros(agent.n_costs)
        self.log = EpisodeLog()
        self.seconds = 0.0
        self.horizon = 0  # of the last call, so that a run that was cut can be finished
        self._rounds: list[int] = []
        self._costs: list[Floats] = []

    @abstractmethod
    def _advance(self, horizon: int, grid: Ints, reached: int, at_checkpoints: Floats) -> tuple[int, bool]:
        """Play on, at most to the horizon and to the end of the episode; says which checkpoint comes next, and whether
        the episode is over.
        """

    def run(
        self,
        horizon: int,
        checkpoints: int | str | ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Trace:
        """Play until ``horizon`` rounds have been played in all.

        Ctrl-C raises ``Interrupted``, a KeyboardInterrupt, with what was done in its ``trace``; the run may continue.
        """
        grid = checkpoint_rounds(horizon, checkpoints)
        if horizon < self.round:
            raise ConfigError(f"the run has already played {self.round} rounds; horizon must be at least that")
        self.horizon = int(horizon)
        grid = grid[grid > self.round]
        at_checkpoints = np.zeros((grid.size, self.cumulative.size))
        reached = 0
        began = time.perf_counter() - self.seconds
        asked = False
        try:
            with deferred_interrupts() as stop:
                while self.round < horizon and not stop.asked:
                    before = reached
                    reached, over = self._advance(horizon, grid, reached, at_checkpoints)
                    self._rounds += grid[before:reached].tolist()
                    self._costs += list(at_checkpoints[before:reached])
                    if over:  # with the run's own books in order, since the agent's watchers may raise
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
        """The run so far."""
        seconds = {"seconds": self.seconds, "planning_seconds": float(sum(self.log.seconds))}
        reached, gathered = list(self._rounds), list(self._costs)
        if interrupted and self.round > (reached[-1] if reached else 0):  # where it stopped counts as a checkpoint
            reached.append(self.round)
            gathered.append(self.cumulative)
        costs = np.array(gathered).reshape(-1, self.cumulative.size)
        rounds = np.array(reached, dtype=np.int64)
        return Trace(
            rounds, costs, self.log.copy(), self.thresholds, self.cost_names, self.provenance | seconds, interrupted
        )
