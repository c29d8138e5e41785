"""A seed gives the same environment on every machine, permanently: digests of all built-in ones, and of their draws.

A changed digest means that published results refer to another model. Never update one: give the new model a new
name.
"""

import hashlib

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import issparse

import psconrl
from psconrl.envs import random_models
from psconrl.envs.registry import ENVIRONMENTS

DIGITS = 9
EDGE = 1e-4  # of a unit of the last digit: rounding errors are a thousand times smaller
ROWS = 1000  # at a time: a large environment as one dense array would take gigabytes

DIGESTS: list[tuple[str, dict[str, object], str]] = [
    ("marsrover-4x4", {}, "3762ebadd27c2bc6"),
    ("marsrover-4x4", {"slip": 0.1, "threshold": 0.3}, "d0d8d673c7ee7ccf"),
    ("marsrover-8x8", {}, "0ef2a8e8ed9802e6"),
    ("marsrover-8x8", {"slip": 0.3}, "1b71ed2984efcc9f"),
    ("box", {}, "fc49b4e84a4974ea"),
    ("box", {"slip": 0.1, "threshold": 0.5}, "ffde532128f4d76a"),
    ("counterexample", {}, "1c71d103840c3c45"),
    ("counterexample", {"theta": 0.5, "threshold": 0.7}, "c7d40168b5b0ec7b"),
    ("queue", {}, "5f94c6e53db5db1f"),
    ("queue", {"capacity": 15, "arrival": 0.3, "delay": 3.0, "power": 0.2}, "055b6fa50e9e1035"),
    ("inventory", {}, "58b999bd41b9fb9f"),
    ("inventory", {"capacity": 5, "customers": 3, "buying": 0.4, "holding": 2.0}, "03f9bba4210c6c26"),
    ("riverswim", {}, "c10a82d18e636548"),
    ("riverswim", {"length": 12, "effort": 0.3}, "d576f92e9c41c143"),
    ("chain", {}, "2433ac2c86a4a2e2"),
    ("chain", {"length": 4, "missed": 0.4}, "e4b7bbe5ad1826d0"),
    ("corridor", {}, "69b8c03713d42f45"),
    ("corridor", {"length": 5, "used": 0.5, "success": 0.15}, "13f1a3da028e2665"),
    ("islands", {}, "eba75e1334885aab"),
    ("islands", {"threshold": 0.3}, "620cd4d45f941729"),
    ("islands", {"threshold": 0.3, "success": 0.02}, "15f71543e36b70d7"),
    ("leaky-islands", {}, "1e4ef72e9d8823fa"),
    ("leaky-islands", {"leak": 0.001}, "cc49f3f5c57458a7"),
    ("ward", {}, "fb5683bbd5d8b5e2"),
    (
        "ward",
        {"beds": 6, "arrivals": [0.3, 0.1], "discharges": [0.05, 0.05], "values": [1.0, 4.0], "refused": 0.05},
        "8bb8f40af8e6c150",
    ),
    ("network", {}, "05c9cfb4ef7e7071"),
    ("network", {"side": 12, "onward": 0.5, "earn": 2.0, "waiting": 6.0}, "bb0162d923d8329b"),
    ("stock", {}, "48d13ad248ea4f26"),
    ("stock", {"items": 2, "room": 7, "demand": 0.75, "load": 3, "lost": 0.05}, "9a590ff3a6e7e1d4"),
    ("garnet", {"actions": 4, "constraints": 4, "copies": 1, "slack": 0.03, "seed": 403}, "bf1c186224269ac3"),
    ("garnet", {"states": 1, "actions": 20, "branching": 1, "seed": 203}, "5a659987db3cb1c8"),
    (
        "garnet",
        {"states": 1, "actions": 30, "branching": 1, "constraints": 2, "slack": 0.2, "seed": 202},
        "bced08f7d2b95044",
    ),
    ("garnet", {"states": 15, "slack": 0.278, "seed": 302}, "2243a0684bf8bc66"),
    ("gate", {}, "2a0ce6651ec67666"),
    (
        "machine",
        {"conditions": 5, "wearing": 0.1, "breaking": 0.004, "repaired": 0.2, "damage": 10.0, "damaged": 0.02},
        "baafb6bbff744480",
    ),
    ("machine", {"damaged": 0.0}, "bf57d06bcd22ed13"),
    ("machine", {"wearing": 0.05, "breaking": 0.05, "repaired": 0.02, "damaged": 0.2}, "13099d3f0456eb20"),
    ("machine", {}, "33af04f9111f71b6"),
    ("patrol", {}, "620927a1c9f4f9e7"),
    ("random-walk", {"length": 40, "drift": 0.1}, "62c61de29bc3acb2"),
    ("random-walk", {}, "77f73931be88bcf2"),
    ("taxicab", {"stands": 0.01}, "5eb5fe1927688155"),
    ("taxicab", {"stands": 0.3}, "44b0c37c589f8a94"),
    ("taxicab", {}, "f800d4efe34c3ee1"),
    ("garnet", {}, "700dddc6e7a68197"),
    ("garnet", {"seed": 1}, "78e950463d64da68"),
    ("garnet", {"seed": 2}, "1e582ae24df7eb67"),
    ("garnet", {"seed": 3}, "3ded37252404be15"),
    ("garnet", {"seed": 4}, "5720e371e235afa1"),
    ("garnet", {"seed": 5}, "620a4ae86843ac07"),
    ("garnet", {"seed": 6}, "7695a54fa1b7c524"),
    ("garnet", {"seed": 7}, "f83e79a2dbd0d20d"),
    ("garnet", {"states": 7, "actions": 2, "branching": 7, "constraints": 3, "seed": 4}, "106057c00b072398"),
    ("garnet", {"states": 40, "branching": 2, "slack": 0.05, "sparse": True, "seed": 5}, "8facea5dfb4a9b8a"),
    ("garnet", {"states": 5, "actions": 4, "branching": 1, "seed": 8}, "f08179d7f9c57bca"),
    ("garnet", {"states": 3, "branching": 1, "actions": 4, "constraints": 0, "seed": 8}, "7ccce1a5736629d4"),
    ("ring", {}, "d7a345ed872be698"),
    ("ring", {"seed": 1}, "a9911992ab6fb3f5"),
    ("ring", {"seed": 49}, "a82abd98efa1859b"),
    ("dirichlet", {}, "32b742421f54b5b5"),
    ("dirichlet", {"seed": 1}, "5cd99085ce2ac6c9"),
    ("dirichlet", {"seed": 2}, "26e1ed5b50cbc9fa"),
    ("dirichlet", {"seed": 3}, "18d3ee1aabb4fad9"),
    ("dirichlet", {"seed": 4}, "6aa66ba5c8c7541e"),
    ("dirichlet", {"seed": 5}, "806fe47302515071"),
    ("dirichlet", {"seed": 6}, "797f7a6a8f44bf64"),
    ("dirichlet", {"seed": 7}, "db02cabfdd36fd2c"),
    ("dirichlet", {"states": 6, "actions": 2, "prior": 1.0, "constraints": 2, "seed": 3}, "e1b8ccb85f7334f1"),
    ("dirichlet", {"states": 8, "prior": 0.05, "slack": 0.2, "seed": 9}, "a882fa696f45aab1"),
    ("dirichlet", {"states": 5, "prior": 20.0, "seed": 2}, "afc56a6fecb9cf16"),
]


def digest(cmdp):
    """Digest of all fields of a model, rounded to nine digits; no number may be so close to a tie that bits decide."""
    text = (cmdp.state_names, cmdp.action_names, cmdp.cost_names, cmdp.maximise)
    layout = cmdp.layout and (cmdp.layout.rows, cmdp.layout.cells, cmdp.layout.layers)
    sha = hashlib.sha256(repr((text, layout)).encode())
    outcomes = [costs for costs in cmdp.outcome_costs if costs is not None]
    for array in (cmdp.transition.matrix, cmdp.costs, cmdp.thresholds, cmdp.initial, cmdp.available, *outcomes):
        sha.update(repr(array.shape).encode())
        for first in range(0, array.shape[0], ROWS):
            rows = array[first : first + ROWS]
            units = np.asarray(rows.toarray() if issparse(rows) else rows, dtype=np.float64) * 10.0**DIGITS
            assert (np.abs(units - np.floor(units) - 0.5) > EDGE).all()
            sha.update(np.rint(units).astype("<i8").tobytes())  # as integers -0.0 is 0
    return sha.hexdigest()[:16]


@pytest.mark.parametrize(("name", "options", "expected"), DIGESTS, ids=lambda x: None if isinstance(x, dict) else x)
def test_a_name_and_a_seed_are_the_same_environment_everywhere(name, options, expected):
    assert digest(psconrl.load(name, **options)) == expected


def test_every_environment_has_its_own_digest():
    assert {name for name, _, _ in DIGESTS} == set(ENVIRONMENTS)
    assert len({expected for *_, expected in DIGESTS}) == len(DIGESTS)


@pytest.mark.parametrize("change", ["transition", "costs", "thresholds", "initial"])
def test_a_digest_sees_a_change_in_the_ninth_digit(change):
    before = psconrl.load("garnet")
    parts = {key: np.array(getattr(before, key)) for key in ("transition", "costs", "thresholds", "initial")}
    first = parts[change].reshape(-1)
    biggest = int(first.argmax())
    first[biggest] -= 2e-9
    if change in ("transition", "initial"):
        row = first[: parts[change].shape[-1]] if change == "initial" else parts[change][biggest // before.n_states]
        row[(biggest + 1) % before.n_states] += 2e-9
    after = psconrl.CMDP(
        parts["transition"].reshape(20, 3, 20), parts["costs"], parts["thresholds"], initial=parts["initial"]
    )
    assert digest(after) != digest(before)


def test_uniforms_are_the_first_52_bits_of_the_generator():
    """NumPy's own doubles have 53 bits: the midpoint of a cell of 2^-52 is within half a cell of them."""
    drawn = random_models._uniforms(random_models._bits(7), 50, 4)
    np.testing.assert_allclose(drawn.ravel(), np.random.default_rng(7).random(200), rtol=0, atol=2.0**-53)
    extremes = type("Bits", (), {"random_raw": lambda self, n: np.array([0, 2**64 - 1], dtype=np.uint64)})()
    assert random_models._uniforms(extremes, 2).tolist() == [2.0**-53, 1 - 2.0**-53]


@pytest.mark.statistical
def test_all_subsets_are_equally_likely():
    """Chi-square over the ten pairs out of five, and over the places of the single number: false alarms 2e-4."""
    drawn = np.sort(random_models._subsets(random_models._bits(0), 20_000, 2, 5), axis=1)
    _, counts = np.unique(drawn @ [5, 1], return_counts=True)
    assert counts.size == 10
    assert stats.chisquare(counts).pvalue > 1e-4
    one = random_models._subsets(random_models._bits(1), 20_000, 1, 7)
    assert stats.chisquare(np.bincount(one.ravel(), minlength=7)).pvalue > 1e-4
    everything = random_models._subsets(random_models._bits(2), 100, 6, 6)
    assert (np.sort(everything, axis=1) == np.arange(6)).all()


@pytest.mark.statistical
@pytest.mark.parametrize("size", [1, 2, 5])
def test_spacings_are_a_flat_dirichlet(size):
    """Every entry is Beta(1, size - 1); Kolmogorov-Smirnov at 1e-4 each: false alarms below 1e-3."""
    rows = random_models._spacings(random_models._bits(0), 20_000, size)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-15)
    for entry in rows.T if size > 1 else ():
        assert stats.kstest(entry, stats.beta(1, size - 1).cdf).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize("mass", [0.1, 1.0, 7.0])
def test_the_prior_of_the_dirichlet_environment(mass):
    """Entries are Beta(mass, 3 mass), and the largest follows NumPy's own draws: false alarms 4e-4 a mass."""
    rows = random_models._dirichlet(random_models._bits(0), 20_000, 4, mass)
    for entry in rows.T[:3]:
        assert stats.kstest(entry, stats.beta(mass, 3 * mass).cdf).pvalue > 1e-4
    theirs = np.random.default_rng(1).dirichlet(np.full(4, mass), size=20_000)
    assert stats.ks_2samp(rows.max(axis=1), theirs.max(axis=1)).pvalue > 1e-4


def test_a_tiny_prior_gives_distributions_without_subnormal_entries():
    rows = random_models._dirichlet(random_models._bits(0), 2_000, 50, 1e-3)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-14)
    assert rows[rows > 0].min() >= np.finfo(float).tiny * 0.01  # after division by a sum of at most 50
