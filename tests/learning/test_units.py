"""Scaling the objective, or a cost with its threshold, changes no agent's behaviour."""

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, simulate
from psconrl.agents import CUCRL, LagrangianPSRL, Scaled
from psconrl.errors import AgentError
from psconrl.learning.registry import make_agent
from psconrl.planning.scaling import cost_units
from test_formulas import CHOICE, taught

LEARNERS = ("psconrl", "psconrl-repaying", "psconrl-published", "cmdp-psrl", "c-ucrl", "ucrl-cmdp", "fha", "lagrangian")
T = 800


def environment():
    return psconrl.load("garnet", states=5, actions=3, branching=3, constraints=1, slack=0.05, seed=3)


def in_other_units(cmdp, objective, cost):
    units = np.array([objective, cost])
    return CMDP(cmdp.transition, cmdp.costs * units[:, None, None], cmdp.thresholds * cost, initial=cmdp.initial)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("learner", LEARNERS)
def test_other_units_make_the_same_run(learner, known):
    """Powers of two are exact in floating point: not one bit may differ."""
    runs = []
    for objective, cost in ((1.0, 1.0), (128.0, 0.25)):
        cmdp = in_other_units(environment(), objective, cost)
        options = {"fha": {"H": 20, "span": 0.5 * cost}, "c-ucrl": {"h": 20}}.get(learner, {})
        costs = cmdp.costs if known else None
        agent = make_agent(learner, 5, 3, cmdp.thresholds, costs, 1, T, **options)
        trace = simulate(cmdp, agent, T, seed=2)
        runs.append((trace.episodes.length, trace.episodes.kind, (trace.cumulative / [objective, cost]).tolist()))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("label", ["pd-lscvi-ucb", "pd-lsvi-ucb", "pdnac"])
def test_a_gap_for_each_constraint_bounds_its_multiplier_in_its_range(label):
    """At most 2 u / gap: costs from 0 to 10 and from 0 to 0.5."""
    costs = np.array([[[0.0, 1.0]], [[10.0, 0.0]], [[0.0, 0.5]]])
    for gap, wanted in ((2.0, [10.0, 0.5]), ([2.0, 0.1], [10.0, 10.0])):
        agent = make_agent(label, 1, 2, [5.0, 0.25], costs, 0, 100, gap=gap)
        assert (agent._ceilings(agent._units()) if label == "pd-lscvi-ucb" else agent.ceilings).tolist() == wanted
        again = agent.__class__(1, 2, [5.0, 0.25], costs, horizon=100, gap=agent.gap)
        np.testing.assert_array_equal(again.gap, gap)


@pytest.mark.parametrize("label", ["pd-lscvi-ucb", "pd-lsvi-ucb", "pdnac"])
@pytest.mark.parametrize("gap", [0.0, -1.0, [1.0], [1.0, 0.0], [1.0, np.nan], [1.0, 1.0, 1.0], np.inf, True, "wide"])
def test_a_gap_that_is_not_positive_gets_one_clear_line(label, gap):
    with pytest.raises(AgentError, match=r"gap must be (a positive number, or one per threshold|numbers, in a list)"):
        make_agent(label, 1, 2, [0.5, 0.5], np.ones((3, 1, 2)), 0, 100, gap=gap)


def test_c_ucrl_plans_alike_whatever_the_units():
    plans = []
    for objective, cost in ((1.0, 1.0), (100.0, 7.0)):
        table = CHOICE * np.array([objective, cost])[:, None, None]
        agent = CUCRL(1, 2, [0.5 * cost], table, h=3, radius=Scaled(0.4))
        taught(agent, {(0, 0, 0): 25, (0, 1, 0): 16})
        episode = [agent.begin(0) for _ in range(3)][-1]
        plans.append((*episode.policy[0], episode.value / objective))
    assert plans[0] == pytest.approx(plans[1], rel=1e-12)
    assert plans[0][0] == pytest.approx(0.4 / 0.9)


def test_the_multiplier_is_objective_per_cost():
    """100 times the objective and 7 times the cost: a multiplier of 100 / 7 times the size, after the same moves."""
    moved = []
    for objective, cost in ((1.0, 1.0), (100.0, 7.0)):
        table = CHOICE * np.array([objective, cost])[:, None, None]
        agent = LagrangianPSRL(1, 2, [0.25 * cost], table, rate=0.3, start=0.5 * objective / cost, ceiling=2.5)
        one = taught(agent, {(0, 0, 0): 12, (0, 1, 0): 4}).multipliers[0]
        two = taught(agent, {(0, 0, 0): 500}).multipliers[0]
        moved.append(np.array([one, two]) * cost / objective)
    assert moved[0] == pytest.approx([0.5 + 0.3 * 8 / 4, 2.5])
    assert moved[1] == pytest.approx(moved[0], rel=1e-12)


def test_the_unit_of_a_cost_is_its_range():
    assert cost_units(np.array([[[3.0, 5.0]], [[-2.0, -2.0]], [[0.0, 0.0]]])).tolist() == [2.0, 2.0, 1.0]
