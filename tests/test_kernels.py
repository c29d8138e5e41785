"""Which kernels are used, what a wrong choice says, and that sources and extension modules are the same program."""

import doctest
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from psconrl import kernels
from psconrl.kernels import _cpu, counts, play

SOURCES = sorted(path.stem for path in Path(kernels.__file__).parent.glob("[!_]*.py"))


def python(code, **environment):
    """Exit code, output and last line of the errors of a program."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1]


def test_the_widest_instruction_set_is_chosen():
    code = "from psconrl import kernels; from psconrl.kernels import elimination; print(kernels.INSTRUCTIONS)"
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
        print(run_digests.run_digest("psconrl", "riverswim", {"length": 4}, False))
        print(run_digests.plan_digest("garnet", {"states": 6, "constraints": 2}))
        print(run_digests.plan_digest("garnet", {"states": 40, "sparse": True}))
    """
    compiled = python(code)
    assert compiled[0] == 0, compiled
    assert python(code, PSCONRL_KERNELS="python") == compiled


@pytest.mark.parametrize("number", [-1, 8, 10**9])
def test_transitions_that_there_are_not_are_refused_wherever_they_stand(number):
    """In the middle, too: the first and the last of unsorted numbers say nothing of the others."""
    numbers, times = np.array([0, number, 1]), np.ones(3, np.int64)
    with pytest.raises(ValueError, match="pairs that there are not"):
        counts.visits_of(numbers, times, 4, 2)
    with pytest.raises(ValueError, match="that the table does not have"):
        counts.add_to_table(np.zeros((4, 2), np.int64), numbers, times)


def test_a_model_that_claims_more_entries_than_it_has_is_not_played():
    policy, costs = np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    for indptr in ([0, 10**6], [-1, 1]):
        with pytest.raises(ValueError, match="arrays have different sizes"):
            play.expected_averages(policy, np.array(indptr), np.zeros(1, np.int64), np.ones(1), costs, 0)
