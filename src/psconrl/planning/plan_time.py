"""Estimates of the time and memory that planning a large model takes on this machine, before planning begins.

Planning a large sparse model takes some thousand passes over its transitions, fewer if they mix fast. The figures are
those of benchmarks/large.py. One pass is timed here.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.base.sizes import EFFORT_STATES
from psconrl.model.cmdp import CMDP

# Passes over all transitions for a plan of 10,000 states, and as many again for each factor of ten.
PASSES, PASSES_IF_MIXING = 3500, 250
STEPS, MIXED = 40, 0.01  # the chain mixes fast if, after 40 steps of the uniform policy, costs differ by at most 1%
# Per entry of the transitions, per pair and cost, and per state and cost.
BYTES_PER_ENTRY, BYTES_PER_COST, BYTES_PER_STATE = 40.0, 60.0, 1400.0


class PlanningEffort(NamedTuple):
    """Time and memory that planning a model takes."""

    seconds: float
    gigabytes: float  # beyond the program itself

    def __str__(self) -> str:
        minutes = self.seconds / 60.0
        time_needed = f"{self.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} minutes"
        return f"about {time_needed}, {self.gigabytes:.1f} GB"


def planning_effort(cmdp: CMDP) -> PlanningEffort | None:
    """Estimate time and memory of planning a model; None for a small or a dense one, which is not planned by passes."""
    if cmdp.n_states < EFFORT_STATES or cmdp.transition.eliminates:
        return None
    S, q = cmdp.n_states, cmdp.n_constraints + 1
    seconds, mixes = _timed(cmdp)
    passes = (PASSES_IF_MIXING if mixes else PASSES) * (1.0 + max(0.0, math.log10(S / 1e4)))
    size = (
        BYTES_PER_ENTRY * cmdp.transition.n_possible + BYTES_PER_COST * q * S * cmdp.n_actions + BYTES_PER_STATE * q * S
    )
    return PlanningEffort(passes * seconds, size / 1e9)


def _timed(cmdp: CMDP) -> tuple[float, bool]:
    """Return the seconds of one pass over the transitions, and whether the uniform policy mixes fast."""
    pi = cmdp.available / cmdp.available.sum(axis=1, keepdims=True)
    x: Floats = (cmdp.costs.sum(axis=0) * pi).sum(axis=1)
    spread = float(np.ptp(x))
    fastest = np.inf
    for _ in range(STEPS):
        began = time.perf_counter()
        onward = cmdp.transition @ x
        fastest = min(fastest, time.perf_counter() - began)
        x = 0.5 * (x + (onward.reshape(pi.shape) * pi).sum(axis=1))
    return fastest, float(np.ptp(x)) <= MIXED * spread
