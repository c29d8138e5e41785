"""Slack and span of a baseline from observed rounds: a closed form, coverage, and what cannot be proven."""

import contextlib
import math
import re

import numpy as np
import pytest
from scipy.stats import binom

import psconrl
from psconrl import evaluate
from psconrl.agents import FixedPolicy, SafeStart, known_baseline, observed_baseline
from psconrl.envs.registry import load_system
from psconrl.errors import AgentError
from psconrl.kernels.intervals import end_of_interval
from psconrl.learning.observed_baseline import _proven
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.safety_views import NoiseKnowledge, Occasion
from psconrl.systems import Bernoulli, Beta, System

DOWN, UP = 0, 1
FAILS, MENDED = 0.1, 0.4


def machine(limit=0.6):
    """A machine that fails and is mended; the only action is to wait."""
    return System(
        state={"up": range(2)},
        action={"wait": 1},
        noise={"fails": Bernoulli(Beta(1, 1)), "mended": Bernoulli(Beta(1, 1))},
        step={"up": "1 - fails if up == 1 else mended"},
        costs={"paid": "0", "down": "1 - up"},
        start={"up": 1},
        minimise="paid",
        limits=[f"down <= {limit}"],
    )


def rounds_of(fails, stays_up, mended, stays_down):
    """Rounds of the machine, as numbers."""
    kinds = [((UP, 0, DOWN), fails), ((UP, 0, UP), stays_up), ((DOWN, 0, UP), mended), ((DOWN, 0, DOWN), stays_down)]
    return [row for row, times in kinds for _ in range(times)]


def is_correct(model, given):
    """Whether slack and span are, in a model with all actions: c + P h - h <= tau - slack in every state."""
    for cost, tau, slack, h in zip(model.costs[1:], model.thresholds, given["slack"], given["span"], strict=True):
        values = cost + np.asarray(model.transition @ h).reshape(cost.shape)
        if ((given["baseline"] * values).sum(axis=1) - h > tau - slack + 1e-12).any() or h.min() < 0.0:
            return False
    return True


def test_the_least_bound_is_that_of_the_ends_of_the_intervals():
    """The machine is down for the share b / (b + c); each of two intervals fails with probability delta / 2."""
    system, log = machine(), math.log(2 / 0.1)
    counts = Counts(2, 1, 2)
    record = Record.empty(counts)
    for row in rounds_of(10, 90, 16, 24):
        record.step(*row, np.zeros(2))
    counts.add(record)
    baseline = np.ones((2, 1))
    view, _ = NoiseKnowledge(system.structure).view(counts, 0.1, Occasion(0, system.thresholds, baseline, None))
    often, rarely = end_of_interval(10.0, 100.0, log, 1.0), end_of_interval(16.0, 40.0, log, 0.0)
    pairs = _proven(baseline, view, 0, 0.6)
    assert pairs[0][0] == pytest.approx(often / (often + rarely), abs=1e-9)
    assert np.ptp(pairs[0][1]) == pytest.approx(1 / (often + rarely), abs=1e-6)
    least, most = pairs[0][0], 0.6
    for share, (bound, _) in zip((0.25, 0.5, 0.75, 0.9), pairs[1:], strict=True):  # no closer to the threshold
        assert least < bound == pytest.approx(most - share * (most - least), abs=1e-6)
    given = observed_baseline(system, [0, 0], rounds_of(10, 90, 16, 24), delta=0.1)
    assert any(given["slack"][0] == pytest.approx(0.6 - bound) for bound, _ in pairs)


def test_claims_are_correct_in_all_but_a_share_delta_of_records_even_if_each_ends_when_it_looks_best():
    """60 records, at delta = 0.3; the test fails by accident with probability 1e-4 at most."""
    system, delta, claims, wrong = machine(0.9), 0.3, 0, 0
    model = system.with_noise(fails=FAILS, mended=MENDED).model_for_learning()
    rng = np.random.default_rng(11)
    for _ in range(60):
        state, rows, failures = UP, [], []
        for u in rng.random(80):
            following = int(u >= FAILS if state == UP else u < MENDED)
            rows.append((state, 0, following))
            failures.append((state == UP) & (following == DOWN))
            state = following
        shares = np.cumsum(failures) / np.arange(1, 81)
        best = 20 + int(shares[20:].argmin())
        with contextlib.suppress(AgentError):  # nothing is claimed
            given = observed_baseline(system, [0, 0], rows[: best + 1], delta=delta)
            claims, wrong = claims + 1, wrong + (not is_correct(model, given))
    assert claims > 30
    assert wrong <= binom.isf(1e-4, 60, delta)


def test_many_rounds_prove_nearly_the_true_slack_and_the_agent_keeps_the_limits():
    system, true = load_system("inventory"), load_system("inventory", known=True)
    model = true.model_for_learning()
    best = known_baseline(model, by_state=True)
    player = FixedPolicy(model.n_states, model.n_actions, model.thresholds, policy=best["baseline"], seed=3)
    psconrl.simulate(model, player, 30_000, seed=4)
    given = observed_baseline(system, best["baseline"], player)
    assert is_correct(model, given)
    assert not is_correct(model, given | {"slack": given["slack"] + 0.05})
    assert (given["slack"] > 0.85 * best["slack"]).all()
    agent = SafeStart.of(system, **given, seed=5)
    trace = psconrl.simulate(model, agent, 300, seed=6, evaluate_policies=True)
    assert (np.array(trace.policies.costs)[:, 1:] <= model.thresholds + 1e-9).all()
    assert trace.policies.costs[-1][0] < evaluate(model, best["baseline"]).costs[0]


def test_rounds_in_words_and_a_policy_that_is_a_function_say_the_same():
    system = machine()
    numbers = rounds_of(10, 90, 16, 24)
    words = [({"up": a}, {"wait": 0}, {"up": b}) for a, _, b in numbers]
    one, other = observed_baseline(system, [0, 0], numbers), observed_baseline(system, lambda state: {"wait": 0}, words)
    for name in ("baseline", "slack", "span"):
        assert np.array_equal(one[name], other[name])


def test_what_cannot_be_proven_is_said():
    system = machine()
    with pytest.raises(AgentError, match="needs a System; got CMDP"):
        observed_baseline(system.model_for_learning(), [0, 0], [])
    with pytest.raises(AgentError, match=r"10 rounds do not prove .* more rounds may do$"):
        observed_baseline(system, [0, 0], rounds_of(1, 4, 2, 3))
    with pytest.raises(AgentError, match=r"5 rounds do not prove .*They show nothing of 'mended': give rounds that do"):
        observed_baseline(system, [0, 0], rounds_of(0, 5, 0, 0))
    with pytest.raises(AgentError, match=r"estimated at 0\.8.*Give a baseline that stays below"):
        observed_baseline(system, [0, 0], rounds_of(80, 20, 10, 90))
    with pytest.raises(AgentError, match=re.escape("rounds[1] must be (state, action, next state); got (1, 0)")):
        observed_baseline(system, [0, 0], [(1, 0, 1), (1, 0)])
    with pytest.raises(
        AgentError, match=re.escape("rounds[0]: next state must be a table of values, or 0 to 1; got 2")
    ):
        observed_baseline(system, [0, 0], [(1, 0, 2)])
    with pytest.raises(AgentError, match=re.escape("rounds[0]: ")):
        observed_baseline(system, [0, 0], [({"upp": 1}, 0, 0)])
    with pytest.raises(AgentError, match="the agent has 3 states and 1 actions, the system 2 and 1"):
        observed_baseline(system, [0, 0], FixedPolicy(3, 1, [0.6], policy=np.ones((3, 1))))
    shop = load_system("inventory")
    with pytest.raises(
        AgentError, match="the rounds contradict the system: a transition was observed that is impossible"
    ):
        observed_baseline(shop, np.zeros(9, dtype=int), [({"stock": 1}, {"order": 0}, {"stock": 5})])
