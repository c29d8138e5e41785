"""The softmax, with the same bits on every machine."""

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.kernels.arithmetic import special


def softmax(scores: Floats) -> Floats:
    """Return the distributions (S, A) proportional to the exponentials of scores.

    >>> softmax(np.array([[0.0, 1e6], [np.log(3.0), 0.0]])).round(12).tolist()
    [[0.0, 1.0], [0.75, 0.25]]
    """
    relative = scores - scores.max(axis=1, keepdims=True)
    weights = special.exp_array(relative)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
