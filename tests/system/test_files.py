"""Atomic writes: leftovers of killed writers are removed, those of live writers are not."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import psconrl
from psconrl.base.files import write_atomically
from psconrl.errors import ConfigError
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from sweeps import AtOnce

SLOW = """
import sys, time
from pathlib import Path
from psconrl.errors import ConfigError
from psconrl.base.files import write_atomically

def write(f):
    f.write(b"half")
    f.flush()
    print("writing", flush=True)
    sys.stdin.readline()

write_atomically(Path(sys.argv[1]), write, ConfigError)
"""


@pytest.fixture
def writer(tmp_path):
    """Start processes that write half of a file and wait for a line of input."""
    started = []

    def start(name="run.npz"):
        command = [sys.executable, "-c", SLOW, str(tmp_path / name)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(child)
        assert child.stdout.readline() == "writing\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def put(path, content=b"whole"):
    write_atomically(path, lambda f: f.write(content), ConfigError)


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path, writer):
    for _ in range(3):
        child = writer()
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert len(names(tmp_path)) == 3
    put(tmp_path / "run.npz")
    assert names(tmp_path) == ["run.npz"]


def test_a_living_writer_and_other_files_are_left_alone(tmp_path, writer):
    others = [".other.npz.01234567.part", ".run.npz.0123456.part", ".run.npz.zzzzzzzz.part", "run.npz.01234567.part"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    alive = writer()
    put(tmp_path / "run.npz")
    assert set(others) < set(names(tmp_path))
    assert len(names(tmp_path)) == len(others) + 2
    alive.communicate("\n")
    assert alive.returncode == 0
    assert (tmp_path / "run.npz").read_bytes() == b"half"
    assert names(tmp_path) == sorted([*others, "run.npz"])


def test_many_writers_at_once_all_succeed(tmp_path):
    """No process takes another's part file for a leftover, not even between its creation and its locking."""
    failures = []

    def write(k):
        try:
            for _ in range(50):
                put(tmp_path / "run.npz", bytes([k]) * 1000)
        except ConfigError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=[k]) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert names(tmp_path) == ["run.npz"]
    content = (tmp_path / "run.npz").read_bytes()
    assert content == content[:1] * 1000


def test_a_part_that_was_taken_away_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """The moment between the creation of a part file and its locking, as a cleaner may see it."""
    plain, taken = Path.open, []

    def opened(path, *args, **kwargs):
        f = plain(path, *args, **kwargs)
        if not taken and path.name.endswith(".part"):
            taken.append(path)
            path.unlink()
        return f

    monkeypatch.setattr(Path, "open", opened)
    put(tmp_path / "run.npz")
    assert taken
    assert (tmp_path / "run.npz").read_bytes() == b"whole"


def test_a_full_disk_leaves_the_old_file(tmp_path):
    put(tmp_path / "run.npz", b"old")

    def full(f):
        f.write(b"new")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ConfigError, match=r"run\.npz: cannot be written \(No space left"):
        write_atomically(tmp_path / "run.npz", full, ConfigError)
    assert names(tmp_path) == ["run.npz"]
    assert (tmp_path / "run.npz").read_bytes() == b"old"


WRITING = [
    "export r.db -o out",
    "report r.db -o out/page.html",
    "solve marsrover-4x4 --plot out/map.png",
    "pareto marsrover-4x4 --points 3 --plot out/curve.pdf",
]
FULL_DISK = """
import resource, signal, sys
sys.dont_write_bytecode = True  # a module cut at 100 bytes would break every later import
import matplotlib.font_manager
from psconrl.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
for command in {commands!r}:
    try:
        main(command.split())
    except SystemExit as end:
        print(end.code or 0)
"""


@pytest.mark.full
def test_commands_on_a_full_disk_leave_nothing_half_done(tmp_path):
    """A limit on file size, which a writer sees like a full disk."""
    spec = '[experiments.counterexample]\nagents = ["uniform"]\nhorizon = 200\nreplicates = 2\n'
    run_sweep(parse_spec(spec).jobs(), tmp_path / "r.db", executor=AtOnce())
    (tmp_path / "out").mkdir()
    code = [sys.executable, "-c", FULL_DISK.format(commands=WRITING)]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "2\n" * len(WRITING), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(WRITING)
    assert all("cannot be written (File too large)" in line for line in lines)
    assert names(tmp_path / "out") == []


def test_saving_after_a_kill_cleans_up(tmp_path, writer):
    """A full disk, through the library's public functions."""
    child = writer("agent.npz")
    child.kill()
    child.wait()
    psconrl.PSConRL(2, 2, [0.5], seed=0).save(tmp_path / "agent.npz")
    assert names(tmp_path) == ["agent.npz"]
