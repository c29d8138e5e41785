"""Models as Gymnasium environments, environments as continuing tasks, and policies on many copies at once."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text import BlackjackEnv, FrozenLakeEnv
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import psconrl
from psconrl import CMDP, CMDPEnv, PSConRL, continuing, simulate
from psconrl.agents import FixedPolicy, Uniform
from psconrl.envs.registration import IDS, register
from psconrl.envs.spaces import Numbering
from psconrl.errors import AgentError, ConfigError, ModelError, PolicyError
from psconrl.model.simulation_tables import EMISSIONS
from psconrl.simulation.monte_carlo import evaluate_on

ROUTE = [1, 0, 1, 0, 1, 0, 1, 0, 2, 1, 1, 0, 0, 2, 2, 0]  # FrozenLake 4x4 from 0: down, down, right, down, right, right
LOST = [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]  # right, down, into the hole


def lake(slippery=False, **options):
    return FrozenLakeEnv(is_slippery=slippery, **options)


def rightwards(state, action, next_state):
    return float(action == 2)


# A model as an environment


@pytest.mark.parametrize("id", sorted(IDS))
def test_every_registered_environment_passes_the_checker_of_gymnasium(id):
    check_env(gymnasium.make(id).unwrapped)  # warnings are errors here


def test_registering_twice_is_harmless_and_options_pass_through():
    register()
    env = gymnasium.make("psconrl/Box-v0", slip=0.1, threshold=0.3)
    assert env.unwrapped.model.thresholds.tolist() == [0.3]
    assert gymnasium.make("psconrl/Garnet-v0", states=7, seed=3).observation_space.n == 7
    assert isinstance(gymnasium.spec("psconrl/Queue-v0").make().unwrapped, CMDPEnv)
    with pytest.raises(ConfigError, match="box: unknown option 'slp'; did you mean 'slip'"):
        gymnasium.make("psconrl/Box-v0", slp=0.1)


@pytest.mark.part(3)
@pytest.mark.parametrize("emission", EMISSIONS)
@pytest.mark.parametrize("name", ["marsrover-4x4", "box", "garnet"])
def test_the_environment_plays_the_same_bits_as_the_compiled_simulation(name, emission):
    cmdp = psconrl.load(name, **({} if name == "garnet" else {"slip": 0.2}))
    runs = []
    for env, options in ((cmdp, {"emission": emission}), (CMDPEnv(cmdp, emission=emission), {})):
        agent = PSConRL(cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, seed=3)
        runs.append((simulate(env, agent, 500, seed=5, **options), agent))
    (one, a), (two, b) = runs
    np.testing.assert_array_equal(one.cumulative, two.cumulative)
    assert one.episodes.length == two.episodes.length
    np.testing.assert_array_equal(a.counts.transitions, b.counts.transitions)


def test_rewards_and_costs_are_those_of_the_model():
    queue = psconrl.load("queue")
    env = CMDPEnv(queue)
    state, _ = env.reset(seed=1)
    for action in [0, 4, 5, 2, 0, 0, 1] * 5:
        successor, reward, terminated, truncated, info = env.step(action)
        assert (terminated, truncated) == (False, False)
        assert reward == -queue.costs[0, state, action]
        np.testing.assert_array_equal(info["costs"], queue.costs[1:, state, action])
        assert info["cost"] == info["costs"].sum()
        assert isinstance(info["cost"], float)
        state = successor
    rover = CMDPEnv("marsrover-4x4")  # risk is paid on entering: it depends on the next state
    state, _ = rover.reset()
    for action in [3, 3, 1, 3, 1, 1, 0, 2] * 4:
        pair = state * 4 + action
        state, _, _, _, info = rover.step(action)
        assert info["costs"].tolist() == [rover.model.outcome_costs[1][pair, state]]


def test_a_seed_repeats_and_other_seeds_differ():
    def path(env, seed):
        states = [env.reset(seed=seed)[0]]
        return states + [env.step(t % 3)[0] for t in range(50)]

    env = gymnasium.make("psconrl/Garnet-v0")
    assert path(env, 7) == path(env, 7) == path(gymnasium.make("psconrl/Garnet-v0"), 7)
    assert path(env, 7) != path(env, 8)


def test_a_time_limit_is_the_users_choice():
    env = gymnasium.make("psconrl/Queue-v0", max_episode_steps=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_unavailable_actions_are_masked_and_refused():
    cmdp = CMDP(np.full((2, 2, 2), 0.5), np.ones((1, 2, 2)), available=[[1, 0], [1, 1]], state_names=["a", "b"])
    env = CMDPEnv(cmdp)
    state, info = env.reset(seed=0)
    assert state == 0
    assert info["action_mask"].tolist() == [1, 0]
    with pytest.raises(PolicyError, match=r"action '1' is not available in state 'a'; see info\['action_mask'\]"):
        env.step(1)
    for _ in range(20):
        state, _, _, _, info = env.step(env.action_space.sample(info["action_mask"]))
        assert info["action_mask"].tolist() == [[1, 0], [1, 1]][state]
    with pytest.raises(AgentError, match="every action is available"):
        simulate(cmdp, Uniform(2, 2, []), 10)


def test_wrong_use_of_the_environment_is_refused_clearly():
    env = CMDPEnv("box")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()
    for action in (4, -1, 0.5, None):
        with pytest.raises(PolicyError, match=r"action must lie in 0\.\.3; got"):
            env.step(action)
    with pytest.raises(ConfigError, match="unknown render_mode 'rgb_aray'; did you mean 'rgb_array'"):
        CMDPEnv("box", render_mode="rgb_aray")
    with pytest.raises(ConfigError, match="options go with the name of an environment"):
        CMDPEnv(psconrl.load("box"), slip=0.1)
    with pytest.raises(ModelError, match="Bernoulli costs must lie in"):
        CMDPEnv("queue", emission="bernoulli")
    with pytest.warns(UserWarning, match="render needs a render_mode"):
        env.render()


def test_pictures_show_agent_and_box():
    env = CMDPEnv("box", render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "agent (0,1) box (1,1)\n.@##\n.B..\n#...\n##.G"
    env.step(1)
    assert env.render() == "agent (1,1) box (2,1)\n.S##\n.@..\n#B..\n##.G"
    image = CMDPEnv("box", render_mode="rgb_array")
    image.reset()
    before = image.render()
    image.step(1)
    after = image.render()
    assert before.dtype == np.uint8
    assert before.shape == after.shape == (4 * 24, 4 * 24, 3)
    changed = {(i // 24, j // 24) for i, j, _ in np.argwhere(before != after)}
    assert changed == {(0, 1), (1, 1), (2, 1)}  # where the agent was, where the box was, where it is now


@pytest.mark.parametrize("name", ["queue", "garnet", "counterexample"])
def test_models_without_a_map_are_drawn_as_a_strip_with_the_name_of_the_state(name):
    text, image = CMDPEnv(name, render_mode="ansi"), CMDPEnv(name, render_mode="rgb_array")
    for env in (text, image):
        env.reset(seed=2)
    states, pictures = set(), set()
    for t in range(30):
        state = text.step(t % text.model.n_actions)[0]
        image.step(t % image.model.n_actions)
        line, strip = text.render().splitlines()
        assert line == text.model.state_name(state)
        assert (len(strip), strip.index("@")) == (text.model.n_states, state)
        picture = image.render()
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        states.add(state)
        pictures.add(picture.tobytes())
    assert len(pictures) == len(states) > 1
    big = CMDPEnv("garnet", states=300, render_mode="ansi")
    big.reset(seed=0)
    assert len(big.render().splitlines()[1]) == 40


# An environment as a continuing task


@pytest.mark.parametrize("policy", [ROUTE, LOST])
def test_three_ways_to_play_an_episodic_environment_are_one(policy):
    """The table as a model, the environment as it is, and the continuing task: the same states, rewards and costs."""
    limited = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=2)
    environments = (
        CMDP.from_gymnasium(lake(), rightwards, [1.0]),
        continuing(lake(), rightwards),
        continuing(limited, rightwards),
    )
    fixed = np.eye(4)[policy]
    seen = []
    for environment in environments:
        agent = FixedPolicy(16, 4, [1.0], policy=fixed, seed=0)
        trace = simulate(environment, agent, 50, seed=0, checkpoints=50)
        agent.finish()
        seen.append((trace.cumulative.tolist(), agent.counts.transitions.tolist(), agent.counts.cost_sums.tolist()))
    assert seen[0] == seen[1] == seen[2]
    raw = FixedPolicy(16, 4, [], policy=fixed, seed=0)
    trace = simulate(lake(), raw, 50, seed=0, checkpoints=50)
    assert trace.cumulative[:, 0].tolist() == [row[0] for row in seen[0][0]]


def test_the_end_is_shown_and_the_next_step_leads_to_a_new_start_at_no_cost():
    task = continuing(gymnasium.make("FrozenLake-v1", is_slippery=False), lambda s, a, t: [1.0, float(t)])
    assert task.reset(seed=0)[0] == 0
    steps = [task.step(a) for a in (2, 1, 3, 3)]
    assert [s[0] for s in steps] == [1, 5, 0, 0]
    assert all(s[2:4] == (False, False) for s in steps)
    assert [s[4]["costs"].tolist() for s in steps] == [[1, 1], [1, 5], [0, 0], [1, 0]]
    assert [s[4]["cost"] for s in steps] == [2, 6, 0, 1]
    assert [s[1] for s in steps] == [0, 0, 0, 0]
    task.step(2)
    task.step(1)
    assert task.reset()[0] == 0  # requested by the caller, at the end or not
    assert task.step(2)[0] == 1


def test_a_time_limit_is_taken_off_wherever_it_sits_and_the_given_environment_stays_as_it_was():
    class Outer(gymnasium.Wrapper):
        pass

    env = Outer(gymnasium.wrappers.TimeLimit(lake(), 3))
    task = continuing(env, rightwards)
    task.reset(seed=0)
    assert [task.step(0)[0] for _ in range(10)] == [0] * 10
    assert task.step(2)[0] == 1  # a truncated episode would have restarted here
    assert "TimeLimit" not in str(task)
    assert "TimeLimit" in str(env)


def test_costs_that_the_environment_reports_are_kept_and_its_own_truncation_ends_an_episode():
    class Reporting(FrozenLakeEnv):
        def step(self, action):
            state, reward, over, _, info = super().step(action)
            return state, reward, over, state == 8, info | {"cost": 0.5}

    task = continuing(Reporting(is_slippery=False))
    task.reset()
    assert [task.step(1)[0] for _ in range(4)] == [4, 8, 0, 4]
    assert task.step(1)[4]["costs"].tolist() == [0.5]
    assert task.step(1)[4]["costs"].tolist() == [0.0]
    agent = Uniform(16, 4, [1.0], seed=0)
    assert simulate(Reporting(), agent, 200, seed=0).averages[-1][1] < 0.5


def test_continuing_tasks_pass_the_checker():
    with pytest.warns(UserWarning, match="different from the unwrapped version"):
        check_env(continuing(CMDPEnv("queue")), skip_render_check=True, skip_close_check=True)


def test_the_cost_of_a_continuing_model_is_its_own():
    task = continuing(gymnasium.make("psconrl/Queue-v0", max_episode_steps=10))
    env = gymnasium.make("psconrl/Queue-v0")
    assert task.reset(seed=3)[0] == env.reset(seed=3)[0]
    for t in range(40):
        one, two = task.step(t % 6), env.step(t % 6)
        assert one[:4] == two[:4]
        np.testing.assert_array_equal(one[4]["costs"], two[4]["costs"])


SPACES = {
    "shifted": (spaces.Discrete(3, start=5), 3),
    "multi": (spaces.MultiDiscrete([2, 3, 2]), 12),
    "shifted multi": (spaces.MultiDiscrete([2, 3], start=[1, -1]), 6),
    "binary": (spaces.MultiBinary((2, 2)), 16),
    "tuple": (spaces.Tuple((spaces.Discrete(2, start=1), spaces.MultiBinary(1), spaces.Discrete(3))), 12),
    "dict": (spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Tuple((spaces.Discrete(3),))}), 6),
}


@pytest.mark.parametrize("name", SPACES)
def test_finite_spaces_are_numbered_there_and_back(name):
    space, size = SPACES[name]
    numbering = Numbering(space, "observations")
    assert numbering.size == size
    for number in range(size):
        element = numbering.element(number)
        assert element in space
        assert numbering.number(element) == number
    space.seed(0)
    for _ in range(20):
        sample = space.sample()
        assert numbering.number(numbering.element(numbering.number(sample))) == numbering.number(sample)


def test_blackjack_is_played_by_numbers_and_costs_see_its_own_terms():
    seen = []

    def cost(hand, action, next_hand):
        seen.append((hand, action, next_hand))
        return action

    task = continuing(BlackjackEnv(), cost)
    trace = simulate(task, Uniform(704, 2, [1.0], seed=0), 300, seed=0)
    assert all(h in task.env.observation_space and n in task.env.observation_space for h, _, n in seen)
    assert trace.cumulative[-1][1] == sum(a for _, a, _ in seen)
    assert 100 < len(seen) < 300  # the other rounds restarted


def test_what_cannot_be_a_continuing_task_is_refused():
    with pytest.raises(ModelError, match=r"observations must be finitely many.*most_states"):
        continuing(gymnasium.make("CartPole-v1"))
    steered = lake()
    steered.action_space = spaces.Box(0, 1)
    with pytest.raises(ModelError, match="actions must be Discrete"):
        continuing(steered)
    with pytest.raises(ModelError, match="at most 1,000,000 values"):
        Numbering(spaces.MultiBinary(30), "observations")
    with pytest.raises(ModelError, match="env must be a Gymnasium environment; got CMDP"):
        continuing(psconrl.load("box"))
    with pytest.raises(ModelError, match="cost must be a function"):
        continuing(lake(), cost=3)
    for cost, message in (
        (lambda s, a, t: np.nan, "must be finite; got 0 and \\[nan\\]"),
        (lambda s, a, t: "much", "cost must be a number or a list of numbers; got 'much'"),
        (lambda s, a, t: [[1.0]], "cost must be a number or a list"),
        (lambda s, a, t: [1.0] * (1 + t), "every step must report the same number of costs; got 5 after 1"),
    ):
        task = continuing(lake(), cost)
        task.reset(seed=0)
        with pytest.raises(ModelError, match=message):
            [task.step(a) for a in (0, 1)]
    task = continuing(lake())
    task.reset()
    with pytest.raises(ModelError, match="actions are numbered from 0 to 3; got 4"):
        task.step(4)

    class Astray(FrozenLakeEnv):
        def step(self, action):
            return 16, *super().step(action)[1:]

    agent = Uniform(16, 4, [], seed=0)
    with pytest.raises(ModelError, match=r"observations: 16 does not lie in Discrete\(16\)"):
        simulate(Astray(), agent, 10)
    simulate(lake(), agent, 10)  # the agent still works
    with pytest.raises(AgentError, match="2 constrained costs, the agent has 1 limits; give a limit for each"):
        simulate(continuing(lake(), lambda s, a, t: [0, 0]), Uniform(16, 4, [1.0]), 10)
    with pytest.raises(ConfigError, match="env must be a CMDP or a Gymnasium environment; got SyncVectorEnv"):
        simulate(SyncVectorEnv([lake]), agent, 10)


# Many copies at once


@pytest.mark.full
@pytest.mark.statistical
def test_averages_on_many_copies_agree_with_the_exact_ones():
    cmdp = psconrl.load("marsrover-4x4", slip=0.1)
    best = psconrl.plan(cmdp)
    envs = SyncVectorEnv([lambda: CMDPEnv(cmdp)] * 40)
    estimate = evaluate_on(envs, best.policy, rounds=1000, seed=0)
    # 5 standard errors; with 40 copies (39 degrees of freedom) the false-alarm rate is 1.2e-5 a cost. The start, one
    # trip out of 200 or more, moves the averages by less than 0.005.
    assert (abs(estimate.costs - best.costs) < 5 * estimate.errors + 0.005).all()
    assert (estimate.errors < 0.01).all()
    first, again, other = (evaluate_on(envs, best.policy, rounds=50, seed=seed).each for seed in (0, 0, 50))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert repr(estimate).startswith("EstimatedAverages(40 x 1000 rounds: 0.8")


class Reporting(FrozenLakeEnv):
    """Reports a cost of its own for every step right, and a misleading one when it starts."""

    def step(self, action):
        state, reward, over, cut, info = super().step(action)
        return state, reward, over, cut, info | {"costs": np.array([float(action == 2)])}

    def reset(self, **options):
        state, info = super().reset(**options)
        return state, info | {"costs": np.array([100.0])}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_all_ways_of_autoreset_count_rounds_alike(mode):
    envs = SyncVectorEnv([lambda: Reporting(is_slippery=False)] * 3, autoreset_mode=mode)
    exact = psconrl.evaluate(CMDP.from_gymnasium(lake(), rightwards, [1.0]), ROUTE).costs
    estimate = evaluate_on(envs, ROUTE, rounds=70, seed=0)  # ten trips of six steps and a new start
    np.testing.assert_allclose(estimate.each, np.tile(exact, (3, 1)), rtol=1e-12)
    np.testing.assert_allclose(exact, [-1 / 7, 3 / 7])
    partly = evaluate_on(envs, ROUTE, rounds=6, seed=0)  # the new start falls outside
    np.testing.assert_allclose(partly.costs, [-1 / 6, 3 / 6])


@pytest.mark.part(3)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_copies_in_processes_of_their_own_give_the_same(mode):
    policy = np.full((16, 4), 0.25)
    makers = [Reporting] * 2
    envs = AsyncVectorEnv(makers, context="spawn", autoreset_mode=mode)
    try:
        there = evaluate_on(envs, policy, rounds=80, seed=1)
    finally:
        envs.close()
    here = evaluate_on(SyncVectorEnv(makers, autoreset_mode=mode), policy, rounds=80, seed=1)
    np.testing.assert_array_equal(there.each, here.each)
    assert (here.each[:, 1] < 0.3).all()  # the costs that come with a reset are not counted


def test_vectors_of_environments_without_costs_or_with_shifted_spaces():
    envs = SyncVectorEnv([lake])
    assert evaluate_on(envs, ROUTE, rounds=7, seed=0).costs.tolist() == [-1 / 7]
    assert np.isnan(evaluate_on(envs, ROUTE, rounds=7).errors).all()
    for policy in (ROUTE[:-1], np.full((16, 4), 0.3), [9] * 16):
        with pytest.raises(PolicyError, match="16 actions or 16 distributions over 4 actions"):
            evaluate_on(envs, policy, rounds=7)
    with pytest.raises(ConfigError, match="envs must be a gymnasium"):
        evaluate_on(lake(), ROUTE, rounds=7)
    with pytest.raises(ConfigError, match="rounds must be a whole number"):
        evaluate_on(envs, ROUTE, rounds=0)
    with pytest.raises(ModelError, match=r"observations must be Discrete.*psconrl\.continuing"):
        evaluate_on(SyncVectorEnv([BlackjackEnv]), [0, 1], rounds=7)
