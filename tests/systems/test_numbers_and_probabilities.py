"""Going between numbers and values, and the probabilities of actions in the words of a system."""

from dataclasses import replace

import numpy as np
import pytest

import psconrl
from psconrl.errors import AgentError, InfeasibleError, ModelError
from psconrl.systems import Bernoulli, Beta, System


def pump(limit=0.25):
    """One state, in which the only way to run a quarter of the time is to do so at random."""
    return System(
        state={"ready": 1}, action={"run": 2}, step={}, costs={"power": "run"}, maximise="run",
        limits=[f"power <= {limit}"],
    )  # fmt: skip


def shelf(p=0.5):
    """A shelf that starts at 1, takes at most one more of two goods, and has no room beyond 3."""
    return System(
        state={"shelf": range(5), "kind": ["a", "b"]}, action={"order": range(3), "kind_of": ["a", "b"]},
        noise={"sold": Bernoulli(p)}, available="shelf + order <= 3",
        step={"shelf": "max(shelf + order - sold, 0)", "kind": "kind_of"},
        costs={"held": "shelf", "lost": "sold * (shelf == 0)"}, minimise="held", limits=["lost <= 0.2"],
        start={"shelf": 1, "kind": "b"},
    )  # fmt: skip


def test_probabilities_of_a_plan_have_a_closed_form():
    assert psconrl.plan(pump()).probabilities({"ready": 0}) == [
        (pytest.approx(0.75), {"run": 0}),
        (pytest.approx(0.25), {"run": 1}),
    ]
    assert psconrl.plan(pump(1.0)).probabilities({"ready": 0}) == [(1.0, {"run": 1})]


def test_probabilities_are_those_with_which_actions_are_drawn():
    """10,000 draws: a share off by more than .02 has a probability below 1e-4."""
    answer, rng = psconrl.plan(pump()), np.random.default_rng(0)
    drawn = np.mean([answer.act({"ready": 0}, rng)["run"] for _ in range(10_000)])
    assert drawn == pytest.approx(answer.probabilities({"ready": 0})[1][0], abs=0.02)


def test_probabilities_of_a_rule_and_errors():
    answer = psconrl.plan(shelf())
    rule = psconrl.rule(answer, depth=1)
    for number in range(len(answer.plan.policy)):
        values = answer.asked.state_values(number)
        given = {tuple(action.values()): p for p, action in answer.probabilities(values, rule)}
        row = rule.policy[number]
        assert given == {tuple(answer.asked.action_values(int(a)).values()): row[a] for a in np.flatnonzero(row)}
    with pytest.raises(InfeasibleError):
        psconrl.plan(shelf().with_limits(["P(shelf == 0) <= -1"])).probabilities({"shelf": 1, "kind": "a"})
    with pytest.raises(ModelError, match="never reached"):
        answer.probabilities({"shelf": 4, "kind": "a"})


def test_probabilities_of_an_agent_are_those_of_its_present_policy():
    system = shelf(Beta(1, 1))
    agent = psconrl.PSConRL.of(system, seed=0)
    state = {"shelf": 3, "kind": "a"}
    with pytest.raises(AgentError, match="call act first"):
        agent.probabilities(state)
    action = agent.act(state)
    before = agent.probabilities(state)
    assert sum(p for p, _ in before) == pytest.approx(1.0)
    assert [p for p, _ in before] == sorted((p for p, _ in before), reverse=True)
    assert action in [taken for _, taken in before]
    assert all(taken["order"] == 0 for _, taken in before)  # nothing else is available at 3
    planned = agent._play.episode
    uniform = np.full(planned.policy.shape, 1 / 6)  # four actions are not available, and the first one is taken instead
    agent._play.episode = replace(planned, policy=uniform)
    assert agent.probabilities(state) == [
        (pytest.approx(5 / 6), {"order": 0, "kind_of": "a"}),
        (pytest.approx(1 / 6), {"order": 0, "kind_of": "b"}),
    ]
    agent._play.episode = planned
    agent.observe(action, {"shelf": 2, "kind": action["kind_of"]})
    agent.finish()
    assert agent.probabilities(state) == before  # those of the last episode
    with pytest.raises(AgentError, match="must be a table of values; got 3"):
        agent.probabilities(3)
    with pytest.raises(AgentError, match=r"made with of\(system\)"):
        psconrl.PSConRL(2, 2, [0.5], seed=0).probabilities({"shelf": 1})


def test_numbers_and_values_are_each_others_inverse():
    system = shelf()
    model = system.model()
    seen = [system.state_values(number) for number in range(model.n_states)]
    assert [system.state_number(values) for values in seen] == list(range(model.n_states))
    assert {"shelf": 1, "kind": "b"} in seen
    assert [model.state_name(number) for number in range(model.n_states)] == [
        f"shelf={values['shelf']}, kind={values['kind']}" for values in seen
    ]
    actions = [system.action_values(number) for number in range(model.n_actions)]
    assert actions[:3] == [{"order": 0, "kind_of": "a"}, {"order": 0, "kind_of": "b"}, {"order": 1, "kind_of": "a"}]
    assert [system.action_number(values) for values in actions] == list(range(model.n_actions))


def test_bad_numbers_and_values_get_one_line():
    system = shelf()
    for wrong in (-1, system.model().n_states, True, 0.0, "0"):
        with pytest.raises(ModelError, match="the number of a state must be a whole number from 0 to"):
            system.state_values(wrong)
    with pytest.raises(ModelError, match="the number of an action must be a whole number from 0 to 5; got 6"):
        system.action_values(6)
    with pytest.raises(ModelError, match="an action must give a value to each of order, kind_of"):
        system.action_number({"order": 1})
    with pytest.raises(ModelError, match="is never reached from the start"):
        system.state_number({"shelf": 4, "kind": "a"})
