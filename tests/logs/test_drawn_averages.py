"""The kernel that evaluates a policy in many models: against a slow loop, and against the general evaluation."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl.kernels.chains.drawn_averages import drawn_averages


def slow_average(P: np.ndarray, costs: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """Solve mu P = mu, sum of mu = 1, by least squares."""
    S, A = policy.shape
    chain = (policy[:, :, None] * P.reshape(S, A, S)).sum(axis=1)
    system = np.vstack([chain.T - np.eye(S), np.ones(S)])
    mu = np.linalg.lstsq(system, np.append(np.zeros(S), 1.0), rcond=None)[0]
    return (costs.reshape(-1, S, A) * (mu[:, None] * policy)).sum(axis=(1, 2))


@pytest.mark.parametrize("S", [1, 2, 7, 24, 25, 40])
@pytest.mark.parametrize("n", [1, 8, 11])
def test_agrees_with_a_slow_loop(S: int, n: int) -> None:
    """Two ways: GTH elimination in lanes or one by one, and least squares."""
    rng, A = np.random.default_rng([S, n]), 3
    P = rng.dirichlet(np.full(S, 0.3), size=(n, S * A))
    costs = rng.normal(size=(n, 2, S * A))
    policies = rng.dirichlet(np.ones(A), size=(n, S))
    stacked = csr_array(P.reshape(n * S * A, S))
    places = stacked.indptr.astype(np.int32), stacked.indices.astype(np.int32), stacked.data
    found, done = drawn_averages(*places, costs, policies, S - 1)
    assert done.all()
    for k in range(n):
        np.testing.assert_allclose(found[k], slow_average(P[k], costs[k], policies[k]), atol=1e-9)
    shared, _ = drawn_averages(*places, costs[:1].copy(), policies[:1].copy(), 0)
    for k in range(n):
        np.testing.assert_allclose(shared[k], slow_average(P[k], costs[0], policies[0]), atol=1e-9)


@pytest.mark.parametrize("S", [3, 30])
def test_reports_draws_with_a_closed_class_without_the_reference(S: int) -> None:
    """The second of three chains has state 0 closed and the reference elsewhere; entries may be repeated."""
    P = np.full((3, S, S), 1.0 / S)
    P[1] = 0.0
    P[1, :, 0] = 1.0
    stacked = csr_array(P.reshape(3 * S, S))
    halves = np.repeat(stacked.data / 2.0, 2), np.repeat(stacked.indices, 2)
    indptr = (2 * stacked.indptr).astype(np.int32)
    costs, policy = np.arange(S, dtype=float)[None, None], np.ones((1, S, 1))
    found, done = drawn_averages(indptr, halves[1].astype(np.int32), halves[0], costs, policy, S - 1)
    assert done.tolist() == [True, False, True]
    np.testing.assert_allclose(found[[0, 2], 0], (S - 1) / 2.0)


def test_refuses_what_does_not_fit() -> None:
    """Shapes and columns are checked once."""
    P = csr_array(np.full((4, 2), 0.5))
    places = P.indptr.astype(np.int32), P.indices.astype(np.int32), P.data
    costs, policy = np.zeros((1, 1, 2)), np.ones((1, 2, 1))
    for bad in (
        (places[0][:-1].copy(), *places[1:], costs, policy, 0),
        (*places, np.zeros((1, 1, 3)), policy, 0),
        (*places, np.zeros((3, 1, 2)), policy, 0),
        (*places, costs, policy, 2),
        (places[0], places[1] + 1, places[2], costs, policy, 0),
    ):
        with pytest.raises(ValueError, match=r"needed|column"):
            drawn_averages(*bad)
