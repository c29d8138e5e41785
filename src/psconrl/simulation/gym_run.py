"""Playing an agent on a Gymnasium environment with finite spaces, step by step.

The objective is the negative reward. Costs, and the conversion of an episodic environment to a continuing one, are
those of ``psconrl.continuing``.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.envs.continuing import ContinuingEnv, continuing
from psconrl.envs.gym_env import CMDPEnv
from psconrl.errors import AgentError
from psconrl.learning.runtime.adapter import adapt
from psconrl.learning.runtime.contract import Learner
from psconrl.learning.runtime.player import Player
from psconrl.model.names import Names
from psconrl.model.units import Units
from psconrl.simulation.run import Run, Snapshots


class GymSimulation(Run):
    """Run of an agent in a Gymnasium environment. An agent that plans in the background keeps playing meanwhile."""

    def __init__(self, env: Any, agent: Player | Learner, seed: int | None = None) -> None:
        task = env if isinstance(env, ContinuingEnv) else continuing(env)
        sizes = (task.states.size, task.actions.size)
        player = agent if isinstance(agent, Player) else adapt(agent, *sizes, _thresholds(env, agent), seed)
        if (player.n_states, player.n_actions) != sizes:
            raise AgentError(
                f"the environment has {sizes[0]} states and {sizes[1]} actions, the agent was made for "
                f"{player.n_states} and {player.n_actions}"
            )
        m = player.n_costs - 1
        names = task.cost_names
        if len(names) != m + 1:
            names = ("reward", *(("cost",) if m == 1 else (f"cost {i}" for i in range(1, m + 1))))
        super().__init__(player, player.thresholds, names, {"seed": seed, "env": str(env), "maximise": True})
        self.env = task
        self.state = task.reset(seed=seed)[0]

    def _advance(self, horizon: int, grid: Ints, reached: int, at: Snapshots) -> tuple[int, bool]:
        current = self.agent.present(self.state)
        if current.record.steps == 0:
            self._note_beginning(current.episode, current.planning_time)
        over = False
        while self.round < horizon and not over:
            action = self.agent.act(self.state)
            try:
                next_state, costs = self._step(action)
            except BaseException:
                current.asked_in = current.action = None  # the step had no outcome: the run may be continued
                raise
            over = self.agent.note(action, next_state, costs)
            if self._recorder is not None:
                self._recorder.note(self.state, action, next_state, costs)
            self.state = next_state
            self.cumulative += costs
            self.round += 1
            excess = self.cumulative[1:] - self.round * self.thresholds
            np.maximum(self.largest_excess, excess, out=self.largest_excess)
            self.log.length[-1] += 1
            if reached < grid.size and grid[reached] == self.round:
                at.cumulative[reached] = self.cumulative
                at.largest_excess[reached] = self.largest_excess
                reached += 1
        return reached, over

    def _names(self) -> Names:
        env = self.env.unwrapped
        return env.model.names if isinstance(env, CMDPEnv) else Names(None, None, tuple(self.cost_names), True, Units())

    def _step(self, action: int) -> tuple[int, Floats]:
        next_state, reward, _, _, info = self.env.step(action)
        m = self.agent.n_costs - 1
        if info["costs"].size != m:
            raise AgentError(
                f"the environment reports {info['costs'].size} constrained costs, the agent has {m} limits; give a "
                "limit for each (limits= of psconrl.continuing, or --threshold NAME=VALUE), or report as many in "
                "info['costs']"
            )
        return next_state, np.append(-reward, info["costs"])


def _thresholds(env: Any, agent: Learner) -> ArrayLike:
    """Return the thresholds of a user's object: its own, or those of the environment's model if there is one."""
    if hasattr(agent, "thresholds"):
        return np.asarray(agent.thresholds)
    if isinstance(env.unwrapped, CMDPEnv):
        return env.unwrapped.model.thresholds
    raise AgentError(
        "an environment does not say how many costs it has; hand in psconrl.agents.adapt(agent, n_states, n_actions, "
        "thresholds), or give the agent an attribute thresholds"
    )
