r"""Safe policies between places worth staying at: moves in ever fewer rounds, and exploration from a known way back.

Where an optimal plan mixes policies with classes of their own, no stationary policy may be optimal: staying for ever in
one place violates a constraint, or loses, and every move costs something. A policy that spends a share
:math:`\epsilon` of the rounds on moves loses a multiple of :math:`\epsilon`. Its certificate has a span of the order of
:math:`1 / \epsilon`, so that a confidence set of width b leaves a distance of the order of :math:`b / \epsilon` between
its bound and the true average, which is lost as well. The sum is least for :math:`\epsilon` of the order of
:math:`\sqrt b`, and shrinks as the sets do. The share is searched from episode to episode, by factors of ``STEP``.

For each share a plan is made for thresholds that are lower by margins, which follow the distance of its certified
bounds from the thresholds and are kept from episode to episode, divided by the share. (Plans for costs that include the
uncertainty at the certificate of the last plan alternate between two policies, or diverge.)

**Islands.** Two states; staying costs (0, 1) in the first and (1, 0) in the second, a move (1, 1), and the threshold is
1/2. Let moves have probabilities e and f. If data exclude only that staying in the second state leads to the first with
more than a probability b, then h = (1/(2e), 0) certifies the threshold for

.. math:: f \le \frac{e - b}{1 + 2e - b}, \qquad \text{objective} \quad \frac{e (1 + f)}{e + f} = \frac12
          + e + \frac{b}{4e} + O\Big(\big(e + \frac be\big)^2\Big),

which is least at :math:`e = \sqrt b / 2`, with a loss of :math:`\sqrt b`; and b is of the order of
:math:`\log t / t`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.base.saved_fields import Kind, flag, integer, read_fields, real, reals
from psconrl.errors import SolverError
from psconrl.learning.safe.certificates import Certified, Certifier
from psconrl.learning.safe.confidence_sets import View, feared_costs
from psconrl.markov.evaluation import evaluate_policy
from psconrl.planning.drafts import Drafts

MOST_MOVES = 0.5  # largest share of the rounds that are spent on moves
RAREST = 1 / 3  # the smallest share is the number of rounds to the power of minus this, so that spans grow slowly
STEP = 1.5  # factor between shares that are tried in one episode
REFINED = 4  # plans for one share, at most, each with corrected margins
EVALUATED = 3  # evaluations of a policy, each for the uncertainty of the last, before it is certified
RAISE, LOWER = 1.05, 0.9  # shares of an excess, and of a distance below a threshold, that a margin is changed by
RETURNS = 2 / 3  # the baseline explores in as many rounds as there were, to this power, although better is known
AHEAD = 2.0  # planning horizon of exploration, in numbers of states
EXPLORATION_SWEEPS = 100  # of value iteration for it, at most


class RareMoves:
    """What is kept from episode to episode about moves between classes."""

    def __init__(self, n_constraints: int) -> None:
        self.split = False  # whether an optimal plan mixes policies with classes of their own
        self.share = MOST_MOVES  # of the rounds that are spent on moves
        self.rising = False  # whether a larger share is tried next, or a smaller one
        self.margins: Floats = np.zeros(n_constraints)  # by which plans stay below the thresholds, times their share
        self.returned = 0  # rounds in which the baseline explored, although better was known
        self.return_began = -1  # the first round of the present return, or -1

    def policies(self, certifier: Certifier, view: View, drafts: Drafts, hopes: Floats) -> Iterator[Certified]:
        """Yield certified policies for two shares, with their averages of ``hopes`` (S, A), the optimistic objective.

        The share of the last episode is tried first. If its policy is certified, a smaller or a larger one follows;
        if not, a larger one, or the smallest after the largest.
        """
        least = min(max(view.rounds, 1) ** -RAREST, MOST_MOVES)
        share = min(max(self.share, least), MOST_MOVES)
        first = self.policy(certifier, view, drafts, hopes, share)
        if first is None:
            self.share = min(share * STEP, MOST_MOVES) if share < MOST_MOVES else least
            second = self.policy(certifier, view, drafts, hopes, self.share)
        else:
            yield first
            other = min(max(share * STEP if self.rising else share / STEP, least), MOST_MOVES)
            second = self.policy(certifier, view, drafts, hopes, other) if other != share else None
            better = second is not None and second.hope < first.hope
            self.share, self.rising = (other, self.rising) if better else (share, not self.rising)
        if second is not None:
            yield second

    def policy(self, certifier: Certifier, view: View, drafts: Drafts, hopes: Floats, share: float) -> Certified | None:
        """Return a certified policy that spends a share of the rounds on moves, or None if none was found."""
        margins, failed = self.margins / share, np.zeros(self.margins.size)
        infeasible: Floats | None = None
        for _ in range(REFINED):
            costs = np.concatenate([hopes[None], view.means])
            try:
                found = drafts.plan(costs, certifier.thresholds - margins, share)
                if not found.feasible:
                    infeasible, margins = margins, 0.5 * (margins + failed)
                    continue
                policy = np.where(view.known[:, None], found.policy, certifier.baseline)
                policy = policy / policy.sum(axis=1, keepdims=True)
                for _ in range(EVALUATED):
                    exact = evaluate_policy(view.model.with_costs(costs), policy)
                    costs = np.concatenate([hopes[None], feared_costs(view, exact.biases[1:])])
            except SolverError:  # nearly absorbing states
                return None
            tried = certifier.certify(policy, ~view.known, view, exact.biases[1:])
            if certifier.holds(tried):
                below = exact.costs[1:] - certifier.thresholds
                self.margins = share * np.maximum(margins + LOWER * below, 0.0)
                value = float((exact.occupancy * view.model.costs[0]).sum())
                return replace(tried, hope=float(exact.costs[0]), value=value)
            over = np.array([case.bound for case in tried.cases]) - certifier.thresholds
            failed, margins = margins, margins + RAISE * np.maximum(over, 0.0)
            margins = margins if infeasible is None else 0.5 * (failed + infeasible)
        self.margins = share * margins
        return None

    def returns(self, rounds: int) -> bool:
        """Whether the baseline explores now, although better is known, and note that it does.

        A policy that moves between some places learns nothing about others. Returns take t^(2/3) of t rounds.
        """
        self.settle(rounds)
        if self.returned >= max(rounds, 1) ** RETURNS:
            return False
        self.return_began = rounds
        return True

    def settle(self, rounds: int) -> None:
        """Add the rounds of the last episode to those of returns, if it was one."""
        if self.return_began >= 0:
            self.returned += rounds - self.return_began
            self.return_began = -1

    def state(self) -> dict[str, Any]:
        """Return what to save."""
        return {
            "split": self.split,
            "share": self.share,
            "rising": self.rising,
            "move_margins": self.margins,
            "returned": self.returned,
            "return_began": self.return_began,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what ``state`` returned."""
        described: dict[str, Kind] = {
            "split": flag,
            "share": real(0.0, MOST_MOVES),
            "rising": flag,
            "move_margins": reals(self.margins.shape, 0.0),
            "returned": integer(),
            "return_began": integer(-1),
        }
        self.split, self.share, self.rising, self.margins, self.returned, self.return_began = read_fields(
            state, described
        ).values()


def coming_back(certifier: Certifier, view: View) -> Certified | None:
    """Return the baseline with a certificate from data that relies on its span where that proves more, or None.

    What data prove about a slow return may exceed the given span by far. In such states the certificate counts the
    span, so that elsewhere actions may be tried more often than if nothing were known about the transitions.
    """
    if not view.own.any():
        return None
    relying, start = ~view.own, np.zeros((len(certifier.thresholds), view.own.size))
    found = certifier.certify(certifier.baseline, relying, view, start, within=False)
    for case, span in zip(found.cases, certifier.spans, strict=True):
        relying = relying | (case.bias - case.bias.min() > span)
    if (relying & view.own).any() and not relying.all():
        found = certifier.certify(certifier.baseline, relying, view, start, within=False)
    return replace(found, often=True) if certifier.holds(found) else None


def towards_untried(view: View) -> Ints:
    r"""Return an action for every state, (S,), that leads to pairs that were tried little.

    It is the best for the reward :math:`1 / (1 + N(s, a))` in the estimated model, with a discount.
    """
    S, A = view.tries.shape
    reward, kept, values = 1.0 / (1.0 + view.tries), 1.0 - 1.0 / (AHEAD * S), np.zeros(S)
    following = np.zeros((S, A))
    for _ in range(min(int(2 * AHEAD * S), EXPLORATION_SWEEPS)):
        values = (reward + kept * following).max(axis=1)
        following = np.asarray(view.whole.transition @ values).reshape(S, A)
    return np.asarray((reward + kept * following).argmax(axis=1))
