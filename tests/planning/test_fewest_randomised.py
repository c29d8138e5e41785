"""Halving the states in which two optimal policies differ keeps the averages and leaves one randomised state."""

import numpy as np
import pytest

from psconrl import CMDP, Status, plan
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem
from psconrl.planning.randomisation import nearest_pair


def ring(weights, tau):
    """States in a ring, visited in turn. In each the agent may spend its weight to save as much: at price 1 all tie."""
    weights = np.asarray(weights, dtype=np.float64)
    S = weights.size
    P = np.repeat(np.eye(S)[(np.arange(S) + 1) % S], 2, axis=0)
    spend = np.column_stack([np.zeros(S), weights])
    return CMDP(P, [-spend, spend], [tau])


@pytest.mark.parametrize("tau", [0.03, 0.5, 1.1, 2.0, 3.4])
@pytest.mark.parametrize("weights", [[1, 2, 3, 4, 5, 6, 7], [7, 1, 6, 2, 5, 3, 4], [4, 4, 4, 4, 4, 4, 4]])
def test_one_randomised_state_and_the_same_averages(weights, tau):
    """What is spent is saved: the optimum spends the whole budget."""
    model = ring(weights, tau)
    problem = Problem.of(model)
    found = solve(problem)
    assert len(found.mixture.answers) == 2
    columns, shares = nearest_pair(problem, found.mixture)
    averages = problem.scaling.invert(shares @ np.array([column.costs for column in columns]))
    assert averages == pytest.approx([-tau, tau], abs=1e-12)
    assert len(columns) == 1 or (columns[0].policy != columns[1].policy).sum() == 1
    p = plan(model)
    assert (p.status, p.method) == (Status.OPTIMAL, "mixture")
    assert p.randomised_states.size <= 1
