"""Explanations of actions: advantages against a long recursion of means, and against the plan's certificate."""

import numpy as np
import pytest

from models import random_cmdp
from psconrl import CMDP, InfeasibleError, PolicyError, explain, load, plan
from psconrl.systems.noise import Bernoulli
from psconrl.systems.system import System


def as_costs(cmdp, why):
    """The changes (K, m+1) of all alternatives as costs, in the order of the model."""
    return np.array([[sign * one.changes[name] for name, sign in zip(cmdp.cost_names, cmdp.names.signs, strict=True)]
                     for one in why.alternatives])  # fmt: skip


def losses(why):
    return np.array([one.loss for one in why.alternatives])


def actions(why):
    return np.array([one.number for one in why.alternatives])


def probabilities(why):
    return np.array([one.probability for one in why.alternatives])


def total_changes(cmdp, policy, rounds=4000):
    """The total of every cost starting with action a in s, less that of the policy, by powers of P: (S, A, costs)."""
    P = cmdp.transition.toarray().reshape(cmdp.n_states, cmdp.n_actions, -1)
    P_pi = np.einsum("sa,sat->st", policy, P)
    expected = np.einsum("sa,isa->si", policy, cmdp.costs)  # t rounds on, from every state
    change = np.moveaxis(cmdp.costs, 0, 2) - expected[:, None]
    other = P - P_pi[:, None]
    for _ in range(rounds):
        change += other @ expected
        expected = P_pi @ expected
    return change


@pytest.mark.parametrize("kind", ["dense", "sparse", "masked", "tied"])
@pytest.mark.parametrize("m", [0, 1, 2])
def test_changes_are_what_is_added_up(kind, m):
    cmdp = random_cmdp(kind, 6, 3, m, seed=m)
    best = plan(cmdp)
    if best.infeasibility is not None:
        return
    expected = total_changes(cmdp, best.policy)
    for s in range(cmdp.n_states):
        why = explain(cmdp, s, best)
        assert sorted(actions(why)) == np.flatnonzero(cmdp.available[s]).tolist()
        assert np.array_equal(probabilities(why), best.policy[s, actions(why)])
        for a, change in zip(actions(why), as_costs(cmdp, why), strict=True):
            assert change == pytest.approx(expected[s, a], abs=1e-8)


@pytest.mark.parametrize("name", ["queue", "inventory", "marsrover-4x4", "box"])
def test_at_its_prices_nothing_is_worth_more_than_what_the_plan_plays(name):
    cmdp = load(name)
    best = plan(cmdp)
    for s in range(cmdp.n_states):
        why = explain(cmdp, s, best)
        assert (losses(why) >= -1e-8).all()
        if why.share > 0:  # elsewhere the plan is free to choose
            assert losses(why)[probabilities(why) > 0] == pytest.approx(0, abs=1e-8)
        # The same from the potential of the certificate, which is independent of the policy.
        h = best.potential + best.low_potential
        priced = cmdp.costs[0] + np.tensordot(best.multipliers, cmdp.costs[1:], 1)
        reduced = priced + cmdp.transition.drift(h)
        gain = best.costs[0] + best.multipliers @ best.costs[1:]
        assert (reduced[s][cmdp.available[s]] >= gain - 1e-8).all()
        if why.share > 0:
            worth = dict(zip(actions(why).tolist(), losses(why), strict=True))
            for a in np.flatnonzero(best.policy[s] > 0):
                assert worth[a] == pytest.approx(reduced[s, a] - gain, abs=1e-8)


def test_the_best_stands_first():
    why = explain(load("queue"), "1 waiting")
    assert (probabilities(why)[:2] > 0).all()
    assert (probabilities(why)[2:] == 0).all()
    assert (np.diff(losses(why)[2:]) >= 0).all()


def test_leaving_for_good_changes_the_averages():
    """State 0 may stay at cost 1 or go to a trap of cost 3: the plan stays, going adds 2 a round."""
    cmdp = CMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[[1, 1], [3, 3]]])
    why = explain(cmdp, 0)
    assert actions(why).tolist() == [0, 1]
    assert [one.average_changes for one in why.alternatives] == [{}, {"objective": 2.0}]
    assert losses(why).tolist() == [0.0, np.inf]


def test_bad_questions():
    with pytest.raises(PolicyError, match="unknown state '11 waiting'"):
        explain(load("queue"), "11 waiting")
    with pytest.raises(InfeasibleError, match="no policy keeps"):
        explain(load("inventory").with_thresholds({"orders": 0.1}), 0)


def test_records_speak_of_rewards_as_tables_do():
    queue = load("queue")
    why = explain(queue, "1 waiting")
    record = why.record()
    assert (record["sense"], record["units"]["throughput"]) == ("maximise", "customers")
    for action, change, loss in zip(record["actions"], as_costs(queue, why), losses(why), strict=True):
        assert action["changes"]["throughput"] == -change[0]
        assert action["changes"]["delay"] == change[1]
        assert action["loss"] == loss
    assert record["prices"] == dict(zip(("delay", "power"), plan(queue).multipliers.tolist(), strict=True))
    assert record["proven"] == list(plan(queue).proven)


def test_a_model_and_its_system_have_the_same_explanation():
    """The queue as a system that states its limits, and as the model that is made of it."""
    system = System(
        state={"waiting": range(5)}, action={"fast": 2}, noise={"arrival": Bernoulli(0.3), "done": Bernoulli(0.4)},
        step={"waiting": "min(max(waiting - (1 + fast) * done, 0) + arrival, 4)"},
        costs={"power": "fast", "delay": "waiting"}, minimise="power", limits=["delay <= 0.9"],
    )  # fmt: skip
    model = system.model()
    for s in range(model.n_states):
        one, other = explain(system, {"waiting": s}), explain(model, s)
        assert (one.prices, one.proven, one.share) == (other.prices, other.proven, other.share)
        for stated, plain in zip(one.alternatives, other.alternatives, strict=True):
            assert (stated.number, stated.loss, stated.changes) == (plain.number, plain.loss, plain.changes)
        assert str(one).replace(f"waiting={s}, ", "") == str(other).replace(f"waiting={s}, ", "")
