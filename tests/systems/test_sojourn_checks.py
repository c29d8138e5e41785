"""Tests of a structure by sojourn times that were measured: likelihoods of Poisson processes, by hand and by agents."""

import numpy as np
import pytest

import psconrl
from psconrl.errors import AgentError
from psconrl.learning.posterior.noise_families import family_of
from psconrl.learning.posterior.noise_sightings import NoiseSightings, SightedRow, sojourn_rows
from psconrl.learning.posterior.seen_noise import SeenNoise
from psconrl.systems.events import Event
from psconrl.systems.priors import Gamma
from psconrl.systems.system import System

CLOCK = 16.0


def taxi_rank(factor="2 if mood == 'party' else 1", finish=2.0, **changes):
    """Up to two cabs are busy; calls that find none are lost. Two events end a party."""
    given = {
        "state": {"busy": 3, "mood": ["party", "quiet"]}, "action": {"wait": 1}, "costs": {"lost": 0},
        "events": {
            "call": Event(Gamma(2, 1), {"busy": "min(busy + 1, 2)"}, times=factor, costs={"lost": "busy == 2"}),
            "finish": Event(finish, {"busy": "busy - 1"}, times="busy", when="busy > 0"),
            "turn": Event(Gamma(1, 1), {"mood": "'party' if mood == 'quiet' else 'quiet'"}),
            "police": Event(Gamma(1, 4), {"mood": "'quiet'"}, when="mood == 'party'"),
        },
        "clock": CLOCK, "minimise": "busy", "limits": ["lost <= 10"],
    }  # fmt: skip
    return System(**given | changes)


def pair_of(system, busy, mood):
    return system.state_number({"busy": busy, "mood": mood})


def test_what_sojourns_show_by_hand():
    """At a full rank calls show only if they are reported; which event ended a party shows only if it is reported."""
    system = taxi_rank()
    structure = system.structure
    W = structure.randomness.n_outcomes
    full, party = pair_of(system, 2, "quiet"), pair_of(system, 0, "party")
    call, finish, turn, police = range(4)
    at = structure.contexts
    noise = SeenNoise()
    noise.note_sojourn(full, 0.5, False, (int(at[full]) * W + finish,))
    noise.note_sojourn(full, 0.25, True, (int(at[full]) * W + call,))
    noise.note_sojourn(party, 2.0, False, (int(at[party]) * W + turn, int(at[party]) * W + police))
    noise.note_sojourn(party, 1.0, True, (int(at[party]) * W + police,))
    found = {}
    for event, pair, row, times in sojourn_rows(structure, noise):
        assert row.context == at[pair]
        assert row.view == ()
        key = event, pair, row.values
        found[key] = found.get(key, 0.0) + times
    assert found == {
        (call, full, ()): 0.25 * CLOCK, (call, full, (1,)): 1.0,
        (finish, full, ()): 0.75 * CLOCK, (finish, full, (1,)): 1.0,
        (turn, full, ()): 0.75 * CLOCK,
        (call, party, ()): 3.0 * CLOCK,
        (turn, party, ()): 1.0 * CLOCK, (police, party, ()): 1.0 * CLOCK, (police, party, (1,)): 1.0,
    }  # fmt: skip


def test_the_likelihood_of_events_in_continuous_time_by_hand():
    """12 calls in 5 hours at factor 1 and 9 in 2 hours at factor 2: the rate is 21 / 9, whatever the clock is."""
    system = taxi_rank()
    structure = system.structure
    family = family_of(structure.randomness, 0, "call")
    quiet, party = (int(structure.contexts[pair_of(system, 0, mood)]) for mood in ("quiet", "party"))
    family.add([SightedRow(g, (), values) for g in (quiet, party) for values in ((), (1,))])
    counts = np.array([5.0 * CLOCK, 12.0, 2.0 * CLOCK, 9.0])
    exact = 12 * np.log(21 / 9 / CLOCK) + 9 * np.log(2 * 21 / 9 / CLOCK) - 21
    assert family.largest(counts) == pytest.approx(exact, abs=1e-6)
    known = family_of(structure.randomness, 1, "finish")  # rate 2, times busy
    known.add([SightedRow(int(structure.contexts[pair_of(system, 2, "quiet")]), (), values) for values in ((), (1,))])
    assert known.as_given(np.array([3.0 * CLOCK, 10.0])) == pytest.approx(10 * np.log(4 / CLOCK) - 12)


def live(system, rates, seed, sojourns=1000, save_to=None):
    """An agent that sees when the state changes, and which event it was, in a simulation of its own."""
    rng = np.random.default_rng(seed)
    agent = psconrl.PSConRL.of(system, seed=seed)
    busy, mood = 0, "quiet"
    for k in range(sojourns):
        agent.act({"busy": busy, "mood": mood})
        names, own = list(rates(busy, mood, k)), np.array(list(rates(busy, mood, k).values()))
        event = names[rng.choice(len(names), p=own / own.sum())]
        following = {"call": min(busy + 1, 2), "finish": busy - 1}.get(event, busy), mood
        if event in ("turn", "police"):
            following = busy, "quiet" if mood == "party" else "party"
        agent.observe(
            {"wait": 0}, dict(zip(("busy", "mood"), following, strict=True)),
            after=rng.exponential(1 / own.sum()), noise={"event": event},
        )  # fmt: skip
        busy, mood = following
        if save_to is not None and k == sojourns // 2:
            agent.save(save_to)
            agent = psconrl.load_agent(save_to)
    agent.finish()
    return agent


def true_rates(busy, mood, k):
    found = {"call": 2.8 if mood == "party" else 1.4, "turn": 0.4}
    return found | ({"finish": 2.0 * busy} if busy else {}) | ({"police": 0.2} if mood == "party" else {})


@pytest.mark.parametrize("seed", range(4))
def test_silent_on_sojourns_of_a_system_that_is_right(seed):
    """False alarms: one run in a thousand at most."""
    agent = live(taxi_rank(), true_rates, seed, 600)
    assert agent.doubts() == ()


@pytest.mark.filterwarnings("ignore::psconrl.errors.StructureWarning")
@pytest.mark.parametrize(
    ("system", "rates", "said"),
    [
        (taxi_rank(factor=1), true_rates, "call depends on mood ("),
        (taxi_rank(finish=3.0), true_rates, "rate of finish is not as given, but about "),
        (
            taxi_rank(),
            lambda busy, mood, k: true_rates(busy, mood, k) | {"turn": 0.4 if k < 500 else 2.0},
            "turn changed over time, at about round ",
        ),
    ],
)
def test_a_wrong_system_is_doubted_by_its_sojourns(system, rates, said, tmp_path):
    agent = live(system, rates, 1)
    (doubt,) = agent.doubts()
    assert doubt.startswith(said)
    again = live(system, rates, 1, save_to=tmp_path / "agent.npz")
    assert again.doubts() == agent.doubts()


def test_damaged_rows_of_sojourns_are_refused():
    check = NoiseSightings(taxi_rank().structure, ("call", "finish", "turn", "police"))
    with pytest.raises(AgentError, match="call: must have rows that are all different"):
        check.restore({name: [[0, 0], [0, 0]] for name in check.names})
