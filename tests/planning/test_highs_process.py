"""HiGHS in a process of its own: the same bits, and nothing is left of it after Ctrl-C or the end of its caller."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import psconrl
from models import random_cmdp
from psconrl.errors import SolverError
from psconrl.planning.linear_programs import highs_process
from psconrl.planning.linear_programs.highs import HighsProgram, highs_answer
from psconrl.planning.linear_programs.highs_process import stoppable_answer
from psconrl.planning.linear_programs.lp import occupancy_program
from psconrl.planning.problem import Problem

# A program on which HiGHS works for minutes before it first looks whether it should stop.
ENDLESS = """
import sys
sys.path.insert(0, {benchmarks!r})
from models import sparse_random
from psconrl.planning.linear_programs.highs_process import stoppable_answer
from psconrl.planning.linear_programs.lp import occupancy_program
from psconrl.planning.problem import Problem

program = occupancy_program(Problem.of(sparse_random(4000))).columns()
print("ready", flush=True)
try:
    stoppable_answer(program)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
SEARCHING = 1.0  # seconds of processor time after which imports and the passing of the program are over
BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux lists them")


@pytest.fixture
def program():
    return occupancy_program(Problem.of(random_cmdp("dense", 5, 3, 2, 1, 0.1))).columns()


@pytest.fixture
def elsewhere(monkeypatch):
    """Every program is solved in a process of its own; a list of these."""
    started = []

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(highs_process, "LP_HERE", 0)
    monkeypatch.setattr(highs_process.subprocess, "Popen", Noted)
    return started


def test_the_answer_has_the_same_bits(program, elsewhere):
    here, there = highs_answer(program), stoppable_answer(program)
    assert len(elsewhere) == 1
    assert here.status == there.status == "kOptimal"
    assert np.array_equal(here.values, there.values)
    assert np.array_equal(here.duals, there.duals)


def test_a_plan_has_the_same_bits(elsewhere):
    model = psconrl.load("marsrover-4x4").with_thresholds([-1.0])  # infeasible, so that a second program is solved
    there = psconrl.plan(model, method="lp")
    assert len(elsewhere) >= 2
    highs_process.LP_HERE = np.inf
    here = psconrl.plan(model, method="lp")
    assert not here.feasible
    assert np.array_equal(here.policy, there.policy)
    assert np.array_equal(here.multipliers, there.multipliers)


def test_small_programs_and_those_of_other_threads_are_solved_here(program, elsewhere, monkeypatch):
    found = []
    thread = threading.Thread(target=lambda: found.append(stoppable_answer(program)))
    thread.start()
    thread.join()
    monkeypatch.setattr(highs_process, "LP_HERE", program.work)
    found.append(stoppable_answer(program))
    assert [one.status for one in found] == ["kOptimal", "kOptimal"]
    assert elsewhere == []
    monkeypatch.setattr(highs_process, "LP_HERE", program.work - 1)
    stoppable_answer(program)
    assert len(elsewhere) == 1


def test_the_work_is_rows_times_entries():
    ones = np.ones(4)
    assert HighsProgram(np.ones(3), np.zeros(2), np.zeros(2), np.arange(4), np.arange(4), ones).work == 8


def test_ctrl_c_ends_the_process(program, elsewhere, monkeypatch):
    """A process that waits for its program, and a signal that arrives before."""
    monkeypatch.setattr(highs_process, "_packed", interrupt_first)
    with pytest.raises(KeyboardInterrupt):
        stoppable_answer(program)
    assert [process.returncode for process in elsewhere] == [-signal.SIGKILL]


def interrupt_first(program):
    signal.raise_signal(signal.SIGINT)
    return b""


def test_a_process_that_fails_is_an_error_of_the_solver(program, elsewhere, monkeypatch):
    monkeypatch.setattr(highs_process, "_packed", lambda program: b"no program")
    with pytest.raises(SolverError, match=r"^the process of HiGHS ended with 1; .*pickle"):
        stoppable_answer(program)


def test_a_process_that_does_not_listen_is_an_error_of_the_solver(program, elsewhere, monkeypatch):
    monkeypatch.setattr(highs_process, "__name__", "no_such_module")
    monkeypatch.setattr(highs_process, "_packed", lambda program: bytes(10**7))
    with pytest.raises(SolverError, match=r"ended with 1; .*No module named no_such_module"):
        stoppable_answer(program)


def test_a_system_without_processes_is_an_error_of_the_solver(program, elsewhere, monkeypatch):
    monkeypatch.setattr(highs_process.sys, "executable", "/nowhere/python")
    with pytest.raises(SolverError, match="no process can be started for HiGHS"):
        stoppable_answer(program)


def children(pid):
    """Yield the ids of the running processes that a process has started."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = place.read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            yield int(place.parent.name)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def cpu_seconds(pid):
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def wait_for(condition):
    until = time.monotonic() + 60.0
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


@on_linux
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_long_search(sent):
    code, solver = ENDLESS.format(benchmarks=BENCHMARKS), 0
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as caller:
        try:
            assert caller.stdout.readline() == "ready\n"
            (solver,) = wait_for(lambda: list(children(caller.pid)))
            wait_for(lambda: os.getsid(solver) == solver)  # Ctrl-C in a terminal reaches the caller alone
            wait_for(lambda: cpu_seconds(solver) > SEARCHING)
            caller.send_signal(sent)
            assert caller.stdout.readline() == ("interrupted\n" if sent == signal.SIGINT else "")
            wait_for(lambda: not is_running(solver))
        finally:  # nothing is left of a failed test, either
            caller.kill()
            if solver and is_running(solver):
                os.kill(solver, signal.SIGKILL)
