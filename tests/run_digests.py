"""Digests of runs of all agents, of plans and of samples: one line each.

They are the same on every processor. ``python tests/run_digests.py`` prints them as JSON; ``test_same_bits`` compares
them with ``tests/data/run_digests.json``, for every instruction set that this machine has.
"""

import hashlib
import json
import sys
import warnings
from numbers import Integral

import numpy as np

import psconrl
from psconrl.learning.registry import RECIPES, make_agent, with_hints
from psconrl.learning.safe.baseline import known_baseline

ROUNDS = 400
# Known costs; costs to be learned, and noisy; three limits; sparse, with samples of a few hundred entries.
RUNS = (
    ("marsrover-4x4", {}, True),
    ("queue", {}, False),
    ("garnet", {"states": 12, "constraints": 3, "seed": 3}, True),
    ("garnet", {"states": 80, "sparse": True, "seed": 1}, True),
)
PLANS = (
    ("marsrover-8x8", {}),
    ("box", {}),
    ("network", {"side": 20}),
    ("garnet", {"states": 300, "sparse": True}),
    ("queue", {}),
    ("inventory", {}),
)
# The rounding of SciPy's optimiser is platform-dependent.
SKIPPED = {"span-fha"}
ONE_CONSTRAINT = ("sa-cvi-ucb", "tilted", "psconrl-account")
# With more states than this they would plan for minutes.
SMALL = dict.fromkeys(("ucrl-cmdp", "fha", "uc-curl", "c-ucrl", "safe", *ONE_CONSTRAINT), 20)


def update(sha, value):
    """Hash a nested state: arrays and numbers by their bits."""
    if isinstance(value, dict):
        for key in sorted(value):
            if key not in ("seconds", "planning_time"):  # how long something took
                sha.update(str(key).encode())
                update(sha, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            update(sha, item)
    elif isinstance(value, bool | Integral | np.bool_):
        sha.update(repr(int(value)).encode())
    elif isinstance(value, np.ndarray | np.floating | float):
        array = np.asarray(value)
        sha.update(str(array.shape).encode())
        sha.update(np.ascontiguousarray(array + 0 if array.dtype.kind in "fi" else array).tobytes())
    else:
        sha.update(repr(value).encode())


def digest(*values):
    sha = hashlib.sha256()
    update(sha, values)
    return sha.hexdigest()[:16]


def run_digest(name, env, options, known):
    """Digest of the costs after every round, and of what the agent knows and plays in the end."""
    model = psconrl.load(env, **options)
    given = known_baseline(model, None) if name == "safe" else {}
    given = given if known else with_hints(name, model, given)
    agent = make_agent(
        name, model.n_states, model.n_actions, model.thresholds, model.costs if known else None, 7, ROUNDS, **given
    )
    bernoulli = not known and model.costs.min() >= 0 and model.costs.max() <= 1
    trace = psconrl.simulate(
        model, agent, ROUNDS, 11, checkpoints=ROUNDS, emission="bernoulli" if bernoulli else "deterministic"
    )
    return digest(trace.cumulative, trace.episodes.start, trace.episodes.value, agent.state())


def plan_digest(env, options):
    plan = psconrl.plan(psconrl.load(env, **options))
    return digest(plan.policy, plan.value, plan.costs, plan.multipliers, plan.gap)


def label(*parts):
    return " ".join(str(part) if not isinstance(part, dict) else json.dumps(part, sort_keys=True) for part in parts)


def is_played(name, env, options):
    """Whether there is a digest of the agent in the environment."""
    limits = options.get("constraints", 1 if env != "queue" else 2)
    supported = name not in SKIPPED and not (name in ONE_CONSTRAINT and limits > 1)
    return supported and options.get("states", 0) <= SMALL.get(name, 10**6)


def runs():
    """Yield the labels of all runs, and the arguments of ``run_digest``."""
    for env, options, known in RUNS:
        for name in RECIPES:
            if is_played(name, env, options):
                yield label(name, env, options, "known" if known else "learned"), (name, env, options, known)


def plans():
    """Yield the labels of all plans, and the arguments of ``plan_digest``."""
    for env, options in PLANS:
        yield label("plan", env, options), (env, options)


def lines():
    """Yield labels and digests."""
    for key, arguments in runs():
        yield key, run_digest(*arguments)
    for key, arguments in plans():
        yield key, plan_digest(*arguments)


def main():
    warnings.simplefilter("ignore")
    json.dump(dict(lines()), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
