"""The best policy within a certificate: policy iteration over vertices, and the linear program."""

import numpy as np
import pytest

from psconrl import evaluate
from psconrl.model.cmdp import CMDP
from psconrl.planning.robust import lyapunov
from psconrl.planning.robust.polytopes import number_of_vertices, vertices_of


def test_the_vertices_of_a_state_by_hand():
    """Columns cost (-1, 0), (2, -3) and (0, 1): two inequalities leave a triangle of the shares."""
    over = np.array([[[-1.0, 2.0, 0.0]], [[0.0, -3.0, 1.0]]])
    found = [
        tuple(np.bincount(columns, weights=shares, minlength=3).tolist())
        for kind in vertices_of(over)
        for columns, shares, allowed in zip(kind.columns, kind.shares[:, 0], kind.allowed[:, 0], strict=True)
        if allowed
    ]
    by_hand = [(1 / 3, 1 / 6, 1 / 2), (2 / 3, 1 / 3, 0.0), (1.0, 0.0, 0.0)]
    assert np.unique(np.round(found, 12), axis=0) == pytest.approx(np.array(by_hand))
    assert number_of_vertices(2, 1, 3) == 3 + 2 * (2 * 3) + 3


def test_a_vertex_of_three_equations_by_hand():
    """Each of three columns lowers one cost, and the fourth raises all: it has a quarter, as the others have."""
    over = np.concatenate([-np.eye(3), np.ones((3, 1))], axis=1)[:, None, :]
    kind = vertices_of(over)[3]
    assert kind.columns.tolist() == [[0, 1, 2, 3]]
    assert kind.shares[0, 0] == pytest.approx([0.25] * 4)
    assert kind.allowed.all()


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_vertices_and_the_linear_program_find_the_same_optimum(seed, m):
    rng = np.random.default_rng([seed, m])
    S, A = 6, 4
    model = CMDP(rng.dirichlet(np.ones(S), size=(S, A)), rng.uniform(size=(1, S, A)))
    policy = rng.dirichlet(np.ones(A), size=S)
    bounds, thresholds = rng.uniform(size=(m, S, A)), np.full(m, 0.5)
    played = np.minimum((policy * bounds).sum(axis=2), 0.5)
    over = np.concatenate([bounds, played[:, :, None]], axis=2) - 0.5
    values = []
    for found in (
        lyapunov.best_within(model.transition, model.costs[0], bounds, thresholds, policy, played),
        lyapunov._by_program(model.transition, model.costs[0], over, policy),
    ):
        mixed = policy + found.share[:, None] * (found.other - policy)
        reached = (1 - found.share) * played + found.share * (found.other * bounds).sum(axis=2)
        assert (reached <= 0.5 + 1e-7).all()
        values.append(float(evaluate(model, mixed).costs[0]))
    assert values[0] == pytest.approx(values[1], abs=1e-7)
