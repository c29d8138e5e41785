"""Deployment of plans: acting by name and number, tables, files."""

import csv
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, InfeasibleError, Plan, PolicyError, certify, load, plan
from psconrl.cli import main
from psconrl.model.fingerprint import fingerprint
from psconrl.planning.deployable import COLUMNS


def one_state(names=True):
    """One state, two actions, a constraint that needs the second action in a quarter of all rounds."""
    given = {"state_names": ["only"], "action_names": ["work", "rest"]} if names else {}
    return CMDP([[[1], [1]]], [[[0, 1]], [[1, 0]]], [0.75], cost_names=["goal", "wear"], **given)


def test_it_answers_as_it_is_asked():
    named = plan(load("queue"))
    assert (named.act("0 waiting"), named.act(0), named.act(np.int64(0))) == ("speed 0 open", 0, 0)
    numbered = plan(one_state(names=False))
    assert numbered.act(0, np.random.default_rng(0)) in (0, 1)


def test_randomised_actions_have_their_probabilities_and_depend_on_the_generator_alone():
    best = plan(one_state())
    rng = np.random.default_rng(3)
    drawn = [best.act("only", rng) for _ in range(4000)]
    again = np.random.default_rng(3)
    assert drawn == [best.act("only", again) for _ in range(4000)]
    # Hoeffding: further off than .035 with probability 2 exp(-2 n .035^2) < 1.2e-4.
    assert abs(drawn.count("work") / 4000 - 0.75) < 0.035
    assert best.act("only") in ("work", "rest")


def test_a_randomised_action_is_the_one_whose_share_is_reached():
    best = plan(one_state(names=False))

    class Fixed(np.random.Generator):
        def __init__(self, value):
            super().__init__(np.random.PCG64())
            self.value = value

        def random(self):
            return self.value

    assert [best.act(0, Fixed(x)) for x in (0.0, 0.7499, 0.7501, 0.9999)] == [0, 0, 1, 1]
    never_first = Plan(**{**vars(best), "policy": np.array([[0.0, 0.5, 0.5]])})
    assert [never_first.act(0, Fixed(x)) for x in (0.0, 0.5)] == [1, 2]


def test_unlikely_rounding_of_a_row_never_leaves_the_actions():
    best = plan(one_state(names=False))
    short = Plan(**{**vars(best), "policy": np.array([[0.75, 0.25 - 1e-10]])})

    class Highest(np.random.Generator):
        def random(self):
            return 1.0 - 2.0**-53

    assert short.act(0, Highest(np.random.PCG64())) == 1


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("0 waitin", "unknown state '0 waitin'; did you mean '0 waiting'?"),
        (10, "a state must be a number from 0 to 9 or a name; got 10"),
        (-1, "a state must be a number from 0 to 9 or a name; got -1"),
        (True, "a state must be a number from 0 to 9 or a name; got True"),
        (None, "a state must be a number from 0 to 9 or a name; got None"),
    ],
)
def test_a_state_that_does_not_exist(state, says):
    with pytest.raises(PolicyError, match="^" + says.replace("?", r"\?") + "$"):
        plan(load("queue")).act(state)


def test_a_state_by_name_where_there_are_none():
    with pytest.raises(PolicyError, match="must be a number from 0 to 0; got 'only'"):
        plan(one_state(names=False)).act("only")
    with pytest.raises(PolicyError, match="rng must be a NumPy generator"):
        plan(one_state()).act("only", 3)


def test_a_plan_that_breaks_the_limits_does_not_act():
    broken = plan(load("inventory").with_thresholds({"orders": 0.1}))
    with pytest.raises(InfeasibleError, match=r"least excess is in plan\.policy"):
        broken.act(0)


def test_the_table_has_every_action_that_is_played(tmp_path):
    queue = load("queue")
    best = plan(queue)
    best.to_csv(tmp_path / "policy.csv")
    with (tmp_path / "policy.csv").open(newline="", encoding="utf-8") as f:
        head, *rows = csv.reader(f)
    assert tuple(head) == COLUMNS
    policy, occupancy = np.zeros_like(best.policy), np.zeros_like(best.policy)
    for state, action, probability, share in rows:
        pair = queue.state_names.index(state), queue.action_names.index(action)
        policy[pair], occupancy[pair] = float(probability), float(share)
    assert np.array_equal(policy, best.policy)
    assert np.array_equal(occupancy, np.where(best.policy > 0, best.occupancy, 0.0))


def test_names_that_a_spreadsheet_would_run(tmp_path):
    model = CMDP([[[1.0]]], [[[1.0]]], state_names=["=1+1"], action_names=['say "hi", twice'])
    plan(model).to_csv(tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()[1].startswith('\'=1+1,"say ""hi"", twice",')


def test_json_is_what_the_command_line_prints(tmp_path, capsys):
    best = plan(load("inventory"))
    best.to_json(tmp_path / "plan.json")
    record = json.loads((tmp_path / "plan.json").read_text())
    assert record == best.record()
    with pytest.raises(SystemExit):
        main(["solve", "inventory", "--json"])
    assert json.loads(capsys.readouterr().out) == record


def models():
    yield load("marsrover-4x4")
    yield load("inventory").with_thresholds({"orders": 0.1})  # infeasible
    yield CMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], [[[5], [1], [3]]])  # gains differ
    yield load("ward", beds=4)  # infeasible and sparse
    yield one_state(names=False)


@pytest.mark.parametrize("model", list(models()), ids=lambda m: repr(m))
def test_a_saved_plan_is_the_same_plan(model, tmp_path):
    best = plan(model)
    best.save(tmp_path / "plan.npz")
    again = Plan.load(tmp_path / "plan.npz")
    for name, value in vars(best).items():
        other = getattr(again, name)
        if name == "certificate" or (name == "infeasibility" and value is not None):
            pairs = [(getattr(value, k), getattr(other, k)) for k in vars(value)]
        elif name == "columns":
            pairs = list(zip(value, other, strict=True))
        else:
            pairs = [(value, other)]
        for left, right in pairs:
            assert type(left) is type(right), name
            assert (
                np.array_equal(left, right, equal_nan=True)
                if isinstance(left, np.ndarray)
                else (left == right or (left != left and right != right))
            ), name
    assert certify(model, again).holds
    assert plan(model, start=again).status is best.status


def test_the_fingerprint_of_the_model_is_computed_on_demand(tmp_path):
    model = load("riverswim")
    asked, pickled, saved = (plan(model) for _ in range(3))
    assert asked.model == fingerprint(model)
    assert isinstance(asked.origin, str)  # the model is no longer referred to
    assert pickle.loads(pickle.dumps(pickled)).origin == fingerprint(model)
    saved.save(tmp_path / "plan.npz")
    assert Plan.load(tmp_path / "plan.npz").model == fingerprint(model)


def test_files_that_hold_no_plan(tmp_path):
    best = plan(one_state())
    with pytest.raises(PolicyError, match=r"must end in .npz; to_json and to_csv write for other programs"):
        best.save(tmp_path / "plan.json")
    with pytest.raises(PolicyError, match=r"must end in .npz, as plan.save writes it"):
        Plan.load(tmp_path / "plan.json")
    with pytest.raises(PolicyError, match=r"cannot be read \(No such file"):
        Plan.load(tmp_path / "none.npz")
    psconrl.save(one_state(), tmp_path / "model.npz")
    with pytest.raises(PolicyError, match="not a psconrl-plan file but a psconrl-cmdp one"):
        Plan.load(tmp_path / "model.npz")
    np.savez(tmp_path / "other.npz", x=np.ones(2))
    with pytest.raises(PolicyError, match=r"not a psconrl-plan file$"):
        Plan.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("policy", [[0.7, 0.2]], "distribution over actions in every state"),
        ("policy", [[1.5, -0.5]], "distribution over actions in every state"),
        ("columns", [[2]], "columns must be policies of 1 actions from 0 to 1"),
        ("columns", [[0.0]], "columns must be policies of 1 actions from 0 to 1"),
        ("potential", [0.0, 1.0], r"'potential' must be numbers of shape \(1,\); got float64 \(2,\)"),
        ("policy", [[0.75 + 0j, 0.25]], "'policy' must be numbers of shape"),
    ],
)
def test_a_file_that_was_tampered_with(field, value, says, tmp_path):
    plan(one_state()).save(tmp_path / "plan.npz")
    with np.load(tmp_path / "plan.npz") as f:
        arrays = dict(f) | {field: np.array(value)}
    np.savez(tmp_path / "plan.npz", **arrays)
    with pytest.raises(PolicyError, match=says):
        Plan.load(tmp_path / "plan.npz")


def test_a_plan_that_is_not_attained_acts_only_within_its_limits():
    apart = CMDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[[0, 5], [1, 5]], [[1, 5], [0, 5]]], [0.5])
    best = plan(apart, method="lp")
    assert best.status.value == "not attained"
    if best.meets_constraints:
        assert best.act(0, np.random.default_rng(0)) in (0, 1)
    over = Plan(**{**vars(best), "certificate": replace(best.certificate, excess=np.array([0.2]))})
    assert not over.meets_constraints
    with pytest.raises(PolicyError, match=r"which is not attained, exceeds its thresholds by 0\.2"):
        over.act(0)


STATES, ACTIONS = [("north", 0), ("south", 1.5)], [("go", True, None), "stay"]


@pytest.mark.parametrize("saved", [False, True])
def test_a_plan_and_an_agent_answer_in_the_same_labels(tmp_path, saved):
    """States and actions are tuples; the only feasible policy goes in one state and stays in the other."""
    P = [[[0, 1], [1, 0]], [[0, 1], [1, 0]]]
    costs = [[[0, 1], [1, 0]], [[0, 1], [1, 0]]]
    model = psconrl.CMDP(P, costs, [0.0], state_names=STATES, action_names=ACTIONS)
    best = psconrl.plan(model)
    if saved:
        best.save(tmp_path / "plan.npz")
        best = Plan.load(tmp_path / "plan.npz")
    fixed = psconrl.agents.FixedPolicy(2, 2, [0.0], policy=best.policy)
    agent = psconrl.LabelledAgent(fixed, STATES, ACTIONS)
    for state, action in zip(STATES, ACTIONS, strict=True):
        assert best.act(state) == agent.act(state) == action
        assert type(best.act(state)) is type(action)
        agent.agent.finish()
    assert [best.act(str(state)) for state in STATES] == [str(action) for action in ACTIONS]  # a name for a name
    assert [best.act(s) for s in range(2)] == [0, 1]  # a number for a number
    with pytest.raises(PolicyError, match=r"unknown state .*did you mean"):
        best.act(("north", 1))


def test_a_name_that_only_looks_like_a_tuple_is_a_name():
    for name in ("(", "(go)", "(1,2)", "('go', 1) ", "(" * 5000, "(__import__('os'),)"):
        model = psconrl.CMDP([[[1.0]]], [[[0.0]]], state_names=[("a", 1)], action_names=[name])
        assert psconrl.plan(model).act(("a", 1)) == name
    unnamed = psconrl.CMDP([[[1.0]]], [[[0.0]]], state_names=[("a", 1)])
    assert psconrl.plan(unnamed).act(("a", 1)) == 0
