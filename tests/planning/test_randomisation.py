"""At most as many randomised states as constraints."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from models import examples, random_cmdp
from psconrl import CMDP, Status, evaluate, plan
from psconrl.planning.problem import Problem
from psconrl.planning.randomisation import drop_randomised


@examples(100)
@given(
    st.sampled_from(("dense", "sparse", "tied", "near_reducible", "masked")),
    st.integers(2, 30),
    st.integers(2, 5),
    st.integers(2, 6),
    st.integers(0, 2**32 - 1),
    st.sampled_from((-0.05, 0.0, 0.02)),
)
@example("tied", 17, 5, 2, 158, -0.05)  # two optimal policies that differ in 13 states
@example("tied", 13, 5, 3, 320, 0.0)
def test_no_more_randomised_states_than_constraints(kind, S, A, m, seed, slack):
    p = plan(random_cmdp(kind, S, A, m, seed, slack))
    assume(p.status is Status.OPTIMAL)
    assert p.method == "mixture" or p.gains is not None or "several classes" in p.note
    assert p.randomised_states.size <= m


@pytest.mark.part(3)
@pytest.mark.parametrize(("kind", "S"), [("dense", 20), ("dense", 60), ("near_reducible", 10), ("sparse", 300)])
@pytest.mark.parametrize("seed", range(3))
def test_removing_randomised_actions_changes_no_average(kind, S, seed):
    """A policy that randomises in all visited states becomes one with the same averages that does so in two states."""
    model = random_cmdp(kind, S, 3, 2, seed)
    model = CMDP(model.transition, model.costs[[1, 1, 2]], model.thresholds)  # the objective equals a constrained cost
    policy = np.random.default_rng(seed).dirichlet(np.ones(3), size=S)
    before = evaluate(model, policy)
    occupancy, fewer = drop_randomised(Problem.of(model), before.occupancy, policy)
    after = evaluate(model, fewer)
    np.testing.assert_allclose(after.costs, before.costs, atol=1e-10)
    np.testing.assert_allclose(after.occupancy, occupancy, atol=1e-10)
    assert ((fewer > 0).sum(axis=1) > 1).sum() <= 2
