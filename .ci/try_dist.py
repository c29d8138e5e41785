"""Install a wheel into a bare environment and use it there, from another folder: ``make dist`` ends with this.

Nothing but the wheel's own requirements is there: no matplotlib, no tests, no clone, and no compiler on the path.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LARGEST = 6

PLAN = """
import sys, time
begin = time.perf_counter()
import psconrl
imported = time.perf_counter()
plan = psconrl.plan(psconrl.load("marsrover-4x4"))
print(f"import {imported - begin:.2f} s, import to first plan {time.perf_counter() - begin:.2f} s")
assert abs(plan.value - 0.775) < 1e-9 and plan.certificate.holds
assert psconrl.__file__.startswith(sys.prefix), psconrl.__file__
assert "matplotlib" not in sys.modules
print(plan)
"""


def run(*command: str, code: int = 0, cwd: Path) -> str:
    """What a command prints, in an environment without compilers; an error unless it ends with the code."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean |= {"PATH": str(Path(command[0]).parent), "CC": "no-compiler"}
    result = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=1200)
    printed = result.stdout + result.stderr
    if result.returncode != code:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}, not {code}\n{printed}")
    return printed


def main(wheel: str) -> None:
    """Try it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "bare", with_pip=True)
        scripts = folder / "bare" / ("Scripts" if os.name == "nt" else "bin")
        python, psconrl = str(scripts / "python"), str(scripts / "psconrl")
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        run(python, "-m", "pip", "install", "--quiet", str(Path(wheel).resolve()), cwd=elsewhere)
        for _ in range(2):  # the first process after the installation, and a later one
            print(run(python, "-c", PLAN, cwd=elsewhere), end="")
        print(run(python, "-c", ten_lines(), cwd=elsewhere), end="")
        assert "certificate" in run(psconrl, "solve", "inventory", cwd=elsewhere).lower()
        run(psconrl, "solve", "inventory", "--threshold", "orders=0.1", code=3, cwd=elsewhere)
        run(psconrl, "learn", "box", "--horizon", "500", "--save", "run.npz", cwd=elsewhere)
        assert (elsewhere / "run.npz").is_file()
        assert "psconrl[plots]" in run(psconrl, "solve", "box", "--plot", "box.png", code=2, cwd=elsewhere)
        print(run(python, "-m", "pip", "check", cwd=elsewhere), end="")
        packages = next((folder / "bare").rglob("site-packages"))
        sizes = {path.name: size_of(path) for path in packages.iterdir()}
        for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:LARGEST]:
            print(f"{sizes[name] / 1e6:7.0f} MB  {name}")
        print(f"{sum(sizes.values()) / 1e6:7.0f} MB  in all")


def ten_lines() -> str:
    """The README's first example, and how long it takes."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = readme.partition("```python\n")[2].partition("```")[0]
    return (
        f"import time\nbegin = time.perf_counter()\n{code}\nprint(f'ten lines: {{time.perf_counter() - begin:.2f}} s')"
    )


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


if __name__ == "__main__":
    main(*sys.argv[1:])
