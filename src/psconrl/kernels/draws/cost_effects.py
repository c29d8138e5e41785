r"""One sweep of a Gibbs sampler for costs that are nearly a sum of a state effect and an action effect.

.. math:: \theta_{sa} = \mu + u_s + v_a + w_{sa}, \qquad u \sim N(0, \tau_u^2),\; v \sim N(0, \tau_v^2),\;
          w \sim N(0, \tau_w^2),

and the mean of n observations of a pair is :math:`N(\theta_{sa}, \sigma^2/n)`. ``learning/posterior/cost_beliefs.py``
has the prior.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.psconrl.kernels._types import ConstInts, ConstVector, Vector


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _draw_group(
    residuals: ConstVector,
    precisions: ConstVector,
    group: ConstInts,
    effects: Vector,
    variance: cython.double,
    normals: ConstVector,
    weight: Vector,
    total: Vector,
) -> cython.double:
    """Draw the effect of every group, given its variance; return the sum of squares of those with observations."""
    squares: cython.double = 0.0
    for g in range(effects.shape[0]):
        weight[g] = total[g] = 0.0
    for k in range(residuals.shape[0]):
        weight[group[k]] += precisions[k]
        total[group[k]] += precisions[k] * residuals[k]
    for g in range(effects.shape[0]):
        spread: cython.double = 1.0 / (1.0 / variance + weight[g])
        effects[g] = spread * total[g] + sqrt(spread) * normals[g]
        if weight[g] > 0.0:
            squares += effects[g] * effects[g]
    return squares


def sweep(
    means: ConstVector,
    times: ConstVector,
    state: ConstInts,
    action: ConstInts,
    noise: cython.double,
    least: cython.double,
    of_states: Vector,
    of_actions: Vector,
    levels: Vector,
    normals: ConstVector,
    gammas: ConstVector,
):
    r"""Draw all effects and variances once, given the means (K,) of the tried pairs and their numbers of visits (K,).

    ``noise``: :math:`\sigma^2`; ``least``: the rate of the inverse gamma priors of the variances. Changed in place:
    ``of_states`` (S,), ``of_actions`` (A,), and ``levels``: :math:`\mu, \tau_u^2, \tau_v^2, \tau_w^2`. ``normals`` (S +
    A + 1 + K): standard normal variates; ``gammas`` (3,): gamma variates with the shapes of the posteriors of the
    variances. Returns the costs :math:`\theta` (K,) of the tried pairs.
    """
    K, S, A = means.shape[0], of_states.shape[0], of_actions.shape[0]
    if times.shape[0] != K or state.shape[0] != K or action.shape[0] != K or levels.shape[0] != 4:
        raise ValueError("every pair has its mean, its times, its state and its action")
    if normals.shape[0] != S + A + 1 + K or gammas.shape[0] != 3:
        raise ValueError("S + A + 1 + K normal variates and three gamma variates are needed")
    for k in range(K):
        if not (0 <= state[k] < S and 0 <= action[k] < A and times[k] > 0.0):
            raise ValueError("a pair that was tried has a state, an action, and some times")
    drawn = np.empty(K)
    theta: Vector = drawn
    precisions: Vector = np.empty(K)
    residuals: Vector = np.empty(K)
    weight: Vector = np.empty(max(S, A))
    total: Vector = np.empty(max(S, A))
    with cython.nogil:
        # The effects are drawn with the w of all pairs integrated out.
        for k in range(K):
            precisions[k] = 1.0 / (levels[3] + noise / times[k])
            residuals[k] = means[k] - levels[0] - of_actions[action[k]]
        squares: cython.double = _draw_group(
            residuals, precisions, state, of_states, levels[1], normals[:S], weight, total
        )
        levels[1] = (least + 0.5 * squares) / gammas[0]
        for k in range(K):
            residuals[k] = means[k] - levels[0] - of_states[state[k]]
        squares = _draw_group(residuals, precisions, action, of_actions, levels[2], normals[S : S + A], weight, total)
        levels[2] = (least + 0.5 * squares) / gammas[1]
        all_weight: cython.double = 0.0
        average: cython.double = 0.0
        for k in range(K):
            all_weight += precisions[k]
            average += precisions[k] * (means[k] - of_states[state[k]] - of_actions[action[k]])
        levels[0] = average / all_weight + normals[S + A] / sqrt(all_weight)
        squares = 0.0
        for k in range(K):
            fit: cython.double = levels[0] + of_states[state[k]] + of_actions[action[k]]
            w: cython.double = means[k] - fit
            if noise > 0.0:
                spread: cython.double = 1.0 / (1.0 / levels[3] + times[k] / noise)
                w = spread * times[k] / noise * w + sqrt(spread) * normals[S + A + 1 + k]
            theta[k] = fit + w if noise > 0.0 else means[k]
            squares += w * w
        levels[3] = (least + 0.5 * squares) / gammas[2]
    return drawn
