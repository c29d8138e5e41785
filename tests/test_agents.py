"""One suite that every agent passes."""

import numpy as np
import pytest

import psconrl
from psconrl import CMDP, plan, simulate
from psconrl.errors import AgentError
from psconrl.learning.counts import Record
from psconrl.learning.registry import CLASSES, RECIPES, load_agent, make_agent
from psconrl.simulation.rollout import Simulation

T = 600


def world(S, m, seed=0):
    """A random model with S states and m limits, feasible."""
    return psconrl.load("garnet", states=S, actions=3, branching=min(S, 4), constraints=m, slack=0.02, seed=seed)


WORLDS = {
    "S=2": world(2, 1),
    "m=1": world(8, 1),
    "m=3": world(8, 3),
    "infeasible": world(5, 2).with_thresholds([-1.0, -1.0]),
    "unlimited": CMDP(world(5, 1).transition, world(5, 1).costs[:1]),
}


def make(name, cmdp, seed=0, known=True):
    costs = cmdp.costs if known else None
    return make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, costs, seed, horizon=T)


@pytest.fixture(params=[name for name in RECIPES if name != "span-fha"])
def name(request):
    return request.param


def test_span_fha_serves_tiny_models_and_refuses_others(tmp_path):
    cmdp = psconrl.load("counterexample")
    agent = make_agent("span-fha", 2, 2, cmdp.thresholds, cmdp.costs, 0, 60, H=3)
    trace = simulate(cmdp, agent, 60, seed=0)
    assert set(trace.episodes.kind) <= {"approximate", "without span"}
    assert trace.count("approximate") > 0
    agent.save(tmp_path / "agent.npz")
    assert load_agent(tmp_path / "agent.npz")[0].H == 3
    with pytest.raises(AgentError, match=r"takes at most 4 states; got 16\. Use FHA"):
        make_agent("span-fha", 16, 4, [0.2], horizon=100)
    with pytest.raises(AgentError, match="blocks of at most 6 rounds; got H = 9"):
        make_agent("span-fha", 2, 2, [0.2], horizon=100, H=9)


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("known", [True, False])
def test_episodes_respect_their_limits_and_policies_are_distributions(name, kind, known):
    cmdp = WORLDS[kind]
    agent = make(name, cmdp, known=known)
    rng = np.random.default_rng(0)
    P = cmdp.transition.reshape(cmdp.n_states, cmdp.n_actions, -1)
    state, rounds = 0, 0
    while rounds < T:
        episode = agent.begin(state)
        assert episode.policy.shape[-2:] == (cmdp.n_states, cmdp.n_actions)
        assert (episode.policy >= 0).all()
        np.testing.assert_allclose(episode.policy.sum(axis=-1), 1.0)
        assert episode.max_steps >= 1
        assert episode.visit_caps is None or (episode.visit_caps >= 1).all()
        record = Record.empty(agent.counts)
        while not record.is_full(episode.max_steps, episode.visit_caps) and rounds < T:
            action = int(rng.choice(cmdp.n_actions, p=episode.row(record.steps, state)))
            successor = int(rng.choice(cmdp.n_states, p=P[state, action]))
            record.step(state, action, successor, cmdp.costs[:, state, action])
            state, rounds = successor, rounds + 1
        agent.end(record)
    assert agent.rounds == agent.counts.visits.sum() == T


@pytest.mark.parametrize("kind", WORLDS)
def test_same_seed_same_bits(name, kind):
    cmdp = WORLDS[kind]
    one, two = (simulate(cmdp, make(name, cmdp, seed=3), T, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.cumulative, two.cumulative)
    assert one.episodes.start == two.episodes.start


@pytest.mark.parametrize("kind", ["m=1", "m=3", "infeasible"])
def test_a_saved_and_resumed_run_equals_an_uninterrupted_one(name, kind, tmp_path):
    cmdp = WORLDS[kind]
    whole = Simulation(cmdp, make(name, cmdp, seed=5), seed=6).run(T, checkpoints=20)
    first = Simulation(cmdp, make(name, cmdp, seed=5), seed=6)
    first.run(T // 3)
    first.save(tmp_path / "run.npz")
    second = Simulation.resume(tmp_path / "run.npz", cmdp)
    assert type(second.agent) is type(first.agent)
    rest = second.run(T, checkpoints=[T])
    assert rest.cumulative[-1].tolist() == whole.cumulative[-1].tolist()
    assert load_agent(tmp_path / "run.npz")[0].config().keys() == first.agent.config().keys()


def test_every_agent_runs_on_the_largest_grid_of_the_paper(name):
    cmdp = psconrl.load("box")
    trace = simulate(cmdp, make(name, cmdp), 200, seed=0)
    assert trace.horizon == 200


def test_every_class_has_its_name_and_its_documentation():
    for key, cls in CLASSES.items():
        assert cls.name == key
        assert cls.__doc__
        assert cls.__module__.startswith("psconrl.learning")


LEARNERS = {
    "psconrl": {},
    "psconrl-paper": {},
    "cmdp-psrl": {},
    "ucrl-cmdp": {},
    "fha": {"H": 50, "span": 0.5},
    "lagrangian": {},
    "c-ucrl": {},
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_do_better_than_chance_on_the_small_grid(learner):
    """Over 12 other seeds the bounds were at least seven standard deviations from the mean, for C-UCRL's risk."""
    cmdp = psconrl.load("marsrover-4x4")
    best = plan(cmdp).value
    options = LEARNERS[learner]
    agent = make_agent(learner, 16, 4, cmdp.thresholds, cmdp.costs, 0, 11_000, **options)
    trace = simulate(cmdp, agent, 11_000, seed=0)
    late = trace.window_averages()[-50:].mean(axis=0)
    assert late[0] < best + 0.12  # a uniform policy has 0.975
    assert late[1] < 0.26


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        ("c-ucrl", {"h": 0}, "h must be a whole number"),
        ("c-ucrl", {"h": 1.9}, "h must be a whole number"),
        ("lagrangian", {"start": [1.0, 2.0]}, "start must be a multiplier from 0 on, or one per threshold"),
        ("lagrangian", {"start": float("nan")}, "start must be a multiplier"),
        ("c-ucrl", {"coef": -1.0}, "coef must be a number from 0 on"),
        ("c-ucrl", {"delta": 2.0}, "delta must lie strictly between 0 and 1"),
        ("c-ucrl", {"baseline": np.ones((2, 2))}, r"baseline must have shape \(S, A\) = \(16, 4\)"),
        ("ucrl-cmdp", {"exponent": 0.0}, r"exponent must lie in \(0, 1\]"),
        ("ucrl-cmdp", {"horizon": 0}, "horizon must be at least 1"),
        ("fha", {"horizon": 100, "H": 0}, "H must be at least 1"),
        ("fha", {"horizon": 100, "span": -1.0}, "span must be a number from 0 on"),
        ("lagrangian", {"rate": 0.0}, "rate and ceiling must be positive"),
    ],
)
def test_bad_options_get_one_clear_line(learner, options, message):
    horizon = {"horizon": 100} if learner == "ucrl-cmdp" and "horizon" not in options else {}
    with pytest.raises(AgentError, match=message):
        RECIPES[learner].build(16, 4, [0.2], **(options | horizon))
