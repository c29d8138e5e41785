"""Contents and metadata of the wheel and the sdist; nothing is compiled, as that takes a minute.

``make dist`` builds both, installs the wheel in an environment without a compiler, and uses it there.
"""

import email
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import psconrl

ROOT = Path(__file__).parents[2]
BUILT = (".so", ".pyd", ".c", ".pyc")


def setup(*command):
    """Run a command of setup.py."""
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", *command], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The files of the wheel but for the kernels, and its metadata."""
    folder = tmp_path_factory.mktemp("packed")
    setup("build_py", "--build-lib", str(folder))
    setup("dist_info", "--output-dir", str(folder))
    return folder


def test_the_wheel_holds_every_file_of_the_package(packed):
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "psconrl").rglob("*")
        if path.is_file() and path.suffix not in BUILT and "__pycache__" not in path.parts
    }
    held = {path.relative_to(packed).as_posix() for path in (packed / "psconrl").rglob("*") if path.is_file()}
    assert held == wanted
    kinds = {Path(name).suffix for name in held}
    assert {".py", ".pxd", ".typed", ".txt", ".toml", ".js", ".css", ".html"} <= kinds  # maps, specs, the page


@pytest.fixture(scope="module")
def metadata(packed):
    (path,) = packed.glob("*.dist-info/METADATA")
    return email.message_from_bytes(path.read_bytes())


def test_the_wheel_says_what_it_is(packed, metadata):
    assert metadata["Name"] == "psconrl"
    assert metadata["Version"] == psconrl.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Author"] == "The psconrl developers"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# psconrl")
    classifiers = metadata.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    assert not [c for c in classifiers if c.startswith("License ::")]  # the expression says it
    (scripts,) = packed.glob("*.dist-info/entry_points.txt")
    assert "psconrl = psconrl.cli:main" in scripts.read_text(encoding="utf-8")
    assert list(packed.glob("*.dist-info/licenses/LICENSE"))


def test_pictures_are_an_extra(metadata):
    matplotlib = [line for line in metadata.get_all("Requires-Dist") if line.startswith("matplotlib")]
    assert matplotlib
    assert all("extra ==" in line for line in matplotlib)
    assert "plots" in metadata.get_all("Provides-Extra")


@pytest.mark.full
def test_the_sdist_can_be_built_tested_and_read(tmp_path):
    setup("sdist", "--dist-dir", str(tmp_path))
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "setup.py", "README.md", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml"}
    wanted |= {
        "src/psconrl/py.typed",
        "tests/system/test_dist.py",
        "tests/conftest.py",
        "docs/index.md",
        "tools/compiler.py",
    }
    wanted |= {"CITATION.cff", "src/psconrl/kernels/linear/elimination.pxd", "src/psconrl/kernels/_cpu.c"}
    assert wanted <= held
    assert not [name for name in held if "__pycache__" in name or name.endswith((".so", ".pyd"))]


def compiler(**environment):
    """The output of ``tools/compiler.py``."""
    done = subprocess.run(
        [sys.executable, "tools/compiler.py"], cwd=ROOT, capture_output=True, text=True, env=environment, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there the compiler is Visual C++")
def test_without_a_compiler_one_line_says_what_to_install(tmp_path):
    code, said = compiler(PATH=str(tmp_path))
    assert code == 1
    assert len(said.splitlines()) == 1
    assert re.search("needs a C compiler: '.*' is not there. .*apt install gcc|xcode-select", said)
    assert "pip install ziglang" in said
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'error: no libc' >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    code, said = compiler(PATH="/usr/bin:/bin", CC=str(broken))
    assert code == 1
    assert "cannot compile a program of one line (error: no libc)" in said


@pytest.mark.skipif(sys.platform == "win32", reason="Visual C++ may be there")
@pytest.mark.parametrize("installed", [False, True])
def test_visual_c_is_found_by_the_installer_of_visual_studio(tmp_path, installed):
    if installed:
        vswhere = tmp_path / "Microsoft Visual Studio" / "Installer" / "vswhere.exe"
        vswhere.parent.mkdir(parents=True)
        vswhere.write_text("#!/bin/sh\necho 'C:/Visual Studio'\n", encoding="utf-8")
        vswhere.chmod(0o755)
    ask = "import sys; sys.platform = 'win32'; sys.path.insert(0, 'tools'); import compiler; "
    ask += "found = compiler.problem(); print(found and compiler.advice(found))"
    environment = {"PATH": "/bin:/usr/bin", "PROGRAMFILES(X86)": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, env=environment)
    said = done.stdout.strip()
    if installed:
        assert said == ""
    else:
        assert re.search("Visual C\\+\\+ is not there. install the Build Tools for Visual Studio", said)
        assert "ziglang" not in said


@pytest.mark.parametrize(
    ("command", "is_zig"),
    [
        ("python -m ziglang cc", "True"),
        ("/opt/zig/zig cc", "True"),
        ("gcc -pthread", "False"),
        ("/home/zig/bin/cc", "False"),
    ],
)
def test_zig_is_recognised_by_its_name(command, is_zig):
    ask = "import sys; sys.path.insert(0, 'tools'); import compiler; print(compiler.is_zig())"
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, capture_output=True, text=True, env={"CC": command})
    assert done.stdout.strip() == is_zig, done.stderr
