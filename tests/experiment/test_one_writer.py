"""One writer of a results file at a time, and always one: among processes and threads, after a kill or a fork."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from psconrl.errors import StoreError
from psconrl.experiment.store import Store

OPENINGS = 15  # by each writer
# Opens the file some times, retrying at once if it is taken, and checks each time that no other writer is inside.
WRITING = """
import os, sys
from psconrl.errors import StoreError
from psconrl.experiment.store import Store


def write(path, openings):
    done = overlaps = 0
    while done < openings:
        try:
            with Store.writer(path):
                try:
                    os.close(os.open(path + ".inside", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    overlaps += 1
                else:
                    os.unlink(path + ".inside")
                done += 1
        except StoreError as error:
            assert "another sweep is writing to it" in str(error), str(error)
    return overlaps
"""
FORKED = """
pids = []
for _ in range(int(sys.argv[2])):
    pids.append(os.fork())
    if not pids[-1]:
        os._exit(min(write(sys.argv[1], int(sys.argv[3])), 100))
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""
# Takes the lock, makes a child that outlives it and prints its number, and waits to be killed.
HOLDING = """
import os, subprocess, sys, time
from psconrl.experiment.store import Store

with Store.writer(sys.argv[1]):
    if sys.argv[2] == "started":
        print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
    elif not os.fork():
        print(os.getpid(), flush=True)
        time.sleep(60)
        os._exit(0)
    time.sleep(60)
"""
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def run(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


@fork
@pytest.mark.parametrize("writers", [2, 8])
def test_processes_that_retry_at_once_never_overlap_and_all_get_in(tmp_path, writers):
    with run(WRITING + FORKED, tmp_path / "r.db", writers, OPENINGS) as process:
        out, _ = process.communicate(timeout=300)
    assert out.strip() == str([0] * writers)


def test_threads_that_retry_at_once_never_overlap_and_all_get_in(tmp_path):
    names = {}
    exec(WRITING, names)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(names["write"], [str(tmp_path / "r.db")] * 8, [OPENINGS] * 8)) == [0] * 8


@fork
@pytest.mark.parametrize("child", ["forked", "started"])
def test_after_a_kill_the_next_writer_gets_in_at_once(tmp_path, child):
    """Also if a process that the killed one has made still runs."""
    path = tmp_path / "r.db"
    with run(HOLDING, path, child) as process:
        left = int(process.stdout.readline())
        try:
            with pytest.raises(StoreError, match="another sweep is writing to it"), Store.writer(path):
                pass
            process.kill()
            process.wait()
            with Store.writer(path) as store:
                store.note({"title": "mine"})
        finally:
            os.kill(left, 9)


@fork
def test_a_forked_process_does_not_hold_the_lock_of_its_parent(tmp_path):
    code = """
with Store.writer(sys.argv[1]):
    ready, go = os.pipe()
    pid = os.fork()
    if pid:
        try:
            with Store.writer(sys.argv[1]):
                print("twice")
        except StoreError:
            pass
if pid:
    os.write(go, b"x")
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
else:
    os.read(ready, 1)
    os._exit(write(sys.argv[1], 3))
"""
    with run(WRITING + code, tmp_path / "r.db") as process:
        out, _ = process.communicate(timeout=300)
    assert out.split() == ["0"]


def test_another_name_of_the_file_does_not_help(tmp_path):
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "other.db"
    link.symlink_to(tmp_path / "r.db")
    with Store.writer(tmp_path / "r.db"):
        for path in (link, Path(os.path.relpath(tmp_path / "r.db"))):
            with pytest.raises(StoreError, match="another sweep is writing to it"), Store.writer(path):
                pass
    with Store.writer(link):
        pass


def test_a_file_with_two_hard_links_is_not_written(tmp_path):
    """SQLite keeps a log beside each name, so that two writers would not see each other."""
    with Store.writer(tmp_path / "r.db"):
        os.link(tmp_path / "r.db", tmp_path / "other.db")
        with pytest.raises(StoreError, match="has several names"), Store.writer(tmp_path / "other.db"):
            pass
    (tmp_path / "r.db").unlink()
    with Store.writer(tmp_path / "other.db"):
        pass


def test_a_writer_that_raises_lets_the_next_one_in(tmp_path):
    with pytest.raises(BlockingIOError), Store.writer(tmp_path / "r.db"):
        raise BlockingIOError  # not the lock's
    with Store.writer(tmp_path / "r.db"):
        pass


def test_a_folder_that_cannot_be_written_is_an_error_at_once(tmp_path):
    (tmp_path / "r.db.psconrl-lock").mkdir()
    with pytest.raises(StoreError, match="cannot be written"), Store.writer(tmp_path / "r.db"):
        pass


@fork
def test_forks_at_any_time_keep_no_writer_out(tmp_path):
    """A process that was just forked shares the lock until it has closed its file."""
    stop = threading.Event()

    def open_and_close():
        while not stop.is_set():
            with Store.writer(tmp_path / "r.db"):
                pass

    with ThreadPoolExecutor(1) as threads:
        opened = threads.submit(open_and_close)
        try:
            for _ in range(50):
                pid = os.fork()
                if not pid:
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
        finally:
            stop.set()
        opened.result()
