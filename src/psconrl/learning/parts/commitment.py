r"""Commitment: when to play one deterministic policy for a whole episode instead of a randomised plan.

An optimal plan mixes deterministic policies, each of which is optimal for the Lagrangian. As one stationary policy it
randomises where they differ. If a randomised action is taken once in 10,000 rounds, the plan satisfies the constraints
over its horizon, but not within an episode of 100 rounds, and after the episode the agent plans again. Each plan then
leaves the rare action to the next one, and it is never taken (docs/theory.md has an example of eight states).

So compare the plan's averages with those of the coming episode, in the sampled model and from the present state. If
they differ, play one of its deterministic policies for the whole episode: the one that leaves the balance of the run
nearest to zero. Nothing is lost in the Lagrangian, since each of them is optimal for it. Without the balance, if the
policy were drawn with its share of the plan, regret and violation would be linear on RiverSwim: an episode is too short
for the way up the river.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.arithmetic.products import dot
from psconrl.learning.argument_checks import as_fraction, as_nonnegative
from psconrl.learning.episode_planner import MixedPolicies
from psconrl.learning.part import Part
from psconrl.learning.parts.balance import KeepsBalance
from psconrl.markov.chain import chain_of
from psconrl.model.matrix_product import product
from psconrl.model.transition import Transition

# Averages over an episode may have half of this error, in ranges of a cost.
TOL = 1e-3
HALF = 0.5
# A constraint whose price is below this share of all prices, each times the range of its cost, counts as free.
FREE = 1e-6


@dataclass(frozen=True)
class RandomisedPlan:
    """A plan for a sampled model that mixes deterministic policies, and the episode for which it is made."""

    policy: Floats  # (S, A)
    columns: MixedPolicies
    transition: Transition
    costs: Floats  # (m+1, S, A)
    thresholds: Floats  # (m,)
    state: int
    steps: int  # largest length of the episode
    rounds: int  # played before the episode
    balance: Floats  # (m,) spent beyond the thresholds so far
    observed: Floats  # (m,) range of the observed costs and the threshold

    @property
    def promised(self) -> Floats:
        """The average of every constrained cost over the horizon of the plan, (m,)."""
        return np.asarray((self.columns.shares[:, None] * self.columns.averages[:, 1:]).sum(axis=0))

    @property
    def units(self) -> Floats:
        """The range of every constrained cost, (m,): that of observed costs, or of all; 1 if it is constant.

        With observed ranges, a huge cost that is never incurred does not hide the others.
        """
        ranges = np.ptp(self.costs[1:].reshape(len(self.costs) - 1, -1), axis=1)
        ranges = np.where(self.observed > 0.0, self.observed, ranges)
        return np.where(ranges > 0.0, ranges, 1.0)

    @property
    def weights(self) -> Floats:
        """The shares of the constraints in the sum of shadow prices, each times the range of its cost, (m,).

        Exactly zero for a free constraint, and for all if the sum is zero.
        """
        worth = self.columns.prices * self.units
        total = worth.sum()
        return np.where(worth > FREE * total, worth / total if total > 0.0 else 0.0, 0.0)

    def in_episode(self, policy: Any) -> Floats:
        """Return the average costs (m+1,) of a policy (S, A) or (S,) over the episode, from the present state."""
        alone = policy.ndim == 1
        cost = self.costs[:, np.arange(policy.size), policy] if alone else (self.costs * policy).sum(axis=2)
        shares = chain_of(self.transition, policy).time_in_states(self.state, self.steps, TOL)
        return np.asarray(product(cost, shares))


class Commitment(KeepsBalance, Part):
    """The choice between a plan's randomised policy and one of the deterministic policies that it mixes.

    It keeps the balance of the run itself, so that it works with every ledger, and without one.
    """

    kind: ClassVar[str] = "commitment"
    example: ClassVar[str] = "WhenSlow(0.05)"
    may_be_missing: ClassVar[bool] = True

    @abstractmethod
    def choose(self, plan: RandomisedPlan) -> int | None:
        """Return the index of the deterministic policy for the whole episode; None to play the randomised policy."""


class WhenSlow(Commitment):
    r"""Commit to one policy if a constrained cost would differ from the plan's by more than ``within`` of its range.

    Let :math:`g_j` be the averages of the deterministic policies over an episode of L rounds, and V the balance. The
    agent plays the policy that minimises

    .. math:: \max\Big(\sum_i \lambda_i\, v_{ij}^2,\ \sum_i \lambda_i\, \max_{i:\,\lambda_i = 0} (v_{ij})_+^2\Big) +
              2 \kappa\, t\, L\,(\ell_j - \min_k \ell_k), \qquad v_{ij} = V_i + L\,(g_{ji} - \tau_i),

    where :math:`\lambda` are the shadow prices, and costs are in units of their ranges. The squares keep every balance
    near zero. (Their linear part alone would spend a small credit by a huge cost.) The second term is weighted by
    ``patience``, :math:`\kappa`. All policies of the plan have the same average Lagrangian
    :math:`\ell = g_0 + \lambda g`, but over an episode it is larger for a policy that first has to move elsewhere. The
    agent therefore waits for a balance of about :math:`\kappa \sqrt t` times the cost of the move.

    A constraint with price zero is free: the optimum leaves some of it unspent, so that its balance falls for ever.
    Only its debt counts. Of a binding constraint credit counts, too, but no more than is needed to choose the one of
    two policies that spends more: the credit of a constraint that was free for long would outweigh the debts of all
    others. With policies that differ by :math:`\delta_i` in cost i, this is

    .. math:: L \max_j (g_{ji} - \tau_i)_+ + \kappa\, t \max_j (\ell_j - \min_k \ell_k) / (\lambda_i\, \delta_i) .

    A constraint that is stated twice counts once, however its price is divided. A difference of less than ``within``
    also matters if the balance is beyond what an episode can change, and such differences would explain half of it.
    """

    name: ClassVar[str] = "when-slow"

    def __init__(self, within: float = 0.05, patience: float = 0.1) -> None:
        self.within = as_fraction(within, "within")
        self.patience = as_nonnegative(patience, "patience")

    def choose(self, plan: RandomisedPlan) -> int | None:
        """Decide whether to commit, and only then to which policy, since each has to be evaluated over an episode."""
        if plan.steps < 2 or not plan.thresholds.size:
            return None
        units, weights = plan.units, plan.weights
        binding, balance, steps = weights > 0.0, plan.balance / units, float(plan.steps)
        expected = plan.in_episode(plan.policy)[1:]
        in_debt = balance + steps * (expected - plan.thresholds) / units > 0.0
        off = (expected - plan.promised) / units
        grows = (np.abs(balance) > steps) & (off * balance > 0.0) & (np.abs(off) * plan.rounds > HALF * np.abs(balance))
        if not ((binding | in_debt) & ((np.abs(off) > self.within) | grows)).any():
            return None
        each = np.array([plan.in_episode(policy) for policy in plan.columns.policies])
        spent = (each[:, 1:] - plan.thresholds) / units
        patience = self._patience(plan, each)
        decisive = weights * np.ptp(spent, axis=0)
        most = steps * np.maximum(spent.max(axis=0), 0.0) + patience.max() / np.where(decisive > 0.0, decisive, 1.0)
        most = np.where(decisive > 0.0, most, np.inf)
        after = np.maximum(balance, -most) + steps * spent
        debts = np.where(binding, 0.0, np.maximum(after, 0.0))
        squares = np.maximum((weights * after**2).sum(axis=1), debts.max(axis=1) ** 2)
        return int((squares + 2.0 * steps * patience).argmin())

    def _patience(self, plan: RandomisedPlan, each: Floats) -> Floats:
        r"""Return :math:`\kappa\, t\,(\ell_j - \min_k \ell_k)` for every policy, over the sum of all prices."""
        worth = dot(plan.columns.prices, plan.units)
        if worth <= 0.0:
            return np.zeros(len(each))
        lagrangian = each[:, 0] + product(each[:, 1:], plan.columns.prices)
        return np.asarray(self.patience * plan.rounds * (lagrangian - lagrangian.min()) / worth)
