"""Logs of simulators in SimPy: a right description is not doubted, one that is not Markov or that drifts is.

A right log is doubted with a probability of .03. The violations are far beyond that: in trials their p-values were
below 1e-7 in every log.
"""

import numpy as np
import pytest

from psconrl import Log, System
from psconrl.systems import Bernoulli, Beta, Gamma, Poisson

pytest.importorskip("simpy")
from simulators import CallCentre, Clinic

SLOTS = 6_000
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 5))]
PAST = ("the result of the round before", "the results of the last rounds", "the state one round before")


def clinic_system():
    """The clinic, described by hand: treatments end after two, three or four slots."""
    ends = "(age == 0 or age == 4 or (age == 2 and short) or (age == 3 and middle))"
    there = "waiting + admit * arrivals > 0"
    return System(
        state={"waiting": range(9), "age": range(5)},
        action={"admit": range(2)},
        noise={
            "arrivals": Poisson(Gamma(2, 1), most=8),
            "short": Bernoulli(Beta(1, 1)),
            "middle": Bernoulli(Beta(1, 1)),
        },
        step={
            "waiting": f"min(waiting + admit * arrivals, 8) - (1 if {ends} and {there} else 0)",
            "age": f"(1 if {there} else 0) if {ends} else age + 1",
        },
        costs={"wait": "waiting", "away": "(1 - admit) * arrivals"},
        minimise="wait",
        limits=["away <= 0.2"],
    )


def clinic_log(rows, state, *left_out):
    return Log({k: v for k, v in rows.items() if k not in ("arrivals", *left_out)}, state=state, action="admit")


def call_log(rows):
    return Log(rows, state="calls", action="divert", costs="lost")


def subjects(report):
    return [finding.subject for finding in report.findings if finding.check not in ("coverage", "fault")]


@pytest.mark.statistical
def test_right_descriptions_are_not_doubted(full):
    """Each of six logs is doubted with a probability of .03, four of them with 1.2e-5; all of three with 3e-5."""
    checked = []
    for seed in range(2 if full else 1):
        rows = Clinic(SLOTS, seed).table()
        checked += [clinic_log(rows, ["waiting", "age"]), Log(rows, system=clinic_system())]
        checked += [call_log(CallCentre(SLOTS, seed).table())]
    doubted = sum(not log.check().is_good for log in checked)
    assert doubted < (4 if full else 3)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", SEEDS)
def test_a_state_without_the_age_of_a_treatment_is_not_markov(seed):
    rows = Clinic(SLOTS, seed).table()
    assert subjects(clinic_log(rows, "waiting", "age").check())[0] in PAST
    recorded = clinic_log(rows, "waiting").check()
    assert subjects(recorded)[0] == "age"
    assert "add it to the state" in recorded.findings[-1].message


@pytest.mark.statistical
@pytest.mark.parametrize("seed", SEEDS)
def test_demand_that_drifts(seed):
    assert subjects(call_log(CallCentre(SLOTS, seed, 1.4, 2.6).table()).check())[0] == "the period"
    rows = Clinic(SLOTS, seed, 0.2, 0.6).table()
    assert "arrivals" in subjects(Log(rows, system=clinic_system()).check())


@pytest.mark.statistical
def test_fitted_noise_is_that_of_the_simulator():
    """Arrivals of 0.3 a slot; treatments end after two slots with .3, after three with 4/7: within 5 deviations."""
    rows = Clinic(SLOTS, 0).table()
    log = Log(rows, system=clinic_system())
    assert abs(log.records["arrivals"].mean() - 0.3) < 5 * np.sqrt(0.3 / SLOTS)
    for age, share in ((2, 0.3), (3, 4 / 7)):
        at = rows["age"][:-1] == age
        ended = rows["age"][1:][at] != age + 1
        assert abs(ended.mean() - share) < 5 * np.sqrt(share * (1 - share) / at.sum())
