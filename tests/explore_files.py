"""Damages files of every kind in ways that were never tried before, and reads them: ``make test-files``.

A reader ends in a result or in one line for the user; within ten seconds and a gigabyte; and a file with checksums is
not read with other numbers. A failure is shrunk and written to ``tests/data/files``, where
``tests/system/test_damaged.py`` replays it. The exit code is 1 if there is any. Ctrl-C ends the search and prints the
table. Needs Linux, whose limits on memory it uses.

    python tests/explore_files.py --cases 20000 --jobs 2
    python tests/explore_files.py --reader system --minutes 5
    python tests/explore_files.py --seed 12345 --case 678     # the same file again
"""

import argparse
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

TESTS = Path(__file__).parent
if str(TESTS / "systems") not in sys.path:  # with the random systems
    sys.path.append(str(TESTS / "systems"))

from damage.cases import FOLDER, shrunk, write_case  # noqa: E402
from damage.formats import Damage, damaged, drawn_damage  # noqa: E402
from damage.judging import ACCEPTED, FAILED, REFUSED, Judge, Outcome, Reader  # noqa: E402
from damage.readers import READERS  # noqa: E402

SAMPLES = 4  # whole files of every kind
CHUNK = 200  # files between two looks at the clock
SILENT = "the numbers of a file with checksums are changed silently"


class Found(NamedTuple):
    """What reading a damaged file ended in."""

    reader: str
    case: int
    damage: Damage
    whole: bytes
    other: bytes
    outcome: Outcome


@cache
def sample(reader: Reader, seed: int) -> bytes:
    """Return a whole file."""
    with tempfile.TemporaryDirectory(prefix="whole-") as folder:
        path = Path(folder, f"whole{reader.ending}")
        reader.sample(path, seed)
        return path.read_bytes()


def sealed(reader: Reader, content: bytes, damage: Damage) -> bytes:
    """Return a damaged file with checksums that are right for it, if it is to have them and is not too bad for that."""
    if damage.sealed and reader.seal is not None:
        with suppress(Exception):
            return reader.seal(content)
    return content


class Explorer:
    """Damages and reads files. Each thread has a process that reads; ``close`` ends them."""

    def __init__(self, base: int, readers: list[Reader], module: str = "damage.readers") -> None:
        self.base, self.readers, self._module = base, readers, module
        self._local, self._stack, self._lock = threading.local(), ExitStack(), threading.Lock()
        self._numbers: dict[str, set[str]] = {}

    def __enter__(self) -> "Explorer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def judge(self) -> Judge:
        """The process of this thread."""
        if not hasattr(self._local, "judge"):
            with self._lock:
                self._local.judge = self._stack.enter_context(Judge(self._module))
        return self._local.judge

    def explored(self, case: int) -> Found:
        """Damage one file and read it."""
        reader = self.readers[case % len(self.readers)]
        rng = np.random.default_rng([self.base, case])
        with self._lock:
            whole, other = (sample(reader, int(k)) for k in rng.integers(SAMPLES, size=2))
        damage = drawn_damage(reader.ending, rng)
        content = sealed(reader, damaged(whole, other, reader.ending, damage), damage)
        return Found(reader.name, case, damage, whole, other, self.outcome(reader, content, whole, damage))

    def outcome(self, reader: Reader, content: bytes, whole: bytes, damage: Damage) -> Outcome:
        """Return what reading a damaged file ends in, where checksums have to notice the damage."""
        outcome = self.judge.outcome(reader, content, whole)
        unnoticed = outcome.kind == ACCEPTED and not damage.sealed and reader.numbers is not None
        if unnoticed and outcome.numbers not in self._whole_numbers(reader):
            return outcome._replace(kind=FAILED, reason=SILENT)
        return outcome

    def _whole_numbers(self, reader: Reader) -> set[str]:
        """Return digests of the numbers of all whole files, of which two may have been spliced."""
        if reader.name not in self._numbers:
            with self._lock:
                wholes = [sample(reader, seed) for seed in range(SAMPLES)]
            self._numbers[reader.name] = {self.judge.outcome(reader, each, each).numbers for each in wholes}
        return self._numbers[reader.name]

    def keep(self, found: Found, seconds: float) -> str:
        """Shrink a failing file, write it to the folder of cases, and return its name."""
        reader = READERS[found.reader]

        def fails(content: bytes) -> bool:
            again = sealed(reader, content, found.damage)
            return self.outcome(reader, again, found.whole, found.damage).reason == found.outcome.reason

        content = shrunk(reader.ending, found.whole, found.other, found.damage, fails, seconds)
        content = sealed(reader, content, found.damage)
        return write_case(reader, content, must_be_refused=found.outcome.reason == SILENT)


def results(explorer: Explorer, jobs: int, cases, deadline: float):
    """Yield what was found, until all cases are done or the time is over."""
    with ThreadPoolExecutor(jobs) as pool:
        for start in range(0, len(cases), CHUNK):
            if time.monotonic() > deadline:
                return
            yield from pool.map(explorer.explored, cases[start : start + CHUNK])


def table(found: list[Found]) -> str:
    """Return the numbers of outcomes by reader, the slowest file of each, and the reasons for failures."""
    kinds = (ACCEPTED, REFUSED, FAILED)
    counts = Counter((one.reader, one.outcome.kind) for one in found)
    slowest = {one.reader: 0.0 for one in found}
    for one in found:
        slowest[one.reader] = max(slowest[one.reader], one.outcome.seconds)
    lines = ["| reader | " + " | ".join(kinds) + " | slowest |", "|---|" + "---:|" * (len(kinds) + 1)]
    for name in [name for name in READERS if name in slowest]:
        cells = [str(counts[name, kind] or "") for kind in kinds]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {slowest[name]:.1f} s |")
    totals = Counter(one.outcome.kind for one in found)
    most = max(slowest.values(), default=0.0)
    lines.append("| all | " + " | ".join(str(totals[kind] or "") for kind in kinds) + f" | {most:.1f} s |")
    reasons = Counter((one.reader, one.outcome.reason) for one in found if one.outcome.is_failure)
    lines.append("")
    lines += [f"{number:6d}  {name}: {reason}" for (name, reason), number in reasons.most_common()]
    return "\n".join(lines)


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=None, help="number of files (default 2000)")
    parser.add_argument("--minutes", type=float, default=None, help="stop after this time")
    parser.add_argument("--seed", type=int, default=None, help="seed of all files (default: new)")
    parser.add_argument("--case", type=int, action="append", help="only the file of this number; may be repeated")
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only this reader; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes that read")
    parser.add_argument("--shrink-seconds", type=float, default=60, help="time to shrink a failure; 0 keeps no files")
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    options = parsed(arguments)
    base = secrets.randbelow(10**9) if options.seed is None else options.seed
    cases = options.case or range(options.cases or (10**9 if options.minutes else 2000))
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    readers = [READERS[name] for name in options.reader or READERS]
    again = "".join(f" --reader {name}" for name in options.reader or ())
    print(f"base seed {base}", flush=True)
    found: list[Found] = []
    failures: dict[tuple[str, str], Found] = {}
    with Explorer(base, readers) as explorer:
        with suppress(KeyboardInterrupt):  # the table then shows what was found so far
            for one in results(explorer, options.jobs, cases, deadline):
                found.append(one._replace(whole=b"", other=b""))
                if one.outcome.is_failure and (one.reader, one.outcome.reason) not in failures:
                    failures[one.reader, one.outcome.reason] = one
                    what = f"{one.outcome.reason}: {one.outcome.message}"
                    print(f"--seed {base} --case {one.case}{again} ({one.reader}) {what}", flush=True)
        print(f"\n{len(found)} files\n\n{table(found)}", flush=True)
        for one in failures.values() if options.shrink_seconds > 0 else ():
            print("written:", explorer.keep(one, options.shrink_seconds), f"in {FOLDER}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
