"""Proofs in files: the checker accepts them, alone and in exact arithmetic, and refuses any that was changed."""

import copy
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from adversarial import adversarial
from exact_families import drawn
from models import random_cmdp, tandem
from psconrl import CMDP, Status, check_proof
from psconrl.check_proof.__main__ import check_files
from psconrl.check_proof.exact import Vector, read_vector
from psconrl.errors import PolicyError
from psconrl.planning.exact.proof_records import vector_record
from psconrl.planning.proof.proof_files import plain_model, proof_of

FOLDER = Path(check_proof.__file__).parent


def two_islands():
    """State 0 chooses between two absorbing states; each island has an action of either cost."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = 1.0
    P[1:, :, 1:] = np.eye(2)[:, None, :]
    costs = [[[0, 0], [0.25, 0.75], [0.5, 1.0]], [[0, 0], [1, 0], [0.5, 0]]]
    return CMDP(P, costs, [0.625], initial=[1.0, 0.0, 0.0])


def at_random():
    """A transient state that leads to either of two absorbing states, whatever is played."""
    P = np.zeros((3, 2, 3))
    P[0] = [0.5, 0.25, 0.25]
    P[1:, :, 1:] = np.eye(2)[:, None, :]
    return CMDP(P, [[[0, 0], [0.25, 0.75], [0.5, 1.0]], [[0, 0], [1, 0], [0.5, 0]]], [0.5])


MODELS = {
    "grid": lambda: psconrl.load("marsrover-4x4"),
    "box": lambda: psconrl.load("box"),
    "queue": lambda: psconrl.load("queue"),
    "rewards": lambda: psconrl.load("riverswim"),
    "two limits": lambda: psconrl.load("inventory"),
    "four limits": lambda: random_cmdp("dense", 7, 3, 4, seed=5, slack=0.02),
    "masked": lambda: random_cmdp("masked", 6, 3, 1, seed=4, slack=0.02),
    "sparse": lambda: tandem(7, 4.0),
    "no limit": lambda: random_cmdp("sparse", 6, 2, 0, seed=1),
    "infeasible": lambda: psconrl.load("marsrover-4x4").with_thresholds([0.001]),
    "infeasible jointly": lambda: random_cmdp("dense", 6, 3, 2, seed=2, slack=-0.9),
    "mixture": lambda: psconrl.load("islands"),
    "islands": two_islands,
    "ends at random": at_random,
    "multichain": lambda: random_cmdp("degenerate", 8, 3, 2, seed=14, slack=0.3),
}


@cache
def proven(name):
    model = MODELS[name]()
    plan = psconrl.plan(model)
    plain = plain_model(model)
    return model, plan, plain, proof_of(model, plan, plain)


@pytest.mark.parametrize("name", MODELS)
def test_the_proof_of_a_plan_holds_in_exact_arithmetic(name, tmp_path):
    """From files, as another program would read them: dense and sparse, ``.npz`` and ``.json``."""
    model, plan, *_ = proven(name)
    plan.save_proof(tmp_path / "proof.json", model)
    for file in ("model.npz", "model.json"):
        psconrl.save(model, tmp_path / file)
        assert check_files([str(tmp_path / file), str(tmp_path / "proof.json")]) == 0
    record = json.loads((tmp_path / "proof.json").read_text())
    assert record["averages"] == plan.costs.tolist()  # the same doubles
    assert record["status"] == plan.status.value


def test_the_models_cover_all_forms_of_proof():
    plans = {name: proven(name) for name in MODELS}
    assert {plan.status for _, plan, *_ in plans.values()} == {Status.OPTIMAL, Status.INFEASIBLE}
    assert any(plan.gains is not None for _, plan, *_ in plans.values())
    assert any(plan.mixture is not None for _, plan, *_ in plans.values())
    assert any(policy["gains"] for *_, proof in plans.values() for policy in proof["policies"])
    assert any(isinstance(a, list) for *_, proof in plans.values() for a in proof["policies"][0]["actions"])


def test_the_folder_runs_alone_without_site_packages(tmp_path):
    """``-I -S``: no packages, no user paths, so neither this library nor NumPy can be imported."""
    model, plan, *_ = proven("queue")
    plan.save_proof(tmp_path / "proof.json", model)
    psconrl.save(model, tmp_path / "model.npz")
    shutil.copytree(FOLDER, tmp_path / "check_proof", ignore=shutil.ignore_patterns("__pycache__"))

    def run(*given):
        alone = "import runpy, sys; sys.path.insert(0, '.'); runpy.run_module('check_proof', run_name='__main__')"
        command = [sys.executable, "-I", "-S", "-c", alone, *given]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    found = run("model.npz", "proof.json")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("PROVEN: optimal\n  throughput: 0.3775060144 customers a step; no policy within")
    other = run("model.npz", "proof.json", "--threshold", "delay=1")
    assert other.returncode == 1
    assert other.stdout == "REFUSED: the proof is for a threshold of 2 on 'delay', not 1\n"
    for file, content in (("proof.json", "{}"), ("model.npz", "PK")):
        (tmp_path / file).write_text(content)
        damaged = run("model.npz", "proof.json")
        assert (damaged.returncode, damaged.stdout, len(damaged.stderr.splitlines())) == (2, "", 1)


def other_digit(x, place=3):
    """The number with another digit at a place, counted from the first significant one.

    A change of the fourth digit exceeds every tolerance, which are 1e-8 of a cost at most. A change of the last digits
    would leave most proofs valid, and rightly so: a bound holds for any multipliers and potential, and one that is
    lower by 1e-15 is as good.
    """
    digits, exponent = f"{x:.17e}".split("e")
    at = [k for k, c in enumerate(digits) if c.isdigit()][place]
    changed = digits[:at] + str((int(digits[at]) + 5) % 10) + digits[at + 1 :]
    return float(f"{changed}e{exponent}")


def changes(name):
    """Yield a label and a proof with one load-bearing number changed."""
    _, plan, _, proof = proven(name)

    def changed(*path):
        *folders, last = path
        record = copy.deepcopy(proof)
        part = record
        for key in folders:
            part = part[key]
        part[last] = other_digit(part[last])
        return "/".join(map(str, path)), record

    for i, tau in enumerate(proof["thresholds"]):
        yield changed("thresholds", i) if tau else (f"thresholds/{i}", proof | {"thresholds": [0.001]})
    for i, multiplier in enumerate(proof["multipliers"]):
        if multiplier > 1e-6:  # that of a limit which does not bind is zero
            yield changed("multipliers", i)
    for i, average in enumerate(proof["averages"]):
        if average:
            yield changed("averages", i)
    if proof["bound"]:
        yield changed("bound")
    for k, _policy in enumerate(proof["policies"]):
        if len(proof["policies"]) > 1:
            yield changed("policies", k, "share")
    for k in np.argsort([-share for _, share in proof["occupancy"]])[:2]:
        yield changed("occupancy", int(k), 1)
    digest = proof["model"]
    yield "model", proof | {"model": digest[:-1] + ("1" if digest[-1] == "0" else "0")}
    wrong = Status.OPTIMAL if plan.status is Status.INFEASIBLE else Status.INFEASIBLE
    yield "status", proof | {"status": wrong.value}
    yield "no status", proof | {"status": "certified"}
    if proof["multipliers"]:
        yield "negative multiplier", proof | {"multipliers": [-1.0 for _ in proof["multipliers"]]}


@pytest.mark.parametrize("name", MODELS)
def test_a_proof_with_one_changed_number_is_refused(name):
    _, _, plain, proof = proven(name)
    check_proof.check(plain, proof)
    tried, accepted = 0, []
    for label, record in changes(name):
        try:
            accepted.append((label, check_proof.check(plain, record)))
        except check_proof.RefusedError:
            tried += 1
    assert accepted == []
    assert tried >= 6


@pytest.mark.parametrize("name", ["grid", "queue", "two limits", "four limits", "sparse", "infeasible"])
def test_potentials_and_biases_carry_the_proof(name):
    """At the state that is visited most: elsewhere the inequality may have slack, and a change may leave it valid."""
    _, plan, plain, proof = proven(name)
    order = np.argsort(-plan.occupancy.sum(axis=1))
    for field in ("potential", "biases"):
        record = copy.deepcopy(proof)
        values = record["potential"] if field == "potential" else record["policies"][0]["biases"][0][0]
        s = next(int(s) for s in order if values[s])
        values[s] = other_digit(values[s])
        with pytest.raises(check_proof.RefusedError, match=r"bound is|average of"):
            check_proof.check(plain, record)


def matters(model, plan, s, a):
    """Whether to play an action in a state changes the averages of a plan, by an evaluation of the policy."""
    policy = plan.policy.copy()
    policy[s] = np.eye(model.n_actions)[a]
    return model.available[s, a] and np.abs(psconrl.evaluate(model, policy).costs - plan.costs).max() > 1e-4


@pytest.mark.parametrize("name", ["grid", "queue", "two limits", "sparse"])
def test_another_policy_is_refused(name):
    """Another action where the policy is deterministic, and another probability where it is not."""
    model, plan, plain, proof = proven(name)
    actions = proof["policies"][0]["actions"]
    s, a = next(pair for pair in np.ndindex(plan.policy.shape) if matters(model, plan, *pair))
    record = copy.deepcopy(proof)
    record["policies"][0]["actions"][s] = a
    with pytest.raises(check_proof.RefusedError, match="average of"):
        check_proof.check(plain, record)
    mixed = next(s for s, entry in enumerate(actions) if isinstance(entry, list))
    record = copy.deepcopy(proof)
    pairs = record["policies"][0]["actions"][mixed]
    pairs[0][1] = other_digit(pairs[0][1], 2)
    pairs[1][1] = 1.0 - pairs[0][1]
    with pytest.raises(check_proof.RefusedError, match="average of"):
        check_proof.check(plain, record)


@pytest.mark.parametrize("name", ["islands", "ends at random"])
def test_gains_and_moves_carry_a_multichain_proof(name):
    """At the last state, which is absorbing. A transient state may promise more: it loses just that on the way."""
    _, _, plain, proof = proven(name)
    places = [proof] if proof["gains"] else []
    places += [policy for policy in proof["policies"] if policy["gains"]]
    assert places
    for place in range(len(places)):
        for change in ("gains", "moves"):
            record = copy.deepcopy(proof)
            parts = [record] if proof["gains"] else []
            parts += [policy for policy in record["policies"] if policy["gains"]]
            part = parts[place]
            if change == "gains":
                table = part["gains"] if part is record else part["gains"][0]
                table[-1] = other_digit(table[-1])
            else:
                part["moves"] = [1.0 + s for s in range(plain.n_states)]
            try:
                lines = check_proof.check(plain, record)
            except check_proof.RefusedError:
                continue
            assert change == "moves", lines  # another valid bound on moves proves the same


def test_the_bound_is_the_least_reduced_cost_by_hand():
    """One state, actions of cost (0, 1) and (1, 0), threshold 1/4: the price is 1 and both reduced costs are 3/4."""
    model = CMDP(np.ones((1, 2, 1)), [[[0, 1]], [[1, 0]]], [0.25])
    plain = plain_model(model)
    proof = proof_of(model, psconrl.plan(model), plain)
    checker = check_proof.Checker(plain, proof)
    assert checker.lower_bound() == (Fraction(3, 4), "state 0, action 0")
    assert checker.mixture() == [(Fraction(3, 4), Fraction(3, 4)), (Fraction(1, 4), Fraction(1, 4))]
    lower = check_proof.Checker(plain, proof | {"multipliers": [0.5]}).lower_bound()
    assert lower == (Fraction(3, 8), "state 0, action 0")  # 0 + (1 - 1/4) / 2, and 1 - 1/8 for the other


def test_a_loss_of_gains_is_bounded_by_the_moves():
    """Gains that fall by 1/8 on the way to an island: the proven bound is lower by just that."""
    model = two_islands()
    plain = plain_model(model)
    proof = proof_of(model, psconrl.plan(model), plain)
    whole = check_proof.Checker(plain, proof).lower_bound()[0]
    assert proof["gains"] is not None
    fallen = copy.deepcopy(proof)
    fallen["gains"][0] += 0.125  # the transient state promises more than the islands hold
    rest = check_proof.Checker(plain, fallen).lower_bound()[0]
    assert rest <= whole


def test_moves_must_not_increase():
    """State 0 leads to an island; a bound of 0 moves from state 0 and of 1 from there contradicts itself."""
    _, _, plain, proof = proven("islands")
    with pytest.raises(check_proof.RefusedError, match="the bound on moves increases at state 0, action 0"):
        check_proof.check(plain, proof | {"moves": [0.0, 1.0, 1.0]})


def consistent(plain, proof, **changes):
    """A proof with other claims, whose bound is the one that its numbers prove."""
    record = proof | changes
    return record | {"bound": float(check_proof.Checker(plain, record).lower_bound()[0])}


def test_consistent_numbers_that_prove_less_than_claimed_are_refused():
    """The averages and the bound are right, but a limit is exceeded, the gap is open, or the margin is not positive."""
    model, _, plain, proof = proven("grid")
    tight = plain_model(model.with_thresholds([0.15]))
    over = consistent(tight, proof, thresholds=[0.15])
    with pytest.raises(check_proof.RefusedError, match=r"limit on 'risk' is missed by 0\.05, tolerance"):
        check_proof.check(tight, over)
    loose = consistent(plain, proof, multipliers=[0.25])
    with pytest.raises(check_proof.RefusedError, match=r"the gap of .* is open"):
        check_proof.check(plain, loose)
    assert check_proof.check(plain, loose | {"status": "stopped"})[0] == "PROVEN: the limits are kept"
    nothing = [0.0] * model.n_states
    farkas = {"status": "infeasible", "multipliers": [1.0], "potential": nothing, "low_potential": nothing}
    feasible = consistent(plain, proof, **farkas)
    assert feasible["bound"] == -0.2  # no risk at best, minus the threshold
    with pytest.raises(check_proof.RefusedError, match=r"only bounded by -0\.2, not above 0"):
        check_proof.check(plain, feasible)


def test_an_honest_weaker_claim_is_accepted():
    """A stopped search claims no optimum: the same numbers prove less."""
    _, _, plain, proof = proven("grid")
    verdict, objective, _ = check_proof.check(plain, proof | {"status": "stopped"})
    assert verdict == "PROVEN: the limits are kept"
    assert objective == check_proof.check(plain, proof)[1]


def test_exact_sums_are_of_the_doubles_themselves():
    """0.1 is not a tenth: rows are divided by their exact sums, and the average of a constant is that constant."""
    P = csr_array(np.array([[0.1] * 10] * 10))
    model = CMDP(P, [np.full((10, 1), 0.1)])
    plain = plain_model(model)
    row = check_proof.Checker(plain, {}).row(0)
    assert row.total == sum(row.weights) != 10 * row.weights[0]
    found = check_proof.Checker(plain, proof_of(model, psconrl.plan(model), plain)).mixture()
    assert found == [(Fraction(0.1), Fraction(0.1))]


def test_what_is_not_proven_is_not_saved(tmp_path):
    model, plan, *_ = proven("grid")
    with pytest.raises(PolicyError, match="made for another model, or for other thresholds"):
        plan.save_proof(tmp_path / "proof.json", model.with_thresholds([0.3]))
    with pytest.raises(PolicyError, match="made for another model"):
        plan.save_proof(tmp_path / "proof.json", psconrl.load("marsrover-4x4", slip=0.3))
    with pytest.raises(psconrl.ModelError, match="save_proof needs a CMDP"):
        plan.save_proof(tmp_path / "proof.json", "model.npz")
    with pytest.raises(PolicyError, match=r"must end in \.json"):
        plan.save_proof(tmp_path / "proof.txt", model)
    with pytest.raises(PolicyError, match="is uncertified, so there is no proof"):
        replace(plan, status=Status.UNCERTIFIED).save_proof(tmp_path / "proof.json", model)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        {"multipliers": None}, {"multipliers": ["one"]}, {"multipliers": ["1/2"]}, {"multipliers": [True]},
        {"multipliers": {"over": "0x0", "numbers": ["0x1"]}}, {"multipliers": {"over": "0x1", "numbers": []}},
        {"multipliers": {"over": "-0x1", "numbers": ["0x1"]}}, {"multipliers": {"over": "0x1", "numbers": ["1"]}},
        {"multipliers": {"over": "0x1", "numbers": ["0xg"]}}, {"multipliers": {"over": "0x1"}},
        {"multipliers": {"over": 1, "numbers": ["0x1"]}},
        {"potential": []}, {"policies": []},
        {"policies": [{}]}, {"policies": [3]}, {"averages": [1, 2, 3]}, {"averages": [float("nan"), 0.0]},
        {"thresholds": {}}, {"occupancy": [[1]]}, {"occupancy": [["0", 1.0]]}, {"bound": "x"},
        {"gains": [0.0]}, {"bound": 10**400},
    ],
)  # fmt: skip
def test_a_damaged_proof_is_bad_input(damage):
    _, _, plain, proof = proven("grid")
    with pytest.raises(check_proof.BadInputError):
        check_proof.check(plain, proof | damage)


def as_saved(cmdp, plan, tmp_path):
    """The proof of a plan as read from its file, after it was checked."""
    plan.save_proof(tmp_path / "proof.json", cmdp)
    proof = check_proof.read_proof(tmp_path / "proof.json")
    assert check_proof.check(plain_model(cmdp), proof)
    return proof


def test_a_proof_that_doubles_cannot_hold_is_saved_in_fractions(tmp_path):
    """The thresholds contradict each other by 3e-17: no multipliers in doubles show it."""
    cmdp = drawn("restarts", 927077553)
    plan = psconrl.plan(cmdp)
    assert plan.status is Status.INFEASIBLE
    proof = as_saved(cmdp, plan, tmp_path)
    prices = read_vector(proof, "multipliers", cmdp.n_constraints).fractions()
    assert any(x != Fraction(float(x)) for x in prices)
    proof["potential"] = vector_record([Fraction(1, 3)] * cmdp.n_states)
    with pytest.raises(check_proof.RefusedError, match="the bound is"):
        check_proof.check(plain_model(cmdp), proof)


@pytest.mark.parametrize("seed", [35, 38])
def test_averages_of_a_chain_that_is_left_once_in_1e100_steps_are_enclosed(seed, tmp_path):
    cmdp = adversarial("one_hot", seed)
    proof = as_saved(cmdp, psconrl.plan(cmdp), tmp_path)  # in fractions, if doubles do not enclose them
    assert check_proof.check(plain_model(cmdp), proof)


def test_a_vector_of_fractions_reads_back_as_written():
    values = [Fraction(31, 40), Fraction(-(3**9000), 2**9000), Fraction(0)]
    assert read_vector({"potential": vector_record(values)}, "potential", 3).fractions() == values
    assert read_vector({"potential": [0.75, -3]}, "potential", 2) == Vector(4, [3, -12])


def test_costs_that_are_nearly_constant_have_the_tolerance_of_doubles(tmp_path):
    """The range of 1e-12 is much smaller than the costs, whose rounding is 1e-16."""
    cmdp = CMDP([[[0.3, 0.7]], [[0.6, 0.4]]], [[[1.0], [1.0 + 1e-12]], [[5.0], [5.0 - 1e-12]]], [6.0])
    assert as_saved(cmdp, psconrl.plan(cmdp), tmp_path)["status"] == "optimal"


def test_costs_of_unreachable_states_do_not_count(tmp_path):
    """In the reachable state the cost is 2 always: this is its unit, although the range of the whole table is 0.5."""
    cmdp = CMDP([[[1.0, 0.0]], [[0.0, 1.0]]], [[[2.0], [2.5]], [[2.0], [2.5]]], [3.0], initial=0)
    assert as_saved(cmdp, psconrl.plan(cmdp), tmp_path)["averages"] == [2.0, 2.0]
    assert check_proof.Checker(plain_model(cmdp), {}).tolerances([Fraction(2), Fraction(2)]) == [Fraction(4, 10**9)] * 2


def test_rows_that_do_not_sum_to_one_stay_with_what_is_missing():
    """The off-diagonal entries of 0.1 and 0.3 make 0.75 and 0.25, whatever is on the diagonal."""
    plain = plain_model(CMDP([[[0.9, 0.1]], [[0.3, 0.7]]], [[[0.0], [1.0]]]))
    plain = replace(plain, probabilities=[0.9 + 1e-10, *plain.probabilities[1:]])
    record = {"status": "optimal", "multipliers": [], "potential": [0.0, 2.5], "low_potential": [0.0, 0.0]}
    assert float(check_proof.Checker(plain, record).lower_bound()[0]) == pytest.approx(0.25, abs=1e-15)
