"""A leaderboard of two environments, and an agent of the user."""

TINY = """
name = "Leaderboard"
seed = 5
replicates = 2
[agents.psconrl]
setting = "ours"
[agents.uniform]
[experiments.chain]
costs = ["known", "noisy"]
horizon = 320
[experiments.queue]
agents = ["psconrl", "uniform"]
costs = ["known", "noisy"]
horizon = 320
quick = { horizon = 160, replicates = 1, agents = ["uniform"] }
"""
# The least action with a probability of its own: quick, deterministic given the seed, and refuses two constraints.
MINE = """
import numpy as np
from psconrl import Episode

class Mine:
    title = "Mine, mixed"
    def __init__(self, n_states, n_actions, thresholds, costs=None, seed=None, least=0.5):
        if len(thresholds) > 1:
            raise ValueError("one constraint only")
        self.policy = np.full((n_states, n_actions), (1 - least) / n_actions)
        self.policy[:, 0] += least
    def begin(self, state):
        return Episode(self.policy, max_steps=40)
    def end(self, record):
        pass
"""
