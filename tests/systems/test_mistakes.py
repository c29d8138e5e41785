"""Mistakes in a system are answered in one line, with the state that shows them."""

import numpy as np
import pytest

from psconrl.errors import ModelError
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Poisson
from psconrl.systems.priors import Gamma
from psconrl.systems.system import System

RNG = np.random.default_rng(1)
SHOP = {
    "state": {"shelf": range(5)},
    "action": {"order": range(3)},
    "noise": {"demand": Poisson(1.5, most=4)},
    "step": {"shelf": "min(max(shelf - demand, 0) + order, 4)"},
    "costs": {"holding": "shelf", "lost": "max(demand - shelf, 0)"},
    "minimise": "holding",
    "limits": ["lost <= 0.3"],
}
UP = {"n": "n + 1"}
CALLS = {
    "state": {"n": range(3)},
    "action": {"fast": [0, 1]},
    "events": {"up": Event(1.0, UP, when="n < 2"), "down": Event(1.0, {"n": "n - 1"}, when="n > 0")},
    "costs": {"waiting": "n"},
    "minimise": "waiting",
}


def said(base, changes):
    with pytest.raises(ModelError) as caught:
        System(**base | changes).model()
    assert "\n" not in str(caught.value)
    return str(caught.value)


SHOPS = [
    # The step.
    ({"step": {"shelf": "shelf - demand"}},
     "the step leaves the space: at shelf=0, order=0, demand=1 it sets shelf to -1.0, which is not among its values"),
    ({"step": lambda shelf, order, demand: {"shelf": shelf + order - 0 * demand}},
     "the step leaves the space: at shelf=3, order=2, demand=0 it sets shelf to 5, which is not among its values"),
    ({"step": {"shelf": "'a'"}}, "at shelf=0, order=0, demand=0 it sets shelf to a, which is not among its values"),
    ({"step": {"shelf": "shelf / 0"}}, "at shelf=0, order=0, demand=0 it sets shelf to nan"),
    ({"step": lambda shelf, order, demand: {}}, "step must return all variables of the state; 'shelf' is missing"),
    ({"step": lambda shelf, order, demand: {"shelf": 0} if shelf < 2 else {}},
     "step must return shelf everywhere; at shelf=2, order=0, demand="),
    ({"step": lambda shelf, order, demand: {"shelf": 0} if shelf < 2 else {"shelf": 0, "x": 1}}, "it returns shelf, x"),
    ({"step": lambda shelf, order, demand: {"shelf": 0} if shelf < 2 else None}, "it returns None"),
    ({"step": lambda shelf, order, demand: {"shelf": 0, "x": 1}},
     "step returns 'x', which is no variable of the state"),
    ({"step": lambda shelf, order, demand: {"shelf": [0, 1]}},
     "step must return shelf as a number; at shelf=0, order=0, demand=0 it returns [0, 1]"),
    ({"step": lambda shelf, order, demand: 3}, "step must return a table of the next state's variables; got 3"),
    ({"step": lambda shelf, order, demand: {"shelf": int(RNG.integers(5))}},
     "step gave two results for the same arguments, shelf="),
    ({"step": lambda shelf, order, demand: {"shelf": 1 // (shelf - 3)}},
     "step failed at shelf=3, order=0, demand=0: integer division or modulo by zero"),
    ({"step": lambda shelf, ordr: {"shelf": 0}},
     "step takes 'ordr', which is no variable; known: demand, order, shelf"),
    ({"step": lambda *x: {"shelf": 0}}, "step takes 'x', which is no variable"),
    ({"step": {"shef": "1"}}, "step: unknown variable of the state 'shef'; did you mean 'shelf'?"),
    ({"step": {"shelf": "shelv + 0 * demand"}},
     "the step of 'shelf': in 'shelv + 0 * demand': unknown variable 'shelv'"),
    ({"step": {"shelf": "next_shelf"}}, "the step of 'shelf': in 'next_shelf': unknown variable 'next_shelf'"),
    ({"step": None}, "a system needs a step, or events, which may have a clock"),
    # Costs, objectives and limits.
    ({"costs": {"holding": "1 / (shelf - 3)", "lost": "demand"}},
     "the cost 'holding' must be finite; it is inf at shelf=3, order=0"),
    ({"costs": {"holding": "'a'", "lost": "demand"}}, "the cost 'holding' must be a number; got 'a'"),
    ({"costs": {"holding": lambda shelf: None if shelf == 3 else 1, "lost": "demand"}},
     "the cost 'holding' must return a number; at shelf=3 it returns None"),
    ({"costs": {"holding": lambda shelf: RNG.random(), "lost": "demand"}},
     "the cost 'holding' gave two results for the same arguments, shelf=0; it must be deterministic"),
    ({"costs": {"holding": lambda shelf: 1 // (shelf - 3), "lost": "demand"}},
     "the cost 'holding' failed at shelf=3: "),
    ({"costs": {"holding": "shef", "lost": "demand"}}, "the cost 'holding': in 'shef': unknown variable 'shef'"),
    ({"costs": {"shelf": "1", "lost": "demand"}}, "a cost needs a name of its own, such as 'holding'; got 'shelf'"),
    ({"minimise": "holdin"}, "unknown variable 'holdin'; did you mean 'holding'?"),
    ({"minimise": None}, "give either minimise or maximise"),
    ({"limits": ["lst <= 1"]}, "unknown variable 'lst'; did you mean 'lost'?"),
    ({"limits": ["p95(lost, given=shelf > 1, given=shelf < 3) <= 1"]},
     "given is given twice; join conditions by 'and', as in given=a and b"),
    ({"limits": ["lost < "]}, "a limit must be a text such as 'lost <= 0.1'"),
    ({"limits": "lost <= 1"}, "limits must be a list of texts such as ['lost <= 0.1']; got 'lost <= 1'"),
    # Noise.
    ({"noise": {"demand": Poisson(1, most=4), "x": Bernoulli(0.5)}},
     "the noise 'x' is never used, neither by the step nor by a cost nor by other noise"),
    ({"noise": {"demand": 3}}, "the noise 'demand' must be a distribution such as Poisson(2.3, most=10); got 3"),
    ({"noise": {"demand": Bernoulli("shelf")}},
     "the noise 'demand' at shelf=2, order=0: p must be a probability from 0 to 1; got 2"),
    ({"noise": {"demand": Poisson("1 / shelf", most=4)}},
     "the noise 'demand' at shelf=0, order=0: rate must be finite and not negative; got inf"),
    ({"noise": {"demand": Binomial("shelf - 1", 0.5)}},
     "the noise 'demand' at shelf=0, order=0: n must be a whole number"),
    ({"noise": {"demand": Bernoulli("demnd")}}, "p of 'demand': in 'demnd': unknown variable 'demnd'"),
    # Variables, actions and the start.
    ({"available": "shelf < 3"}, "no action is available in the state shelf=3"),
    ({"available": "'yes'"}, "available must be a condition; got 'yes'"),
    ({"available": "shelf / shelf"}, "available must be a condition; at shelf=0, order=0 it is nan"),
    ({"available": lambda shelf: float("nan") if shelf == 3 else 1},
     "available must be a condition; at shelf=3, order=0 it is nan"),
    ({"noise": {"demand": Bernoulli(0.5, when="shelf / shelf")}},
     "the noise 'demand' at shelf=0, order=0: when must be a condition; got nan"),
    ({"available": "demand > 1"}, "available: in 'demand > 1': unknown variable 'demand'"),
    ({"start": {"shelf": 7}}, "start: 'shelf' has the values 0, 1, 2, 3, 4; got 7"),
    ({"start": {}}, "start must give a value to each of shelf; got {}"),
    ({"state": {}}, "state must be a table of variables and their values"),
    ({"state": {"shelf": "abc"}}, "'shelf' must have a list of values, such as range(9); got 'abc'"),
    ({"state": {"shelf": [1, "a"]}}, "the values of 'shelf' must be numbers, or texts; got [1, 'a']"),
    ({"state": {"shelf": range(0)}}, "'shelf' must have at least one value"),
    ({"state": {"shelf": [1, 1]}}, "the values of 'shelf' must differ from each other"),
    ({"state": {"if": range(3)}}, "a variable needs a name such as 'shelf'; got 'if'"),
    ({"action": {"shelf": range(3), "order": range(3)}}, "'shelf' is the name of two variables"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), SHOPS)
def test_mistakes_in_rounds(changes, message):
    assert message in said(SHOP, changes)


EVENTS = [
    ({"events": {"up": Event(-1, UP)}}, "the rate of 'up' must be a number from 0 on, or a Gamma; got -1"),
    ({"events": {"up": Event(1, UP)}},
     "the step leaves the space: at n=2, fast=0, event=up it sets n to 3.0, which is not among its values 0 to 2"),
    ({"clock": 0.1}, "the rates add up to 20 times the rate of the clock; give a faster clock"),
    ({"clock": "fast"}, "clock must be a positive rate; got 'fast'"),
    ({"events": {"up": Event(Gamma(1, 1), UP, when="n < 2")}}, "'up' has an unknown parameter; give it"),
    ({"events": {"up": Event(1, UP, when="n < 2", costs={"x": 1})}}, "an event has a cost 'x'; give it in costs, too"),
    ({"events": {"up": Event(1, UP, when="n / n < 2 and n < 2 or 0 * (1 / n)")}},
     "when of 'up' must be a condition; at n=0, fast=0 it is nan"),
    ({"events": {"up": Event(1, UP, when="m < 2")}}, "when of 'up': in 'm < 2': unknown variable 'm'"),
    ({"events": {"up": Event(1, UP, when="n < 2", times="n - 1")}},
     "times of 'up' must be finite and at least 0; at n=0, fast=0 it is -1"),
    ({"noise": {"x": Bernoulli(0.5)}}, "a system has noise and a step, or events with steps of their own, not both"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), EVENTS)
def test_mistakes_in_continuous_time(changes, message):
    assert message in said(CALLS, changes)


def test_an_unknown_noise_is_answered_with_the_nearest():
    with pytest.raises(ModelError, match="unknown noise 'dmand'; did you mean 'demand'"):
        System(**SHOP).model(dmand=2)
