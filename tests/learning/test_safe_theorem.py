"""The inequalities in the proof of docs/theory.md, "Safe exploration", in random models that lie within the sets."""

import numpy as np
import pytest

import psconrl

S, A = 5, 3
ZETA = 0.1  # how far the baseline stays below the thresholds


def hitting_time(P, target):
    """Return the largest expected time in which a policy reaches a state, by value iteration."""
    times = np.zeros(len(P))
    for _ in range(10_000):
        longer = 1.0 + (P @ np.where(np.arange(len(P)) == target, 0.0, times)).max(axis=1)
        if np.abs(longer - times).max() < 1e-12:
            break
        times = longer
    return np.delete(longer, target).max()


def frequencies(P, policy):
    """Return the long-run frequencies of all pairs."""
    chain = np.einsum("sa,sat->st", policy, P)
    system = np.vstack([chain.T - np.eye(len(P)), np.ones(len(P))])
    return np.linalg.lstsq(system, np.r_[np.zeros(len(P)), 1.0], rcond=None)[0][:, None] * policy


@pytest.mark.parametrize("seed", range(40))
def test_the_program_is_safe_and_optimistic(seed):
    rng = np.random.default_rng([2027, seed])
    P = rng.dirichlet(np.ones(S), size=(S, A))
    costs = rng.random((3, S, A))
    free = psconrl.CMDP(P, costs, [1.0, 1.0])
    baseline = psconrl.plan(psconrl.CMDP(P, [costs[1] + costs[2]], [])).policy
    thresholds = psconrl.evaluate(free, baseline).costs[1:] + ZETA
    true = psconrl.CMDP(P, costs, thresholds)
    best = psconrl.plan(true)
    D = min(hitting_time(P, target) for target in range(S))

    epsilon = ZETA / D * rng.random((S, A))  # as after phase 1
    towards = np.eye(S)[rng.integers(S, size=(S, A))]
    share = epsilon / np.maximum(np.abs(towards - P).sum(axis=2), epsilon)
    estimate = P + share[:, :, None] * (towards - P)
    assert (np.abs(estimate - P).sum(axis=2) <= epsilon * (1 + 1e-12)).all()

    b = epsilon * D / 2
    program = psconrl.CMDP(estimate, [costs[0] - (1 + 2 / ZETA) * b, costs[1] + b, costs[2] + b], thresholds)
    found = psconrl.plan(program)
    assert found.status is psconrl.Status.OPTIMAL
    assert found.value <= best.value + 1e-9  # (d)
    averages = psconrl.evaluate(true, found.policy).costs
    mu, nu = frequencies(estimate, found.policy), frequencies(P, found.policy)
    for cost, average in zip(costs, averages, strict=True):
        assert abs((mu * cost).sum() - average) <= (mu * b).sum() + 1e-12  # (b)
    assert (averages[1:] <= thresholds + 1e-9).all()  # (c)
    assert (mu * b).sum() <= 2 * (nu * b).sum() + 1e-12  # (e)
    assert averages[0] - best.value <= 8 / ZETA * (nu * b).sum() + 1e-9  # (e)
