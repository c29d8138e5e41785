"""Playing an agent on a Gymnasium environment with discrete spaces, step by step.

The objective is the negative reward. Constrained costs are taken from ``info["costs"]`` (a vector), else from
``info["cost"]`` (a number), else from the third place of a six-tuple, as safe-RL environments return it. An episodic
environment becomes a continuing one: the step after its end, whatever the action, leads to a new start at no cost.
"""

import time
from typing import Any

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.errors import AgentError, ModelError
from psconrl.learning.agent import Agent
from psconrl.simulation.run import Run


class GymSimulation(Run):
    """An agent in a Gymnasium environment."""

    def __init__(self, env: Any, agent: Agent, seed: int | None = None) -> None:
        sizes = (_size(env.observation_space, "observations"), _size(env.action_space, "actions"))
        if (agent.n_states, agent.n_actions) != sizes:
            raise AgentError(
                f"the environment has {sizes[0]} states and {sizes[1]} actions, the agent was made for "
                f"{agent.n_states} and {agent.n_actions}"
            )
        m = agent.n_costs - 1
        names = ("reward", *(("cost",) if m == 1 else (f"cost {i}" for i in range(1, m + 1))))
        super().__init__(agent, agent.thresholds, names, {"seed": seed, "env": str(env)})
        self.env = env
        self.state = int(env.reset(seed=seed)[0])
        self._over = False

    def _advance(self, horizon: int, grid: Ints, reached: int, at_checkpoints: Floats) -> int:
        began = time.perf_counter()
        current = self.agent.play(self.state)
        if current.record.steps == 0:
            self._note_beginning(current.episode, time.perf_counter() - began)
        while self.round < horizon:
            action = self.agent.act(self.state)
            try:
                next_state, costs = self._step(action)
            except BaseException:
                current.state = current.action = None  # nothing came of it: the run may go on
                raise
            self.agent.observe(action, next_state, costs)
            self.state = next_state
            self.cumulative += costs
            self.round += 1
            self.log.length[-1] += 1
            if reached < grid.size and grid[reached] == self.round:
                at_checkpoints[reached] = self.cumulative
                reached += 1
            if self.agent.between_episodes:
                break
        return reached

    def _step(self, action: int) -> tuple[int, Floats]:
        m = self.agent.n_costs - 1
        if self._over:
            self._over = False
            return int(self.env.reset()[0]), np.zeros(m + 1)
        outcome = self.env.step(action)
        observation, reward = outcome[0], outcome[1]
        terminated, truncated, info = outcome[-3:]
        self._over = bool(terminated or truncated)
        if "costs" in info:
            costs = np.atleast_1d(np.asarray(info["costs"], dtype=np.float64))
        elif "cost" in info:
            costs = np.array([float(info["cost"])])
        elif len(outcome) == 6:
            costs = np.atleast_1d(np.asarray(outcome[2], dtype=np.float64))
        else:
            costs = np.zeros(0)
        if costs.size != m:
            raise AgentError(
                f"the environment reports {costs.size} constrained costs, the agent has {m} thresholds; "
                "put them into info['costs'] (or info['cost'])"
            )
        return int(observation), np.append(-float(reward), costs)


def _size(space: Any, what: str) -> int:
    size = getattr(space, "n", None)
    if size is None or int(getattr(space, "start", 0)) != 0:
        raise ModelError(f"{what} must be Discrete and start at 0; got {space}")
    return int(size)
