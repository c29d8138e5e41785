"""Unmodified environments of other packages: mo-gymnasium's, MiniGrid's, and Gymnasium's toy texts.

The packages are the extra ``test-environments``; missing ones are skipped. ``make test-environments`` has all.
"""

import gymnasium
import numpy as np
import pytest

import psconrl
from psconrl.envs.registry import open_environment
from psconrl.errors import ConfigError, ModelError
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec

pytestmark = pytest.mark.filterwarnings("ignore")  # of their code


def task_of(package, id, **options):
    if package:
        pytest.importorskip(package, reason="needs the extra psconrl[test-environments]")
    return open_environment(f"gym:{package}:{id}" if package else f"gym:{id}", **options)


def played(task, rounds=400, **options):
    agent = psconrl.PSConRL(task.states.size, task.actions.size, task.thresholds, seed=0, **options)
    return psconrl.simulate(task, agent, rounds, seed=0)


def plain(observation):
    if isinstance(observation, dict):
        return {key: plain(part) for key, part in observation.items()}
    return np.asarray(observation).tolist()


MO = [  # id, states, actions, limits of all components but the first
    ("deep-sea-treasure-v0", 144, 4, [0.9]),
    ("resource-gathering-v0", 1296, 4, [0.0, 0.0]),
    ("four-room-v0", 1000, 4, [0.0, 0.0]),
    ("breakable-bottles-v0", 360, 3, [0.0, 0.1]),
    ("fishwood-v0", 2, 2, [-0.01]),
]


@pytest.mark.parametrize(("id", "states", "actions", "limits"), MO)
def test_rewards_of_mo_gymnasium_are_an_objective_and_costs(id, states, actions, limits):
    """Played in parallel with the environment itself, by the same actions."""
    task = task_of("mo_gymnasium", id, limits=limits)
    assert (task.states.size, task.actions.size) == (states, actions)
    assert task.cost_names == ("reward", *(f"component {k + 1}" for k in range(len(limits))))
    twin = psconrl.envs.continuing.without_time_limit(gymnasium.make(f"mo_gymnasium:{id}"))
    task.reset(seed=5)
    shown, over = twin.reset(seed=5)[0], False
    rng = np.random.default_rng(0)
    for action in rng.integers(actions, size=300):
        number, reward, _, _, info = task.step(int(action))
        if over:
            shown, over = twin.reset()[0], False
            assert (reward, info["costs"].tolist()) == (0.0, [0.0] * len(limits))
        else:
            shown, vector, terminated, truncated, _ = twin.step(int(action))
            over = terminated or truncated
            assert [reward, *info["costs"]] == pytest.approx([vector[0], *(-float(x) for x in vector[1:])])
        assert plain(task.states.element(number)) == plain(shown)
    trace = played(task)
    assert trace.horizon == 400
    assert trace.cumulative.shape[1] == len(limits) + 1


def test_bottles_beyond_what_was_declared_are_met_and_numbered():
    task = task_of("mo_gymnasium", "breakable-bottles-v0", limits=[0.0, 0.1])
    task.reset(seed=0)
    rng = np.random.default_rng(0)
    shown = {}

    def play():
        for action in rng.integers(3, size=10_000):
            number = task.step(int(action))[0]
            element = str(task.states.element(number))
            assert shown.setdefault(number, element) == element

    with pytest.warns(UserWarning, match=r"does not lie in .* it takes the number of one that was not met"):
        play()
    outside = [number for number in shown if not task.env.observation_space.contains(task.states.element(number))]
    assert len(outside) > 20
    assert len(set(shown.values())) == len(shown)


def test_the_best_treasure_is_found_from_play():
    """The value of the plan against the sea's map: the best of treasure / (steps + 1), where a restart is a step."""
    task = task_of("mo_gymnasium", "deep-sea-treasure-v0", limits=[1.0])
    found = psconrl.estimate(task, 4000, seed=0)
    sea = task.unwrapped.sea_map
    worth = max(sea[row, column] / (row + column + 1) for row, column in zip(*np.nonzero(sea > 0), strict=True))
    assert psconrl.plan(found.model).value == pytest.approx(worth, rel=1e-6)


@pytest.mark.parametrize("id", ["MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-8x8-v0", "MiniGrid-LavaCrossingS9N1-v0"])
def test_minigrid_is_numbered_as_it_appears(id):
    task = task_of("minigrid", id)
    assert (task.states.size, task.actions.size, task.cost_names) == (1000, 7, ("reward",))
    assert played(task, 300, optimistic_cost=-1.0).horizon == 300
    first, _ = task.reset(seed=3)
    assert set(task.states.element(first)) == {"image", "direction", "mission"}
    few = task_of("minigrid", id, most_states=3)
    with pytest.raises(ModelError, match="more than 3 different observations were met") as error:
        played(few)
    assert "\n" not in str(error.value)


def test_a_small_empty_room_is_learned():
    """The goal is four moves and a turn away; with the restart that is 1/7 a round, less the time penalty."""
    task = task_of("minigrid", "MiniGrid-Empty-5x5-v0")
    found = psconrl.estimate(task, 3000, seed=0)
    assert psconrl.plan(found.model).value == pytest.approx(1 / 7, rel=0.1)


def newest(name):
    """An id of Gymnasium's, in the version that this Gymnasium has."""
    return max(id for id in gymnasium.registry if id.startswith(f"{name}-v"))


@pytest.mark.parametrize(("name", "sizes"), [("FrozenLake", (16, 4)), ("CliffWalking", (48, 4)), ("Taxi", (500, 6))])
def test_toy_texts_with_a_table_are_models(name, sizes):
    model = task_of("", newest(name))
    assert (model.n_states, model.n_actions) == sizes
    assert psconrl.plan(model).status is psconrl.Status.OPTIMAL


def test_an_older_version_ends_in_a_line_that_names_the_newer():
    if newest("Taxi") == "Taxi-v3":
        pytest.skip("this Gymnasium has no newer one")
    with pytest.raises(ConfigError, match=r"cannot be made: .*Taxi-v4"):
        psconrl.load("gym:Taxi-v3")


def test_blackjack_is_played_though_its_observations_do_not_show_an_end():
    """This environment is not Markov (docs/tutorials/gymnasium.md): agents can play and learn it, not plan exactly."""
    task = task_of("", newest("Blackjack"))
    assert (task.states.size, task.actions.size) == (704, 2)
    trace = played(task, 100, optimistic_cost=-1.0)
    assert -1 <= -trace.averages[-1, 0] <= 1


def test_a_sweep_of_them(tmp_path):
    pytest.importorskip("mo_gymnasium", reason="needs the extra psconrl[test-environments]")
    spec = """
    replicates = 1
    [experiments.treasure]
    env = "gym:mo_gymnasium:deep-sea-treasure-v0"
    options = { limits = { time = 0.9 }, reward_names = ["treasure", "time"] }
    agents = ["psconrl", "uniform"]
    horizon = 100
    """
    outcome = run_sweep(parse_spec(spec).jobs(), tmp_path / "r.db", workers=1)
    assert (outcome.done, outcome.errors) == (2, [])
