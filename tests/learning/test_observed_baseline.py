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
from psconrl.kernels.sets.intervals import end_of_interval
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.safe.confidence_sets import NoiseKnowledge, Occasion
from psconrl.learning.safe.observed_baseline import _proven
from psconrl.systems import Bernoulli, Beta, Binomial, Gamma, Poisson, System
from psconrl.systems.events import Event

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


def test_recorded_noise_counts_in_every_round():
    """A machine that is up may be said to be mended, too: then every round is a trial of both noises."""
    system, log = machine(), math.log(2 / 0.1)
    kinds = {  # fails, mended, times
        UP: [(0, 0, 50), (1, 0, 6), (0, 1, 40), (1, 1, 4)], DOWN: [(0, 0, 22), (0, 1, 16), (1, 0, 2)],
    }  # fmt: skip
    rows = [
        (state, 0, 1 - fails if state == UP else mended, {"fails": fails, "mended": mended})
        for state, outcomes in kinds.items()
        for fails, mended, times in outcomes
        for _ in range(times)
    ]
    given = observed_baseline(system, [0, 0], rows, delta=0.1)
    often, rarely = end_of_interval(12.0, 140.0, log, 1.0), end_of_interval(60.0, 140.0, log, 0.0)
    least = often / (often + rarely)
    shares = (0.25, 0.5, 0.75, 0.9, 1.0)
    assert any(given["slack"][0] == pytest.approx(share * (0.6 - least), abs=1e-6) for share in shares)
    some = [(*row[:3], {"fails": row[3]["fails"]}) for row in rows]  # counts for what is recorded only
    with pytest.raises(AgentError, match="They show nothing of 'mended'"):
        observed_baseline(system, [0, 0], some, delta=0.1)


def clinic():
    """Beds for four, calls of which as many as wanted are admitted, and discharges that calls hide."""
    return System(
        state={"patients": range(5)},
        action={"admit": range(3)},
        noise={"calls": Poisson(Gamma(2, 1), most=5), "home": Binomial("patients", Beta(1, 1))},
        step={"patients": "patients - home + min(calls, admit)"},
        available="patients + admit <= 4",
        costs={"refused": "max(calls - admit, 0)"},
        minimise="refused",
        limits=["P(patients >= 3) <= 85%"],
    )


@pytest.mark.full
@pytest.mark.statistical
def test_claims_from_recorded_noise_are_correct_as_often_as_they_say_even_if_each_ends_when_it_looks_best():
    """60 logs of a clinic that is no System, at delta = 0.3; fails by accident with probability 1e-4 at most."""
    system, claims, wrong = clinic(), 0, 0
    model = system.with_noise(calls=1.2, home=0.4).model_for_learning()
    rng = np.random.default_rng(12)
    for _ in range(60):
        patients, rows, full = 0, [], []
        for _ in range(100):
            admit = min(2, 4 - patients)
            calls, home = int(rng.poisson(1.2)), int(rng.binomial(patients, 0.4))
            following = patients - home + min(calls, admit)
            rows.append(
                ({"patients": patients}, {"admit": admit}, {"patients": following}, {"calls": calls, "home": home})
            )
            patients = following
            full.append(patients >= 3)
        best = 20 + int((np.cumsum(full) / np.arange(1, 101))[20:].argmin())
        with contextlib.suppress(AgentError):  # nothing is claimed
            given = observed_baseline(
                system, lambda state: {"admit": min(2, 4 - state["patients"])}, rows[: best + 1], delta=0.3
            )
            claims, wrong = claims + 1, wrong + (not is_correct(model, given))
    assert claims > 30
    assert wrong <= binom.isf(1e-4, 60, 0.3)


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
    with pytest.raises(AgentError, match=r"5 rounds do not prove .*They show nothing of 'mended': give its values"):
        observed_baseline(system, [0, 0], rounds_of(0, 5, 0, 0))
    with pytest.raises(AgentError, match=r"estimated at 0\.8.*Give a baseline that stays below"):
        observed_baseline(system, [0, 0], rounds_of(80, 20, 10, 90))
    with pytest.raises(
        AgentError, match=re.escape("rounds[1] must be (state, action, next state), or with noise; got (1, 0)")
    ):
        observed_baseline(system, [0, 0], [(1, 0, 1), (1, 0)])
    with pytest.raises(
        AgentError, match=re.escape("rounds[0]: next state must be a table of values, or 0 to 1; got 2")
    ):
        observed_baseline(system, [0, 0], [(1, 0, 2)])
    with pytest.raises(AgentError, match=re.escape("rounds[0]: ")):
        observed_baseline(system, [0, 0], [({"upp": 1}, 0, 0)])
    with pytest.raises(AgentError, match="the agent has 3 states and 1 actions, the system 2 and 1"):
        observed_baseline(system, [0, 0], FixedPolicy(3, 1, [0.6], policy=np.ones((3, 1))))
    with pytest.raises(AgentError, match=r"rounds\[1\]: the noise of nothing is given, and before that of 'fails'"):
        observed_baseline(system, [0, 0], [(1, 0, 1, {"fails": 0}), (1, 0, 1)])
    with pytest.raises(AgentError, match=r"rounds\[0\]: noise must be a table of values.*got \{'fails': None\}"):
        observed_baseline(system, [0, 0], [(1, 0, 1, {"fails": None})])
    with pytest.raises(AgentError, match=r"rounds\[0\]: unknown noise 'fail'"):
        observed_baseline(system, [0, 0], [(1, 0, 1, {"fail": 0})])
    shop = load_system("inventory")
    with pytest.raises(
        AgentError, match="the rounds contradict the system: a transition was observed that is impossible"
    ):
        observed_baseline(shop, np.zeros(9, dtype=int), [({"stock": 1}, {"order": 0}, {"stock": 5})])


@pytest.mark.parametrize("finished", [False, True])
def test_sojourns_that_were_rounded_to_ticks_prove_nothing(finished):
    """A tick of the clock that only stands for time is no trial whose outcome was seen."""
    system = System(
        state={"n": range(2)}, action={"wait": 1}, clock=4.0, costs={"queue": "n"}, minimise="queue",
        limits=["P(n > 0) <= 90%"],
        events={"up": Event(Gamma(2, 2), {"n": "1"}), "down": Event(Gamma(2, 2), {"n": "0"})},
    )  # fmt: skip
    agent = psconrl.PSConRL.of(system, seed=0)
    agent.act({"n": 0})
    agent.observe({"wait": 0}, {"n": 1}, after=2.5)
    if finished:
        agent.finish()
    with pytest.raises(AgentError, match="rounded to ticks"):
        observed_baseline(system, np.ones((2, 1)), agent)
