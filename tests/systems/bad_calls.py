"""A grammar of mistakes: mutations of good descriptions and of live calls, drawn with a fixed seed."""

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np

import psconrl
from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

NOTHING = object()  # the argument is left out


class Odd:
    """An object that is nothing of what is expected."""

    def __repr__(self):
        return "Odd()"


TEXTS = [
    "",
    " ",
    "a",
    "x +",
    "1/0",
    "shelf == 'a'",
    "'a'",
    "shelf",
    "demand",
    "lost",
    "next_shelf",
    "order + 'a'",
    "max()",
    "max(1, 'a')",
    "shelf if 'a' else 2",
    "not 'a'",
    "'a' and 1",
    "x.y",
    "[1]",
    "f(",
    "5%",
    "%",
    "5 % 3",
    "1 <= 2",
    "lost / 0 <= 1",
    "p95(lost) <= 'a'",
    "p0(lost) <= 1",
    "cvar99_9999999999999999999(lost) <= 3",
    "p100(lost) <= 1",
    "p99_9999999999999999999(lost) <= 3",
    "P() <= 1",
    "P(lost, 3) <= 1",
    "mean(lost, given='a') <= 1",
    "P('a') <= 1",
    "p95(lost, given=shelf / 0) <= 1",
    "cvar90(lost, at='a') <= 1",
    "lost <= 1e999",
    "lost <= nan",
    "lost / shelf <= 2%",
    "'a' <= 3",
    "lost + 'a' <= 3",
    "cvar90('a') <= 3",
    "p95('a') <= 3",
    "lost == lost",
    "pick(shelf)",
    "pick('a', 1)",
    "lost <= 1, lost <= 2",
    "{shelf}",
    "{0}",
    "{shelf!z}",
    "{shelf:zz}",
    "{",
    "a\nb",
    "a\x00b",
    "é",
    "\ud800",
    "lambda: 1",
    "log(-1)",
    "0 * log(0)",
    "10 ** 400",
    "shelf ** 0.5 ** 900",
    "1 +" * 900 + "1",
    "(" * 300 + "1" + ")" * 300,
    "+".join(["lost"] * 400) + " <= 1",
    "not " * 60 + "shelf",
    "x" * 3000,
    "shelf == 1 == 'a'",
    "order > 9",
    "'a' if order else 'b'",
    "-'a'",
    "*shelf",
    "(shelf := 3)",
]
VALUES = [
    None,
    True,
    False,
    -1,
    0,
    3.5,
    10**30,
    -(10**30),
    10**400,
    -(10**400),
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    5e-324,
    [],
    [1, 2],
    [[1], [2, 3]],
    [None],
    ["a", 1],
    {},
    {"a": 1},
    {"shelf": None},
    {1: 2},
    {None: "a"},
    (),
    (1, 2),
    {1},
    range(0),
    range(2),
    b"x",
    Decimal("1.5"),
    Fraction(1, 3),
    1 + 2j,
    np.array([0.3, 0.4]),
    np.array(None),
    np.float64("nan"),
    np.int64(2),
    Odd(),
    Odd,
    print,
    len,
    lambda: 1,
    lambda x: x,
    lambda **given: None,
    lambda shelf: "a",
    lambda shelf: None,
    lambda shelf: [1],
    lambda shelf: 1 / 0,
    lambda *given: 1,
    lambda shelf: {"shelf": shelf},
    "ragged",
    Poisson(2, most=3),
    Beta(1, 1),
    Gamma(1, 1),
    Event(1.0),
    Categorical({"a": 1.0}),
    Bernoulli("shelf / 0"),
    Binomial("order", 0.5),
    Geometric(0.0, most=2),
    Bernoulli("0.5 * rain"),
    Bernoulli(0.5, times=2),
    Binomial("demand", Beta(1, 1)),
    Categorical({0: "shelf", 1: "1 - shelf"}),
    Joint([(0, "a"), (1, "b")], prior=1),
    Joint({(0, "a"): "0.5 * ice", (1, "b"): 0.5}),
    lambda rain: 0.5,
    ["0.5", "0.5"],
    [(0, 1), (1, 0)],
    [(0, "a"), ("b", 1)],
    [[1], [2]],
]


def bad(draw):
    return draw.choice(TEXTS) if draw.random() < 0.5 else draw.choice(VALUES)


def arguments_of_a_shop():
    return {
        "state": {"shelf": range(4)},
        "action": {"order": range(3)},
        "noise": {
            "demand": (Poisson, {"rate": 1.5, "most": 3, "times": 1}),
            "rain": (Bernoulli, {"p": 0.5, "when": "order", "times": "0.5 if shelf else 1"}),
            "fog, ice": (
                Joint,
                {"values": [[0, "no"], [1, "yes"]], "probabilities": ["0.5 if rain else 0.4", "0.5 if rain else 0.6"]},
            ),
        },
        "step": {"shelf": "min(max(shelf - demand - rain, 0) + order + fog * (ice == 'no'), 3)"},
        "costs": {"holding": "shelf", "lost": "max(demand - shelf, 0)"},
        "available": "shelf + order <= 5",
        "start": {"shelf": 1},
        "minimise": "holding",
        "maximise": NOTHING,
        "limits": {"service": "lost <= 1"},
        "units": {"round": "day", "levels": {"holding": "piece"}},
        "state_names": "{shelf} pieces",
        "action_names": "order {order}",
        "cost_names": {"service": "Service"},
        "clock": NOTHING,
        "events": NOTHING,
    }


def arguments_of_a_clinic():
    return {
        "state": {"shelf": range(4)},
        "action": {"order": [0, 1]},
        "events": {
            "comes": (
                Event,
                {"rate": (Gamma, {"shape": 2, "rate": 2}), "step": {"shelf": "shelf + 1"}, "when": "shelf < 3"},
            ),
            "goes": (
                Event,
                {
                    "rate": 1.0,
                    "step": {"shelf": "shelf - 1"},
                    "times": "1 + order",
                    "when": "shelf > 0",
                    "costs": {"lost": 1},
                },
            ),
        },
        "clock": 9.0,
        "costs": {"lost": 0, "speed": "order"},
        "minimise": "speed",
        "limits": ["shelf <= 2.5"],
        "maximise": NOTHING,
        "noise": NOTHING,
        "step": NOTHING,
        "available": NOTHING,
        "start": NOTHING,
        "units": NOTHING,
        "state_names": NOTHING,
        "action_names": NOTHING,
        "cost_names": NOTHING,
    }


NAMES = ["", "a b", "if", "event", "next_shelf", "shelf", "order", "é", "demand", "none"]
NAMES += ["rain, fog", ",", "a,, b", "fog,ice"]
NOISES = [
    lambda: (Binomial, {"n": 2, "p": (Beta, {"yes": 1, "no": 1, "shared": "a"})}),
    lambda: (Geometric, {"p": 0.5, "most": 2}),
    lambda: (Categorical, {"values": [0, 1], "probabilities": [0.5, 0.5], "prior": NOTHING}),
    lambda: (Categorical, {"values": {0: 0.5, 1: 0.5}, "probabilities": NOTHING, "prior": NOTHING}),
    lambda: (Poisson, {"rate": (Gamma.about, {"value": 1.0, "worth": 3.0, "shared": NOTHING}), "most": 3}),
    lambda: (Bernoulli, {"p": (Beta.about, {"value": 0.5, "worth": 3.0})}),
    lambda: (Bernoulli, {"p": "0.5 * fog"}),
    lambda: (Bernoulli, {"p": (Beta, {"yes": 1, "no": 1}), "times": "demand / 3"}),
    lambda: (Bernoulli, {"p": "0.5 * demand"}),
    lambda: (Binomial, {"n": "demand", "p": (Beta, {"yes": 1, "no": 1}), "times": 0.5}),
    lambda: (Geometric, {"p": (Beta, {"yes": 1, "no": 1}), "most": 2, "times": "0.5 + 0.5 * (demand > 0)"}),
    lambda: (Categorical, {"values": [0, 1], "probabilities": ["demand / 3", "1 - demand / 3"]}),
    lambda: (Joint, {"values": [(0, 1), (1, 0)], "probabilities": [0.5, 0.5]}),
]


def places(tree, path=()):
    """Return the paths of all values in a description."""
    found = []
    for key, value in tree.items():
        found.append((*path, key))
        inner = value[1] if isinstance(value, tuple) and len(value) == 2 and callable(value[0]) else value
        if isinstance(inner, dict):
            found += places(inner, (*path, key))
    return found


def is_call(tree, path):
    """Whether the value at a path is the call of a constructor, whose arguments Python itself checks."""
    for key in path:
        tree = (tree[1] if isinstance(tree, tuple) else tree)[key]
    return isinstance(tree, tuple)


def replaced(tree, path, value):
    """Put a value at a path."""
    for key in path[:-1]:
        tree = tree[key]
        tree = tree[1] if isinstance(tree, tuple) else tree
    tree[path[-1]] = value


def built(tree):
    """Call the constructors of a description."""
    if isinstance(tree, tuple) and len(tree) == 2 and callable(tree[0]) and isinstance(tree[1], dict):
        return tree[0](**built(tree[1]))
    if isinstance(tree, dict):
        return {key: built(value) for key, value in tree.items() if value is not NOTHING}
    return tree


def bad_description(seed):
    """Return the arguments of a system, one or two of them wrong."""
    draw = random.Random(seed)
    tree = arguments_of_a_shop() if draw.random() < 0.65 else arguments_of_a_clinic()
    if isinstance(tree["noise"], dict) and draw.random() < 0.5:
        tree["noise"]["rain"] = draw.choice(NOISES)()
    for _ in range(draw.choice([0, 0, 1, 1, 1, 2])):  # without a mistake, it is in what is asked
        path, value = draw.choice(places(tree)), bad(draw)
        if draw.random() < 0.15 and path[:-1] and not is_call(tree, path[:-1]):
            path = (
                *path[:-1],
                draw.choice(NAMES),
            )
        if draw.random() < 0.1 and path[0] in ("state", "action", "costs", "limits", "noise", "start"):
            path, value = path[:1], {draw.choice(["a", 1, None, "shelf", ("x",)]): value}
        replaced(tree, path, value)
    return tree


def use(tree, seed, folder):
    """Do with a description what a user would; what is asked for is chosen by the seed."""
    draw = random.Random(seed)
    system = System(**built(tree))
    known = {name: prior.mean() if prior.name == "weights" else 0.4 for name, prior in system.source.unknown().items()}
    what = draw.randrange(7)
    if what == 0:
        answer = psconrl.plan(system, **known)
        print(answer)
        if answer.feasible:
            psconrl.explain(answer, system.states.label(int(system.dynamics.reachable.states[0])))
    elif what == 1:
        system.save(folder / "it.toml")
        System.load(folder / "it.toml").model(**known)
    elif what == 2:
        psconrl.plan(system.with_limits([bad(draw)] if draw.random() < 0.5 else {"service": bad(draw)}), **known)
    elif what == 3:
        psconrl.plan(system, **{name: bad(draw) for name in known or {"demand": 1}})
    elif what == 4:
        system.with_noise(**{draw.choice(["demand", "rain", "comes", "fog, ice", "fog,ice", "fog"]): bad(draw)}).model(
            **known
        )
    elif what == 5:
        agent = psconrl.PSConRL.of(psconrl.linear(system), seed=1)
        agent.act(system.start)
    else:
        limit = draw.choice(["service", "lost", "shelf", bad(draw)])
        psconrl.pareto(system.with_noise(**known), limit, draw.choice([[0.5, 1.0], bad(draw)]), points=2)


class Live:
    """An agent in live use; every mistake must leave it as it was."""

    def __init__(self):
        shop = arguments_of_a_shop() | {"limits": ["lost <= 1"], "cost_names": NOTHING}
        shop["noise"]["demand"][1]["rate"] = (Gamma, {"shape": 2, "rate": 1})
        shop["noise"]["mood"] = (Categorical, {"values": ["good", "bad"], "probabilities": [0.5, 0.5]})
        shop["costs"]["holding"] = "shelf + (mood == 'bad')"
        self.agent = psconrl.PSConRL.of(System(**built(shop)), seed=1)

    def mistake(self, seed):
        """Make one call that is wrong, or may be."""
        draw = random.Random(seed)
        state, what = {"shelf": draw.randrange(4)}, draw.randrange(8)
        self.agent.finish()
        if what == 0:
            if draw.random() < 0.5:
                return self.agent.probabilities(draw.choice([bad(draw), {"shelf": bad(draw)}]))
            return self.agent.observe(bad(draw), state)
        if what == 1:
            return self.agent.act(draw.choice([bad(draw), {"shelf": bad(draw)}, {"shelf": 1, "a": 2}]))
        action = self.agent.act(state)
        if what == 2:
            return self.agent.observe(draw.choice([bad(draw), {"order": bad(draw)}]), state)
        if what == 3:
            return self.agent.observe(action, draw.choice([bad(draw), {"shelf": bad(draw)}]))
        if what == 4:
            return self.agent.observe(action, state, noise=draw.choice([bad(draw), {"demand": bad(draw)}]))
        if what == 5:
            return self.agent.observe(action, state, noise={draw.choice(["mood", "rain", bad_key(draw)]): bad(draw)})
        if what == 6:
            return self.agent.observe(action, state, costs=draw.choice([bad(draw), {"holding": 1, "lost": bad(draw)}]))
        return self.agent.set_thresholds(draw.choice([bad(draw), {"lost": bad(draw)}]))


def bad_key(draw):
    value = bad(draw)
    return value if isinstance(value, str | int | float | None) else "a"


def bad_file(seed):
    """Return the plain data of a system, one or two values of it wrong."""
    draw = random.Random(seed)
    tree = built(draw.choice([arguments_of_a_shop, arguments_of_a_clinic])())
    data = System(**tree).to_dict()
    for _ in range(draw.choice([1, 1, 2])):
        path = draw.choice(places(data))
        table = data
        for key in path[:-1]:
            table = table[key]
        if draw.random() < 0.2:
            table.pop(path[-1])
        elif draw.random() < 0.2:
            table[draw.choice(["p", "prior", "shared", "value", "worth", "about", "most", "x", "when", ""])] = bad(draw)
        else:
            table[path[-1]] = bad(draw)
    return data
