"""Mixture policies, from which each run draws one policy: value, shares, play, files, and all readers of a plan."""

import json
from dataclasses import replace

import numpy as np
import pytest

from psconrl import CMDP, Plan, Status, certify, evaluate, load, plan, save
from psconrl.answers.deterministic import best_deterministic
from psconrl.answers.explanation import explain
from psconrl.answers.inspection import inspect_model, spans_of
from psconrl.answers.threshold_rule import threshold_rule
from psconrl.cli import main
from psconrl.errors import ModelError, PolicyError
from psconrl.planning.mixture_policy import evaluate_mixture

GO = [[1, 0], [0, 1]]  # stay, or go for good


def door(limit=0.75, **names):
    """Staying is free and counts against the constraint, going is final and costs one: a share ``limit`` stays."""
    return CMDP([GO, [[0, 1], [0, 1]]], [[[0, 1], [1, 1]], [[1, 0], [0, 0]]], [limit], **names)


islands = CMDP([GO, [[0, 1], [1, 0]]], [[[0, 1], [1, 1]], [[1, 1], [0, 1]]], [0.5])


@pytest.mark.parametrize("limit", [0.1, 0.5, 0.75, 0.99])
def test_value_and_shares_of_a_mixture_in_closed_form(limit):
    """With probability x of staying the costs are 1 - x and x; a stationary policy stays forever or not at all."""
    found = plan(door(limit))
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(1 - limit, abs=1e-12)
    assert found.costs == pytest.approx([1 - limit, limit], abs=1e-12)
    mixture = found.mixture
    assert {int(p[0]): float(x) for p, x in zip(mixture.policies, mixture.shares, strict=True)} == pytest.approx(
        {0: limit, 1: 1 - limit}
    )
    assert found.occupancy[0, 0] == pytest.approx(limit)
    assert mixture.distributions @ np.arange(2) == pytest.approx([p[0] for p in mixture.policies])
    assert found.certificate.holds
    assert found.certificate.lower == pytest.approx(1 - limit)
    assert certify(door(limit), found).holds
    assert found.multipliers == pytest.approx([1.0])


def test_the_stationary_policy_says_what_it_costs():
    found = plan(door())
    exact = evaluate(door(), found.policy)
    proof = found.policy_certificate
    assert proof.upper == pytest.approx(exact.costs[0])
    assert proof.excess == pytest.approx(exact.costs[1:] - 0.75)
    assert proof.holds == found.policy_meets_constraints == bool((exact.costs[1:] <= 0.75).all())
    assert "each run draws one of 2 policies" in found.note
    assert "needs memory or initial randomisation" in found.note
    assert found.meets_constraints
    assert "mixture of 2 policies" in repr(found)


def test_ever_rarer_switches_are_replaced_by_a_mixture():
    found = plan(islands)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(0.5, abs=1e-12)
    assert found.mixture.shares == pytest.approx([0.5, 0.5])
    assert found.policy_meets_constraints
    assert found.policy_certificate.upper == pytest.approx(0.50005)
    assert certify(islands, found).holds


def test_a_stationary_policy_is_preferred_where_there_is_one():
    """A randomised action at the start, in a state that is left at once, does what a mixture would."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, :, 1] = P[2, :, 2] = 1.0
    found = plan(CMDP(P, [[[0, 0], [1, 1], [0, 0]], [[0, 0], [0, 0], [1, 1]]], [0.3]))
    assert found.mixture is None
    assert found.policy[0] == pytest.approx([0.7, 0.3])
    assert found.value == pytest.approx(0.7)
    assert found.policy_certificate is found.certificate
    np.testing.assert_array_equal(found.shown_policy, found.policy)


def test_an_initial_distribution_on_several_states_and_unreachable_states():
    """Half of the runs begin behind the door, where no choice is left; a third state is never visited."""
    P = [[[1, 0, 0], [0, 1, 0]], [[0, 1, 0]] * 2, [[1, 0, 0]] * 2]
    costs = [[[0, 1], [1, 1], [5, 5]], [[1, 0], [0, 0], [5, 5]]]
    model = CMDP(P, costs, [0.2], initial=[0.5, 0.5, 0])
    found = plan(model)
    assert found.value == pytest.approx(0.8)  # 0.2 of all runs stay
    assert found.mixture.policies.shape == (2, 3)
    assert dict(
        zip(found.mixture.policies[:, 0].tolist(), found.mixture.shares.tolist(), strict=True)
    ) == pytest.approx({0: 0.4, 1: 0.6})
    assert certify(model, found).holds


def test_the_same_seed_draws_the_same_policy():
    found = plan(door(state_names=["here", "there"], action_names=["stay", "go"]))
    for seed in range(30):
        one, two = (found.draw(np.random.default_rng(seed)) for _ in range(2))
        np.testing.assert_array_equal(one.policy, two.policy)
        assert one.act("here") == two.act("here")
    assert {found.draw(np.random.default_rng(seed)).act("here") for seed in range(30)} == {"stay", "go"}


def test_a_drawn_policy_has_its_own_frequencies(tmp_path):
    found = plan(door(state_names=["here", "there"], action_names=["stay", "go"]))
    for seed in range(10):
        drawn = found.draw(np.random.default_rng(seed))
        np.testing.assert_allclose(drawn.occupancy, evaluate(door(), drawn.policy).occupancy, atol=1e-12)
    drawn.to_csv(tmp_path / "drawn.csv")
    assert (tmp_path / "drawn.csv").read_text().startswith("state,action,probability,long_run_share\nhere,")


def test_spans_are_those_of_what_is_drawn():
    """A run that stays here has been there for one round at most, where that costs one more."""
    found = inspect_model(islands)
    assert found.policies == 2
    assert found.spans.max() <= 1.0
    joined = load("islands")  # one policy is for staying at either place, each with a span of one cost
    best = plan(joined)
    spans = [np.ptp(evaluate(joined, policy).biases, axis=1) for policy in best.mixture.policies]
    np.testing.assert_allclose(np.sort(spans, axis=0), [[0.0, 0.0], [1.0, 1.0]], atol=1e-9)
    np.testing.assert_allclose(spans_of(joined, best), [1.0, 1.0], atol=1e-9)
    with pytest.raises(PolicyError, match=r"give one of its \.mixture\.policies"):
        evaluate(door(), plan(door()))


@pytest.mark.statistical
def test_draw_returns_a_policy_for_a_run():
    """Over 2000 draws, 4.5 standard errors: a false alarm in 150,000."""
    found, n, rng = plan(door()), 2000, np.random.default_rng(0)
    tables = [found.draw(rng).policy for _ in range(n)]
    assert all(table.shape == (2, 2) and set(table.ravel()) == {0.0, 1.0} for table in tables)
    assert abs(np.mean([table[0, 0] for table in tables]) - 0.75) <= 4.5 * np.sqrt(0.75 * 0.25 / n)
    one = plan(door(1.0))
    assert one.mixture is None
    np.testing.assert_array_equal(one.draw(rng).policy, one.policy)


def test_what_is_missing_to_draw_a_policy_is_said():
    found = plan(door())
    with pytest.raises(PolicyError, match=r"of which each run plays one: policy = plan\.draw\(rng\), then"):
        found.act(0)
    with pytest.raises(PolicyError, match="rng must be a NumPy generator"):
        found.draw(7)


def test_files_carry_the_mixture(tmp_path):
    found = plan(door(state_names=["here", "there"], action_names=["stay", "go"]))
    found.save(tmp_path / "plan.npz")
    again = Plan.load(tmp_path / "plan.npz")
    for name in ("policies", "shares", "distributions"):
        np.testing.assert_array_equal(getattr(again.mixture, name), getattr(found.mixture, name))
    assert again.policy_certificate.upper == found.policy_certificate.upper
    assert again.policy_certificate.excess.tolist() == found.policy_certificate.excess.tolist()
    assert certify(door(), again).holds
    one, two = (plan_.draw(np.random.default_rng(3)) for plan_ in (again, found))
    np.testing.assert_array_equal(one.policy, two.policy)
    np.testing.assert_array_equal(one.occupancy, two.occupancy)
    found.to_json(tmp_path / "plan.json")
    record = json.loads((tmp_path / "plan.json").read_text())
    assert record["mixture"] == {"shares": found.mixture.shares.tolist(), "policies": found.mixture.policies.tolist()}
    found.to_csv(tmp_path / "plan.csv")
    lines = (tmp_path / "plan.csv").read_text().splitlines()
    assert lines[0] == "state,action,probability,long_run_share,policy_number,policy_share"
    assert sorted(lines[1:]) == sorted(
        [
            "here,go,1.0,0.0,1,0.25",
            "there,stay,1.0,0.25,1,0.25",
            "here,stay,1.0,0.75,2,0.75",
            "there,stay,1.0,0.0,2,0.75",
        ]
    )


def test_a_file_holds_a_mixture_only_if_the_plan_has_one(tmp_path):
    for model, mixed in ((door(1.0), False), (door(), True)):
        plan(model).save(tmp_path / "plan.npz")
        with np.load(tmp_path / "plan.npz") as f:
            assert json.loads(str(f["header"]))["mixture"] is mixed
            assert ("mixture_shares" in f) == mixed
    assert "mixture" not in plan(door(1.0)).record()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("mixture_shares", [0.5, 0.6], "the shares of a mixture must add up to 1"),
        ("mixture_shares", [1.5, -0.5], "the shares of a mixture must add up to 1"),
        ("mixture_policies", [[0, 2], [0, 0]], "mixture_policies must be policies of 2 actions from 0 to 1"),
        ("mixture_distributions", [[0.0, 1.0]], "'mixture_distributions' must be numbers of shape"),
    ],
)
def test_a_mixture_that_was_tampered_with(name, value, says, tmp_path):
    plan(door()).save(tmp_path / "plan.npz")
    with np.load(tmp_path / "plan.npz") as f:
        arrays = dict(f) | {name: np.array(value)}
    np.savez(tmp_path / "plan.npz", **arrays)
    with pytest.raises(PolicyError, match=says):
        Plan.load(tmp_path / "plan.npz")


def test_certify_judges_the_mixture_and_not_the_policy():
    found, model = plan(door()), door()
    forged = replace(found, mixture=replace(found.mixture, shares=np.array([0.2, 0.8])))
    assert not certify(model, forged).holds
    assert certify(model, forged).excess[0] == pytest.approx(0.05)
    assert not certify(model, replace(found, mixture=None)).holds
    with pytest.raises(ModelError, match="shares of the mixture must add up to 1"):
        certify(model, replace(found, mixture=replace(found.mixture, shares=np.array([0.5, 0.6]))))
    with pytest.raises(ModelError, match="actions from 0 to 1"):
        certify(model, replace(found, mixture=replace(found.mixture, policies=np.array([[0, 2], [0, 0]]))))
    with pytest.raises(ModelError, match=r"must have shape \(2, 2\)"):
        certify(model, replace(found, mixture=replace(found.mixture, policies=np.array([[0, 1]]))))
    shut = CMDP(model.transition, model.costs, model.thresholds, available=[[True, False], [True, True]])
    with pytest.raises(ModelError, match="not available"):
        certify(shut, found)


def test_a_mixture_is_the_mean_of_its_policies():
    model = door()
    exact, distributions = evaluate_mixture(model, np.array([[0, 0], [1, 0]]), np.array([0.25, 0.75]))
    one, two = evaluate(model, [0, 0]), evaluate(model, [1, 0])
    for name in ("costs", "occupancy", "gains", "biases"):
        np.testing.assert_allclose(getattr(exact, name), 0.25 * getattr(one, name) + 0.75 * getattr(two, name))
    assert distributions.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_least_excess_may_need_a_mixture_too():
    """Both constraints are violated by 0.3 if half of the runs stay; every stationary policy violates one by 0.8."""
    model = CMDP([GO, [[0, 1], [0, 1]]], [[[0, 1], [1, 1]], [[1, 1], [0, 0]], [[0, 0], [1, 1]]], [0.2, 0.2])
    found = plan(model)
    assert found.status is Status.INFEASIBLE
    assert found.costs[1:] == pytest.approx([0.5, 0.5])
    assert found.infeasibility.jointly == pytest.approx([0.5, 0.5])
    assert certify(model, found).holds
    assert not found.policy_meets_constraints


def test_readers_of_a_plan_see_its_mixture():
    model = door(state_names=["0 here", "1 there"])
    found = plan(model)
    assert found.randomised_states.size == 0
    assert found.shown_policy[0] == pytest.approx([1.0, 0.0])  # shares of the time spent there
    assert inspect_model(model).policies == 2
    assert dict(inspect_model(model).lines())["plan"] == "optimal, mixture of 2 policies"
    assert inspect_model(model).record()["policies"] == 2
    assert explain(model, 0, found).initially_randomised
    simple = best_deterministic(model, found)
    assert (simple.value, simple.price) == pytest.approx((1.0, 0.75))
    assert simple.is_proven
    rule = threshold_rule(model, best=found)
    assert rule is None or evaluate(model, rule.policy).costs[1] <= 0.75


@pytest.fixture
def door_file(tmp_path):
    save(door(state_names=["here", "there"], action_names=["stay", "go"]), tmp_path / "door.npz")
    return str(tmp_path / "door.npz")


@pytest.fixture
def cli(capsys):
    def call(*args):
        with pytest.raises(SystemExit) as end:
            main(list(args))
        out = capsys.readouterr()
        return end.value.code or 0, " ".join((out.out + out.err).split())

    return call


def test_the_command_line_shows_the_mixture(cli, door_file, tmp_path):
    code, shown = cli("solve", door_file, "--policy", str(tmp_path / "p.csv"))
    assert code == 0
    assert "OPTIMAL. Each run draws one of several policies" in shown
    assert "policy 1 (25% of runs)" in shown
    assert (
        (tmp_path / "p.csv")
        .read_text()
        .startswith("state,action,probability,long_run_share,policy_number,policy_share")
    )
    assert json.loads(cli("solve", door_file, "--json")[1])["mixture"]["shares"] == [0.25, 0.75]
    assert "draws one of several policies" in cli("explain", door_file, "--state", "here")[1]
    assert "mixture of 2" in cli("inspect", door_file)[1]


def test_a_chain_cannot_represent_a_mixture(cli, door_file, tmp_path):
    code, said = cli("solve", door_file, "--chain", str(tmp_path / "c.drn"))
    assert code == 2
    assert "--chain: the plan draws one of 2 policies" in said
    assert not (tmp_path / "c.drn").exists()


def test_shares_that_are_rounding_do_not_join_two_places():
    """Only 0.9 of the time here and 0.1 there meets both constraints; a probability of 1e-16 would never be played."""
    stay_or_move = np.eye(2)[[[0, 1], [1, 0]]]
    model = CMDP(stay_or_move, [[[2, 0], [2, 0]], [[2, 0], [0, 1]], [[0, 0], [1, 2]]], [1.8, 0.1])
    found = plan(model)
    assert found.status is Status.OPTIMAL
    assert found.costs == pytest.approx([2.0, 1.8, 0.1])
    assert sorted(found.mixture.shares) == pytest.approx([0.1, 0.9])
    assert certify(model, found).holds


@pytest.mark.parametrize("model", [islands, door()])
def test_a_limit_one_rounding_below_what_a_policy_meets(model):
    found = plan(model.with_thresholds([1 - 1e-15]))
    assert found.status is Status.OPTIMAL
    assert found.mixture is None
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert "needs memory" not in found.note


def test_the_linear_program_bounds_the_excess_of_mixtures_where_nothing_is_feasible():
    model = CMDP([GO, [[0, 1], [0, 1]]], [[[0, 1], [1, 1]], [[1, 1], [0, 0]], [[0, 0], [1, 1]]], [0.2, 0.2])
    found = plan(model, method="lp")
    assert found.status is Status.INFEASIBLE
    assert found.infeasibility.with_others == pytest.approx([0.8, 0.8])
    exact = evaluate(model, found.policy)
    assert found.costs == pytest.approx(exact.costs)
    np.testing.assert_allclose(found.occupancy, exact.occupancy, atol=1e-12)


def test_a_policy_that_is_optimal_alone_is_not_mixed():
    """Every policy has the same objective, and one stays in the free state, but for one step in 5e13."""
    rare, free, constant = 2e-14, [[0.0] * 3, [2.0] * 3], [[2.0] * 3, [2.0] * 3]
    moves = [
        [[0.04, 0.96], [0.33, 0.67], [1.0 - rare, rare]],
        [[rare / 10, 1.0 - rare / 10], [1.0 - 4e-5, 4e-5], [0.956, 0.044]],
    ]
    found = plan(CMDP(moves, [constant, free, constant], [0.7, 2.0]))
    assert (found.status, found.mixture, found.value) == (Status.OPTIMAL, None, 2.0)
    assert found.certificate.holds
    assert found.costs[1] < 1e-13
