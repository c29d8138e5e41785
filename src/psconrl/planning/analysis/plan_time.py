"""How long a plan of a large model will take, and how much memory: before it is begun, from one look at this machine.

A plan of a large sparse model is some thousand passes over its transitions, fewer where they mix fast: the figures are
those of benchmarks/large.py. One pass is timed here.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from psconrl.arrays import Floats
from psconrl.model.cmdp import CMDP

LARGE = 5000  # states: below, a plan takes a moment
# Passes over all transitions for a plan of 10,000 states, and as many again for each ten times more.
PASSES, PASSES_IF_MIXING = 3500, 250
STEPS, MIXED = 40, 0.01  # after so many steps of the uniform policy costs differ by no more than this share
BYTES_PER_ENTRY, BYTES_PER_COST, BYTES_PER_STATE = 40.0, 60.0, 1400.0  # of transitions, of costs (a pair), and a cost


class Estimate(NamedTuple):
    """What planning a model takes."""

    seconds: float
    gigabytes: float  # beyond the program itself

    def __str__(self) -> str:
        minutes = self.seconds / 60.0
        time_needed = f"{self.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} minutes"
        return f"about {time_needed}, {self.gigabytes:.1f} GB"


def estimate(cmdp: CMDP) -> Estimate | None:
    """What planning a model will take; None if it is a small one."""
    if cmdp.n_states < LARGE or not cmdp.transition.is_sparse:
        return None
    S, q = cmdp.n_states, cmdp.n_constraints + 1
    seconds, mixes = _timed(cmdp)
    passes = (PASSES_IF_MIXING if mixes else PASSES) * (1.0 + max(0.0, math.log10(S / 1e4)))
    size = (
        BYTES_PER_ENTRY * cmdp.transition.n_possible + BYTES_PER_COST * q * S * cmdp.n_actions + BYTES_PER_STATE * q * S
    )
    return Estimate(passes * seconds, size / 1e9)


def _timed(cmdp: CMDP) -> tuple[float, bool]:
    """The seconds of one pass over the transitions, and whether the uniform policy forgets within some steps."""
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
