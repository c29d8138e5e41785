"""Mutation testing: put small faults into the source, one at a time, and see that a test fails. ``make mutants``.

``mutants.toml`` lists them: a file of the package, the text to replace, its replacement, and the tests that must then
fail. A fault that goes unnoticed is a gap in the tests. Names on the command line select faults by parts of their
file names; ``--jobs`` runs several at once. This file can also be run as a script.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
PACKAGE = Path("psconrl")
SECONDS = 900
FAILED, PASSED = 1, 0  # exit codes of pytest


@dataclass(frozen=True)
class Mutant:
    """One fault."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r}"

    @property
    def is_kernel(self) -> bool:
        """Whether the fault requires recompiling a kernel."""
        return self.file.startswith("kernels/")

    def applied(self, text: str) -> str:
        """Return the source with the fault in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} must hold {self.old!r} once; found {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def read_mutants() -> list[Mutant]:
    """Read the list of faults."""
    entries = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["mutant"]
    return [Mutant(e["file"], e["old"], e["new"], tuple(e["tests"])) for e in entries]


class Bench:
    """A copy of the source to put faults into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "src"
        for name in ("src", "tools", "build"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "lib*", "temp*"))
        for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy2(ROOT / name, folder / name)

    def build(self) -> None:
        """Compile the kernels that have changed."""
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, timeout=SECONDS)

    def try_out(self, mutant: Mutant) -> int:
        """Exit code of the tests with the fault in place."""
        path = self.source / PACKAGE / mutant.file
        original = path.read_text()
        try:
            path.write_text(mutant.applied(original))
            if mutant.is_kernel:
                self.build()
            return self.run(mutant.tests)
        finally:
            path.write_text(original)
            if mutant.is_kernel:
                self.build()

    def run(self, tests: Iterable[str]) -> int:
        """Exit code of tests under this source."""
        environment = os.environ | {
            "PYTHONPATH": str(self.source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--full", *tests]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return FAILED  # a fault that makes a loop endless counts as noticed
        return done.returncode


def survivors(mutants: list[Mutant], jobs: int) -> list[str]:
    """Try all faults and return descriptions of those that went unnoticed."""
    benches: SimpleQueue[Bench] = SimpleQueue()

    def verdict(mutant: Mutant) -> str | None:
        bench = benches.get()
        try:
            code = bench.try_out(mutant)
        finally:
            benches.put(bench)
        outcome = {FAILED: "noticed", PASSED: "SURVIVED"}.get(code, f"BROKEN (pytest ended with {code})")
        print(f"{outcome:>9}  {mutant}", flush=True)
        return None if code == FAILED else f"{outcome}: {mutant}"

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for k in range(jobs):
            benches.put(Bench(Path(folder) / str(k)))
        sound = benches.get()
        code = sound.run(sorted({test for mutant in mutants for test in mutant.tests}))
        benches.put(sound)
        if code != PASSED:
            return [f"the tests fail without any fault (pytest ended with {code})"]
        return [found for found in pool.map(verdict, mutants) if found is not None]


def main() -> int:
    """Exit code 1 if a fault went unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    chosen = [m for m in read_mutants() if not arguments.names or any(name in m.file for name in arguments.names)]
    left = survivors(chosen, arguments.jobs)
    print(f"\n{len(chosen)} faults, {len(left)} unnoticed", *left, sep="\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
