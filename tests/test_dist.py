"""The wheel holds what the package reads, and says what it is. ``make dist`` also installs and uses it."""

import email
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import psconrl

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=300,
    )
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    assert path.name == f"psconrl-{psconrl.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_every_file_of_the_package(wheel):
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "psconrl").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == wanted
    kinds = {Path(name).suffix for name in held}
    assert {".py", ".typed", ".txt", ".toml", ".js", ".css", ".html"} <= kinds  # maps, specs, the page


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(wheel.read(name))


def test_the_wheel_says_what_it_is(wheel, metadata):
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
    (scripts,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert b"psconrl = psconrl.cli:main" in wheel.read(scripts)
    assert [name for name in wheel.namelist() if name.endswith("licenses/LICENSE")]


def test_pictures_are_an_extra(metadata):
    matplotlib = [line for line in metadata.get_all("Requires-Dist") if line.startswith("matplotlib")]
    assert matplotlib
    assert all("extra ==" in line for line in matplotlib)
    assert "plots" in metadata.get_all("Provides-Extra")


def test_the_sdist_can_be_built_tested_and_read(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml", "CITATION.cff"}
    wanted |= {"src/psconrl/py.typed", "tests/test_dist.py", "tests/conftest.py", "docs/index.md", ".ci/warm.py"}
    assert wanted <= held
    assert not [name for name in held if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]
