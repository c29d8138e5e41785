"""Logs on which a method may fail, and twins: the same log in another form has the same verdict."""

from typing import Any

import numpy as np
import pytest

import psconrl
from psconrl.agents import FixedPolicy
from psconrl.data.advice.averages import todays_averages
from psconrl.data.advice.improvement import Improvement, Verdict, improve
from psconrl.data.log import Log
from psconrl.data.posterior.row_posterior import RowPosterior
from psconrl.markov.evaluation import evaluate_policy

DRAWS = 300
QUEUE = psconrl.load("queue")
UNIFORM = np.full((QUEUE.n_states, QUEUE.n_actions), 1.0 / QUEUE.n_actions)


def queue_log(rounds: int = 4000, seed: int = 0) -> dict[str, Any]:
    """Return the arrays of a log of the queue under uniform actions."""
    agent = FixedPolicy(QUEUE.n_states, QUEUE.n_actions, QUEUE.thresholds, policy=UNIFORM, seed=[seed, 1])
    played = psconrl.simulate(QUEUE, agent, rounds, seed=seed, trajectory=True).trajectory
    assert played is not None
    return {
        "n_states": QUEUE.n_states,
        "n_actions": QUEUE.n_actions,
        "states": np.asarray(played.states[:-1]),
        "actions": np.asarray(played.actions),
        "next_states": np.asarray(played.next_states),
        "costs": np.asarray(played.costs),
        "cost_names": ("cost", "delay", "power"),
    }


LIMITS = {"delay": 3.0, "power": 0.6}


def advised(arrays: dict[str, Any], limits: dict[str, float] | None = None) -> Improvement:
    """Return the recommendation for a log."""
    return improve(Log.of_arrays(**arrays), limits=LIMITS if limits is None else limits, draws=DRAWS)


@pytest.fixture(scope="module")
def plain() -> Improvement:
    """What is advised to the log as it is, which is clear: the best policy gains much more than its uncertainty."""
    found = advised(queue_log())
    assert found.verdict is Verdict.IMPROVE
    return found


def same_gain(one: Improvement, other: Improvement) -> bool:
    """Compare true gains up to what other draws and other ties of the plan may change."""
    costs = [evaluate_policy(QUEUE, found.policy).costs[0] for found in (one, other)]
    today = evaluate_policy(QUEUE, UNIFORM).costs[0]
    return bool(abs(costs[0] - costs[1]) <= 0.25 * abs(today - costs[0]))


def test_states_in_another_order(plain: Improvement) -> None:
    """States are relabelled."""
    order = np.random.default_rng(0).permutation(QUEUE.n_states)
    arrays = queue_log()
    arrays |= {name: order[arrays[name]] for name in ("states", "next_states")}
    found = advised(arrays)
    assert found.verdict is plain.verdict
    back = Improvement(found.verdict, found.policy[order], found.confidence, found.compared, None)
    assert same_gain(plain, back)


@pytest.mark.parametrize("copied", ["delay", "never"])
def test_a_limit_twice_and_one_that_never_binds(plain: Improvement, copied: str) -> None:
    """A column that is there twice with the same limit, and a column of zeros with a limit of one."""
    arrays = queue_log()
    column = arrays["costs"][:, [1]] if copied == "delay" else np.zeros((4000, 1))
    arrays |= {"costs": np.hstack([arrays["costs"], column]), "cost_names": ("cost", "delay", "power", "other")}
    found = advised(arrays, LIMITS | {"other": 3.0 if copied == "delay" else 1.0})
    assert found.verdict is plain.verdict
    assert same_gain(plain, found)


def test_a_copied_limit_that_is_noisy() -> None:
    """Both columns have the same draws, so that the probability that both hold is that of one."""
    arrays = queue_log(1000)
    noise = np.random.default_rng(1).normal(size=(1000, 1))
    arrays["costs"] = np.hstack([arrays["costs"][:, :1], arrays["costs"][:, [1, 1]] + noise])
    found = improve(Log.of_arrays(**arrays), limits={"delay": 3.0, "power": 3.0}, draws=DRAWS)
    for one in found.compared:
        np.testing.assert_allclose(one.averages[:, 1], one.averages[:, 2], atol=1e-6)


def test_runs_in_another_order(plain: Improvement) -> None:
    """Four runs of a thousand rounds; the last becomes the first."""
    arrays = queue_log()
    order = np.roll(np.arange(4000), 1000)
    follows = np.arange(4000) % 1000 > 0
    arrays |= {name: arrays[name][order] for name in ("states", "actions", "next_states", "costs")}
    found = advised(arrays | {"run": np.arange(4000) // 1000, "follows": follows})
    assert found.verdict is plain.verdict
    assert same_gain(plain, found)


def test_rewards_in_place_of_costs(plain: Improvement) -> None:
    """The objective is a reward, and a limit is one from below."""
    arrays = queue_log()
    arrays["costs"] = arrays["costs"] * [-1.0, 1.0, -1.0]
    found = advised(arrays | {"signs": np.array([-1.0, 1.0, -1.0])}, {"delay": 3.0, "power": -0.6})
    assert found.verdict is plain.verdict
    assert same_gain(plain, found)


def test_costs_in_other_units(plain: Improvement) -> None:
    """Thousandths, and an objective that is far from zero."""
    arrays = queue_log()
    arrays["costs"] = 1000.0 * arrays["costs"] + [1e5, 0.0, 0.0]
    found = advised(arrays, {"delay": 3000.0, "power": 600.0})
    assert found.verdict is plain.verdict
    assert same_gain(plain, found)


def test_an_action_never_tried_is_not_proposed() -> None:
    """The log has five of the six actions."""
    arrays = queue_log()
    kept = arrays["actions"] != 3
    arrays |= {name: arrays[name][kept] for name in ("states", "actions", "next_states", "costs")}
    found = advised(arrays | {"follows": np.append(False, np.diff(np.flatnonzero(kept)) == 1)})
    assert (found.policy[:, 3] == 0.0).all()


def chain_log(path: list[int], actions: list[int], costs: np.ndarray, n_states: int, **more: Any) -> Log:
    """Return a log of a path of states."""
    states = np.array(path)
    return Log.of_arrays(
        n_states=n_states,
        n_actions=2,
        states=states[:-1],
        actions=np.array(actions),
        next_states=states[1:],
        costs=costs[states[:-1], np.array(actions)][:, None],
        cost_names=("cost",),
        **more,
    )


def test_a_log_that_ends_in_a_transient_state() -> None:
    """Round a ring of three, and then one step aside to a state that was never left: averages are those of the ring."""
    ring = [k % 3 for k in range(300)]
    costs = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [0.0, 0.0]])
    log = chain_log([*ring, 3], [0] * 300, costs, 4)
    (found,) = todays_averages(log, RowPosterior(log), draws=DRAWS)
    # A state that was never left may lead anywhere, and may be left never: an interval that ends at the ring's 2.
    assert found.low <= 2.0 <= found.high + 0.05
    assert improve(log, draws=DRAWS).verdict is not Verdict.IMPROVE


def test_two_closed_classes_are_separated_by_the_end_of_the_log() -> None:
    """Two runs that never meet: draws connect them at unknown rates, and the interval includes both averages."""
    first, second = [0, 1] * 100, [2, 3] * 100
    arrays = {
        "n_states": 4,
        "n_actions": 1,
        "states": np.array(first[:-1] + second[:-1]),
        "actions": np.zeros(398, dtype=int),
        "next_states": np.array(first[1:] + second[1:]),
        "run": np.repeat([0, 1], 199),
        "follows": np.arange(398) % 199 > 0,
        "cost_names": ("cost",),
    }
    log = Log.of_arrays(**arrays, costs=np.isin(arrays["states"], [2, 3])[:, None].astype(float))
    (found,) = todays_averages(log, RowPosterior(log), draws=DRAWS)
    assert found.low < 0.05
    assert found.high > 0.95


def test_one_state_and_one_action() -> None:
    """There is nothing to change."""
    log = Log.of_arrays(
        n_states=1, n_actions=1, states=np.zeros(40, dtype=int), actions=np.zeros(40, dtype=int),
        next_states=np.zeros(40, dtype=int), costs=np.random.default_rng(0).normal(size=(40, 2)),
        cost_names=("cost", "limited"),
    )  # fmt: skip
    assert improve(log, limits={"limited": 5.0}, draws=DRAWS).verdict is Verdict.KEEP
    broken = improve(log, limits={"limited": -5.0}, draws=DRAWS)
    assert broken.verdict is Verdict.NOT_ENOUGH


def test_a_limit_that_is_free(plain: Improvement) -> None:
    """With no limits at all, more may be gained."""
    found = advised(queue_log(), {})
    assert found.verdict is Verdict.IMPROVE
    free, kept = (evaluate_policy(QUEUE, one.policy).costs[0] for one in (found, plain))
    assert free <= kept + 0.01


@pytest.mark.full
@pytest.mark.statistical
def test_luck_is_not_taken_for_merit() -> None:
    """Eight actions that do the same at noisy costs, and few rounds: a gain is claimed at most as often as stated.

    At confidence 0.95 each of 40 logs is wrong with probability 5% at most; more than 8 have a probability of 1e-4.
    """
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        states = rng.integers(3, size=401)
        log = Log.of_arrays(
            n_states=3, n_actions=8, states=states[:-1], actions=rng.integers(8, size=400), next_states=states[1:],
            costs=rng.normal(size=(400, 1)), cost_names=("cost",),
        )  # fmt: skip
        wrong += improve(log, draws=DRAWS, seed=seed).verdict is Verdict.IMPROVE
    assert wrong <= 8
