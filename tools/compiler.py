"""Is there a C compiler? ``python tools/compiler.py`` says so, or says in one line how to get one.

Uses the standard library only, so that it can run before anything is installed.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HOW = {
    "linux": "Debian, Ubuntu: apt install gcc libc6-dev python3-dev. Fedora: dnf install gcc python3-devel",
    "darwin": "xcode-select --install",
    "win32": "install the Build Tools for Visual Studio (https://visualstudio.microsoft.com/downloads/), C++ workload",
}
# Wherever setuptools takes its compiler from CC. An isolated build would not see that Zig is installed.
ZIG = (
    "Or: pip install ziglang cython setuptools --upgrade, set CC='python -m ziglang cc', "
    "and install with pip install --no-build-isolation"
)

PROGRAM = "#include <Python.h>\nint main(void) { return PY_MAJOR_VERSION == 3 ? 0 : 1; }\n"


def advice(problem: str) -> str:
    """One line: what is missing, and how to get it on this platform."""
    how = HOW.get(sys.platform, "install gcc or clang, and the header files of Python")
    other = "" if sys.platform == "win32" else f" {ZIG}."
    return f"psconrl builds its kernels from source and needs a C compiler: {problem}. {how}.{other}"


def used() -> list[str]:
    """The command that compiles C: that of the environment, or that which Python was built with."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def is_zig() -> bool:
    """Is it Zig's, however it is called? It takes the flags of clang, but for those that name a processor."""
    return any(Path(word).name in ("zig", "ziglang", "python-zig") for word in used())


def has_visual_c() -> bool:
    """Is Visual C++ in PATH, or does the installer of Visual Studio know of one?"""
    if shutil.which("cl"):
        return True
    programs = os.environ.get("PROGRAMFILES(X86)", "C:/Program Files (x86)")
    vswhere = Path(programs, "Microsoft Visual Studio", "Installer", "vswhere.exe")
    if not vswhere.exists():
        return False
    tools = [f"Microsoft.VisualStudio.Component.VC.Tools.{processor}" for processor in ("x86.x64", "ARM64")]
    found = subprocess.run(
        [
            str(vswhere),
            "-latest",
            "-products",
            "*",
            "-requires",
            *tools,
            "-requiresAny",
            "-property",
            "installationPath",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return bool(found.stdout.strip())


def problem() -> str:
    """What keeps a C program that includes Python.h from being compiled; empty if nothing does."""
    if sys.platform == "win32":
        return "" if has_visual_c() else "Visual C++ is not there"
    command = used()
    if shutil.which(command[0]) is None:
        return f"'{command[0]}' is not there"
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        return f"Python.h is not in {include}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "try.c")
        source.write_text(PROGRAM, encoding="utf-8")
        compile_it = [*command, f"-I{include}", "-c", str(source), "-o", str(Path(folder, "try.o"))]
        tried = subprocess.run(compile_it, capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return ""
    said = (tried.stderr.strip() or tried.stdout.strip() or f"exit code {tried.returncode}").splitlines()
    return f"'{' '.join(command)}' cannot compile a program of one line ({said[0]})"


if __name__ == "__main__":
    sys.exit(advice(found) if (found := problem()) else 0)
