"""Sparse chains are counted from a state that is visited often, chosen again when the mass has moved away."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl.base.arrays import in_32_bits
from psconrl.base.sizes import GTH_STATES
from psconrl.markov.sparse_solver import SparseSolver

N = GTH_STATES + 100  # beyond this a chain cannot be solved as a dense one


def walk(up):
    """A walk on a line, one step at a time; at either end it may stay. Its distribution is geometric."""
    down = 1.0 - up
    i = np.arange(N)
    rows, columns = np.concatenate([i, i]), np.concatenate([np.minimum(i + 1, N - 1), np.maximum(i - 1, 0)])
    return in_32_bits(csr_array((np.repeat([up, down], N), (rows, columns)), shape=(N, N)))


def distribution(up):
    ratio = up / (1.0 - up)
    powers = ratio ** -np.arange(N)[::-1].astype(float) if ratio > 1 else ratio ** np.arange(N).astype(float)
    return powers / powers.sum()


def test_the_reference_follows_the_mass():
    solver = SparseSolver()
    costs = np.vstack([np.linspace(0.0, 1.0, N), np.arange(N) % 2])
    for up in (0.505, 0.495, 0.506):  # from the top of the line to its bottom and back
        result = solver.solve(walk(up), costs)
        assert result.stationary[result.reference] >= 0.01 * result.stationary.max()
        assert result.stationary == pytest.approx(distribution(up), abs=1e-12)
        assert result.gains == pytest.approx(costs @ distribution(up), rel=1e-10)
        h = result.biases
        assert h[:, result.reference].tolist() == [0.0, 0.0]
        near = distribution(up) > 1e-12  # where the chain has its mass
        poisson = result.gains[:, None] + h - costs - (walk(up) @ h.T).T
        assert np.abs(poisson[:, near]).max() < 1e-9
