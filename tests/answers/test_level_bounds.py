"""Bounds by sweeps: below the optimum of every model, and close to it after many sweeps."""

import numpy as np
import pytest

from models import random_cmdp
from psconrl import CMDP, plan
from psconrl.answers.level_bounds import swept_bounds


@pytest.mark.parametrize("kind", ["dense", "sparse", "periodic", "masked"])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_below_the_optimum(kind, seed):
    model = random_cmdp(kind, 6, 3, 0, seed) if kind != "masked" else masked(seed)
    rng = np.random.default_rng(seed)
    costs = np.where(model.available.ravel(), rng.random((5, 18)), 1.0)
    optima = [
        plan(CMDP(model.transition, c.reshape(1, 6, 3), available=model.available, initial=model.initial)).costs[0]
        for c in costs
    ]
    found = swept_bounds(model.transition, costs, model.available, np.zeros(6), 10.0)
    assert (found <= np.array(optima) + 1e-9).all()
    at_once = swept_bounds(model.transition, costs, model.available, rng.normal(size=6), -10.0)
    assert (at_once <= np.array(optima) + 1e-9).all()  # no sweep beyond the first


def masked(seed):
    rng = np.random.default_rng(seed)
    available = rng.random((6, 3)) < 0.6
    available[:, 0] = True
    return CMDP(rng.dirichlet(np.ones(6), size=(6, 3)), np.zeros((1, 6, 3)), available=available)


def test_sweeps_converge_where_chains_mix():
    rng = np.random.default_rng(0)
    P, c = rng.dirichlet(np.ones(6), size=(6, 3)), rng.random((4, 18))
    optima = [plan(CMDP(P, one.reshape(1, 6, 3))).costs[0] for one in c]
    found = swept_bounds(CMDP(P, np.zeros((1, 6, 3))).transition, c, np.ones((6, 3), bool), np.zeros(6), 10.0)
    assert found == pytest.approx(optima, abs=0.02)
