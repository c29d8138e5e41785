"""A candidate: a policy and the dual point meant to prove it. What a method finds is one until it is checked."""

from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats, Ints


class Dual(NamedTuple):
    """What proves a bound."""

    multipliers: Floats  # (m,)
    potential: Floats  # (S,)
    low_potential: Floats  # (S,) added to it: what one double a state cannot hold
    gains: Floats | None  # (S,) of a multichain proof

    @classmethod
    def nothing(cls, n_states: int, n_constraints: int) -> "Dual":
        """What proves nothing."""
        return cls(np.zeros(n_constraints), np.zeros(n_states), np.zeros(n_states), None)


class Candidate(NamedTuple):
    """What a method found, in scaled costs, on a model of which every state is reachable."""

    feasible: bool
    occupancy: Floats  # (S, A)
    policy: Floats  # (S, A)
    dual: Dual
    columns: tuple[Ints, ...]  # deterministic policies to start a later plan from
    method: str
    note: str = ""
    shares: Floats | None = None  # of the columns, if a lot at the start may choose among them
