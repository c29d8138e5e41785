"""Agents on a user's own system: labels, watchers, crashes, limits that change, and clear errors."""

import csv
import importlib.util
import itertools
import os
import signal
import struct
import subprocess
import sys
from dataclasses import replace
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import psconrl
from psconrl import CMDPEnv, CSVLog, LabelledAgent, Labels, PSConRL, TensorBoardLog, load_agent
from psconrl.agents import Dirichlet, Doubling, Endless, Ouyang, Uniform
from psconrl.errors import AgentError, ConfigError, ModelError
from psconrl.learning.registry import RECIPES, make_agent
from psconrl.learning.runtime.events import share_changed
from psconrl.learning.runtime.policy_cell import policy_cell, read_policy_cell
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.model_run import Simulation

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_system.py"
ROVER = psconrl.load("marsrover-4x4", slip=0.1)


TIGHT = [0.02]  # a threshold that some samples cannot meet, so that the agent explores


# With these some samples are infeasible, and the agent explores.
PLAIN = {"belief": Dirichlet(), "schedule": Ouyang(), "ledger": None, "planning_horizon": Endless()}


def agent_for(thresholds=ROVER.thresholds, **options):
    return PSConRL(16, 4, thresholds, ROVER.costs, seed=2, **options)


class OwnLoop:
    """A user's loop, on a system with the same random numbers as the other two."""

    def __init__(self, cmdp, agent, seed):
        self.env, self.agent, self.round = CMDPEnv(cmdp), agent, 0
        self.state, _ = self.env.reset(seed=seed)

    def run(self, rounds):
        while self.round < rounds:
            action = self.agent.act(self.state)
            self.state, reward, _, _, info = self.env.step(action)
            self.round += 1
            self.agent.observe(action, self.state, np.append(-reward, info["costs"]))


WAYS = {
    "compiled": lambda agent: Simulation(ROVER, agent, 5),
    "gymnasium": lambda agent: GymSimulation(CMDPEnv(ROVER), agent, 5),
    "own system": lambda agent: OwnLoop(ROVER, agent, 5),
}


def same(one, two):
    """True if two agents are equal to the last bit."""
    for part in ("transitions", "cost_sums", "visits"):
        np.testing.assert_array_equal(getattr(one.counts, part), getattr(two.counts, part))
    assert (one.rounds, one.episodes, one.explored) == (two.rounds, two.episodes, two.explored)
    assert one.rng.bit_generator.state == two.rng.bit_generator.state
    assert one.action_uniforms.state() == two.action_uniforms.state()
    assert one.between_episodes == two.between_episodes
    return True


# Labels


def test_an_index_numbers_labels_of_any_kind():
    index = Labels(["idle", 3, ("broken", 2), None])
    assert [index[label] for label in index] == [0, 1, 2, 3]
    assert [index.label(np.int64(i)) for i in range(len(index))] == ["idle", 3, ("broken", 2), None]
    assert ("broken", 2) in index
    assert "busy" not in index
    assert [] not in index
    assert ("broken", []) not in index
    assert repr(index) == "Labels(4 labels: 'idle', 3, ('broken', 2), None)"
    with pytest.raises(ConfigError, match="unknown label 'idel'; did you mean 'idle'"):
        index["idel"]
    with pytest.raises(ConfigError, match=r"unknown label '\[1\]'"):
        index[[1]]
    for number in (4, -1, True, "0"):
        with pytest.raises(ConfigError, match="numbered from 0 to 3; got"):
            index.label(number)
    for labels, message in (
        (["a", "b", "a"], "labels must be distinct; 'a' repeats 'a'"),
        ([1, True], "True repeats 1"),
        ([["a"]], r"must be hashable.*got \['a'\]"),
        ([("a", [])], r"must be hashable"),
        ([], "must not be empty"),
        ("abc", "must be a list of labels; got 'abc'"),
        (7, "must be a list of labels; got 7"),
    ):
        with pytest.raises(ConfigError, match=message):
            Labels(labels)


def test_a_labelled_agent_is_the_agent_under_other_names(tmp_path):
    cells = [(i, j) for i in range(4) for j in range(4)]
    moves = ["up", "down", "left", "right"]
    plain, labelled = agent_for(), LabelledAgent(agent_for(), Labels(cells), moves)
    env = CMDPEnv(ROVER)
    state, _ = env.reset(seed=1)
    for t in range(600):
        action = plain.act(state)
        assert labelled.act(cells[state]) == moves[action]
        state, reward, _, _, info = env.step(action)
        plain.observe(action, state, [-reward, *info["costs"]])
        labelled.observe(moves[action], cells[state], [-reward, *info["costs"]])
        if t == 300:
            labelled.save(tmp_path / "agent.npz", {"note": "half way"})
            labelled = LabelledAgent.load(tmp_path / "agent.npz")
            assert labelled.extra == {"note": "half way"}
            assert list(labelled.states) == cells
    assert same(plain, labelled.agent)


def test_labels_are_saved_if_they_can_be_and_refused_clearly_if_not(tmp_path):
    path = tmp_path / "agent.npz"
    labels = ["a", 2, False, None, ("x", (1, None)), 2.5, np.int64(7)]
    LabelledAgent(Uniform(7, 1, []), labels, ["go"]).save(path)
    restored = LabelledAgent.load(path)
    assert list(restored.states) == labels
    assert [type(label) for label in restored.states][:5] == [type(label) for label in labels][:5]
    assert load_agent(path).n_states == 7

    class Colour(Enum):
        RED = 1

    for label in (Colour.RED, frozenset([1]), ("x", b"y")):
        with pytest.raises(AgentError, match="a label can be saved if it is text, a number"):
            LabelledAgent(Uniform(1, 1, []), [label], ["go"]).save(path)
    assert list(LabelledAgent.load(path).states) == labels  # the old file is still there
    Uniform(1, 1, []).save(path)
    with pytest.raises(AgentError, match=r"without labels; load it with psconrl\.load_agent"):
        LabelledAgent.load(path)
    Uniform(2, 1, []).save(path, {"labels": {"states": ["a"], "actions": ["go"]}})
    with pytest.raises(AgentError, match=r"agent\.npz: extra/labels: there are labels for 1 states and 1 actions"):
        LabelledAgent.load(path)


def test_states_may_get_their_numbers_as_they_are_met(tmp_path):
    """With labels it is the same agent as one with integer states, numbered in order of appearance."""
    cells, moves = [(i, j) for i in range(4) for j in range(4)], ["up", "down", "left", "right"]
    env, order = CMDPEnv(ROVER), []

    def number(state):
        if state not in order:
            order.append(state)
        return order.index(state)

    plain, labelled = (PSConRL(16, 4, ROVER.thresholds, seed=2) for _ in range(2))
    labelled = LabelledAgent(labelled, states=None, actions=moves)
    state, _ = env.reset(seed=1)
    for t in range(300):
        action = plain.act(number(state))
        assert labelled.act(cells[state]) == moves[action]
        state, reward, _, _, info = env.step(action)
        plain.observe(action, number(state), [-reward, *info["costs"]])
        labelled.observe(moves[action], cells[state], [-reward, *info["costs"]])
        if t % 40 == 7:
            assert list(labelled.states) == [cells[i] for i in order]
            labelled.save(tmp_path / "agent.npz")
            labelled = LabelledAgent.load(tmp_path / "agent.npz")
            assert labelled.states.room == 16
    assert 7 < len(order) == len(labelled.states)
    assert same(plain, labelled.agent)


def test_when_there_is_no_room_for_another_label_that_is_said(tmp_path):
    agent = LabelledAgent(PSConRL(2, 2, [0.5], seed=0), Labels.growing(2), ["off", "on"])
    action = agent.act("cold")
    agent.observe(action, "warm", [0, 0])
    with pytest.raises(AgentError, match=r"^there is room for 2 labels, and none is left for 'hot'$"):
        agent.act("hot")
    action = agent.act("warm")
    with pytest.raises(AgentError, match="there is room for 2 labels, and none is left for 'hot'"):
        agent.observe(action, "hot", [0, 0])
    agent.observe(action, "cold", [0, 0])
    agent.save(tmp_path / "agent.npz")
    restored = LabelledAgent.load(tmp_path / "agent.npz")
    with pytest.raises(AgentError, match="none is left for 'hot'"):
        restored.act("hot")
    with pytest.raises(AgentError, match="labels for 3 states and 2 actions, the agent was made for 2 and 2"):
        LabelledAgent(PSConRL(2, 2, [0.5]), Labels.growing(3), ["off", "on"])
    for room in (0, 2.0, True):
        with pytest.raises(ConfigError, match="room must be a whole number from 1 on"):
            Labels.growing(room)
    with pytest.raises(ConfigError, match="there is room for 1 labels; got 2"):
        Labels.growing(1, ["a", "b"])
    agent.agent.save(tmp_path / "agent.npz", {"labels": {"states": [*"abc"], "actions": ["x", "y"], "growing": True}})
    with pytest.raises(AgentError, match=r"agent\.npz: extra/labels: there is room for 2 labels; got 3"):
        LabelledAgent.load(tmp_path / "agent.npz")


def test_a_label_of_a_call_that_is_refused_has_not_been_met():
    agent = LabelledAgent(PSConRL(3, 2, [0.5], seed=0), None, ["off", "on"])
    action = agent.act("cold")
    for wrong, error in (
        (lambda: agent.observe("of", "hot", [0, 0]), ConfigError),
        (lambda: agent.observe(action, "hot", [0]), AgentError),
        (lambda: agent.observe(action, "hot", [np.nan, 0]), AgentError),
        (lambda: agent.act("hot"), AgentError),
        (lambda: agent.observe(action, ["hot"], [0, 0]), ConfigError),
        (lambda: agent.observe(action, float("nan"), [0, 0]), ConfigError),
    ):
        with pytest.raises(error):
            wrong()
        assert list(agent.states) == ["cold"]
    saved = []

    def failing(event):
        saved.append(list(agent.states))
        raise ZeroDivisionError

    agent.watch(failing)
    with pytest.raises(ZeroDivisionError):
        agent.observe(action, "warm", [0, 0])  # the first episode has one round
    assert list(agent.states) == ["cold", "warm"] == saved[0]  # it has learned from it by then
    assert "hot" not in agent.states  # a query is not a visit
    assert len(agent.states) == 2


def test_errors_speak_in_labels():
    agent = LabelledAgent(PSConRL(2, 2, [0.5], seed=0), ["cold", "warm"], ["off", "on"])
    with pytest.raises(ConfigError, match="unknown label 'wram'; did you mean 'warm'"):
        agent.act("wram")
    action = agent.act("warm")
    with pytest.raises(ConfigError, match="unknown label 'offf'; did you mean 'off'"):
        agent.observe("offf", "warm", [0, 0])
    with pytest.raises(ConfigError, match="unknown label 'cool'"):
        agent.observe(action, "cool", [0, 0])
    with pytest.raises(AgentError, match=r"costs must be finite; got \[nan, 0.0\]"):
        agent.observe(action, "cold", [np.nan, 0])
    with pytest.raises(AgentError, match=r"costs must be 2 numbers \(the objective, then 1 constrained\); got 3"):
        agent.observe(action, "cold", [0, 0, 0])
    agent.observe(action, "cold", [0, 0])  # the agent still works
    with pytest.raises(AgentError, match="labels for 1 states and 2 actions, the agent was made for 2 and 2"):
        LabelledAgent(agent.agent, ["cold"], ["off", "on"])


def test_errors_of_numbers_are_clear_and_harm_nothing():
    agent = PSConRL(3, 2, [0.5], seed=0)
    for state in (3, -1, 1.0, True, None, "idle"):
        with pytest.raises(AgentError, match="state must be an integer from 0 to 2; got"):
            agent.act(state)
    action = agent.act(0)
    with pytest.raises(AgentError, match=r"act was called twice.*finish\(\) if the outcome is lost"):
        agent.act(0)
    for wrong, message in (
        ((action, 3, [0, 0]), "state must be an integer from 0 to 2; got 3"),
        ((2, 0, [0, 0]), r"action must lie in 0\.\.1; got 2"),
        ((action, 0, [np.inf, 0]), "costs must be finite"),
        ((action, 0, [0]), "costs must be 2 numbers"),
        ((action, 0, "no"), "costs must be numbers, in a list or an array; got 'no'"),
    ):
        with pytest.raises(AgentError, match=message):
            agent.observe(*wrong)
    agent.observe(action, 1, [0, 0])
    with pytest.raises(AgentError, match="observe was called before act"):
        agent.observe(action, 1, [0, 0])
    agent.act(1)
    agent.finish()  # the outcome was lost
    assert agent.counts.visits.sum() == 1
    agent.observe(agent.act(2), 0, [0, 0])

    class Broken(CMDPEnv):
        def step(self, action):
            state, _, *rest = super().step(action)
            return state, np.nan, *rest

    with pytest.raises(ModelError, match="reward and costs must be finite; got nan"):
        psconrl.simulate(Broken(ROVER), agent_for(), 10)


# Watching


def test_all_ways_of_playing_tell_the_same_story():
    stories = {}
    for way, begin in WAYS.items():
        agent, events = agent_for(TIGHT, **PLAIN), []
        agent.watch(events.append)
        begin(agent).run(1500)
        stories[way] = events
        assert len(events) == agent.episodes - (not agent.between_episodes)
        assert sum(e.length for e in events) == events[-1].round == agent.rounds
        assert [e.episode for e in events] == list(range(1, len(events) + 1))
        assert events[-1].explored == sum(e.length for e in events if e.kind == "explore") == agent.explored
        total = sum(e.length * e.costs for e in events)
        np.testing.assert_allclose(events[-1].averages, total / agent.rounds, rtol=1e-12)
        np.testing.assert_array_equal(events[-1].thresholds, TIGHT)
        assert {e.kind for e in events} == {"optimal", "explore", "least excess"}
        assert all(np.isnan(e.value) == (e.kind == "explore") for e in events)
    facts = {
        way: [(e.round, e.kind, e.length, *e.costs.tolist(), *e.averages.tolist(), e.explored) for e in events]
        for way, events in stories.items()
    }
    assert facts["compiled"] == facts["gymnasium"] == facts["own system"]


@pytest.mark.filterwarnings("ignore:with these constants:psconrl.errors.AdviceWarning")
@pytest.mark.part(2)
@pytest.mark.parametrize("name", [name for name in RECIPES if name != "span-fha"])
def test_every_agent_can_be_watched(name):
    given = psconrl.agents.known_baseline(ROVER) if name == "safe" else {}
    agent = make_agent(name, 16, 4, ROVER.thresholds, ROVER.costs, seed=0, horizon=400, **given)
    events = []
    agent.watch(events.append)
    psconrl.simulate(ROVER, agent, 400, seed=0)
    agent.finish()
    assert events[-1].round == 400
    agent.unwatch(events.append)
    with pytest.raises(AgentError, match="is not watching"):
        agent.unwatch(events.append)
    with pytest.raises(AgentError, match="watch needs a function"):
        agent.watch("loud")


@pytest.mark.parametrize("way", WAYS)
def test_a_callback_that_fails_harms_neither_agent_nor_run(way):
    whole, agent, seen = agent_for(), agent_for(), []
    calm = WAYS[way](whole)
    calm.run(800)

    def failing(event):
        if event.episode % 3 == 0:
            raise ZeroDivisionError(event.episode)

    agent.watch(failing)
    agent.watch(seen.append)
    run, failures = WAYS[way](agent), 0
    while run.round < 800:
        try:
            run.run(800)
        except ZeroDivisionError:
            assert agent.between_episodes
            failures += 1
    assert failures == len(seen) // 3 > 0
    assert [e.episode for e in seen] == list(range(1, len(seen) + 1))  # a later watcher misses nothing
    assert same(whole, agent)
    if way != "own system":
        np.testing.assert_array_equal(run.trace().cumulative, calm.trace().cumulative)
        assert run.log.length == calm.log.length


def test_callbacks_are_not_saved_and_a_resumed_agent_counts_on(tmp_path):
    agent, events = agent_for(TIGHT, **PLAIN), []
    agent.watch(events.append)
    Simulation(ROVER, agent, 5).run(1500)
    agent.save(tmp_path / "agent.npz")
    restored = load_agent(tmp_path / "agent.npz")
    assert not restored._watchers
    assert restored.explored == agent.explored > 0
    restored.watch(events.append)
    restored.finish()
    assert events[-1].episode == agent.episodes


def test_nothing_is_computed_without_watchers(monkeypatch):
    def never(**_):
        raise RuntimeError("an event was made")

    monkeypatch.setattr("psconrl.learning.runtime.event_making.EpisodeEvent", never)
    assert psconrl.simulate(ROVER, agent_for(), 300, seed=0).rounds[-1] == 300
    watched = agent_for()
    watched.watch(print)
    with pytest.raises(RuntimeError, match="an event was made"):
        psconrl.simulate(ROVER, watched, 300, seed=0)


# Logs


def rows_of(path):
    with path.open(newline="") as f:
        return list(csv.DictReader(f))


def untimed(path):
    """The rows of a log without measured times."""
    return [{key: value for key, value in row.items() if key != "planning_time"} for row in rows_of(path)]


def same_rows(resumed, whole, starts):
    """A resumed run has the rows of an uninterrupted one; only the policy before a start is unknown."""
    unknown = [k for k, row in enumerate(resumed) if row["changed"] == "nan" and whole[k]["changed"] != "nan"]
    assert len(unknown) == starts
    expected = [row | {"changed": "nan"} if k in unknown else row for k, row in enumerate(whole)]
    return resumed == expected


def test_a_csv_log_has_one_line_an_episode_at_once(tmp_path):
    path, agent = tmp_path / "run.csv", agent_for()
    agent.watch(CSVLog(path, cost_names=["steps", "risk"]))
    lengths = []
    agent.watch(lambda event: lengths.append(len(rows_of(path))))
    psconrl.simulate(ROVER, agent, 500, seed=0)
    assert lengths == list(range(1, len(lengths) + 1))
    last = rows_of(path)[-1]
    assert list(last) == [
        "round", "episode", "kind", "length", "explored", "value", "planning_time", "changed",
        "steps", "risk", "steps so far", "risk so far", "risk limit", "policy",
    ]  # fmt: skip
    assert int(last["round"]) == agent.rounds
    total = agent.counts.cost_sums.sum(axis=1) / agent.rounds
    assert [float(last["steps so far"]), float(last["risk so far"])] == total.tolist()


@pytest.mark.parametrize("rest", [b"", b"201,99,opt", b"201,99,optimal,2\n", b"\n\xff,\xff\n"], ids=ascii)
def test_a_csv_log_has_every_episode_once_after_a_crash(tmp_path, rest):
    """The agent is saved after 150 rounds, the process dies after 200, and a new one goes on from the file."""
    path, whole = tmp_path / "run.csv", tmp_path / "whole.csv"
    run = Simulation(ROVER, agent_for(), 5)
    run.agent.watch(CSVLog(path))
    run.run(150)
    run.save(tmp_path / "run.npz")
    run.run(200)
    lost = len(rows_of(path))
    with path.open("ab") as f:
        f.write(rest)
    run = Simulation.resume(ROVER, tmp_path / "run.npz")
    run.agent.watch(CSVLog(path))
    assert len(path.read_bytes().splitlines()) > lost  # nothing is touched before there is something to write
    run.run(400)
    run = Simulation(ROVER, agent_for(), 5)
    run.agent.watch(CSVLog(whole))
    for rounds in (150, 400):
        run.run(rounds)
    assert same_rows(untimed(path), untimed(whole), starts=1)
    assert len({row["episode"] for row in rows_of(path)}) == len(rows_of(path)) > lost
    assert not list(tmp_path.glob("*.old"))


def logged(path, rounds, seed=0, agent=None):
    """Play a run from the beginning, or on with an agent, and log it."""
    agent = agent or PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=seed)
    agent.watch(CSVLog(path))
    psconrl.simulate(ROVER, agent, rounds, seed=seed)
    return agent


def test_a_run_that_is_repeated_from_the_beginning_finds_its_episodes_in_the_log(tmp_path):
    """As after a crash before the first save: the lines stay, and new ones follow them."""
    path, whole = tmp_path / "run.csv", tmp_path / "whole.csv"
    logged(path, 200)
    before = path.read_bytes()
    with path.open("ab") as f:
        f.write(b"200,99,opt")  # the process was killed in the middle of a line
    logged(path, 200)
    assert path.read_bytes() == before
    logged(path, 400)
    assert path.read_bytes().startswith(before)
    logged(whole, 400)
    assert untimed(path) == untimed(whole)
    assert {p.name for p in tmp_path.iterdir()} == {"run.csv", "whole.csv"}


@pytest.mark.parametrize("saved", [0, 150])
def test_a_log_of_another_run_is_refused_and_stays_as_it_is(tmp_path, saved):
    """A new agent, or one saved in another run, on repeated attempts."""
    path = tmp_path / "run.csv"
    logged(path, 300, seed=0)
    before = path.read_bytes()
    other = PSConRL(16, 4, ROVER.thresholds, ROVER.costs, seed=1)
    if saved:
        psconrl.simulate(ROVER, other, saved, seed=1)
        other.save(tmp_path / "agent.npz")
        other = load_agent(tmp_path / "agent.npz")
    first = CSVLog(path)
    for log in (first, first):
        other.watch(log)
        with pytest.raises(ConfigError, match=r"run\.csv: holds the log of another run; give another name, or delete"):
            psconrl.simulate(ROVER, other, 20, seed=1)
        other.unwatch(log)
    assert path.read_bytes() == before


def test_a_run_that_differs_from_its_log_later_is_refused_there(tmp_path):
    """The first episodes are those of the log, then one differs: nothing has been overwritten by then."""
    path, found, agent = tmp_path / "run.csv", [], agent_for()
    agent.watch(found.append)
    logged(path, 300, agent=agent)
    before, log = path.read_bytes(), CSVLog(path)
    for each in found[:5]:
        log(each)
    for each in (replace(found[5], costs=found[5].costs + 1.0), found[6]):
        with pytest.raises(ConfigError, match="holds the log of another run"):
            log(each)
    assert path.read_bytes() == before


@pytest.mark.parametrize("cell", ["x" * 200_000, "9" * 5000, ""], ids=["a long cell", "a long number", "an empty cell"])
@pytest.mark.parametrize("column", [0, 1, 3])
def test_a_log_with_a_damaged_cell_is_not_continued(tmp_path, cell, column):
    """Neither the csv module, which takes 131,072 characters, nor int, which takes 4,300 digits, has the last word."""
    path = tmp_path / "run.csv"
    logged(path, 100)
    first, second, *others = path.read_text().splitlines(keepends=True)
    cells = second.split(",")
    path.write_text("".join([first, ",".join([*cells[:column], cell, *cells[column + 1 :]]), *others]))
    with pytest.raises(ConfigError, match="holds the log of another run"):
        logged(path, 200)


def test_a_log_with_a_gap_is_continued(tmp_path):
    """Unwatched episodes are missing, but those in the log cannot be of a later round."""
    path, found, agent = tmp_path / "run.csv", [], agent_for()
    agent.watch(found.append)
    psconrl.simulate(ROVER, agent, 300, seed=0)
    for k in (2, 3, 9):
        CSVLog(path)(found[k])
    assert [int(row["episode"]) for row in rows_of(path)] == [3, 4, 10]
    early = replace(found[12], round=found[9].round)
    with pytest.raises(ConfigError, match="another run"):
        CSVLog(path)(early)


def test_the_policy_in_a_log_is_that_of_the_states_visited_most(tmp_path):
    path, found, agent = tmp_path / "run.csv", [], agent_for()
    agent.watch(found.append)
    agent.watch(CSVLog(path, states=ROVER.state_names, actions=ROVER.action_names, most_states=3))
    psconrl.simulate(ROVER, agent, 600, seed=0)
    last, cells = found[-1], [read_policy_cell(row["policy"]) for row in rows_of(path)]
    assert max(map(len, cells)) == 3
    assert last.visits.tolist() == agent.counts.pairs.sum(axis=1).tolist()
    for rank, state_policy in enumerate(cells[-1]):
        s = ROVER.state_names.index(state_policy.state)
        assert last.visits[s] == sorted(last.visits)[-1 - rank]
        assert state_policy.share == round(last.visits[s] / last.round, 4)
        distribution = {ROVER.action_names[a]: round(p, 3) for a, p in enumerate(last.policy[s]) if p >= 0.0005}
        assert state_policy.actions == distribution
    with pytest.raises(ValueError, match="read-only"):
        last.policy[0, 0] = 1.0
    silent = tmp_path / "silent.csv"
    CSVLog(silent, most_states=0)(last)
    assert rows_of(silent)[0]["policy"] == ""
    with pytest.raises(ConfigError, match=r"states must be 16 names, as a list or psconrl\.Labels; got \['a'\]"):
        CSVLog(silent, states=["a"])(last)


def test_a_policy_of_many_states_and_long_names_stays_short():
    """A hundred thousand states are a line of a few kilobytes at most; names that are cut stay apart."""
    S, A = 100_000, 12
    policy, visits = np.full((S, A), 1 / A), np.arange(S)
    cell = policy_cell(policy, visits, [f"{'a bed' * 40} {s}" for s in range(S)], ["b" * 500] * A, most=10)
    assert len(cell) < 4000
    entries = read_policy_cell(cell)
    assert len({c.state for c in entries}) == 10
    assert entries[0].state.endswith(f"… #{S - 1}")
    assert [len(c.actions) for c in entries] == [4] * 10
    changing = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])  # (H, S, A)
    assert read_policy_cell(policy_cell(changing, np.array([4]), None, None, 10))[0].actions == {"1": 0.667, "0": 0.333}
    for nonsense in ("", "{}x", "[1]", '[["a",1]]', '[["a","b",{"c":1}]]', '{"a":1}', "[" * 5000, "null"):
        assert read_policy_cell(nonsense) == []


def test_labels_name_the_states_and_actions_of_a_log(tmp_path):
    agent = LabelledAgent(PSConRL(3, 2, [0.5], seed=0), states=None, actions=["on", "off"])
    agent.watch(CSVLog(tmp_path / "run.csv", states=agent.states, actions=agent.actions))
    for k in range(40):
        agent.observe(agent.act(("hall", k % 2)), ("hall", (k + 1) % 2), [1.0, 0.2])
    entries = read_policy_cell(rows_of(tmp_path / "run.csv")[-1]["policy"])
    assert sorted(c.state for c in entries) == ["('hall', 0)", "('hall', 1)"]
    assert {a for c in entries for a in c.actions} <= {"on", "off"}


def test_how_much_a_policy_changed_counts_the_rounds_that_were_played():
    old, new = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [0.6, 0.4], [1.0, 0.0]])
    assert share_changed(old, new, np.array([2, 5, 3])) == pytest.approx((2 * 1.0 + 5 * 0.4) / 10)
    assert share_changed(old, new, np.array([0, 0, 7])) == 0.0
    stepwise = np.stack([old, new])  # half the steps as before, half as now
    assert share_changed(old, stepwise, np.array([1, 0, 0])) == 0.5


def test_an_event_compares_with_the_policy_that_was_played_before():
    agent, found = agent_for(), []
    agent.watch(found.append)
    psconrl.simulate(ROVER, agent, 300, seed=0)
    assert np.isnan(found[0].changed)
    for before, now in itertools.pairwise(found):
        visits = now.visits - before.visits
        assert visits.sum() == now.length
        assert now.changed == pytest.approx(
            sum(n * abs(now.policy[s] - before.policy[s]).sum() / 2 for s, n in enumerate(visits)) / now.length
        )


def test_a_csv_log_mends_a_line_that_a_full_disk_cut(tmp_path, monkeypatch):
    path, found, agent = tmp_path / "run.csv", [], agent_for()
    agent.watch(found.append)
    psconrl.simulate(ROVER, agent, 100, seed=0)
    log, plain = CSVLog(path), Path.open
    log(found[0])

    class Full:
        def __enter__(self):
            with plain(path, "ab") as f:
                f.write(b"2,2,opt")
            raise OSError(28, "No space left on device")

        def __exit__(self, *_):
            pass

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda self, mode="r", **kw: Full() if mode == "ab" else plain(self, mode, **kw))
        with pytest.raises(ConfigError, match="No space left"):
            log(found[1])
    log(found[2])
    assert [row["episode"] for row in rows_of(path)] == ["1", "3"]


def test_a_csv_log_refuses_what_is_not_its_own(tmp_path):
    path = tmp_path / "run.csv"
    CSVLog(path)(event())
    with pytest.raises(ConfigError, match=r"run\.csv: holds other columns"):
        CSVLog(path, cost_names=["a", "b"])(event())
    with pytest.raises(ConfigError, match="cost_names must be 2 names"):
        CSVLog(path, cost_names=["a"])(event())
    with pytest.raises(ConfigError, match=r"run\.csv: cannot be written \(No such file"):
        CSVLog(tmp_path / "nowhere" / "run.csv")(event())


def event():
    found, agent = [], agent_for()
    agent.watch(found.append)
    psconrl.simulate(ROVER, agent, 20, seed=0)
    return found[-1]


def test_tensorboard_gets_every_episode(tmp_path):
    pb = pytest.importorskip("tensorboardX.proto.event_pb2")
    agent, log, events = agent_for(), TensorBoardLog(tmp_path, cost_names=["steps", "risk"]), []
    agent.watch(log)
    agent.watch(events.append)
    psconrl.simulate(ROVER, agent, 300, seed=0)
    log.close()
    points = {}
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    while data:  # records: length, checksum, content, checksum
        (size,) = struct.unpack("<Q", data[:8])
        written = pb.Event.FromString(data[12 : 12 + size])
        for value in written.summary.value:
            points.setdefault(value.tag, []).append((written.step, value.simple_value))
        data = data[16 + size :]
    assert [step for step, _ in points["so_far/risk"]] == [e.round for e in events]
    np.testing.assert_allclose([v for _, v in points["so_far/risk"]], [e.averages[1] for e in events], rtol=1e-6)
    assert len(points["expected/steps"]) == sum(not np.isnan(e.value) for e in events)
    assert points["limit/risk"][-1][1] == pytest.approx(0.2)
    np.testing.assert_allclose(
        [v for _, v in points["episode/seconds_planning"]], [e.planning_time for e in events], 1e-6
    )


def test_tensorboard_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ConfigError, match=r"pip install 'psconrl\[tensorboard\]'"):
        TensorBoardLog(tmp_path)


# Crashes


@pytest.mark.full
def test_the_example_killed_and_started_again_ends_with_the_same_bits(tmp_path):
    spec = importlib.util.spec_from_file_location("own_system", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    whole = example.learn(tmp_path / "whole.npz", 3000)

    path = tmp_path / "cut.npz"
    command = [sys.executable, str(EXAMPLE), str(path), "3000"]
    for reached in (400, 1700):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            if int(line) >= reached:
                break
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert reached <= LabelledAgent.load(path).extra["rounds"] < 3000
    example.learn(path, 3000)
    ended = LabelledAgent.load(path)
    assert same(ended.agent, whole.agent)
    assert ended.extra == LabelledAgent.load(tmp_path / "whole.npz").extra
    assert same_rows(untimed(path.with_suffix(".csv")), untimed(tmp_path / "whole.csv"), starts=2)


# Limits that change


@pytest.mark.statistical
@pytest.mark.part(3)
@pytest.mark.parametrize("way", WAYS)
def test_new_limits_are_obeyed_from_the_next_action_on(way):
    agent, events = agent_for(belief=Dirichlet(0.02)), []
    run = WAYS[way](agent)
    run.run(3000)
    assert not agent.between_episodes
    agent.watch(events.append)
    agent.set_thresholds([0.05])
    assert agent.between_episodes  # the episode under the old thresholds ended at once, and was learned from
    assert events[0].round == agent.rounds == 3000
    assert events[0].thresholds.tolist() == [0.05]
    run.run(12_000)
    late = [e for e in events if e.round > 6000]
    rounds = sum(e.length for e in late)
    risk = sum(e.length * e.costs[1] for e in late) / rounds
    # Some 1400 trips of which one in four is risky, so the standard deviation is about 0.003; five of them, and
    # as much again for what is not yet learned.
    assert risk == pytest.approx(0.05, abs=0.03)
    if way != "own system":
        assert sum(run.log.length) == 12_000


def test_limits_may_change_while_an_outcome_is_awaited_and_before_anything(tmp_path):
    agent = PSConRL(2, 2, [0.5], schedule=Doubling(), seed=0)
    agent.set_thresholds([0.4])
    for _ in range(50):
        agent.observe(agent.act(0), 0, [0.0, 0.1])
    if agent.between_episodes:
        agent.observe(agent.act(0), 0, [0.0, 0.1])
    before = agent.episodes
    action = agent.act(0)
    agent.set_thresholds([0.3])
    assert not agent.between_episodes
    agent.save(tmp_path / "agent.npz")
    restored = load_agent(tmp_path / "agent.npz")
    for each in (agent, restored):
        each.observe(action, 0, [0.0, 0.1])
        assert each.between_episodes
        each.act(0)
        assert each.episodes == before + 1
        assert each.thresholds.tolist() == [0.3]
    for wrong in ([0.1, 0.2], [np.nan], "low"):
        with pytest.raises(AgentError, match="thresholds must be"):
            agent.set_thresholds(wrong)
    assert agent.thresholds.tolist() == [0.3]


def test_a_callback_may_change_the_limits():
    agent = agent_for()
    agent.watch(lambda event: agent.set_thresholds([0.1]) if event.round > 500 else None)
    psconrl.simulate(ROVER, agent, 1000, seed=0)
    assert agent.thresholds.tolist() == [0.1]


@pytest.mark.parametrize(
    "extra", [{"a": {1}}, {"a": 1j}, {"a": object()}, {"a": print}], ids=["set", "complex", "object", "function"]
)
def test_what_cannot_be_saved_is_said_and_the_old_file_stays(tmp_path, extra):
    agent = agent_for()
    agent.save(tmp_path / "agent.npz", {"round": 1})
    with pytest.raises(AgentError, match="only numbers, text, lists, tables and arrays can be saved"):
        agent.save(tmp_path / "agent.npz", extra)
    assert load_agent(tmp_path / "agent.npz").extra == {"round": 1}


def test_a_labelled_agent_needs_an_agent():
    with pytest.raises(AgentError, match="LabelledAgent needs an agent, such as PSConRL; got int"):
        LabelledAgent(3, ["a"], ["b"])
