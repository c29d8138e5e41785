"""The code digest of a result covers all modules that a run imports, and nothing that only stores or shows it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psconrl
from psconrl.experiment.versions import digest_of_job, job_modules

PACKAGE = Path(psconrl.__file__).parent

# Runs on a model, on a system and on a Gymnasium environment. Prints which files of the package were imported for them.
RUNS = """
import sys
from psconrl.experiment.job import Job, execute

for env, agent in (("box", "c-ucrl"), ("inventory", "psconrl"), ("gym:FrozenLake-v1", "cmdp-psrl")):
    result = execute(Job("e", env, {}, None, agent, agent, {}, True, 40, 4, "deterministic", None, None, 7, 0, ""))
    assert not result.error, result.error
print(*[m.__file__ for name, m in sys.modules.items() if name.startswith("psconrl.") and m.__file__], sep="\\n")
"""


@pytest.fixture
def copied(tmp_path):
    return Path(
        shutil.copytree(PACKAGE, tmp_path / "psconrl", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    )


def names(paths, root):
    return {Path(path).relative_to(root).as_posix() for path in paths}


def test_everything_that_runs_import_is_covered():
    """The modules found in the code hold those that Python imports during some runs."""
    done = subprocess.run([sys.executable, "-c", RUNS], capture_output=True, text=True, check=True)
    imported = names(done.stdout.split(), PACKAGE)
    found = names(job_modules(PACKAGE), PACKAGE)
    assert len(imported) > 200
    assert {name for name in imported if not name.startswith("kernels/")} <= found
    assert {name.partition("/")[0] for name in found} >= {"systems", "planning", "learning", "simulation", "envs"}
    assert not [name for name in found if name.startswith(("cli/", "report/", "experiment/store", "experiment/spec"))]


@pytest.mark.parametrize(
    ("name", "old", "new", "is_same"),
    [
        ("systems/noise.py", "(factors < 1.0)", "(factors < 0.9)", False),
        ("base/sizes.py", "PLANNED_DENSE_STATES = 256", "PLANNED_DENSE_STATES = 255", False),
        ("kernels/draws/gamma.py", "import cython", "import cython  # a comment", False),
        ("kernels/linear/elimination.pxd", "# Decl", "# The decl", False),
        ("envs/maps/box.txt", "B", ".", False),
        ("systems/noise.py", '"""', '"""Perhaps. ', True),
        ("report/style.py", "import", "import os\nimport", True),
        ("experiment/store.py", "import", "import os\nimport", True),
    ],
)  # fmt: skip
def test_the_digest_changes_with_what_runs_depend_on(copied, name, old, new, is_same):
    before = digest_of_job(copied)
    path = copied / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert (digest_of_job(copied) == before) is is_same
