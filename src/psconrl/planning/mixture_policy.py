"""A lot at the start: deterministic policies, one of which is drawn for a whole run.

What no stationary policy does, a lot may: half of all runs end here and half there, or stay in one of two places each.
Averages of a mixture are expectations over the lot.
"""

import sys
from dataclasses import dataclass, field

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.kernels.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.proof import Certificate

MANY_RUNS = 10_000  # generators whose lots are remembered before it is asked which of them are still in use


@dataclass(frozen=True, eq=False)
class PolicyMixture:
    """Policies and the chances with which a run draws each."""

    policies: Ints  # (k, S)
    shares: Floats  # (k,) of sum one
    distributions: Floats  # (k, S) the long-run frequencies of the states under each, from the initial law
    policy_certificate: Certificate  # of ``plan.policy``, which draws no lot: what it costs, by how much it exceeds
    _runs: "_Runs" = field(default_factory=lambda: _Runs(), init=False, repr=False)

    def __len__(self) -> int:
        return len(self.shares)

    def draw(self, rng: np.random.Generator) -> Ints:
        """The policy (S,) of a new run."""
        return np.asarray(self.policies[self._number(rng)])

    def drawn_for(self, rng: np.random.Generator) -> Ints:
        """The policy (S,) of the run that this generator belongs to: drawn when it is first seen, and kept."""
        if rng not in self._runs.drawn:
            self._runs.add(rng, self._number(rng))
        return np.asarray(self.policies[self._runs.drawn[rng]])

    def _number(self, rng: np.random.Generator) -> int:
        reached = np.cumsum(self.shares)
        return int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))


class _Runs:
    """The number that each run has drawn, by its generator, for as long as anybody may ask with that again."""

    def __init__(self) -> None:
        self.drawn: dict[np.random.Generator, int] = {}
        self._room = MANY_RUNS

    def add(self, rng: np.random.Generator, number: int) -> None:
        if len(self.drawn) >= self._room:
            self._forget_finished()
            self._room = max(MANY_RUNS, 2 * len(self.drawn))
        self.drawn[rng] = number

    def _forget_finished(self) -> None:
        """Forget generators that nobody else holds; NumPy's cannot be referred to weakly, so references are counted."""
        self.drawn[np.random.default_rng(0)] = -1  # which nobody holds
        counts = [sys.getrefcount(rng) for rng in self.drawn]
        of_nobody = counts[-1]
        in_use = zip(self.drawn.items(), counts, strict=True)
        self.drawn = {rng: number for (rng, number), count in in_use if count > of_nobody}


def evaluate_mixture(cmdp: CMDP, policies: Ints, shares: Floats) -> tuple[Evaluation, Floats]:
    """The exact averages of a mixture, and the law of the states (k, S) under each of its policies.

    All that is linear in the policies is the mean over them: averages, frequencies, gains and biases.
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
