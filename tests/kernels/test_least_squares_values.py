"""Blocks of value iteration: their sums are those of NumPy, to the last bit, for any number of actions."""

import numpy as np
import pytest

from psconrl.kernels.agents.least_squares_values import clipped_block, softmax_block
from psconrl.kernels.arithmetic.products import combine, sparse_times
from psconrl.learning.runtime.softmax import softmax


def random_rows(S, A, seed):
    """Gains (2, S*A) and a regression with up to three successors of every pair, in CSR form."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, min(S, 3) + 1, size=S * A)
    indptr = np.append(0, np.cumsum(sizes)).astype(np.int32)
    successors = np.concatenate([rng.choice(S, size=n, replace=False) for n in sizes]).astype(np.int32)
    return rng.random((2, S * A)), (indptr, successors, rng.random(successors.size) / 3)


@pytest.mark.parametrize(("S", "A"), [(1, 1), (3, 2), (2, 7), (2, 8), (3, 9), (2, 23), (2, 128), (1, 129), (2, 300)])
@pytest.mark.parametrize("weights", [(1.0, 0.7), (1.0, 0.0)])
def test_a_softmax_block_is_that_of_numpy(S, A, weights):
    gains, rows = random_rows(S, A, seed=S + A)
    H, weights = 5, np.array(weights)
    policy, values = softmax_block(gains, *rows, S, H, weights, 3.0)
    V = np.zeros((2, S))
    for h in range(H - 1, -1, -1):
        Q = np.minimum(gains + np.stack([sparse_times(*rows, v) for v in V]), float(H))
        expected = softmax(3.0 * combine(weights, Q).reshape(S, A))
        assert (policy[h] == expected).all()
        V = (expected * Q.reshape(2, S, A)).sum(axis=2)
    assert (values == V).all()


def test_no_value_of_a_pair_exceeds_the_length_of_the_block():
    """Both actions would be worth more than 2, and are worth the same: each has probability one half."""
    rows = np.zeros(3, np.int32), np.empty(0, np.int32), np.empty(0)
    policy, values = softmax_block(np.array([[5.0, 9.0]]), *rows, 1, 2, np.ones(1), 1.0)
    assert (policy.ravel().tolist(), values.tolist()) == ([0.5] * 4, [[2.0]])


@pytest.mark.parametrize(("S", "A"), [(1, 1), (3, 2), (9, 5)])
def test_a_clipped_block_is_that_of_numpy(S, A):
    gains, rows = random_rows(S, A, seed=S)
    H, clip = 6, 0.3
    actions = clipped_block(gains[:1], *rows, S, H, clip)
    V = np.zeros(S)
    for h in range(H - 1, -1, -1):
        Q = (gains[0] + sparse_times(*rows, V)).reshape(S, A)
        assert (actions[h] == Q.argmax(axis=1)).all()
        best = Q.max(axis=1)
        V = np.minimum(best - best.min(), clip)
