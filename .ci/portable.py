"""Run tests as on a plainer processor: ``python .ci/portable.py TEST_FILE ...``.

Once with everything that NumPy chooses by the processor switched off, once with the kernels compiled for a processor of
which nothing is known. What NumPy was built to need (its baseline) and what OpenBLAS chooses stay.
"""

import os
import subprocess
import sys
import tempfile

try:
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
except ImportError:  # before NumPy 2
    from numpy.core._multiarray_umath import __cpu_dispatch__, __cpu_features__

chosen = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]


def tests(what: str, **environment: str) -> int:
    """Their exit code, in an environment of their own and with a cache of their own."""
    print(f"--- {what}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        own = os.environ | {"NUMBA_CACHE_DIR": cache} | environment
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:]]
        return subprocess.run(command, env=own, check=False).returncode


failed = 0
if chosen:
    failed += tests(f"NumPy without {' '.join(chosen)}", NPY_DISABLE_CPU_FEATURES=" ".join(chosen)) != 0
else:
    print("--- NumPy has nothing to switch off on this processor")
failed += tests("kernels for any processor of this kind", NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") != 0
sys.exit(failed)
