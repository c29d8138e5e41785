"""Saved agents and runs that say what cannot be: each is refused by a line that names the file and the field."""

import copy
import tracemalloc
import zlib
from functools import cache

import numpy as np
import pytest

from damage.saved_samples import AGENTS, RUNS, read_agent, save_agent, save_run, use_agent, use_run
from damage.saved_trees import mutate, put, read_tree, value_at, write_tree
from psconrl.errors import AgentError, PsconrlError
from psconrl.simulation.model_run import Simulation

pytestmark = [
    pytest.mark.filterwarnings("ignore::psconrl.errors.AdviceWarning"),
    pytest.mark.filterwarnings("ignore::psconrl.errors.BaselineWarning"),  # a changed slack is no error of a file
]


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """What saved agents and runs say, by name; each is made when it is first asked for."""
    folder = tmp_path_factory.mktemp("saved")

    @cache
    def tree(name):
        path = folder / "sample.npz"
        path.unlink(missing_ok=True)
        if name in RUNS:
            save_run(name, path)
        else:
            save_agent(AGENTS[name], path)
        return read_tree(path)

    return lambda name: copy.deepcopy(tree(name))


STRUCTURE = "config/belief/structure"
NOISE = f"{STRUCTURE}/randomness"
CHECK = "state/parts/belief/check"
DAMAGE = [
    # Structures: sizes, probabilities, costs.
    ("shelf", f"{STRUCTURE}/n_states", 9, "successors: must be an array of numbers"),
    ("shelf", f"{STRUCTURE}/n_states", 10**9, "successors: must be an array of numbers"),
    ("shelf", f"{STRUCTURE}/successors", np.full((16, 9), 8), "must hold whole numbers from 0 to 7; has 8"),
    ("shelf", f"{STRUCTURE}/contexts", np.full(16, 3), "must hold whole numbers from 0 to 2; has 3"),
    ("shelf", f"{STRUCTURE}/fixed_costs", np.full((2, 16), -np.inf), "must hold finite numbers"),
    ("shelf", f"{STRUCTURE}/outcome_costs", [None], "must be a list of 2"),
    ("shelf", f"{STRUCTURE}/event_costs", [np.zeros((16, 0)), None], "must be those of events"),
    ("shelf", f"{NOISE}/contexts/spoilt", np.array([0, 1, 10**8]), "spoilt/n: must be an array of numbers"),
    ("shelf", f"{NOISE}/contexts/demand", np.array([0, 0, 1]), "demand: must have one context"),
    ("shelf", f"{NOISE}/arguments/spoilt/times", np.full(3, 1e300), "times must be a factor from 0 to 1"),
    ("shelf", f"{NOISE}/arguments/spoilt/n", np.array([0.0, 1.0, 1e9]), "n must be a whole number"),
    ("shelf", f"{NOISE}/arguments/spoilt/largest n", np.array([1.0]), "largest n must not be below n"),
    ("shelf", f"{NOISE}/noises/demand/prior/weights", np.full(3, 1e300), "prior must be a number from 1e-06"),
    ("shelf", f"{NOISE}/noises/demand/options/values", np.arange(10_001), "must have at most 10000 values; has 10001"),
    ("shelf", f"{NOISE}/noises/demand/name", "joint", "options/tables: is missing"),
    ("shelf", f"{NOISE}/keys", {}, "keys must be those of noises with a prior"),
    ("kiosk", f"{NOISE}/noises/held/known", np.array([1e300]), "p must be a probability from 0 to 1"),
    ("kiosk", f"{NOISE}/noises/demand/options/most", 10**9, "must be a whole number from 1 to 9,999"),
    ("kiosk", f"{NOISE}/parents", {"late, wet": ["thrown"], "thrown": ["late, wet"]}, "not in a cycle"),
    ("kiosk", "config/belief/ratios/limits/0/0", 3, "limits/0/row: must be a whole number from 1 to 2"),
    ("line", f"{NOISE}/factors", np.full((8, 2), -1.0), "must hold finite numbers from 0"),
    ("line", f"{NOISE}/clock", 0.5, "the rates add up to"),
    ("line", f"{NOISE}/keys", {"0": "up"}, "keys must be those of unknown rates"),
    # Words.
    ("shelf", "config/belief/words/reachable", np.arange(8)[::-1], "reachable must increase"),
    ("shelf", "config/belief/words/available", np.zeros((8, 2), bool), "available must have an action in every state"),
    ("shelf", "config/belief/words/outcomes/demand", np.arange(8), "outcomes must have 9 values"),
    ("shelf", "config/belief/words/costs", ["lost", "lost"], "costs must be 2 names"),
    ("shelf", "config/belief/words/stated", {"x": "shelf + y"}, "'y'"),
    ("shelf", "config/belief/words/states/shelf", 10**9, "must be an array of values"),
    # What was drawn, and what the tests remember.
    ("shelf", "state/parts/belief/parameters/spoilt", np.array([1e300]), "must hold finite numbers from 0 up to 1"),
    ("shelf", "state/parts/belief/parameters/demand", np.ones(3), "must hold probabilities that sum to 1"),
    ("line", "state/parts/belief/parameters/up", np.array([1e300]), "the rates add up to"),
    ("shelf", f"{CHECK}/next", 10**12, "next must follow noted"),
    ("shelf", f"{CHECK}/blamed", "weather", "must be one of"),
    ("shelf", f"{CHECK}/texts", {"demand": "?"}, "beyond_family must have texts"),
    ("shelf", f"{CHECK}/dependence/change_points/1", 10**9, "change_points must be within"),
    ("shelf", f"{CHECK}/dependence/before", {}, "demand: is missing"),
    ("shelf", f"{CHECK}/dependence/rows/demand/0", [0, 3, 0, 1, 2, 0, 1], "must be numbers of rows that were seen"),
    ("shelf", f"{CHECK}/dependence/rows/demand/0/0", 1, "must begin with a context and a length"),
    ("shelf", f"{CHECK}/joint/since", np.zeros(10**4), "since must be numbers of the results"),
    ("shelf", f"{CHECK}/joint/results/codes", np.arange(10**4), "must have the same length"),
    ("shelf", f"{CHECK}/joint/results/total", 10**9, "results must be part of the rounds counted"),
    ("shelf", f"{CHECK}/joint/drawn", [1, {}], "demand: is missing"),
    # What was seen of the noise.
    ("shelf", "state/counts/noise/costs/0/0", 10**9, "must not be of more rounds than the transitions"),
    ("shelf", "state/counts/noise/named/0/2", 4, "must be of what the system names"),
    ("shelf", "state/counts/noise/named/0/2", 0, "must be of what the system names"),
    ("shelf", "state/counts/noise/costs/0/2", 26, "must have outcomes that"),
    ("shelf", "state/counts/noise/noise/0/2", 4, "must be of what the system names"),
    ("shelf", "state/counts/noise/noise/0/1", 10**30, "must be an array of numbers"),
    ("line", "state/counts/noise/sojourns/0/2", 8, "must be of pairs below 8"),
    ("psconrl", "state/counts/noise", {"costs": [[1, 0, 0]]}, "the agent was made for no system"),
    # Counts, policies, generators.
    ("psconrl", "config/n_states", 10**8, "visits: must be an array of numbers"),
    ("psconrl", "state/rounds", 7, "rounds must be the sum of visits"),
    ("psconrl", "state/episodes", 0, "episodes must be 1 at least"),
    ("psconrl", "state/explored", 10**9, "explored at most that"),
    ("psconrl", "state/thresholds", np.array([1e300]), "must hold finite numbers from -1e"),
    ("psconrl", "state/rng/state/inc", 2, "the increment of a generator must be odd"),
    ("psconrl", "state/action_uniforms/position", 4097, "must be a whole number from 0 to 4,096"),
    ("psconrl", "state/play/policy", np.full((2, 2), 0.6), "must hold probabilities that sum to 1"),
    ("psconrl", "state/play/max_steps", -1, "must be a whole number from 1"),
    ("psconrl", "state/play/max_steps", 1, "max_steps and visit_caps must not have been reached"),
    ("psconrl", "state/play/interim", True, "an interim episode must have no visit_caps"),
    ("psconrl", "state/play/action", 0, "state and action must both be missing"),
    ("psconrl", "state/parts/schedule", None, "must be a table; is None"),
    ("psconrl", "state/last_policies", [np.array([0, 2])], "0: must hold whole numbers from 0 to 1; has 2"),
    ("pdnac", "state/block_rounds", 10**8, "must be a whole number from"),
    ("pdnac", "state/unbooked", 1, "unbooked must be the rounds of the episode in progress"),
    ("pdnac", "config/H", 10**12, "an epoch of 2,000,000,000,000 steps takes"),
    ("safe", "state/spans", np.array([-1.0]), "must hold numbers from 0"),
    ("safe", "state/share", 0.6, "must be a finite number from 0 up to 0.5"),
    ("pdnac", "state/play/max_steps", 10**8, "max_steps must leave"),
    ("triple-qa", "state/live_policy", np.full((1, 2, 2), 0.5), "must be an array of numbers, shape (2, 2)"),
    ("triple-qa", "state/play/max_steps", 10**8, "max_steps must leave"),
    ("safe", "state/return_began", 10**6, "must be within the rounds"),
    ("labelled", "state/play/kind", 1, "must be a text"),
    # Runs.
    ("run", "extra/simulation/state", 2, "must be a whole number from 0 to 1"),
    ("run", "extra/simulation/round", 149, "round must be the sum of the lengths in the log"),
    ("run", "extra/simulation/rounds", np.array([1, 2, 3, 5, 4]), "rounds must increase"),
    ("run", "extra/simulation/horizon", 7, "round must be at most the horizon"),
    ("run", "extra/simulation/seed", -1, "seed must be a whole number from 0 on"),
    ("run", "extra/simulation/emission", "loud", "unknown emission 'loud'"),
    ("run", "extra/simulation/rounds", np.arange(5)[::-1], "must hold whole numbers from 1"),
    ("run", "extra/simulation/log/start", np.zeros(0, int), "must be an array of numbers"),
    ("run", "extra/simulation/uniforms/width", 2, "must be a whole number from 1 to 1"),
    ("run policies", "extra/simulation/policies/averages", np.zeros((0, 2)), "averages must not be empty"),
]


@pytest.mark.parametrize(("name", "field", "value", "says"), DAMAGE, ids=[f"{d[0]}-{d[1]}" for d in DAMAGE])
def test_what_cannot_be_is_refused_by_the_name_of_its_field(name, field, value, says, trees, tmp_path):
    tree, path = trees(name), tmp_path / "saved.npz"
    place = tuple(int(key) if key.isdigit() else key for key in field.split("/"))
    put(tree, place, value)
    write_tree(tree, path)
    with pytest.raises(AgentError) as raised:
        Simulation.resume(RUNS[name][0], path) if name in RUNS else read_agent(path)
    message = str(raised.value)
    assert message.startswith((f"{path}: config", f"{path}: state", f"{path}: extra/simulation"))
    assert says in message
    assert len(message) < 400 + len(str(path))


def test_a_number_in_a_small_file_allocates_no_memory(trees, tmp_path):
    """One number of a file of some kilobytes stood for an array of a hundred million."""
    path = tmp_path / "agent.npz"
    for name, field in (("shelf", f"{NOISE}/contexts/spoilt"), ("psconrl", "config/n_states"), ("pdnac", "config/H")):
        tree = trees(name)
        place = tuple(field.split("/"))
        old = value_at(tree, place)
        put(tree, place, np.where(old == old.max(), 10**8, old) if isinstance(old, np.ndarray) else 10**8)
        write_tree(tree, path)
        assert path.stat().st_size < 60_000
        tracemalloc.start()
        try:
            with pytest.raises(AgentError):
                read_agent(path)
            assert tracemalloc.get_traced_memory()[1] < 20e6
        finally:
            tracemalloc.stop()


@pytest.mark.part(12)
@pytest.mark.parametrize("name", sorted({*AGENTS} - {"span-fha", "span-fha costs"}))
def test_an_agent_that_was_read_says_the_same(name, trees, tmp_path):
    path, again = tmp_path / "saved.npz", tmp_path / "again.npz"
    tree = trees(name)
    write_tree(tree, path)
    read_agent(path).save(again, {"note": "mine"})
    np.testing.assert_equal(read_tree(again), tree)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["psconrl", "pdnac", "safe", "shelf", "kiosk", "line", "run", "run system"])
def test_a_mutated_file_is_refused_or_plays(name, trees, tmp_path, full):
    """``make test-all`` tries many more."""
    path, again = tmp_path / "saved.npz", tmp_path / "again.npz"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    refused = []
    for _ in range(200 if full else 3):
        tree = trees(name)
        mutate(tree, rng)
        write_tree(tree, path)
        again.unlink(missing_ok=True)
        try:
            use_run(name, path, again, 20) if name in RUNS else use_agent(path, again, 20)
        except PsconrlError as error:
            refused.append(str(error))
    assert refused
    assert all(error.startswith(f"{path}: ") for error in refused)  # else it was read, and did not play
