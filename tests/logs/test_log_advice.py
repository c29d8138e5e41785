"""Advice: the journey from a table to a memo, formulas in closed form, and names that users give."""

import csv
import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from log_samples import shop, shop_rows
from psconrl import Log, LogError, PSConRL
from psconrl.data.advice.decisions import changes_by_state
from psconrl.data.advice.described import posterior_of
from psconrl.data.advice.improvement import Verdict
from psconrl.data.advice.worth import price_interval, prices_on_means
from psconrl.data.posterior.large_chains import LikeChains, large_averages
from psconrl.data.posterior.mean_model import mean_model
from psconrl.report.memo.page import write_memo


def sales(rounds, seed=0):
    """What a shop records: shelf, order, and the sales that it knows it lost, but not the demand."""
    rows = shop_rows(rounds, seed)
    return {name: rows[name] for name in ("shelf", "order", "lost")}


def machine(rounds, seed=0, repairs=0.3):
    """A machine wears down; worn ones make scrap, and broken ones are expensive."""
    rng, wear, rows = np.random.default_rng(seed), 0, []
    for _ in range(rounds):
        repair = rng.random() < repairs
        scrap = 0 if repair else int(rng.random() < (0.05, 0.1, 0.2, 0.5)[wear])
        rows.append(
            (
                ("new", "fair", "worn", "broken")[wear],
                "repair" if repair else "run",
                3 * repair + 2 * (wear == 3),
                scrap,
            )
        )
        wear = 0 if repair else min(3, wear + int(rng.random() < 0.3))
    return dict(zip(("wear", "do", "cost", "scrap"), zip(*rows, strict=True), strict=True))


@pytest.fixture(scope="module")
def advice():
    return Log(sales(2000), system=shop()).improve()


def test_the_journey_from_a_table_to_a_memo(tmp_path):
    """As a user does it: a file, a look at it, advice, a memo, a policy in use, then an agent that goes on."""
    np.savetxt(
        tmp_path / "log.csv",
        np.column_stack(list(sales(2000).values())),
        "%d",
        ",",
        header="shelf,order,lost",
        comments="",
    )
    log = Log(tmp_path / "log.csv", system=shop())
    assert log.check().is_good
    today = {average.name: average for average in log.averages()}
    assert today["lost"].low < today["lost"].mean < today["lost"].high
    assert 1.5 < log.fit().parameters["demand"].mean < 1.9
    advice = log.improve(confidence=0.95)
    assert advice.verdict is Verdict.IMPROVE
    assert advice.probability >= 0.95
    write_memo(advice, tmp_path / "memo.html")
    assert "Change what you do" in (tmp_path / "memo.html").read_text()
    advice.to_csv(tmp_path / "policy.csv")
    assert advice.act({"shelf": 5}) == {"order": 0}
    agent = PSConRL.of(shop(), seed=1).learn_from(log)
    assert agent.rounds == log.n_rounds
    assert set(agent.act({"shelf": 3})) == {"order"}


def test_the_record_is_json_and_agrees_with_the_advice(advice):
    record = json.loads(json.dumps(advice.record(), allow_nan=False))
    assert record["verdict"] == "improve"
    assert record["recommended"]
    assert record["gain"]["low"] < record["gain"]["mean"] < record["gain"]["high"]
    (limit,) = record["limits"]
    assert (limit["name"], limit["threshold"], limit["at_least"]) == ("lost", 0.3, False)
    assert limit["probability"] >= record["probability"]
    assert limit["probability_today"] < 0.5
    assert record["guarantee"]["found"]
    assert record["guarantee"]["bounds"]["lost"] <= 0.3
    assert len(record["decisions"]) <= 10
    assert str(advice).startswith("improve: holding + 2 * buy better by")


def test_the_saved_policy_is_the_one_that_acts(advice, tmp_path):
    advice.to_csv(tmp_path / "policy.csv")
    with (tmp_path / "policy.csv").open() as f:
        rows = list(csv.DictReader(f))
    for state in range(6):
        own = {row["action"]: float(row["probability"]) for row in rows if row["state"] == f"shelf={state}"}
        assert sum(own.values()) == pytest.approx(1.0)
        action = advice.act({"shelf": state}, np.random.default_rng(0))
        assert own[f"order={action['order']}"] > 0.0


def test_changes_of_states_add_up_to_the_whole_change():
    """The sum over states is the difference of two exact evaluations, for any policy and every cost."""
    log = Log(machine(3000), state="wear", action="do", costs=["cost", "scrap"])
    posterior = posterior_of(log, None)
    mean = mean_model(posterior, posterior.draw(20, np.random.default_rng(0)))
    policy = np.random.default_rng(1).dirichlet(np.ones(2), size=4)
    changes, today, then = changes_by_state(mean, policy)
    whole = mean.evaluate(policy).costs - mean.evaluate(mean.today).costs
    np.testing.assert_allclose(changes.sum(axis=1), whole, atol=1e-12)
    np.testing.assert_allclose([today.sum(), then.sum()], 1.0)


def test_prices_in_closed_form():
    """One state; short shifts cost 1 and are late with probability 1, long ones cost 3 and never: one is worth 2."""
    shift = np.arange(2000) % 2
    table = {"line": shift * 0, "shift": shift, "cost": 1 + 2 * shift, "late": 1 - shift}
    log = Log(table, state="line", action="shift", costs=["cost", "late"])
    posterior = posterior_of(log, None)
    models = posterior.draw(40, np.random.default_rng(0))
    mean = mean_model(posterior, models)
    np.testing.assert_allclose(prices_on_means(mean, np.array([0.25])), [2.0])
    low, high = price_interval(mean, models, np.array([0.25]), 0.95)
    np.testing.assert_allclose([low[0], high[0]], 2.0)
    (price,) = log.improve(limits={"late": 0.25}).prices
    assert (price.limit, price.amount) == ("late", pytest.approx(2.0))


def test_a_log_without_a_system_acts_by_columns():
    advice = Log(machine(4000), state="wear", action="do", costs=["cost", "scrap"]).improve(limits={"scrap": 0.2})
    assert advice.verdict is Verdict.IMPROVE
    assert advice.act({"wear": "broken"}) == {"do": "repair"}
    assert advice.act("new") == "run"
    assert advice.decisions[0].state.startswith("wear=")
    with pytest.raises(LogError, match="a state must give wear"):
        advice.act({"waer": "new"})
    with pytest.raises(psconrl.PolicyError, match="unknown state 'newish'"):
        advice.act("newish")


def test_several_columns_act_together():
    rng = np.random.default_rng(0)
    a, b, x, y = rng.integers(2, size=(4, 3000))
    table = {"a": a, "b": b, "x": x, "y": y, "cost": (a ^ x) + (b ^ y)}
    advice = Log(table, state=["a", "b"], action=["x", "y"], costs="cost").improve()
    assert advice.act({"a": 1, "b": 0}) == {"x": 1, "y": 0}


def test_few_rows_say_what_would_settle_it():
    advice = Log(sales(60), system=shop()).improve()
    assert advice.verdict is Verdict.NOT_ENOUGH
    assert advice.measuring is not None
    assert advice.measuring.matters[0].what == "demand"
    assert advice.measuring.rounds > 60
    assert "record them" in advice.measuring.experiment


def test_the_fit_is_a_conjugate_posterior_where_demand_is_seen():
    """Poisson demand under Gamma(2, 1): mean (2 + sum) / (1 + n); demand of nine or more is rare enough to ignore."""
    rows = shop_rows(400)
    log = Log(rows, system=shop())
    seen = rows["demand"][:-1]
    assert log.fit().parameters["demand"].mean == pytest.approx((2 + seen.sum()) / (1 + seen.size), rel=1e-3)
    assert not log.fit().system.source.unknown()
    assert psconrl.plan(log.fit().system).feasible


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda log: log.improve(confidence=95), "confidence must lie strictly between 0 and 1"),
        (lambda log: log.improve(limits={"losses": 1}), "unknown cost 'losses'"),
        (lambda log: log.improve(shop()), "read without a system"),
        (lambda log: log.fit(), "fit needs a system"),
        (lambda log: log.averages(level=0), "level must lie strictly between 0 and 1"),
        (lambda log: log.averages("shop.toml"), "system must be a System"),
    ],
)
def test_bad_questions_are_one_line(ask, message):
    log = Log(sales(50), state="shelf", action="order", costs=["order", "lost"])
    with pytest.raises(LogError, match=message) as error:
        ask(log)
    assert "\n" not in str(error.value)


def test_a_log_without_costs_and_other_systems_are_refused():
    with pytest.raises(LogError, match="no costs"):
        Log(sales(50), state="shelf", action="order").improve()
    log = Log(sales(50), system=shop())
    with pytest.raises(LogError, match="with the costs"):
        log.improve(shop().with_limits(["buy <= 1"]))
    with pytest.raises(LogError, match="another system"):
        log.improve(psconrl.load_system("inventory"))


def test_large_chains_agree_with_elimination():
    """GMRES from the factors of one chain, against GTH elimination of every chain; a chain that splits is reported."""
    log = Log(machine(2000), state="wear", action="do", costs=["cost", "scrap"])
    models = posterior_of(log, None).draw(30, np.random.default_rng(0))
    found, done = large_averages(models, models.behaviours)
    assert done.all()
    np.testing.assert_allclose(found, models.today(), atol=1e-9)
    first = np.array([1.0, 0.0])
    assert LikeChains(0, first + 0.5).stationary(csr_array(np.eye(2))) is None
    np.testing.assert_array_equal(LikeChains(1, first).stationary(csr_array(np.eye(2))), first)  # all that is reached
    left = csr_array([[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(LikeChains(0, first).stationary(left), [0.0, 1.0])


def test_censored_sales_teach_an_agent_what_a_model_of_all_demand_would():
    """The agent of a system learns demand from a log of sales alone; an agent of a model learns its counts."""
    log = Log({name: values for name, values in sales(1500).items() if name != "lost"}, system=shop())
    agent = PSConRL.of(shop(), seed=1).learn_from(log)
    estimate = agent.belief.estimates(agent.counts)["demand"]
    assert estimate.low < 1.7 < estimate.high + 0.1  # true rate 1.7; sales say less than demand
    model = shop().model_for_learning()
    plain = PSConRL(model.n_states, model.n_actions, model.thresholds, costs=model.costs, seed=1).learn_from(log)
    np.testing.assert_array_equal(plain.counts.pairs, log.counts().pairs)


def test_where_nothing_is_unknown_the_guarantee_is_the_optimum():
    """The confidence set is one model: bounds are its averages, and the robust policy is its plan."""
    known = shop().with_noise(demand=1.7)
    advice = Log(shop_rows(300), system=known).improve()
    best = psconrl.plan(known)
    assert advice.guarantee.policy is not None
    assert advice.guarantee.bounds["lost"] == pytest.approx(0.3, abs=1e-6)
    assert advice.guarantee.bounds["holding + 2 * buy"] == pytest.approx(best.value, rel=1e-3)
    assert advice.prices[0].amount == pytest.approx(best.prices["lost"].amount, rel=1e-6)
