"""The costs for which the safe agent plans, written out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import psconrl
from psconrl.learning.safe import certified_plans
from psconrl.learning.safe.certified_plans import CertifiedPlans


def test_nine_tenths_of_the_priced_effect_of_uncertainty_and_a_tenth_of_optimism_are_subtracted(monkeypatch):
    """Two states, one action: h of the objective is (0, 2), of the constraint (0, 3); any distribution is allowed."""
    P = np.array([[[0.75, 0.25]], [[0.5, 0.5]]])
    model = psconrl.CMDP(P, [[[1.0], [2.0]], [[0.1], [0.2]]], [1.0])
    monkeypatch.setattr(certified_plans, "largest_means", lambda sets, h: np.full(2, h.max()))
    view = SimpleNamespace(
        model=model,
        whole=model,
        means=model.costs[1:],
        distributions=None,
        largest=lambda i, h: np.full(2, h.max()),
        expected=lambda i, h: P[:, 0] @ h,
    )
    plans = CertifiedPlans(np.ones((2, 1)), 1)
    plans.biases, plans.prices, plans.potential = np.array([[0.0, 3.0]]), np.array([4.0]), np.array([0.0, 2.0])
    hopes, fears = plans._hopes_and_fears(view)
    added = np.array([3.0 - 0.75, 3.0 - 1.5])
    assert fears[0, :, 0] == pytest.approx([0.1 + added[0], 0.2 + added[1]])
    optimism = 0.1 * np.array([0.5 - 0.0, 1.0 - 0.0])
    assert hopes[:, 0] == pytest.approx(np.array([1.0, 2.0]) - optimism - 0.9 * 4.0 * added)
    assert plans._hopes_and_fears(view)[0] is hopes
    plans.prices = np.array([0.0])
    assert plans._hopes_and_fears(view)[0][:, 0] == pytest.approx(np.array([1.0, 2.0]) - optimism)
