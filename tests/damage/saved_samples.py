"""Saved agents and runs of all kinds, small, each in the middle of an episode; and a way to use what was read."""

import warnings

import numpy as np

import psconrl
from psconrl import agents
from psconrl.agents import PSConRL
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.registry import RECIPES
from psconrl.learning.runtime.persistence import read_saved
from psconrl.simulation.model_run import Simulation
from psconrl.systems.events import Event, EventClock
from psconrl.systems.noise import Bernoulli, Binomial, Categorical, Geometric, Joint, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System

MODEL = psconrl.load("counterexample")
HORIZON = 2000


def shelf(**changes):
    """Demand that an empty shelf censors; a joint noise and one that depends on it."""
    given = {
        "state": {"shelf": range(4), "day": ["even", "odd"]},
        "action": {"order": [0, 1]},
        "noise": {"demand": Categorical(range(3), prior=1), "spoilt": Binomial("min(shelf, 2)", Beta(1, 3))},
        "step": {"shelf": "max(shelf - demand - spoilt, 0) + order", "day": "'odd' if day == 'even' else 'even'"},
        "available": "shelf + order <= 3",
        "costs": {"lost": "max(demand - shelf, 0)", "sold": "min(demand, shelf)"},
        "start": {"shelf": 2, "day": "odd"},
        "minimise": "lost",
        "limits": ["sold >= 0.1"],
    }
    return System(**given | changes)


def kiosk():
    """Noise that shows only in the costs, some of it shared or dependent."""
    return System(
        state={"day": 2}, action={"make": range(2)}, minimise="money", limits=["over <= 3", "money / over <= 4"],
        noise={"demand": Poisson(Gamma(2, 3), most=3), "late, wet": Joint([(0, 0), (1, 0), (1, 1)], prior=1),
               "thrown": Bernoulli(Beta(1, 1), when="late"), "held": Geometric(0.5, most=2)},
        step={"day": "1 - day if thrown else day"},
        costs={"money": "make + 2 * max(demand - make, 0) + wet", "over": "1 + demand + held + thrown"},
    )  # fmt: skip


def line(**changes):
    """A queue in continuous time."""
    given = {
        "state": {"n": range(4)}, "action": {"fast": [0, 1]}, "clock": 8.0, "minimise": "queue",
        "limits": ["work <= 1"],
        "events": {"up": Event(Gamma(2, 2), {"n": "n + 1"}, when="n < 3", costs={"work": "0.1"}),
                   "down": Event(Gamma(2, 2), {"n": "n - 1"}, times="1 + fast", when="n > 0")},
        "costs": {"queue": "n", "work": "fast"},
    }  # fmt: skip
    return System(**given | changes)


def recipe(name, learns=False, **options):
    """Return a function that makes an agent by its name."""
    costs = None if learns else MODEL.costs

    def make():
        own = {"baseline": np.full((2, 2), 0.5)} if name in ("c-ucrl", "safe") else {}
        own |= {"slack": 0.05, "span": 3.0} if name == "safe" else {}
        return agents.make(name, 2, 2, [0.9], costs=costs, seed=1, horizon=HORIZON, **own | options)

    return make


def of(system, cls=PSConRL, **options):
    """Return a function that makes an agent for a system."""
    return lambda: cls.of(system(), seed=1, **options)


def surprised():
    """Return an agent for a system that learns rows once its structure is doubted."""
    system = shelf()
    return PSConRL(8, 2, system.thresholds, belief=Structured.of(system, surprise="rows"), seed=1)


def in_background():
    """Return an agent in an interim episode, whose plan is never ready."""
    agent = PSConRL(2, 2, {"c": 0.9}, seed=0)
    agent.plan_in_background(executor=Never())
    return agent


def labelled():
    """Return an agent whose states and actions have labels."""
    agent = agents.make("tsde", 3, 2, [0.9], seed=1)
    return psconrl.LabelledAgent(agent, states=["home", ("street", 2), 3], actions=["stay", "go"])


class Counting:
    """A user's own agent, which checks what it restores."""

    name = "counting"

    def __init__(self):
        self.visits = np.ones(4)

    def begin(self, state):
        """Return an episode that prefers what was tried least."""
        weights = 1.0 / self.visits.reshape(2, 2)
        return psconrl.Episode(weights / weights.sum(axis=1, keepdims=True), max_steps=7, kind="counting")

    def end(self, record):
        """Count."""
        self.visits += record.visits

    def state(self):
        """Return the visits."""
        return {"visits": self.visits}

    def restore(self, state):
        """Put the visits back."""
        visits = state["visits"]
        if visits.dtype != float or visits.shape != (4,) or not (visits >= 1).all() or not np.isfinite(visits).all():
            raise ValueError("not what was saved")
        self.visits = visits.copy()


class Never:
    """An executor that never finishes."""

    def submit(self, task):
        """Return a task that is never done."""
        return self

    def done(self):
        """Return False."""
        return False

    def result(self):
        """Return no plan."""
        raise RuntimeError


SLOW = ("span-fha", "sa-cvi-ucb", "ucrl-cmdp")

AGENTS = (
    {name: recipe(name) for name in RECIPES}
    | {f"{name} costs": recipe(name, learns=True) for name in RECIPES if name not in (*SLOW, "c-ucrl", "safe")}
    | {
        "balance": lambda: PSConRL(2, 2, [0.9], ledger=agents.Repay(0.1), commitment=agents.WhenSlow(), seed=1),
        "sampled costs": lambda: PSConRL(2, 2, [0.9], cost_belief=agents.SampledCosts(), doubt=agents.Budget(), seed=1),
        "draws": lambda: PSConRL(2, 2, [0.9], belief=agents.Draws([MODEL, MODEL], weigh=True), seed=1),
        "trusting": lambda: PSConRL.trusting(MODEL, weight=10, seed=1),
        "background": in_background,
        "labelled": labelled,
        "own": lambda: agents.adapt(Counting(), 2, 2, [0.9], seed=1),
        "shelf": of(shelf),
        "kiosk": of(kiosk),
        "line": of(line),
        "shelf rows": surprised,
        "shelf cmdp-psrl": of(shelf, agents.TSDE),
        "shelf safe": of(
            shelf, agents.SafeStart, baseline=np.tile([1.0, 0.0], (8, 1)), slack=0.02, span=np.full((1, 8), 3.0)
        ),
        "line safe": of(
            line, agents.SafeStart, baseline=np.tile([1.0, 0.0], (4, 1)), slack=0.1, span=np.full((1, 4), 3.0)
        ),
    }
)


def save_agent(make, path, rounds=150):
    """Play a new agent for some rounds, and save it in the middle of an episode."""
    agent = make()
    play(getattr(agent, "agent", agent), rounds, seed=3)
    agent.save(path, {"note": "mine"})


def play(agent, rounds, seed):
    """Act and observe; a system's agent is also given noise, some costs, and times."""
    rng = np.random.default_rng(seed)
    belief = getattr(agent, "belief", None)
    owner = Owner(belief) if isinstance(belief, Structured) and belief.vocabulary is not None else None
    state = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        waiting = None if agent._play is None else agent._play.asked_in
        if waiting is not None:
            state = waiting
            action = agent._play.action
            agent.observe(action, state, np.full(agent.n_costs, 0.5))
        for _ in range(rounds):
            action = agent.act(state)
            if owner is None:
                state = int(rng.integers(agent.n_states))
                agent.observe(action, state, rng.random(agent.n_costs))
            else:
                state, given = owner.outcome(state, action, rng, agent.takes_noise)
                agent.observe(action, state, **given)


class Owner:
    """The owner of a system, who reports rounds in all the ways there are."""

    def __init__(self, belief):
        self.belief, self.structure, self.words = belief, belief.known_structure, belief.vocabulary
        self.table = self.structure.table(self.structure.randomness.initial())

    def outcome(self, state, action, rng, takes_noise):
        """Return the next state, and what is reported besides."""
        structure, pair = self.structure, state * self.structure.n_actions + action
        cdf = np.cumsum(self.table[structure.contexts[pair]])
        w = min(int(np.searchsorted(cdf, rng.random() * cdf[-1], side="right")), cdf.size - 1)
        following = int(structure.successors[pair, w])
        paid = structure.fixed_costs[:, pair].copy()
        for i in range(len(paid)):
            of_pair = structure.paid(i, slice(pair, pair + 1))
            paid[i] += 0.0 if of_pair is None else of_pair[0, w]
        noise = {name: values[w].item() for name, values in self.words.outcomes.items()}
        events = isinstance(structure.randomness, EventClock)
        kind = int(rng.integers(4)) if takes_noise else 0
        if kind == 1:
            return following, {"noise": noise}
        if kind == 2 and events:
            return following, {"after": float(rng.exponential(0.5)) + 1e-3}
        if kind == 3:
            some = int(rng.integers(1, len(paid) + 1))
            named = dict(zip(self.words.costs[:some], np.multiply(paid, self.words.signs), strict=False))
            return following, {"costs": named, "noise": dict.fromkeys(noise)}
        return following, {"costs": paid}


RUNS = {
    "run": (MODEL, lambda: PSConRL(2, 2, MODEL.thresholds, seed=0), {}),
    "run policies": (MODEL, lambda: PSConRL(2, 2, MODEL.thresholds, seed=0), {"evaluate_policies": True}),
    "run pdnac": (MODEL, lambda: agents.make("pdnac", 2, 2, MODEL.thresholds, seed=0, horizon=HORIZON), {}),
    "run emission": (MODEL, lambda: agents.make("tsde", 2, 2, MODEL.thresholds, seed=0), {"emission": "two-point"}),
    "run system": (shelf().with_noise(demand=[0.2, 0.5, 0.3], spoilt=0.3), of(shelf), {}),
}


def save_run(name, path):
    """Save a run that was played for some rounds."""
    model, make, options = RUNS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Simulation(model, make(), 0, **options)
        run.run(150, checkpoints=5)
        run.save(path)


def use_agent(path, again, rounds=200):
    """Read an agent, play it and save it; read that, too."""
    agent = read_agent(path)
    repr(agent)
    player = getattr(agent, "agent", agent)
    play(player, min(rounds, 20) if player.name == "span-fha" else rounds, seed=5)
    agent.save(again)
    read_agent(again)


def read_agent(path):
    """Read an agent of any kind, a labelled one or a user's own as well."""
    saved = read_saved(path)
    if "labels" in saved.extra:
        return psconrl.LabelledAgent.load(path)
    return psconrl.load_agent(path, Counting() if saved.recipe == "counting" else None)


def use_run(name, path, again, rounds=200):
    """Resume a run, play on and save it; resume that, too."""
    model = RUNS[name][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Simulation.resume(model, path)
        run.run(run.round + rounds, checkpoints=5)
        run.save(again)
        Simulation.resume(model, again)
