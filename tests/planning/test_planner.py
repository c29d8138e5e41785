"""The planner against the reference LP, brute force and closed forms; every claim with its certificate."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

import psconrl
from models import cmdps, examples, random_cmdp
from psconrl import CMDP, Status, certify, evaluate, plan
from psconrl.answers.inspection import inspect_model
from psconrl.errors import ConfigError, InfeasibleError, ModelError
from psconrl.model.transition import Transition
from psconrl.planning.mixture.column_generation import mix
from psconrl.planning.mixture.howard import Howard
from psconrl.planning.mixture.solve import solve
from psconrl.planning.problem import Problem
from psconrl.systems import reports

AGREE = 1e-7  # planner against HiGHS, whose own tolerances are 1e-9 at best

ring = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 1], [1, 1]], [[1, 1], [0, 1]]], [0.5])
trap = CMDP.from_rewards([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], rewards=[[0], [1], [0]])


@examples(300)
@given(cmdps())
@example(random_cmdp("near_deterministic", 2, 1, 5, 3986884709, 0.0))  # a state left with probability 1e-20
@example(random_cmdp("near_deterministic", 2, 3, 1, 1495028477, -0.1))  # HiGHS fails here
@example(random_cmdp("degenerate", 2, 2, 3, 277177557, 0.02))  # multichain, not attained
def test_planner_and_referee_agree_and_every_certificate_holds(cmdp):
    ours = plan(cmdp)
    assert ours.status is not Status.UNCERTIFIED
    again = certify(cmdp, ours)
    assert again.holds == ours.certificate.holds
    assert again.holds
    initially_randomised = ours.feasible and ours.mixture is not None
    if initially_randomised and ours.gains is not None:
        assert "memory" in ours.note  # no stationary policy attains it, and the plan says so
    referee = plan(cmdp, method="lp")
    assume(referee.status is not Status.UNCERTIFIED)
    if (
        ours.feasible and referee.status is Status.INFEASIBLE
    ):  # rational arithmetic sees an excess of less than rounding
        assert 0.0 < referee.certificate.margin <= 1e-12
        assert (ours.certificate.excess <= ours.certificate.limit_tolerances).all()
        return
    # Where a policy is drawn at the start, a stationary policy may attain the same, by switches of probability 1e-17.
    assert referee.status is ours.status or (initially_randomised and referee.status is Status.NOT_ATTAINED)
    if ours.status is Status.OPTIMAL:
        assert ours.value == pytest.approx(
            referee.certificate.lower if initially_randomised else referee.value, abs=AGREE
        )
        assert (ours.costs[1:] <= cmdp.thresholds + 1e-8).all()


@examples(60)
@given(
    st.sampled_from(("dense", "sparse", "near_deterministic", "near_reducible", "tied")),
    st.integers(2, 7),
    st.integers(2, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from((1e-6, 1e-7, 3e-8)),
)
def test_a_hair_decides_feasibility(kind, S, A, seed, hair):
    model = random_cmdp(kind, S, A, 1, seed)
    least = plan(CMDP(model.transition, model.costs[1:], initial=model.initial)).costs[0]
    inside, outside = (plan(model.with_thresholds([least + d])) for d in (hair, -hair))
    assert inside.status in (Status.OPTIMAL, Status.NOT_ATTAINED)
    assert outside.status is Status.INFEASIBLE
    assert outside.certificate.holds
    assert outside.infeasibility.alone[0] == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("m", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_brute_force_over_all_policies(m, seed):
    """In a model with positive transitions, the averages of policies span all reachable averages."""
    cmdp = random_cmdp("dense", 4, 3, m, seed, slack=0.05)
    points = [evaluate(cmdp, np.array(actions)).costs for actions in itertools.product(range(3), repeat=4)]
    a, b = np.array(points)[:, 0], np.array(points)[:, 1:].T
    best = linprog(a, A_ub=b if m else None, b_ub=cmdp.thresholds if m else None, A_eq=np.ones((1, a.size)), b_eq=[1.0])
    ours = plan(cmdp)
    if best.status == 2:
        assert ours.status is Status.INFEASIBLE
    else:
        assert ours.value == pytest.approx(best.fun, abs=1e-9)


@examples(80)
@given(cmdps(kinds=("dense", "near_deterministic", "tied", "periodic"), max_constraints=1))
def test_compiled_loop_equals_the_general_one(cmdp):
    assume(plan(cmdp).gains is None and plan(cmdp).mixture is None)
    problem = Problem.of(cmdp)
    compiled = solve(problem, least_excess=True)
    general = mix(Howard(problem), problem.thresholds, least_excess=True)
    assert compiled.feasible == general.feasible
    costs = [m.shares @ [c.costs for c in m.answers] for m in (compiled.mixture, general)]
    np.testing.assert_allclose(
        costs[0][0 if general.feasible else 1], costs[1][0 if general.feasible else 1], atol=1e-9
    )


def test_classes_that_are_never_left_are_connected_and_the_plan_says_so():
    initially_randomised, alone = plan(ring), plan(ring, "lp")
    assert initially_randomised.status is Status.OPTIMAL
    assert initially_randomised.value == pytest.approx(0.5, abs=1e-12)
    assert initially_randomised.certificate.holds
    assert alone.status is Status.NOT_ATTAINED
    for policy, proof in (
        (initially_randomised.policy, initially_randomised.policy_certificate),
        (alone.policy, alone.certificate),
    ):
        costs = evaluate(ring, policy).costs
        assert costs[0] == pytest.approx(proof.upper)
        assert costs[0] == pytest.approx(0.5, abs=1e-3)
        assert costs[1] <= 0.5 + 1e-12
        assert proof.lower == pytest.approx(0.5)
        assert proof.holds
    assert "switches" in initially_randomised.note
    assert "switches" in alone.note


def test_an_unreachable_class_is_not_counted_on():
    assert plan(trap).value == pytest.approx(0.5)
    assert plan(trap).status is Status.OPTIMAL
    assert plan(trap.with_initial(1)).value == pytest.approx(1.0)
    assert plan(trap.with_initial([0, 0.25, 0.75])).value == pytest.approx(0.25)


def test_multichain_choice_of_trap_is_made_by_the_policy():
    """From s0 either trap can be entered; the constraint forces a randomised action, which one policy can play."""
    to = np.eye(3)
    choice = CMDP(
        [[to[1], to[2]], [to[1], to[1]], [to[2], to[2]]], [[[0, 0], [0, 0], [1, 1]], [[0, 0], [1, 1], [0, 0]]], [0.3]
    )
    p = plan(choice)
    assert p.status is Status.OPTIMAL
    assert p.value == pytest.approx(0.7)
    np.testing.assert_allclose(p.policy[0], [0.3, 0.7], atol=1e-9)


@examples(50)
@given(cmdps(kinds=("dense", "sparse", "tied"), max_constraints=3), st.integers(0, 99))
def test_relabelling_states_and_scaling_costs_change_nothing(cmdp, seed):
    p = plan(cmdp)
    assume(p.status is Status.OPTIMAL)
    rng = np.random.default_rng(seed)
    order = rng.permutation(cmdp.n_states)
    relabelled = cmdp.restricted(order)
    assert plan(relabelled).value == pytest.approx(p.value, abs=1e-9)
    factor, offset = rng.uniform(1e-3, 1e6, size=len(cmdp.costs)), rng.normal(size=len(cmdp.costs))
    scaled = CMDP(
        cmdp.transition,
        factor[:, None, None] * cmdp.costs + offset[:, None, None],
        factor[1:] * cmdp.thresholds + offset[1:],
        initial=cmdp.initial,
    )
    q = plan(scaled)
    assert q.status is Status.OPTIMAL
    assert (q.value - offset[0]) / factor[0] == pytest.approx(p.value, abs=1e-8)


@examples(40)
@given(cmdps(kinds=("dense", "near_reducible", "tied"), max_constraints=2))
def test_the_optimum_falls_and_is_convex_as_a_threshold_rises(cmdp):
    assume(cmdp.n_constraints > 0)
    curve = psconrl.pareto(cmdp, 1, np.linspace(*np.sort(cmdp.thresholds[0] + np.array([-0.3, 0.3])), 9))
    values = curve.values[~np.isnan(curve.values)]
    assert (np.diff(values) <= 1e-9).all()
    assert (np.diff(values, 2) >= -1e-9).all()


@examples(40)
@given(cmdps(kinds=("dense",), max_constraints=3))
def test_multipliers_are_what_one_more_unit_is_worth(cmdp):
    p = plan(cmdp)
    assume(p.status is Status.OPTIMAL)
    step = 1e-6
    for i in range(cmdp.n_constraints):
        shift = np.eye(cmdp.n_constraints)[i] * step
        looser = plan(cmdp.with_thresholds(cmdp.thresholds + shift))
        # The value is convex in the threshold: a subgradient bounds it from one side, whatever the kinks.
        assert p.value - looser.value <= p.multipliers[i] * step + 1e-12


def test_slack_thresholds_leave_the_unconstrained_optimum():
    rover = psconrl.load("marsrover-8x8", threshold=0.99)
    p = plan(rover)
    assert p.value == pytest.approx(12 / 13)
    assert p.multipliers.tolist() == [0.0]
    assert p.randomised_states.size == 0


@pytest.mark.parametrize("name", ["marsrover-4x4", "marsrover-8x8", "box"])
def test_one_randomised_state_suffices_for_one_constraint(name):
    for slip in (0.0, 0.1):
        p = plan(psconrl.load(name, slip=slip))
        assert p.status is Status.OPTIMAL
        assert p.randomised_states.size <= 1


@examples(60)
@given(cmdps(kinds=("dense", "sparse"), max_constraints=1))
def test_one_randomised_state_suffices_on_random_models(cmdp):
    p = plan(cmdp)
    assume(p.status is Status.OPTIMAL and p.gains is None)
    assert p.randomised_states.size <= cmdp.n_constraints


def test_rewards_come_back_as_rewards():
    cmdp = psconrl.load("counterexample")
    p = plan(cmdp)
    assert p.value == pytest.approx(0.5275)
    assert p.costs[0] == pytest.approx(-0.5275)
    assert p.multipliers[0] == pytest.approx(1.0)  # one unit more of cost buys one unit of reward


def test_an_infeasible_model_is_explained_in_names_and_units():
    p = plan(psconrl.load("counterexample", threshold=0.5))
    assert p.status is Status.INFEASIBLE
    assert p.infeasibility.alone[0] == pytest.approx(1 / 1.9)
    with pytest.raises(
        InfeasibleError, match=r"no policy keeps 'cost' <= 0\.5; the least reachable average is 0\.526316"
    ):
        p.required()


def test_limits_that_clash_are_explained_together():
    """Each of two costs can be avoided, but not both: their sum is 10 in every state."""
    both = CMDP(
        np.full((2, 2, 2), 0.5),
        [np.zeros((2, 2)), [[10, 0], [10, 0]], [[0, 10], [0, 10]]],
        {"heat": 3, "noise": 4},
        cost_names=("money", "heat", "noise"),
    )
    p = plan(both)
    why = p.infeasibility
    np.testing.assert_allclose(why.alone, [0, 0], atol=1e-9)
    np.testing.assert_allclose(why.with_others, [6, 7], atol=1e-9)
    np.testing.assert_allclose(why.jointly, [4.5, 5.5], atol=1e-9)
    np.testing.assert_allclose(why.multipliers, [1, 1], atol=1e-9)
    assert str(why) == (
        "no policy keeps 'heat' <= 3 and 'noise' <= 4 together. "
        "Raise 'heat' to 6 or 'noise' to 7 (multipliers: 'heat' 1, 'noise' 1)."
    )


def test_start_from_an_earlier_plan_gives_the_same_answer_sooner():
    first = plan(psconrl.load("box"))
    second = plan(psconrl.load("box", threshold=0.55), start=first)
    assert second.value == pytest.approx(plan(psconrl.load("box", threshold=0.55)).value, abs=1e-12)
    problem = Problem.of(psconrl.load("box"))
    assert solve(problem, solve(problem).policies).mixture.evaluated < solve(problem).mixture.evaluated
    with pytest.raises(ModelError, match="start must be a plan of a model with 60 states"):
        plan(psconrl.load("box"), start=plan(ring))
    with pytest.raises(ConfigError, match="did you mean 'mixture'"):
        plan(ring, method="mixtur")


def test_unreachable_states_are_left_out_and_mentioned():
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[1, 0, 0] = P[2, 0, 2] = 1.0
    p = plan(CMDP(P, [[[0], [1], [-5]]]))
    assert p.value == pytest.approx(0.5)
    assert "1 of 3 states cannot be reached" in p.note
    assert p.policy.shape == (3, 1)


def forged(plan, **changes):
    from dataclasses import replace

    return replace(plan, **changes)


def test_certify_refuses_forged_plans():
    rover = psconrl.load("marsrover-4x4")
    p = plan(rover)
    uniform = np.full_like(p.policy, 0.25)
    free = plan(rover.with_thresholds([1.0]))
    assert certify(rover, p).holds
    assert not certify(rover, forged(p, policy=uniform)).holds
    assert not certify(rover, forged(p, policy=free.policy, occupancy=free.occupancy)).holds
    assert not certify(rover, forged(p, occupancy=np.roll(p.occupancy, 1, axis=0))).holds
    assert not certify(rover, forged(p, multipliers=p.multipliers + 0.1)).holds
    assert not certify(rover, forged(p, multipliers=-p.multipliers)).holds
    assert not certify(rover, forged(p, potential=np.zeros(16))).holds
    assert not certify(rover, forged(p, potential=np.full(16, np.nan))).holds
    assert not certify(rover, forged(p, status=Status.INFEASIBLE)).holds


def test_pareto_marks_infeasible_thresholds_and_checks_its_input():
    curve = psconrl.pareto(psconrl.load("counterexample"), "cost", [0.4, 0.6])
    assert np.isnan(curve.values[0])
    assert curve.values[1] == pytest.approx(0.6)
    with pytest.raises(ConfigError, match="did you mean 'cost'"):
        psconrl.pareto(psconrl.load("counterexample"), "cots")
    with pytest.raises(ConfigError, match="index from 1 to 1"):
        psconrl.pareto(psconrl.load("counterexample"), 2)
    with pytest.raises(ModelError, match="no constrained cost"):
        psconrl.pareto(trap)
    for options, message in (
        ({"thresholds": [np.nan]}, "thresholds must be a list of 1 to 10,000 finite numbers"),
        ({"thresholds": ["a"]}, "thresholds must be an array of numbers"),
        ({"thresholds": []}, "thresholds must be a list of 1 to"),
        ({"low": np.inf}, "low must be a finite number; got inf"),
        ({"high": "1"}, "high must be a finite number; got '1'"),
        ({"points": -1}, "points must be a whole number from 1 to 10,000; got -1"),
        ({"points": 2.5}, "points must be a whole number from 1 to 10,000; got 2.5"),
        ({"constraint": None}, "constraint must be a name or an index from 1 to 1; got None"),
        ({"constraint": 1.5}, "constraint must be a name or an index from 1 to 1; got 1.5"),
    ):
        with pytest.raises(ConfigError, match=message):
            psconrl.pareto(psconrl.load("box"), **options)


def test_every_question_needs_a_model_and_says_so():
    for ask in (psconrl.plan, psconrl.diameter, psconrl.pareto, inspect_model):
        with pytest.raises(ModelError, match="needs a CMDP"):
            ask("box")
    for ask in (psconrl.evaluate, psconrl.certify):
        with pytest.raises(ModelError, match="needs a CMDP"):
            ask(psconrl.plan(psconrl.load("box")), psconrl.load("box"))
    with pytest.raises(ModelError, match="start must be an earlier plan"):
        psconrl.plan(psconrl.load("box"), start=3)
    for wrong in (np.float64(1.0), "P", np.empty((0, 0)), np.ones((3, 2))):
        with pytest.raises(ModelError, match="transitions must be a matrix"):
            Transition.of(wrong)
    for ask in (psconrl.load, psconrl.load_agent, lambda path: psconrl.save(psconrl.load("box"), path)):
        with pytest.raises(psconrl.PsconrlError, match="a path must be text or a Path"):
            ask(None)


@pytest.mark.parametrize("name", ["policy", "occupancy", "multipliers", "potential", "low_potential"])
def test_a_plan_of_other_sizes_is_not_read_beyond_its_end(name):
    rover = psconrl.load("marsrover-4x4")
    with pytest.raises(ModelError, match=f"{name} of the plan must have shape"):
        certify(rover, forged(psconrl.plan(rover), **{name: np.full(2, 5.0)}))


def test_a_surface_over_two_limits_is_made_of_plans(monkeypatch):
    """Each point against a plan from scratch; values are concave in the limits, prices are their slopes."""
    queue = psconrl.load("queue")
    reported = []
    monkeypatch.setattr(reports, "FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(reports, "BETWEEN_SECONDS", 0.0)
    surface = psconrl.pareto_surface(queue, ["power", "delay"], points=4, progress=reported.append)
    assert [line for line in reported if line.endswith(" of 16")] == [f"point {k} of 16" for k in range(1, 17)]
    assert surface.constraints == ("power", "delay")
    for x, power in enumerate(surface.thresholds[0]):
        for y, delay in enumerate(surface.thresholds[1]):
            alone = psconrl.plan(queue.with_thresholds({"power": power, "delay": delay}))
            assert surface.values[x, y] == pytest.approx(alone.value, abs=1e-9)
            assert surface.answers[x][y].plan.certificate.holds
            assert surface.prices[x, y].tolist() == surface.answers[x][y].plan.multipliers[[1, 0]].tolist()
    # The current thresholds lie within; the first of each is the least feasible one, without the other constraint.
    for levels, name in zip(surface.thresholds, surface.constraints, strict=True):
        tau = queue.thresholds[queue.cost_names.index(name) - 1]
        assert levels[0] <= tau <= levels[-1]
    assert surface.thresholds[0][0] == pytest.approx(0.1)
    assert surface.thresholds[1][0] == pytest.approx(0, abs=1e-9)


def test_the_limits_in_force_lie_on_the_surface_however_loose_they_are():
    loose = psconrl.load("queue").with_thresholds({"delay": 9.0})
    surface = psconrl.pareto_surface(loose, ["power", "delay"], points=2)
    assert surface.thresholds[1][-1] == 9.0


def test_an_infeasible_part_of_a_surface():
    both = CMDP([[[1], [1]]], [[[0, 1]], [[0, 1]], [[1, 0]]], [1.0, 1.0])
    surface = psconrl.pareto_surface(both, thresholds=[[0, 0.5], [0.25, 0.5, 1]])
    assert np.isnan(surface.values).tolist() == [[True, True, False], [True, False, False]]
    assert np.isnan(surface.prices[0, 0]).all()
    with pytest.raises(ConfigError, match="constraints must be two constrained costs"):
        psconrl.pareto_surface(both, ["cost 1"])
    with pytest.raises(ModelError, match="a surface needs two constraints; the model has 1"):
        psconrl.pareto_surface(psconrl.load("box"))
    with pytest.raises(ConfigError, match="thresholds must be two lists"):
        psconrl.pareto_surface(both, thresholds=[[1]])


def test_a_dense_model_of_zeros_is_planned_as_a_sparse_one():
    sparse = psconrl.load("ward", beds=12, occupied=10, refused=0.1)
    dense = CMDP(sparse.transition.toarray(), sparse.costs, sparse.thresholds)
    assert dense.n_states > 200
    assert not dense.is_sparse
    assert dense.transition.sparse_if_empty().is_sparse
    one, other = psconrl.plan(dense), psconrl.plan(sparse)
    assert one.certificate.holds
    assert one.costs == pytest.approx(other.costs, abs=1e-8)
    full = psconrl.load("dirichlet", states=201, actions=1)
    assert not full.transition.sparse_if_empty().is_sparse
    assert not psconrl.load("queue").transition.sparse_if_empty().is_sparse
