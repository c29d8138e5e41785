"""Models of random systems, noise enumerated by factors, against a loop over all outcomes in plain Python.

Every system is built with the noise enumerated jointly, by factors, and by factors in tiny blocks.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import stats

import psconrl
from psconrl.errors import ConfigError, ModelError
from psconrl.systems import Bernoulli, Binomial, Categorical, Event, Geometric, Poisson, System, enumeration
from psconrl.systems.expressions import Expression
from psconrl.systems.quantities import ONE

SEEDS = range(12)
WAYS = {"jointly": (10**6, 400_000), "by factors": (0, 400_000), "in tiny blocks": (0, 40)}
X, Y, LOOK = 3, 3, ["low", "high"]
HERE = ("x", "y", "(look == 'high')", "a")
NOISE = ("flip", "trials", "count", "runs", "mood")


def value(text, **names):
    """The value of an expression by Python itself."""
    return eval(text, {"pick": lambda which, *values: values[int(which)]}, names)


def mass(name, at):
    """The outcomes of a noise in a state with an action, and their probabilities, by scipy.stats."""
    x, y, a = at["x"], at["y"], at["a"]
    if name == "flip":
        p = (0.2 + 0.1 * x) * (y > 0)
        return {0: 1.0 - p, 1: p}
    if name == "trials":
        return {k: stats.binom.pmf(k, x, 0.3) for k in range(X)}
    if name == "count":
        rate = 0.4 * (1 + a)
        return {k: stats.poisson.pmf(k, rate) if k < 3 else stats.poisson.sf(2, rate) for k in range(4)}
    if name == "runs":
        return {k: stats.geom.pmf(k + 1, 0.6) if k < 2 else 0.4**2 for k in range(3)}
    return {"low": 0.25, "high": 0.75}


def noises():
    """The same as the noise of a system."""
    return {
        "flip": Bernoulli("0.2 + 0.1 * x", when="y > 0"),
        "trials": Binomial("x", 0.3),
        "count": Poisson(0.4, most=3, times="1 + a"),
        "runs": Geometric(0.6, most=2),
        "mood": Categorical(LOOK, [0.25, 0.75]),
    }


def expression(rng, names, depth):
    """A random expression in whole numbers."""
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice([*names, "1", "2"]))
    one, two, three = (expression(rng, names, depth - 1) for _ in range(3))
    return str(
        rng.choice([
            f"({one} + {two})", f"({one} - {two})", f"max({one}, {two})", f"min({one}, {two} + 1)", f"({one} * {two})",
            f"({one} if {two} > {three} else {three})", f"(({one} >= {two}) and ({three} > 0))", f"abs({one} - {two})",
            f"pick(min(max({one}, 0), 2), {two}, {three}, 1)",
        ])
    )  # fmt: skip


def described(seed, without=()):
    """The expressions of a random system, its step and costs, and its noise."""
    rng = np.random.default_rng(seed)
    used = [n for n in NOISE if rng.random() < 0.75 and n not in without] or ["flip"]
    names = [*HERE, *("(mood == 'high')" if n == "mood" else n for n in used)]
    step = {
        "x": f"min(max({expression(rng, names, 3)}, 0), {X - 1})",
        "y": f"min(max({expression(rng, names, 2)}, 0), {Y - 1})",
        "look": str(rng.choice([f"'high' if {expression(rng, names, 2)} > 1 else 'low'", "look"])),
    }
    following = [*names, "next_x", "next_y"]
    costs = {"c": expression(rng, following, 3), "d": f"{expression(rng, following, 2)} / 2", "e": "+".join(names)}
    return step, costs, used


def build(seed, as_code=False, without=()):
    step, costs, used = described(seed, without)

    def moved(**at):
        return {name: value(text, **at) for name, text in step.items()}

    return System(
        state={"x": range(X), "y": range(Y), "look": LOOK},
        action={"a": range(2)},
        noise={name: one for name, one in noises().items() if name in used},
        step=partial(moved) if as_code else step,
        costs=costs,
        available="a <= x + y",
        minimise="c",
        limits=["d + 2 * e <= 100"],
    )


def looped(seed):
    """Transitions and means of the costs by a loop over all outcomes; and the distribution of the first cost."""
    step, costs, used = described(seed)
    first = (0, 0, "low")
    found, open_ = {}, [first]
    while open_:
        state = open_.pop()
        if state in found:
            continue
        found[state] = {}
        for a in range(2):
            here = dict(zip(("x", "y", "look"), state, strict=True)) | {"a": a}
            if not a <= here["x"] + here["y"]:
                continue
            rows, means, values = {}, dict.fromkeys(costs, 0.0), {}
            tables = [mass(n, here) for n in used]
            for outcome in itertools.product(*tables):
                p = np.prod([table[w] for table, w in zip(tables, outcome, strict=True)])
                if p == 0.0:
                    continue
                at = here | dict(zip(used, outcome, strict=True))
                to = {name: value(text, **at) for name, text in step.items()}
                key = (int(to["x"]), int(to["y"]), to["look"])
                rows[key] = rows.get(key, 0.0) + p
                known = at | {"next_x": key[0], "next_y": key[1]}
                for name, text in costs.items():
                    means[name] += p * value(text, **known)
                c = value(costs["c"], **known)
                values[c] = values.get(c, 0.0) + p
            found[state][a] = rows, means, values
            open_ += [key for key in rows if key not in found]
    return found


def enumerated(monkeypatch, way):
    monkeypatch.setattr(enumeration, "FEW_OUTCOMES", WAYS[way][0])
    monkeypatch.setattr(enumeration, "ROWS_AT_ONCE", WAYS[way][1])


def agrees(system, expected):
    """Compare a system, entry by entry, with what a loop found."""
    numbers = {state: system.state_number(dict(zip(("x", "y", "look"), state, strict=True))) for state in expected}
    model, measures = system.model(), system.expectations
    assert model.n_states == len(expected)
    found = measures.weighted(Expression("c"), ONE)
    for state, by_action in expected.items():
        s = numbers[state]
        assert np.flatnonzero(model.available[s]).tolist() == sorted(by_action)
        for a, (rows, means, values) in by_action.items():
            wanted = np.zeros(model.n_states)
            for key, p in rows.items():
                wanted[numbers[key]] = p
            np.testing.assert_allclose(model.transition.rows([2 * s + a])[0], wanted, rtol=1e-12)
            costs = means["c"], means["d"] + 2 * means["e"]
            np.testing.assert_allclose(model.costs[:, s, a], costs, rtol=1e-12, atol=1e-13)
            group = found.of_pair[2 * s + a]
            rows = slice(found.groups.starts[group], found.groups.starts[group + 1])
            known = dict.fromkeys(values, 0.0)
            for x, p in zip(found.values[rows], found.groups.probabilities[rows], strict=True):
                known[x] += p
            assert known == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_models_are_those_of_a_loop_over_all_outcomes(monkeypatch, seed):
    expected = looped(seed)
    for way in WAYS:
        enumerated(monkeypatch, way)
        agrees(build(seed), expected)


@pytest.mark.parametrize("way", WAYS)
def test_a_step_in_python_is_one_node(monkeypatch, way):
    enumerated(monkeypatch, way)
    agrees(build(2, as_code=True), looped(2))


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_models_are_those_of_the_structure_that_is_learned(monkeypatch, seed):
    enumerated(monkeypatch, "by factors")
    system = build(seed, without=["trials"])
    model, structure = system.model(), system.structure
    wanted = structure.expected_transition(structure.table({})).toarray()
    mask = model.available.ravel()
    np.testing.assert_allclose(model.transition.toarray()[mask], wanted[mask], rtol=1e-12)
    np.testing.assert_allclose(model.costs[:, model.available], structure.costs({})[:, model.available], 1e-12, 1e-13)


def machines(**changes):
    options = {
        "state": {"up": range(4), "old": [0, 1]},
        "action": {"crew": [1, 2]},
        "events": {
            "fail": Event(0.3, {"up": "up - 1"}, times="up", costs={"lost": "2 + old"}),
            "mend": Event(1.1, {"up": "up + 1", "old": "1"}, times="crew", when="up < 3"),
            "renew": Event(0.2, {"old": 0}, when="old == 1", costs={"lost": 5, "pay": "crew"}),
        },
        "costs": {"pay": "crew", "lost": "0.5 * (3 - up)"},
        "start": {"up": 3, "old": 0},
        "minimise": "pay",
        "limits": ["lost <= 9", "lost - 2 * pay <= 9"],
    }
    return System(**options | changes)


@pytest.mark.parametrize("way", WAYS)
def test_events_have_their_rates(monkeypatch, way):
    enumerated(monkeypatch, way)
    system = machines()
    model, clock = system.model(), system.source.clock
    for up, old, crew in itertools.product(range(4), (0, 1), (1, 2)):
        s = system.state_number({"up": up, "old": old})
        rates = {"fail": 0.3 * up, "mend": 1.1 * crew * (up < 3), "renew": 0.2 * old}
        wanted = np.zeros(8)
        to = {"fail": (up - 1, old), "mend": (up + 1, 1), "renew": (up, 0)}
        for event, rate in rates.items():
            if rate:
                wanted[system.state_number(dict(zip(("up", "old"), to[event], strict=True)))] += rate / clock
        wanted[s] += 1.0 - sum(rates.values()) / clock
        np.testing.assert_allclose(model.transition.rows([2 * s + crew - 1])[0], wanted, rtol=1e-13, atol=1e-16)
        pay = crew + rates["renew"] * crew
        lost = 0.5 * (3 - up) + rates["fail"] * (2 + old) + rates["renew"] * 5
        np.testing.assert_allclose(model.costs[:, s, crew - 1], [pay, lost, lost - 2 * pay], rtol=1e-13, atol=1e-13)


def test_a_node_whose_noise_enters_nothing_else_is_enumerated_once(monkeypatch):
    """Twenty flips have 2^20 joint outcomes, and their sum 21 values."""
    monkeypatch.setattr(enumeration, "FEW_OUTCOMES", 4)
    largest = []
    grown = enumeration.Rows.grown
    monkeypatch.setattr(enumeration.Rows, "grown", lambda *given: largest.append(grown(*given)) or largest[-1])
    flips = {f"c{k}": Bernoulli(0.5) for k in range(20)}
    system = System(
        state={"sum": range(22), "t": range(50)}, action={"a": 2}, noise=flips,
        step={"sum": f"{' + '.join(flips)} + a", "t": "(t + 1) % 50"}, costs={"c": "sum"}, minimise="c",
    )  # fmt: skip
    model = system.model()
    here = [system.state_number({"sum": k, "t": 1}) for k in range(22)]
    row = model.transition.rows([2 * system.state_number({"sum": 0, "t": 0})])[0][here]
    np.testing.assert_allclose(row[:21], stats.binom.pmf(range(21), 20, 0.5), rtol=1e-13)
    assert max(largest) <= 2 * 21  # rows, without actions and times


def test_noise_is_not_split_where_two_variables_share_it(monkeypatch):
    enumerated(monkeypatch, "by factors")
    system = System(
        state={"x": 2, "y": 2}, action={"a": 1}, noise={"flip": Bernoulli(0.3), "other": Bernoulli(0.5)},
        step={"x": "max(flip, other)", "y": "flip"}, costs={"c": "x"}, minimise="c",
    )  # fmt: skip
    row = system.model().transition.rows([0])[0]
    found = dict(zip(zip(*system.state_table.values(), strict=True), row, strict=True))
    assert found == pytest.approx({(0, 0): 0.35, (1, 0): 0.35, (1, 1): 0.3})


@pytest.mark.parametrize("way", WAYS)
def test_a_step_that_leaves_the_space_is_named(monkeypatch, way):
    enumerated(monkeypatch, way)
    system = System(
        state={"x": 3, "y": 3}, action={"a": 2}, noise={"d": Bernoulli(0.5), "e": Bernoulli(0.5)},
        step={"x": "x + d - a", "y": "min(y + e, 2)"}, costs={"c": "x"}, minimise="c",
    )  # fmt: skip
    with pytest.raises(ModelError, match=r"leaves the space: at x=0, y=0, a=1, d=0, e=0 it sets x to -1\.0"):
        system.model()


@pytest.mark.parametrize("way", WAYS)
def test_a_cost_that_is_not_finite_is_named(monkeypatch, way):
    enumerated(monkeypatch, way)
    system = System(
        state={"x": 3}, action={"a": 2}, noise={"d": Bernoulli(0.5), "e": Bernoulli(0.5)},
        step={"x": "min(x + d, 2)"}, costs={"c": "1 / (2 - x - e)"}, minimise="c",
    )  # fmt: skip
    with pytest.raises(ModelError, match="the cost 'c' must be finite; it is inf at x=1, a=0"):
        system.model()


def test_long_work_is_reported(monkeypatch):
    monkeypatch.setattr("psconrl.systems.reports.FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("psconrl.systems.reports.BETWEEN_SECONDS", 0.0)
    lines = []
    system = build(1)
    psconrl.pareto(system, "d + 2 * e", [60, 80], progress=lines.append)
    assert any("pairs" in line for line in lines)
    points = ["point 1 of 2", "point 2 of 2"]
    assert [line for line in lines if line in points] == points
    with pytest.raises(ConfigError, match="progress must be a function, such as print; got 3"):
        psconrl.plan(system, progress=3)


def test_limits_and_objectives_share_what_was_built(monkeypatch):
    system = build(1)
    system.model()
    monkeypatch.setattr(enumeration.Enumeration, "blocks", lambda self: pytest.fail("built again"))
    other = system.with_limits({"d + 2 * e": 50})
    assert other.model().thresholds.tolist() == [50.0]
    assert other.expectations is system.expectations
