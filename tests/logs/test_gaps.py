"""Logs with missing rows: what is right, what is not, and whether the check of gaps finds it."""

import numpy as np
import pytest

from psconrl import Log, LogError
from psconrl.data.checks.gaps import gap_test, state_classes

ROWS = 20_000
P = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])


def chain(seed):
    rng = np.random.default_rng(seed)
    ends, uniform, states = P.cumsum(axis=1), rng.random(ROWS), [0]
    for u in uniform[1:]:
        states.append(min(int(np.searchsorted(ends[states[-1]], u)), 2))
    return np.array(states), rng


def log_of(states, lost):
    """A log in which rows are missing; its times show it."""
    times = np.flatnonzero(~lost)
    table = {"s": states[~lost], "a": np.zeros(times.size, int), "t": times}
    return Log(table, state="s", action="a", time="t", step=1)


def z_scores(log):
    """Differences of frequencies from probabilities, in standard deviations."""
    n = np.zeros((3, 3))
    np.add.at(n, (log.states, log.next_states), 1)
    each = n.sum(axis=1, keepdims=True)
    return (n - each * P) / np.sqrt(each * P * (1 - P))


@pytest.mark.statistical
def test_frequencies_are_right_if_gaps_are_random_or_follow_from_the_state():
    """Nine normal scores beyond 5 with a probability of 5e-6 for each log."""
    for seed in range(3):
        states, rng = chain(seed)
        before = np.append(0, states[:-1])
        assert np.abs(z_scores(log_of(states, rng.random(ROWS) < 0.1))).max() < 5
        assert np.abs(z_scores(log_of(states, rng.random(ROWS) < np.array([0.02, 0.1, 0.3])[before]))).max() < 5


@pytest.mark.statistical
def test_gaps_that_depend_on_the_next_state_bias_frequencies_and_are_found():
    """A state that is lost in three of ten cases seems rarer, as ``checks.gaps`` says; p-values are below 1e-6."""
    for seed in range(3):
        states, rng = chain(seed)
        log = log_of(states, rng.random(ROWS) < np.array([0.02, 0.02, 0.3])[states])
        assert z_scores(log)[0, 2] < -5
        seen = P * np.array([0.98, 0.98, 0.7])
        n = np.bincount(log.states * 3 + log.next_states, minlength=9).reshape(3, 3)
        assert n / n.sum(axis=1, keepdims=True) == pytest.approx(seen / seen.sum(axis=1, keepdims=True), abs=0.03)
        (found,) = [finding for finding in log.check().findings if finding.check == "gaps"]
        assert found.subject == "the gaps"
        assert "of rows in 2," in found.message
        assert not log.check().is_good


@pytest.mark.statistical
def test_random_gaps_are_not_doubted():
    """A p-value below 1e-4 in one of 40 logs has a probability of .004, in two of 1e-5. Half have gaps in stretches."""
    small = 0
    for seed in range(20):
        states, rng = chain(seed)
        lost = rng.random(ROWS) < 0.02
        small += gap_test(log_of(states, lost)).p_value < 1e-4
        small += gap_test(log_of(states, lost | np.append(False, lost[:-1]) | np.roll(lost, 2))).p_value < 1e-4
    assert small < 2


def test_gaps_are_counted_by_the_state_before_them():
    states = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    lost = np.isin(np.arange(12), [4])
    log = log_of(states, lost)
    assert (log.gaps, log.broken.states.tolist(), log.broken.places.tolist()) == (1, [0], [3])
    holes = Log({"s": np.where(lost, np.nan, states), "a": [0] * 12}, state="s", action="a", skip_bad=True)
    assert (holes.broken.states.tolist(), holes.broken.places.tolist()) == ([0], [3])
    assert log.counts().tally.times.tolist() == holes.counts().tally.times.tolist()


def test_the_last_row_of_a_run_is_no_gap():
    log = Log({"s": [0, 1, 0, 1], "a": [0] * 4, "r": [0, 0, 1, 1]}, state="s", action="a", run="r")
    assert log.broken.states.size == 0


def test_rare_states_are_one_class():
    states = np.repeat(np.arange(5), [500, 300, 5, 5, 190])
    assert state_classes(states, 5, 100)[[0, 500, 800, 805, 810]].tolist() == [1, 2, 0, 0, 3]


def test_many_gaps_are_not_taken_for_irregular_times():
    """A fifth of all rows is missing: these may be gaps, or weekends, so the caller has to say what they are."""
    days = [k for k in range(70) if k % 7 < 5]
    table = {"s": [0] * 50, "a": [0] * 50, "t": days}
    with pytest.raises(
        LogError, match=r"9 rows \(lines 7, 12, 17, …\): the time from the row before is a multiple"
    ) as e:
        Log(table, state="s", action="a", time="t")
    assert "step=inf" in str(e.value)
    assert Log(table, state="s", action="a", time="t", skip_bad=True).n_rounds == 40
    assert Log(table, state="s", action="a", time="t", step=1).n_rounds == 40
    assert Log(table, state="s", action="a", time="t", step=np.inf).n_rounds == 49


def test_irregular_times_have_no_gaps():
    times = np.cumsum(np.random.default_rng(1).exponential(size=200))
    log = Log({"s": [0] * 200, "a": [0] * 200, "t": times}, state="s", action="a", time="t")
    assert (log.gaps, log.n_rounds) == (0, 199)


@pytest.mark.parametrize("step", [0, "1", np.nan])
def test_steps_that_are_none(step):
    with pytest.raises(LogError, match="step must be a positive number"):
        Log({"s": [0, 1], "a": [0, 0], "t": [0, 1]}, state="s", action="a", time="t", step=step)
