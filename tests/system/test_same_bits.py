"""The same seed gives the same run to the last bit, whichever instructions the processor has.

The digests in ``data/run_digests.json`` were computed once. A change that is meant to change runs recomputes them:
``python tests/run_digests.py > tests/data/run_digests.json``; any other change must leave them unchanged.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from psconrl.kernels import CHOICES, _cpu
from run_digests import plan_digest, plans, run_digest, runs

EXPECTED = json.loads((Path(__file__).parents[1] / "data" / "run_digests.json").read_text(encoding="utf-8"))
SCRIPT = Path(__file__).parents[1] / "run_digests.py"


def plainer():
    """Settings that restrict NumPy, OpenBLAS and the C library to the baseline instruction set."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    except ImportError:  # before NumPy 2
        from numpy.core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    chosen = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    masked = "glibc.cpu.hwcaps=-AVX2,-AVX_Usable,-AVX2_Usable,-AVX512F,-FMA,-FMA_Usable,-FMA4"
    return {
        "NPY_DISABLE_CPU_FEATURES": chosen,
        "OPENBLAS_CORETYPE": "Prescott" if _cpu.instruction_sets() else "ARMV8",
        "GLIBC_TUNABLES": masked,
    }


def test_everything_that_is_computed_has_a_digest():
    assert [key for key, _ in (*runs(), *plans())] == list(EXPECTED)


@pytest.mark.part(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("key", "arguments"), list(runs()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_run_is_that_of_every_other_machine(key, arguments):
    assert run_digest(*arguments) == EXPECTED[key]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("key", "arguments"), list(plans()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_plan_is_that_of_every_other_machine(key, arguments):
    assert plan_digest(*arguments) == EXPECTED[key]


@pytest.mark.full
@pytest.mark.parametrize("kernels", [name for name in CHOICES if name != "python"])
@pytest.mark.parametrize("plain", [False, True], ids=["libraries as they are", "plain libraries"])
def test_no_instruction_set_changes_a_bit(kernels, plain):
    if kernels not in ("baseline", *_cpu.instruction_sets()):
        pytest.skip(f"this processor has no {kernels}")
    environment = os.environ | {"PSCONRL_KERNELS": kernels} | (plainer() if plain else {})
    ran = subprocess.run([sys.executable, SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == EXPECTED
