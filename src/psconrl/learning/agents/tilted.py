r"""Tilted optimism: one unconstrained optimistic plan per episode, at a price that an account tilts.

Let costs be scaled to [0, 1], T the horizon, :math:`L = \lceil \sqrt T \rceil` and :math:`R = 8 L`. An *epoch* ends
once a pair has been visited in it as often as before. At its beginning, L1 balls of radius :math:`\beta` around the
frequencies hold the true transitions with probability :math:`1 - \delta`, :math:`\delta = 1/T`. The *centre*
:math:`\lambda_e` is the price of the constraint in the best model of the balls, and the account V, the sum of
:math:`c - \tau`, begins at 0. An *episode* plays a policy that is optimal in the balls for the one cost
:math:`c_0 + \lambda (c - \tau)`, at the price

.. math:: \lambda = \lambda_e + f(V), \qquad f(V) = \max(-\lambda_e, \min(1 + \lambda_e, \sinh(V / R) / L)),

and ends after L rounds, with the epoch, or once the radii of the pairs visited in it add up to more than 1.

For one constraint, in communicating models of diameter D with a policy that stays :math:`\zeta` below the threshold,
expected regret and violation are of order :math:`(1 + 1/\zeta)(D S \sqrt{A T} + S A \sqrt T)` up to logarithms;
neither D nor :math:`\zeta` is known to the agent. docs/theorems.md has the proof. The agent combines the optimistic
program of UCRL-CMDP (Singh, Gupta and Shroff 2020) with a price that reacts to the violation so far, as in Cheung 2019
(arXiv 1905.06466). Chen, Jain and Luo 2022 (arXiv 2202.00150) and Yu, Bae and Lee 2026 (arXiv 2609.39093) have
:math:`\sqrt T` if spans are known and a stationary policy is optimal.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psconrl.base.arrays import Floats, Ints
from psconrl.base.caps import LARGEST_COST, MOST_ROUNDS
from psconrl.base.saved_fields import FieldError, integer, listed, maybe, need_that, read_fields, real
from psconrl.errors import AgentError, SolverError
from psconrl.kernels.arithmetic import special
from psconrl.learning.agent import Agent
from psconrl.learning.argument_checks import as_count, as_positive
from psconrl.learning.parts.l1_region import hoeffding_widths, weissman_radii
from psconrl.learning.parts.radii import empirical
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.runtime.constraint_names import Thresholds
from psconrl.learning.runtime.contract import Episode
from psconrl.learning.runtime.episode_plan import EpisodePlan
from psconrl.model.matrix_product import product
from psconrl.planning.optimism.priced_balls import BestPrice, PricedPlan, plan_at_price, price_in_balls

ROUNDS_PER_WIDTH = 8  # R / L
STEEPEST = 700.0  # of V / R, beyond which the exponential would overflow; the tilt is cut off long before
LARGEST_TILTED_PRICE = 1e18  # in a file


def tilt(account: float, centre: float, length: int) -> float:
    r"""Return :math:`\sinh(V / 8 L) / L`, but at least minus the centre and at most 1 more than it.

    >>> round(tilt(80.0, 0.5, 10), 6), tilt(1e9, 0.5, 10), tilt(-1e9, 0.5, 10)
    (0.11752, 1.5, -0.5)
    """
    x = min(max(account / (ROUNDS_PER_WIDTH * length), -STEEPEST), STEEPEST)
    sinh = 0.5 * (special.exp(x) - special.exp(-x))
    return max(-centre, min(1.0 + centre, sinh / length))


class Epoch:
    """The confidence sets of an epoch, and its plans.

    ``seen``: the counts at its beginning. ``p_bar`` (S*A, S), ``radius`` (S*A,): the balls. ``objective``, ``excess``
    (S, A): the least that the true ones may be, in ranges. ``widths`` (S*A,): what a visit of a pair adds to the end of
    an episode, its radius and by how much its costs may be higher. ``centre``: the price of the constraint and the
    value of the optimistic program, or None if no policy meets the threshold in any model of the balls.
    """

    def __init__(self, seen: Counts, radius: Floats, objective: Floats, excess: Floats, errors: Floats) -> None:
        self.seen, self.p_bar, self.radius = seen, empirical(seen), radius
        self.objective, self.excess = objective, excess
        self.widths = radius + np.minimum(2.0 * errors.ravel(), 1.0)
        self.centre: BestPrice | None = price_in_balls(self.p_bar, radius, objective, excess)
        self.prices: list[float] = []  # of the plans, increasing
        self._plans: list[PricedPlan] = []

    def visits_left(self, visits: Ints) -> Ints:
        """Return how often each pair may still be visited, (S, A); the epoch is over once one of them is 0."""
        return self.seen.pairs + np.maximum(self.seen.pairs, 1) - visits

    def plan(self, price: float) -> PricedPlan:
        """Return the best policy at a price; a plan that is the best at two prices is so at all between them."""
        at = bisect_left(self.prices, price)
        if at < len(self.prices) and self.prices[at] == price:
            return self._plans[at]
        if 0 < at < len(self.prices) and _same(self._plans[at - 1], self._plans[at]):
            return self._plans[at]
        plan = plan_at_price(self.p_bar, self.radius, self.objective, self.excess, price)
        self.prices.insert(at, price)
        self._plans.insert(at, plan)
        return plan


def _same(one: PricedPlan, other: PricedPlan) -> bool:
    return np.array_equal(one.policy, other.policy) and np.array_equal(one.kernel, other.kernel)


class TiltedOptimism(Agent):
    """Tilted optimism, for one constraint. It must know the horizon.

    ``bonus``: a factor of all confidence sets, 1 for the theorem. ``ranges`` (2, 2): the lowest and highest value of
    objective and constrained cost, if they are learned; by default 0 and 1, where the objective's grow with what was
    met. Learned costs are planned with at their lower confidence bounds, and the account adds up what was observed.
    """

    name: ClassVar[str] = "tilted"
    table_bytes: ClassVar[float] = 40.0  # counts, frequencies, radii and the planned model

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        thresholds: Thresholds,
        costs: ArrayLike | None = None,
        *,
        horizon: int,
        bonus: float = 1.0,
        ranges: ArrayLike | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_states, n_actions, thresholds, costs, seed)
        if self.thresholds.size != 1:
            n = self.thresholds.size
            raise AgentError(f"tilted optimism serves models with one limit; got {n}. Use 'psconrl'.")
        self.horizon, self.bonus = as_count(horizon, "horizon"), as_positive(bonus, "bonus")
        self._scale_costs(ranges)
        self.account = 0.0  # V, the excess of the epoch in ranges of the constrained cost
        self.price = 0.0  # of the episode
        self._rounds_left = 0  # of the episode
        self._width = 0.0  # of the rounds of the episode; it is over once that is more than 1
        self._epoch: Epoch | None = None

    @property
    def length(self) -> int:
        r"""The largest length :math:`L = \lceil \sqrt T \rceil` of an episode."""
        return math.isqrt(self.horizon - 1) + 1

    def begin(self, state: int) -> Episode:
        """Return the present episode, or what is left of it."""
        epoch = self._epoch
        try:
            if epoch is None or (epoch.visits_left(self.counts.pairs) <= 0).any():
                epoch = self._next_epoch()
            if self._rounds_left <= 0 or self._width > 1.0:
                self._next_episode(epoch)
            plan = epoch.plan(self.price)
        except SolverError:
            self._epoch = None
            return Episode.uniform(self.n_states, self.n_actions, self.length, kind="unsettled")
        caps = np.minimum(epoch.visits_left(self.counts.pairs), self._visits_within(epoch, plan))
        kind, value = "least excess", math.nan
        lowest, _, unit = self._objective_range(epoch.seen)
        if epoch.centre is not None:
            kind, value = "optimistic", lowest + unit * epoch.centre.value
        prices = np.array([self.price * unit / self._scale.units[1]])
        basis = EpisodePlan(costs=self.costs, targets=self.thresholds, prices=prices, policy=plan.policy)
        return Episode(plan.policy, self._rounds_left, caps, kind, value, basis)

    def _next_epoch(self) -> Epoch:
        """Begin an epoch: new confidence sets, and an empty account."""
        self._epoch, self.account, self._rounds_left = None, 0.0, 0
        seen = Counts(self.n_states, self.n_actions, self.n_costs)
        seen.add(self.counts)
        self._epoch = self._epoch_of(seen)
        return self._epoch

    def _epoch_of(self, seen: Counts) -> Epoch:
        """Return the confidence sets after what was seen."""
        delta = 1.0 / self.horizon
        objective, cost, errors = self._least_costs(seen, delta)
        excess = cost - float(self._scale.thresholds(self.thresholds)[0])
        return Epoch(seen, weissman_radii(seen, delta, self.bonus), objective, excess, errors)

    def _least_costs(self, seen: Counts, delta: float) -> tuple[Floats, Floats, Floats]:
        """Return the least that objective and constrained cost may be, in ranges, and the errors of both, (S, A)."""
        lowest, _, unit = self._objective_range(seen)
        costs = seen.mean_costs() if self.costs is None else self.costs
        objective = (costs[0] - lowest) / unit
        cost = (costs[1] - self._scale.lowest[1]) / self._scale.units[1]
        if self.costs is not None:
            return objective, cost, np.zeros(objective.shape)
        errors, tried = hoeffding_widths(seen, delta, self.bonus), seen.pairs > 0
        objective, cost = (np.where(tried, np.maximum(each - errors, 0.0), 0.0) for each in (objective, cost))
        return objective, cost, errors

    def _next_episode(self, epoch: Epoch) -> None:
        """Begin an episode: set its price by the account."""
        centre = 0.0 if epoch.centre is None else epoch.centre.price
        self.price = centre + tilt(self.account, centre, self.length)
        self._rounds_left, self._width = self.length, 0.0

    def _visits_within(self, epoch: Epoch, plan: PricedPlan) -> Ints:
        """Return caps on visits (S, A) up to which the widths of the episode reach 1 in the last round at most.

        Every state may fill an equal share of what is left, whose last round is in one of them only.
        """
        widths = epoch.widths.reshape(plan.policy.shape)
        left = max(1.0 - self._width, 0.0)
        played = widths[plan.policy > 0.0]
        if self._rounds_left * float(played.max()) <= left:
            return np.full(widths.shape, self._rounds_left)
        return np.asarray(1 + np.floor(left / (self.n_states * widths)), dtype=np.int64)

    def end(self, record: Record) -> None:
        """Learn from an episode, or from a part of it, and update the account."""
        super().end(record)
        if self._epoch is None:
            return
        spent = record.cost_sums[1].sum() if self.costs is None else product(record.visits, self.costs[1].ravel())
        self.account += float(spent - record.steps * self.thresholds[0]) / float(self._scale.units[1])
        self._rounds_left -= record.steps
        self._width += float(product(record.visits, self._epoch.widths))

    def _limits_changed(self, playing: Record | None) -> None:
        self._epoch = None  # the account is that of another threshold

    def state(self) -> dict[str, Any]:
        """Return everything that has changed since construction."""
        epoch = None if self._epoch is None else {"seen": self._epoch.seen.state(), "prices": self._epoch.prices}
        return super().state() | {
            "account": self.account,
            "price": self.price,
            "rounds_left": self._rounds_left,
            "width": self._width,
            "epoch": epoch,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned; plans are made again."""
        super().restore(state)
        most = MOST_ROUNDS * LARGEST_COST
        described = {
            "account": real(-most, most),
            "price": real(0.0, LARGEST_TILTED_PRICE),
            "rounds_left": integer(-MOST_ROUNDS, self.length),
            "width": real(0.0),
            "epoch": maybe(self._saved_epoch),
        }
        saved = read_fields(state, described)
        self.account, self.price, self._rounds_left, self._width, self._epoch = (saved[key] for key in described)

    def _saved_epoch(self, saved: dict[str, Any]) -> Epoch:
        seen = Counts(self.n_states, self.n_actions, self.n_costs)
        prices = read_fields(saved, {"seen": seen.restore, "prices": listed(real(0.0, LARGEST_TILTED_PRICE))})["prices"]
        need_that((seen.visits <= self.counts.visits).all(), "what was seen must be at most what has been seen since")
        need_that(prices == sorted(set(prices)), "prices must be distinct, in increasing order")
        try:
            epoch = self._epoch_of(seen)
            for price in prices:
                epoch.plan(price)
        except SolverError as err:
            raise FieldError(str(err)) from None
        return epoch
