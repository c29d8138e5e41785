"""Random systems over all constructors and all of their arguments, for files and for mistakes.

``GIVEN`` draws one value of every argument, by its name. An argument that is not in it makes ``drawn`` fail.
"""

import numpy as np

from psconrl.systems.categorical import Categorical, Joint
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.signatures import arguments_of, required
from psconrl.systems.system import System

OTHER_ARGUMENTS = {
    kind: [("probabilities",), ("prior",)] for kind in (Categorical, Joint)
}  # of which one must be given
PARAMETERS = {Bernoulli: ("p", Beta), Binomial: ("p", Beta), Geometric: ("p", Beta)} | {
    Poisson: ("rate", Gamma), Event: ("rate", Gamma)
}  # fmt: skip


def number(rng, low=0.1, high=0.9):
    return float(rng.uniform(low, high))


def given_arguments(rng, kind, others=()):
    """Return how to draw every argument of a constructor, by its name; ``others``: noises that it may depend on."""
    is_on = f"({rng.choice(others)} > 0)" if others and rng.random() < 0.6 else "fast"
    trials = kind in (Bernoulli, Binomial, Geometric)
    if kind in (Gamma, Beta):
        return {name: lambda: number(rng, 0.5, 3.0) for name in ("shape", "rate", "yes", "no")} | {
            "shared": lambda: None  # by the caller, for two priors that are the same
        }
    return {
        "n": lambda: rng.choice(["x", f"2 * {is_on}", 2]),
        "p": lambda: rng.choice([f"0.2 + 0.3 * {is_on}", "0.5 / (1 + x)"]) if rng.random() < 0.4 else number(rng),
        "rate": lambda: f"0.5 + {is_on}" if kind is Poisson and rng.random() < 0.3 else number(rng, 0.0, 3.0),
        "most": lambda: int(rng.integers(1, 4)),
        "times": lambda: rng.choice([f"0.5 + 0.5 * {is_on}", "x / 4", 0.5] if trials else [f"1 + {is_on}", "x", 0.5]),
        "when": lambda: rng.choice([f"{is_on} == 1", "x > 0 and mood == 'bad'", 0]),
        "values": lambda: [[0, "u"], [1, "u"], [1, "v"]] if kind is Joint else [0.0, 1.0, 2.5],
        "probabilities": lambda: (
            [0.25, f"0.5 if {is_on} else 0.25", f"0.25 if {is_on} else 0.5"]
            if rng.random() < 0.5
            else rng.dirichlet(np.ones(3)).tolist()
        ),
        "prior": lambda: rng.choice([1, 2]) if rng.random() < 0.5 else rng.uniform(0.5, 2.0, 3).tolist(),
        "step": lambda: {"x": "min(x + 1, 3)"} if rng.random() < 0.5 else {"x": "max(x - 1, 0)", "mood": "'bad'"},
        "costs": lambda: {"paid": rng.choice(["x", 2])},
    }


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def drawn(rng, kind, others=()):
    """Return an object with random arguments: each that has a default is given or not."""
    ways = given_arguments(rng, kind, others)
    names = [*required(kind)]
    optional = [name for name in arguments_of(kind) if name not in names]
    if kind in OTHER_ARGUMENTS:
        choices = OTHER_ARGUMENTS[kind]
        optional = [name for name in optional if (name,) not in choices]
        names += choices[rng.integers(len(choices))]
    names += [name for name in optional if rng.random() < 0.6]
    given = {name: plain(ways[name]()) for name in names}
    if kind in PARAMETERS and rng.random() < 0.5:
        name, prior = PARAMETERS[kind]
        given[name] = drawn(rng, prior)
    return kind(**given)


def random_noise(rng):
    kinds = (Bernoulli, Binomial, Geometric, Poisson, Categorical, Joint)
    noise, variables = {}, []
    for k in range(3):
        kind = kinds[rng.integers(6)]
        noise[f"w{k}, v{k}" if kind is Joint else f"w{k}"] = drawn(rng, kind, variables)
        variables.append(f"w{k}")
    noise = dict(rng.permutation(np.array(list(noise.items()), dtype=object)).tolist())
    if rng.random() < 0.5:
        p = number(rng)
        noise |= {name: Bernoulli(Beta(p, 2, shared="both"), when="fast") for name in ("w3", "w4")}
    return noise


def random_events(rng):
    return {f"e{k}": drawn(rng, Event) for k in range(3)} | {"e3": Event(1.0, {"x": "max(x - 1, 0)"})}


def random_system(seed):
    """Return the arguments of a random system, and values of its unknown parameters."""
    rng = np.random.default_rng(seed)
    arguments = {
        "state": {"x": range(4), "mood": ["good", "bad"]},
        "action": {"fast": [0, 1]},
        "costs": {"waiting": rng.choice(["x", "0.1 * x + fast"]), "paid": 0.5, "speed": "fast"},
        "start": {"x": int(rng.integers(4)), "mood": rng.choice(["good", "bad"])},
        "available": rng.choice(["fast == 0 or x > 0", "1"]),
        "limits": ["speed <= 70%"] if rng.random() < 0.5 else {"s": "0.01 <= speed <= 0.9", "q": "p95(waiting) <= 7"},
        "units": {"round": "hour", "levels": {"speed": "x"}},
        "state_names": "{x} {mood}",
        "action_names": "speed {fast}",
        "cost_names": {"waiting": "Time in {the} queue"},
        "minimise": "waiting",
        "maximise": "paid - waiting",
        "noise": random_noise(rng),
        "events": random_events(rng),
        "clock": 60.0,
        "step": None,
    }
    assert set(arguments) == set(arguments_of(System)), "a new argument of System is not drawn here"
    arguments.pop(rng.choice(["minimise", "maximise"]))
    if rng.random() < 0.5:
        noise = arguments["noise"]
        total = " + ".join(f"{name.replace(', ', ' + (')} == 'u')" if "," in name else name for name in noise)
        arguments["step"] = {
            "x": f"min(max(x - fast - 1, 0) + floor({total}), 3)",
            "mood": f"mood if {total} > 2 else 'bad'",
        }
        del arguments["events"], arguments["clock"]
    else:
        del arguments["noise"], arguments["step"]
    if "minimise" not in arguments:
        arguments["cost_names"] = {"speed": "Speed"} if isinstance(arguments["limits"], list) else {}
    for name in ("available", "start", "limits", "units", "state_names", "action_names", "cost_names"):
        if rng.random() < 0.3 and not (name == "limits" and "cost_names" in arguments):
            arguments.pop(name)
    arguments = {key: plain(value) if isinstance(value, np.str_) else value for key, value in arguments.items()}
    system = System(**arguments)
    means = {name: prior.mean() for name, prior in system.source.unknown().items()}
    return system, {name: mean.item() if mean.size == 1 else mean for name, mean in means.items()}
