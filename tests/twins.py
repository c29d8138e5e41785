"""Twins of a model: models that state the same problem in other words, on which an agent should do as well.

A twin has the same states, actions and transitions, and the same optimum. Its first costs are those of the model, and
its costs beyond them repeat what the model says, so that runs are compared by the costs of the model alone (``score``).

=====================  ==============================================================================================
``vacuous``            a copy of the first constrained cost, with a threshold above its maximum
``vacuous_action``     the frequency of the first action, which is at most 1, with a threshold above 1
``nearly_binding``     a copy of the first constrained cost, with a threshold that is higher by 3% of its range
``stated_twice``       a copy of the first constrained cost, with the same threshold
``relabelled``         states and actions in another order, and no further cost
=====================  ==============================================================================================
"""

from collections.abc import Callable

import numpy as np

from psconrl import CMDP, plan

ABOVE = 0.5  # of a vacuous threshold above the highest cost, in ranges
NEARLY = 0.03  # of a nearly binding threshold above the binding one, in ranges


def with_limit(model: CMDP, cost: np.ndarray, threshold: float) -> CMDP:
    """The model with one more constraint, on a cost (S, A)."""
    return CMDP(
        model.transition,
        np.concatenate([model.costs, cost[None]]),
        np.append(model.thresholds, threshold),
        initial=model.initial,
        maximise=model.maximise,
    )


def vacuous(model: CMDP) -> CMDP:
    cost = model.costs[1]
    return with_limit(model, cost, cost.max() + ABOVE * np.ptp(cost))


def vacuous_action(model: CMDP) -> CMDP:
    first = np.zeros(model.costs[0].shape)
    first[:, 0] = 1.0
    return with_limit(model, first, 1.0 + ABOVE)


def nearly_binding(model: CMDP) -> CMDP:
    return with_limit(model, model.costs[1], model.thresholds[0] + NEARLY * np.ptp(model.costs[1]))


def stated_twice(model: CMDP) -> CMDP:
    return with_limit(model, model.costs[1], model.thresholds[0])


def relabelled(model: CMDP) -> CMDP:
    S, A = model.n_states, model.n_actions
    states, actions = np.arange(S)[::-1], np.arange(A)[::-1]
    P = model.transition.csr().toarray().reshape(S, A, S)
    initial = np.asarray(model.initial)
    return CMDP(
        P[states][:, actions][:, :, states],
        model.costs[:, states][:, :, actions],
        model.thresholds,
        initial=initial[states] if initial.ndim else int(S - 1 - initial),
        maximise=model.maximise,
    )


TWINS: dict[str, Callable[[CMDP], CMDP]] = {
    twin.__name__: twin for twin in (vacuous, vacuous_action, nearly_binding, stated_twice, relabelled)
}


class Judge:
    """Scores of runs on a model and on its twins: regret, plus overspending at twice its shadow price."""

    def __init__(self, model: CMDP) -> None:
        best = plan(model)
        self.value = best.value if not model.maximise else -best.value
        self.prices, self.thresholds = np.abs(best.multipliers), model.thresholds

    def score(self, spent: np.ndarray, rounds: int) -> float:
        """The score of a run of some rounds, given its cumulative costs (m+1,) or more."""
        excess = spent[1 : 1 + self.thresholds.size] - rounds * self.thresholds
        return float(spent[0] - rounds * self.value + 2.0 * (self.prices * np.maximum(excess, 0.0)).sum())
