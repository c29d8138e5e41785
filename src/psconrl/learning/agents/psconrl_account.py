r"""Posterior sampling with the account in the state: plans over the state and the excess so far, in a sampled model.

The account z is the excess of the constrained cost over its threshold in the whole run so far. The T rounds are split
into blocks of :math:`H = \lfloor\sqrt T\rfloor`. At the beginning of each a model :math:`\theta_k` is drawn from the
posterior, and the block is played by the optimal policy of the finite problem

.. math:: U_{H+1}(s,z) = \Phi(z), \qquad
          U_h(s,z) = \min_a \{c_0(s,a) + \theta_k(s,a) \cdot U_{h+1}(\cdot, z + c(s,a) - \tau)\}

which depends on state, account and round. :math:`\Phi` is the potential of ``SACVIUCB``, a parabola up to W and linear
beyond, with slope :math:`\Lambda = 2 / \zeta` and :math:`\zeta` the Slater gap. Here nothing is added to the values and
nothing is clipped: posterior sampling replaces the bonus, so that no span has to be known.

If the belief is the exact posterior, all models of the prior have a diameter of at most D and a Slater gap of at least
:math:`\zeta`, and costs are known numbers of the pairs, Bayesian regret and violation are as follows.
With W = H they are :math:`\tilde O(\sqrt T)` where the optimal stationary policy has constant averages and single
costs with biases of a finite span, and otherwise at most :math:`\tilde O(\sqrt D\, T^{3/4})`. With
:math:`W = T^{2/3}` they are :math:`\tilde O(T^{2/3})` in every case.

In the plan of a block the account moves on a grid; the account with which a block begins is exact. A grid no wider than
:math:`1 / \sqrt T` adds at most :math:`\Lambda \sqrt T`.

With learned costs the bounds hold, too, if every pair always has the same costs, from 0 on: untried pairs are free, and
a wrong cost adds at most :math:`S A H (1 + \Lambda)`. For costs drawn at random they need the exact posterior of the
costs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.learning.account_agent import AccountAgent
from psconrl.learning.account_blocks import Block, Potential, moves_and_unit, need_room
from psconrl.learning.argument_checks import as_positive
from psconrl.learning.episode_planner import UNLIKELY
from psconrl.learning.part import Part
from psconrl.learning.posterior.cost_beliefs import CostBelief, EmpiricalMeans
from psconrl.learning.posterior.counts import Record
from psconrl.learning.posterior.transition_beliefs import Belief, Dirichlet
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.learning.sampler import Sampler


class PSConRLAccount(AccountAgent, Sampler):
    """Posterior sampling, with plans over state and account. One constraint; must know the horizon and a Slater gap.

    ``H``: length of a block, by default the root of the horizon. ``W``: width of the potential in rounds, by default H.
    ``gap``: the Slater gap, by how much a policy can stay below the threshold, in units of the constrained cost.
    ``grid``: the width of the account's grid in ranges of the constrained cost, by default 0.1 / ceil(0.1 sqrt(T)). Its
    parts are ``belief`` and ``cost_belief``; the rest is as in PSConRL.
    """

    name: ClassVar[str] = "psconrl-account"
    theory_constants: ClassVar[tuple[str, ...]] = ("gap",)
    parts: ClassVar[Mapping[str, Part | None]] = {"belief": Dirichlet(), "cost_belief": EmpiricalMeans()}

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        belief: Belief | None = None,
        cost_belief: CostBelief | None = None,
        H: int | None = None,
        W: float | None = None,
        gap: float = 0.1,
        grid: float | None = None,
        optimistic_cost: float | None = None,
        guessed_costs: ArrayLike | None = None,
        cost_weight: ArrayLike | None = 1.0,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, thresholds, costs, belief=belief, cost_belief=cost_belief,
            optimistic_cost=optimistic_cost, guessed_costs=guessed_costs, cost_weight=cost_weight, seed=seed,
        )  # fmt: skip
        self._open_account(horizon, H, grid, "'lagrangian-theorem'")
        self.W = float(self.H) if W is None else as_positive(W, "W")
        self.gap = as_positive(gap, "gap")

    def begin(self, state: int) -> Episode:
        """Continue the block, or draw a model and plan a new one; no action of an episode depends on the account."""
        block, basis = self._block, None
        if block is None or block.step >= self.H:
            block, basis = self._planned_block()
            self._block = block
        policy = block.next_steps(self.n_actions)
        return Episode(policy, max_steps=len(policy), plan=basis)

    def end(self, record: Record) -> None:
        """Learn from an episode, and add its observed excess to the account."""
        super().end(record)
        limit = float(self.thresholds[0])
        if self._block is not None:
            self._block.advance(record)
            limit = self._block.limit
        self.account += float(record.cost_sums[1].sum() - record.steps * limit)

    def _planned_block(self) -> tuple[Block, EpisodePlan]:
        """Draw a model, and plan a block in it by value iteration, from the present account."""
        P, costs, limit = self._draw(), self._episode_costs(), float(self.thresholds[0])
        moves, unit = moves_and_unit(costs[1], limit, self.cell)
        need_room(self.H, moves.reach, self.n_states, self.cell)
        worth = float(np.ptp(costs[0])) or 1.0
        potential = self._potential(unit)
        rewards = (costs[0].max() - costs[0]).ravel() / worth
        prices = potential(self.account / unit + self.cell * moves.positions(self.H).astype(np.float64))
        likely = P.without(UNLIKELY).csr()
        rows = (likely.indptr.astype(np.int32), likely.indices.astype(np.int32), likely.data)
        block = Block.planned(self.H, moves, unit * self.cell, limit, rewards, rows, prices, math.inf)
        price = potential.derivative(self.account / unit) * worth / unit
        return block, EpisodePlan(P, costs, self.thresholds, np.array([price]))

    def _potential(self, unit: float) -> Potential:
        r"""Return the potential, with slope :math:`\Lambda = 2 / \zeta`, in ranges of both costs."""
        return Potential(2.0 * unit / self.gap, self.W)
