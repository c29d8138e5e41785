"""HiGHS in a process of its own, which Ctrl-C ends at once.

Python learns of Ctrl-C when HiGHS returns. HiGHS can be asked to stop between its iterations, but not within its search
for dependent equations, which may take minutes, so that neither a callback nor a thread would end it. A small program
is solved in this process, with the same result to the last bit.
"""

import io
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np

from psconrl.base.sizes import LP_HERE
from psconrl.errors import SolverError
from psconrl.planning.linear_programs.highs import HighsAnswer, HighsProgram, highs_answer

POLL_SECONDS = 0.1  # between looks for Ctrl-C, on systems where waiting for a process cannot be interrupted
ORPHAN_SECONDS = 0.5  # between looks whether the process that asked is still there
SHOWN_TRACE = 200  # characters of what a process that failed had to say


def stoppable_answer(program: HighsProgram) -> HighsAnswer:
    """Solve a program; Ctrl-C raises KeyboardInterrupt at once, and nothing goes on."""
    hears_ctrl_c = threading.current_thread() is threading.main_thread()
    return _elsewhere(program) if hears_ctrl_c and program.work > LP_HERE else highs_answer(program)


def _elsewhere(program: HighsProgram) -> HighsAnswer:
    """Solve a program in another process. Signals of the terminal do not reach it: it has a session of its own."""
    process = _started()
    try:
        out, trace = _wait(process, _packed(program))
    finally:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(BrokenPipeError):  # it was still being written to
                pipe.close()
    if process.returncode != 0:
        last = " ".join(trace.decode(errors="replace").split())[-SHOWN_TRACE:]
        raise SolverError(f"the process of HiGHS ended with {process.returncode}; {last or 'it said nothing'}")
    with np.load(io.BytesIO(out)) as found:
        return HighsAnswer(str(found["status"]), found["values"], found["duals"])


def _started() -> subprocess.Popen[bytes]:
    """Start this module; the process has the same modules to import, and none from the current folder."""
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
        )  # fmt: skip
    except OSError as error:
        raise SolverError(f"no process can be started for HiGHS ({error})") from None


def _wait(process: subprocess.Popen[bytes], given: bytes) -> tuple[bytes, bytes]:
    """Hand in the program, and return what the process writes until it ends."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it ended early, and says why
        process.stdin.write(given)
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=POLL_SECONDS)


def _packed(fields: HighsProgram | HighsAnswer) -> bytes:
    packed = io.BytesIO()
    np.savez(packed, **fields._asdict())
    return packed.getvalue()


def _end_with(asking: int) -> None:
    """End this process when the one that asked has ended."""
    while os.getppid() == asking:
        time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def solve_for_caller() -> None:
    """Solve the program that comes in, and write the answer out; run by ``stoppable_answer``."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever HiGHS prints is no part of the answer
        with np.load(io.BytesIO(sys.stdin.buffer.read())) as given:
            program = HighsProgram(**given)
        out.write(_packed(highs_answer(program)))


if __name__ == "__main__":
    solve_for_caller()
