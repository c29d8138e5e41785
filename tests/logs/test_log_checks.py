"""What the checks of a log find in logs that are right, and in logs that violate one thing each.

A right log is doubted in three of a hundred; the seeds here are fixed, and each violation is far beyond its threshold:
its p-value, or the inverse of its evidence, is below 1e-9 but with a probability below 1e-6.
"""

import json

import numpy as np
import pytest

from log_samples import shop, shop_rows
from psconrl import Log, LogError
from psconrl.data.checks.finding import OUTCOME
from psconrl.data.checks.suspects import classes, shifted

ROUNDS = 6_000


def rows_of(seed=0, rate=lambda t, mood: 2.0, lead=False, policy=None, outcome=False):
    """Columns of a shop whose demand depends on the round and on a mood that lasts about ten rounds."""
    rng = np.random.default_rng(seed)
    shelf, mood, coming, rows, sold = 3, 0, 0, [], []
    for t in range(ROUNDS):
        mood ^= int(rng.random() < 0.1)
        order = int(rng.integers(4)) if policy is None else policy(shelf)
        demand = int(rng.poisson(rate(t, mood)))
        rows.append((shelf, order, max(demand - shelf, 0), mood))
        sold.append(min(demand, shelf))
        arrives, coming = (coming if lead else order), order
        shelf = min(max(shelf - demand, 0) + arrives, 7)
    days = np.datetime64("2024-01-01") + np.arange(ROUNDS) * np.timedelta64(1, "D")
    found = dict(zip(("shelf", "order", "lost", "mood"), np.array(rows).T, strict=True)) | {"day": days}
    return found | ({"sold": np.array(sold)} if outcome else {})


def checked(rows, *left_out):
    kept = {name: values for name, values in rows.items() if name not in left_out}
    return Log(kept, state="shelf", action="order", costs="lost", time="day").check()


def p_values(report):
    return {tried.suspect.name: tried.p_value for tried in report.tests}


@pytest.mark.statistical
def test_right_logs_are_not_doubted():
    """Six of ten logs doubted: a probability of 2e-7 if each is with probability .03."""
    doubted = sum(not checked(rows_of(seed)).is_good for seed in range(10))
    assert doubted < 6


def test_a_hidden_variable_shows_in_past_rounds():
    report = checked(rows_of(rate=lambda t, mood: 1.2 + 1.6 * mood), "mood")
    assert not report.is_good
    assert report.findings[0].subject == "the results of the last rounds"
    assert "something that lasts for several rounds is missing in the state" in report.findings[0].message


def test_a_hidden_variable_that_shows_in_a_cost_only():
    """A price that lasts, and that the next shelf does not depend on."""
    rows = rows_of()
    rows["lost"] = rows["order"] * (1 + rows["mood"])
    report = checked(rows, "mood")
    assert report.findings[0].subject == "the results of the last rounds in lost"
    assert "lasts for several rounds is missing in the state" in report.findings[0].message


@pytest.mark.statistical
def test_a_recorded_variable_is_named_and_its_shadows_are_not():
    """Given the mood, nothing else matters: more is found in three of a hundred logs, in five of eight with 2e-6."""
    more = 0
    for seed in range(8):
        report = checked(rows_of(seed, rate=lambda t, mood: 1.2 + 1.6 * mood))
        assert report.findings[0].subject == "mood"
        assert "given it, nothing more is shown by" in report.findings[0].message
        assert p_values(report)["the results of the last rounds"] < 1e-9
        more += len(report.findings) > 1
    assert more < 5


def test_an_outcome_of_the_round_is_said_to_be_one():
    rows = rows_of()
    rows["mood"] = (rows["lost"] > 0).astype(int)
    report = checked(rows)
    outcome = next(one for one in report.findings if one.check == OUTCOME)
    assert (outcome.subject, "outcome of the round" in outcome.message) == ("mood", True)


def test_an_outcome_casts_no_doubt_and_hides_none():
    """Given what was sold, the next state is certain, so that nothing else could tell more about it."""
    for hidden in (False, True):
        rate = (lambda t, mood: 1.2 + 1.6 * mood) if hidden else (lambda t, mood: 2.0)
        report = checked(rows_of(rate=rate, outcome=True), "mood")
        assert report.is_good is not hidden
        assert hidden or [one.check for one in report.findings if one.subject == "sold"] == [OUTCOME]


def test_orders_that_are_under_way():
    report = checked(rows_of(lead=True), "mood")
    assert report.findings[0].subject == "the action one round before"


def test_drift_and_weekdays():
    report = checked(rows_of(rate=lambda t, mood: 1.5 + t / ROUNDS), "mood")
    assert report.findings[0].subject == "the period"
    report = checked(rows_of(rate=lambda t, mood: 1.5 + 1.0 * (t % 7 >= 5)), "mood")
    assert report.findings[0].subject == "the weekday"


def test_coverage_weighs_pairs_by_the_plan():
    """The log orders 3 up to a shelf of 2, and else nothing: other pairs were never tried."""
    report = checked(rows_of(policy=lambda shelf: 3 if shelf <= 2 else 0), "mood")
    found = report.coverage
    assert found.weights == "the plan on means"
    assert (found.n_pairs, found.untried) == (12, 6)  # the shelf never has more than 5
    never = {*((str(s), "0") for s in range(3)), *((str(s), "3") for s in range(3, 6))}
    assert {(gap.state, gap.action) for gap in found.gaps} == never
    shares = [gap.share for gap in found.gaps]
    assert shares == sorted(shares, reverse=True)
    assert sum({gap.state: gap.share for gap in found.gaps}.values()) == pytest.approx(1.0, abs=0.05)


def test_a_constant_action_is_said_to_be_constant():
    report = checked(rows_of(policy=lambda shelf: 2), "mood")
    assert "the action is always 2" in report.findings[0].message
    assert report.is_good


def test_limits_of_a_log_without_a_system():
    log = Log(rows_of(), state="shelf", action="order", costs=["order", "lost"])
    assert log.check({"lost": 0.5}).coverage.weights == "the plan on means"
    with pytest.raises(LogError, match="unknown limit 'losst'; did you mean 'lost'"):
        log.check({"losst": 0.5})


def test_a_right_system_is_not_doubted():
    """It is with a probability of .03."""
    assert Log(shop_rows(ROUNDS), system=shop()).check().is_good


@pytest.mark.parametrize("seed", range(3))
def test_an_overdispersed_noise(seed):
    """Two tests find it, of the family and of the dispersion; which has more evidence depends on the log."""
    rng, shelf, rows = np.random.default_rng(seed), 3, []
    for _ in range(ROUNDS):
        order, demand = int(rng.integers(4)), int(rng.negative_binomial(2, 2 / 3.7))  # mean 1.7, variance 3.1
        rows.append((shelf, order, demand))
        shelf = min(max(shelf - demand, 0) + order, 5)
    report = Log(dict(zip(("shelf", "order", "demand"), np.array(rows).T, strict=True)), system=shop()).check()
    (found,) = [finding for finding in report.findings if finding.check == "structure"]
    assert found.subject == "demand"
    assert "does not follow Poisson" in found.message or "varies more than Poisson" in found.message
    assert "Categorical(range(10), prior=1)" in found.message


def test_demand_that_is_unseen_when_sold_out_is_no_reason_for_doubt():
    rows = shop_rows(ROUNDS)
    demand = np.where(rows["demand"] >= rows["shelf"], np.nan, rows["demand"])
    assert Log({"shelf": rows["shelf"], "order": rows["order"], "demand": demand}, system=shop()).check().is_good


def test_the_report_is_plain_data():
    record = checked(rows_of(rate=lambda t, mood: 1.2 + 1.6 * mood)).record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_labels_are_shifted_within_runs():
    follows = np.array([False, True, True, False, True])
    assert shifted(np.arange(5), follows, 2).tolist() == [-1, -1, 0, -1, -1]


def test_classes_keep_equal_values_together():
    found = classes(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, np.nan]), 2)
    assert found.tolist() == [1, 1, 1, 1, 1, 1, -1] or found.tolist() == [0, 0, 0, 0, 1, 1, -1]
