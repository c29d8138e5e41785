"""Environments with observations and rewards of many kinds: numbered, split into objective and costs, and played."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import psconrl
from psconrl.envs.spaces import MOST_MET, Appearing, Numbering, numbering_of
from psconrl.envs.vector_rewards import RewardComponents
from psconrl.errors import ModelError

FINITE = [
    (spaces.Box(-1, 2, (2,), np.int8), 16),
    (spaces.Box(np.array([0, 5]), np.array([1, 7]), dtype=np.int64), 6),
    (spaces.MultiDiscrete([3, 2], start=[1, 5]), 6),
    (spaces.MultiBinary((2, 2)), 16),
    (spaces.Dict(a=spaces.Box(0, 3, (1,), np.uint8), b=spaces.Discrete(2, start=4)), 8),
    (spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(1))), 6),
]


@pytest.mark.parametrize(("space", "size"), FINITE)
def test_finite_spaces_are_numbered_and_numbers_are_elements(space, size):
    numbers = numbering_of(space, "observations")
    assert isinstance(numbers, Numbering)
    assert numbers.size == size
    assert [numbers.number(numbers.element(k)) for k in range(size)] == list(range(size))
    assert all(space.contains(numbers.element(k)) for k in range(size))
    space.seed(0)
    seen = {numbers.number(space.sample()) for _ in range(40 * size)}
    assert seen == set(range(size))  # each is missed with probability below 1e-16


def test_what_lies_outside_of_its_space_is_refused():
    numbers = numbering_of(spaces.Box(-1, 2, (2,), np.int8), "observations")
    for wrong in ([0], [0.5, 0.0], "ab", None):
        with pytest.raises(ModelError, match="does not lie in"):
            numbers.number(wrong)
    for space, wrong in ((spaces.Discrete(3), 3), (spaces.Discrete(3, start=2), 1), (spaces.Box(0, 1, (1,), int), [2])):
        with pytest.raises(ModelError, match="does not lie in"):
            numbering_of(space, "observations").number(wrong)
    with pytest.raises(ModelError, match=r"actions: .* does not lie in"):
        Numbering(spaces.MultiBinary(2), "actions").number([0, 2])


def test_an_observation_of_more_than_was_declared_takes_a_number_that_is_free():
    """As in mo-gymnasium's breakable bottles, which counts bottles where it declares yes or no."""
    numbers = numbering_of(spaces.MultiBinary(3), "observations")
    met = [[1, 1, 1], [0, 0, 0], [0, 2, 0], [1, 1, 0], [0, 2, 0], [2, 0, 0], [1, 0, 1], [1, 1, 1]]
    with pytest.warns(
        UserWarning, match=r"\[0, 2, 0\] does not lie in .*; it takes the number of one that was not met"
    ):
        given = [numbers.number(each) for each in met]
    assert given == [7, 0, 6, 5, 6, 4, 3, 7]  # 6 is that of [1, 1, 0], 5 of [1, 0, 1]
    assert [list(numbers.element(k)) for k in given] == met
    assert list(numbers.element(2)) == [0, 1, 0]  # not visited
    for rest in ([0, 0, 1], [0, 1, 0]):
        numbers.number(rest)
    with pytest.raises(ModelError, match=r"more than 8 different observations were met, more than MultiBinary\(3\)"):
        numbers.number([3, 0, 0])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (7, 7, 3), np.uint8),
        spaces.Text(5),
        spaces.Dict(image=spaces.Box(0, 255, (7, 7, 3), np.uint8), direction=spaces.Discrete(4)),
        spaces.Sequence(spaces.Discrete(2)),
    ],
)
def test_what_is_too_much_is_numbered_as_it_appears(space):
    numbers = numbering_of(space, "observations")
    assert isinstance(numbers, Appearing)
    assert numbers.size == MOST_MET
    space.seed(1)
    shown = [space.sample() for _ in range(20)]
    first = [numbers.number(element) for element in shown]
    assert [numbers.number(element) for element in shown] == first
    assert max(first) < 20
    assert str(numbers.element(first[3])) == str(shown[3])


def test_equal_observations_have_one_number():
    met = Appearing(10)
    assert met.number({"b": np.zeros(2), "a": 1}) == met.number({"a": 1, "b": np.zeros(2)})
    assert met.number(np.zeros(2)) != met.number(np.zeros((2, 1)))
    assert met.number([1, 2]) == met.number((1, 2))
    with pytest.raises(ModelError, match="must be numbers, arrays, text"):
        met.number({1, 2})
    with pytest.raises(ModelError, match="3 observations were met"):
        Appearing.element(_met(3), 3)


def _met(n):
    met = Appearing(10)
    for k in range(n):
        met.number(k)
    return met


def test_more_than_there_may_be_end_in_one_line():
    met = Appearing(2)
    for k in (5, 6, 5):
        met.number(k)
    with pytest.raises(ModelError, match=r"more than 2 different observations were met; .*most_states"):
        met.number(7)


@pytest.mark.parametrize("most", [0, -1, 2.5, True, 10**7, "many"])
def test_how_many_there_may_be_is_a_number(most):
    with pytest.raises(ModelError, match="most_states must be a whole number from 1 to"):
        numbering_of(spaces.Discrete(3), "observations", most)


def test_infinitely_many_are_refused_unless_a_number_is_given():
    with pytest.raises(ModelError, match="infinitely many"):
        numbering_of(spaces.Box(0, 1, (2,)), "observations")
    assert numbering_of(spaces.Box(0, 1, (2,)), "observations", 7).size == 7


# Rewards that are vectors


def test_the_first_component_is_the_objective_and_all_others_are_costs():
    reward, costs = RewardComponents(3).split([5.0, -1.0, 0.25])
    assert reward == 5.0
    assert costs.tolist() == [1.0, -0.25]
    reward, costs = RewardComponents(3, objective="gold", costs={"steps": 2.0}, names=("steps", "gold", "gems")).split(
        [3, 4, 5]
    )
    assert (reward, costs.tolist()) == (4.0, [6.0])
    assert RewardComponents(3, objective=2, costs=[0]).cost_names == ("component 0",)
    assert RewardComponents(2, costs=[]).split([1.0, 2.0])[1].size == 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"objective": 3}, "numbered from 0 to 2; got 3"),
        ({"objective": True}, "numbered from 0 to 2; got True"),
        ({"objective": "gold"}, "unknown component of the reward 'gold'"),
        ({"costs": ["gol"], "names": ("gold", "a", "b")}, "did you mean 'gold'"),
        ({"costs": {1: 0.0}}, "a sign for every component"),
        ({"costs": {1: "x"}}, "a sign for every component"),
        ({"costs": [1, 1, "a"], "names": ("x", "a", "b")}, "name a component twice"),
        ({"names": ("a", "b")}, "3 components; got 2 names"),
    ],
)
def test_components_that_there_are_not(options, complaint):
    with pytest.raises(ModelError, match=complaint):
        RewardComponents(3, **options)


def test_a_reward_of_another_length():
    with pytest.raises(ModelError, match="must have 2 components"):
        RewardComponents(2).split([1.0, 2.0, 3.0])


class Walk(gymnasium.Env):
    """A walk on a line that shows pictures and pays in gold and in time."""

    observation_space = spaces.Box(0, 255, (4, 4), np.uint8)
    action_space = spaces.Discrete(2)
    reward_space = spaces.Box(-1, 1, (2,))

    def __init__(self, declared=True):
        if not declared:
            self.reward_space = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._shown(), {}

    def step(self, action):
        self.at = min(self.at + 1, 5) if action else max(self.at - 1, 0)
        return self._shown(), np.array([float(self.at == 5), -float(action)]), self.at == 5, False, {}

    def _shown(self):
        return np.full((4, 4), self.at, dtype=np.uint8)


def test_pictures_and_vectors_are_played_and_learned():
    task = psconrl.continuing(Walk(), reward_names=("gold", "effort"), limits={"effort": 0.6}, most_states=20)
    assert task.cost_names == ("reward", "effort")
    agent = psconrl.PSConRL(task.states.size, 2, task.thresholds, seed=0)
    trace = psconrl.simulate(task, agent, 600, seed=1)
    assert trace.cost_names == ("reward", "effort")
    assert trace.averages[-1][1] < 0.75
    assert len({task.states.number(np.full((4, 4), k, dtype=np.uint8)) for k in range(6)}) == 6
    other = task.with_thresholds({"effort": 0.2})
    assert (other.thresholds.tolist(), task.thresholds.tolist()) == ([0.2], [0.6])


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: psconrl.continuing(gymnasium.make("FrozenLake-v1"), objective=1), "has no reward_space"),
        (lambda: psconrl.continuing(Walk(), limits=[0.1, 0.2, 0.3], costs=[]).thresholds.size == 3 or None, None),
        (lambda: psconrl.continuing(Walk(), limits=[np.nan]), "limits must be finite"),
        (lambda: psconrl.simulate(Walk(declared=False), psconrl.PSConRL(1000, 2, []), 5), "does not declare them"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(make, complaint):
    if complaint is None:
        assert make()
        return
    with pytest.raises(ModelError, match=complaint) as error:
        make()
    assert "\n" not in str(error.value)
