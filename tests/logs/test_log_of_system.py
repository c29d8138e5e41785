"""What a log tells of a system's noise, compared with an agent that observes the same rounds one by one."""

import numpy as np
import pytest

from log_samples import shop, shop_rows
from psconrl import Log
from psconrl.agents import PSConRL
from psconrl.learning.posterior.noise_posterior import Structured

ROUNDS = 120


def observed(system, rows, noise=False, costs=()):
    """The counts of an agent that is shown the rounds. Its own actions do not matter."""
    agent = PSConRL.of(system, seed=1)
    for k in range(ROUNDS - 1):
        agent.act({"shelf": int(rows["shelf"][k])})
        noted = {"demand": int(rows["demand"][k])} if noise else None
        paid = {name: float(rows[name][k]) for name in costs} or None
        agent.observe({"order": int(rows["order"][k])}, {"shelf": int(rows["shelf"][k + 1])}, paid, noted)
    agent.finish()
    return agent.counts


@pytest.mark.parametrize("columns", [("demand",), ("lost",), ("demand", "lost"), ()])
def test_counts_are_those_of_an_agent(columns):
    system, rows = shop(), shop_rows(ROUNDS)
    log = Log({name: rows[name] for name in ("shelf", "order", *columns)}, system=system).counts()
    agent = observed(system, rows, "demand" in columns, [name for name in columns if name == "lost"])
    assert log.tally.toarray().tolist() == agent.tally.toarray().tolist()
    assert log.noise.kinds == agent.noise.kinds
    assert log.noise.followed == agent.noise.followed
    for i in np.flatnonzero((log.unknown_costs == 0) & (agent.unknown_costs == 0)):
        assert log.cost_sums[i] == pytest.approx(agent.cost_sums[i], abs=1e-9)
    assert (log.unknown_costs == agent.unknown_costs).all()


def test_the_posterior_of_a_rate_with_demand_that_is_seen():
    """Conjugate: a Gamma prior with shape 2 and rate 1, and demand below its most."""
    rows = shop_rows(400, rate=1.2)
    assert rows["demand"].max() < 9
    system = shop()
    log = Log({name: rows[name] for name in ("shelf", "order", "demand")}, system=system)
    found = Structured.of(system).estimates(log.counts())["demand"]
    assert found.mean == pytest.approx((2 + rows["demand"][:-1].sum()) / (1 + 399), rel=0.02)


def test_censored_demand_is_learned_from_sales():
    rows = shop_rows(3_000)
    demand = np.where(rows["demand"] >= rows["shelf"], np.nan, rows["demand"])
    system = shop()
    log = Log({"shelf": rows["shelf"], "order": rows["order"], "demand": demand}, system=system)
    found = Structured.of(system).estimates(log.counts())["demand"]
    assert found.mean == pytest.approx(1.7, abs=5 * (1.7 / 1_000) ** 0.5)


def test_labels_in_place_of_variables():
    rows, system = shop_rows(50), shop()
    labels = {"where": [f"shelf={x}" for x in rows["shelf"]], "what": [f"order={x}" for x in rows["order"]]}
    one, two = Log(labels, state="where", action="what", system=system), Log(rows, system=system)
    assert one.states.tolist() == two.states.tolist()
    assert one.actions.tolist() == two.actions.tolist()
