"""Scaling and stress tests that take minutes: ``make test-slow``."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from models import KINDS, random_cmdp
from psconrl import Status, plan

pytestmark = pytest.mark.slow

LARGE = """
import resource, sys
import numpy as np
from scipy.sparse import csr_array
import psconrl
S, A, B = 100_000, 4, 10
rng = np.random.default_rng(0)
rows = np.repeat(np.arange(S * A), B)
P = csr_array((rng.dirichlet(np.ones(B), size=S * A).ravel(), (rows, rng.integers(0, S, rows.size))), shape=(S * A, S))
cmdp = psconrl.CMDP(P, rng.random((2, S, A)), [0.35])
plan = psconrl.plan(cmdp)
assert plan.certificate.holds and abs(plan.gap) < 1e-8, plan
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)
"""


def test_a_hundred_thousand_states_within_two_gigabytes():
    result = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 2.0
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0


@pytest.mark.parametrize("kind", KINDS)
def test_four_hundred_models_of_every_kind(kind):
    rng = np.random.default_rng(99)
    for _ in range(400):
        arguments = (
            kind, int(rng.integers(1, 12)), int(rng.integers(1, 5)), int(rng.integers(0, 6)),
            int(rng.integers(2**32)), float(rng.choice((-0.5, -0.1, 0.0, 0.02, 0.3, 1.0))),
        )  # fmt: skip
        cmdp = random_cmdp(*arguments)
        ours, referee = plan(cmdp), plan(cmdp, method="lp")
        assert ours.status is not Status.UNCERTIFIED, arguments
        if Status.UNCERTIFIED in (ours.status, referee.status):
            continue
        if ours.status is Status.OPTIMAL and referee.status is Status.OPTIMAL:
            assert ours.value == pytest.approx(referee.value, abs=1e-7), arguments
        else:
            assert (ours.status is Status.INFEASIBLE) == (referee.status is Status.INFEASIBLE), arguments
