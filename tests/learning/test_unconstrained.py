"""UCRL2 and TSDE: their formulas; these and PMEVI-DT ignore constraints, and learn where none binds."""

import math

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, plan, simulate
from psconrl.agents import TSDE, UCRL2, Dirichlet, Doubling, Ouyang
from psconrl.errors import SolverError
from psconrl.learning.posterior.counts import Record
from psconrl.learning.registry import make_agent
from psconrl.learning.rivals import ucrl2

ROVER = psconrl.load("marsrover-4x4")


def record_of(agent, rounds):
    record = Record.empty(agent.counts)
    for state, action, successor, costs in rounds:
        record.step(state, action, successor, np.array(costs))
    agent.end(record)


def test_the_radii_of_ucrl2_are_those_of_the_paper():
    S, A, delta = 3, 2, 0.1
    agent = UCRL2(S, A, [0.5], delta=delta, bonus=0.1, ranges=[[2.0, 6.0], [0.0, 1.0]])
    record_of(agent, [(0, 1, 2, [5.0, 0.0])] * 4 + [(2, 0, 0, [3.0, 0.0])] * 2)
    t = 7
    radius = 0.1 * np.sqrt(14 * S * math.log(2 * A * t / delta) / np.array([4.0, 2.0]))
    assert agent._radius()[[1, 4]] == pytest.approx(radius)
    assert agent._radius()[[0, 2, 3, 5]].tolist() == [2.0] * 4  # untried
    width = 0.1 * np.sqrt(7 * math.log(2 * S * A * t / delta) / (2 * np.array([4.0, 2.0])))
    objective = agent._optimistic_objective()
    assert [objective[0, 1], objective[2, 0]] == pytest.approx(np.maximum([5.0, 3.0] - 4.0 * width, 2.0))
    assert objective[0, 0] == objective[1, 1] == 2.0


def test_a_radius_is_at_most_that_of_all_distributions_and_a_bound_at_least_the_lowest_cost():
    agent = UCRL2(2, 2, [0.5])
    record_of(agent, [(0, 0, 1, [0.3, 0.0])])
    assert agent._radius().tolist() == [2.0] * 4
    assert not agent._optimistic_objective().any()


def test_an_episode_of_ucrl2_ends_once_a_pair_has_doubled():
    agent = UCRL2(2, 2, [0.5], ROVER.costs[:, :2, :2])
    record_of(agent, [(0, 0, 1, [0.0, 0.0])] * 5)
    episode = agent.begin(0)
    assert episode.visit_caps.tolist() == [[5, 1], [1, 1]]
    assert episode.kind == "unconstrained"
    assert isinstance(agent.schedule, Doubling)


def test_a_plan_that_is_not_settled_is_replaced_by_uniform_play(monkeypatch):
    def fails(*given):
        raise SolverError("no")

    monkeypatch.setattr(ucrl2, "plan_in_balls", fails)
    agent = UCRL2(2, 3, [0.5])
    assert agent.begin(0).kind == "unsettled"
    assert (agent.begin(0).policy == 1 / 3).all()
    tsde = TSDE(2, 3, [0.5])
    monkeypatch.setattr(tsde.planner, "optimal", fails)
    assert tsde.begin(0).kind == "unsettled"


def test_tsde_has_the_parts_of_its_paper():
    agent = TSDE(2, 2, [0.5])
    assert isinstance(agent.belief, Dirichlet)
    assert isinstance(agent.schedule, Ouyang)


@pytest.mark.parametrize(("name", "options"), [("tsde", {}), ("ucrl2", {"bonus": 0.01}), ("pmevi-dt", {"bonus": 0.01})])
def test_constraints_are_ignored(name, options):
    """The same run under a limit that no policy meets, without limits, and with limits of other costs."""
    others = ROVER.costs[[0, 1, 1]] * np.array([1.0, 5.0, -2.0])[:, None, None]
    models = [ROVER.with_thresholds([-1.0]), CMDP(ROVER.transition, ROVER.costs[:1], initial=ROVER.initial),
              CMDP(ROVER.transition, others, [0.1, 0.2], initial=ROVER.initial)]  # fmt: skip
    runs = []
    for model in models:
        agent = make_agent(name, 16, 4, model.thresholds, model.costs, 0, 400, **options)
        runs.append(simulate(model, agent, 400, seed=0).cumulative[:, 0].tolist())
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "options"), [("tsde", {}), ("ucrl2", {"bonus": 0.01}), ("pmevi-dt", {"bonus": 0.01})])
@pytest.mark.parametrize("known", [True, False])
def test_they_are_near_the_optimum_where_no_constraint_binds(name, options, known):
    """The optimum is 0.75; over 12 other seeds the averages were at most 0.765."""
    free = plan(CMDP(ROVER.transition, ROVER.costs[:1], initial=ROVER.initial)).value
    agent = make_agent(name, 16, 4, [1.0], ROVER.costs if known else None, 0, 5_000, **options)
    averages = simulate(ROVER.with_thresholds([1.0]), agent, 5_000, seed=0).cumulative[-1] / 5_000
    assert free == pytest.approx(0.75)
    assert averages[0] < free + 0.03


def test_the_optimism_of_ucrl2_is_below_the_true_optimum():
    model = psconrl.load("garnet", states=5, seed=4)
    best = plan(CMDP(model.transition, model.costs[:1])).value
    agent = make_agent("ucrl2", 5, model.n_actions, model.thresholds, model.costs, 0)
    values = []
    agent.watch(lambda event: values.append(event.value))
    simulate(model, agent, 3_000, seed=0)
    assert max(values) <= best + 1e-9
    assert values[-1] > values[0]
