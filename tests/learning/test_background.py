"""Agents that plan in the background: play continues, no round is counted twice, and a schedule determines the bits.

A schedule says after which rounds a plan is ready. It is the same for three ways of planning: before the interim
episode, after it, and in a thread during it. All must end with the same bits.
"""

import csv
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import psconrl
from psconrl import CMDPEnv, CSVLog, Episode, LabelledAgent, load_agent
from psconrl.agents import adapt
from psconrl.errors import AgentError
from psconrl.learning.registry import make_agent
from psconrl.simulation.gym_run import GymSimulation
from psconrl.simulation.interrupt import Interrupted
from psconrl.simulation.model_run import Simulation
from test_user_agents import Mixed, Saving

ROVER = psconrl.load("marsrover-4x4", slip=0.1)
SCHEDULES = {
    "at once": lambda t: True,
    "every seventh round": lambda t: t % 7 == 0,
    "now and then": lambda t: t * t % 31 < 4,
    "seldom": lambda t: t % 97 == 50,
}


class Clock:
    """A clock of rounds played, read by schedules."""

    def __init__(self, schedule):
        self.round, self._schedule = 0, schedule

    def is_time(self):
        return self._schedule(self.round)


class Before:
    """An executor that plans at once, and keeps the plan until the schedule is due."""

    def __init__(self, clock):
        self.clock = clock

    def submit(self, task):
        self.planned = task()
        return self

    def done(self):
        return self.clock.is_time()

    def result(self):
        return self.planned


class After(Before):
    """An executor that plans when the plan is requested."""

    def submit(self, task):
        self.task = task
        return self

    def result(self):
        if self.task is not None:
            self.planned, self.task = self.task(), None
        return self.planned


class Beside(Before):
    """An executor that plans in a thread."""

    def submit(self, task):
        self.thread = threading.Thread(target=lambda: setattr(self, "planned", task()))
        self.thread.start()
        return self

    def result(self):
        self.thread.join()
        return self.planned


WAYS = {"before the interim": Before, "after it": After, "during it": Beside}


class Loop:
    """A user's loop on their own system, with a record of its outcome."""

    def __init__(self, agent, schedule, way=After, environment=ROVER, seed=5):
        self.clock, self.agent, self.actions, self.costs = Clock(schedule), agent, [], np.zeros(agent.n_costs)
        self.plan_with(way)
        self.env = CMDPEnv(environment)
        self.state, _ = self.env.reset(seed=seed)

    def plan_with(self, way):
        self.executor = way(self.clock)
        self.agent.plan_in_background(executor=self.executor)

    def run(self, rounds):
        while self.clock.round < rounds:
            action = self.agent.act(self.state)
            self.state, reward, _, _, info = self.env.step(action)
            costs = np.append(-reward, info["costs"])
            self.clock.round += 1
            self.costs += costs
            self.actions.append(action)
            self.agent.observe(action, self.state, costs)
        return self


def agent_for(name="psconrl", **options):
    return make_agent(name, 16, 4, ROVER.thresholds, ROVER.costs, seed=2, horizon=600, **options)


def own(learner):
    return adapt(learner, 2, 2, [0.5], seed=1)


def facts(agent):
    """The complete state of an agent as plain data, without wall-clock times."""

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items() if key != "planning_time"}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        return repr(value.tolist() if isinstance(value, np.ndarray) else value)

    agent.finish()
    return plain(agent.state())


def story(events):
    return [(e.round, e.episode, e.kind, e.length, *e.costs.tolist(), e.explored) for e in events]


# The same schedule, the same bits


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_when_planning_happens_does_not_matter_if_plans_are_ready_in_the_same_rounds(schedule):
    results = []
    for way in WAYS.values():
        agent, events = agent_for(), []
        agent.watch(events.append)
        loop = Loop(agent, schedule, way).run(400)
        results.append((loop.actions, story(events), facts(agent)))
    assert results[0] == results[1] == results[2]
    assert any(e.kind == "interim" for e in events)


@pytest.mark.parametrize("name", ["psconrl", "psconrl-paper", "c-ucrl", "ucrl-cmdp", "fha", "lagrangian", "fixed"])
def test_every_agent_can_plan_in_the_background(name):
    results = []
    for way in (After, Beside):
        if name == "fixed":
            agent = psconrl.agents.FixedPolicy(16, 4, ROVER.thresholds, policy=np.full((16, 4), 0.25), seed=2)
        else:
            agent = agent_for(name)
        loop = Loop(agent, SCHEDULES["every seventh round"], way).run(150)
        results.append((loop.actions, facts(agent)))
        assert agent.rounds == 150
    assert results[0] == results[1]


def test_what_else_is_planned_meanwhile_changes_nothing():
    """Planning happens in several threads at once here."""
    loops = [Loop(agent_for(), SCHEDULES["every seventh round"], Beside) for _ in range(2)]
    plans = [psconrl.plan(ROVER)]
    for t in range(1, 200):
        for loop in loops:
            loop.run(t)
        if t % 10 == 0:
            plans.append(psconrl.plan(ROVER))
    alone = Loop(agent_for(), SCHEDULES["every seventh round"], After).run(199)
    assert facts(loops[0].agent) == facts(loops[1].agent) == facts(alone.agent)
    assert all((plan.policy == plans[0].policy).all() for plan in plans)


# What is played and counted


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_every_round_is_counted_once_everywhere(schedule, tmp_path):
    agent, events, path = agent_for(), [], tmp_path / "run.csv"
    agent.watch(events.append)
    agent.watch(CSVLog(path))
    clock = Clock(schedule)
    run = GymSimulation(CMDPEnv(ROVER), agent, 5)
    agent.plan_in_background(executor=After(clock))
    plain = agent.note

    def note(*outcome):
        clock.round += 1
        return plain(*outcome)

    agent.note = note
    trace = run.run(500, checkpoints=50)
    agent.finish()
    assert (
        agent.rounds == agent.counts.visits.sum() == sum(trace.episodes.length) == sum(e.length for e in events) == 500
    )
    np.testing.assert_allclose(agent.counts.cost_sums.sum(axis=1), trace.cumulative[-1], rtol=1e-12)
    assert agent.ledger.balance[0] == pytest.approx(trace.cumulative[-1, 1] - 500 * ROVER.thresholds[0], abs=1e-9)
    assert "exploring interim" in trace.episodes.kind
    assert trace.episodes.kind == [e.kind for e in events]
    assert trace.episodes.length == [e.length for e in events]
    assert [e.episode for e in events] == list(range(1, len(events) + 1))
    assert np.cumsum(trace.episodes.length).tolist() == [e.round for e in events]
    with path.open(newline="") as f:
        rows = list(csv.DictReader(f))
    assert [(int(row["episode"]), row["kind"], int(row["length"])) for row in rows] == [
        (e.episode, e.kind, e.length) for e in events
    ]
    assert trace.rounds.tolist() == list(range(10, 501, 10))


def test_an_interim_episode_keeps_the_last_policy_and_the_first_one_is_uniform():
    agent, policies = agent_for("psconrl-plain"), []
    agent.set_thresholds([0.005])  # a threshold that some samples cannot meet, so that the agent explores
    loop = Loop(agent, SCHEDULES["every seventh round"])
    agent.watch(lambda event: policies.append((event, agent._background.last.policy)))
    every = {"exploring interim", "interim", "explore", "optimal"}
    for rounds in range(300, 6000, 300):  # until both kinds of plans have been made
        loop.run(rounds)
        kinds = [event.kind for event, _ in policies]
        if set(kinds) == every:
            break
    assert set(kinds) == every
    assert kinds[0] == "exploring interim"
    assert (policies[0][1] == 0.25).all()
    interims = [k for k, kind in enumerate(kinds) if "interim" in kind]
    assert len(interims) > 10
    for k in interims[1:]:
        assert policies[k][1] is policies[k - 1][1]
        assert policies[k][0].value == policies[k - 1][0].value or np.isnan(policies[k][0].value)
        assert (kinds[k] == "exploring interim") == (kinds[k - 1] == "explore")
    assert all(("interim" in one) != ("interim" in two) for one, two in pairwise(kinds))
    explored = sum(e.length for e, _ in policies if e.kind in ("explore", "exploring interim"))
    assert policies[-1][0].explored == agent.explored == explored


def test_a_plan_is_made_for_the_state_in_which_it_was_asked_for():
    agent, planned, asked = agent_for(), [], []
    begin, loop = agent.begin, Loop(agent, SCHEDULES["now and then"])
    agent.begin = lambda state: planned.append(state) or begin(state)
    for t in range(1, 300):
        if agent.between_episodes:
            asked.append(loop.state)
        loop.run(t)
    agent.finish()
    assert len(set(planned)) > 3
    assert planned == asked


def test_an_interim_episode_repeats_a_step_dependent_policy():
    class Turns(Mixed):
        def begin(self, state):
            return Episode([[[1, 0], [1, 0]], [[0, 1], [0, 1]], [[1, 0], [1, 0]]], max_steps=3)

    agent = own(Turns())
    loop = Loop(agent, lambda t: t % 10 == 1, environment=psconrl.load("counterexample")).run(31)
    assert loop.actions[1:11] == [0, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    assert loop.actions[11:21] == loop.actions[1:11]


def test_an_agent_that_has_learned_waits_once_if_it_does_not_know_what_it_played():
    agent = agent_for()
    psconrl.simulate(ROVER, agent, 300, seed=0)
    agent.finish()
    agent._background.last = None  # as after loading an agent that did not plan in the background
    agent.plan_in_background(executor=After(Clock(lambda t: False)))
    assert not agent.present(0).interim


def test_planning_is_timed_and_interim_episodes_take_no_time():
    agent, events = agent_for(), []
    agent.watch(events.append)
    Loop(agent, SCHEDULES["every seventh round"], Beside).run(200)
    assert all((e.planning_time == 0.0) == ("interim" in e.kind) for e in events)
    assert all(0.0 <= e.planning_time < 3600 for e in events)
    run = GymSimulation(CMDPEnv(ROVER), agent_for(), 5)
    run.agent.watch(events.append)
    first = len(events)
    trace = run.run(200)
    run.agent.finish()
    assert [e.planning_time for e in events[first:]] == trace.episodes.seconds
    assert trace.provenance["planning_seconds"] == pytest.approx(sum(trace.episodes.seconds))
    compiled = Simulation(ROVER, agent_for(), 5)
    first = len(events)
    compiled.agent.watch(events.append)
    compiled.run(200)
    compiled.agent.finish()
    assert [e.planning_time for e in events[first:]] == compiled.log.seconds


def test_it_is_off_unless_asked_for_and_a_simulation_on_a_model_waits():
    plain, asked = Simulation(ROVER, agent_for(), 5), Simulation(ROVER, agent_for(), 5)
    asked.agent.plan_in_background()
    for run in (plain, asked):
        run.run(400)
    assert plain.log.kind == asked.log.kind
    assert plain.cumulative.tolist() == asked.cumulative.tolist()
    assert "background" not in plain.agent.state()
    with pytest.raises(AgentError, match=r"executor must have submit\(task\), as concurrent\.futures has it; got 3"):
        plain.agent.plan_in_background(executor=3)


def test_switched_off_it_finishes_the_current_plan_and_waits_from_then_on():
    agent, events = agent_for(), []
    agent.watch(events.append)
    loop = Loop(agent, SCHEDULES["every seventh round"]).run(100)
    while not agent._background.is_planning:
        loop.run(loop.clock.round + 1)
    agent.plan_in_background(False)
    last = len(events)
    loop.run(300)
    assert [("interim" in e.kind) for e in events[last:]] == [True] + [False] * (len(events) - last - 1)


def test_executors_of_the_standard_library_serve_too():
    agent, events = agent_for(), []
    agent.watch(events.append)
    with ThreadPoolExecutor(1) as pool:
        agent.plan_in_background(executor=pool)
        psconrl.simulate(CMDPEnv(ROVER), agent, 300, seed=1)
        agent.finish()
    assert events[-1].round == 300
    with pytest.raises(RuntimeError, match="shutdown"):
        agent.act(0)
    agent.plan_in_background(False)
    agent.finish()
    agent.observe(agent.act(0), 1, [1.0, 0.0])


def test_an_agent_with_labels_plans_in_the_background_too():
    cells, moves = [*"abcdefghijklmnop"], ["up", "down", "left", "right"]
    labelled, reported = LabelledAgent(agent_for(), cells, moves), []
    labelled.watch(reported.append)
    labelled.plan_in_background()
    assert labelled.agent._background.on
    labelled.agent.plan_in_background(executor=After(Clock(lambda t: True)))
    state = "a"
    for _ in range(40):
        action = labelled.act(state)
        state = cells[(cells.index(state) + moves.index(action)) % 16]
        labelled.observe(action, state, [1.0, 0.5])
    assert {"exploring interim", "interim"} < {e.kind for e in reported}
    labelled.plan_in_background(False)
    assert not labelled.agent._background.on


@pytest.mark.statistical
def test_it_learns_while_it_plans():
    """Every plan takes up to three rounds. Over 16 other seeds the averages of 5000 rounds had standard deviations of
    0.0009 (risk) and 0.0019 (steps, which are 0.0073 above the optimum on average): more than six of them are allowed,
    so that fewer than one alarm in a million is false."""
    loop = Loop(agent_for(), lambda t: t % 3 == 0).run(5000)
    steps, risk = loop.costs / 5000
    assert risk == pytest.approx(ROVER.thresholds[0], abs=0.006)
    assert steps < psconrl.plan(ROVER).value + 0.0073 + 0.0127


# Saving


@pytest.mark.part(4)
@pytest.mark.parametrize("schedule", ["every seventh round", "now and then"])
@pytest.mark.parametrize("name", ["psconrl", "psconrl-paper", "c-ucrl", "lagrangian", "saving agent"])
def test_saved_and_read_at_any_time_it_goes_on_bit_for_bit(name, schedule, tmp_path):
    environment = psconrl.load("counterexample") if name == "saving agent" else ROVER
    path, in_progress = tmp_path / "agent.npz", 0

    def fresh():
        return own(Saving()) if name == "saving agent" else agent_for(name)

    whole = Loop(fresh(), SCHEDULES[schedule], environment=environment).run(240)
    cut = Loop(fresh(), SCHEDULES[schedule], environment=environment)
    for t in range(1, 241):
        if t % 3 == 0:  # between rounds
            cut.agent.save(path)
            in_progress += cut.agent._background.is_planning
            cut.agent = load_agent(path, Saving() if name == "saving agent" else None)
            assert cut.agent._background.on
            cut.plan_with(Beside if t % 2 else After)
        cut.run(t)
    assert in_progress > 5
    assert cut.actions == whole.actions
    assert facts(cut.agent) == facts(whole.agent)


def test_saved_while_an_outcome_is_awaited_it_goes_on_bit_for_bit(tmp_path):
    results = []
    for save in (False, True):
        agent, clock = agent_for(), Clock(SCHEDULES["every seventh round"])
        agent.plan_in_background(executor=After(clock))
        rng, actions = np.random.default_rng(0), []
        for t in range(1, 200):
            actions.append(agent.act(int(rng.integers(16))))
            if save and t % 5 == 2:
                agent.save(tmp_path / "agent.npz")
                agent = load_agent(tmp_path / "agent.npz")
                agent.plan_in_background(executor=After(clock))
            clock.round = t
            agent.observe(actions[-1], int(rng.integers(16)), [1.0, rng.random()])
        results.append((actions, facts(agent)))
    assert results[0] == results[1]


def test_what_is_saved_does_not_change_during_planning(tmp_path):
    class Counting(Saving):
        """Change the memory in place."""

        def begin(self, state):
            self.visits += 100
            return super().begin(state)

    agent = own(Counting())
    agent.plan_in_background(executor=Before(Clock(lambda t: False)))
    agent.observe(agent.act(0), 1, [0.0, 0.0])
    assert agent.learner.visits.tolist() == [101] * 4
    agent.save(tmp_path / "agent.npz")
    assert load_agent(tmp_path / "agent.npz", Counting()).learner.visits.tolist() == [1] * 4
    agent.finish()
    assert sorted(agent.learner.visits) == [1, 1, 1, 2]


def test_loading_a_file_resumes_the_plan_in_progress_and_starts_no_other(tmp_path):
    agent = agent_for()
    loop = Loop(agent, SCHEDULES["seldom"], Before).run(60)
    assert agent._background.asked_in is not None
    begun_in = agent._background.asked_in
    agent.save(tmp_path / "agent.npz")
    restored = load_agent(tmp_path / "agent.npz")
    asked = []
    begin = restored.begin
    restored.begin = lambda state: asked.append(state) or begin(state)
    executor = Before(Clock(lambda t: True))
    restored.plan_in_background(executor=executor)
    restored.act((begun_in + 1) % 16)
    assert asked == [begun_in]
    np.testing.assert_array_equal(executor.planned.episode.policy, loop.executor.planned.episode.policy)


def test_killed_during_planning_it_goes_on_from_the_file(tmp_path):
    path, whole = tmp_path / "agent.npz", Loop(agent_for(), SCHEDULES["every seventh round"]).run(200)
    code = f"""
        import sys
        import time
        sys.path[:0] = {[str(Path(__file__).parents[k]) for k in (0, 1)]!r}
        from test_background import *

        class Slow(Beside):
            def submit(self, task):
                return super().submit(lambda: (self.clock.round > 100 and time.sleep(600), task())[1])

        loop = Loop(agent_for(), SCHEDULES["every seventh round"], Slow).run(100)
        while not loop.agent._background.is_planning or loop.clock.round < 102:
            loop.run(loop.clock.round + 1)
        loop.agent.save({str(path)!r}, extra={{"round": loop.clock.round}})
        print("saved", flush=True)
        time.sleep(600)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "saved\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    cut = Loop(agent_for(), SCHEDULES["every seventh round"]).run(load_agent(path).extra["round"])
    assert cut.clock.round > 100  # the system can be restored to where it was: here by playing again
    cut.agent = load_agent(path)
    cut.plan_with(Beside)
    cut.run(200)
    assert cut.actions == whole.actions
    assert facts(cut.agent) == facts(whole.agent)


def test_an_agent_without_state_plans_but_is_not_saved(tmp_path):
    agent = own(Mixed())
    loop = Loop(agent, SCHEDULES["seldom"], Beside, psconrl.load("counterexample")).run(40)
    assert agent._background.is_planning
    with pytest.raises(AgentError, match=r"Mixed cannot be saved: it has no state\(\)"):
        agent.save(tmp_path / "agent.npz")
    loop.run(120)
    agent.finish()
    assert agent.rounds == 120


# Errors


class Failing(Saving):
    """Cannot plan the third episode."""

    begun = 0

    def begin(self, state):
        self.begun += 1
        if self.begun == 3:
            raise ZeroDivisionError("the third")
        return super().begin(state)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_error_in_planning_reaches_the_next_act_once_and_the_agent_goes_on(way):
    agent, failures = own(Failing()), []
    loop = Loop(agent, SCHEDULES["every seventh round"], way, psconrl.load("counterexample"))
    while loop.clock.round < 100:
        try:
            loop.run(100)
        except ZeroDivisionError:
            assert not failures  # it comes out once
            failures.append(loop.clock.round)
            assert agent.between_episodes
            assert agent.rounds == loop.clock.round  # the agent has learned from the interim episode
    assert failures[0] % 7 == 0
    agent.finish()
    assert agent.rounds == 100
    assert agent.learner.begun > 4


def test_an_error_in_planning_ends_a_gymnasium_run_in_order_and_it_may_go_on():
    agent = own(Failing())
    agent.plan_in_background(executor=After(Clock(lambda t: True)))
    run = GymSimulation(CMDPEnv("counterexample"), agent, 0)
    with pytest.raises(ZeroDivisionError):
        run.run(100, checkpoints=100)
    done = run.round
    assert run.trace().rounds.tolist() == list(range(1, done + 1))
    trace = run.run(100, checkpoints=100)
    assert trace.rounds.tolist() == list(range(1, 101))
    agent.finish()
    assert sum(trace.episodes.length) == agent.rounds == 100


def test_what_a_foreign_agent_returns_is_checked_in_the_background_too():
    class Wrong(Mixed):
        def begin(self, state):
            return Episode(np.ones((2, 2)))

    agent = own(Wrong())
    agent.plan_in_background(executor=After(Clock(lambda t: True)))
    agent.observe(agent.act(0), 1, [0.0, 0.0])
    with pytest.raises(AgentError, match="must hold a distribution"):
        agent.act(1)


# Limits, the end of an episode, callbacks


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("awaited", [False, True])
def test_new_thresholds_during_planning_mean_a_new_plan_from_the_same_random_numbers(way, awaited):
    agent = agent_for("psconrl-paper")
    loop = Loop(agent, SCHEDULES["seldom"], way).run(60)
    background = agent._background
    assert background.is_planning
    before, seen = background.before["rng"], agent.rounds
    if awaited:
        agent.act(loop.state)
    agent.set_thresholds([0.1])
    assert not background.is_planning
    assert agent.rng.bit_generator.state == before
    assert agent.thresholds.tolist() == [0.1]
    if awaited:
        assert agent.rounds == seen
        agent.observe(0, 3, [1.0, 0.0])
    assert agent.between_episodes
    assert agent.rounds == 60 + awaited
    loop.run(70)
    asked = background.before["rng"]
    assert asked == before
    assert agent.thresholds.tolist() == [0.1]
    loop.run(600)
    agent.finish()
    assert agent.rounds == 600 + awaited


def test_thresholds_that_are_refused_leave_the_planning_alone():
    loop = Loop(agent_for(), SCHEDULES["seldom"]).run(60)
    with pytest.raises(AgentError, match="thresholds must be"):
        loop.agent.set_thresholds([0.1, 0.2])
    assert loop.agent._background.is_planning


def test_an_object_is_never_called_while_it_plans(tmp_path):
    class Alone(Saving):
        is_planning = False

        def begin(self, state):
            assert self.is_planning
            return super().begin(state)

        def end(self, record):
            assert not self.is_planning
            super().end(record)

        def state(self):
            assert not self.is_planning
            return super().state()

        def restore(self, state):
            assert not self.is_planning
            super().restore(state)

        def set_thresholds(self, thresholds):
            assert not self.is_planning
            if thresholds[0] > 1:
                raise ValueError("no")

    class Telling(After):
        """Record when work on the object begins and when it ends."""

        def submit(self, task):
            learner.is_planning = True
            return super().submit(task)

        def result(self):
            planned = super().result()
            learner.is_planning = False
            return planned

    learner = Alone()
    agent = own(learner)
    agent.plan_in_background(executor=Telling(Clock(lambda t: True)))
    stops = {1: lambda: agent.set_thresholds([0.4]), 2: agent.finish, 3: lambda: agent.save(tmp_path / "agent.npz")}
    while agent.rounds < 200:
        action = agent.act(0)
        assert learner.is_planning == agent.present(0).interim
        if learner.is_planning and agent.episodes % 5 in stops:
            stops[agent.episodes % 5]()
            assert learner.is_planning == (agent.episodes % 5 == 3)
        elif learner.is_planning and agent.episodes % 5 == 4:
            with pytest.raises(ValueError, match="no"):
                agent.set_thresholds([2.0])
            assert not learner.is_planning
        if not agent.between_episodes:
            agent.observe(action, 1, [0.5, 0.5])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_finish_while_planning_learns_from_the_interim_episode_and_drops_the_plan(way):
    agent = agent_for()
    loop = Loop(agent, SCHEDULES["seldom"], way).run(60)
    assert agent.rounds < 60
    before = agent._background.before["rng"]
    agent.act(loop.state)  # its outcome is lost
    agent.finish()
    assert agent.between_episodes
    assert agent.rounds == 60
    assert agent.rng.bit_generator.state == before
    agent.finish()
    loop.run(200)
    agent.finish()
    assert agent.rounds == 200


def test_another_run_begins_with_all_that_was_learned():
    agent = agent_for()
    Loop(agent, SCHEDULES["seldom"], Beside).run(60)
    trace = psconrl.simulate(ROVER, agent, 100, seed=3)
    assert "interim" not in trace.episodes.kind
    agent.finish()
    assert agent.rounds == 160
    agent.plan_in_background(executor=After(Clock(lambda t: False)))
    agent.act(0)
    assert agent.play(0).interim is False  # a caller who asks for an episode waits for it


def test_callbacks_may_fail_save_and_change_limits(tmp_path):
    calm, agent = (Loop(agent_for(), SCHEDULES["now and then"]) for _ in range(2))
    calm.run(300)

    def failing(event):
        agent.agent.save(tmp_path / "agent.npz", extra={"round": agent.clock.round})
        if event.episode % 3 == 0:
            raise ZeroDivisionError(event.kind)

    agent.agent.watch(failing)
    failed = 0
    while agent.clock.round < 300:
        try:
            agent.run(300)
        except ZeroDivisionError:
            failed += 1
    assert failed > 10
    assert agent.actions == calm.actions
    assert facts(agent.agent) == facts(calm.agent)
    restored = load_agent(tmp_path / "agent.npz")
    loop = Loop(agent_for(), SCHEDULES["now and then"]).run(restored.extra["round"])
    loop.agent = restored
    loop.plan_with(After)
    loop.run(300)
    assert loop.actions == calm.actions
    assert facts(restored) == facts(calm.agent)

    changing, limits = Loop(agent_for(), SCHEDULES["now and then"]), []
    plain = changing.agent.begin
    changing.agent.begin = lambda state: limits.append(changing.agent.thresholds[0]) or plain(state)
    changing.agent.watch(lambda event: changing.agent.set_thresholds([0.1 + event.episode / 1000]))
    changing.run(300)
    events = []
    changing.agent.watch(events.append)
    changing.run(400)
    assert not {e.kind for e in events} - {
        "interim",
        "exploring interim",
    }  # plans for other thresholds are not played
    assert len(set(limits)) > 10


# Interrupts, and the end of the process


def test_an_interrupt_while_it_waits_for_the_thread_changes_nothing():
    class Impatient(Before):
        interrupted = True

        def result(self):
            if self.interrupted:
                raise KeyboardInterrupt
            return super().result()

    calm, loop = (Loop(agent_for(), SCHEDULES["seldom"], way) for way in (Before, Impatient))
    for each in (calm, loop):
        loop.executor.interrupted = False
        each.run(60)
        assert each.agent._background.is_planning
    loop.executor.interrupted = True
    for call in (loop.agent.finish, lambda: loop.agent.set_thresholds([0.1]), lambda: loop.agent.play(0)):
        with pytest.raises(KeyboardInterrupt):
            call()
        assert loop.agent._background.is_planning
        assert loop.agent.thresholds.tolist() == ROVER.thresholds.tolist()
    loop.executor.interrupted = False
    for each in (calm, loop):
        each.run(200)
    assert loop.actions == calm.actions
    assert facts(loop.agent) == facts(calm.agent)


def test_ctrl_c_in_a_gymnasium_run_keeps_the_interim_episode():
    agent = agent_for()
    agent.plan_in_background(executor=Beside(Clock(lambda t: False)))
    run = GymSimulation(CMDPEnv(ROVER), agent, 5)
    step = run._step

    def interrupted(action):
        if run.round == 20:
            run._step = step
            raise KeyboardInterrupt
        return step(action)

    run._step = interrupted
    with pytest.raises(Interrupted) as stopped:
        run.run(50)
    assert stopped.value.trace.horizon == 20
    assert agent.present(run.state).record.steps == 20
    trace = run.run(50)
    assert trace.episodes.length == [50]
    agent.finish()
    assert agent.rounds == 50


@pytest.mark.part(2)
@pytest.mark.parametrize("planning", ["compiled()", "time.sleep(600)"])
def test_the_process_ends_while_a_thread_plans(planning):
    code = f"""
        import time
        import numpy as np
        from psconrl import Episode
        from psconrl.agents import adapt
        from psconrl.kernels.linear.elimination import unichain

        def compiled():
            chain = np.full((2000, 2000), 1 / 2000)
            while True:  # seconds in each call, without the interpreter's lock
                unichain(chain, np.ones((1, 2000)), 0)

        class Slow:
            def begin(self, state):
                {planning}
            def end(self, record):
                pass

        agent = adapt(Slow(), 2, 2, [0.5], seed=0)
        agent.plan_in_background()
        for _ in range(1000):
            agent.observe(agent.act(0), 0, [0.0, 0.0])
        print("over")
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "over\n", "")
