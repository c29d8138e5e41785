r"""E-values of two questions: does a noise depend on a variable, and has it changed?

What was seen of a noise has the log-likelihood :math:`\ell_\theta(n) = \sum_r n_r \log p_\theta(r)`, with the number of
times :math:`n_r` that each set of values was seen. Let m(n) be the probability that a mixture over parameters gives to
it (``noise_families``). If the noise has one parameter in all rounds, then for every fixed way of splitting the rounds
by what is known before the noise is drawn

.. math:: E = \frac{\prod_u m(n_u)}{\sup_\theta e^{\ell_\theta(\sum_u n_u)}}

is at most a nonnegative martingale that begins with 1, whatever the parameter is and however actions are chosen: in
the numerator is a probability of everything that was seen, given states and actions, and the denominator is at least
the true one (universal inference, Wasserman, Ramdas and Balakrishnan 2020). So is a mean of several, with weights that
were fixed in advance. By Ville's inequality it ever reaches :math:`1/\alpha` with probability :math:`\alpha` at most.

- **A variable** with V values: one half of E with one part for each value, and one half of the mean of E with two
  parts, over the V - 1 cuts "up to v, and above"; of texts, over the V splits "v, and all others".
- **Time**: the sum over change points j = 0, 1, ... of :math:`w_j = \frac1{(j+1)(j+2)}` times E with the rounds before
  and after. Change points are the rounds at which the test is evaluated, so that late ones cost
  :math:`2 \log j` in :math:`\log E`.
"""

from collections.abc import Callable

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.arithmetic import special

LogMixture = Callable[[Floats], Floats]  # log m (n,) of n parts


def of_parts(parts: Floats, log_mixture: LogMixture, largest: float, *, ordered: bool) -> float:
    """Return log E of a variable.

    ``parts``: what was seen at each of its values, in V rows that may be added: numbers of sets of values, or
    log-likelihoods at all points of a grid. ``largest``: the logarithm of the denominator.
    """
    each = log_mixture(parts)
    every = float(np.cumsum(each)[-1])
    if len(parts) == 2:
        return every - largest
    some = np.cumsum(parts, axis=0)[:-1] if ordered else parts
    here = log_mixture(some) if ordered else each
    splits = here + log_mixture(parts.sum(axis=0) - some)
    both = np.append(splits - special.log(float(len(splits))), every)
    return log_sum_exp(both) - special.log(2.0) - largest


def changes(
    before: Floats, total: Floats, log_mixture: LogMixture, largest: float, log_before: Floats | None = None
) -> Floats:
    """Return the logarithms of the terms of E of time, by change point; their ``log_sum_exp`` is log E.

    ``before``: what was seen before each change point, in J rows; ``total``: everything that was seen, in the same
    form; ``log_before``: the ``log_mixture`` of the former, if it is known.
    """
    j = np.arange(len(before), dtype=np.float64)
    weights = special.log_array(1.0 / ((j + 1.0) * (j + 2.0)))
    first = log_mixture(before) if log_before is None else log_before
    return np.asarray(weights + first + log_mixture(total - before) - largest)


def log_sum_exp(logs: Floats) -> float:
    """Return the logarithm of a sum of exponentials.

    >>> round(log_sum_exp(np.array([0.0, 0.0])), 9) == round(special.log(2.0), 9)
    True
    """
    top = float(logs.max(initial=-np.inf))
    if not np.isfinite(top):
        return top
    return top + special.log(float(np.cumsum(special.exp_array(np.ascontiguousarray(logs - top)))[-1]))
