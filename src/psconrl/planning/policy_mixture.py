"""A lot at the start: deterministic policies, one of which is drawn for a whole run.

What no stationary policy does, a lot may: half of all runs end here and half there, or stay in one of two places each.
Averages of a mixture are expectations over the lot.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from psconrl.arrays import Floats, Ints
from psconrl.model.cmdp import CMDP
from psconrl.model.evaluation import Evaluation, evaluate_policy
from psconrl.planning.policy_from_occupancy import one_hot
from psconrl.planning.proof import Certificate

MOST_RUNS = 10_000  # generators whose lots are remembered


@dataclass(frozen=True, eq=False)
class PolicyMixture:
    """Policies and the chances with which a run draws each."""

    policies: Ints  # (k, S)
    shares: Floats  # (k,) of sum one
    laws: Floats  # (k, S) the long-run frequencies of the states under each, from the initial law
    policy_certificate: Certificate  # of ``plan.policy``, which draws no lot: what it costs, by how much it exceeds
    _drawn: "OrderedDict[np.random.Generator, int]" = field(default_factory=OrderedDict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.shares)

    def draw(self, rng: np.random.Generator) -> Ints:
        """The policy (S,) of a new run."""
        return np.asarray(self.policies[self._number(rng)])

    def drawn_for(self, rng: np.random.Generator) -> Ints:
        """The policy (S,) of the run that this generator belongs to: drawn when it is first seen, and kept."""
        if rng not in self._drawn:
            self._drawn[rng] = self._number(rng)
            if len(self._drawn) > MOST_RUNS:
                self._drawn.popitem(last=False)
        else:
            self._drawn.move_to_end(rng)
        return np.asarray(self.policies[self._drawn[rng]])

    def _number(self, rng: np.random.Generator) -> int:
        reached = np.cumsum(self.shares)
        return int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))


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
