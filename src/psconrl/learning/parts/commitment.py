r"""Commitment: when to play one deterministic policy for a whole episode instead of a randomised plan.

An optimal plan mixes deterministic policies, each of which is optimal for the Lagrangian. As one stationary policy it
randomises where they differ. If a randomised action is taken once in 10,000 rounds, the plan keeps the limits over its
horizon, but not within an episode of 100 rounds, and after the episode the agent plans anew. It then waits for ever for
what each plan leaves to the next (docs/theory.md has an example of eight states).

So compare what the plan promises with what it will do in the coming episode, in the sampled model and from the present
state. If they differ, play one of its deterministic policies for the whole episode: that which leaves the balance of
the limits, the virtual queue, nearest to zero. Nothing is lost in the Lagrangian, since each of them is optimal for it.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psconrl.arrays import Floats
from psconrl.learning.checks import as_fraction
from psconrl.learning.episode_planner import Columns
from psconrl.learning.parts.ledger import Ledger
from psconrl.learning.parts.part import Part
from psconrl.model.transition import Transition
from psconrl.products import product

# Averages over an episode may be off by half of this, in ranges of a cost.
TOL = 1e-3


@dataclass(frozen=True)
class RandomisedPlan:
    """A plan for a sampled model that mixes deterministic policies, and the episode in which it is to be played."""

    policy: Floats  # (S, A)
    columns: Columns
    transition: Transition
    costs: Floats  # (m+1, S, A)
    thresholds: Floats  # (m,)
    state: int
    steps: int  # of the episode, at most
    ledger: Ledger | None  # what was spent beyond each limit so far, if that is kept
    rng: np.random.Generator

    @property
    def promised(self) -> Floats:
        """The average of every limited cost over the horizon of the plan, (m,)."""
        return np.asarray((self.columns.shares[:, None] * self.columns.averages[:, 1:]).sum(axis=0))

    @property
    def units(self) -> Floats:
        """The range of every limited cost, (m,), as met so far if a ledger is kept; 1 if it is constant.

        A huge cost that is never incurred must not hide what matters.
        """
        ranges = np.ptp(self.costs[1:].reshape(len(self.costs) - 1, -1), axis=1)
        if self.ledger is not None:
            met = self.ledger.extremes[1] - self.ledger.extremes[0]
            ranges = np.where(met > 0.0, met, ranges)
        return np.where(ranges > 0.0, ranges, 1.0)

    def in_episode(self, policy: Any) -> Floats:
        """The average of every limited cost over the episode, from the present state, (m,); a policy (S, A) or (S,)."""
        if policy.ndim == 1:
            cost = self.costs[1:, np.arange(policy.size), policy]
        else:
            cost = (self.costs[1:] * policy).sum(axis=2)
        shares = self.transition.chain(policy).time_in_states(self.state, self.steps, TOL)
        return np.asarray(product(cost, shares))


class Commitment(Part):
    """Whether to play a plan's randomised policy, or one of the deterministic policies that it mixes."""

    kind: ClassVar[str] = "commitment"
    example: ClassVar[str] = "WhenSlow(0.05)"
    may_be_missing: ClassVar[bool] = True

    @abstractmethod
    def choose(self, plan: RandomisedPlan) -> int | None:
        """The number of the deterministic policy to play for the whole episode; None to play the plan as it is."""


class WhenSlow(Commitment):
    r"""Commit to one policy if a limited cost would differ from the plan's by more than ``within`` of its range.

    With averages :math:`g_j` of the deterministic policies over an episode of L rounds and the balance V, that with the
    least :math:`\sum_i (V_i + L\,(g_{ji} - \tau_i))^2` is played, in units of the range of each cost: after it, every
    balance is as near to zero as it can be. (The linear part alone would spend a small credit by a huge cost.)
    Without a ledger it is drawn with the shares of the plan.
    """

    name: ClassVar[str] = "when-slow"

    def __init__(self, within: float = 0.05) -> None:
        self.within = as_fraction(within, "within")

    def choose(self, plan: RandomisedPlan) -> int | None:
        """Whether to commit, and only then to which: each policy is followed for an episode."""
        if plan.steps < 2 or not plan.thresholds.size:
            return None
        off = np.abs(plan.in_episode(plan.policy) - plan.promised) / plan.units
        if off.max() <= self.within:
            return None
        if plan.ledger is None:
            return int(plan.rng.choice(plan.columns.shares.size, p=plan.columns.shares))
        each = np.array([plan.in_episode(policy) for policy in plan.columns.policies])
        after = plan.ledger.balance + plan.steps * (each - plan.thresholds)
        return int(((after / plan.units) ** 2).sum(axis=1).argmin())
