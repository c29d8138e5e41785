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
from psconrl.kernels.products import dot
from psconrl.learning.checks import as_fraction, as_number
from psconrl.learning.episode_planner import Columns
from psconrl.learning.part import Part
from psconrl.learning.parts.ledger import Ledger
from psconrl.markov.chain import chain_of
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
    rounds: int  # before it
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
        """The average of every cost over the episode, from the present state, (m+1,); a policy (S, A) or (S,)."""
        alone = policy.ndim == 1
        cost = self.costs[:, np.arange(policy.size), policy] if alone else (self.costs * policy).sum(axis=2)
        shares = chain_of(self.transition, policy).time_in_states(self.state, self.steps, TOL)
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
    least

    .. math:: \sum_i (V_i + L\,(g_{ji} - \tau_i))^2 + 2 \kappa\, t\, L\,(\ell_j - \min_k \ell_k)

    is played, balances in units of the range of each cost. The squares keep every balance near zero. (Their linear part
    alone would spend a small credit by a huge cost.) The second term is ``patience``, :math:`\kappa`: all policies of
    the plan have the same average Lagrangian :math:`\ell = g_0 + \lambda g`, but over an episode the one that first has
    to get elsewhere has more of it, and a balance of some :math:`\kappa \sqrt t` times the cost of the way there is
    waited for. Here :math:`\ell` is in units of :math:`\sum_i \lambda_i` times the range of cost i.

    Without a ledger the policy is drawn with the shares of the plan.
    """

    name: ClassVar[str] = "when-slow"

    def __init__(self, within: float = 0.05, patience: float = 0.1) -> None:
        self.within = as_fraction(within, "within")
        self.patience = as_number(patience, "patience", "a number from 0 on", lambda x: 0.0 <= x < np.inf)

    def choose(self, plan: RandomisedPlan) -> int | None:
        """Whether to commit, and only then to which: each policy is followed for an episode."""
        if plan.steps < 2 or not plan.thresholds.size:
            return None
        off = np.abs(plan.in_episode(plan.policy)[1:] - plan.promised) / plan.units
        if off.max() <= self.within:
            return None
        if plan.ledger is None:
            return int(plan.rng.choice(plan.columns.shares.size, p=plan.columns.shares))
        each = np.array([plan.in_episode(policy) for policy in plan.columns.policies])
        after = plan.ledger.balance + plan.steps * (each[:, 1:] - plan.thresholds)
        squares = ((after / plan.units) ** 2).sum(axis=1)
        worth = dot(plan.columns.prices, plan.units)
        if worth > 0.0 and self.patience > 0.0:
            lagrangian = each[:, 0] + product(each[:, 1:], plan.columns.prices)
            squares += 2.0 * self.patience * plan.rounds * plan.steps * (lagrangian - lagrangian.min()) / worth
        return int(squares.argmin())
