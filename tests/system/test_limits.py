"""Excessive sizes in small files or options: one message, before memory is allocated."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_array

import psconrl
from psconrl import CMDP, PSConRL, load, save, simulate
from psconrl.agents import CUCRL, Dirichlet
from psconrl.base import caps as limits
from psconrl.errors import AgentError, ConfigError, ModelError, PsconrlError
from psconrl.experiment.spec_file import parse_spec, read_spec
from psconrl.simulation.trace import checkpoint_rounds

SPARE = 50_000_000  # bytes; what is refused here would take gigabytes


@pytest.fixture(autouse=True)
def _default_limit(monkeypatch):
    monkeypatch.delenv(limits.VARIABLE, raising=False)


def refused(action, error, message):
    """Check that the action ends in one message and allocates next to no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=message) as raised:
            action()
        assert tracemalloc.get_traced_memory()[1] < SPARE
    finally:
        tracemalloc.stop()
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 500


def npz(path, **members):
    """A file of .npy members, given as bytes or as arrays."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            if not isinstance(content, bytes):
                buffer = io.BytesIO()
                np.save(buffer, content)
                content = buffer.getvalue()
            archive.writestr(f"{name}.npy", content)
    return path


def claiming(shape, dtype="<f8", content=b""):
    """A .npy file whose header promises more data than follows."""
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


HEADER = np.array(json.dumps({"format": "psconrl-cmdp", "version": 1, "maximise": False, "cost_names": ["a"]}))
SMALL = {
    "costs": np.zeros((1, 1, 1)),
    "thresholds": np.zeros(0),
    "initial": np.ones(1),
    "available": np.ones((1, 1), bool),
}


@pytest.mark.parametrize("shape", [[10**9, 10**9], [10**9, 1], [2, 10**9], [10**30, 10**30], [2, 0], [1e9, 1e9]])
def test_a_few_bytes_of_json_cannot_claim_a_billion_states(tmp_path, shape):
    path = tmp_path / "claim.json"
    path.write_text(json.dumps({"transition": {"shape": shape, "entries": [[0, 0, 1]]}, "costs": [[[0]]]}))
    refused(
        lambda: load(path),
        ModelError,
        "shape claims|transition must have shape|two whole numbers",
    )


def test_rows_without_entries_are_fine_where_no_action_is_available(tmp_path):
    one_action = {"shape": [4, 2], "entries": [[0, 1, 1.0], [2, 0, 1.0]]}
    record = {"transition": one_action, "costs": [np.zeros((2, 2)).tolist()], "available": [[1, 0], [1, 0]]}
    (tmp_path / "model.json").write_text(json.dumps(record))
    assert load(tmp_path / "model.json").available.tolist() == [[True, False], [True, False]]
    # and costs by next state are sparser than the transitions
    record |= {"costs": [None], "outcome_costs": [{"shape": [4, 2], "entries": [[0, 1, 3.0]]}]}
    (tmp_path / "model.json").write_text(json.dumps(record))
    assert load(tmp_path / "model.json").costs[0].tolist() == [[3.0, 0.0], [0.0, 0.0]]
    record["outcome_costs"] = [{"shape": [10**9, 10**9], "entries": [[0, 1, 3.0]]}]
    (tmp_path / "model.json").write_text(json.dumps(record))
    refused(lambda: load(tmp_path / "model.json"), ModelError, "shape claims 1000000000 rows")


def test_a_packed_file_cannot_unpack_to_more_than_the_limit(tmp_path, monkeypatch):
    """Members that are each within the limit but too large together."""
    zeros = npz(tmp_path / "zeros.npz", header=HEADER, transition=b"\0" * 70_000_000, **SMALL)
    with zipfile.ZipFile(zeros, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", b"\0" * 70_000_000)
    assert zeros.stat().st_size < 200_000
    monkeypatch.setenv(limits.VARIABLE, "0.1")
    refused(lambda: load(zeros), ModelError, "zeros.npz: what it unpacks to takes 140 MB, more than 100 MB; .*set PSC")
    refused(lambda: PSConRL.load(zeros), AgentError, "zeros.npz: what it unpacks to takes 140 MB, more than 100 MB")


@pytest.mark.parametrize("shape", [(10**12,), (10**9, 1, 10**9), (3,), (2**62, 4)])
def test_an_array_cannot_claim_more_than_it_holds(tmp_path, shape):
    path = npz(tmp_path / "claim.npz", header=HEADER, transition=claiming(shape, content=b"\0" * 16), **SMALL)
    refused(lambda: load(path), ModelError, "claim.npz: 'transition' claims to have shape")


def test_a_sparse_matrix_cannot_claim_rows_that_are_not_there(tmp_path):
    parts = {"transition_data": np.ones(1), "transition_indices": np.zeros(1, int), "transition_indptr": np.arange(2)}
    for shape in ((10**9, 10**9), (10**9, 1), (1, 10**9), (-1, -1), (0, 0)):
        path = npz(tmp_path / "claim.npz", header=HEADER, transition_shape=np.array(shape), **parts, **SMALL)
        refused(lambda path=path: load(path), ModelError, "transition_shape claims")


def test_an_agent_file_unpacks_an_array_once_however_often_it_is_named(tmp_path):
    header = {"format": "psconrl-agent", "version": 1, "agent": "psconrl", "config": {}, "state": {}}
    header["recipe"] = "psconrl"
    header["extra"] = {"all": [{"@array": "big"}] * 1000}
    npz(tmp_path / "agent.npz", header=np.array(json.dumps(header)), big=np.zeros(1_000_000))
    refused(lambda: PSConRL.load(tmp_path / "agent.npz"), AgentError, "damaged")


def test_large_honest_models_load(tmp_path):
    """100,000 sparse states, and a dense model whose file is a hundredth of what it unpacks to."""
    S = 100_000
    rows = np.arange(2 * S)
    P = csr_array((np.ones(2 * S), (rows, (rows * 7 + 1) % S)), shape=(2 * S, S))
    save(CMDP(P, np.zeros((1, S, 2))), tmp_path / "large.npz")
    assert load(tmp_path / "large.npz").n_states == S
    save(CMDP(np.eye(400)[np.arange(800) % 400], np.zeros((1, 400, 2))), tmp_path / "packed.npz")
    assert (tmp_path / "packed.npz").stat().st_size < 800 * 400 * 8 / 100
    assert load(tmp_path / "packed.npz").n_states == 400


def test_the_limit_can_be_raised_and_lowered(tmp_path, monkeypatch):
    save(load("marsrover-8x8"), tmp_path / "rover.npz")
    monkeypatch.setenv(limits.VARIABLE, "0.0001")
    refused(lambda: load(tmp_path / "rover.npz"), ModelError, r"takes 2\d\d kB, more than 100 kB")
    monkeypatch.setenv(limits.VARIABLE, "0.01")
    assert load(tmp_path / "rover.npz").n_states == 64
    PSConRL(200, 6, [0.5], belief=Dirichlet(0.1))  # 9.6 MB by the estimate
    refused(lambda: PSConRL(300, 6, [0.5], belief=Dirichlet(0.1)), AgentError, "takes 21.6 MB, more than 10 MB")
    PSConRL(1200, 6, [0.5])  # sparse: 29 entries a pair, 8 MB
    refused(lambda: PSConRL(2000, 6, [0.5]), AgentError, "an agent of 2,000 states and 6 actions takes 13.7 MB")
    CUCRL(200, 6, [0.5])
    refused(
        lambda: CUCRL(300, 6, [0.5]), AgentError, r"tables of all \(s, a, s'\), as 'c-ucrl' does, for 204 states at"
    )
    for wrong in ("many", "-1", "0", "nan"):
        monkeypatch.setenv(limits.VARIABLE, wrong)
        refused(
            lambda: load(tmp_path / "rover.npz"), PsconrlError, f"must be a positive number of gigabytes; got '{wrong}'"
        )


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda: PSConRL(10**9, 2, [0.5]), AgentError, "an agent of 1,000,000,000 states and 2 actions takes"),
        (lambda: PSConRL(10**3, 10, [0.5] * 10**4), AgentError, "10,001 costs takes 1.6 GB"),
        (lambda: PSConRL(2, 10**12, [0.5]), AgentError, "an agent of 2 states"),
        (lambda: PSConRL(10**13, 2, [0.5]), AgentError, "n_states must be at most 1,000,000,000,000"),
        (lambda: Dirichlet(1e-320), AgentError, "prior must lie between 1e-100 and 1e"),
        (lambda: Dirichlet(1e308), AgentError, "prior must lie between 1e-100 and 1e"),
        (lambda: read_spec("/dev/zero"), ConfigError, "/dev/zero: a spec has at most 1,000,000 characters"),
        (lambda: read_spec("/dev/urandom"), ConfigError, "/dev/urandom: cannot be read"),
        (lambda: load("inventory", holding=1e308), ModelError, "must be at most|must be finite"),
        (lambda: load("garnet", states=10**6), ModelError, "a model of 1,000,000 states and 3 actions takes 24 TB"),
        (lambda: load("dirichlet", states=10**6), ModelError, "a model of 1,000,000 states"),
        (lambda: load("riverswim", length=10**6), ModelError, "a model of 1,000,000 states"),
        (lambda: load("queue", capacity=10**6), ModelError, "a model of 1,000,001 states"),
        (lambda: load("inventory", capacity=10**5), ModelError, "a model of 100,001 states"),
        (lambda: load("inventory", customers=10**9), ModelError, "customers must be at most 1000"),
        (lambda: load("garnet", states=float("inf")), ConfigError, "must be a whole number from 0 on; got inf"),
        (lambda: load("garnet", states=float("nan")), ConfigError, "must be a whole number from 0 on; got nan"),
        (lambda: load("garnet", seed=-1), ConfigError, "'seed' must be a whole number from 0 on; got -1"),
        (lambda: load("garnet", states=2.5), ConfigError, "'states' must be a whole number from 0 on; got 2.5"),
        (lambda: checkpoint_rounds(10**12, 10**9), ConfigError, "a run with 1,000,000,000 checkpoints takes 500 GB"),
        (lambda: checkpoint_rounds(10**21, 10), ConfigError, "horizon must be at most 1,000,000,000,000"),
        (lambda: checkpoint_rounds(10**21, "log"), ConfigError, "horizon must be at most"),
    ],
)  # fmt: skip
def test_options_that_ask_for_too_much(action, error, message):
    refused(action, error, message)


def test_more_checkpoints_than_rounds_are_one_a_round():
    assert checkpoint_rounds(5, 10**9).tolist() == [1, 2, 3, 4, 5]


def test_a_horizon_out_of_range_is_refused_by_every_run():
    model = load("counterexample")
    agent = PSConRL(2, 2, model.thresholds, seed=0)
    for horizon in (10**21, 0, -1, 2.5, True, "10"):
        with pytest.raises(ConfigError, match=r"horizon must be (a whole number from 1 on|at most)"):
            simulate(model, agent, horizon)
    assert simulate(model, agent, 10).horizon == 10


BASE = '[experiments.small]\nenv = "marsrover-4x4"\nagents = ["psconrl"]\n'
KEY = ".".join("a" for _ in range(100_000))
SPECS = {
    "replicates": (BASE + "replicates = 1_000_000_000", "a sweep of 1,000,000,000 runs takes 5 TB"),
    "grid": (
        BASE + "[experiments.small.grid]\n" + "\n".join(f"x{k} = {list(range(10))}" for k in range(12)),
        "a sweep of 10,000,000,000,000 runs",
    ),
    "agent's grid": (
        BASE + "[agents.psconrl.grid]\n" + "\n".join(f"x{k} = {list(range(10))}" for k in range(12)),
        "a sweep of 10,000,000,000,000 runs",
    ),
    "dotted key": (f"{KEY} = 1", "a key has at most 100 parts"),
    "dotted key with spaces": (f"{KEY.replace('.', ' . ')} = 1", "a key has at most 100 parts"),
    "dotted table": (f"[{KEY}]", "a key has at most 100 parts"),
    "quoted dotted key": (KEY.replace("a", '"="') + " = 1", "a key has at most 100 parts"),
    "dotted key inline": (f"x = {{ {KEY} = 1 }}", "a key has at most 100 parts"),
    "brackets": (f"x = {'[' * 5000}{']' * 5000}", "nested at most 20 levels deep"),
    "some brackets": (f"x = {'[' * 21}1{']' * 21}", "nested at most 20 levels deep"),
    "tables": (f"[{'.'.join('a' * 30)}]", "nested at most 20 levels deep"),
    "text": ("#" * 1_000_001, "a spec has at most 1,000,000 characters"),
    "digits": (f"seed = {'9' * 5000}", "not valid TOML: Exceeds the limit"),
    "unclosed strings": ('\\"' * 400_000, "not valid TOML"),
    "quotes": ("'" * 900_001, "not valid TOML"),
}


@pytest.mark.parametrize(("text", "message"), SPECS.values(), ids=SPECS)
def test_a_spec_cannot_ask_for_too_much(text, message):
    with pytest.raises(ConfigError, match=message) as raised:
        parse_spec(text).jobs()
    assert len(str(raised.value)) < 500


def test_dots_in_values_and_comments_are_nobodys_key():
    dots = "." * 500
    text = f'name = "{dots}" # {dots}\n{BASE}' + "agents = ['psconrl']\n".replace("agents", "# agents") + f"# {dots}\n"
    text += "options = { slip = 0.1 }\ngrid.threshold = [" + ", ".join(["0.25"] * 200) + "]"
    assert len(parse_spec(text).jobs()) == 200 * 10


HUGE = 1.7e308


@pytest.mark.parametrize("cost", [HUGE, -HUGE, 1e101, np.finfo(np.float64).max])
@pytest.mark.parametrize("which", [0, 1])
def test_costs_that_would_overflow_are_refused_at_the_door(cost, which):
    """Their sums are infinite, and a planner would not terminate with those."""
    agent = PSConRL(3, 2, [0.5], seed=0)
    costs = [0.5, 0.5]
    costs[which] = cost
    action = agent.act(0)
    with pytest.raises(AgentError, match=r"costs must be at most 1e\+100 in size \(take a larger unit\); got"):
        agent.observe(action, 1, costs)
    agent.observe(action, 1, [0.5, 0.5])  # the agent is unchanged
    with pytest.raises(AgentError, match="thresholds must be at most"):
        agent.set_thresholds([cost])
    with pytest.raises(AgentError, match="thresholds must be at most"):
        PSConRL(3, 2, [cost])
    table = np.full((2, 3, 2), 0.5)
    table[which, 1, 1] = cost
    with pytest.raises(AgentError, match="costs must be at most"):
        PSConRL(3, 2, [0.5], table)
    with pytest.raises(ModelError, match=rf"costs\[{which}, 1, 1\] must be at most"):
        CMDP(np.full((3, 2, 3), 1 / 3), table, [0.5])
    outcomes = np.full((2, 3, 2, 3), 0.5)
    outcomes[which, 1, 1, 2] = cost
    with pytest.raises(ModelError, match=rf"costs\[{which}, 1, 1, 2\] must be at most"):
        CMDP(np.full((3, 2, 3), 1 / 3), outcomes, [0.5])


@pytest.mark.parametrize("size", [1e100, -1e100, 1e99])
def test_the_largest_costs_are_learned_from(size):
    """Up to the limit all sums stay finite, step by step, compiled, and in Gymnasium."""
    rng = np.random.default_rng(0)
    agent = PSConRL(3, 2, [0.5], seed=0)
    state = 0
    for _ in range(300):
        action, following = agent.act(state), int(rng.integers(3))
        agent.observe(action, following, [size * rng.random(), rng.random()])
        state = following
    agent.finish()
    assert np.isfinite(agent.counts.cost_sums).all()
    model = CMDP(np.full((3, 2, 3), 1 / 3), size * rng.random((2, 3, 2)), [0.0])
    for environment in (model, psconrl.CMDPEnv(model)):
        trace = simulate(environment, PSConRL(3, 2, model.thresholds, seed=0), 300, seed=0)
        assert np.isfinite(trace.cumulative).all()


class Overflowing(psconrl.CMDPEnv):
    """An environment whose rewards run out of the range of doubles."""

    def step(self, action):
        state, _, terminated, truncated, info = super().step(action)
        return state, HUGE, terminated, truncated, info


def test_an_environment_that_overflows_is_an_error_and_nothing_is_lost():
    model = load("counterexample")
    agent = PSConRL(2, 2, model.thresholds, optimistic_cost=-1.0, seed=0)
    with pytest.raises(PsconrlError, match="at most 1e"):
        simulate(Overflowing(model), agent, 1000, seed=0)
    assert simulate(psconrl.CMDPEnv(model), agent, 50, seed=0).horizon == 50


def test_counts_that_cannot_be_are_a_damaged_file(tmp_path):
    agent = PSConRL(2, 2, [0.5], seed=0)
    simulate(load("counterexample"), agent, 50, seed=0)
    agent.finish()
    for name, value in (
        ("cost_sums", np.inf), ("cost_sums", np.nan), ("visits", 10**6), ("times", -1), ("times", 0), ("numbers", -1),
        ("numbers", 8), ("numbers", 10**12),
    ):  # fmt: skip
        twin = PSConRL(2, 2, [0.5], seed=0)
        twin.restore(agent.state())
        getattr(twin.counts.tally if name in ("times", "numbers") else twin.counts, name).flat[-1 if value else 0] = (
            value
        )
        twin.save(tmp_path / "agent.npz")
        with pytest.raises(AgentError, match=r"agent\.npz: state/counts\b.* must "):
            PSConRL.load(tmp_path / "agent.npz")


@pytest.mark.parametrize(
    "costs",
    [
        "1.5",
        ["0", "1"],
        [b"1", b"2"],
        np.array(["1", 2.0], dtype=object),
        ["nan", 1.0],
        [1j, 0],
        {"a": 1},
        [[1], [2, 3]],
    ],
    ids=repr,
)
def test_text_is_no_cost(costs):
    agent = PSConRL(2, 2, [0.5], seed=0)
    action = agent.act(0)
    with pytest.raises(AgentError, match="costs must be numbers, in a list or an array; got"):
        agent.observe(action, 1, costs)
    wrong = "names of its constraints" if isinstance(costs, dict) else "thresholds must be numbers"
    with pytest.raises(AgentError, match=wrong):
        agent.set_thresholds(costs)
    agent.observe(action, 1, [True, np.float32(0.5)])


def test_thresholds_are_changed_by_their_own_method_only():
    agent = PSConRL(2, 2, [0.5], seed=0)
    with pytest.raises(AgentError, match=r"changed by agent.set_thresholds\(...\)"):
        agent.thresholds = [float("nan")]
    with pytest.raises(ValueError, match="read-only"):
        agent.thresholds[0] = np.nan
    given = np.array([0.25])
    agent.set_thresholds(given)
    given[0] = 9.0  # the caller's array stays the caller's
    assert agent.thresholds.tolist() == [0.25]
