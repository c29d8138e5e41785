"""Models of random systems over all constructors of noise against a slow enumeration in plain Python."""

import itertools
from math import comb, exp, factorial, floor

import numpy as np
import pytest

import psconrl
from psconrl.errors import ModelError
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson
from psconrl.systems.priors import Beta
from psconrl.systems.system import System
from random_systems import random_system


def value(given, names):
    """The value of an expression, by Python itself."""
    calls = {"floor": floor, "min": min, "max": max, "__builtins__": {}}
    return eval(given, calls, dict(names)) if isinstance(given, str) else given


def distribution(noise, parameter, names):
    """The values of a noise with their probabilities, given all variables on which it depends."""
    given = {key: value(rule, names) for key, rule in noise.arguments.items()}
    if isinstance(noise, Categorical):
        found = [given[key] for key in noise.parameter_arguments if key in given] or parameter
        return list(zip(noise.value_list, found, strict=True))
    p = given.get(noise.parameter_name, parameter) * given["times"]
    if isinstance(noise, Bernoulli):
        p = p if given["when"] else 0.0
        return [(0, 1 - p), (1, p)]
    if isinstance(noise, Binomial):
        n = given["n"]
        return [(k, comb(n, k) * p**k * (1 - p) ** (n - k)) for k in range(n + 1)]
    if isinstance(noise, Geometric):
        few = [(k, (1 - p) ** k * p) for k in range(noise.most)]
    else:
        few = [(k, exp(-p) * p**k / factorial(k)) for k in range(noise.most)]
    return [*few, (noise.most, 1 - sum(q for _, q in few))]


def outcomes(noises, known, names):
    """All joint outcomes with their probabilities: noise is drawn once all variables that it uses are known."""
    left = dict(noises)
    if not left:
        yield names, 1.0
        return
    for name, noise in left.items():
        try:
            found = distribution(noise, known.get(name), names)
        except NameError:
            continue
        del left[name]
        for drawn, probability in found:
            variables = name.split(", ")
            more = dict(zip(variables, drawn if len(variables) > 1 else [drawn], strict=True))
            if probability > 0.0:
                for rest, others in outcomes(left, known, names | more):
                    yield rest, probability * others
        return
    raise AssertionError("noises depend on each other in a cycle")


def slow_model(system, known, state, action):
    """The probabilities of the next states, and the means of some expressions, in a pair."""
    data, following, means = system.to_dict(), {}, dict.fromkeys(system.cost_names, 0.0)
    fixed = {name: one.known if one.known is None or one.known.size > 1 else one.known.item()
             for name, one in system.source.noise.items()}  # fmt: skip
    everything = fixed | known
    for names, probability in outcomes(system.source.noise, everything, state | action):
        to = tuple(value(data["step"].get(name, name), names) for name in state)
        following[to] = following.get(to, 0.0) + probability
        for cost in means:
            means[cost] += probability * value(data["costs"][cost], names)
    return following, means


def need_same(system, known):
    """Compare the model, and the structure that agents learn with, in all reachable states and actions."""
    model = system.model(**known)
    fixed = system.with_noise(**known)
    structure = fixed.structure
    learned = structure.transition(structure.table({})).toarray().reshape(structure.n_states, structure.n_actions, -1)
    planned = np.asarray(model.transition.toarray()).reshape(learned.shape)
    table = system.state_table
    columns = list(zip(*(v.tolist() for v in table.values()), strict=True))
    for (s, values), a in itertools.product(enumerate(columns), range(structure.n_actions)):
        if not model.available[s, a]:
            continue
        state, action = dict(zip(table, values, strict=True)), {"fast": a}
        following, _ = slow_model(system, known, state, action)
        row = np.zeros(len(columns))
        for to, probability in following.items():
            row[columns.index(to)] += probability
        np.testing.assert_allclose(planned[s, a], row, atol=1e-12)
        np.testing.assert_allclose(learned[s, a], row, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_system_has_the_model_of_a_slow_enumeration(seed):
    system, known = random_system(seed)
    if "events" not in system.to_dict():
        need_same(system, known)


def chain(**changes):
    """Arrivals depend on a storm, those served on the arrivals, and a joint table on the storm."""
    noise = {
        "served": Binomial("arrivals", 0.4, times="0.5 if fast else 1"),
        "storm": Bernoulli("0.3 if x < 3 else 0.5"),
        "arrivals": Poisson("2 if storm else 1", most=4),
        "coming, sky": Joint({(0, "wet"): "0.2 if storm else 0.5", (2, "dry"): "0.8 if storm else 0.5"}),
    }
    return System(
        state={"x": range(5)}, action={"fast": [0, 1]}, noise=noise | changes, minimise="late", limits=["speed <= 0.5"],
        step={"x": "min(max(x - fast, 0) + served + coming * (sky == 'dry'), 4)"},
        costs={"late": "x + storm * arrivals", "speed": "fast"},
    )  # fmt: skip


def test_noise_that_depends_on_noise_has_the_model_of_a_slow_enumeration():
    system = chain()
    need_same(system, {})
    costs = system.model().costs
    for x, fast in itertools.product(range(5), range(2)):
        means = slow_model(system, {}, {"x": x}, {"fast": fast})[1]
        np.testing.assert_allclose(costs[:, x, fast], [means["late"], means["speed"]], atol=1e-12)


def test_the_order_of_noises_does_not_matter():
    one, two = chain(), chain()
    two = System.from_dict(two.to_dict() | {"noise": dict(reversed(two.to_dict()["noise"].items()))})
    np.testing.assert_allclose(two.model().transition.toarray(), one.model().transition.toarray(), atol=1e-15)


def test_arguments_count_only_at_values_of_parents_that_are_possible():
    """Of n arrivals at most n are served, so that n - served is never negative where it is used."""
    data = chain().to_dict()
    data["noise"] |= {"left": {"distribution": "binomial", "n": "arrivals - served", "p": 0.5}}
    system = System.from_dict(data | {"costs": {"late": "left", "speed": "fast"}})
    need_same(system, {})
    for x, fast in itertools.product(range(5), range(2)):
        mean = slow_model(system, {}, {"x": x}, {"fast": fast})[1]["late"]
        assert system.model().costs[0, x, fast] == pytest.approx(mean, abs=1e-12)


def test_noises_that_depend_on_nothing_of_the_pair_have_one_case():
    system = System(
        state={"x": range(3)}, action={"fast": [0, 1]}, costs={"late": "x"}, minimise="late",
        noise={"storm": Bernoulli(0.25), "lost": Binomial("1 + storm", 0.5)}, step={"x": "lost"},
    )  # fmt: skip
    assert system.structure.randomness.n_contexts == 1
    np.testing.assert_allclose(
        system.model().transition.toarray()[0], [0.75 * 0.5 + 0.25 * 0.25, 0.5, 0.25 * 0.25], atol=1e-15
    )


@pytest.mark.parametrize(
    ("noise", "said"),
    [
        ({"a": Bernoulli("0.5 * b"), "b": Bernoulli("0.5 * c"), "c": Bernoulli("0.5 * a")},
         r"noises depend on each other in a cycle: 'a' on 'b', 'b' on 'c', 'c' on 'a'; one of them must not"),
        ({"a": Bernoulli("0.5 * a")}, "the noise 'a' depends on itself; its arguments may use other noises only"),
        ({"a, b": Joint({(0, 1): "0.5 if b else 1", (1, 0): 0.5})}, "the noise 'a, b' depends on itself"),
        ({"a": Binomial(3, 0.5), "b": Bernoulli("0.5 * a")},
         r"the noise 'b' at a=3: p must be a probability from 0 to 1; got 1.5"),
        ({"a": Binomial(1, 0.5, times="x - 1")}, r"the noise 'a' at x=0, fast=0: times must be a factor from 0 to 1; "
         "got -1"),
        ({"a": Categorical({0: "0.5", 1: "0.5 if x < 2 else 0.6"})},
         r"the noise 'a' at x=2, fast=0: probabilities must lie between 0 and 1 and sum to 1; got 0.5, 0.6"),
        ({"a": Categorical({0: "1.5 - x", 1: "x - 0.5"})}, r"the noise 'a' at x=0, fast=0: probabilities must lie "
         r"between 0 and 1 and sum to 1; got 1.5, -0.5"),
        ({"a": Categorical({0: "y", 1: 0.5})}, r"probability of 0 of 'a': .*'y'"),
        ({"a, b": Categorical({0: 0.5, 1: 0.5})}, r"the noise 'a, b' needs 1 name, one for each variable of "
         r"Categorical; got 2"),
        ({"a": Joint({(0, 1): 1.0})}, "the noise 'a' needs 2 names, separated by commas, one for each variable of "
         "Joint; got 1"),
        ({"a, a": Joint({(0, 1): 1.0})}, "'a' is the name of two variables"),
        ({"a, b": Joint({(0, 1): 1.0}), "a,b": Joint({(0, 1): 1.0})}, "two noises have the same name"),
    ],
)  # fmt: skip
def test_wrong_noise_is_named(noise, said):
    def plan():
        used = " + ".join(v for name in noise for v in dict.fromkeys(name.split(", ")))
        psconrl.plan(System(
            state={"x": range(3)}, action={"fast": [0, 1]}, noise=noise, step={"x": f"min({used}, 2)"},
            costs={"late": "x"}, minimise="late",
        ))  # fmt: skip

    with pytest.raises(ModelError, match=said) as error:
        plan()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, 2], "values must be a list of tuples of the same length"),
        ([(1,)], "values must be a list of tuples of the same length"),
        ([(1, 2), (1, 2, 3)], "values must be a list of tuples of the same length"),
        ([(1, 2), ("a", 2)], r"the values of a variable must be numbers, or texts; got \[1, 'a'\]"),
        ([(1, 2), (None, 2)], r"the values of a variable must be numbers, or texts; got \[1, None\]"),
        ([(1, "a"), (1, "a")], "the tuples must be all different"),
        (3, "values must be a list of tuples of the same length"),
    ],
)
def test_wrong_joint_tables_are_refused(values, said):
    with pytest.raises(ModelError, match=said):
        Joint(values, prior=1)


def test_a_joint_table_is_known_or_learned_by_its_name():
    system = System(
        state={"x": range(3)}, action={"fast": [0, 1]}, costs={"late": "x"}, minimise="late",
        noise={"n,sky": Joint([(0, "dry"), (1, "dry"), (1, "wet")], prior=1)}, step={"x": "n * (1 + (sky == 'wet'))"},
    )  # fmt: skip
    assert list(system.source.unknown()) == ["n, sky"]
    assert psconrl.plan(system, **{"n, sky": [0.2, 0.5, 0.3]}).value == pytest.approx(0.5 + 2 * 0.3)
    assert psconrl.plan(
        system, **{"n,sky": ["0.2 if fast else 0.7", 0.3, "0.5 if fast else 0"]}
    ).value == pytest.approx(0.3)
    assert repr(system) == "System(x; fast; unknown: n, sky)"


def test_a_function_may_depend_on_noise_by_name():
    def rate(storm, x):
        return 2.0 if storm else 0.5 + x

    def everything(**names):
        assert set(names) == {"x", "fast"}
        return 0.25

    plain = chain(storm=Bernoulli(0.25), arrivals=Poisson("2 if storm else 0.5 + x", most=4))
    same = chain(storm=Bernoulli(everything), arrivals=Poisson(rate, most=4))
    np.testing.assert_allclose(same.model().transition.toarray(), plain.model().transition.toarray(), atol=1e-15)


def test_noise_is_used_if_another_one_uses_it():
    assert psconrl.plan(chain()).feasible
    with pytest.raises(ModelError, match="the noise 'spare' is never used"):
        chain(spare=Bernoulli(Beta()))
