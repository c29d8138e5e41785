"""Which kernels are used, what a wrong choice says, and that sources and extension modules are the same program."""

import doctest
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

from psconrl import kernels
from psconrl.kernels import _cpu

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
