"""Mixture policies: deterministic policies, one of which is drawn at the start of a run and played throughout.

An initial randomisation can do what no stationary policy can, such as send half of all runs to each of two closed
classes, or keep each run in one of two classes. Averages of a mixture are expectations over the initial draw.
"""

import sys
from dataclasses import dataclass, field

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.kernels.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.proof import Certificate

MANY_RUNS = 10_000  # generators remembered before those no longer in use are dropped


@dataclass(frozen=True, eq=False)
class PolicyMixture:
    """Deterministic policies and the probability with which a run draws each."""

    policies: Ints  # (k, S)
    shares: Floats  # (k,) probabilities; they sum to one
    distributions: Floats  # (k, S) long-run state frequencies under each policy, from the initial distribution
    policy_certificate: Certificate  # of ``plan.policy``, the stationary one: its cost and its excess over thresholds
    _runs: "_Runs" = field(default_factory=lambda: _Runs(), init=False, repr=False)

    def __len__(self) -> int:
        return len(self.shares)

    def draw(self, rng: np.random.Generator) -> Ints:
        """Draw the policy (S,) of a new run."""
        return np.asarray(self.policies[self._number(rng)])

    def drawn_for(self, rng: np.random.Generator) -> Ints:
        """Return the policy (S,) of this generator's run: drawn at the first call with it, and kept."""
        if rng not in self._runs.drawn:
            self._runs.add(rng, self._number(rng))
        return np.asarray(self.policies[self._runs.drawn[rng]])

    def _number(self, rng: np.random.Generator) -> int:
        reached = np.cumsum(self.shares)
        return int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))


class _Runs:
    """The index that each run has drawn, by its generator, for as long as that generator is in use."""

    def __init__(self) -> None:
        self.drawn: dict[np.random.Generator, int] = {}
        self._room = MANY_RUNS

    def add(self, rng: np.random.Generator, number: int) -> None:
        if len(self.drawn) >= self._room:
            self._forget_finished()
            self._room = max(MANY_RUNS, 2 * len(self.drawn))
        self.drawn[rng] = number

    def _forget_finished(self) -> None:
        """Drop generators that are referenced nowhere else, by reference counts: NumPy's have no weak references."""
        self.drawn[np.random.default_rng(0)] = -1  # referenced nowhere else
        counts = [sys.getrefcount(rng) for rng in self.drawn]
        unreferenced = counts[-1]
        in_use = zip(self.drawn.items(), counts, strict=True)
        self.drawn = {rng: number for (rng, number), count in in_use if count > unreferenced}


def evaluate_mixture(cmdp: CMDP, policies: Ints, shares: Floats) -> tuple[Evaluation, Floats]:
    """Return the exact evaluation of a mixture and the state distribution (k, S) under each of its policies.

    Averages, frequencies, gains and biases of a mixture are means over its policies.
    """
    found = [evaluate_policy(cmdp, one_hot(actions, cmdp.n_actions)) for actions in policies]
    mixed = Evaluation(
        sum(share * one.costs for share, one in zip(shares, found, strict=True)),
        sum(share * one.occupancy for share, one in zip(shares, found, strict=True)),
        sum(share * one.gains for share, one in zip(shares, found, strict=True)),
        sum(share * one.biases for share, one in zip(shares, found, strict=True)),
        tuple(states for one in found for states in one.classes),
        found[0].objective_sign,
    )
    return mixed, np.array([one.occupancy.sum(axis=1) for one in found])
