"""Ten systems from ten trades, planned by ``System`` and by own linear programs on own enumerations of plain rules."""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import psconrl

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from ten_trades import lines_of
from trades import TRADES, distributions, learning, own_model
from trades.planning import agreement
from trades.simulator import KINDS, Simulator, _drawn, middle, truth

ROUNDING = 1e-9


@pytest.mark.part(3)
@pytest.mark.parametrize("name", TRADES)
def test_a_plan_agrees_with_an_own_linear_program_and_survives_a_file(name):
    trade = TRADES[name]
    found = agreement(trade, middle(trade))
    assert 20 <= found.states <= 500
    assert found.difference <= ROUNDING
    assert found.files_agree


@pytest.mark.full
@pytest.mark.parametrize("name", TRADES)
@pytest.mark.parametrize("seed", range(3))
def test_a_plan_agrees_for_other_parameters(name, seed):
    trade = TRADES[name]
    numbers = truth(trade, np.random.default_rng([seed, 7]))
    if np.isnan(own_model.best(trade, own_model.enumerated(trade, numbers))):
        plan = psconrl.plan(trade.describe(), **{unknown: numbers[unknown] for unknown in trade.priors})
        assert not plan.feasible
    else:
        assert agreement(trade, numbers).difference <= ROUNDING


def test_the_ten_trades_cover_what_systems_can_say():
    text = " ".join(str(trade.describe().to_dict()) for trade in TRADES.values())
    assert len(TRADES) == 10
    kinds = ("poisson", "binomial", "bernoulli", "geometric", "categorical", "gamma", "beta", "events", "clock")
    limits = ("p95(", "p10(", "cvar80(", "given=", "P(", "mean(", " / ")
    for word in (*kinds, *limits, "available", "maximise", "when", "times"):
        assert word in text, word
    limited = [limit for trade in TRADES.values() for limit in trade.limits.values()]
    assert any(limit.low is not None and limit.high is not None for limit in limited)


def test_tables_of_distributions_are_those_of_scipy():
    assert distributions.binomial(4, 0.3) == pytest.approx(dict(enumerate(stats.binom.pmf(range(5), 4, 0.3))))
    poisson = [*stats.poisson.pmf(range(3), 1.7), stats.poisson.sf(2, 1.7)]
    assert distributions.poisson(1.7, 3) == pytest.approx(dict(enumerate(poisson)))
    geometric = [*stats.geom.pmf([1, 2], 0.4), stats.geom.sf(2, 0.4)]
    assert distributions.geometric(0.4, 2) == pytest.approx(dict(enumerate(geometric)))
    event = distributions.next_event({"a": 0.5, "b": 1.0}, 2.0)
    assert event == pytest.approx({"a": 0.25, "b": 0.5, "none": 0.25})


def test_a_value_is_drawn_where_the_cumulated_table_passes_the_uniform_number():
    table = {"a": 0.25, "b": 0.0, "c": 0.75}
    assert [_drawn(table, u) for u in (0.0, 0.2499, 0.25, 0.9999, 1.0)] == ["a", "a", "c", "c", "c"]


@pytest.mark.statistical
def test_a_simulator_that_is_right_follows_the_own_model():
    """A chi-squared test of the next states of all pairs; it fails by accident with probability 1e-4."""
    trade = TRADES["car sharing"]
    numbers = middle(trade)
    model = own_model.enumerated(trade, numbers)
    states = {own_model.key(state): s for s, state in enumerate(model.states)}
    pairs = {(s, own_model.key(action)): k for k, (s, action) in enumerate(model.pairs)}
    real, rng = Simulator(trade, "right", numbers, 4_000, 1), np.random.default_rng(2)
    seen: Counter[tuple[int, int]] = Counter()
    for _ in range(4_000):
        state = real.state
        action = trade.actions(state)[rng.integers(len(trade.actions(state)))]
        real.play(action)
        seen[pairs[states[own_model.key(state)], own_model.key(action)], states[own_model.key(real.state)]] += 1
    statistic, freedom = 0.0, 0
    for k, row in enumerate(model.transitions):
        counts = np.array([seen[k, t] for t in range(row.size)])
        expected = counts.sum() * row
        often = expected >= 5.0
        rest = (~often) & (row > 0.0)
        assert not counts[row == 0.0].any()
        pooled = np.append(expected[often], expected[rest].sum()), np.append(counts[often], counts[rest].sum())
        used = pooled[0] >= 5.0
        if used.sum() > 1:
            statistic += float(((pooled[1] - pooled[0])[used] ** 2 / pooled[0][used]).sum())
            freedom += int(used.sum()) - (1 if used.all() else 0)
    assert stats.chi2.sf(statistic, freedom) > 1e-4


@pytest.mark.parametrize("name", TRADES)
def test_every_wrong_way_changes_what_happens(name):
    trade = TRADES[name]
    rng = np.random.default_rng(3)
    actions = rng.random(400)
    paths = {}
    for kind in KINDS:
        real, path = Simulator(trade, kind, middle(trade), 400, 4), []
        for u in actions:
            choices = trade.actions(real.state)
            path.append((real.play(choices[int(u * len(choices))]), own_model.key(real.state)))
        paths[kind] = path
    assert all(first != second for first, second in pairwise(paths.values()))
    assert all(paths[kind] != paths["right"] for kind in KINDS[1:])


def test_a_run_ends_when_the_description_is_doubted_or_all_rounds_are_played():
    run = learning.played(TRADES["lifts"], "psconrl", "by state", 0, 100)
    assert run.rounds == 100
    assert run.found is None
    run = learning.played(TRADES["dairy"], "psconrl", "known", 0, 1_000)
    assert run.rounds == run.found < 1_000
    assert "mould" in run.says


def test_the_description_of_every_trade_is_shorter_than_its_plain_rules():
    for trade in TRADES.values():
        described, by_hand = lines_of(trade)
        assert 10 <= described < by_hand, trade.name
