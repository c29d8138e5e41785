"""An agent without a base class, as a user writes one."""

import numpy as np

from psconrl import Episode


class Checked:
    """Plays at random, and validates its own saved state: the library does not know what it should be."""

    name = "checked agent"

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.visits, self.costs = np.ones(4), np.zeros(4)

    def begin(self, state):
        share = self.rng.random()
        return Episode(np.full((2, 2), [share, 1 - share]), max_steps=int(self.rng.integers(1, 9)), kind="mixed")

    def end(self, record):
        self.visits += record.visits
        self.costs += record.cost_sums[0]

    def state(self):
        return {"rng": self.rng.bit_generator.state, "visits": self.visits, "costs": self.costs}

    def restore(self, state):
        self.rng.bit_generator.state = state["rng"]
        self.visits, self.costs = np.array(state["visits"]), np.array(state["costs"])
        if self.visits.dtype != float or not self.visits.shape == self.costs.shape == (4,):
            raise ValueError("not what was saved")
        self.costs = self.costs.astype(float)
