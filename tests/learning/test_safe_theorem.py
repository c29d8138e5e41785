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


def sparse_rows(rng):
    """Every pair may return to state 0, and else has one successor."""
    rows = np.zeros((S, A, S))
    others = np.eye(S)[rng.integers(S, size=(S, A))]
    rows[:, :, 0] = 0.3 * rng.random((S, A)) + 0.05
    return rows + (1.0 - rows[:, :, :1]) * others


def moved(P, epsilon, towards):
    """Move half of epsilon of the mass of every row to where a function is largest, from where it is least."""
    found, target = P.copy(), int(towards.argmax())
    for row, half in zip(found.reshape(-1, S), epsilon.ravel() / 2, strict=True):
        for state in np.argsort(towards)[:-1]:
            mass = min(row[state], half)
            row[state] -= mass
            row[target] += mass
            half -= mass
    return found


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_the_program_is_safe_and_optimistic(seed, dense):
    rng = np.random.default_rng([2027, seed])
    P = rng.dirichlet(np.ones(S), size=(S, A)) if dense else sparse_rows(rng)
    costs = rng.random((3, S, A))
    free = psconrl.CMDP(P, costs, [1.0, 1.0])
    baseline = psconrl.plan(psconrl.CMDP(P, [costs[1] + costs[2]], [])).policy
    thresholds = psconrl.evaluate(free, baseline).costs[1:] + ZETA
    true = psconrl.CMDP(P, costs, thresholds)
    best = psconrl.plan(true)
    target = min(range(S), key=lambda state: hitting_time(P, state)) if dense else 0
    D = hitting_time(P, target)

    epsilon = ZETA / D * rng.random((S, A))  # as after the first phase
    estimate = moved(P, epsilon, rng.random(S))
    assert (np.abs(estimate - P).sum(axis=2) <= epsilon * (1 + 1e-9)).all()
    assert hitting_time(estimate, target) <= 2 * D  # (d): one recurrent class

    b = epsilon * D / 2
    program = psconrl.CMDP(estimate, [costs[0] - (1 + 2 / ZETA) * b, costs[1] + b, costs[2] + b], thresholds)
    found = psconrl.plan(program)
    assert found.status is psconrl.Status.OPTIMAL
    assert found.value <= best.value + 1e-9  # (d)
    mu = frequencies(estimate, found.policy)
    unvisited = mu.sum(axis=1) < 1e-9
    policy = found.policy.copy()
    policy[unvisited] = np.eye(A)[rng.integers(A, size=unvisited.sum())]
    averages, nu = psconrl.evaluate(true, policy).costs, frequencies(P, policy)
    for cost, average in zip(costs, averages, strict=True):
        assert abs((mu * cost).sum() - average) <= (mu * b).sum() + 1e-9  # (b)
    assert (averages[1:] <= thresholds + 1e-9).all()  # (c)
    assert (mu * b).sum() <= 2 * (nu * b).sum() + 1e-9  # (e)
    assert averages[0] - best.value <= 8 / ZETA * (nu * b).sum() + 1e-9  # (e)

    mixed = (1 - ZETA / (D + 1)) * baseline + ZETA / (D + 1) / A
    assert (psconrl.evaluate(true, mixed).costs[1:] <= thresholds + 1e-9).all()  # (c)
