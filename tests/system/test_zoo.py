"""The zoo of small environments, and the rule by which a run is lost. What agents score there is not tested."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import lost_runs
import psconrl
import zoo
from lost_runs import Line, lost_lines, over_bounds


def made(family, number):
    return zoo.member(lost_runs.FAMILIES[family], lost_runs.SETS["all"][family], number)


def line(label="a", family="f", number=0, kind="known", run=0, late=0.0, score=0.0, uniform=100.0):
    return Line(label, family, number, kind, run, 1000, late, score, uniform, 1.0)


def test_the_sets_are_apart_and_large():
    development, held_out = lost_runs.SETS["development"], lost_runs.SETS["held-out"]
    assert not set(development) & set(held_out)
    assert not set(development.values()) & set(held_out.values())
    assert min(len(development), len(held_out)) >= 8
    assert 17 * len(lost_runs.SETS["all"]) >= 300


@pytest.mark.parametrize("family", lost_runs.FAMILIES)
def test_members(family):
    for number in range(3):
        cmdp, known, kind = lost_runs.environment(family, number)
        assert kind == zoo.KINDS[number]
        assert cmdp.n_states <= 16
        assert 2 <= cmdp.n_actions <= (10 if cmdp.n_states == 1 else 5)
        assert 1 <= cmdp.n_constraints <= 3
        assert cmdp.available.all()
        assert cmdp.transition.communicates
        assert (cmdp.costs.min(axis=(1, 2)) >= 0.0).all()
        assert (cmdp.costs.max(axis=(1, 2)) <= 1.0).all()
        best = psconrl.plan(cmdp)
        assert best.status in (psconrl.Status.OPTIMAL, psconrl.Status.NOT_ATTAINED)
        assert best.certificate.holds
        assert best.multipliers.sum() >= zoo.PRICES[0]
        assert zoo.can_be_judged(known, kind)
        slack = psconrl.plan(cmdp.with_thresholds(cmdp.thresholds - 1e-5))
        assert slack.status is not psconrl.Status.INFEASIBLE


@pytest.mark.parametrize("family", ["corridor", "tight_garnet", "dense", "tight_arms"])
def test_a_member_depends_on_its_number_alone(family):
    one, two, other = (made(family, number)[0] for number in (2, 2, 5))
    assert (one.transition.toarray() == two.transition.toarray()).all()
    assert (one.costs == two.costs).all()
    assert (one.thresholds == two.thresholds).all()
    assert one.costs.shape != other.costs.shape or (one.costs != other.costs).any()


def test_constraints_of_all_kinds_occur():
    """Some models have a free constraint, some one that nearly binds, some one cost twice."""
    free = near = twice = 0
    for family in lost_runs.SETS["development"]:
        for number in range(3):
            cmdp, _, _ = lost_runs.environment(family, number)
            best = psconrl.plan(cmdp)
            for i in range(cmdp.n_constraints):
                largest = -psconrl.plan(psconrl.CMDP(cmdp.transition, -cmdp.costs[[i + 1]])).costs[0]
                free += cmdp.thresholds[i] > largest
                near += best.multipliers[i] < 1e-9 and cmdp.thresholds[i] - best.costs[i + 1] < 0.03
                twice += any((cmdp.costs[i + 1] == cmdp.costs[j + 1]).all() for j in range(i))
    assert min(free, near, twice) >= 2


def two_arms():
    """Arm 0 costs the objective 1, arm 1 the constraint: the optimum plays arm 1 at a rate of .25, at price 1."""
    return psconrl.CMDP(np.ones((1, 2, 1)), [[[1.0, 0.0]], [[0.0, 1.0]]], [0.25])


def test_the_reference_of_two_arms():
    """Uniform play gains .25 on the objective and overspends .25 at twice the price of 1."""
    known = zoo.reference(two_arms())
    assert known.value == pytest.approx(0.75)
    assert known.prices == pytest.approx([1.0])
    assert known.uniform == pytest.approx(-0.25 + 2 * 0.25)
    assert known.variance == pytest.approx(0.0, abs=1e-12)
    assert known.bernoulli == pytest.approx(0.0, abs=1e-12)  # costs of 0 and 1 have no noise


def test_the_luck_of_a_chain():
    """A chain that stays with 1 - p and q: its asymptotic variance is p q (2 - p - q) / (p + q)^3."""
    p, q = 0.1, 0.3
    P = np.array([[[1 - p, p]], [[q, 1 - q]]])
    known = zoo.reference(psconrl.CMDP(P, [[[0.0], [1.0]], [[0.0], [0.0]]], [1.0]))
    occupied = p / (p + q)
    # A martingale's steps have this variance: E Var h(s') with h(1) - h(0) = 1 / (p + q).
    assert known.variance == pytest.approx(((1 - occupied) * p * (1 - p) + occupied * q * (1 - q)) / (p + q) ** 2)
    assert known.variance == pytest.approx(p * q * (2 - p - q) / (p + q) ** 3)


def test_the_noise_of_bernoulli_costs():
    """One arm of cost .5 and price 0: the variance of a Bernoulli cost is .25."""
    known = zoo.reference(psconrl.CMDP(np.ones((1, 1, 1)), [[[0.5]], [[0.5]]], [1.0]))
    assert known.bernoulli == pytest.approx(0.25)


def test_the_score_of_a_policy():
    """Playing arm 1 always gains .75 a round on the objective, and overspends .75 at twice the price of 1."""
    cmdp = two_arms()
    always = psconrl.agents.FixedPolicy(1, 2, cmdp.thresholds, policy=[[0.0, 1.0]])
    trace = psconrl.simulate(cmdp, always, 40, 0, checkpoints=[30, 40])
    assert lost_runs.scores(trace, cmdp, zoo.reference(cmdp)) == pytest.approx([0.75 * 30, 0.75 * 40])


@pytest.mark.parametrize(
    ("late", "score", "expected"),
    [
        (50.0, 50.0, False),  # half of uniform play, and no more
        (50.0, 50.1, True),
        (0.0, 5.0, False),  # a fifth of a quarter
        (0.0, 5.1, True),
        (-20.0, -14.0, True),  # a last quarter counts whatever was gained before
        (90.0, 49.0, False),
    ],
)
def test_the_bounds(late, score, expected):
    assert over_bounds(late, score, 100.0) is expected


def test_a_run_is_lost_only_where_some_agent_has_none():
    bad, good = {"late": 60.0, "score": 80.0}, {"late": 1.0, "score": 2.0}
    alone = [line(**bad)]
    assert lost_lines(alone) == []
    both = [line(**bad), line("b", **good)]
    assert lost_lines(both) == both[:1]
    assert lost_lines([line(**bad), line("b", run=0, **good), line("b", run=1, **bad)]) == []
    assert lost_lines([line(**bad), line("b", number=1, **good)]) == []
    assert lost_lines([line(**bad), line("b", kind="noisy", **good)]) == []
    # A second run of the same agent does not help.
    assert lost_lines([line(run=0, **bad), line(run=1, **good)]) == []


def test_the_table(capsys):
    left_out = Counter({("c", "needs one limit"): 3})
    lost_runs.show([line(late=60.0, score=80.0), line("b", late=1.0, score=2.0)], left_out, "a")
    out = capsys.readouterr().out
    assert "| a | 1 | 1 | 1 | 1000.0 | 1 (f) | 80.0 | 80 | 1.00 |" in out
    assert "| b | 1 | 0 | 0 | 0.0 | 0 | 2.0 | 2 | 1.00 |" in out
    assert "| f | 1 | 1 | 1 | 80.0 | 80.0 | 80 |" in out
    assert "| a | f/0/0 | known | 80.0 | 80.0 | yes |" in out
    assert "Left out: c, 3 runs: needs one limit" in out


def test_a_file_is_continued(tmp_path):
    jobs = [
        lost_runs.Job(agent, agent, {}, family, 0, 0, 40)
        for family in ("bandit", "queue")
        for agent in ("uniform", "tsde")
    ]
    once, parts = tmp_path / "once.csv", tmp_path / "parts.csv"
    lost_runs.run(jobs, once, 1)
    lost_runs.run(jobs[:3], parts, 1)
    lost_runs.run(jobs, parts, 1)
    first, second = (lost_runs.read(path, lost_runs.SETS["development"], 40)[0] for path in (once, parts))
    assert len(first) == len(jobs)
    assert [one._replace(seconds=0.0) for one in first] == [one._replace(seconds=0.0) for one in second]
    assert lost_runs.read(once, lost_runs.SETS["held-out"], 40)[0] == []
    assert lost_runs.read(once, lost_runs.SETS["development"], 50)[0] == []


def test_an_agent_that_cannot_play_is_left_out_with_the_reason():
    job = lost_runs.Job("span-fha", "span-fha", {}, "corridor", 0, 0, 40)  # eleven states
    assert "at most 4 states" in lost_runs.play(job)[-1]
