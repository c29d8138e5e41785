"""Choice of kernels, errors of a wrong choice, and agreement of sources and extension modules."""

import doctest
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from psconrl import kernels
from psconrl.kernels import _cpu
from psconrl.kernels.arithmetic import products
from psconrl.kernels.draws import counts, dirichlet
from psconrl.kernels.graphs import graph, nested_dissection, successors
from psconrl.kernels.linear import csr, krylov, sweeps
from psconrl.kernels.play import play_loop, rounds

SOURCES = sorted(f"{path.parent.name}.{path.stem}" for path in Path(kernels.__file__).parent.glob("*/[!_]*.py"))


def python(code, **environment):
    """Exit code, output and last line of the errors of a program."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1]


def test_the_widest_instruction_set_is_chosen():
    code = "from psconrl import kernels; from psconrl.kernels.linear import elimination; print(kernels.INSTRUCTIONS)"
    widest = next(iter(_cpu.instruction_sets()), "baseline")
    assert python(code, PSCONRL_KERNELS="") == (0, widest, "")
    assert python(code, PSCONRL_KERNELS="baseline") == (0, "baseline", "")


def test_every_kernel_is_an_extension_module():
    code = f"""
        from importlib import import_module
        names = {SOURCES}
        print(*[name for name in names if import_module(f"psconrl.kernels.{{name}}").__file__.endswith(".py")])
    """
    assert python(code) == (0, "", "")


def test_examples_in_docstrings():
    found = [doctest.testmod(import_module(f"psconrl.kernels.{name}")) for name in SOURCES]
    assert sum(result.attempted for result in found) > 0
    assert not [name for name, result in zip(SOURCES, found, strict=True) if result.failed]


def test_a_choice_that_cannot_be_is_refused_in_one_line():
    code, _, said = python("import psconrl.kernels", PSCONRL_KERNELS="sse9")
    assert code == 1
    assert said == "ImportError: PSCONRL_KERNELS must be one of baseline, avx2, avx512, python; got 'sse9'"


@pytest.mark.skipif(not _cpu.instruction_sets(), reason="no choice on this processor")
def test_an_instruction_set_that_was_not_built_is_refused():
    code = """
        from psconrl.kernels import _cpu
        _cpu.instruction_sets = lambda: ()
        from psconrl import kernels
        kernels._choose("avx2")
    """
    done, _, said = python(code, PSCONRL_KERNELS="baseline")
    assert done == 1
    assert "this processor or this build has only ['baseline']" in said


def test_kernels_that_were_not_built_say_how_to_build_them():
    code = """
        import sys
        sys.modules["psconrl.kernels._cpu"] = None
        import psconrl.kernels
    """
    done, _, said = python(code)
    assert done == 1
    assert said.startswith("ImportError: the kernels of psconrl are not built for this Python; in a clone")


def test_sources_and_extension_modules_give_the_same_bits():
    """A plan and a short run of agents that use most kernels, on models of a few states."""
    code = """
        import warnings
        import run_digests
        from psconrl.kernels import INSTRUCTIONS
        warnings.simplefilter("ignore")
        run_digests.ROUNDS = 25
        for name in ("psconrl", "psconrl-paper", "c-ucrl", "ucrl-cmdp", "lagrangian", "triple-qa", "sa-cvi-ucb"):
            print(run_digests.run_digest(name, "counterexample", {}, True))
        for name in ("pdnac", "po-cmdp", "ucrl2", "pmevi-dt"):
            print(run_digests.run_digest(name, "counterexample", {}, True))
        print(run_digests.run_digest("psconrl", "riverswim", {"length": 4}, False))
        print(run_digests.plan_digest("garnet", {"states": 6, "constraints": 2}))
        print(run_digests.plan_digest("garnet", {"states": 40, "sparse": True}))
    """
    compiled = python(code)
    assert compiled[0] == 0, compiled
    assert python(code, PSCONRL_KERNELS="python") == compiled


@pytest.mark.parametrize("number", [-1, 8, 10**9])
def test_transitions_that_there_are_not_are_refused_wherever_they_stand(number):
    """Also in the middle: of unsorted numbers the first and the last do not bound the others."""
    numbers, times = np.array([0, number, 1]), np.ones(3, np.int64)
    with pytest.raises(ValueError, match="pairs that there are not"):
        counts.visits_of(numbers, times, 4, 2)
    with pytest.raises(ValueError, match="that the table does not have"):
        counts.add_to_table(np.zeros((4, 2), np.int64), numbers, times)


def test_a_model_that_claims_more_entries_than_it_has_is_not_played():
    policy, costs = np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    for indptr in ([0, 10**6], [-1, 1]):
        with pytest.raises(ValueError, match="row starts of a matrix"):
            play_loop.expected_averages(policy, np.array(indptr, np.int32), np.zeros(1, np.int32), np.ones(1), costs, 0)


CHAIN = np.array([0, 2, 3], np.int32), np.array([0, 1, 0], np.int32), np.array([0.5, 0.5, 1.0])


def damaged(part, place, value):
    """The chain of two states above, with one number changed."""
    parts = [x.copy() for x in CHAIN]
    parts[part][place] = value
    return parts


@pytest.mark.parametrize(
    ("part", "place", "value", "said"),
    [
        (0, 0, 1, "row starts"),
        (0, 1, 4, "row starts"),
        (0, 2, 4, "row starts"),
        (1, 1, 2, "not one of the states"),
        (1, 0, -1, "not one of the states"),
    ],
)
def test_chains_that_lead_out_of_themselves_are_refused(part, place, value, said):
    indptr, indices, data = damaged(part, place, value)
    two = np.zeros(2)
    calls = [
        lambda: graph.closed_classes_of_sparse(indptr, indices, data, 0.0),
        lambda: graph.strong_components(indptr, indices, 2),
        lambda: successors.reached(indptr, indices, np.ones(2, np.bool_)),
        lambda: successors.support_of_sparse(indptr, indices, data, 2, 0.0),
        lambda: csr.mixed(indptr, indices, data, np.ones((2, 1))),
        lambda: krylov.solve(indptr, indices, data, False, two[None], two[None].copy(), 1e-9, 1.0, 10),
        lambda: sweeps.sweep_until(indptr, indices, data, two, two.copy(), 1e-9, 10),
        lambda: sweeps.step_until(indptr, indices, data, np.full(2, 0.5), 1e-9, 10),
        lambda: nested_dissection.neighbours(indptr, indices, 2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=said):
            call()


def test_products_and_posteriors_check_what_they_are_given():
    indptr, indices, data = damaged(0, 2, 9)
    with pytest.raises(ValueError, match="lead out of its entries"):
        products.sparse_times(indptr, indices, data, np.ones(2))
    with pytest.raises(ValueError, match="lead out of its entries"):
        products.times_sparse(np.ones(2), indptr, indices, data, 2)
    with pytest.raises(ValueError, match="not descend"):
        dirichlet.with_rest(np.array([0, 2, 1], np.int32), np.ones(1), np.ones(2))
    nothing = np.empty(0, np.int64)
    for numbers in ([-1], [2, 1], [4]):
        seen = np.array(numbers)
        with pytest.raises(ValueError, match="ascending order"):
            dirichlet.posterior(nothing, np.empty(0), np.ones(2), seen, np.ones_like(seen), 2)


def test_the_rows_of_a_policy_are_mixed_in_their_order():
    """Two actions: one stays or moves on, the other moves on."""
    indptr, indices = np.array([0, 2, 3, 5, 6], np.int32), np.array([0, 1, 1, 1, 0, 0], np.int32)
    data = np.array([0.25, 0.75, 1.0, 0.5, 0.5, 1.0])
    first, to, mixed = csr.mixed(indptr, indices, data, np.array([[0.5, 0.5], [0.0, 1.0]]))
    assert (first.tolist(), to.tolist(), mixed.tolist()) == ([0, 2, 3], [0, 1, 0], [0.125, 0.875, 1.0])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"indptr": np.array([0, 0], np.int32), "successors": 0, "cdf": 0, "outcomes": (1, 0)}, "leads nowhere"),
        ({"indptr": np.array([0, 1], np.int32), "successors": np.array([1], np.int32)}, "leads nowhere"),
        (
            {"policy": np.ones((1, 1, 0)), "indptr": np.array([0], np.int32), "visits": 0, "cost_sums": (1, 0)},
            "actions",
        ),
        ({"learner": rounds.LastRound(2)}, "learns another model"),
        ({"action_uniforms": (3, 0)}, "a random number for its action"),
        ({"model_uniforms": (3, 0)}, "a random number for its action"),
        ({"next_checkpoint": -1}, "has not begun"),
        ({"emission": 4}, "an emission that there is not"),
        ({"ranges": (2, 2)}, "ranges of another number of costs"),
        ({"emission": 1}, "costs that are drawn need a random number each"),
        ({"at_checkpoints": (1, 2)}, "another number of costs"),
        ({"largest_at_checkpoints": (1, 1)}, "another number of costs"),
        ({"log": 2}, "more rounds than random numbers"),
    ],
)
def test_a_loop_without_what_it_needs_is_not_begun(changed, said):
    whole = {"indptr": np.int32, "successors": np.int32, "caps": np.int64, "visits": np.int64, "log": np.int64}
    given = {
        "state": 0, "step": 0, "steps": 3, "max_steps": 9, "policy": np.ones((1, 1, 1)), "caps": 0,
        "indptr": np.array([0, 1], np.int32), "successors": 1, "cdf": np.ones(1), "outcomes": (1, 1),
        "emission": 0, "ranges": (2, 1), "action_uniforms": (3, 1), "model_uniforms": (3, 1), "visits": 1, "log": 3,
        "cost_sums": (1, 1), "cumulative": 1, "thresholds": 0, "largest": 0, "rounds": 0,
        "checkpoints": np.array([2]), "next_checkpoint": 0, "at_checkpoints": (1, 1),
        "largest_at_checkpoints": (1, 0), "learner": None,
    }  # fmt: skip
    as_they_are = ("state", "step", "steps", "max_steps", "emission", "rounds", "next_checkpoint", "learner")

    def played(**other):
        made = {
            name: x if name in as_they_are or isinstance(x, np.ndarray) else np.zeros(x, whole.get(name, float))
            for name, x in (given | other).items()
        }
        model, episode, run = (
            kind(**{name: made[name] for name in fields})
            for kind, fields in (
                (SimpleNamespace, ("indptr", "successors", "cdf", "outcomes", "emission", "ranges")),
                (play_loop.EpisodeInPlay, play_loop.EpisodeInPlay._fields),
                (play_loop.RunSoFar, play_loop.RunSoFar._fields),
            )
        )
        return play_loop.play(model, episode, run, made["learner"])

    assert played() == (0, 3, 1, False)
    with pytest.raises(ValueError, match=said):
        played(**changed)
