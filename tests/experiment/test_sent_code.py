"""User code on a local Dask cluster: it is sent to the workers, and no other version runs."""

import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from psconrl.base.named_code import digest, find_code, sources
from psconrl.errors import ConfigError
from psconrl.experiment import sent_code
from psconrl.experiment.job import execute, need_the_same
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.sent_code import Sending, place, sources_of
from psconrl.experiment.spec_file import parse_spec
from sweeps import AtOnce, content

pytestmark = pytest.mark.cluster

CODE = """
import numpy as np
import psconrl
from {own}_help.share import SHARE

class Mixed:
    def __init__(self, n_states, n_actions):
        self.policy = np.full((n_states, n_actions), (1 - SHARE) / (n_actions - 1))
        self.policy[:, 0] = SHARE
    def begin(self, state):
        return psconrl.Episode(self.policy, max_steps=50)
    def end(self, record):
        pass

def rover(slip=0.1):
    return psconrl.load("marsrover-4x4", slip=slip)

def hole(state, action, next_state):
    return float(next_state in (5, 7, 11, 12))
"""

SPEC = """
replicates = 3
[agents.mixed]
agent = "{own}.py:Mixed"
[experiments.a]
env = "{own}:rover"
horizon = 300
[experiments.b]
env = "gym:FrozenLake-v1"
options = {{ cost = "{own}:hole", limits = {{ holes = 0.1 }} }}
horizon = 100
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with code of a unique name; this process forgets it afterwards."""
    own = f"sent_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{own}_help").mkdir()
    (tmp_path / f"{own}_help" / "__init__.py").write_text("")
    (tmp_path / f"{own}_help" / "share.py").write_text("SHARE = 0.5\n")
    (tmp_path / f"{own}_help" / "unused.py").write_text("")
    (tmp_path / f"{own}.py").write_text(CODE.format(own=own))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("sent_test_") or name.startswith(own)]:
        del sys.modules[name]


@pytest.fixture
def own(folder):
    return next(path.stem for path in folder.glob("sent_*.py"))


def jobs_of(folder, own):
    return parse_spec(SPEC.format(own=own), folder=folder).jobs()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # of Dask's own code
def test_a_cluster_runs_code_that_only_the_sender_has_and_then_its_next_version(folder, own, cluster):
    jobs = jobs_of(folder, own)
    run_sweep(jobs, folder / "here.db", executor=AtOnce())
    with cluster.get_client() as client:
        outcome = run_sweep(jobs, folder / "there.db", executor=client)
        assert (outcome.done, outcome.errors) == (6, [])
        assert content(folder / "there.db") == content(folder / "here.db")
        where = client.run(lambda: [path for path in sys.path if "psconrl-code-" in path])
        assert all(len(paths) == 1 for paths in where.values())  # it was sent
        (folder / f"{own}_help" / "share.py").write_text("SHARE = 0.9\n")
        changed = jobs_of(folder, own)
        assert {job.hash for job in changed}.isdisjoint({job.hash for job in jobs if job.label == "mixed"})
        assert run_sweep(changed, folder / "there.db", executor=client).done == 6
        run_sweep(changed, folder / "here.db", executor=AtOnce())
    assert content(folder / "there.db") == content(folder / "here.db")


@pytest.mark.filterwarnings("ignore")
def test_what_a_worker_lacks_is_one_line_before_anything_runs(folder, own, cluster, monkeypatch):
    jobs = jobs_of(folder, own)
    monkeypatch.setattr("psconrl.experiment.executors.sources_of", lambda jobs: {})  # as if it were installed here
    with cluster.get_client() as client:
        with pytest.raises(ConfigError) as error:
            run_sweep(jobs, folder / "r.db", executor=client)
        line = str(error.value)
        assert line.startswith("worker tcp://127.0.0.1:")
        assert f"{own}:Mixed: there is no module '{own}'" in line
        assert "\n" not in line
        files = dict(sources_of(jobs)) | {f"{own}_help/share.py": b"SHARE = 0.8\n"}
        monkeypatch.setattr("psconrl.experiment.executors.sources_of", lambda jobs: files)
        with pytest.raises(ConfigError, match=r"worker tcp://\S+: the code of the agent or of the env"):
            run_sweep(jobs, folder / "r.db", executor=client)
        monkeypatch.undo()
        monkeypatch.setattr("psconrl.experiment.sent_code.versions", lambda: {"numpy": "0.1"})
        with pytest.raises(ConfigError, match=r"worker tcp://\S+: has other versions than this machine: .*numpy"):
            run_sweep(jobs, folder / "r.db", executor=client)


def test_what_is_sent_is_what_the_digest_covers(folder, own):
    jobs = jobs_of(folder, own)
    assert set(sources_of(jobs)) == {f"{own}.py", f"{own}_help/__init__.py", f"{own}_help/share.py"}
    assert sources("psconrl") == sources("colorsys:rgb_to_hsv") == {}  # what is installed is there
    assert sources_of(parse_spec('[experiments.box]\nagents = ["uniform"]').jobs()) == {}


def test_what_is_too_much_or_ambiguous_is_not_sent(folder, own, monkeypatch):
    jobs = jobs_of(folder, own)
    monkeypatch.setattr(sent_code, "MOST_BYTES", 100)
    with pytest.raises(ConfigError, match=r"is \d+ bytes, more than 100: make it a package"):
        sources_of(jobs)
    monkeypatch.setattr(sent_code, "sources", lambda name: {"one.py": name.encode()})
    with pytest.raises(ConfigError, match=r"two files that would be sent to the workers are called one.py"):
        sources_of(jobs)


def test_a_worker_finds_what_was_placed_first_whatever_it_has(folder, own, monkeypatch):
    jobs = jobs_of(folder, own)
    files = sources_of(jobs)
    before = find_code(f"{own}:Mixed")
    place(files)
    try:
        assert "psconrl-code-" in find_code(f"{own}:Mixed").__init__.__code__.co_filename
        assert find_code(f"{own}:Mixed") is not before
        need_the_same(jobs[0])
        place(dict(files) | {f"{own}_help/share.py": b"SHARE = 0.7\n"})
        assert find_code(f"{own}:Mixed")(2, 2).policy[0, 0] == 0.7
        with pytest.raises(ConfigError, match="differs here"):
            need_the_same(jobs[0])
        assert "differs here" in execute(jobs[0]).error
        place(files)
        assert find_code(f"{own}:Mixed")(2, 2).policy[0, 0] == 0.5
        need_the_same(jobs[0])
        assert sum("psconrl-code-" in path for path in sys.path) == 1
    finally:
        for each in sent_code._folders.values():
            assert Path(each.name).parent == Path(tempfile.gettempdir())
            each.cleanup()
        sent_code._folders.clear()


def test_a_thread_of_the_sender_has_everything(folder, own):
    jobs = jobs_of(folder, own)
    with ThreadPoolExecutor(1) as threads:
        sending = Sending(threads, sources_of(jobs))
        assert sending.submit(execute, jobs[0]).result().error == ""
        assert not any("psconrl-code-" in path for path in sys.path)
        sending.shutdown(cancel_futures=True)
        sending.shutdown()


def test_a_process_that_lives_on_never_runs_old_code(folder, own):
    """As in a notebook: the file is changed, to the same size within the same second, and named again."""
    assert find_code(f"{own}:Mixed", folder)(2, 2).policy[0, 0] == 0.5
    first = digest(f"{own}:Mixed")
    for share in ("0.6", "0.7", "0.5"):
        (folder / f"{own}_help" / "share.py").write_text(f"SHARE = {share}\n")
        assert find_code(f"{own}:Mixed")(2, 2).policy[0, 0] == float(share)
    assert digest(f"{own}:Mixed") == first
    same = find_code(f"{own}:Mixed")
    assert find_code(f"{own}:Mixed") is same  # it is not imported again without need
    source = folder / f"{own}.py"
    source.write_text(textwrap.dedent(source.read_text()) + "(\n")
    with pytest.raises(ConfigError, match="its import failed: SyntaxError"):
        find_code(f"{own}:Mixed")
    source.unlink()
    with pytest.raises(ConfigError, match="there is no module"):
        find_code(f"{own}:Mixed")
