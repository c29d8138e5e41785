"""Mixture policies: deterministic policies, one of which is drawn at the start of a run and played throughout.

An initial randomisation can do what no stationary policy can, such as send half of all runs to each of two closed
classes, or keep each run in one of two classes. Averages of a mixture are expectations over the initial draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.planning.proof.certificate import Certificate


@dataclass(frozen=True, eq=False)
class PolicyMixture:
    """Deterministic policies and the probability with which a run draws each."""

    policies: Ints  # (k, S)
    shares: Floats  # (k,) probabilities; they sum to one
    distributions: Floats  # (k, S) long-run state frequencies under each policy, from the initial distribution
    policy_certificate: Certificate  # of ``plan.policy``, the stationary one: its cost and its excess over thresholds

    def __len__(self) -> int:
        return len(self.shares)

    def draw(self, rng: np.random.Generator) -> int:
        """Draw the index of the policy of a new run."""
        reached = np.cumsum(self.shares)
        return int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))


def evaluate_mixture(cmdp: CMDP, policies: Ints, shares: Floats) -> tuple[Evaluation, Floats]:
    """Return the exact evaluation of a mixture and the state distribution (k, S) under each of its policies.

    Averages, frequencies, gains and biases of a mixture are means over its policies.
    """
    found = [evaluate_policy(cmdp, one_hot(actions, cmdp.n_actions)) for actions in policies]
    return mean_evaluation(shares, found), np.array([one.occupancy.sum(axis=1) for one in found])


def mean_evaluation(shares: Floats, found: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of a mixture from those of its policies."""
    return Evaluation(
        sum(share * one.costs for share, one in zip(shares, found, strict=True)),
        sum(share * one.occupancy for share, one in zip(shares, found, strict=True)),
        sum(share * one.gains for share, one in zip(shares, found, strict=True)),
        sum(share * one.biases for share, one in zip(shares, found, strict=True)),
        tuple(states for one in found for states in one.classes),
        found[0].objective_sign,
    )
