"""Short rules: exact where the best policy is one, and honest about what they cost."""

import re

import numpy as np
import pytest

import psconrl
from psconrl import ConfigError, evaluate
from psconrl.answers.short_rule import Question
from psconrl.systems.noise import Bernoulli, Categorical, Poisson
from psconrl.systems.system import System


def queue(**options):
    return System(
        state={"waiting": range(8)},
        action={"speed": range(3)},
        noise={"arrival": Bernoulli(0.3), "done": Bernoulli("0.2 + 0.2 * speed")},
        step={"waiting": "min(max(waiting - done, 0) + arrival, 7)"},
        costs={"power": "speed ** 2", "delay": "waiting"},
        **({"minimise": "power + 0.5 * delay"} | options),
    )


def shop(**options):
    return System(
        state={"shelf": range(12), "coming": range(5)},
        action={"order": range(5)},
        noise={"demand": Poisson(1.5, most=6)},
        step={"shelf": "min(max(shelf + coming - demand, 0), 11)", "coming": "order"},
        costs={"lost": "max(demand - shelf - coming, 0)", "money": "0.3 * shelf + order + 4 * (order > 0)"},
        **({"minimise": "money", "limits": ["lost / demand <= 5%"]} | options),
    )


def checked(found, rule):
    """Evaluate the policy of a rule again, and compare."""
    exact = evaluate(found.model, rule.policy)
    assert np.allclose(exact.occupancy, rule.occupancy)
    assert rule.averages == pytest.approx(found.averages_of(exact.occupancy))
    assert rule.loss == pytest.approx(rule.value - found.bound)
    assert rule.feasible == (not rule.missed)
    for limit in found.asked.statement.requirements:
        within = rule.averages[limit.name] <= limit.high * (1 + 1e-9) + 1e-12
        assert within or not rule.feasible
    return rule


def test_a_threshold_policy_is_found():
    found = psconrl.plan(queue())
    speeds = found.plan.policy.argmax(axis=1)
    assert len(set(speeds)) == 3
    assert (np.diff(speeds) != 0).sum() == 3
    rule = checked(found, psconrl.rule(found, 2))
    assert rule.loss == pytest.approx(0.0, abs=1e-9)
    assert rule.agreement == pytest.approx(1.0)
    assert "waiting <= " in rule.text
    assert str(rule).endswith("as planned in 100% of rounds, optimal")
    short = checked(found, psconrl.rule(found, 1))
    assert isinstance(short.tree, Question)
    assert short.loss > 0
    assert checked(found, psconrl.rule(found, 0)).loss >= short.loss
    assert "worse" in str(short)


def test_under_a_limit_one_question_is_randomised():
    found = psconrl.plan(queue(minimise="power", limits=["delay <= 1.2"]))
    rule = checked(found, psconrl.rule(found, 2))
    assert rule.feasible
    assert rule.averages["delay"] == pytest.approx(1.2, abs=1e-6)
    assert rule.loss / found.value < 0.01
    assert "with probability" in rule.text


def test_a_rule_about_a_sum():
    found = psconrl.plan(shop())
    rule = checked(found, psconrl.rule(found, 1))
    assert rule.text.startswith("order ")
    assert "if shelf + coming <= " in rule.text
    assert rule.feasible
    assert rule.loss / found.value < 0.05
    assert checked(found, psconrl.rule(found, 2)).loss <= rule.loss + 1e-12


def test_an_order_up_to_a_level_is_one_leaf():
    stock = System(
        state={"shelf": range(11)}, action={"order": range(11)}, available="shelf + order <= 10",
        noise={"demand": Poisson(3.0, most=9)}, step={"shelf": "max(shelf + order - demand, 0)"},
        costs={"money": "shelf + order + 5 * max(demand - shelf - order, 0)"}, minimise="money",
    )  # fmt: skip
    found = psconrl.plan(stock)
    rule = checked(found, psconrl.rule(found, 0))
    assert re.fullmatch(r"order \d+ - shelf", rule.text)
    assert rule.loss == pytest.approx(0.0, abs=1e-9)


def test_texts_are_asked_for():
    machine = System(
        state={"part": ["good", "worn", "broken"]}, action={"do": ["run", "mend"]},
        noise={"wear": Categorical({"none": 0.7, "some": 0.3})},
        step=lambda part, do, wear: {
            "part": "good" if do == "mend" else {"good": "worn", "worn": "broken", "broken": "broken"}[part]
            if wear == "some" else part
        },
        costs={"loss": lambda part, do: 1.5 * (do == "mend") + 2.0 * (part == "broken") * (do == "run")},
        minimise="loss",
    )  # fmt: skip
    found = psconrl.plan(machine)
    rule = checked(found, psconrl.rule(found, 1))
    assert rule.loss == pytest.approx(0.0, abs=1e-9)
    assert found.action_of(rule, {"part": "broken"}) == {"do": "mend"}


def test_a_rule_that_misses_a_limit_says_so():
    found = psconrl.plan(shop(limits=["lost / demand <= 5%", "P(order == 0) == 0.6"]))
    rule = checked(found, psconrl.rule(found, 0))
    assert not rule.feasible
    assert "does not keep" in str(rule)
    assert "P(order == 0) == 0.6" in str(rule)


def test_depths():
    with pytest.raises(ConfigError, match="depth must be a whole number from 0 to 6"):
        psconrl.rule(psconrl.plan(queue()), 7)
