"""The score by hand, what does not change it, and what the report says of the agent with the least."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psconrl
from psconrl.answers.pareto import cost_ranges
from psconrl.errors import StoreError
from psconrl.experiment.charged_prices import range_prices, without_copies
from psconrl.experiment.environment_record import environment_record, is_complete
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec, shipped_spec
from psconrl.experiment.store import Store
from psconrl.report.curves import Curves, Experiment, read_experiments
from psconrl.report.headline import headline
from psconrl.report.page_tables import comparison_table, final_table
from psconrl.report.priced_regret import AT_PRICES, Charge, has_score, regret_at_prices, score

RUNS = 12
NOISE = np.linspace(-1.0, 1.0, RUNS)


def curves(label, regret, *violations):
    """Runs of 100 rounds with optimum .5 and thresholds .2, ending with this regret and these violations."""
    ends = [50.0 + regret + np.zeros(RUNS), *(20.0 + x + np.zeros(RUNS) for x in violations)]
    m = len(violations)
    return Curves(
        label=label, agent=label, rounds=np.array([100]), cumulative=np.stack(ends, axis=1)[:, None, :],
        thresholds=np.full((RUNS, m), 0.2), optimum=np.full(RUNS, 0.5), replicates=np.arange(RUNS),
        seconds=np.ones(RUNS), planning_seconds=np.zeros(RUNS), probe=np.empty((RUNS, 0)),
        strong=np.zeros((RUNS, 1, m + 1)), largest_excess=np.zeros((RUNS, 1, m + 1)), summaries=({},) * RUNS,
        title=label,
    )  # fmt: skip


def prices(shadow, ranges):
    return {"prices": shadow, "range_prices": ranges}


@pytest.mark.parametrize(
    ("violations", "charge", "expected"),
    [
        ((5.0, 0.0, 0.0), Charge(), 2 * 2 * 5),  # twice the shadow price
        ((0.0, 5.0, 0.0), Charge(), 3 * 5),  # more than twice the shadow price of 1
        ((0.0, 0.0, 5.0), Charge(), 4 * 5),  # a constraint without a shadow price is charged, too
        ((3.0, 4.0, 5.0), Charge(), 12.0 + 12.0 + 20.0),
        ((3.0, -4.0, -5.0), Charge(), 12.0),  # savings pay for nothing
        ((-1.0, -1.0, -1.0), Charge(), 0.0),
        ((3.0, 4.0, 5.0), Charge(floor=0.0), 2 * (2 * 3 + 1 * 4)),
        ((3.0, 4.0, 5.0), Charge(factor=4.0, floor=0.5), 24.0 + 16.0 + 10.0),
        ((3.0, 4.0, 5.0), AT_PRICES, 6.0 + 12.0 + 20.0),
    ],
)
def test_the_charge_by_hand(violations, charge, expected):
    facts = prices([2.0, 1.0, 0.0], [0.5, 3.0, 4.0])
    assert charge.of(np.array(violations), facts) == pytest.approx(expected)
    assert score(curves("a", 10.0, *violations), facts, charge)[:, -1] == pytest.approx(10 + expected)


AMOUNTS = st.lists(
    st.tuples(st.floats(-1e3, 1e3), st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=5
)  # violation, shadow price, range price


def columns(rows):
    violations, shadow, ranges = (np.array(x, dtype=np.float64) for x in zip(*rows, strict=True))
    return violations, shadow, ranges


@given(AMOUNTS, st.floats(0, 1), st.floats(0.1, 10), st.randoms())
def test_the_charge_does_not_depend_on_how_constraints_are_stated(rows, share, unit, random):
    """A vacuous limit, other units, another order, a copy in other units with any share of the price."""
    violations, shadow, ranges = columns(rows)
    charge = Charge().of(violations, prices(shadow, ranges))
    (v, price, rho), *others = rows
    shuffled = [*others]
    random.shuffle(shuffled)
    for stated in (
        [*rows, (-1e6, 0.0, 7.0)],
        [(unit * v, price / unit, rho / unit), *others],
        [*shuffled, (v, price, rho)],
    ):
        v_of, shadow_of, ranges_of = columns(stated)
        assert Charge().of(v_of, prices(shadow_of, ranges_of)) == pytest.approx(charge, rel=1e-9, abs=1e-9)
    m = len(rows)
    excesses = np.random.default_rng(m).normal(size=(m, 12))
    v_of, shadow_of, ranges_of = columns(
        [(v, share * price, rho), *others, (unit * v, (1 - share) * price / unit, rho / unit)]
    )
    merged = without_copies(shadow_of, ranges_of, np.vstack([excesses, unit * excesses[:1]]))
    assert Charge().of(v_of, prices(*merged)) == pytest.approx(charge, rel=1e-9, abs=1e-9)


def test_only_the_same_constraint_is_a_copy():
    """Not one with another threshold, of the opposite sense, or without any excess."""
    excess = np.array([1.0, -2.0, 0.5])
    shadow, ranges = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.arange(5.0, 10.0)
    for other in (excess + 1e-6, -excess, np.array([1.0, -2.0, 0.6])):
        found = without_copies(shadow, ranges, np.array([excess, other, np.zeros(3), np.zeros(3), 2 * excess]))
        assert found[0].tolist() == [11.0, 2.0, 3.0, 4.0, 0.0]
        assert found[1].tolist() == [5.0, 6.0, 7.0, 8.0, 0.0]
    assert shadow.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", ["garnet", "queue"])
def test_an_environment_has_the_same_charges_however_its_limits_are_stated(name):
    """The first limit in units a hundred times as small, all in reverse order, which has a copy, and a vacuous one."""
    model = psconrl.load(name)
    m = model.n_constraints
    rows = np.array([1, *range(m, 0, -1), 1])
    factors = np.array([100.0, *np.ones(m), 1.0])
    limits = factors * model.thresholds[rows - 1]
    limits[-1] += 10.0
    costs = np.concatenate([model.costs[:1], factors[:, None, None] * model.costs[rows]])
    stated = psconrl.CMDP(model.transition, costs, limits, initial=model.initial, available=model.available)
    one, two = environment_record(model), environment_record(stated)
    averages = model.thresholds + np.random.default_rng(0).normal(size=(20, m))
    charges = Charge().of(averages - model.thresholds, one)
    assert charges.max() > 0.0
    assert Charge().of(factors * averages[:, rows - 1] - limits, two) == pytest.approx(charges, rel=1e-6)


@given(AMOUNTS, st.floats(0, 1))
def test_the_charge_is_continuous_in_the_prices(rows, change):
    violations, shadow, ranges = columns(rows)
    one, other = (Charge().of(violations, prices(shadow + x, ranges)) for x in (0.0, change))
    assert one <= other * (1 + 1e-12) + 1e-9
    assert other <= one + 2 * change * np.maximum(violations, 0.0).sum() + 1e-9


SHIFT = np.array([[0.0], [7.0], [0.0]])


def test_range_prices_by_hand():
    ranges = np.array([[-1.0, 2.0], [0.0, 4.0], [5.0, 5.0 + 1e-12]])
    costs = np.array([[-2.0, 3.0], [0.0, 9.0], [5.0, 5.0]])
    assert range_prices(ranges, costs).tolist() == [0.75, 0.0]
    assert range_prices(ranges * [[1], [10], [1]], costs * [[1], [10], [1]]) == pytest.approx([0.075, 0.0])
    assert range_prices(ranges + SHIFT, costs + SHIFT) == pytest.approx([0.75, 0.0])
    ranges[0] = 1.0  # no policy changes the average objective: its rounds differ by 5
    assert range_prices(ranges, costs).tolist() == [1.25, 0.0]
    costs[0] = 1.0
    assert range_prices(ranges, costs).tolist() == [0.25, 0.0]


@pytest.mark.parametrize("name", ["counterexample", "corridor", "patrol"])
def test_range_prices_of_environments_with_known_ranges(name):
    """A round gains as much of the objective as it costs, in every policy."""
    record = environment_record(psconrl.load(name))
    assert record["range_prices"] == pytest.approx(np.ones(len(record["prices"])))
    assert is_complete(record)
    assert not is_complete({key: value for key, value in record.items() if key != "range_prices"})
    assert is_complete({"status": "infeasible"})


@pytest.mark.parametrize("name", ["riverswim", "marsrover-4x4", "chain", "garnet"])
def test_only_optimal_policies_have_no_score(name):
    """All policies that the optimum mixes have no regret at shadow prices; the score distinguishes them from it."""
    model = psconrl.load(name)
    record = environment_record(model)
    limit, low = float(model.thresholds[0]), float(cost_ranges(model)[1, 0])
    scores = []
    for other in (1e3, low + 0.01 * (limit - low)):
        policy = psconrl.plan(model.with_thresholds([other])).policy
        costs = psconrl.evaluate(model, policy).costs
        scores.append(costs[0] - record["optimum"][0] + Charge().of(costs[1:] - limit, record))
    assert min(scores) > 1e-4


def of_board(name):
    jobs = shipped_spec("leaderboard").jobs()
    return next(job for job in jobs if job.experiment == name).environment()


def test_a_policy_that_exceeds_only_a_constraint_without_a_price_is_charged():
    """The second constraint of the gate has no shadow price: the optimum does not use it up."""
    gate = of_board("gate")
    record = environment_record(gate)
    assert record["prices"] == pytest.approx([0.2, 0.0])
    assert record["range_prices"] == pytest.approx([1 / 6, 1 / 6])
    most = psconrl.CMDP(
        gate.transition, np.stack([-gate.costs[2], gate.costs[1]]), gate.thresholds[:1], initial=gate.initial,
        available=gate.available,
    )  # fmt: skip
    violations = psconrl.evaluate(gate, psconrl.plan(most).policy).costs[1:] - gate.thresholds
    assert violations == pytest.approx([-0.2, 0.7])
    assert Charge(floor=0.0).of(violations, record) == 0.0
    assert Charge().of(violations, record) == pytest.approx(0.7 / 6)


def test_every_violation_of_the_small_ward_is_charged():
    """The third constraint has no shadow price, and agents exceed it together with the others."""
    ward = of_board("small-ward")
    record = environment_record(ward)
    assert record["prices"][2] == 0.0
    usual, more = (Charge().of(np.array([0.2, 0.13, x]), record) for x in (0.0, 0.2))
    assert more - usual == pytest.approx(0.2 * record["range_prices"][2])
    low, high = cost_ranges(ward)[[0, 3]].T
    assert record["range_prices"][2] == pytest.approx((high[0] - low[0]) / (high[1] - low[1]))


def experiment(facts, *agents):
    return Experiment("w", facts, None, {c.label: c for c in agents})


def test_an_agent_that_is_better_at_shadow_prices_alone_is_not_the_best():
    """RiverSwim: an agent that never leaves the near bank has little regret at shadow prices."""
    facts = prices([0.42], [0.43])
    far, near = curves("far", 100 + NOISE, 20.0), curves("near", 1000 + 20 * NOISE, -2350.0)
    assert regret_at_prices(near, facts["prices"]).mean() < regret_at_prices(far, facts["prices"]).mean()
    one = experiment(facts, far, near)
    assert headline(one) == (
        "far has the least mean score over 12 runs (117: regret 100, violation of cost 1 20), significantly less than "
        "every other agent (p < 0.001); paired t-tests."
    )
    assert [row[-1] for row in comparison_table(one)["rows"]] == ["far has less"]


def test_the_headline_has_a_p_value_for_all_that_it_does_not_tell_apart():
    """The p-values are those of the table, which corrects for all pairs."""
    luck = 5.0 * np.cos(7.0 * np.arange(RUNS))
    agents = [curves("a", 10.0, 0.0), curves("b", 10.5 + luck - luck.mean(), 0.0), curves("c", 30 + NOISE, 0.0)]
    one = experiment(prices([1.0], [1.0]), *agents)
    rows = {row[0]: row for row in comparison_table(one)["rows"]}
    assert (rows["a - b"][3:], rows["a - c"][3:]) == (["1", "no significant difference"], ["< 0.001", "a has less"])
    assert headline(one).endswith(
        ", significantly less than c (p < 0.001); not significantly different from b (p = 1); paired t-tests, "
        "corrected for 3 comparisons."
    )
    assert headline(experiment(prices([1.0], [1.0]), *(curves(x, 1.0, 0.0) for x in "ab"))) == (
        "All agents have the same mean score."
    )


def test_without_prices_the_headline_compares_regret_only_where_nothing_is_constrained():
    free = experiment({}, curves("a", 10.0), curves("b", 30.0 + NOISE))
    assert headline(free) == (
        "a has the least mean regret over 12 runs (10), significantly less than every other agent (p < 0.001); paired "
        "t-tests."
    )
    assert headline(experiment({"drawn": True}, curves("a", 10.0, 0.0), curves("b", 30.0, 0.0))) == ""
    unknown = dataclasses.replace(curves("a", 10.0), optimum=np.full(RUNS, np.nan))
    assert headline(experiment({}, unknown, curves("b", 30.0))) == ""


SPEC = """
seed = 1
replicates = 2
[agents.uniform]
[agents.ucrl2]
[experiments.counterexample]
horizon = 40
"""


@pytest.mark.usefixtures("no_processes")
def test_results_of_an_earlier_version_get_range_prices_when_the_sweep_is_run_again(tmp_path):
    path = tmp_path / "results.db"
    run_sweep(parse_spec(SPEC).jobs(), path, workers=1)
    with Store.writer(path) as store:
        ((position, facts, model),) = store.query("SELECT position, facts, model FROM experiments")
        old = json.loads(facts)
        del old["range_prices"]
        store.add_experiment("counterexample", position, old, model)
    with Store(path) as store:
        (one,) = read_experiments(store)
        assert not has_score(one.facts)
        assert headline(one) == ""
        assert "Final regret" in final_table(one)["title"]
    outcome = run_sweep(parse_spec(SPEC).jobs(), path, workers=1)
    assert outcome.done == 0
    with Store(path) as store:
        (one,) = read_experiments(store)
        assert one.facts["range_prices"] == pytest.approx([1.0])
        assert headline(one).startswith("uniform has the least mean score over 2 runs (")


@pytest.mark.parametrize("found", ["x", [1.0, 2.0], [-1.0], None, [True]])
@pytest.mark.usefixtures("no_processes")
def test_damaged_range_prices_get_one_line(tmp_path, found):
    path = tmp_path / "results.db"
    run_sweep(parse_spec(SPEC).jobs(), path, workers=1)
    with Store.writer(path) as store:
        ((facts,),) = store.query("SELECT facts FROM experiments")
        store.add_experiment("counterexample", 0, json.loads(facts) | {"range_prices": found}, None)
    with Store(path) as store, pytest.raises(StoreError, match="range_prices in facts of 'counterexample' must be"):
        read_experiments(store)
