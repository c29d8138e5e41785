r"""Lower bounds on the optimal values of many models that differ in their costs, by sweeps over all of them at once.

For every potential h and the costs :math:`c_\lambda` at some shadow prices, no policy within the thresholds has an
average below :math:`\min_{s,a} [c_\lambda(s,a) + (P h)(s,a) - h(s)]` (weak duality, see ``planning.proof.certify``).
From the potential of a similar model, a few damped steps of value iteration tighten this bound.
"""

import numpy as np

from psconrl.base.arrays import Bools, Floats
from psconrl.model.transition import Transition

DAMPING = 0.9  # share of a step that is taken: a chain with a period would not converge otherwise
SWEEPS_BETWEEN = 8  # sweeps between two looks at the bounds
MOST_SWEEPS = 400
LEAST_PROGRESS = 0.05  # of the open gap, between two looks: with less, a plan is the shorter way
ENTRIES_AT_ONCE = 4_000_000  # pairs times models that are swept together


def swept_bounds(transition: Transition, costs: Floats, available: Bools, potential: Floats, aim: float) -> Floats:
    """Return lower bounds (K,) on the average costs of all policies; sweeps end when all bounds reach the aim.

    ``costs``: (K, S*A), at shadow prices and minus thresholds. ``available``: (S, A). ``potential``: (S,) at first.
    """
    size = max(1, ENTRIES_AT_ONCE // costs.shape[1])
    parts = [costs[k : k + size] for k in range(0, len(costs), size)]
    return np.concatenate([_swept(transition, part, available, potential, aim) for part in parts])


def _swept(transition: Transition, costs: Floats, available: Bools, potential: Floats, aim: float) -> Floats:
    S, A = available.shape
    bounds = np.full(len(costs), -np.inf)
    left = np.arange(len(costs))
    cost = np.where(available.ravel()[:, None], costs.T, np.inf)
    h = np.repeat(potential[:, None], left.size, axis=1)
    for sweep in range(MOST_SWEEPS):
        step = (cost + transition @ h).reshape(S, A, left.size).min(axis=1) - h
        if sweep % SWEEPS_BETWEEN == 0:
            before, found = bounds[left], step.min(axis=0)
            bounds[left] = np.maximum(before, found)
            progress = bounds[left] - before > LEAST_PROGRESS * (aim - before)
            going = (bounds[left] < aim) & (progress | (sweep == 0))
            if not going.any():
                break
            left, cost, h, step = left[going], cost[:, going], h[:, going], step[:, going]
        h += DAMPING * (step - step.min(axis=0))
    return bounds
