"""An object with two methods is an agent: simulated, played step by step, inspected, saved and resumed."""

import gymnasium
import numpy as np
import pytest

import psconrl
from psconrl import CMDPEnv, Episode, LabelledAgent, PSConRL, load_agent, simulate
from psconrl.agents import Agent, Doubling, Repay, adapt
from psconrl.errors import AgentError, ConfigError
from psconrl.simulation.model_run import Simulation

MODEL = psconrl.load("counterexample")


class Mixed:
    """Learns the cheapest action of every state by counting, with some random actions. Has no base class."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.visits, self.costs = np.ones(4), np.zeros(4)

    def begin(self, state):
        greedy = np.eye(2)[(self.costs / self.visits).reshape(2, 2).argmin(axis=1)]
        share = self.rng.random()
        return Episode(share * greedy + (1 - share) / 2, max_steps=int(self.rng.integers(1, 9)), kind="mixed")

    def end(self, record):
        self.visits += record.visits
        self.costs += record.cost_sums[0]


class Saving(Mixed):
    """An agent that can also save and restore its state."""

    name = "saving agent"

    def state(self):
        return {"rng": self.rng.bit_generator.state, "visits": self.visits, "costs": self.costs}

    def restore(self, state):
        self.rng.bit_generator.state = state["rng"]
        self.visits, self.costs = np.array(state["visits"]), np.array(state["costs"])


def test_it_runs_on_a_model_in_gymnasium_and_step_by_step_with_the_same_bits():
    learners = [Mixed() for _ in range(3)]
    compiled = simulate(MODEL, learners[0], 300, seed=4)
    assert compiled.provenance["agent"] == "Mixed"
    assert set(compiled.episodes.kind) == {"mixed"}
    gym = simulate(CMDPEnv(MODEL), learners[1], 300, seed=4)
    assert gym.cumulative.tolist() == compiled.cumulative.tolist()
    agent, env = adapt(learners[2], 2, 2, MODEL.thresholds, seed=4), CMDPEnv(MODEL)
    state, _ = env.reset(seed=4)
    events = []
    agent.watch(events.append)
    for _ in range(300):
        action = agent.act(state)
        state, reward, _, _, info = env.step(action)
        agent.observe(action, state, [-reward, *info["costs"]])
    assert [e.length for e in events] == compiled.episodes.length[: len(events)]
    assert sum(learners[2].visits) - 4 == agent.rounds == agent.counts.visits.sum()
    np.testing.assert_array_equal(learners[0].visits, learners[1].visits)


def test_a_run_is_saved_and_resumed_bit_for_bit_into_a_fresh_object(tmp_path):
    path = tmp_path / "run.npz"
    whole = Simulation(MODEL, Saving(), 1)
    whole.run(400)
    half = Simulation(MODEL, Saving(), 1)
    half.run(173)
    half.save(path)
    again = Simulation.resume(MODEL, path, agent=Saving(seed=99))
    again.run(400)
    assert again.cumulative.tolist() == whole.cumulative.tolist()
    assert again.log.length == whole.log.length
    assert again.trace().provenance["agent"] == "saving agent"
    assert load_agent(path, Saving()).rounds <= 173
    assert "simulation" in load_agent(path, Saving()).extra
    with pytest.raises(AgentError, match=r"unknown agent 'saving agent'.*give agent=, its class or a fresh object"):
        Simulation.resume(MODEL, path)
    with pytest.raises(AgentError, match="Saving is no subclass of Agent; give a fresh object of it"):
        Simulation.resume(MODEL, path, agent=Saving)
    with pytest.raises(AgentError, match="holds an agent 'saving agent', not 'Mixed'"):
        Simulation.resume(MODEL, path, agent=Mixed())
    with pytest.raises(AgentError, match="holds an agent 'adapted', not 'psconrl'"):
        Simulation.resume(MODEL, path, agent=PSConRL)
    with pytest.raises(AgentError, match="not 'psconrl'"):
        load_agent(path, PSConRL(2, 2, [0.5]))
    with pytest.raises(AgentError, match="holds an agent of other sizes"):
        load_agent(path, adapt(Saving(), 3, 2, [0.5]))
    with pytest.raises(ConfigError, match="the model first, then the file; got PosixPath"):
        Simulation.resume(path, MODEL)


def test_one_that_remembers_nothing_says_so_when_it_is_saved(tmp_path):
    run = Simulation(MODEL, Mixed(), 1)
    run.run(20)
    with pytest.raises(AgentError, match=r"^Mixed cannot be saved: it has no state\(\) and restore\(state\)$"):
        run.save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())
    saving = Simulation(MODEL, type("Mixed", (Saving,), {"name": None})(), 1)
    saving.run(20)
    saving.save(tmp_path / "run.npz")
    with pytest.raises(AgentError, match=r"^Mixed cannot be saved: it has no state"):
        load_agent(tmp_path / "run.npz", Mixed())


def test_our_own_agents_are_restored_into_fresh_objects_too(tmp_path):
    agent = PSConRL(2, 2, MODEL.thresholds, MODEL.costs, seed=0)
    simulate(MODEL, agent, 200, seed=0)
    agent.set_thresholds([0.4])
    agent.save(tmp_path / "agent.npz")
    fresh = PSConRL(2, 2, MODEL.thresholds, MODEL.costs, seed=5)
    assert load_agent(tmp_path / "agent.npz", fresh) is fresh
    assert fresh.rounds == agent.rounds
    assert fresh.thresholds.tolist() == [0.4]
    with pytest.raises(AgentError, match="holds an agent made with other schedule than the one to restore into"):
        load_agent(tmp_path / "agent.npz", PSConRL(2, 2, [0.5], MODEL.costs, schedule=Doubling()))
    with pytest.raises(AgentError, match="holds an agent made with other ledger than"):
        load_agent(tmp_path / "agent.npz", PSConRL(2, 2, [0.5], MODEL.costs, ledger=Repay()))
    with pytest.raises(AgentError, match="holds an agent of other sizes"):
        load_agent(tmp_path / "agent.npz", PSConRL(2, 2, [0.5, 0.5]))
    one, two = (simulate(MODEL.with_thresholds([0.4]), a, 300, seed=1) for a in (agent, fresh))
    assert one.cumulative.tolist() == two.cumulative.tolist()


UNIFORM = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (UNIFORM, r"begin must return a psconrl\.Episode; got ndarray"),
        (None, "got NoneType"),
        (Episode(np.full((3, 2), 0.5)), r"must have shape \(S, A\) = \(2, 2\), or \(H, S, A\); got \(3, 2\)"),
        (Episode(np.full((2, 2, 2, 2), 0.5)), r"got \(2, 2, 2, 2\)"),
        (Episode(np.empty((0, 2, 2))), r"got \(0, 2, 2\)"),
        (Episode([0.5, 0.5]), r"got \(2,\)"),
        (Episode(np.ones((2, 2))), "must hold a distribution over 2 actions for every state"),
        (Episode([[1.5, -0.5], [0.5, 0.5]]), "must hold a distribution"),
        (Episode([[np.nan, 0.5], [0.5, 0.5]]), "must hold a distribution"),
        (Episode("no"), "policy of an episode must be numbers"),
        (Episode(UNIFORM, max_steps=0), "max_steps of an episode must be a whole number from 1 on; got 0"),
        (Episode(UNIFORM, max_steps=2.5), "max_steps of an episode must be a whole number"),
        (Episode(UNIFORM, visit_caps=np.ones(3, dtype=int)), r"visit_caps .* whole numbers from 1 on, of shape"),
        (Episode(UNIFORM, visit_caps=np.zeros((2, 2), dtype=int)), "visit_caps"),
        (Episode(UNIFORM, visit_caps=np.ones((2, 2))), "visit_caps"),
        (Episode(UNIFORM, value=[1, 2]), "value of an episode must be a number"),
        (Episode(UNIFORM, value="x"), "value of an episode must be numbers"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("subclass", [False, True])
def test_what_it_returns_is_looked_at_before_it_is_played(episode, message, subclass):
    if subclass:  # a user's subclass is checked as well

        class Wrong(Agent):
            name = "wrong"

            def __init__(self):
                super().__init__(2, 2, MODEL.thresholds, None, 0)

            def begin(self, state):
                return episode
    else:

        class Wrong(Mixed):
            def begin(self, state):
                return episode

    with pytest.raises(AgentError, match=message) as caught:
        simulate(MODEL, Wrong(), 10, seed=0)
    assert "\n" not in str(caught.value)
    with pytest.raises(AgentError, match=message):
        adapt(Wrong(), 2, 2, MODEL.thresholds).act(0)


def test_what_is_right_may_be_lists_and_huge_numbers():
    class Lists(Mixed):
        def begin(self, state):
            return Episode(
                [[[0.25, 0.75], [1, 0]], [[0, 1], [0.5, 0.5]]], max_steps=10**30, visit_caps=[[3, 4], [1, 2]]
            )

    trace = simulate(MODEL, Lists(), 100, seed=0)
    assert trace.horizon == 100
    assert max(trace.episodes.length) <= 7


def test_a_record_is_its_own_to_keep():
    class Keeping(Mixed):
        kept = ()

        def end(self, record):
            self.kept = (*self.kept, record)

    agent = Keeping()
    trace = simulate(MODEL, agent, 100, seed=0)
    assert [record.steps for record in agent.kept] == trace.episodes.length[: len(agent.kept)]
    assert all(record.visits.sum() == record.transitions.sum() == record.steps for record in agent.kept)


def test_what_is_no_agent_is_refused_with_what_is_missing():
    for thing in (Mixed, object(), 3, None):
        with pytest.raises(ConfigError, match="simulate needs an agent"):
            simulate(MODEL, thing, 10)
        with pytest.raises(AgentError, match=r"an agent has begin\(state\) and end\(record\); got"):
            adapt(thing, 2, 2, [0.5])
    with pytest.raises(AgentError, match=r"got Mixed; psconrl\.agents\.adapt makes one of it"):
        LabelledAgent(Mixed(), "ab", "xy")
    labelled = LabelledAgent(adapt(Mixed(), 2, 2, [0.5]), [*"ab"], [*"xy"])
    assert labelled.act("a") in ("x", "y")


def test_limits_can_be_changed_if_it_says_so():
    agent = adapt(Mixed(), 2, 2, [0.5])
    with pytest.raises(AgentError, match=r"Mixed has no set_thresholds\(thresholds\), so its limits cannot be changed"):
        agent.set_thresholds([0.1])

    class Changeable(Mixed):
        def set_thresholds(self, thresholds):
            self.thresholds = thresholds

    learner = Changeable()
    agent = adapt(learner, 2, 2, [0.5])
    agent.set_thresholds([0.1])
    assert learner.thresholds.tolist() == [0.1]
    with pytest.raises(AgentError, match="thresholds must be 1 finite numbers"):
        agent.set_thresholds([0.1, 0.2])
    assert learner.thresholds.tolist() == [0.1]  # it was not informed
    assert agent.thresholds.tolist() == [0.1]


class Bare(gymnasium.Env):
    """A foreign environment with a cost."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), 1.0, False, False, {"cost": 0.5}


def test_in_an_environment_that_does_not_say_how_many_costs_it_has():
    with pytest.raises(AgentError, match=r"how many costs it has; hand in psconrl\.agents\.adapt"):
        simulate(Bare(), Mixed(), 10)
    assert simulate(Bare(), adapt(Mixed(), 2, 2, [0.5]), 10).averages[-1].tolist() == [-1.0, 0.5]
    known = Mixed()
    known.thresholds = [0.5]
    assert simulate(Bare(), known, 10).averages[-1].tolist() == [-1.0, 0.5]


class Timid:
    """Plays uniformly, ten rounds at a time, on 16 states and 4 actions."""

    def begin(self, state):
        return Episode(np.full((16, 4), 0.25), max_steps=10)

    def end(self, record):
        pass


class Keeping(Timid):
    """Writes every record it receives to a file."""

    kept = None

    def state(self):
        return self.kept

    def restore(self, state):
        self.kept = state


def itself():
    table = {}
    table["again"] = table
    return table


@pytest.mark.parametrize(
    "kept",
    [
        {"odd": np.array([None, 1], dtype=object)},
        {"odd": {"@array": "array0"}},
        {"odd": {1: 2.0}},
        {"odd": {True: 1, None: 2}},
        {"odd": np.ma.array([1.0, 2.0], mask=[True, False])},
        {"odd": {1, 2}},
        [1, 2],
        itself(),
    ],
    ids=str,
)
def test_what_cannot_come_back_the_same_is_not_written(kept, tmp_path):
    path = tmp_path / "agent.npz"
    agent = adapt(Keeping(), 16, 4, [0.2], seed=0)
    agent.learner.kept = {}
    agent.save(path)
    before = path.read_bytes()
    agent.learner.kept = {"kept": kept} if isinstance(kept, list) else kept
    if isinstance(kept, list):
        with pytest.raises(AgentError, match="extra must be a table"):
            agent.save(path, kept)
    else:
        with pytest.raises(AgentError, match=r"can be saved|must not hold themselves"):
            agent.save(path)
    assert path.read_bytes() == before


def test_what_is_written_comes_back_the_same(tmp_path):
    kept = {"a.b": np.ones(2), "a": {"b": np.zeros(2)}, "long " * 20_000: np.arange(3), "\udc80": 1.5, "": [[], {}]}
    agent = adapt(Keeping(), 16, 4, [0.2], seed=0)
    agent.learner.kept = kept
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz", agent=Keeping()).learner.kept
    assert again.keys() == kept.keys()
    np.testing.assert_array_equal(again["a.b"], np.ones(2))
    np.testing.assert_array_equal(again["a"]["b"], np.zeros(2))


def test_a_policy_that_is_changed_after_it_was_handed_over_is_played_as_it_was():
    class Changing(Timid):
        def begin(self, state):
            self.policy = np.full((16, 4), 0.25)
            return psconrl.Episode(self.policy, max_steps=10)

    agent = adapt(Changing(), 16, 4, [0.2], seed=0)
    agent.act(0)
    agent.learner.policy[:] = np.nan
    assert agent.play(0).episode.policy.min() == 0.25


def test_limits_that_an_object_refuses_are_not_changed():
    class Refusing(Timid):
        def set_thresholds(self, thresholds):
            raise ValueError("no")

    agent = adapt(Refusing(), 16, 4, [0.2], seed=0)
    with pytest.raises(ValueError, match="no"):
        agent.set_thresholds([0.1])
    assert agent.thresholds.tolist() == [0.2]


@pytest.mark.parametrize("caps", [np.full((16, 4), 2**64 - 1, dtype=np.uint64), [[1], [1, 2]]])
def test_caps_beyond_counting_are_none_and_ragged_ones_are_refused(caps):
    class Capped(Timid):
        def begin(self, state):
            return psconrl.Episode(np.full((16, 4), 0.25), max_steps=7, visit_caps=caps)

    agent = adapt(Capped(), 16, 4, [0.2], seed=0)
    if isinstance(caps, list):
        with pytest.raises(AgentError, match="visit_caps"):
            agent.play(0)
    else:
        assert (agent.play(0).episode.visit_caps > 10**18).all()
