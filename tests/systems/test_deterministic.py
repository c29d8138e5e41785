"""A function that is not deterministic is found, wherever it is random, and others are not accused."""

import numpy as np
import pytest

from psconrl.errors import ModelError
from psconrl.systems.functions import CALLED_AGAIN, COMPARED, LATER_AGAIN, Rule
from psconrl.systems.noise import Bernoulli, Categorical
from psconrl.systems.system import System

POINTS = 5 * 3 * 2


def shop(**changes):
    given = {
        "state": {"shelf": range(5)},
        "action": {"order": range(3)},
        "noise": {"demand": Bernoulli(0.5)},
        "step": {"shelf": "min(max(shelf - demand, 0) + order, 4)"},
        "costs": {"holding": "shelf"},
        "minimise": "holding",
    }
    return System(**given | changes)


def random_rules(share, rng):
    """Rules that return something else in a share of their calls, each for another part of a description."""
    odd = lambda: int(rng.random() < share)  # noqa: E731
    return [
        {"step": lambda shelf, order, demand: {"shelf": min(max(shelf - demand, 0) + order, 4 - odd())}},
        {"step": {"shelf": lambda shelf, order, demand: min(max(shelf - demand, 0) + order - odd(), 4) % 5}},
        {"costs": {"holding": lambda shelf, order, demand: shelf + odd()}},
        {"costs": {"holding": lambda shelf, order, demand: shelf + 1.0 * (rng.random(np.shape(shelf)) < share)}},
    ]


@pytest.mark.parametrize("rule", range(4))
def test_a_function_that_is_random_in_a_few_calls_is_found(rule):
    """Of 30 points every one is called twice in the trial, and twice while the model is built.

    For a share of 0.2 of odd calls, a pair of calls differs with probability 0.32, at least for rules without
    rounding by limits of the shelf. One of 10 systems passes with probability below 10 * 0.8^60 = 2e-5.
    """
    for seed in range(10):
        with pytest.raises(ModelError, match=r"gave two results for the same arguments, .*; it must be deterministic"):
            shop(**random_rules(0.2, np.random.default_rng(seed))[rule]).model()


def test_a_function_that_is_random_at_one_point_of_a_thousand_is_found():
    """With 3,000 points all are called again, so that one that always differs is found for sure."""
    calls = {"n": 0}

    def step(x, a, w):
        calls["n"] += 1
        return {"x": calls["n"] % 2 if (x, a, w) == (77, 2, 1) else (x + a + w) % 100}

    with pytest.raises(ModelError, match=r"a=2, w=1, x=77; it must be deterministic"):
        System(
            state={"x": 100}, action={"a": 10}, noise={"w": Categorical(range(3), [0.5, 0.3, 0.2])}, step=step,
            costs={"c": "x"}, minimise="c",
        ).model()  # fmt: skip


def test_how_often_a_function_is_called_again():
    """All of the first points and some of the later ones, so that large models cost hardly more."""
    calls = {"n": 0}

    def double(x):
        calls["n"] += 1
        if x % 2:  # takes no arrays
            return 2 * x
        return 2 * x

    rule = Rule(double, "it", frozenset(("x",)))
    for size, again in ((3000, 3000), (4000, 2000), (1000, LATER_AGAIN)):
        calls["n"] = 0
        rule({"x": np.arange(size)}, size)
        assert calls["n"] == size + again
    assert CALLED_AGAIN == 5000
    calls["n"] = 0
    rule.try_arrays({"x": np.arange(1000)})
    assert calls["n"] == 2 * COMPARED + 1  # the last with an array, which fails


def test_deterministic_functions_are_not_accused():
    """With arrays and without, with text, booleans and rounding that differs between the two."""
    for step in (
        lambda shelf, order, demand: {"shelf": np.minimum(np.maximum(shelf - demand, 0) + order, 4)},
        lambda shelf, order, demand: {"shelf": min(max(shelf - demand, 0) + order, 4)},
    ):
        for cost in (
            lambda shelf: np.exp(0.1 * shelf),
            lambda shelf: shelf > 2,
            lambda shelf: 1 if shelf else 0.5,
            lambda **given: given["shelf"],
        ):
            shop(step=step, costs={"holding": cost}).model()
    moods = System(
        state={"mood": ["good", "bad"]}, action={"a": 2}, noise={"w": Bernoulli(0.5)},
        step=lambda mood, a, w: {"mood": "bad" if w else mood}, costs={"c": lambda mood: mood == "bad"}, minimise="c",
        start={"mood": "bad"},
    )  # fmt: skip
    assert moods.model().n_states == 1
