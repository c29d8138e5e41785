r"""How a plan is best followed, and what an action changes if it is played once before.

An optimal plan may play anything in states that it never visits in the long run, and almost anything in those that it
hardly ever visits. What an action changes would then depend on these arbitrary choices. So the policy of the plan is
improved at its shadow prices where that gains anything, by multichain policy iteration (Puterman 1994, section 9.2).
Where the plan is optimal, nothing changes: randomised actions that are equally good stay randomised.

With the gain g and the bias h of the resulting policy, playing action a once in state s changes the total of cost i
over all future rounds by :math:`A_i(s, a) = c_i(s, a) - g_i(s) + \sum_t P(t | s, a)\, h_i(t) - h_i(s)`, and its average
by :math:`\sum_t P(t | s, a)\, g_i(t) - g_i(s)`.
"""

from dataclasses import dataclass

import numpy as np

from psconrl.base.arrays import Floats, Ints
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.planning.plan import Plan
from psconrl.planning.tolerances import NO_LOSS, ROUNDED_BIAS, SAME_GAIN

MOST_IMPROVEMENTS = 100


@dataclass(frozen=True, eq=False)
class Effects:
    """What playing each available action of a state once changes in every cost, before the plan is followed."""

    share: float  # long-run share of rounds in the state
    actions: Ints  # (K,) available actions
    probabilities: Floats  # (K,) of the plan
    changes: Floats  # (K, q) of the totals over all future rounds
    average_changes: Floats  # (K, q) of the long-run averages: zero unless the action leads to another class
    worth: Floats  # (K,) sum of the changes at the prices of the plan
    order: Ints  # (K,) what the plan plays first, then by worth


def effects(cmdp: CMDP, plan: Plan, state: int) -> Effects:
    """Return the effects of the actions in a state. Costs of the model that the plan has no prices for are free."""
    prices = np.zeros(len(cmdp.costs))
    prices[: plan.multipliers.size + 1] = [1.0, *plan.multipliers]
    exact = best_continuation(cmdp, plan.policy, prices)
    actions = np.flatnonzero(cmdp.available[state])
    rows = cmdp.transition.rows(state * cmdp.n_actions + actions)  # (K, S)
    averages: Floats = product(rows, exact.gains.T) - exact.gains[:, state]
    scale = np.maximum(np.ptp(cmdp.costs.reshape(len(cmdp.costs), -1), axis=1), np.abs(exact.gains[:, state]))
    averages[np.abs(averages) <= SAME_GAIN * scale] = 0.0
    left = product(rows, exact.biases.T) - exact.biases[:, state]
    changes = cmdp.costs[:, state, actions].T - exact.gains[:, state] + left
    worth = product(changes, prices)
    played = plan.policy[state, actions]
    order = np.argsort(np.where(played > 0, -np.inf, worth), kind="stable")
    return Effects(float(plan.occupancy[state].sum()), actions, played, changes, averages, worth, order)


def best_continuation(cmdp: CMDP, policy: Floats, prices: Floats) -> Evaluation:
    """Return the evaluation of a policy (S, A), improved for the costs at some prices (q,) where that gains anything.

    >>> import psconrl
    >>> stay_or_go, end = [[1, 0], [0, 1]], [[0, 1], [0, 1]]
    >>> model = CMDP([stay_or_go, end], [[[2, 1], [0, 0]]])
    >>> best_continuation(model, np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(1)).gains.tolist()
    [[0.0, 0.0]]
    """
    shape = cmdp.available.shape
    priced = product(prices, cmdp.costs.reshape(prices.size, -1)).reshape(shape)
    size = float(np.ptp(priced[cmdp.available]))
    pi = policy.copy()
    exact = evaluate_policy(cmdp, pi)
    for _ in range(MOST_IMPROVEMENTS):
        g, h = product(prices, exact.gains), product(prices, exact.biases)
        if not np.isfinite(h).all():
            break  # states that are hardly ever left: only the averages are known
        leads = (cmdp.transition @ g).reshape(shape) - g[:, None]
        loss = priced - g[:, None] + (cmdp.transition @ h).reshape(shape) - h[:, None]
        same_gain = SAME_GAIN * max(size, float(np.abs(g).max()))
        gained = _switched(pi, np.where(cmdp.available, leads, np.inf), same_gain)
        if not gained:
            same = cmdp.available & (leads <= same_gain)
            gained = _switched(pi, np.where(same, loss, np.inf), NO_LOSS * size + ROUNDED_BIAS * float(np.abs(h).max()))
        if not gained:
            break
        exact = evaluate_policy(cmdp, pi)
    return exact


def _switched(pi: Floats, values: Floats, tolerance: float) -> bool:
    """Let a policy (S, A) play the action of the least value (S, A) where that is below zero; return whether any is."""
    where = np.flatnonzero(values.min(axis=1) < -tolerance)
    pi[where] = 0.0
    pi[where, values[where].argmin(axis=1)] = 1.0
    return bool(where.size)
