"""The worst distributions of a system's noise, by sorting and by the compiled kernel, and a closed form."""

import numpy as np
import pytest

from psconrl.planning.robust.noise_box import BlockBounds, NoiseBox
from psconrl.planning.robust.pessimism import largest_means, worst_average
from psconrl.planning.robust.worst_noise import worst_bias, worst_distributions


def random_box(rng, blocks):
    """Two states, three actions, two noises of two and three values in two contexts."""
    sizes, n = np.array([2, 3]), 6
    low, high = [], []
    for size in sizes:
        p = rng.dirichlet(np.ones(size), size=2)
        width = rng.uniform(0, 0.5, size=(2, size))
        low.append(np.maximum(p - width, 0.0))
        high.append(np.minimum(p + width, 1.0))
    low, high = np.hstack(low), np.hstack(high)
    low[1, 4], high[1, 4] = 0.0, 0.0  # an impossible value
    successors = rng.integers(0, 2, size=(n, 6)).astype(np.int32)
    contexts = rng.integers(0, 2, size=n)
    if not blocks:
        return NoiseBox(successors, contexts, sizes, low, high)
    firsts = np.array([[0, 1, 0, 3, 1, 3], [0, 0, 2, -1, 2, 0]])
    least, most = np.zeros((2, 6)), np.zeros((2, 6))
    for k, row in enumerate(firsts):
        own = np.unique(row[row >= 0])
        p = rng.dirichlet(np.ones(own.size))
        least[k, own], most[k, own] = np.maximum(p - 0.1, 0.0), np.minimum(p + 0.1, 1.0)
    return NoiseBox(
        successors, contexts, sizes, low, high, BlockBounds(rng.integers(-1, 2, size=n), firsts, least, most)
    )


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_the_worst_distributions_have_the_means_of_the_kernel(seed, blocks):
    rng = np.random.default_rng([seed, blocks])
    box, h, paid = random_box(rng, blocks), rng.normal(size=2), rng.normal(size=(6, 6))
    pairs = np.array([5, 0, 3])
    worst = worst_distributions(box, pairs, h, paid)
    assert worst.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert (worst >= 0.0).all()
    means = (worst * (h[box.successors[pairs]] + paid[pairs])).sum(axis=1)
    assert means == pytest.approx(largest_means(box, h, paid)[pairs], abs=1e-12)


def filled(values, low, high):
    """The distribution within bounds whose mean is largest, by a plain loop: what is left goes to the largest value."""
    p = low.copy()
    for v in sorted(range(values.size), key=lambda v: -values[v]):
        p[v] += min(max(high[v] - p[v], 0.0), 1.0 - p.sum())
    return p


@pytest.mark.parametrize("size", [2, 3, 16, 17, 40])
@pytest.mark.parametrize("seed", range(5))
def test_few_and_many_values_get_what_a_plain_loop_gives_them(seed, size):
    """One noise of many values, alone and in blocks of one outcome each."""
    rng = np.random.default_rng([seed, size])
    p = rng.dirichlet(np.ones(size))
    low, high = np.maximum(p - rng.uniform(0, 1 / size, size), 0.0), np.minimum(p + rng.uniform(0, 1 / size, size), 1.0)
    h, successors = rng.normal(size=4), rng.integers(0, 4, size=(4, size)).astype(np.int32)
    paid, pairs = np.round(rng.normal(size=(4, size)), 1), np.array([2, 0])
    none, free = np.zeros(4, dtype=np.int64), (np.zeros((1, size)), np.ones((1, size)))
    own = BlockBounds(none, np.arange(size)[None], low[None], high[None])
    for box in (
        NoiseBox(successors, none, np.array([size]), low[None], high[None]),
        NoiseBox(successors, none, np.array([size]), *free, own),
    ):
        found, means = worst_distributions(box, pairs, h, paid), largest_means(box, h, paid)
        for pair, row in zip(pairs, found, strict=True):
            values = h[successors[pair]] + paid[pair]
            best = filled(values, low, high)
            assert means[pair] == pytest.approx(best @ values, abs=1e-12)
            assert row @ values == pytest.approx(best @ values, abs=1e-12)
            assert ((row >= low - 1e-12) & (row <= high + 1e-12)).all()


def machine(fails, mended):
    """A machine that is up (0) or down (1), with bounds on the probabilities to fail and to be mended."""
    successors = np.array([[0, 1, 0, 1], [1, 1, 0, 0]], dtype=np.int32)  # outcomes of (mended, fails)
    low = np.array([[1 - mended[1], mended[0], 1 - fails[1], fails[0]]])
    high = np.array([[1 - mended[0], mended[1], 1 - fails[0], fails[1]]])
    return NoiseBox(successors, np.zeros(2, dtype=np.int64), np.array([2, 2]), low, high)


def test_policy_iteration_finds_the_largest_average_in_closed_form():
    """A machine is down for the largest share b / (b + c) if it fails as often and is mended as rarely as possible."""
    box, policy, down = machine((0.05, 0.2), (0.3, 0.6)), np.ones((2, 1)), np.array([0.0, 1.0])
    h = worst_bias(policy, down, box, np.zeros(2), None, 1e-9)
    assert h[1] - h[0] == pytest.approx(1 / 0.5)  # mended after 1 / 0.3 rounds, of which 2 / 5 count
    found = worst_average(policy, down[:, None], box, sweeps=1)
    assert found.bound == pytest.approx(0.2 / 0.5, abs=1e-9)


def test_the_bound_holds_where_the_worst_chain_has_several_closed_classes():
    """A machine that may never fail, nor ever be mended, may be down for ever."""
    box = machine((0.0, 0.0), (0.0, 0.6))
    found = worst_average(np.ones((2, 1)), np.array([[0.0], [1.0]]), box)
    assert found.bound == pytest.approx(1.0, abs=1e-9)
