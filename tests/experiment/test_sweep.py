"""Sweeps that are killed, spread over processes and clusters, or broken: the results are always the same."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from psconrl.cli import main
from psconrl.errors import ConfigError, StoreError
from psconrl.experiment import runner
from psconrl.experiment.job import Job
from psconrl.experiment.runner import run_sweep
from psconrl.experiment.spec_file import parse_spec
from psconrl.experiment.store import Store
from psconrl.simulation.interrupt import Interrupted
from sweeps import AtOnce, content, die_of_third, elsewhere

pytestmark = pytest.mark.cluster

SPEC = """
seed = 5
replicates = 5
[experiments.small]
env = "marsrover-4x4"
horizon = 5_000
checkpoints = 10
agents = ["psconrl", "cmdp-psrl"]

[experiments.drawn]
env = "dirichlet"
options = { states = 6 }
draw = true
evaluate = true
checkpoints = "log"
horizon = 2_000
agents = ["psconrl"]
probe = [0, 0, 1]
"""


TINY = '[experiments.counterexample]\nagents = ["uniform"]\nhorizon = 20\nreplicates = 6\n'


@pytest.fixture(scope="module")
def jobs():
    return parse_spec(SPEC).jobs()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, jobs):
    path = tmp_path_factory.mktemp("sweep") / "whole.db"
    outcome = run_sweep(jobs, path, executor=AtOnce())
    assert (outcome.done, outcome.failed, outcome.known) == (len(jobs), 0, 0)
    return path


def test_two_workers_give_the_bits_of_one(tmp_path, jobs, uninterrupted):
    run_sweep(jobs, tmp_path / "two.db", workers=2)
    assert content(tmp_path / "two.db") == content(uninterrupted)


def test_the_order_does_not_matter_and_nothing_runs_twice(tmp_path, jobs, uninterrupted):
    path = tmp_path / "parts.db"
    with ThreadPoolExecutor(2) as threads:
        assert run_sweep(jobs[::-3], path, executor=threads).done == len(jobs[::-3])
        outcome = run_sweep(jobs, path, executor=threads)
        assert outcome.known == len(jobs[::-3])
        assert outcome.done == len(jobs) - outcome.known
        again = run_sweep(jobs, path, executor=threads)
        assert (again.known, again.done) == (len(jobs), 0)
        assert threads.submit(int).result() == 0  # a borrowed executor is not shut down
    assert content(path) == content(uninterrupted)


def wait_for(condition, seconds=600.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "took too long"
        time.sleep(0.02)


def finished(path):
    try:
        with Store(path) as store:
            return len(store.finished())
    except StoreError:
        return 0


def children(pid):
    out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in out.stdout.split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def start_sweep(tmp_path):
    """Start the command, and leave no process of it running, whatever happens."""
    command = [sys.executable, "-m", "psconrl", "sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "r.db")]
    started = []

    def start(*options, spec=SPEC):
        (tmp_path / "spec.toml").write_text(spec)
        started.append(
            subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_kill_9_loses_only_runs_in_flight_and_the_lock_it_leaves_blocks_no_process(
    tmp_path, jobs, uninterrupted, start_sweep
):
    process = start_sweep("--workers", "2")
    wait_for(lambda: finished(tmp_path / "r.db") >= 2)
    workers = children(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(alive(pid) for pid in workers))  # no worker outlives the sweep
    kept = finished(tmp_path / "r.db")
    assert 2 <= kept < len(jobs)
    assert list(tmp_path.glob("*lock*"))
    outcome = run_sweep(jobs, tmp_path / "r.db", executor=AtOnce())
    assert outcome.known == kept
    assert outcome.left == 0
    assert content(tmp_path / "r.db") == content(uninterrupted)


@pytest.mark.full
@pytest.mark.usefixtures("no_processes")
def test_ctrl_c_ends_it_early_and_the_same_command_goes_on(tmp_path, uninterrupted, start_sweep, capsys):
    process = start_sweep("--workers", "1")
    wait_for(lambda: finished(tmp_path / "r.db") >= 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, out + err
    assert "the same command continues" in out
    with pytest.raises(SystemExit) as ended:
        main(process.args[3:])
    assert not ended.value.code
    assert "were there" in capsys.readouterr().out
    assert content(tmp_path / "r.db") == content(uninterrupted)


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["kill", "Ctrl-C"])
def test_a_signal_leaves_the_file_free_and_no_traceback_however_often_it_comes(tmp_path, start_sweep, number):
    process = start_sweep("--workers", "1")
    wait_for(lambda: finished(tmp_path / "r.db") >= 1)
    while process.poll() is None:
        process.send_signal(number)
        time.sleep(0.02)
    err = process.communicate(timeout=60)[1]
    assert process.returncode in (130, -number), err  # after Python has exited, the signal ends the rest
    assert "Traceback" not in err
    with Store.writer(tmp_path / "r.db"):
        pass


def interrupted(*arguments, **options):
    """The outcome of a sweep ended by Ctrl-C."""
    with pytest.raises(Interrupted) as raised:
        run_sweep(*arguments, **options)
    assert isinstance(raised.value, KeyboardInterrupt)  # so that the caller's own loop ends as well
    outcome = raised.value.outcome
    assert outcome.interrupted
    return outcome


class InterruptedAtWork(ThreadPoolExecutor):
    """Ctrl-C comes at the worst moment: in the middle of a call that holds locks."""

    def __init__(self):
        super().__init__(2)
        self.begun = self.ended = 0

    def submit(self, fn, /, *args, **kwargs):
        self.begun += 1
        if self.begun == 3:
            signal.raise_signal(signal.SIGINT)
        future = super().submit(fn, *args, **kwargs)
        self.ended += 1
        return future


@pytest.mark.full
def test_ctrl_c_never_tears_the_executor_apart(tmp_path, jobs, uninterrupted):
    handler = signal.getsignal(signal.SIGINT)
    with InterruptedAtWork() as executor:
        interrupted(jobs, tmp_path / "r.db", executor=executor)
    assert executor.begun == executor.ended
    assert signal.getsignal(signal.SIGINT) is handler
    assert run_sweep(jobs, tmp_path / "r.db", executor=AtOnce()).left == 0
    assert content(tmp_path / "r.db") == content(uninterrupted)


class InterruptedBetweenRuns(AtOnce):
    def submit(self, fn, /, *args, **kwargs):
        future = super().submit(fn, *args, **kwargs)
        if args[0].replicate == 2:
            signal.raise_signal(signal.SIGINT)
        return future


def test_what_was_done_before_ctrl_c_is_kept(tmp_path, jobs):
    outcome = interrupted(jobs[:6], tmp_path / "r.db", executor=InterruptedBetweenRuns())
    assert (outcome.done, outcome.left) == (3, 3)


def test_ctrl_c_in_the_last_moment_is_not_lost(tmp_path, jobs):
    """The next steps, such as drawing, are skipped as well."""

    def last(outcome):
        if not outcome.left:
            signal.raise_signal(signal.SIGINT)

    outcome = interrupted(jobs[:2], tmp_path / "r.db", executor=AtOnce(), progress=last)
    assert (outcome.done, outcome.left) == (2, 0)


def test_ctrl_c_stays_ignored_where_it_was(tmp_path, jobs):
    """As in a script's job in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        executor = InterruptedBetweenRuns()
        assert run_sweep(jobs[:6], tmp_path / "r.db", executor=executor).done == 6
    finally:
        signal.signal(signal.SIGINT, before)


class ShutDown(ThreadPoolExecutor):
    """Another process ends it: runs come back undone."""

    def submit(self, fn, /, *args, **kwargs):
        future = super().submit(fn, *args, **kwargs)
        if args[0].replicate == 3:
            self.shutdown(wait=False, cancel_futures=True)
        return future


def test_runs_that_are_taken_back_are_not_failures(tmp_path, jobs):
    with ShutDown(1) as executor, pytest.raises(ConfigError, match=r"cancelled runs.*the same command continues"):
        run_sweep(jobs[:4], tmp_path / "r.db", executor=executor)
    with Store(tmp_path / "r.db") as store:
        assert store.query("SELECT count(*) FROM runs WHERE status = 'failed'") == [(0,)]
    assert run_sweep(jobs[:4], tmp_path / "r.db", executor=AtOnce()).left == 0


def test_an_executor_that_was_shut_down_is_refused(tmp_path, jobs):
    with ThreadPoolExecutor(1) as executor:
        executor.shutdown()
        with pytest.raises(ConfigError, match="accepts no runs: cannot schedule new futures after shutdown"):
            run_sweep(jobs[:4], tmp_path / "r.db", executor=executor)


def test_ctrl_c_while_the_optima_are_computed(tmp_path, jobs):
    outcome = interrupted(jobs, tmp_path / "r.db", workers=1, progress=lambda _: signal.raise_signal(signal.SIGINT))
    assert (outcome.done, outcome.failed, outcome.left) == (0, 0, len(jobs))


@pytest.mark.full
def test_a_worker_that_is_killed_is_replaced_and_its_runs_are_run_again(tmp_path, jobs, uninterrupted, start_sweep):
    process = start_sweep("--workers", "2")
    wait_for(lambda: finished(tmp_path / "r.db") >= 2)
    workers = [pid for pid in children(process.pid) if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(workers[-1], signal.SIGKILL)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert f"{len(jobs)} runs done" in out
    assert content(tmp_path / "r.db") == content(uninterrupted)


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_kills_its_process_is_found_and_recorded_and_the_others_are_run(tmp_path, monkeypatch, workers):
    """When a pool breaks, each run that may have broken it runs alone, in its own pool."""
    monkeypatch.setattr(runner, "execute", die_of_third)
    outcome = run_sweep(parse_spec(TINY).jobs(), tmp_path / "r.db", workers=workers)
    assert (outcome.done, outcome.failed, outcome.left) == (5, 1, 0)
    assert outcome.errors == [
        "counterexample, uniform, run 2: BrokenProcessPool: the process died while running it (out of memory?)"
    ]


@pytest.mark.full
def test_a_script_without_a_guard_gets_a_message(tmp_path):
    code = "from psconrl.experiment.runner import run_sweep\nfrom psconrl.experiment.spec_file import parse_spec\n"
    code += f"run_sweep(parse_spec({TINY!r}).jobs(), 'r.db', workers=1)\n"
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "call run_sweep under if __name__ == '__main__': in a script" in done.stderr


def test_results_of_other_code_are_refused(tmp_path, jobs, monkeypatch):
    monkeypatch.setattr(runner, "execute", elsewhere)
    with ThreadPoolExecutor(1) as threads:
        outcome = run_sweep(jobs[:1], tmp_path / "r.db", executor=threads)
    assert outcome.failed == 1
    assert "the worker has other versions than this machine: code another" in outcome.errors[0]


@pytest.mark.full
def test_a_run_that_raises_is_recorded_and_does_not_stop_the_others(tmp_path, jobs, uninterrupted, monkeypatch):
    make_agent = Job.make_agent
    checked = threading.Event()

    def sometimes(self, cmdp):
        if checked.is_set() and self.label == "cmdp-psrl" and self.replicate == 3:
            raise RuntimeError("out of luck")
        return make_agent(self, cmdp)

    monkeypatch.setattr(Job, "make_agent", sometimes)
    path = tmp_path / "r.db"
    with ThreadPoolExecutor(1) as threads:
        outcome = run_sweep(jobs, path, executor=threads, progress=lambda _: checked.set())
        assert (outcome.done, outcome.failed) == (len(jobs) - 1, 1)
        assert outcome.errors == ["small, cmdp-psrl, run 3: RuntimeError: out of luck"]
        with Store(path) as store:
            ((error,),) = store.query("SELECT error FROM runs WHERE status = 'failed'")
        assert "Traceback" in error
        assert 'raise RuntimeError("out of luck")' in error
        monkeypatch.undo()
        again = run_sweep(jobs, path, executor=threads)
        assert (again.known, again.done) == (len(jobs) - 1, 1)
    assert content(path) == content(uninterrupted)


@pytest.mark.parametrize(
    ("executor", "message"),
    [("threads", "executor must be"), ("dask://nowhere", "must be dask://HOST:PORT"), (3, "executor must be"),
     pytest.param("dask://127.0.0.1:1", "no scheduler answers", marks=pytest.mark.full)],  # after five seconds
)  # fmt: skip
def test_unknown_executors_are_refused(tmp_path, jobs, executor, message):
    with pytest.raises(ConfigError, match=message):
        run_sweep(jobs[:1], tmp_path / "r.db", executor=executor)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # of Dask's own code
def test_dask_gives_the_same_bits_though_a_worker_is_killed(tmp_path, jobs, uninterrupted, cluster):
    path = tmp_path / "r.db"
    with cluster.get_client() as client:
        pids = list(client.run(os.getpid).values())
        killed = []

        def kill_one(outcome):
            if outcome.done >= 3 and not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        outcome = run_sweep(jobs, path, executor=client, progress=kill_one)
    assert killed
    assert (outcome.done, outcome.failed) == (len(jobs), 0)
    assert content(path) == content(uninterrupted)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_dask_by_its_address_from_the_command_line(tmp_path, uninterrupted, cluster, start_sweep):
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    process = start_sweep("--executor", address)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert content(tmp_path / "r.db") == content(uninterrupted)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_an_abort_under_dask_is_no_traceback(tmp_path, cluster, start_sweep):
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    process = start_sweep("--executor", address, spec=SPEC.replace("replicates = 5", "replicates = 100"))
    wait_for(lambda: finished(tmp_path / "r.db") >= 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, out + err
    assert "the same command continues" in out
    assert "Traceback" not in err


def test_the_title_is_the_specs_unless_another_is_given(tmp_path):
    text = 'name = "My study"\nreplicates = 1\n[experiments.counterexample]\nagents = ["uniform"]\nhorizon = 20\n'
    jobs, path = parse_spec(text).jobs(), tmp_path / "r.db"

    def title(*arguments, **options):
        run_sweep(*arguments, path, executor=AtOnce(), **options)
        with Store(path) as store:
            return store.query("SELECT value FROM meta WHERE key = 'title'")[0][0]

    assert title(list(jobs)) == "psconrl"  # no title is given
    assert title(jobs) == "My study"
    assert title(list(jobs)) == "My study"  # the file's own
    assert title(jobs, title="Another") == "Another"


@pytest.mark.parametrize("workers", [0, -1, 10**8])
def test_a_number_of_workers_that_cannot_be(tmp_path, jobs, workers):
    with pytest.raises(ConfigError, match="workers must be a whole number from 1 to 1000"):
        run_sweep(jobs[:1], tmp_path / "r.db", workers=workers)
