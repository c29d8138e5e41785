"""The line on the terminal when kernels are compiled, the command that does it beforehand, and how often they are."""

import subprocess
import sys
from types import SimpleNamespace

import numba.core.event
import numpy as np
import pytest
from click.testing import CliRunner

from psconrl import compiling
from psconrl.arrays import read_only
from psconrl.cli import app
from psconrl.compiling import NOTICE, CompileNotice


def compiled(module):
    """What Numba says of a function in a module that it compiles."""
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when somebody says so, in front of a terminal."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(compiling.time, "monotonic", lambda: now.seconds)
    monkeypatch.setattr(compiling, "_somebody_looks", lambda: True)
    return now


def compile_for(listener, clock, seconds, *modules):
    """One function inside the other; the innermost takes the time."""
    for module in modules:
        listener.on_start(compiled(module))
    clock.seconds += seconds
    for module in reversed(modules):
        listener.on_end(compiled(module))


def test_the_line_comes_once_and_after_a_second(clock, capsys):
    listener = CompileNotice()
    compile_for(listener, clock, 1.0, "psconrl.model.x")
    assert capsys.readouterr().err == ""
    compile_for(listener, clock, 1.1, "psconrl.model.x", "numba.np.y")
    assert capsys.readouterr().err == NOTICE + "\n"
    compile_for(listener, clock, 50.0, "psconrl.model.x")
    assert capsys.readouterr().err == ""


def test_what_others_compile_is_theirs(clock, capsys):
    listener = CompileNotice()
    compile_for(listener, clock, 50.0, "elsewhere", "numba.np.y")
    compile_for(listener, clock, 50.0, "psconrl_of_theirs")
    assert capsys.readouterr().err == ""


def test_the_clock_begins_with_the_first_of_ours(clock, capsys):
    listener = CompileNotice()
    listener.on_start(compiled("elsewhere"))
    clock.seconds += 50.0
    compile_for(listener, clock, 0.5, "psconrl.model.x")
    listener.on_end(compiled("elsewhere"))
    assert capsys.readouterr().err == ""
    listener.on_start(compiled("psconrl.model.x"))
    compile_for(listener, clock, 0.6, "psconrl.model.y")
    compile_for(listener, clock, 0.6, "psconrl.model.y")  # the second part of one kernel
    assert capsys.readouterr().err == NOTICE + "\n"


def test_a_line_is_for_somebody_who_looks(monkeypatch):
    monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert compiling._somebody_looks()
    monkeypatch.setattr(compiling.multiprocessing, "parent_process", lambda: object())  # in a worker
    assert not compiling._somebody_looks()
    monkeypatch.setattr(compiling.multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(sys, "stderr", None)  # as without a console on Windows
    assert not compiling._somebody_looks()
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert compiling._somebody_looks()


def test_whoever_uses_a_model_is_told():
    code = "import psconrl.model, numba.core.event as e; print(len(e._registered['numba:compile']))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"


def test_warm_says_what_it_compiles(monkeypatch):
    monkeypatch.setattr(compiling, "keep_quiet", lambda: None)
    result = CliRunner().invoke(app, ["warm"], catch_exceptions=False)
    lines = result.output.splitlines()
    assert [line.split(" ... ")[0] for line in lines[:-1]] == [
        "plans",
        "plans of large models",
        "plans of slow models with thousands of states",
        "plans by components",
        "learning",
        "learning with costs",
        "learning in large models",
    ]
    assert lines[-1].startswith("ready in ")


def test_keeping_quiet():
    assert compiling._NOTICE in numba.core.event._registered["numba:compile"]
    compiling.keep_quiet()
    assert compiling._NOTICE not in numba.core.event._registered["numba:compile"]
    compiling.announce()


def test_read_only_is_a_view():
    array = np.zeros(3)
    view = read_only(array)
    array[0] = 1.0
    assert view[0] == 1.0
    assert not view.flags.writeable
    assert array.flags.writeable
    assert read_only(view) is view


def test_the_search_is_compiled_once_for_dense_models_whoever_made_the_arrays():
    """Half a minute, each time: for what an agent drew, what a user made, and what was sparse."""
    code = """
import numpy as np, psconrl
from psconrl.planning.mixture._newton import newton
rover = psconrl.load("marsrover-4x4")
psconrl.plan(rover)
for costs in (rover.costs, None):
    agent = psconrl.PSConRL(16, 4, rover.thresholds, costs, seed=0)
    psconrl.simulate(rover, agent, 100, seed=0)
psconrl.plan(psconrl.load("garnet", sparse=True))
psconrl.plan(psconrl.CMDP(np.full((2, 1, 2), 0.5), np.array([[[0.0], [1.0]], [[1.0], [0.0]]]), np.array([0.7])))
print(len(newton.signatures))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"
