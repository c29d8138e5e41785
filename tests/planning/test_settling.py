"""Settling time of averages: the bound from the bias against averages computed round by round."""

import math

import numpy as np
import pytest

import psconrl
from models import random_cmdp
from psconrl import evaluate, plan
from psconrl.planning.settling import SETTLED, rounds_to_settle


def averages_after(model, policy, rounds):
    """Expected averages over the first rounds from the start, one round after the other, (rounds, m+1)."""
    S, A = model.n_states, model.n_actions
    P = (policy[:, :, None] * model.transition.toarray().reshape(S, A, S)).sum(axis=1)
    cost = (model.costs * policy).sum(axis=2)
    now, total, found = model.initial.copy(), np.zeros(len(cost)), []
    for t in range(rounds):
        total = total + cost @ now
        now = now @ P
        found.append(total / (t + 1))
    return np.array(found)


@pytest.mark.parametrize("kind", ["dense", "near_deterministic", "near_reducible"])
def test_averages_are_settled_after_n_rounds(kind):
    for seed in range(10):
        model = random_cmdp(kind, 6, 3, 2, seed, 0.1)
        found = plan(model)
        rounds = math.ceil(found.settles)
        if not found.feasible or rounds > 20_000:
            continue
        seen = averages_after(model, found.policy, rounds + 50)
        ranges = np.ptp(model.costs.reshape(len(model.costs), -1), axis=1)
        assert (np.abs(seen[max(rounds, 1) - 1 :] - found.costs) <= SETTLED * ranges * (1 + 1e-9)).all()


def test_two_states_by_hand():
    """From a state that costs 1 to one that costs 0 forever: after T rounds the average is 1 / T."""
    model = psconrl.CMDP([[[0.0, 1.0]], [[0.0, 1.0]]], [[[1.0], [0.0]]], [], initial=0)
    assert plan(model).settles == pytest.approx(1.0 / SETTLED)
    assert plan(psconrl.CMDP([[[0.0, 1.0]], [[0.0, 1.0]]], [[[1.0], [1.0]]], [], initial=0)).settles == 0.0


def test_a_corridor_that_is_hardly_ever_left_settles_late():
    model = psconrl.load("corridor")
    leave = 1e-5
    policy = np.zeros((8, 2))
    policy[:, 1] = 1.0
    policy[0] = 1.0 - leave, leave
    policy[7] = leave, 1.0 - leave
    assert rounds_to_settle(model, evaluate(model, policy)) > 0.1 / leave / SETTLED
    islands = plan(psconrl.load("islands"))
    assert islands.mixture is not None
    assert islands.settles == pytest.approx(100.0, rel=0.05)


def test_it_is_saved_and_reported(tmp_path):
    found = plan(psconrl.load("queue"))
    found.save(tmp_path / "plan.npz")
    assert psconrl.Plan.load(tmp_path / "plan.npz").settles == found.settles
    assert found.record()["settles"] == found.settles
