r"""Where a policy differs from today's, and what each difference changes.

The difference of the averages of two policies is a sum over states (Kakade and Langford 2002, here for averages),

.. math:: J_i(\pi) - J_i(\pi_b) = \sum_s \Delta_i(s), \qquad
          \Delta_i(s) = \mu_\pi(s) \sum_a (\pi(a|s) - \pi_b(a|s)) \big( c_i(s,a) + p(\cdot|s,a) \cdot h_{b,i} \big)

with the bias :math:`h_b` of today's policy, if that has one closed class. States are ordered by
:math:`|\Delta_0(s)| + \sum_i \lambda_i |\Delta_i(s)|` at the shadow prices of the limits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.data.advice.described import shown_action, shown_state
from psconrl.data.posterior.mean_model import MeanModel
from psconrl.data.rounds.recorded import Recorded

MOST_DECISIONS = 10
SAME_CHOICE = 0.01  # probability by which two policies may differ in a state without a decision
LEAST_SHOWN = 0.005  # probability of an action that is shown

Choice = tuple[tuple[str, float], ...]  # actions with their probabilities, the likeliest first


@dataclass(frozen=True)
class AdvisedDecision:
    """A state in which a policy differs from today's.

    ``today``, ``proposed``: actions with their probabilities, the likeliest first. ``share_today``, ``share``: of the
    rounds that are spent there. ``changes``: of the averages per round, by cost, in the units of the log; over all
    states they add up to the whole change.
    """

    state: str
    today: Choice
    proposed: Choice
    share_today: float
    share: float
    changes: dict[str, float]

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "state": self.state,
            "today": [list(one) for one in self.today],
            "proposed": [list(one) for one in self.proposed],
            "share_today": self.share_today,
            "share": self.share,
            "changes": self.changes,
        }

    def __str__(self) -> str:
        changes = ", ".join(f"{name} {change:+.3g}" for name, change in self.changes.items())
        return (
            f"{self.state} ({self.share:.1%} of rounds): {shown_choice(self.proposed)} instead of "
            f"{shown_choice(self.today)}; {changes}"
        )


def shown_choice(choice: Choice) -> str:
    """Return what is done in a state in words.

    >>> shown_choice((("order=2", 0.75), ("order=0", 0.25)))
    'order=2 (75%) or order=0 (25%)'
    """
    if len(choice) == 1:
        return choice[0][0]
    return " or ".join(f"{action} ({100 * probability:.0f}%)" for action, probability in choice)


def changes_by_state(mean: MeanModel, policy: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return what each state changes in every average (m+1, S), and the shares (S,) of rounds today and then.

    None if one of the policies cannot be evaluated, or if today's has several closed classes.
    """
    today, then = mean.evaluate(mean.today), mean.evaluate(policy)
    if today is None or then is None or len(today.classes) > 1:
        return None
    after = np.array([mean.costs[i] + mean.transition @ h for i, h in enumerate(today.biases)])
    changed = (policy - mean.today)[None] * after.reshape(len(after), *policy.shape)
    shares, shares_then = today.occupancy.sum(axis=1), then.occupancy.sum(axis=1)
    return shares_then * changed.sum(axis=2), shares, shares_then


def main_decisions(
    log: Recorded, mean: MeanModel, policy: Floats, prices: Floats | None, names: tuple[str, ...], signs: Floats
) -> tuple[AdvisedDecision, ...]:
    """Return the decisions that matter most, first the one that matters most.

    ``prices`` (m,): shadow prices of the limits, if they are known. ``names``, ``signs``: of the costs of the model.
    """
    found = changes_by_state(mean, policy)
    apart = np.abs(policy - mean.today).sum(axis=1) > 2.0 * SAME_CHOICE
    if found is None:
        visits = np.bincount(log.states, minlength=log.n_states) / log.n_rounds
        changes, today, then = np.zeros((0, log.n_states)), visits, visits
        weight = visits * np.abs(policy - mean.today).sum(axis=1)
    else:
        changes, today, then = found
        worth = np.append(1.0, np.ones(len(changes) - 1) if prices is None else prices)
        weight = worth @ np.abs(changes)
    order = [int(s) for s in np.argsort(-weight, kind="stable") if apart[s] and weight[s] > 0.0]
    return tuple(
        AdvisedDecision(
            shown_state(log, s),
            _choice(log, mean.today[s]),
            _choice(log, policy[s]),
            float(today[s]),
            float(then[s]),
            {name: float(signs[i] * own[s]) for i, (name, own) in enumerate(zip(names, changes, strict=False))},
        )
        for s in order[:MOST_DECISIONS]
    )


def _choice(log: Recorded, row: Floats) -> Choice:
    likeliest = np.argsort(-row, kind="stable")
    return tuple((shown_action(log, int(a)), float(row[a])) for a in likeliest if row[a] >= LEAST_SHOWN)
