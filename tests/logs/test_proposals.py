"""Policies to propose: penalties and margins in closed form, the order of verification, what may be gained at most."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from psconrl.data.advice import improvement
from psconrl.data.advice.comparison import Compared
from psconrl.data.advice.proposals import Planner, Proposal, proposals
from psconrl.data.posterior.mean_model import MeanModel
from psconrl.data.posterior.row_posterior import Models

TODAY = np.array([[0.75, 0.25]])


def one_state(costs: list[list[float]], noise: list[list[float]]) -> MeanModel:
    """Return a model of one state and two actions, which today are taken in 3 of 4 and in 1 of 4 rounds."""
    rows = csr_array(np.ones((2, 1)))
    allowed = np.ones((1, 2), dtype=bool)
    return MeanModel(rows, np.array(costs), allowed, TODAY, np.ones(1), np.array([30.0, 10.0]), np.array(noise))


def drawn(costs: np.ndarray) -> Models:
    """Return models of one state and two actions with costs (n, m+1, 2)."""
    n = len(costs)
    places = np.arange(2 * n + 1, dtype=np.int32), np.zeros(2 * n, dtype=np.int32), np.ones(2 * n)
    return Models(*places, costs, np.repeat(TODAY[None], n, axis=0), np.ones(1), 0)


@pytest.mark.parametrize(("kappa", "share"), [(1.9, 1.0), (2.1, 0.25)])
def test_a_change_must_be_worth_its_risk(kappa: float, share: float) -> None:
    """Action 1 costs 0 + kappa * (1 - 1/4) * 1/2, today's policy 3/4: they are equal at kappa = 2."""
    planner = Planner(one_state([[1.0, 0.0]], [[0.0, 0.5]]))
    found = planner.plan(np.zeros(0), kappa, np.zeros((1, 1)))
    assert found is not None
    np.testing.assert_allclose(found[0], [[1.0 - share, share]], atol=1e-9)


def test_limits_are_penalised_under_both_policies() -> None:
    """The limited cost of action 1, and a quarter of it as today, has a penalty: 1 of 4 rounds cost 0.1 (1 + 2)."""
    planner = Planner(one_state([[1.0, 0.0], [0.0, 0.1]], [[0.0, 0.0], [0.0, 0.1]]))
    found = planner.plan(np.array([0.15]), 2.0, np.zeros((2, 1)))
    assert found is not None
    np.testing.assert_allclose(found[0], [[0.5, 0.5]], atol=1e-6)


def test_margins_are_corrected_by_draws() -> None:
    """The first policy fills the limit; the second leaves what its quantile exceeded, for the first caution of 1."""
    rng = np.random.default_rng(0)
    costs = np.zeros((500, 2, 2))
    costs[:, 0, 0], costs[:, 1, 1] = 1.0, rng.normal(1.0, 0.2, 500)
    planner = Planner(one_state([[1.0, 0.0], [0.0, float(costs[:, 1, 1].mean())]], [[0.0, 0.0], [0.0, 0.0]]))
    found = proposals(planner, (drawn(costs),), np.array([0.6]), 0.1)
    first, second = next(found), next(found)
    mean, high = costs[:, 1, 1].mean(), np.quantile(costs[:, 1, 1], 0.9)
    np.testing.assert_allclose(first.policy[0, 1], 0.6 / mean, atol=1e-6)
    np.testing.assert_allclose(first.averages[0][:, 1], first.policy[0, 1] * costs[:, 1, 1])
    left = 0.6 - (first.policy[0, 1] * high - 0.6)
    np.testing.assert_allclose(second.policy[0, 1], left / mean, atol=1e-6)


def candidate(cost: float, slack: float) -> tuple[Proposal, tuple[Compared, ...]]:
    """Return a proposal whose objective is ``cost``, and whose limit holds by some deviations."""
    z = np.array([-1.0, 1.0])
    averages = np.column_stack([np.full(2, cost), -slack + z])
    compared = Compared("", averages, np.tile([10.0, 0.0], (2, 1)), np.array([0.0]))
    return Proposal(np.full((1, 2), cost), (averages,)), (compared,)


def test_steps_go_from_safe_to_bold() -> None:
    """A policy that is neither safer nor better than another is left out, and so is one that is expected to fail."""
    found = [candidate(cost, slack) for cost, slack in ((3.0, 1.0), (5.0, 3.0), (6.0, 2.0), (4.0, 2.5), (1.0, -0.5))]
    steps = improvement._steps(found, lambda one: one.safety_of_limits)
    assert [float(policy[0, 0]) for policy in steps] == [5.0, 4.0, 3.0]


def test_verification_ends_with_the_first_failure() -> None:
    """The third fails, so that the fourth is not tried, whatever it would be."""
    tried = []

    class Stub:
        def of(self, policy: np.ndarray) -> tuple[float, ...]:
            tried.append(int(policy))
            return (float(policy),)

    found = improvement._last_verified([np.array(k) for k in (0, 1, 2, 3)], Stub(), lambda one: one != 2.0)
    assert found is not None
    assert int(found[0]) == 1
    assert tried == [0, 1, 2]
    assert improvement._last_verified([np.array(2)], Stub(), lambda one: one != 2.0) is None


def test_what_could_be_gained_at_most() -> None:
    """Costs of 1 and 0 have a range of 1, today's policy costs 3/4, and a limit of 0.6 leaves 2/5."""
    costs = np.tile([[1.0, 0.0], [0.0, 1.0]], (40, 1, 1))
    mean = one_state([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    today = (np.tile([0.75, 0.25], (40, 1)),)
    found = improvement._potential(mean, (drawn(costs),), today, np.array([0.6]), 0.95)
    assert found == pytest.approx(0.35)
