"""A structure that is wrong does not go unnoticed, and one that is right is left alone."""

import math
import warnings

import numpy as np
import pytest

import psconrl
from psconrl.errors import AgentError, StructureWarning
from psconrl.learning.posterior.checks.distribution_check import FALSE_ALARMS, DistributionCheck
from psconrl.learning.posterior.counts import Counts, Record
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.report.monitor.log_contents import log_contents
from psconrl.report.monitor.log_file import LogFile
from psconrl.systems.events import Event
from psconrl.systems.noise import Bernoulli, Binomial, Categorical, Geometric, Poisson
from psconrl.systems.priors import Beta, Gamma
from psconrl.systems.system import System


def shelf(demand, **changes):
    given = {
        "state": {"shelf": range(6)},
        "action": {"order": range(4)},
        "noise": {"demand": demand},
        "step": {"shelf": "min(max(shelf - demand, 0) + order, 5)"},
        "costs": {"lost": "max(demand - shelf, 0)", "orders": "order"},
        "start": {"shelf": 5},
        "minimise": "lost",
        "limits": ["orders <= 1.8"],
    }
    return System(**given | changes)


def counted(system, moves, noise=()):
    structure = system.structure
    counts = Counts(structure.n_states, structure.n_actions, len(structure.fixed_costs))
    record = Record.empty(counts)
    for (s, a, t), times in moves.items():
        for _ in range(times):
            record.step(s, a, t, np.zeros(len(structure.fixed_costs)))
    for number, cells in noise:
        record.noise.note(number, 1, cells)
    counts.add(record)
    return counts


def played(system, rounds, seed):
    """Counts of uniformly random actions."""
    tables, rng = system.tables(), np.random.default_rng(seed)
    structure = system.structure
    A, state, moves = structure.n_actions, 0, {}
    for _ in range(rounds):
        action = int(rng.integers(A))
        low, high = tables.indptr[state * A + action : state * A + action + 2]
        k = min(low + np.searchsorted(tables.cdf[low:high], rng.random(), side="right"), high - 1)
        following = int(tables.successors[k])
        moves[state, action, following] = moves.get((state, action, following), 0) + 1
        state = following
    return moves


def switch(p):
    return System(
        state={"on": 2}, action={"wait": 1}, noise={"flip": Bernoulli(p)}, step={"on": "flip"},
        costs={"heat": "on"}, minimise="heat",
    )  # fmt: skip


def log_jeffreys(k, n):
    """The probability of a sequence with k of n under Jeffreys' prior."""
    return math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - 2 * math.lgamma(0.5) - math.lgamma(n + 1)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 5), (40, 50), (500, 1000)])
def test_the_evidence_against_a_known_probability(k, n):
    system = switch(0.3)
    counts = counted(system, {(0, 0, 1): k, (0, 0, 0): n - k})
    exact = log_jeffreys(k, n) - k * math.log(0.3) - (n - k) * math.log(0.7)
    found = DistributionCheck(system.structure).log_evidence(counts, {})
    assert found == {"flip": pytest.approx(exact, abs=1e-9)}


@pytest.mark.parametrize(("k", "n"), [(1, 5), (40, 50), (999, 1000)])
def test_an_unknown_probability_has_the_largest_likelihood(k, n):
    system = switch(Beta(1, 1))
    counts = counted(system, {(0, 0, 1): k, (0, 0, 0): n - k})
    exact = log_jeffreys(k, n) - k * math.log(k / n) - (n - k) * math.log1p(-k / n)
    found = DistributionCheck(system.structure).log_evidence(counts, {"flip": np.array([0.5])})
    assert found == {"flip": pytest.approx(exact, abs=1e-6)}
    assert found["flip"] < 0.0


@pytest.mark.parametrize("near", [0.2, 0.5, 0.8])
def test_a_probability_with_two_local_maxima_has_the_largest_likelihood(near):
    """From a state of 0, whether one of two trials succeeded is seen, as probable under 1 - p; from 1, all of it."""
    system = System(
        state={"n": range(4)}, action={"wait": 1}, noise={"k": Binomial(2, Beta(1, 1))}, costs={}, minimise="n",
        step={"n": "(1 if k == 1 else 3) if n == 0 else k"},
    )  # fmt: skip
    seen = {(0, 0, 1): 3200, (0, 0, 3): 6800, (1, 0, 2): 13, (1, 0, 1): 6, (1, 0, 0): 1}
    check = DistributionCheck(system.structure)
    views = check._views.observed(counted(system, seen))["k"]
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    ways = 2 * grid * (1 - grid)
    logs = 3206 * np.log(ways) + 6800 * np.log1p(-ways) + 13 * np.log(grid**2) + np.log((1 - grid) ** 2)
    found = check._largest("k", views, {"k": np.array([near])}, True)
    assert found == pytest.approx(logs.max(), abs=1e-5)


def test_rates_of_events_have_the_largest_likelihood():
    """Up at the rate 4 k / n and down at 4 l / n, from a state in which both are possible."""
    system = System(
        state={"n": range(3)}, action={"wait": 1}, clock=4.0, costs={}, minimise="n", start={"n": 1},
        events={
            "up": Event(Gamma(2, 1), {"n": "n + 1"}, when="n < 2"),
            "down": Event(Gamma(2, 1), {"n": "n - 1"}, when="n > 0"),
        },
    )  # fmt: skip
    times = np.array([30, 20, 50])
    counts = counted(system, dict(zip([(1, 0, 2), (1, 0, 0), (1, 0, 1)], times.tolist(), strict=True)))
    free = math.lgamma(1.5) - math.lgamma(101.5) + sum(math.lgamma(n + 0.5) - math.lgamma(0.5) for n in times)
    exact = free - float(times @ np.log(times / 100))
    found = DistributionCheck(system.structure).log_evidence(counts, system.structure.randomness.initial())
    # The mean over all pairs together and three views: of the two others, which were not seen, E is 1.
    assert found["the events"] == pytest.approx(math.log((2 * math.exp(exact) + 2) / 4), abs=1e-5)


def test_what_a_shelf_hides_is_no_evidence():
    """From a shelf of 1 demand is seen as 0 or more; all demand that is hidden counts as one set."""
    system = shelf(Poisson(2.0, most=8))
    counts = counted(system, {(1, 0, 1): 3, (1, 0, 0): 7})
    p = math.exp(-2.0)
    exact = log_jeffreys(3, 10) - 3 * math.log(p) - 7 * math.log1p(-p)
    check = DistributionCheck(system.structure)
    views = check._views.number["demand"]
    expected = math.log((2 * math.exp(exact) + views - 1) / (views + 1))
    assert check.log_evidence(counts, {}) == {"demand": pytest.approx(expected, abs=1e-9)}


def test_values_of_free_probability_are_not_tested():
    assert DistributionCheck(shelf(Categorical(range(4), prior=1)).structure).tested == []


RIGHT = {
    "poisson": (Poisson(Gamma(2, 1), most=8), 1.7),
    "geometric": (Geometric(Beta(1, 1), most=8), 0.4),
    "binomial": (Binomial(4, Beta(1, 1)), 0.4),
    "state-dependent": (Binomial("shelf + 1", Beta(1, 1)), 0.3),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", RIGHT)
def test_silent_on_a_hundred_runs_that_are_right(name, full):
    """The probability of an alarm is at most 1/1000 in each run: 100 runs have one with probability 0.1 at most."""
    noise, value = RIGHT[name]
    system = shelf(noise)
    true, check = system.with_noise(demand=value), DistributionCheck(system.structure)
    parameters = {"demand": np.array([value])}
    largest = -np.inf
    for seed in range(25 if full else 8):
        counts = counted(system, played(true, 400, seed))
        largest = max(largest, check.log_evidence(counts, parameters)["demand"])
    assert largest < math.log(1 / FALSE_ALARMS)


BURSTY = Categorical(range(9), [0.6, 0, 0, 0, 0.25, 0.15, 0, 0, 0])


def test_an_agent_doubts_a_demand_that_is_not_poisson(tmp_path):
    system = shelf(Poisson(Gamma(2, 1), most=8))
    agent, events = psconrl.PSConRL.of(system, seed=1), []
    agent.watch(events.append)
    agent.watch(psconrl.CSVLog(tmp_path / "log.csv", ["lost", "orders"]))
    with pytest.warns(StructureWarning, match="what the agent was given is wrong: demand does not follow Poisson"):
        psconrl.simulate(system.with_noise(demand=BURSTY), agent, 1500, seed=2)
    assert events[0].doubts == ()
    assert len(events[-1].doubts) == 1
    assert agent.doubts() == events[-1].doubts
    log = LogFile(tmp_path / "log.csv")
    log.refresh()
    assert log.doubts == agent.doubts()[0]
    assert any("What the agent was given is wrong: demand" in note for note in log_contents(log)["warnings"])
    agent.save(tmp_path / "agent.npz")
    assert psconrl.load_agent(tmp_path / "agent.npz").doubts() == agent.doubts()


def test_an_agent_that_was_loaded_doubts_as_before(tmp_path):
    system = shelf(Poisson(Gamma(2, 1), most=8))
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.save(tmp_path / "agent.npz")
    agents = agent, psconrl.load_agent(tmp_path / "agent.npz")
    for each in agents:
        with pytest.warns(StructureWarning, match=r"demand does not follow Poisson\(rate=Gamma\(2, 1\), most=8\)"):
            psconrl.simulate(system.with_noise(demand=BURSTY), each, 1500, seed=2)
    assert agents[0].doubts() == agents[1].doubts()


def test_an_agent_doubts_a_known_rate_that_is_wrong():
    system = shelf(Poisson(1.0, most=8))
    agent = psconrl.PSConRL.of(system, seed=1)
    with pytest.warns(StructureWarning, match=r"rate of demand is not as given, but about [12]\.\d+: correct it"):
        psconrl.simulate(system.with_noise(demand=2.0), agent, 1000, seed=2)


def test_an_impossible_transition_is_a_doubt_with_its_state():
    system = shelf(Poisson(Gamma(2, 1), most=8))
    agent = psconrl.PSConRL.of(system, seed=1)
    agent.observe(agent.act({"shelf": 0}), {"shelf": 5})
    agent.finish()
    with pytest.warns(StructureWarning, match=r"impossible by the rules of the system: from shelf=0 by order=\d to"):
        agent.act({"shelf": 5})
    assert len(agent.doubts()) == 1


def test_a_structure_that_is_right_is_not_doubted():
    system = shelf(Poisson(Gamma(2, 1), most=8))
    agent, log = psconrl.PSConRL.of(system, seed=1), []
    agent.watch(lambda event: log.append(event.doubts))
    with warnings.catch_warnings():
        warnings.simplefilter("error", StructureWarning)
        psconrl.simulate(system.with_noise(demand=2.0), agent, 2000, seed=2)
    assert set(log) == {()}


def test_a_doubted_structure_gives_way_to_rows(tmp_path):
    """The shelf leaks: half of what is ordered is lost. The agent learns it once a transition is impossible."""
    system = shelf(Bernoulli(Beta(1, 1)))
    leaking = shelf(
        Bernoulli(0.5), noise={"demand": Bernoulli(0.5), "leak": Bernoulli(0.5)},
        step={"shelf": "min(max(shelf - demand, 0) + order * leak, 5)"},
    )  # fmt: skip
    agents = {}
    for surprise in ("warn", "rows"):
        agents[surprise] = psconrl.PSConRL.of(system, seed=1, belief=Structured.of(system, surprise))
        with pytest.warns(StructureWarning):
            psconrl.simulate(leaking, agents[surprise], 3000, seed=2)
    true = leaking.model_for_learning()
    wrong = {}
    for surprise, agent in agents.items():
        agent.begin(0)
        visited = agent.counts.visits >= 200
        rows = np.asarray(agent.sampled.toarray())[visited] - true.transition.toarray()[visited]
        wrong[surprise] = np.abs(rows).sum(axis=1).mean()
    assert wrong["rows"] < 0.3 < 0.5 < wrong["warn"]
    agent = agents["rows"]
    agent.finish()
    agent.save(tmp_path / "agent.npz")
    again = psconrl.load_agent(tmp_path / "agent.npz")
    one, two = (psconrl.simulate(leaking, each, 200, seed=3).cumulative for each in (agent, again))
    np.testing.assert_array_equal(one, two)


def test_an_unknown_surprise_is_refused():
    with pytest.raises(AgentError, match="unknown surprise 'row'; did you mean 'rows'"):
        Structured.of(switch(0.3), "row")
